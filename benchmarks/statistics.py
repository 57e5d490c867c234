"""Statistics that queries leave behind: what collecting them costs, and what later queries gain, over TPC-H.

Each module `benchmarks/statistics_NAME.py` is a part: it has `measure(folder, asked, report)`, and runs by itself too,
as `python -m benchmarks.statistics_NAME`. Parts share a folder, in which `benchmarks.tpch` makes files once. At full
size they write their tables and plots into docs/statistics.md.
"""

from __future__ import annotations

import tempfile
from collections.abc import Sequence
from importlib import import_module
from pathlib import Path

from benchmarks.measure import Report, options

_PREFIX = "statistics_"
_FOLDERS = {
    "tables": "a folder for the files of TPC-H, which are kept and used again",
    "large": "a folder for those at scale 10, which are measured only if it is given, and kept",
}


def part_names() -> list[str]:
    """The names of all parts."""
    return sorted(path.stem.removeprefix(_PREFIX) for path in Path(__file__).parent.glob(f"{_PREFIX}*.py"))


def run(names: Sequence[str], argv: Sequence[str] | None = None) -> None:
    """Run parts of the benchmark, and print one report."""
    asked = options(argv, __doc__, _FOLDERS)
    report = Report("statistics", ("duckdb", "pyarrow"))
    with tempfile.TemporaryDirectory() as passing:
        folder = asked.paths.get("tables", Path(passing))
        folder.mkdir(parents=True, exist_ok=True)
        for name in names:
            import_module(f"benchmarks.{_PREFIX}{name}").measure(folder, asked, report)
    report.show(asked)


def main(argv: Sequence[str] | None = None) -> None:
    """Run the benchmark, all parts of it."""
    run(part_names(), argv)


if __name__ == "__main__":
    main()
