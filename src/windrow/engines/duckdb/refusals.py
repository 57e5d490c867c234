"""What DuckDB refuses, said in Windrow's words: what is wrong with the query, and what to do."""

from __future__ import annotations

import re
from collections.abc import Collection
from difflib import get_close_matches

import duckdb

from windrow.errors import InvalidInput, NotFound, StorageError, WindrowError

__all__ = ["refusal"]

_KIND = re.compile(r"^[A-Z][A-Za-z ]*Error: ")
_NO_TABLE = re.compile(r'Table with name "?(.+?)"? does not exist')
_NO_COLUMN = re.compile(r'Referenced column "(.+?)" not found|does not have a column named "(.+?)"')
_AMBIGUOUS = re.compile(r'Ambiguous reference to column name "(.+?)" \(use: (.+?)\)')
_MOST_NAMES = 20


def refusal(error: duckdb.Error, tables: Collection[str], columns: Collection[str]) -> WindrowError:
    """The error of a query, by what DuckDB said; `tables` and `columns` are those that it could have named."""
    text = str(error)
    # Errors that come through Arrow have lost their kind, but not their first words.
    if text.startswith("Out of Memory Error"):
        return InvalidInput(
            f"the query needs more memory than it may have: {_first(text)}; ask for fewer rows or columns at once, or "
            "raise memory_limit where the lake is opened"
        )
    if text.startswith("IO Error"):
        gone = "No files found" in text
        hint = "check the path" if gone else "check that the file is there, may be read, and that the disk has space"
        return (NotFound if gone else StorageError)(f"the query failed: {_first(text)}; {hint}")
    found = _NO_TABLE.search(text)
    if found:
        hint = f"{_near(found[1], tables)}Tables of the lake: {_listed(tables) or 'none yet'}"
        return NotFound(f"the query names the table {found[1]!r}, which is not there; {hint}")
    ambiguous = _AMBIGUOUS.search(text)
    if ambiguous:
        return InvalidInput(
            f"the query names the column {ambiguous[1]!r}, which more than one of its tables has; write "
            f"{ambiguous[2].replace(chr(39), '')}{_line(text)}"
        )
    missing = _NO_COLUMN.search(text)
    if missing:
        name = missing[1] or missing[2]
        known = f"there are: {_listed(columns)}" if columns else "it names no table"
        hint = f"{_near(name, columns)}{known}{_line(text)}"
        return InvalidInput(f"the query names the column {name!r}, which none of its tables has; {hint}")
    if text.startswith("Conversion Error"):
        problem = "a value of the query does not fit the type that it is compared with or cast to"
        return InvalidInput(f"{problem}: {_first(text)}{_line(text)}")
    return InvalidInput(f"the query failed: {_KIND.sub('', text)}")


def _near(name: str, known: Collection[str]) -> str:
    """The nearest of the known names, if one is near."""
    by_small = {each.lower(): each for each in known}
    near = get_close_matches(name.lower(), by_small, 1)
    return f"did you mean {by_small[near[0]]!r}? " if near else ""


def _listed(names: Collection[str]) -> str:
    shown = list(names)[:_MOST_NAMES]
    return ", ".join(shown) + (f" and {len(names) - len(shown)} more" if len(names) > len(shown) else "")


def _first(text: str) -> str:
    return _KIND.sub("", text).strip().splitlines()[0].rstrip(".")


def _line(text: str) -> str:
    """The line of the query that DuckDB points to."""
    at = text.find("\nLINE ")
    return text[at:] if at >= 0 else ""
