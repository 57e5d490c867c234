"""A partition that grows in place: late rows appended, late rows merged, and the file rewritten instead.

A window of 10 million rows takes 1,000 more: after its last row (`append`), or among its own times (`merge`, which
replaces one row group). `rewrite` is what there would be without growing: all rows read and written again. Bytes are
those that the store hands to the file system, CPU is that of the process, the least of all rounds. `plan` opens the
sidecar of a chain of footers and picks row groups by time, for the newest commit and for the oldest. The store rewrites
a partition when more than half of its bytes are unused; `amortised` adds a change's share of that rewrite to its cost.
"""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path

import numpy as np
import pyarrow as pa

from benchmarks.measure import Measured, Options, Report, interleaved, options
from windrow.questdb.committed import CommittedFile
from windrow.questdb.folders import SIDECAR
from windrow.questdb.readers import hold_snapshot
from windrow.questdb.store import PartitionStore, StoreOptions, create_table
from windrow.sidecar import Sidecar
from windrow.storage.file_changes import Files

SCHEMA = pa.schema(
    [
        ("ts", pa.timestamp("us", "UTC")),
        ("host", pa.string()),
        ("region", pa.string()),
        ("value", pa.float64()),
        ("load", pa.float64()),
        ("count", pa.int64()),
    ]
)
START, STEP = 1_704_067_200_000_000, 8_000
"""Monday, 2024-01-01, in microseconds; a row every 8 ms fills a day."""
LATE = 1_000
BATCH = 1 << 20
CHAINS = (1, 10, 100)
NO_REWRITES = StoreOptions(rewrite_ratio=1.0)
HOSTS = pa.array([f"host-{number:04d}.example" for number in range(2_000)])
REGIONS = pa.array([f"region-{number}" for number in range(6)])


class CountingFiles(Files):
    """Counts the bytes that are written."""

    def __init__(self) -> None:
        self.written = 0

    def create(self, path: Path, data: bytes) -> None:
        self.written += len(data)
        super().create(path, data)

    def write_at(self, path: Path, offset: int, data: bytes) -> None:
        self.written += len(data)
        super().write_at(path, offset, data)


def rows_at(times: np.ndarray[tuple[int], np.dtype[np.int64]], seed: int) -> pa.Table:
    rng = np.random.default_rng(seed)
    hosts = rng.integers(0, len(HOSTS), times.size)
    columns = [
        pa.array(times + START).cast(SCHEMA.field("ts").type),
        HOSTS.take(pa.array(hosts)),
        REGIONS.take(pa.array(hosts % len(REGIONS))),
        rng.normal(size=times.size),
        np.round(rng.gamma(2, 20, times.size), 2),
        rng.integers(0, 1_000, times.size),
    ]
    return pa.table(columns, schema=SCHEMA)


class Window:
    """One partition of many rows, its store, what each change wrote, and what it left unused."""

    def __init__(self, table: Path, rows: int) -> None:
        create_table(table, SCHEMA, timestamp="ts")
        self.table, self.rows, self.files = table, rows, CountingFiles()
        self.store = PartitionStore(table, NO_REWRITES, self.files)
        self.bytes: dict[str, list[int]] = {}
        self.left: dict[str, list[int]] = {}
        self._number = 0
        for first in range(0, rows, BATCH):
            self.store.append(rows_at(np.arange(first, min(first + BATCH, rows)) * STEP, first))
        self.store.rewrite()

    def change(self, name: str, rows: pa.Table) -> Callable[[], None]:
        """A change whose rows were made before."""

        def run() -> None:
            before = self.files.written
            if rows.num_rows:
                self.store.append(rows)
            else:
                self.store.rewrite()
            self.bytes.setdefault(name, []).append(self.files.written - before)

        return run

    def after_the_last(self) -> pa.Table:
        self._number += 1
        return rows_at(self.rows * STEP + self._number * LATE + np.arange(LATE), self._number)

    def among_its_own(self) -> pa.Table:
        self._number += 1
        first = np.random.default_rng(self._number).integers(0, self.rows - 2 * LATE)
        return rows_at((first + np.arange(LATE)) * STEP + 1, self._number)

    @property
    def file(self) -> CommittedFile:
        with hold_snapshot(self.table) as snapshot:
            return snapshot.files[0]

    @property
    def unused(self) -> int:
        return self.file.sidecar.footer.unused_bytes


