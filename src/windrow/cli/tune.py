"""`windrow tune`: experiments with a table's own rows, and what they speak for."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from windrow.cli.invocation import Invocation
from windrow.cli.options import Command, pass_invocation
from windrow.cli.progress import waiting
from windrow.cli.text import table as text_table
from windrow.errors import InvalidInput, StorageError
from windrow.model.units import format_bytes

if TYPE_CHECKING:
    from windrow.compaction.tune import TuneResult

__all__ = ["tune"]

_FAN_IN = ["fan_in", "splits", "seconds", "peak_mib", "write_amplification", "bytes_in", "bytes_out", "query_ms"]
_LAYOUT = [
    "name", "target", "window", "splits_before", "splits_after", "write_amplification", "merge_seconds", "query_ms",
]  # fmt: skip


@click.command(cls=Command, short_help="Try sort order, fan-in, target size and window on a table's rows.")
@click.argument("table")
@click.option(
    "--rows", metavar="N", type=click.IntRange(min=100), default=500_000, show_default=True, help="Size of the sample."
)
@click.option(
    "--plot", metavar="FILE", type=click.Path(path_type=Path, dir_okay=False), help="Draw the results as SVG."
)
@pass_invocation
def tune(invocation: Invocation, table: str, rows: int, plot: Path | None) -> None:
    """Try what fits TABLE, on rows of its largest window; the table itself is left alone.

    Change what you agree with by `windrow set`.
    """
    if plot is not None and not plot.parent.is_dir():
        raise InvalidInput(f"--plot: there is no folder {plot.parent}; make it or name another file")
    with invocation.lake() as lake:
        noun = lake.table(table).compact
        with waiting(f"trying what fits {table}"):
            result = noun.tune(rows=rows)
    if plot is not None:
        _write(plot, result)
    invocation.output.answer(result.to_dict(), lambda: _text(result))


def _write(plot: Path, result: TuneResult) -> None:
    try:
        plot.write_text(result.plot(), encoding="utf-8")
    except OSError as error:
        raise StorageError(f"--plot: {plot} cannot be written: {error.strerror}; name another file") from error


def _text(result: TuneResult) -> str:
    found: dict[str, Any] = result.to_dict()
    before = format_bytes(result.unsorted_bytes)
    blocks = [
        f"{result.rows:,} rows of window {result.window}",
        f"sorting saves {result.sorting_saves:.0%}: {format_bytes(result.sorted_bytes)} instead of {before}",
        "fan-in, tried:\n" + text_table(found["fan_in"], _FAN_IN),
        "target and window, simulated:\n" + text_table(found["layouts"], _LAYOUT),
    ]
    if result.advice:
        blocks.append("advice:\n" + text_table(found["advice"], ["setting", "now", "better", "why"]))
    else:
        blocks.append("the settings are as the experiments would have them")
    return "\n\n".join(blocks)
