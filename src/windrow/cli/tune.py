"""`windrow tune`: experiments with a table's own rows, and what they speak for."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from windrow.cli.invocation import Invocation
from windrow.cli.options import Command, pass_invocation
from windrow.cli.progress import waiting
from windrow.cli.text import in_units
from windrow.cli.text import table as text_table
from windrow.errors import InvalidInput, StorageError
from windrow.model.units import format_bytes

if TYPE_CHECKING:
    import pyarrow as pa

    from windrow.compaction.tune import TuneResult

__all__ = ["tune"]

_FAN_IN = ["fan_in", "splits", "seconds", "peak_mib", "write_amplification", "bytes_in", "bytes_out", "query_ms"]
_LAYOUT = [
    "name", "how", "target", "window", "size_bytes", "splits_before", "splits_after", "write_amplification",
    "merge_seconds", "query_ms",
]  # fmt: skip


@click.command(cls=Command, short_help="Try sort order, fan-in, target size and window on a table's rows.")
@click.argument("table")
@click.option(
    "--rows", metavar="N", type=click.IntRange(min=100), default=500_000, show_default=True, help="Size of the sample."
)
@click.option(
    "--plot", metavar="FILE", type=click.Path(path_type=Path, dir_okay=False), help="Draw the results as SVG."
)
@click.option(
    "--arrived",
    metavar="FILE",
    type=click.Path(path_type=Path, dir_okay=False, exists=True),
    multiple=True,
    help="Rows in the order in which they came, as Parquet or CSV, to compare sorting with; may be repeated.",
)
@pass_invocation
def tune(invocation: Invocation, table: str, rows: int, plot: Path | None, arrived: tuple[Path, ...]) -> None:
    """Try what fits TABLE, on rows of its largest window; the table itself is left alone.

    Without --arrived the order of arrival is reconstructed by time. Change what you agree with by `windrow set`.
    """
    if plot is not None and not plot.parent.is_dir():
        raise InvalidInput(f"--plot: there is no folder {plot.parent}; make it or name another file")
    with invocation.lake() as lake:
        noun = lake.table(table).compact
        with waiting(f"trying what fits {table}"):
            result = noun.tune(rows=rows, arrived=_read(arrived) if arrived else None)
    if plot is not None:
        _write(plot, result)
    invocation.output.answer(result.to_dict(), lambda: _text(result))


def _read(files: tuple[Path, ...]) -> pa.Table:
    """The rows of files behind each other, in their order."""
    import pyarrow as pa
    import pyarrow.csv
    import pyarrow.parquet

    tables = []
    for file in files:
        try:
            tables.append(
                pa.csv.read_csv(file) if file.suffix == ".csv" else pa.parquet.read_table(file, partitioning=None)
            )
        except (pa.ArrowException, OSError) as error:
            raise InvalidInput(f"--arrived: {file} cannot be read: {error}; give Parquet, or CSV as .csv") from error
    try:
        return pa.concat_tables(tables, promote_options="permissive")
    except pa.ArrowException as error:
        raise InvalidInput(f"--arrived: the files have no columns in common types: {error}; give them alone") from error


def _write(plot: Path, result: TuneResult) -> None:
    try:
        plot.write_text(result.plot(), encoding="utf-8")
    except OSError as error:
        raise StorageError(f"--plot: {plot} cannot be written: {error.strerror}; name another file") from error


def _text(result: TuneResult) -> str:
    plain: dict[str, Any] = result.to_dict()
    blocks = [
        f"{result.rows:,} rows of window {result.window}",
        _sorting_text(result),
        "fan-in, measured:\n" + text_table(plain["fan_in"], _FAN_IN),
        "target and window, for a closed window:\n" + text_table(plain["layouts"], _LAYOUT),
    ]
    reasons = dict.fromkeys(f"{each.name} is simulated: {each.why}" for each in result.layouts if each.why)
    blocks += ["\n".join(reasons)] if reasons else []
    if result.advice:
        shown = [_readable(each) for each in plain["advice"]]
        blocks.append("advice:\n" + text_table(shown, ["setting", "now", "better", "why"]))
    else:
        blocks.append("the settings are as the experiments would have them")
    return "\n\n".join(blocks)


def _readable(advice: dict[str, Any]) -> dict[str, Any]:
    """An advice with its values in the units of the setting."""
    return advice | {name: in_units(advice["setting"], advice[name]) for name in ("now", "better")}


def _sorting_text(result: TuneResult) -> str:
    sorting = result.sorting
    text = (
        f"{result.verdict}\n{sorting.rows:,} rows take {format_bytes(sorting.sorted_bytes)} sorted and "
        f"{format_bytes(sorting.arrival_bytes)} in the order of arrival, written alike"
    )
    if sorting.arrival == "as given":
        return text
    return text + "\nthe order of arrival is reconstructed by time; --arrived FILE compares with rows as they came"
