"""The fifteen questions of TSBS cpu-only, with parameters of their own each time, as each system spells them.

A host, or eight different ones, and a start are drawn uniformly, so that the range fits into the set.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, datetime
from random import Random

from benchmarks.tsbs_data import START, STEP, USAGES

__all__ = ["NARROW", "TYPES", "WIDE", "Dialect", "Question"]

_HOUR = 3600
_SINGLE = ("1-1-1", "1-1-12", "1-8-1", "5-1-1", "5-1-12", "5-8-1")
NARROW = (*(f"single-{each}" for each in _SINGLE), "cpu-max-all-1", "cpu-max-all-8", "high-cpu-1")
WIDE = ("double-1", "double-5", "double-all", "high-cpu-all", "groupby-orderby-limit")
TYPES = (*NARROW, *WIDE, "lastpoint")


@dataclass(frozen=True)
class Dialect:
    """How a system spells what the questions need."""

    moment: str = "timestamptz '{}+00'"
    bucket: str = "date_trunc('{}', timestamp)"
    hours: bool = False
    """Whether a folder for each hour is named besides."""
    lastpoint: str = (
        "select * from {source} where (hostname, timestamp) in "
        "(select (hostname, max(timestamp)) from {source} group by hostname)"
    )

    def at(self, second: int) -> str:
        return self.moment.format(f"{datetime.fromtimestamp(second, UTC):%Y-%m-%d %H:%M:%S}")


@dataclass(frozen=True)
class Question:
    """A question of a type: of hosts, and of the rows in a range of seconds."""

    kind: str
    hosts: tuple[str, ...]
    low: int
    high: int

    @classmethod
    def of(cls, kind: str, number: int, hosts: int, end: int) -> Question:
        """Draw the parameters of a question about so many hosts, whose rows end there."""
        random, parts = Random(f"{kind} {number}"), kind.split("-")
        if kind == "groupby-orderby-limit":
            return cls(kind, (), START, random.randrange(START + _HOUR, end, STEP))
        if kind == "lastpoint":
            return cls(kind, (), START, end)
        one, hours = 1, 12
        if parts[0] == "single":
            one, hours = int(parts[2]), int(parts[3])
        elif parts[0] == "cpu":
            one, hours = int(parts[-1]), 8
        elif parts[0] == "double" or parts[-1] == "all":
            one = 0
        chosen = random.sample(range(hosts), min(one, hosts))
        low = random.randrange(START, end - hours * _HOUR + 1, STEP)
        return cls(kind, tuple(f"host_{each}" for each in chosen), low, low + hours * _HOUR)

    @property
    def usages(self) -> tuple[str, ...]:
        """The usages that it is about."""
        if self.kind.startswith("single"):
            return USAGES[: int(self.kind.split("-")[1])]
        count = {"double-1": 1, "double-5": 5, "groupby-orderby-limit": 1}.get(self.kind, len(USAGES))
        return USAGES[:count]

    def sql(self, source: str, dialect: Dialect) -> str:
        """Spell it for a system."""
        if self.kind == "lastpoint":
            return dialect.lastpoint.format(source=source)
        behind = f"from {source} where {self.where(dialect)}"
        if self.kind.startswith("high-cpu"):
            return f"select * {behind} and usage_user > 90"
        is_minute = self.kind.startswith(("single", "groupby"))
        bucket = dialect.bucket.format("minute" if is_minute else "hour")
        function = "avg" if self.kind.startswith("double") else "max"
        values = ", ".join(f"{function}({usage}) as {function}_{usage}" for usage in self.usages)
        if self.kind.startswith("double"):
            return f"select {bucket} as bucket, hostname, {values} {behind} group by bucket, hostname order by 1, 2"
        order = "order by bucket desc limit 5" if self.kind.startswith("groupby") else "order by bucket"
        return f"select {bucket} as bucket, {values} {behind} group by bucket {order}"

    def where(self, dialect: Dialect) -> str:
        """The condition on hosts and times."""
        tests = [f"timestamp < {dialect.at(self.high)}"]
        if self.low > START:
            tests.insert(0, f"timestamp >= {dialect.at(self.low)}")
        if dialect.hours:
            tests.append(f"hour between {self.low // _HOUR} and {(self.high - 1) // _HOUR}")
        if self.hosts:
            tests.insert(0, f"hostname in ({', '.join(repr(host) for host in self.hosts)})")
        return " and ".join(tests)
