"""Counters of many processes, added up in a file of the cache folder.

Each lake adds its counts when it is closed, by one short append, so that several may do it at once. A file that has
grown is replaced by its sums; what another process adds at that moment may be lost, as all of the folder may be.
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterable
from contextlib import suppress
from dataclasses import asdict
from pathlib import Path

from windrow.cache.metrics import COUNTERS, CacheRow, summed

__all__ = ["Ledger"]

_NAME = "counters.jsonl"
_MOST_BYTES = 64 * 2**10


class Ledger:
    """The counters in one cache folder."""

    def __init__(self, folder: str | Path) -> None:
        self._path = Path(folder) / _NAME

    def add(self, rows: Iterable[CacheRow]) -> None:
        """Add counts; a folder that cannot be written to has none."""
        text = "".join(_line(row) for row in rows if not row.is_empty)
        if not text:
            return
        with suppress(OSError):
            self._path.parent.mkdir(parents=True, exist_ok=True)
            with self._path.open("a", encoding="utf-8") as file:
                file.write(text)
                grown = file.tell() > _MOST_BYTES
            if grown:
                self._sum_up()

    def rows(self) -> list[CacheRow]:
        """The sums of all that was added, by cache and kind."""
        return sorted(summed(self._lines()), key=lambda row: (row.cache, row.kind))

    def clear(self) -> None:
        """Begin again at zero."""
        with suppress(OSError):
            self._path.unlink()

    def _lines(self) -> list[CacheRow]:
        try:
            lines = self._path.read_text("utf-8", errors="replace").splitlines()
        except OSError:
            return []
        return [row for line in lines if (row := _row(line)) is not None]

    def _sum_up(self) -> None:
        partial = self._path.with_suffix(f".{os.getpid()}.tmp")
        partial.write_text("".join(map(_line, self.rows())), "utf-8")
        partial.replace(self._path)


def _line(row: CacheRow) -> str:
    values = {name: value for name, value in asdict(row).items() if value}
    return json.dumps(values) + "\n"


def _row(line: str) -> CacheRow | None:
    """What a line says; None for one that a crash cut short."""
    try:
        values = json.loads(line)
        counts = {name: int(values.get(name, 0)) for name in COUNTERS}
        return CacheRow(str(values["cache"]), str(values["kind"]), **counts)
    except (ValueError, KeyError, TypeError, AttributeError):
        return None
