"""`windrow demo`: a lake from nothing to an answer, with points of its own, through Spark."""

from __future__ import annotations

import shlex
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from windrow.cli.demo_folder import DEMO_TABLE, SPARK_LOG, prepare_folder
from windrow.cli.invocation import Invocation
from windrow.cli.options import Command, pass_invocation
from windrow.cli.progress import counting, waiting
from windrow.cli.text import fields, literal, table
from windrow.errors import InvalidInput
from windrow.model.units import format_bytes

if TYPE_CHECKING:
    from windrow.cli.demo_data import DemoPlan
    from windrow.ingest.ingest_result import IngestResult
    from windrow.lake import Lake
    from windrow.table import Table

__all__ = ["demo"]

_SORT = "metric_name|service|env|host|timeseries_id|timestamp&region/V2"
_WINDOW = 900
_SPLITS_SHOWN = 5


@click.command(cls=Command, short_help="See all of it at work on made-up points.")
@click.argument("folder", default="windrow-demo", type=click.Path(path_type=Path))
@click.option(
    "--points",
    metavar="N",
    type=click.IntRange(min=1),
    default=300_000,
    show_default=True,
    help="How many points to make.",
)
@click.option(
    "--seed",
    metavar="N",
    type=click.IntRange(min=0),
    default=1,
    show_default=True,
    help="Other seeds make other points.",
)
@click.option("--overwrite", is_flag=True, help="Make the demo anew in the folder of an earlier one.")
@pass_invocation
def demo(invocation: Invocation, folder: Path, points: int, seed: int, *, overwrite: bool) -> None:
    """Make a lake in FOLDER, bring metric points in through Spark, and answer two questions about them."""
    from windrow.cli.demo_data import DemoPlan
    from windrow.lake import connect
    from windrow.runners.session import check_java

    _refuse_other_lake(invocation)
    check_java()
    prepare_folder(folder, overwrite=overwrite)
    now = int(time.time())
    run = _Demo(invocation, folder, DemoPlan(points, seed, end=now - now % _WINDOW))
    with connect(folder) as lake:
        run.run(lake)


def _refuse_other_lake(invocation: Invocation) -> None:
    for setting in invocation.resolved.settings:
        if setting.origin in ("--lake", "--metastore"):
            raise InvalidInput(f"{setting.origin}: the demo makes a lake of its own; write windrow demo FOLDER")


