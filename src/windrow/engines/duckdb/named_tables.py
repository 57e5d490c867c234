"""The tables that a query may name."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping
from typing import Protocol

from windrow.engines.duckdb.relations import Relation

__all__ = ["FixedTables", "Tables"]


class Tables(Protocol):
    """Tables by name; names that differ by case alone are one."""

    @property
    def names(self) -> Collection[str]:
        """All names."""

    def named(self, names: Iterable[str]) -> dict[str, Callable[[], Relation]]:
        """Return those of the names that are tables, spelled as the tables are, and what they stand for."""


class FixedTables:
    """Tables that do not change."""

    def __init__(self, tables: Mapping[str, Callable[[], Relation]]) -> None:
        self._tables = tables

    @property
    def names(self) -> Collection[str]:
        """All names."""
        return self._tables.keys()

    def named(self, names: Iterable[str]) -> dict[str, Callable[[], Relation]]:
        """Return those of the names that are tables, and what they stand for."""
        wanted = {name.lower() for name in names}
        return {name: relation for name, relation in self._tables.items() if name.lower() in wanted}
