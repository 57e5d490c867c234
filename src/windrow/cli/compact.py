"""`windrow compact`: small splits become large ones, now or as long as it watches."""

from __future__ import annotations

import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict
from queue import SimpleQueue
from typing import TYPE_CHECKING, Any

import click

from windrow.cli.exit_codes import ExitCode
from windrow.cli.invocation import Invocation
from windrow.cli.options import Command, pass_invocation
from windrow.cli.progress import merging
from windrow.cli.sparks import runner_option, sparks, wants_spark
from windrow.cli.text import fields
from windrow.cli.text import table as text_table
from windrow.model.units import format_count

if TYPE_CHECKING:
    from windrow.compaction.apart import Apart
    from windrow.compaction.compaction_plan import CompactionPlan
    from windrow.compaction.compactor import Compact
    from windrow.compaction.outcomes import CompactionResult

__all__ = ["compact"]

_WORTH_SPARK = 2 * 2**30
"""Below this, starting Spark takes longer than the work."""
_LINES = 20


@click.command(cls=Command, short_help="Merge small splits into large ones.")
@click.argument("table")
@click.option("--window", metavar="WHEN", help="Only these: a moment, FROM/TO, or overflow.")
@click.option("--dry-run", is_flag=True, help="Say what would be merged, and what it costs and gains; change nothing.")
@click.option("--why", is_flag=True, help="With --dry-run: every decision, split by split.")
@click.option("--watch", is_flag=True, help="Keep the table compacted until Ctrl-C.")
@click.option(
    "--every",
    metavar="SECONDS",
    type=click.FloatRange(min=0.1),
    default=60,
    show_default=True,
    help="How often to look.",
)
@click.option("--threads", metavar="N", type=click.IntRange(min=1), help="Merges at once in this process.")
@click.option(
    "--memory",
    metavar="SIZE",
    help="Memory of all merges in this process, or of each task of Spark.  [default: 512MiB for each thread]",
)
@runner_option
@click.option(
    "--verify",
    type=click.Choice(["full", "sample"]),
    help="Compare every value of each merge with its inputs, or a sample; the table's setting unless given.",
)
@click.option("--pardon", is_flag=True, help="First let splits in quarantine be merged again.")
@pass_invocation
def compact(
    invocation: Invocation,
    /,
    table: str,
    *,
    window: str | None,
    dry_run: bool,
    why: bool,
    watch: bool,
    every: float,
    **how: Any,
) -> None:
    """Merge the splits of TABLE, window by window; no row changes, and readers notice nothing.

    Every merge becomes visible by itself. Ctrl-C finishes those that run; once more ends at once.
    """
    if dry_run and (watch or how["pardon"]):
        raise click.UsageError("--dry-run changes nothing; leave --watch and --pardon out")
    if why and not dry_run:
        raise click.UsageError("--why explains a plan; add --dry-run")
    with invocation.lake() as lake:
        noun = lake.table(table).compact
        if dry_run:
            _answer_plan(invocation, noun.plan(window=window), why=why)
        else:
            _own_process()
            if watch:
                _watch(invocation, noun, window, every, how)
            else:
                _run(invocation, noun, window, how)


def _own_process() -> None:
    """A process of the command line hosts nothing else: its memory may be set up for merges."""
    from windrow.merging.heap import own_process

    own_process()


def _answer_plan(invocation: Invocation, plan: CompactionPlan, *, why: bool) -> None:
    answer: dict[str, Any] = {"dry_run": True, **plan.to_dict()}
    if why:
        answer["decisions"] = [asdict(row) for row in plan.decisions()]
    invocation.output.answer(answer, lambda: _plan_text(plan, answer.get("decisions")))


def _plan_text(plan: CompactionPlan, decisions: list[dict[str, Any]] | None) -> str:
    if not plan.merges:
        head = f"nothing to merge in {plan.table}"
    else:
        shown = [asdict(window) for window in plan.windows[:_LINES]]
        more = len(plan.windows) - len(shown)
        head = f"would merge in {plan.table}\n\n{fields(asdict(plan.forecast))}\n\n"
        head += text_table(shown, ["window", "merges", "splits", "splits_after", "size_bytes"])
        head += f"\nand {more} more windows" if more else ""
    left = [{"splits": count, "left_alone": reason} for reason, count in list(plan.left.items())[:_LINES]]
    blocks = [head]
    if decisions is not None:
        blocks.append(
            text_table(decisions, ["window", "action", "splits", "outputs", "size_bytes", "why", "split_ids"])
        )
    elif left:
        blocks.append(text_table(left, ["splits", "left_alone"]))
    blocks += [_apart_text(each) for each in plan.apart]
    return "\n\n".join(blocks)