@dataclass(frozen=True, slots=True)
class _Demo:
    """One run, step by step; each step tells people what it did and how long that took."""

    invocation: Invocation
    folder: Path
    plan: DemoPlan
    seconds: dict[str, float] = field(default_factory=dict)

    def run(self, lake: Lake) -> None:
        """Do every step, then answer with all of it."""
        tell = self.invocation.output.tell
        tell(f"A lake in {self.folder}\n")
        metrics = lake.create_table(DEMO_TABLE, sort=_SORT, window=_WINDOW)
        result = self._ingest(metrics)
        windows = self._show_windows(metrics)
        splits = self._show_splits(metrics)
        with self._timed("queries"):
            queries = [self._ask(lake, title, query) for title, query in _questions(self.plan).items()]
        summary = self._summary(result, windows)
        self.invocation.output.answer(
            {**summary, "window_rows": windows, "split_rows": splits, "queries": queries, "next": self._next()},
            lambda: self._closing(summary),
        )

    @contextmanager
    def _timed(self, step: str) -> Iterator[None]:
        began = time.perf_counter()
        yield
        self.seconds[step] = round(time.perf_counter() - began, 3)

    def _ingest(self, metrics: Table) -> IngestResult:
        from windrow.cli.demo_data import generate
        from windrow.runners.session import spark_session

        config, tell = self.invocation.config, self.invocation.output.tell
        with waiting("Spark starts ..."), self._timed("spark_start"):
            spark = spark_session(config.spark_master, options=config.spark_options, log=self.folder / SPARK_LOG)
        tell(f"Spark started in {self.seconds['spark_start']:.1f} s")
        with counting("Ingest", self.plan.points) as advance, self._timed("ingest"):
            result = metrics.ingest(generate(spark, self.plan), on_split=lambda split: advance(split.row_count))
        tell(
            f"Made and ingested {result.rows:,} points in {self.seconds['ingest']:.1f} s as one commit:\n"
            f"{result.splits} splits in {result.windows} windows, {format_bytes(result.size_bytes)}\n"
        )
        return result

    def _show_windows(self, metrics: Table) -> list[dict[str, Any]]:
        rows = metrics.inspect.windows().to_dict()
        self.invocation.output.tell("Its windows; points without a timestamp lie in the overflow window:\n")
        self.invocation.output.tell(table(rows, ["window", "splits", "rows", "size_bytes"]))
        return rows

    def _show_splits(self, metrics: Table) -> list[dict[str, Any]]:
        rows = metrics.inspect.splits(_SPLITS_SHOWN).to_dict()
        self.invocation.output.tell(f"\nIts first {len(rows)} splits; every one is a sorted Parquet file:\n")
        self.invocation.output.tell(table(rows, ["split_id", "window", "rows", "size_bytes"]))
        return rows

    def _ask(self, lake: Lake, title: str, query: str) -> dict[str, Any]:
        began = time.perf_counter()
        answer = lake.sql(query)
        seconds, rows = round(time.perf_counter() - began, 4), answer.to_dict()
        self.invocation.output.tell(f"\n{title}:\n\n{query}\n")
        self.invocation.output.tell(table(rows, answer.to_arrow().column_names, literal))
        self.invocation.output.tell(f"\nanswered in {1000 * seconds:.0f} ms")
        return {"title": title, "query": query, "seconds": seconds, "rows": rows}

    def _summary(self, result: IngestResult, windows: list[dict[str, Any]]) -> dict[str, Any]:
        late = sum(row["rows"] for row in windows if row["start"] is not None and row["start"] < self.plan.start)
        counted = {name: asdict(result)[name] for name in ("null_timestamps", "splits", "windows", "size_bytes")}
        return {
            "lake": str(self.folder.absolute()),
            "table": DEMO_TABLE,
            "version": result.version,
            "points": result.rows,
            "late": late,
            **counted,
            "seconds": self.seconds,
        }

    def _closing(self, summary: dict[str, Any]) -> str:
        return f"\nIn short:\n\n{fields(summary)}\n\nTry next:\n\n" + "\n".join(f"  {line}" for line in self._next())

    def _next(self) -> list[str]:
        windrow = f"windrow --lake {shlex.quote(str(self.folder))}"
        return [
            f"{windrow} describe {DEMO_TABLE}",
            f"{windrow} inspect splits {DEMO_TABLE} --limit 5",
            f'{windrow} sql "select metric_name, count(*), avg(value) from {DEMO_TABLE} group by all"',
        ]


def _questions(plan: DemoPlan) -> dict[str, str]:
    """Return queries by title. Moments are written with their offset, so that no time zone matters."""
    first, last = (_literal(second) for second in (plan.end - _WINDOW, plan.end))
    return {
        "cpu.usage by service in the newest window": (
            "select service, round(avg(value), 2) as average,\n"
            "       round(quantile_cont(value, 0.95), 2) as p95\n"
            f"from {DEMO_TABLE}\nwhere metric_name = 'cpu.usage'\n"
            f"  and timestamp >= {first}\n  and timestamp < {last}\n"
            "group by service order by service"
        ),
        "The hosts with the most requests": (
            "select host, region, sum(value)::bigint as requests\n"
            f"from {DEMO_TABLE}\nwhere metric_name = 'http.requests'\n"
            "group by host, region order by requests desc, host limit 5"
        ),
    }


def _literal(second: int) -> str:
    return f"timestamptz '{datetime.fromtimestamp(second, UTC):%Y-%m-%d %H:%M:%S}+00'"
