"""Rows out of cached pages beside a virtual file: what the model that chooses between them says, and what both take.

Hosts report ten numbers every ten seconds; the table is sorted by host and time. Questions are for some hosts, hours
and columns, in a lake that is made to read either way and in one that chooses. Warm, in one process, in turn; CPU
milliseconds, the least of the rounds, with planning and the engine. `model` is what the constants of
`windrow.reading.decoded_rows` say for the part that differs, on one thread. `worst_choice_over_best` is how much longer
what was chosen takes than the faster way, where it is worst.
"""

from __future__ import annotations

import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from functools import partial
from pathlib import Path
from typing import NamedTuple

import numpy as np
import pyarrow as pa

import windrow
from benchmarks.measure import Options, Report, interleaved, options
from windrow.cache import CacheSettings
from windrow.lake import Lake, open_lake
from windrow.model.sources import SourceKind
from windrow.reading.decoded_rows import Decoding, virtual_cost
from windrow.reading.forcing import Forcing

START = datetime(2026, 1, 1, tzinfo=UTC)
NUMBERS = 10
_PER_HOUR = 360


class Case(NamedTuple):
    """A question."""

    hosts: int
    hours: int
    columns: int

    @property
    def sql(self) -> str:
        named = ", ".join(f"'host_{number * 7}'" for number in range(self.hosts))
        until = START + timedelta(hours=self.hours)
        values = ", ".join(f"max(n{number})" for number in range(self.columns))
        return (
            f"select host, {values} from cpu where timestamp < timestamptz '{until:%Y-%m-%d %H:%M:%S}+00'"
            f"{f' and host in ({named})' if self.hosts else ''} group by host"
        )

    @property
    def name(self) -> str:
        return f"{self.hosts or 'all'} hosts, {self.hours} h, {self.columns} columns"


def write(folder: Path, hosts: int, hours: int) -> None:
    """A lake with a table of so many hosts and hours, compacted."""
    random = np.random.default_rng(3)
    with windrow.connect(folder) as lake:
        table = lake.create_table("cpu", sort="host|timestamp/V2", window="1h", mirror=False)
        for hour in range(hours):
            times = [START + timedelta(hours=hour, seconds=10 * number) for number in range(_PER_HOUR)]
            rows = pa.array(np.repeat(np.arange(hosts), _PER_HOUR))
            columns = {
                "host": pa.array([f"host_{number}" for number in range(hosts)]).take(rows),
                "timestamp": pa.array(times * hosts, pa.timestamp("us", "UTC")),
            }
            for number in range(NUMBERS):
                columns[f"n{number}"] = pa.array(random.integers(0, 100, hosts * _PER_HOUR).astype(float))
            table.ingest(pa.table(columns))
        table.compact.run()


@contextmanager
def ways(folder: Path) -> Iterator[dict[str, Lake]]:
    """The same lake, read either way and as chosen."""
    kinds = {"decoded": SourceKind.DECODED, "virtual": SourceKind.VIRTUAL, "chosen": None}
    lakes = {name: open_lake(folder, cache=CacheSettings(), forcing=Forcing(kind)) for name, kind in kinds.items()}
    try:
        yield lakes
    finally:
        for lake in lakes.values():
            lake.close()


def cases(asked: Options) -> Sequence[Case]:
    """Few and many hosts, hours and columns."""
    hosts, hours = asked.pick((1, 0), (1, 8, 0), (1, 8, 40, 0)), asked.pick((1,), (1, 8), (1, 4, 12))
    return [Case(*each, columns) for each in ((n, h) for n in hosts for h in hours) for columns in (1, NUMBERS)]


def main(argv: Sequence[str] | None = None) -> None:
    """Measure and report."""
    asked = options(argv, __doc__)
    hosts, hours, rounds = asked.pick(60, 300, 400), asked.pick(1, 8, 12), asked.pick(3, 8, 15)
    report, worst = Report("read_costs", ("duckdb", "pyarrow")), 1.0
    with tempfile.TemporaryDirectory(prefix="windrow-read-costs-") as folder:
        write(Path(folder, "lake"), hosts, hours)
        with ways(Path(folder, "lake")) as lakes:
            for case in cases(asked):
                worst = max(worst, _measure(report, case, lakes, rounds, hosts))
    report.ratios["worst_choice_over_best"] = worst
    report.show(asked)


def _measure(report: Report, case: Case, lakes: dict[str, Lake], rounds: int, hosts: int) -> float:
    """How much longer what is chosen takes than the faster way."""
    for _ in range(2):
        answers = {name: sorted(lake.sql(case.sql).to_arrow().to_pylist(), key=repr) for name, lake in lakes.items()}
    if len({repr(answer) for answer in answers.values()}) > 1:
        raise RuntimeError(f"{case.name}: the answers differ; the ways cannot be compared")
    found = interleaved({name: partial(lake.sql, case.sql) for name, lake in lakes.items()}, rounds)
    cpu = {name: 1000 * each.least_cpu for name, each in found.items()}
    [plan] = lakes["virtual"].plan(case.sql).values()
    [virtual] = plan.virtual
    rows, leaves = (case.hosts or hosts) * case.hours * _PER_HOUR, len(virtual.schema.leaves)
    model = {
        "model decoded": 1000 * Decoding(leaves - 1, 1).cost(rows),
        "model virtual": 1000 * virtual_cost(virtual.row_groups * leaves, virtual.rows * leaves, 1),
    }
    [chosen] = lakes["chosen"].plan(case.sql).values()
    report.add(question=case.name, planned=virtual.rows, rows=rows, **cpu, **model, source=str(chosen.source))
    report.ratios[f"virtual_over_decoded_{case.hosts or 'all'}_{case.hours}_{case.columns}"] = (
        cpu["virtual"] / cpu["decoded"]
    )
    return cpu["chosen"] / min(cpu["decoded"], cpu["virtual"])


if __name__ == "__main__":
    main()
