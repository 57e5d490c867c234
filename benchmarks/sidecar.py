"""The sidecar: opening one and pruning by it, against reading the footer; building one; its bytes and its memory."""

from __future__ import annotations

import itertools
import tempfile
import time
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from benchmarks.measure import Options, Report, interleaved, options, peak_rss, reset_peak_rss
from windrow.model.predicate import Comparison, Op
from windrow.sidecar import Sidecar
from windrow.sidecar.build import build_sidecar
from windrow.sidecar.pruning import SidecarPruner

INNER = 20
"""Sidecars are opened so many times a round: one is over before the processor has its data at hand again."""
ROWS = 4
"""Rows of a row group: footers do not grow with rows."""
SHAPES = {
    "10x10": (10, 10),
    "100x100": (100, 100),
    "1000x100": (1000, 100),
    "10000x100": (10_000, 100),
}


def write_parquet(path: Path, columns: int, groups: int) -> None:
    """Write a file with many columns and row groups, and statistics of each."""
    names = [f"column_{number:05d}" for number in range(columns)]
    schema = pa.schema([(name, pa.int64()) for name in names])
    with pq.ParquetWriter(path, schema, compression="none", use_dictionary=False) as writer:
        for group in range(groups):
            values = np.arange(group * ROWS, (group + 1) * ROWS)
            writer.write_table(pa.table([pa.array(values)] * columns, schema=schema))


def by_footer(path: Path, name: str, least: int) -> int:
    """Open the file's footer and count the row groups that can hold a value of at least `least`."""
    metadata = pq.read_metadata(path)
    place = metadata.schema.names.index(name)
    kept = 0
    for group in range(metadata.num_row_groups):
        statistics = metadata.row_group(group).column(place).statistics
        kept += statistics is None or not statistics.has_min_max or statistics.max >= least
    return kept


def by_sidecar(path: Path, name: str, least: int) -> int:
    """Open the sidecar and count the row groups that can hold a value of at least `least`."""
    maximum = Sidecar.open(path, verify=False).column(name).maximum
    return int(np.count_nonzero((maximum.values >= least) | ~maximum.present))


def by_pruner(path: Path, pruner: SidecarPruner) -> int:
    """The same with a compiled condition of any shape, as queries use it."""
    return int(pruner.prune(Sidecar.open(path, verify=False)).sum())


def open_and_prune(shape: str, folder: Path, asked: Options, report: Report) -> None:
    """Measure one shape: opening and pruning by path, name lookup included, with a warm page cache."""
    columns, groups = SHAPES[shape]
    parquet, sidecar = folder / f"{shape}.parquet", folder / f"_{shape}.pm"
    write_parquet(parquet, columns, groups)
    data = parquet.read_bytes()
    sidecar.write_bytes(build_sidecar(lambda start, length: data[start : start + length], len(data), name=shape))
    questions = [(f"column_{turn * 7 % columns:05d}", turn * 13 % (groups * ROWS)) for turn in range(40)]
    # A query compiles its condition once and asks it of every file, so compiling is not part of opening.
    pruners = [SidecarPruner(Comparison(name, Op.GREATER_OR_EQUAL, least)) for name, least in questions]
    for question, pruner in list(zip(questions, pruners, strict=True))[
        : asked.pick(2, 40, 40) if columns < 5000 else 1
    ]:
        if len({by_footer(parquet, *question), by_sidecar(sidecar, *question), by_pruner(sidecar, pruner)}) > 1:
            raise AssertionError(f"{shape}: footer and sidecar keep different row groups")
    theirs, ours, compiled = itertools.cycle(questions), itertools.cycle(questions), itertools.cycle(pruners)

    def sidecars() -> None:
        for _ in range(INNER):
            by_sidecar(sidecar, *next(ours))

    def pruned() -> None:
        for _ in range(INNER):
            by_pruner(sidecar, next(compiled))

    ways = {"footer": lambda: by_footer(parquet, *next(theirs)), "sidecar": sidecars, "pruner": pruned}
    interleaved({"pruner": pruned, "sidecar": sidecars}, 2)
    heavy = columns * groups > 50_000
    measured = interleaved(ways, asked.pick(3, 7, 9) if heavy else asked.pick(5, 60, 150))
    footer, opening, pruning = (
        measured["footer"].least_wall,
        measured["sidecar"].least_wall / INNER,
        measured["pruner"].least_wall / INNER,
    )
    start = time.perf_counter()
    opened = Sidecar.open(sidecar)
    checked = time.perf_counter() - start
    before = reset_peak_rss()
    kept = [Sidecar.open(sidecar, verify=False) for _ in range(asked.pick(10, 200, 1000))]
    memory = (peak_rss() - before) / len(kept)
    report.add(
        shape=shape,
        footer_ms=footer * 1000,
        sidecar_ms=opening * 1000,
        pruner_ms=pruning * 1000,
        open_with_crc_ms=checked * 1000,
        footer_kb=pq.read_metadata(parquet).serialized_size / 1000,
        sidecar_kb=sidecar.stat().st_size / 1000,
        kb_per_open_sidecar=memory / 1000,
    )
    report.ratios[f"open_prune_{shape}"] = footer / opening
    report.ratios[f"open_pruner_{shape}"] = footer / pruning
    report.ratios[f"sidecar_over_footer_bytes_{shape}"] = (
        opened.header.committed_size / pq.read_metadata(parquet).serialized_size
    )


def conversion(shape: str, folder: Path, asked: Options, report: Report) -> None:
    """Measure building a sidecar from a path against reading the footer alone."""
    columns, groups = SHAPES[shape]
    path = folder / f"convert_{shape}.parquet"
    write_parquet(path, columns, groups)

    def build() -> bytes:
        with path.open("rb") as file:

            def read(start: int, length: int) -> bytes:
                file.seek(start)
                return file.read(length)

            return build_sidecar(read, path.stat().st_size, name=shape)

    ways = {"build": build, "footer": lambda: pq.read_metadata(path)}
    interleaved(ways, 1)
    measured = interleaved(ways, asked.pick(2, 5, 9))
    ratio = measured["build"].least_cpu / measured["footer"].least_cpu
    report.add(
        shape=f"build {shape}",
        footer_ms=measured["footer"].least_cpu * 1000,
        sidecar_ms=measured["build"].least_cpu * 1000,
    )
    report.ratios[f"convert_{shape}"] = ratio


def main(argv: list[str] | None = None) -> None:
    """Run the benchmark."""
    asked = options(argv, __doc__)
    report = Report("sidecar", ("pyarrow", "numpy"))
    shapes = asked.pick(["10x10"], ["10x10", "100x100", "1000x100"], list(SHAPES))
    with tempfile.TemporaryDirectory() as folder:
        for shape in shapes:
            open_and_prune(shape, Path(folder), asked, report)
        conversion(asked.pick("10x10", "1000x100", "1000x100"), Path(folder), asked, report)
    report.show(asked)


if __name__ == "__main__":
    main()
