"""Names of columns: unique whatever their case, never empty, without NUL.

DuckDB, Delta and Spark take names that differ by case alone for one column, so a table has one of them at most.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator

from windrow.errors import InvalidInput

__all__ = ["check_against_table", "name_problems", "same_but_for_case", "twins_in"]


def name_problems(names: Iterable[str]) -> Iterator[str]:
    """Yield what is wrong with the names of the columns of one batch, file or setting."""
    counts = Counter(list(names))
    spelled: dict[str, str] = {}
    for name, count in counts.items():
        if count > 1:
            yield f"column {name!r} is there {count} times, rename all but one"
        if not name:
            yield "a column has an empty name, give it one"
        if "\0" in name:
            yield f"column {name!r} has a NUL in its name, rename it"
        other = spelled.setdefault(name.casefold(), name)
        if other != name:
            yield f"columns {other!r} and {name!r} differ by case alone, rename one of them"


def twins_in(names: Iterable[str], others: Iterable[str]) -> dict[str, str]:
    """Return the names that differ from one of the others by case alone, each with that one; equal names are none."""
    exact = set(others)
    spelled = {each.casefold(): each for each in exact}
    return {name: spelled[name.casefold()] for name in names if name not in exact and name.casefold() in spelled}


def same_but_for_case(name: str, twin: str, where: str = "of the table") -> str:
    """Say that a column has the name of another one but for case, and what to do."""
    return f"column {name!r} differs from {twin!r} {where} by case alone; rename it to {twin!r}, or to another name"


def check_against_table(names: Iterable[str], others: Iterable[str]) -> None:
    """Refuse a column that differs from one of the table by case alone."""
    for name, twin in twins_in(names, others).items():
        raise InvalidInput(same_but_for_case(name, twin))
