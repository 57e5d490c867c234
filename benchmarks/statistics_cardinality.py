"""How many series: estimates against exact counts, bytes that are read for them, and milliseconds.

One table is TSBS's (two files of its use case cpu-only, in tests/data/tsbs), the other has 100,000 series of 20 metrics
in four windows, whose pods change from window to window. Exact counts are those of `count(distinct ...)` over the rows.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace
from functools import partial
from pathlib import Path
from statistics import fmean
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

import windrow
from benchmarks.measure import Options, Report, Size, interleaved
from benchmarks.pages import DOCS, markdown_table, write_figures
from benchmarks.statistics import run
from windrow.lake import Lake
from windrow.statistics.cardinality_report import Cardinality
from windrow.table import Table
from windrow.testing import RecordingStore

__all__ = ["measure"]

_TSBS = Path(__file__).parents[1] / "tests" / "data" / "tsbs"
_START, _WINDOW, _WINDOWS, _METRICS = 1_699_900_200_000_000, 900_000_000, 4, 20


def _tsbs(_: int) -> Iterator[pa.Table]:
    return (pq.read_table(path) for path in sorted(_TSBS.glob("*.parquet")))


def _series(count: int) -> Iterator[pa.Table]:
    """So many series in all: half of the pods of a window are new in it."""
    pods = count // _METRICS * 2 // (_WINDOWS + 1)
    for window in range(_WINDOWS):
        numbers = np.arange(pods * _METRICS * 2)
        pod = numbers // 2 // _METRICS + window * pods // 2
        yield pa.table(
            {
                "metric_name": np.char.add("metric_", (numbers // 2 % _METRICS).astype(str)),
                "service": np.char.add("service-", (pod % 50).astype(str)),
                "pod": np.char.add("pod-", pod.astype(str)),
                "zone": np.char.add("zone-", (pod % 3).astype(str)),
                "timestamp": pa.array(_START + window * _WINDOW + numbers % 2 * 10_000_000, pa.timestamp("us", "UTC")),
                "value": numbers % 1000 * 0.5,
            }
        )


_TABLES = {
    "tsbs": (_tsbs, "hostname|timestamp/V2"),
    "series": (_series, "metric_name|service|pod|timeseries_id|timestamp/V2"),
}


def _filled(lake: Lake, name: str, count: int) -> Table:
    make, sort = _TABLES[name]
    table = lake.create_table(name, sort=sort, window="15m", mirror=False)
    for rows in make(count):
        table.ingest(rows)
    return lake.table(name)


def _exact(lake: Lake, name: str, found: Cardinality) -> dict[str, tuple[float, float, float | None]]:
    """By what is counted: the exact number, the estimate and the error that it states."""
    identity = "timeseries_id" if name == "series" else "hostname"
    counted: dict[str, tuple[str, int | None, float | None]] = {
        "all series": (f"count(distinct {identity})", found.series, found.error),
        **{f"{row.column}": (f'count(distinct "{row.column}")', row.distinct, row.error) for row in found.columns},
        **{
            f"({row.labels})": (f"count(distinct ({row.labels}))", row.distinct, row.error) for row in found.pairs
        },
        **{
            f"series of {row.metric}": (
                f"count(distinct {identity}) filter (metric_name = '{row.metric}')", row.series, row.error
            )
            for row in found.metrics
        },
    }  # fmt: skip
    text = ", ".join(f"{expression} as c{place}" for place, (expression, _, _) in enumerate(counted.values()))
    [exact] = lake.sql(f"select {text} from {name}").to_dict()
    numbers = zip(counted.items(), exact.values(), strict=True)
    return {what: (float(count), float(estimate or 0), error) for (what, (_, estimate, error)), count in numbers}


def _bytes_read(lake: Lake, name: str) -> int:
    """What a count reads of the store, in a lake that has just been opened."""
    store = RecordingStore(lake.context.store)
    Lake(replace(lake.context, store=store, reading=store)).table(name).inspect.cardinality()
    return sum(call.received for call in store.calls)


def _error_rows(name: str, counts: dict[str, tuple[float, float, float | None]]) -> list[dict[str, Any]]:
    rows = []
    for what, (exact, estimate, stated) in counts.items():
        error = abs(estimate - exact) / exact * 100 if exact else 0.0
        row = {"table": name, "counted": what, "exact": int(exact), "estimate": int(estimate)}
        rows.append(row | {"error %": error, "stated %": None if stated is None else stated * 100})
    return rows


def _one_table(folder: Path, name: str, count: int, rounds: int) -> tuple[dict[str, Any], list[dict[str, Any]]]:
    """Times of one table, and its errors."""
    with windrow.connect(folder / name, statistics=0) as lake:
        table = _filled(lake, name, count)
        learnt = interleaved({"analyze": table.upkeep.analyze}, 1)["analyze"]
        found = table.inspect.cardinality()
        errors = _error_rows(name, _exact(lake, name, found))
        exact = partial(_exact, lake, name, found)
        ways: dict[str, Callable[[], object]] = {"cardinality": table.inspect.cardinality, "exact": exact}
        measured = interleaved(ways, rounds)
        times = {
            "table": name,
            "rows": found.rows,
            "splits": len(table.inspect.splits()),
            "analyze ms": learnt.least_wall * 1000,
            "cardinality ms": measured["cardinality"].least_wall * 1000,
            "count(distinct) ms": measured["exact"].least_wall * 1000,
            "bytes read": _bytes_read(lake, name),
        }
    return times, errors


def _worst(errors: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Of each table the series, and those counts that are farthest off."""
    ordered = sorted(errors, key=lambda row: (row["counted"] != "all series", -row["error %"]))
    return [row for name in _TABLES for row in [each for each in ordered if each["table"] == name][:8]]


def measure(folder: Path, asked: Options, report: Report) -> None:
    """Report errors, times and bytes read of both tables."""
    count, rounds = asked.pick(1000, 20_000, 100_000), asked.pick(1, 2, 5)
    times, errors = [], list[dict[str, Any]]()
    with TemporaryDirectory(dir=folder) as passing:
        for name in _TABLES:
            time, found = _one_table(Path(passing), name, count, rounds)
            times.append(time)
            errors += found
            report.add(what=f"cardinality, {name}", **{key.replace(" ", "_"): value for key, value in time.items()})
    sketched = [row for row in errors if row["stated %"]]
    shares = [row["error %"] / row["stated %"] for row in sketched]
    report.ratios["cardinality_bytes_read"] = float(sum(row["bytes read"] for row in times))
    report.ratios["cardinality_counts"] = float(len(errors))
    report.ratios["cardinality_wrong_exact_counts"] = float(
        sum(row["exact"] != row["estimate"] for row in errors if row["stated %"] == 0)
    )
    report.ratios["cardinality_mean_error_over_stated"] = fmean(shares) if shares else 0.0
    report.ratios["cardinality_greatest_error_over_stated"] = max(shares, default=0.0)
    if asked.size is Size.FULL:
        text = "\n\n".join([markdown_table(times), markdown_table(_worst(errors))])
        write_figures(DOCS / "statistics.md", "cardinality", text)


if __name__ == "__main__":
    run(["cardinality"])
