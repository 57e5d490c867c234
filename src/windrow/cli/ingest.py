"""`windrow ingest`: files become sorted splits, visible by one commit."""

from __future__ import annotations

from typing import Any

import click

from windrow.cli.invocation import Invocation
from windrow.cli.options import Command, pass_invocation
from windrow.cli.progress import ticking
from windrow.cli.sparks import runner_option, sparks, wants_spark
from windrow.cli.text import fields

__all__ = ["ingest"]

_WORTH_SPARK = 256 * 2**20
"""Below this, starting Spark takes longer than the work."""
_FORMATS = ("parquet", "csv", "json", "otlp")


@click.command(cls=Command, short_help="Bring files into a table.")
@click.argument("table")
@click.argument("sources", metavar="SOURCE...", nargs=-1, required=True)
@click.option("--format", "file_format", type=click.Choice(_FORMATS), help="What the files are.  [default: by name]")
@click.option(
    "--source", default="default", show_default=True, metavar="NAME", help="Stable name of where rows come from."
)
@click.option("--drop-late", is_flag=True, help="Drop points older than the table's acceptance window, and count them.")
@click.option("--future", metavar="DURATION", help="Drop points further ahead of now than this.")
@click.option(
    "--most-dropped", type=click.FloatRange(0, 1), default=0.5, show_default=True, help="Share that may be dropped."
)
@click.option(
    "--dead-letter",
    is_flag=True,
    help="Keep dropped rows in files of their own; drop files of conflicting types too.",
)
@click.option(
    "--rare-attributes",
    type=click.FloatRange(0, 1),
    default=0.01,
    show_default=True,
    help="Share of rows below which an OTLP attribute gets no column.",
)
@click.option(
    "--cast",
    multiple=True,
    metavar="COLUMN=TYPE",
    help="Give a column a type, such as value=double, though digits are lost.",
)
@runner_option
@click.option(
    "--shuffle/--no-shuffle",
    default=None,
    help="Let Spark gather rows by tenant and window before they are written.  [default: where it pays]",
)
@click.option("--threads", metavar="N", type=click.IntRange(min=1), help="Tasks at once in this process.")
@click.option(
    "--memory-budget",
    metavar="SIZE",
    help="Memory of the ingest in this process, or of each task of Spark.  [default: 1GiB for each thread]",
)
@click.option("--dry-run", is_flag=True, help="Look at the files, write nothing.")
@pass_invocation
def ingest(  # noqa: PLR0913 - each is an option
    invocation: Invocation,
    /,
    table: str,
    sources: tuple[str, ...],
    *,
    file_format: str | None,
    rare_attributes: float,
    dead_letter: bool,
    cast: tuple[str, ...],
    runner: str,
    dry_run: bool,
    **rules: Any,
) -> None:
    """Bring Parquet, CSV, JSON and OTLP files, folders, globs or URLs into TABLE, as one commit."""
    from windrow.ingest.files import FileFormat

    kind = FileFormat(file_format) if file_format else None
    reading: dict[str, Any] = {"file_format": kind, "rare_attributes": rare_attributes, "dead_letter": dead_letter}
    reading["cast"] = dict(map(_cast, cast))
    with invocation.lake() as lake:
        opened = lake.table(table)
        plan = opened.ingest.plan(list(sources), **reading)
        if dry_run:
            invocation.output.answer(
                {"dry_run": True, **plan.to_dict()}, lambda: f"would ingest\n\n{fields(plan.to_dict())}"
            )
            return
        with (
            sparks(invocation, wanted=wants_spark(runner, plan.size_bytes or 0, _WORTH_SPARK)) as spark,
            ticking(f"ingesting into {table}", plan.predicted_files) as advance,
        ):
            result = opened.ingest.run(
                list(sources),
                spark=spark,
                on_split=lambda split: advance(split.row_count, split.size_bytes),
                **reading,
                **rules,
            )
    invocation.output.answer(result.to_dict(), lambda: f"ingested\n\n{fields(result.to_dict())}")


def _cast(text: str) -> tuple[str, str]:
    column, equals, kind = text.rpartition("=")
    if not (column and equals and kind):
        raise click.BadParameter(f"{text!r} is not COLUMN=TYPE; write such as value=double", param_hint="--cast")
    return column, kind
