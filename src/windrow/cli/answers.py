"""Where the rows of a query or a scan go: to a terminal, a pipe or a file."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable
from contextlib import AbstractContextManager
from typing import TYPE_CHECKING, Any

import click

from windrow.cli.invocation import Invocation
from windrow.cli.sql_output import MOST_SHOWN, Format, Shown, shown, shown_answer, write, write_answered, written_aside
from windrow.model.units import format_count

if TYPE_CHECKING:
    import pyarrow as pa

    from windrow.lake import Lake

__all__ = ["output_options", "write_answer", "write_directly"]


def output_options(command: Callable[..., Any]) -> Callable[..., Any]:
    """Add the options `form`, a format, and `output`, a file."""
    form = click.option(
        "--format",
        "form",
        type=click.Choice([str(each) for each in Format]),
        help="What to write.  [default: as the name of the output ends, else table]",
    )
    output = click.option("-o", "--output", metavar="FILE", help="Write to this file instead of stdout.")
    return form(output(command))


def write_answer(
    invocation: Invocation, answer: AbstractContextManager[pa.RecordBatchReader], form: Format, output: str | None
) -> None:
    """Write rows to a file, else to stdout; of a table, a terminal gets the first rows."""
    if output is not None:
        _to_file(invocation, answer, form, output)
    elif form is Format.TABLE and sys.stdout.isatty():
        _to_terminal(answer)
    else:
        with answer as batches:
            write(form, batches, sys.stdout.buffer)
        sys.stdout.buffer.flush()


def write_directly(lake: Lake, query: str, form: Format) -> bool:
    """Write the answer of a plain query to stdout before the engine is loaded; whether that could be done."""
    start = time.perf_counter()
    answer = lake.answer_directly(query) if form in (Format.TABLE, Format.JSON) else None
    if answer is None:
        return False
    if form is Format.TABLE and sys.stdout.isatty():
        _show(shown_answer(answer, MOST_SHOWN), time.perf_counter() - start)
    else:
        write_answered(form, answer, sys.stdout.buffer)
        sys.stdout.buffer.flush()
    return True


def _to_terminal(answer: AbstractContextManager[pa.RecordBatchReader]) -> None:
    start = time.perf_counter()
    with answer as batches:
        rows = shown(batches, MOST_SHOWN)
    _show(rows, time.perf_counter() - start)


def _show(rows: Shown, seconds: float) -> None:
    click.echo(rows.text(short=True))
    click.secho(f"{rows.counted}, {seconds:.3f} s", dim=True)


def _to_file(
    invocation: Invocation, answer: AbstractContextManager[pa.RecordBatchReader], form: Format, output: str
) -> None:
    start = time.perf_counter()
    with answer as batches, written_aside(output) as sink:
        rows = write(form, batches, sink)
    seconds = time.perf_counter() - start
    report = {"output": output, "format": str(form), "rows": rows, "seconds": round(seconds, 3)}
    invocation.output.answer(report, lambda: f"{format_count(rows, 'row')} in {output}, {seconds:.3f} s")
