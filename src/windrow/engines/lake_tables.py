"""The tables of a lake as queries name them."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from functools import partial
from typing import NamedTuple

from windrow.context import Context
from windrow.engines.duckdb.relations import Relation
from windrow.engines.table_relation import TableVersion
from windrow.metastore import TableRecord
from windrow.model.ids import check_name

__all__ = ["LakeTables"]


class _Cached(NamedTuple):
    """A table as the last query found it in the metastore."""

    mark: int | None
    record: TableRecord
    relation: Relation


class LakeTables:
    """The tables of a lake as queries name them. One that has not changed since the last query is cached."""

    def __init__(self, context: Context) -> None:
        self._context = context
        self._seen: tuple[int | None, dict[str, str]] = None, {}
        """The mark, and the names by how they are spelled in small letters: both are set in one step."""
        self._relations: dict[str, _Cached] = {}

    @property
    def names(self) -> list[str]:
        """The names of all tables."""
        self._refresh()
        return list(self._seen[1].values())

    def named(self, names: Iterable[str]) -> dict[str, Callable[[], Relation]]:
        """Return those of the names that are tables; a name that was no table before is looked up again."""
        wanted, spelled = {name.lower() for name in names}, self._seen[1]
        # A path is no name of a table.
        if any(check_name(name) is None for name in wanted - spelled.keys()):
            self._refresh()
            spelled = self._seen[1]
        matches = [spelled[name] for name in wanted & spelled.keys()]
        return {name: partial(self.relation, name) for name in matches}

    def _refresh(self) -> None:
        mark = self._context.metastore.mark()
        if mark is None or mark != self._seen[0]:
            self._seen = mark, {each.name.lower(): each.name for each in self._context.metastore.tables()}

    def relation(self, name: str) -> Relation:
        """What a name stands for now."""
        # The mark is older than what is looked at, so that nothing in between is missed.
        mark, cached = self._context.metastore.mark(), self._relations.get(name)
        if cached is not None and mark is not None and cached.mark == mark:
            return cached.relation
        record = self._context.metastore.table(name)
        if cached is None or cached.record != record:
            cached = _Cached(None, record, TableVersion(self._context, record, record.version).relation())
        self._relations[name] = cached._replace(mark=mark)
        return cached.relation