def measure_changes(window: Window, chosen: Options) -> dict[str, Measured]:
    """Appends, merges and rewrites in turn; the rows of each are made before the clock runs."""
    results = {name: Measured() for name in ("append", "merge", "rewrite")}
    ways = {"append": window.after_the_last, "merge": window.among_its_own}
    for _ in range(chosen.pick(1, 3, 3)):
        for name, make in ways.items():
            for _ in range(chosen.pick(1, 5, 7)):
                before = window.unused
                _add(results[name], interleaved({name: window.change(name, make())}, 1)[name])
                window.left.setdefault(name, []).append(window.unused - before)
        _add(results["rewrite"], interleaved({"rewrite": window.change("rewrite", SCHEMA.empty_table())}, 1)["rewrite"])
    return results


def _add(total: Measured, more: Measured) -> None:
    total.cpu += more.cpu
    total.wall += more.wall


def plan(file: CommittedFile, size: int) -> int:
    """Open the sidecar at a commit and count the row groups of the last hour of data."""
    sidecar = Sidecar.open(file.folder / SIDECAR, parquet_size=size)
    greatest = sidecar.column("ts").maximum
    return int(np.count_nonzero(greatest.values >= greatest.values[-1] - 3_600_000_000))


def measure_plans(window: Window, chosen: Options, report: Report) -> None:
    sizes, plans = [window.file.size], dict[tuple[str, int], float]()
    for length in chosen.pick((1, 3), CHAINS, CHAINS):
        while len(sizes) < length:
            window.store.append(window.after_the_last())
            sizes.append(window.file.size)
        file = window.file
        ways = {"newest": partial(plan, file, sizes[-1]), "oldest": partial(plan, file, sizes[0])}
        found = interleaved(ways, chosen.pick(2, 50, 200))
        for name, measured in found.items():
            report.add(what=f"plan, {name} of {length} footers", ms=measured.least_wall * 1e3)
            plans[name, length] = measured.least_wall
    longest, shortest = max(length for _, length in plans), min(length for _, length in plans)
    for name in ("newest", "oldest"):
        report.ratios[f"plan_{name}_of_{longest}_over_{shortest}"] = plans[name, longest] / plans[name, shortest]


def measure_scans(window: Window, chosen: Options, report: Report) -> None:
    """What a scan of the grown file costs more than one of a rewritten file."""
    grown = window.file
    window.store.rewrite()
    # The old file is gone by name; its bytes stay mapped.
    found = interleaved({"grown": grown.read, "rewritten": window.file.read}, chosen.pick(1, 3, 9))
    for name, file in (("grown", grown), ("rewritten", window.file)):
        what = f"scan, {name} ({file.sidecar.row_group_count} row groups)"
        report.add(what=what, cpu_s=found[name].least_cpu, mb=file.size / 1e6)
    report.ratios["scan_cpu_grown_over_rewritten"] = found["grown"].least_cpu / found["rewritten"].least_cpu
    report.ratios["unused_share_when_scanned"] = grown.sidecar.footer.unused_bytes / grown.size


def report_changes(window: Window, results: dict[str, Measured], report: Report) -> None:
    for name, measured in results.items():
        written = min(window.bytes[name])
        report.add(what=name, cpu_s=measured.least_cpu, wall_s=measured.least_wall, bytes=written, mb=written / 1e6)
    cpu, written = results.pop("rewrite").least_cpu, min(window.bytes["rewrite"])
    for name, measured in results.items():
        own_cpu, own = max(measured.least_cpu, 1e-6), min(window.bytes[name])
        report.ratios[f"rewrite_bytes_over_{name}"] = written / own
        report.ratios[f"rewrite_cpu_over_{name}"] = cpu / own_cpu
        # The store rewrites when more than half of a file is unused: old footers, and row groups that were merged.
        until = window.file.size / max(window.left[name])
        report.ratios[f"{name}s_until_a_rewrite"] = until
        report.ratios[f"rewrite_bytes_over_{name}_amortised"] = written / (own + written / until)
        report.ratios[f"rewrite_cpu_over_{name}_amortised"] = cpu / (own_cpu + cpu / until)


def main(argv: Sequence[str] | None = None) -> None:
    """Measure changes, plans and scans."""
    chosen = options(argv, __doc__)
    report = Report("partition", ("pyarrow", "numpy"))
    with tempfile.TemporaryDirectory() as folder:
        Window(Path(folder) / "warm", 10_000).store.close()
        window = Window(Path(folder) / "table", chosen.pick(20_000, 1_000_000, 10_000_000))
        results = measure_changes(window, chosen)
        report_changes(window, results, report)
        measure_plans(window, chosen, report)
        measure_scans(window, chosen, report)
        window.store.close()
    report.show(chosen)


if __name__ == "__main__":
    main()
