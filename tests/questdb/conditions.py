"""Random conditions on a table: their values are those of rows, or near them, or none that a row can have."""

from __future__ import annotations

import random
from collections.abc import Iterator, Sequence
from datetime import datetime, timedelta
from decimal import Decimal
from typing import Any

import duckdb
import pyarrow as pa

SENTINELS = [-(2**63), -(2**31), 0]
"""What stands for null in QuestDB itself: no row of a file has it."""
OPS = ["=", "=", "<", "<=", ">", ">=", "!="]
TEXTS = ["", "x", "0", "-", "~", "0.0.0.0", "00000000-0000-0000-0000-000000000000", "\ufffd", "É"]


class Conditions:
    """Conditions on some columns of a table; one of them, if it is named, comes more often than others."""

    def __init__(self, table: pa.Table, seed: int, *, skip: Sequence[str] = (), often: str | None = None) -> None:
        self._random = random.Random(seed)
        self._kinds = {field.name: field.type for field in table.schema if field.name not in skip}
        self._values = {name: [v for v in table[name].to_pylist() if v is not None] for name in self._kinds}
        self._names = [*self._kinds, *([often] if often in self._kinds else [])]

    def take(self, count: int) -> Iterator[str]:
        """Yield so many."""
        for _ in range(count):
            yield self._condition()

    def _condition(self) -> str:
        parts = [self._test() for _ in range(self._random.choice([1, 1, 1, 2, 3]))]
        joined = self._random.choice([" and ", " or "]).join(parts)
        return f"not ({joined})" if self._random.random() < 0.1 else joined

    def _test(self) -> str:
        name = self._random.choice(self._names)
        chance, column = self._random.random(), f'"{name}"'
        if chance < 0.1:
            return f"{column} is {self._random.choice(['', 'not '])}null"
        if chance < 0.25:
            values = ", ".join(self._literal(name) for _ in range(self._random.randint(1, 4)))
            return f"{column} {self._random.choice(['', '', 'not '])}in ({values})"
        if chance < 0.35:
            return f"{column} between {self._literal(name)} and {self._literal(name)}"
        if chance < 0.45 and pa.types.is_string(self._kinds[name]):
            prefix = self._literal(name)[1:-1].replace("%", "").replace("_", "")
            prefix = prefix if "''" in prefix else prefix[: self._random.randint(0, 9)]
            return f"{column} {self._random.choice(['', '', 'not '])}like '{prefix}%'"
        return f"{column} {self._random.choice(OPS)} {self._literal(name)}"

    def _literal(self, name: str) -> str:
        kind, values = self._kinds[name], self._values[name]
        value = self._random.choice(values) if values else None
        if pa.types.is_boolean(kind):
            return self._random.choice(["true", "false"])
        if pa.types.is_timestamp(kind):
            return self._time(value)
        if pa.types.is_string(kind):
            return self._text(value)
        if isinstance(kind, pa.UuidType):
            return f"'{value}'" if value is not None and self._random.random() < 0.7 else f"'{self._uuid()}'"
        return self._number(value, kind)

    def _uuid(self) -> str:
        made = self._random.randbytes(16).hex()
        return f"{made[:8]}-{made[8:12]}-{made[12:16]}-{made[16:20]}-{made[20:]}"

    def _number(self, value: Any, kind: pa.DataType) -> str:
        if pa.types.is_decimal(kind):
            step = Decimal(1).scaleb(-kind.scale)
            return str((value or Decimal(0)) + self._random.choice([0, 0, 1, -1]) * step)
        if pa.types.is_floating(kind):
            near = (0.0 if value is None else value) + self._random.choice([0, 0, 0.5, -0.5])
            return f"{near:.7f}" if pa.types.is_float32(kind) else f"{near:.12f}"
        if value is None or self._random.random() < 0.1:
            return str(self._random.choice(SENTINELS))
        return str(value + self._random.choice([0, 0, 1, -1]))

    def _time(self, value: Any) -> str:
        moment = datetime.fromisoformat("2024-01-01 00:00:00" if value is None else str(value)[:26])
        moment += timedelta(microseconds=self._random.choice([0, 0, 1, -1, 10**9, -(10**9)]))
        return f"'{moment.isoformat(sep=' ', timespec='microseconds')[:26]}+00'"

    def _text(self, value: str | None) -> str:
        text = value or "x"
        match self._random.randrange(12):
            case 0 | 1:
                text += "x"
            case 2:
                text = text.upper()
            case 3:
                text = text[: self._random.randint(0, len(text))]
            case 4:
                text = self._random.choice(TEXTS)
            case 5:
                text = self._uuid()
            case 6:
                text = ".".join(str(self._random.randrange(256)) for _ in range(4))
            case 7:
                place = self._random.randrange(len(text))
                text = text[:place] + chr(max(ord(text[place]) + self._random.choice([1, -1]), 1)) + text[place + 1 :]
        return "'" + text.replace("'", "''").replace("\0", "") + "'"


def answers(table: pa.Table, conditions: Sequence[str], expression: str) -> list[Any]:
    """What an aggregate gives for the rows that fulfil each condition, in a table of DuckDB's own."""
    found = ", ".join(f"{expression} FILTER (WHERE ({condition}))" for condition in conditions)
    with duckdb.connect() as connection:
        connection.execute("set timezone = 'UTC'")
        connection.register("found", table)
        connection.execute("create table data as select * from found")
        return list(connection.execute(f"select {found} from data").fetchall()[0])
