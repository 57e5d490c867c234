"""TPC-H for benchmarks: its 22 queries, its files as several writers leave them, and native DuckDB tables of them."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path

import duckdb

__all__ = ["QUERIES", "TABLES", "copied", "generated", "load", "over_files", "over_tables", "sizes_of", "tables_of"]

TABLES = ("lineitem", "orders", "customer", "part", "supplier", "partsupp", "nation", "region")
QUERIES = {
    path.stem: path.read_text(encoding="utf-8")
    for path in sorted((Path(__file__).parents[1] / "tests" / "data" / "tpch").glob("q*.sql"))
}
"""By name, q01 to q22; tables stand in them as fields of a format."""


def generated(folder: Path, scale: float) -> Path:
    """Write the tables as tpchgen-cli does, with snappy; a folder that has them is left as it is."""
    place = folder / f"sf{scale:g}"
    if not (place / "done").exists():
        program = Path(sys.executable).with_name("tpchgen-cli")
        given = ["parquet", f"--scale-factor={scale}", f"--output-dir={place}", "--quiet"]
        subprocess.run([program, *given], check=True)
        (place / "done").touch()
    return place


def copied(source: Path, folder: Path, options: str) -> Path:
    """Write the same rows as DuckDB does, with options of its COPY; a folder that has them is left as it is."""
    folder.mkdir(parents=True, exist_ok=True)
    if not (folder / "done").exists():
        connection = duckdb.connect()
        for name in TABLES:
            rows = f"(from '{source}/{name}.parquet')"
            connection.execute(f"copy {rows} to '{folder}/{name}.parquet' (format parquet, {options})")
        connection.close()
        (folder / "done").touch()
    return folder


def load(connection: duckdb.DuckDBPyConnection, folder: Path, name: str) -> None:
    """Make a native table of a file."""
    connection.execute(f"create or replace table {name} as from '{folder}/{name}.parquet'")


def over_files(query: str, folder: Path | str) -> str:
    """The text of a query that names files by their paths, or by their addresses."""
    return QUERIES[query].format(**{name: f"'{folder}/{name}.parquet'" for name in TABLES})


def over_tables(query: str) -> str:
    """The text of a query that names tables."""
    return QUERIES[query].format(**{name: name for name in TABLES})


def tables_of(query: str) -> list[str]:
    """The tables that a query reads."""
    return [name for name in TABLES if f"{{{name}}}" in QUERIES[query]]


def sizes_of(folder: Path) -> Mapping[str, int]:
    """The bytes of each file."""
    return {name: (folder / f"{name}.parquet").stat().st_size for name in TABLES}
