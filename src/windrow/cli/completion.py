"""What may come next in a query that is being typed: commands, tables, columns, values of a column, words of SQL."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol

from windrow.model.window import TICKS_PER_SECOND
from windrow.questions.spelling import sql_name

if TYPE_CHECKING:
    from windrow.lake import Lake

__all__ = ["Catalog", "Completion", "LakeCatalog", "candidates"]

_WORDS = (
    "all", "and", "as", "asc", "asof", "avg", "between", "by", "case", "cast", "count", "cross", "date", "date_trunc",
    "desc", "describe", "distinct", "else", "end", "except", "exists", "explain", "extract", "false", "filter",
    "from", "full", "group", "having", "in", "inner", "intersect", "interval", "is", "join", "lateral", "left",
    "like", "limit", "max", "min", "natural", "not", "null", "offset", "on", "or", "order", "outer", "over",
    "partition", "qualify", "right", "rollup", "select", "semi", "sum", "then", "time_bucket", "timestamp", "true",
    "union", "using", "values", "when", "where", "window", "with",
)  # fmt: skip
_SOURCE = re.compile(r"""\b(?:from|join)\s+("[^"]+"|\w+)(?:\s+(?:as\s+)?("[^"]+"|\w+))?""", re.IGNORECASE)
_LISTED = re.compile(r""",\s*("[^"]+"|\w+)(?:\s+(?:as\s+)?("[^"]+"|\w+))?""", re.IGNORECASE)
_WORD = re.compile(r'[\w.]*$|"[^"]*$')
_TESTED = re.compile(
    r"""("[^"]+"|[\w.]+)\s*(?:=|<>|!=|\bnot\s+like\b|\blike\b|\b(?:not\s+)?in\s*\((?:[^()]*,)?)\s*'((?:[^']|'')*)$""",
    re.IGNORECASE,
)
"""A column that is compared with a text that is not closed yet."""


_CHOICES = {".mode": ("table", "csv", "json"), ".timer": ("on", "off")}


@dataclass(frozen=True, slots=True)
class Completion:
    """What may be typed, in place of so many letters before the cursor."""

    text: str
    replaces: int
    kind: str


class Catalog(Protocol):
    """Names and values of a lake."""

    def tables(self) -> Sequence[str]:
        """The names of the tables."""

    def columns(self, table: str) -> Sequence[str]:
        """The names of a table's columns."""

    def values(self, table: str, column: str) -> Sequence[str]:
        """Some values of a column of text."""


def candidates(text: str, catalog: Catalog, commands: Mapping[str, str]) -> list[Completion]:
    """Return what may come next behind a text, tables and columns first."""
    if text.lstrip().startswith("."):
        return _commands(text.lstrip(), catalog, commands)
    tested = _TESTED.search(text)
    if tested is not None:
        return _values(text, _bare(tested[1].rpartition(".")[2]), tested[2].replace("''", "'"), catalog)
    if text.count("'") % 2:
        return []
    match = _WORD.search(text)
    word = "" if match is None else match[0]
    owner, dot, part = word.rpartition(".")
    if dot:
        table = _sources(text, catalog).get(owner.lower())
        return [] if table is None else _like(part, catalog.columns(table), "column", _spelled)
    return _names(text, word, catalog)


def _commands(text: str, catalog: Catalog, commands: Mapping[str, str]) -> list[Completion]:
    command, space, rest = text.partition(" ")
    if not space:
        return [Completion(name, len(text), "command") for name in commands if name.startswith(text.lower())]
    if command == ".explain":
        return candidates(rest, catalog, {})
    if command == ".schema":
        return _like(rest, catalog.tables(), "table", str)
    return _like(rest, _CHOICES.get(command, ()), "choice", str)


def _names(text: str, word: str, catalog: Catalog) -> list[Completion]:
    typed = word.lstrip('"')
    tables = _like(typed, catalog.tables(), "table", _spelled, len(word))
    if re.search(r"\b(?:from|join)\s+\"?\w*$", text, re.IGNORECASE):
        return tables
    columns = _like(typed, _columns(_sources(text, catalog).values(), catalog), "column", _spelled, len(word))
    words = [] if word.startswith('"') else _like(typed, _WORDS, "word", str)
    return [*columns, *tables, *(words if typed else [])]


