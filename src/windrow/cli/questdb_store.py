"""`windrow questdb append` and `compact`: rows into a table in QuestDB's layout, and its unused bytes out of it."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from windrow.cli.invocation import Invocation
from windrow.cli.options import Command, pass_invocation
from windrow.cli.progress import stepping, waiting
from windrow.cli.questdb import one_table
from windrow.cli.text import fields
from windrow.cli.text import table as text_table
from windrow.model.units import format_count

if TYPE_CHECKING:
    import pyarrow as pa

    from windrow.ingest.files import SourceFile
    from windrow.questdb.inspection import PartitionState

__all__ = ["append", "compact_partitions"]

_UNITS = ("hour", "day", "week", "month", "year")


@click.command(cls=Command)
@click.argument("path", metavar="PATH")
@click.argument("sources", metavar="SOURCE...", nargs=-1, required=True)
@click.option("--create", metavar="COLUMN", help="Create the table; its rows are ordered by this timestamp.")
@click.option("--unit", type=click.Choice(_UNITS), default="day", show_default=True, help="Time of a partition.")
@click.option("--dry-run", is_flag=True, help="Say which partitions the rows would go to; change nothing.")
@pass_invocation
def append(
    invocation: Invocation, path: str, sources: tuple[str, ...], *, create: str | None, unit: str, dry_run: bool
) -> None:
    """Append the rows of Parquet, CSV and JSON files to the table in the folder PATH, a commit for each file.

    The table must be one that no server writes to. Late rows are merged into the row groups where they belong.
    """
    from windrow.ingest.files import find_files
    from windrow.questdb.inspection import read_meta
    from windrow.questdb.meta import PartitionUnit
    from windrow.questdb.meta_writer import arrow_schema
    from windrow.questdb.store import PartitionStore, create_table

    files = find_files(sources)
    if dry_run:
        rows = _by_partition(Path(path), files, create, unit)
        total = sum(each["rows"] for each in rows)
        head = f"would append {format_count(total, 'row')}"
        invocation.output.answer(
            {"dry_run": True, "rows": total, "partitions": rows},
            lambda: f"{head}\n\n{text_table(rows, ['partition', 'rows'])}",
        )
        return
    if create is not None:
        create_table(path, _columns(files[0]), timestamp=create, unit=PartitionUnit[unit.upper()])
    count, schema = 0, arrow_schema(read_meta(Path(path)))
    with PartitionStore(path) as store, stepping(f"appending to {path}", len(files), "files") as advance:
        for file in files:
            rows_of_file = _read(file, schema)
            store.append(rows_of_file)
            count += rows_of_file.num_rows
            advance()
        version = store.txn.version
    result = {"table": path, "files": len(files), "rows": count, "version": version}
    invocation.output.answer(
        {"dry_run": False, **result}, lambda: f"appended {format_count(count, 'row')}\n\n{fields(result)}"
    )


def _columns(file: SourceFile) -> pa.Schema:
    """The columns of a new table; of text, times have the table's unit whatever they look like."""
    import pyarrow as pa

    from windrow.ingest.files import schema_of

    schema = schema_of(file)
    for place, column in enumerate(schema if file.is_text else ()):
        if pa.types.is_timestamp(column.type):
            schema = schema.set(place, column.with_type(pa.timestamp("us", "UTC")))
    return schema


def _read(file: SourceFile, schema: pa.Schema) -> pa.Table:
    """The rows of a file; the types of text files follow the table."""
    import pyarrow as pa

    from windrow.ingest.files import FilePart, read_part

    typed = replace(file, types={field.name: field.type for field in schema}) if file.is_text else file
    return pa.Table.from_batches(read_part(FilePart(typed, typed.size)))


def _by_partition(folder: Path, files: Sequence[SourceFile], create: str | None, unit: str) -> list[dict[str, Any]]:
    """How many rows each partition would get."""
    from windrow.questdb.folders import folder_name
    from windrow.questdb.inspection import read_meta
    from windrow.questdb.meta import PartitionUnit
    from windrow.questdb.meta_writer import describe_table
    from windrow.questdb.table_rows import TableRows

    if create is None:
        meta = read_meta(folder)
    else:
        meta = describe_table(_columns(files[0]), create, PartitionUnit[unit.upper()])
    rows, counts = TableRows(meta, str(folder)), Counter[int]()
    for file in files:
        for start, part in rows.by_partition(rows.conform(_read(file, rows.schema))):
            counts[start] += part.num_rows
    ticks = meta.ticks_per_second
    return [
        {"partition": folder_name(meta.unit, start, ticks_per_second=ticks), "rows": counts[start]}
        for start in sorted(counts)
    ]


@click.command(cls=Command, name="compact")
@click.argument("path", metavar="PATH")
@click.argument("name", metavar="[TABLE]", required=False)
@click.option(
    "--ratio",
    type=click.FloatRange(0, 1),
    default=0.5,
    show_default=True,
    metavar="SHARE",
    help="Rewrite partitions of which more than this share is unused.",
)
@click.option("--dry-run", is_flag=True, help="Say which partitions would be rewritten; change nothing.")
@pass_invocation
def compact_partitions(invocation: Invocation, path: str, name: str | None, *, ratio: float, dry_run: bool) -> None:
    """Rewrite partitions that hold too many unused bytes, each into a new folder, as one commit.

    The table must be one that no server writes to. Readers that have it open go on with the old files.
    """
    from windrow.questdb.inspection import inspect_table
    from windrow.questdb.store import PartitionStore

    folder = one_table(path, name)
    before = inspect_table(folder)
    chosen = [each for each in before.partitions if (each.unused_ratio or 0.0) > ratio]
    result: dict[str, Any] = {
        "table": before.table,
        "partitions": len(chosen),
        "unused_bytes": sum(each.unused_bytes or 0 for each in chosen),
        "parquet_bytes": sum(each.parquet_bytes or 0 for each in chosen),
    }
    if chosen and not dry_run:
        with waiting(f"rewriting {format_count(len(chosen), 'partition')}"), PartitionStore(folder) as store:
            store.rewrite([each.timestamp for each in chosen])
        places = {each.timestamp for each in chosen}
        after = [each for each in inspect_table(folder).partitions if each.timestamp in places]
        result["parquet_bytes_after"] = sum(each.parquet_bytes or 0 for each in after)
    invocation.output.answer({"dry_run": dry_run, **result}, lambda: _compacted(result, chosen, dry_run=dry_run))


def _compacted(result: dict[str, Any], chosen: Sequence[PartitionState], *, dry_run: bool) -> str:
    if not chosen:
        return "nothing to rewrite"
    rows = [each.to_dict() for each in chosen]
    head = "would rewrite" if dry_run else "rewritten"
    return f"{head}\n\n{fields(result)}\n\n{text_table(rows, ['folder', 'rows', 'parquet_bytes', 'unused_bytes'])}"