def _apart_text(apart: Apart) -> str:
    splits, windows = format_count(apart.splits, "split"), format_count(apart.windows, "window")
    return f"{apart.setting} was {apart.then} and is {apart.now}: {splits} in {windows} stay apart; {apart.why}"


def _run(invocation: Invocation, noun: Compact, window: str | None, how: dict[str, Any]) -> None:
    _pardon(noun, how)
    plan = noun.plan(window=window)
    with (
        sparks(invocation, wanted=wants_spark(how["runner"], plan.forecast.bytes_read, _WORTH_SPARK)) as spark,
        _stopping(invocation) as cancelled,
        merging(f"compacting {noun.name}", plan.merges) as advance,
    ):
        result = noun.run(
            window=window,
            spark=spark,
            on_merge=lambda merge: advance(merge.bytes_in),
            cancelled=cancelled,
            **_bounds(how),
        )
    invocation.output.answer(result.to_dict(), lambda: _result_text(result))
    if result.failed:
        raise click.exceptions.Exit(ExitCode.FAILURE)
    if result.state == "cancelled":
        raise click.exceptions.Exit(ExitCode.INTERRUPTED)


def _watch(invocation: Invocation, noun: Compact, window: str | None, every: float, how: dict[str, Any]) -> None:
    """Runs are reported as they end; programs get one answer, the sum of all of them."""
    _pardon(noun, how)
    done: list[dict[str, Any]] = []
    with (
        sparks(invocation, wanted=wants_spark(how["runner"], 0, _WORTH_SPARK)) as spark,
        _stopping(invocation) as cancelled,
    ):
        for result in noun.watch(every=every, window=window, spark=spark, cancelled=cancelled, **_bounds(how)):
            done.append(result.to_dict())
            invocation.output.tell(_result_text(result))
    invocation.output.answer({"table": noun.name, "runs": done}, lambda: f"watched {noun.name}: {len(done)} runs")


def _pardon(noun: Compact, how: dict[str, Any]) -> None:
    if how["pardon"]:
        noun.pardon()


def _bounds(how: dict[str, Any]) -> dict[str, Any]:
    from windrow.model.units import parse_bytes

    memory = how["memory"]
    return {
        "threads": how["threads"],
        "memory": None if memory is None else parse_bytes(memory, "--memory"),
        "verify": how["verify"],
    }


def _headline(result: CompactionResult) -> str:
    """Say how a run ended before what it counted."""
    if result.state == "cancelled":
        return f"cancelled: {result.done} of {result.planned} merges were done"
    if result.failed or result.state == "failed":
        return f"failed: {result.failed} of {result.planned} merges failed, {result.done} were done"
    return "compacted" if result.planned else "nothing to merge"


def _result_text(result: CompactionResult) -> str:
    plain = result.to_dict()
    problems = plain.pop("problems")
    text = f"{_headline(result)}\n\n{fields(plain)}"
    if problems:
        shown = text_table(problems[:_LINES], ["window", "outcome", "splits_in", "why"])
        text += f"\n\n{shown}"
    return text


@contextmanager
def _stopping(invocation: Invocation) -> Iterator[threading.Event]:
    """Ctrl-C lets what runs be finished; the second one ends at once."""
    cancelled = threading.Event()
    if threading.current_thread() is not threading.main_thread():
        yield cancelled
        return
    # Ctrl-C may come while this thread writes a line or waits for the event: what follows is done by another one.
    pressed: SimpleQueue[bool] = SimpleQueue()
    times: list[int] = []

    def stop(number: int, _: Any) -> None:
        if times:
            raise KeyboardInterrupt
        times.append(number)
        pressed.put(True)

    def finish() -> None:
        if pressed.get():
            cancelled.set()
            invocation.output.tell("finishing the merges that run; Ctrl-C again ends at once")

    listener = threading.Thread(target=finish, name="windrow-ctrl-c", daemon=True)
    listener.start()
    before = signal.signal(signal.SIGINT, stop)
    try:
        yield cancelled
    finally:
        signal.signal(signal.SIGINT, before)
        pressed.put(False)
        listener.join()