def _values(text: str, column: str, typed: str, catalog: Catalog) -> list[Completion]:
    tables = dict.fromkeys(_sources(text, catalog).values())
    having = [table for table in tables if column.lower() in map(str.lower, catalog.columns(table))]
    values = dict.fromkeys(value for table in having for value in catalog.values(table, column))
    length = len(typed) + typed.count("'")
    # The whole of it, letters of either case as they are: a value is what it is.
    return [Completion(value.replace("'", "''") + "'", length, "value") for value in values if value.startswith(typed)]


def _sources(text: str, catalog: Catalog) -> dict[str, str]:
    """The tables that a query names, by their names in it and by those that it gives them; all, if it names none."""
    tables = {name.lower(): name for name in catalog.tables()}
    named: dict[str, str] = {}
    for name, alias in [*_SOURCE.findall(text), *_LISTED.findall(text)]:
        table = tables.get(_bare(name).lower())
        if table is not None:
            named |= {_bare(each).lower(): table for each in (name, alias) if each}
    return named or tables


def _columns(tables: Iterable[str], catalog: Catalog) -> list[str]:
    return list(dict.fromkeys(column for table in dict.fromkeys(tables) for column in catalog.columns(table)))


def _like(
    typed: str, names: Iterable[str], kind: str, spelled: Callable[[str], str], replaces: int | None = None
) -> list[Completion]:
    length = len(typed) if replaces is None else replaces
    return [Completion(spelled(name), length, kind) for name in names if name.lower().startswith(typed.lower())]


def _spelled(name: str) -> str:
    """A name as SQL takes it."""
    return name if re.fullmatch(r"[a-z_]\w*", name, re.IGNORECASE) else sql_name(name)


def _bare(name: str) -> str:
    return name[1:-1].replace('""', '"') if name.startswith('"') else name


class LakeCatalog:
    """Names and values of a lake, cached as long as its tables do not change."""

    def __init__(self, lake: Lake, most: int = 200) -> None:
        self._lake = lake
        self._most = most
        self._cached: dict[tuple[str, ...], tuple[int, list[str]]] = {}

    def tables(self) -> list[str]:
        """The names of the tables."""
        return [row.name for row in self._lake.tables()]

    def columns(self, table: str) -> list[str]:
        """The names of a table's columns."""
        opened = self._lake.table(table)
        return self._look_up_once((table,), opened.version(), lambda: [row.name for row in opened.inspect.columns()])

    def values(self, table: str, column: str) -> list[str]:
        """Values of a column of text in the newest window of the table, most often enough to know the labels."""
        opened = self._lake.table(table)
        return self._look_up_once((table, column), opened.version(), lambda: self._look_up(table, column))

    def _look_up(self, table: str, column: str) -> list[str]:
        opened = self._lake.table(table)
        [spelled] = [row for row in opened.inspect.columns() if row.name.lower() == column.lower()]
        if spelled.type not in ("string", "large_string", "string_view"):
            return []
        starts = [row.start for row in opened.inspect.windows() if row.start is not None]
        name, time = sql_name(spelled.name), sql_name(opened.settings().timestamp)
        since = f" and {time} >= {_moment(max(starts), opened.settings().timestamp_unit)}" if starts else ""
        query = f"select distinct {name} as label from {sql_name(table)} where {name} is not null{since}"
        rows = self._lake.sql(f"{query} order by label limit {self._most}").to_dict()
        return [row["label"] for row in rows]

    def _look_up_once(self, key: tuple[str, ...], version: int, look_up: Callable[[], list[str]]) -> list[str]:
        cached = self._cached.get(key)
        if cached is None or cached[0] != version:
            cached = self._cached[key] = version, look_up()
        return cached[1]


def _moment(seconds: int, unit: str | None) -> str:
    """A time as the timestamp column of a table has it."""
    return f"to_timestamp({seconds})" if unit is None else str(seconds * TICKS_PER_SECOND[unit])
