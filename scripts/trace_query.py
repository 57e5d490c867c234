"""The way of one small query through the package: its modules in the order of their first call, and calls that go up.

    python scripts/trace_query.py            # print it
    python scripts/trace_query.py --write    # put it into docs/architecture.md

A second query of the same shape is traced, with other values: what the first one had to make is there already.
"""

from __future__ import annotations

import sys
import tempfile
import tomllib
from datetime import UTC, datetime, timedelta
from pathlib import Path
from types import FrameType
from typing import Any

import pyarrow as pa

import windrow

ROOT = Path(__file__).parents[1]
PAGE = ROOT / "docs" / "architecture.md"
BEGIN, END = "<!-- the way of a query: made by scripts/trace_query.py -->", "<!-- end -->"
QUERY = "select count(*), sum(value) from metrics where metric_name = '{}' and timestamp >= timestamptz '2026-01-01 {}'"
_HOUSE = Path(windrow.__file__).parent


def levels() -> dict[str, int]:
    """The level of each room, from the import contract: 0 is the highest."""
    settings = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
    contract = next(each for each in settings["tool"]["importlinter"]["contracts"] if each["id"] == "levels")
    return {room.strip("() "): number for number, layer in enumerate(contract["layers"]) for room in layer.split("|")}


def module_of(frame: FrameType) -> str | None:
    """The module of a frame inside the package, as `room/file`."""
    path = Path(frame.f_code.co_filename)
    return path.relative_to(_HOUSE).with_suffix("").as_posix() if path.is_relative_to(_HOUSE) else None


class Tracer:
    """Records calls between modules of this package, in this thread."""

    def __init__(self) -> None:
        self.modules: dict[str, None] = {}
        self.up: dict[tuple[str, str], None] = {}
        self._levels = levels()

    def __call__(self, frame: FrameType, event: str, _: Any) -> None:
        """Take note of a call."""
        if event != "call" or (callee := module_of(frame)) is None:
            return
        self.modules.setdefault(callee)
        before = frame.f_back
        while before is not None and (caller := module_of(before)) is None:
            before = before.f_back
        if before is not None and caller is not None and self._level(callee) < self._level(caller):
            self.up.setdefault((caller, callee))

    def _level(self, module: str) -> int:
        return self._levels.get(module.partition("/")[0], len(self._levels))


def traced() -> Tracer:
    """Trace one query over a table of some windows."""
    with tempfile.TemporaryDirectory() as folder, windrow.connect(folder) as lake:
        table = lake.create_table("metrics", sort="metric_name|timestamp/V2", window="15m")
        start = datetime(2026, 1, 1, tzinfo=UTC)
        for number in range(4):
            times = [start + timedelta(minutes=15 * number, seconds=second) for second in range(600)]
            names = [f"metric_{second % 3}" for second in range(600)]
            table.ingest(pa.table({"metric_name": names, "timestamp": times, "value": [1.0] * 600}))
        for minute in range(5):
            lake.sql(QUERY.format(f"metric_{minute % 3}", f"00:0{minute}"))
        tracer = Tracer()
        sys.setprofile(tracer)
        try:
            lake.sql(QUERY.format("metric_1", "00:07"))
        finally:
            sys.setprofile(None)
        return tracer


def text(tracer: Tracer) -> str:
    """The modules, one room a line where they follow each other."""
    lines: list[str] = []
    room = None
    for module in tracer.modules:
        head, _, name = module.rpartition("/")
        if head == room:
            lines[-1] += f", {name}"
        else:
            lines.append(f"{head + '/' if head else ''}{name}")
            room = head
    up = "; ".join(f"{caller} calls {callee}" for caller, callee in tracer.up) or "none"
    numbered = "\n".join(f"{number:>2}  {line}" for number, line in enumerate(lines, 1))
    return f"```text\n{numbered}\n```\n\n{len(tracer.modules)} modules; calls that go up: {up}.\n"


def main() -> None:
    """Print the way, or write it into the page."""
    shown = text(traced())
    if "--write" not in sys.argv:
        print(shown)
        return
    page = PAGE.read_text(encoding="utf-8")
    before, _, rest = page.partition(BEGIN)
    after = rest.partition(END)[2]
    PAGE.write_text(f"{before}{BEGIN}\n\n{shown}\n{END}{after}", encoding="utf-8")


if __name__ == "__main__":
    main()
