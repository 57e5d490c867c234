"""`windrow compile`: compile the kernels of this installation before its first use waits for them."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING

import click

from windrow.cli.invocation import Invocation
from windrow.cli.options import Command, pass_invocation
from windrow.cli.progress import waiting

if TYPE_CHECKING:
    import pyarrow as pa

__all__ = ["compile_kernels"]

_FIRST = 1_700_000_000_000_000
_LARGE, _SMALL = 40_000, 500
"""Rows of a split: large ones are written by kernels, small ones by pyarrow."""
_TABLES = (
    ("following", "metric_name|host|timeseries_id|timestamp+/V2", _LARGE),
    ("crossing", "session|timestamp/V2", 1),
    ("by_time", "timestamp|host|count/V2", 1),
)
"""Name, order and distance of batches in time: tables that merge by runs, by scattered runs, and row by row."""


@click.command("compile", cls=Command, short_help="Compile kernels before the first use waits for them.")
@pass_invocation
def compile_kernels(invocation: Invocation) -> None:
    """Compile what ingest, compaction and queries need, and keep it for this installation.

    It takes about a minute once, and a few seconds when everything is compiled already. What an unusual table needs
    besides is compiled when it is used.
    """
    from windrow.kernels.loading import compiled_count

    start, before = time.perf_counter(), compiled_count()
    with waiting("compiling kernels"), _quiet():
        _work_once()
    compiled, seconds = compiled_count() - before, time.perf_counter() - start
    result = {"compiled": compiled, "compiled_before": before, "seconds": round(seconds, 3)}
    invocation.output.answer(result, lambda: f"compiled {compiled:,} kernels in {seconds:.1f} s, {before:,} were there")


@contextmanager
def _quiet() -> Iterator[None]:
    """The notice about compiling says nothing new to the user of this command."""
    from windrow.kernels.notice import notice

    with notice.muted():
        yield


def _work_once() -> None:
    """Ingest, merge and query a few tables of made-up points, and learn of them, in a folder that is removed."""
    from windrow.lake import connect
    from windrow.learning import LearningSettings

    # Whatever that costs, and however long it takes.
    statistics = LearningSettings(1e6, seconds_at_close=600)
    with (
        TemporaryDirectory(prefix="windrow-compile-") as folder,
        connect(Path(folder), statistics=statistics) as lake,
    ):
        for name, sort, distance in _TABLES:
            table = lake.create_table(name, sort=sort, window="1h", bloom_filters=("host",))
            for batch, rows in enumerate((_LARGE, _LARGE, _SMALL, _SMALL)):
                table.ingest(_points(batch * distance, rows))
            table.compact.run(verify="full")
            lake.sql(
                f"select host, avg(value) from {name} where host = 'h1' and timestamp >= '2023-11-14 22:13:30Z'"
                " group by host"
            ).to_arrow()
            lake.sql(f"select * from {name}").to_arrow()


def _points(first: int, rows: int) -> pa.Table:
    import numpy as np
    import pyarrow as pa

    row = np.arange(rows)

    def texts(prefix: str, numbers: np.ndarray, count: int) -> pa.Array:
        return pa.array([f"{prefix}{number}" for number in range(count)]).take(pa.array(numbers % count))

    return pa.table(
        {
            "metric_name": texts("metric", row, 2),
            "host": texts("h", row, 50),
            "session": texts("s", row * 7919, 20_000),
            "note": pa.array([f"note {number}" if number % 5 else None for number in row.tolist()]),
            "timestamp": pa.array(_FIRST + (first + row) * 1000, pa.timestamp("us", "UTC")),
            "value": np.where(row % 7, row % 100, row * 0.1),
            "gap": pa.array(row * 0.5, mask=row % 3 == 0),
            "count": row,
            "small": row.astype(np.int32),
            "up": pa.array(row % 3 == 0, mask=row % 11 == 0),
        }
    )
