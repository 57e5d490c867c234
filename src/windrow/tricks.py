"""Tricks by name: private interfaces, raw pointers and effects on the whole process, each of which can be turned off.

A trick stands alone in its module. The docstring there states what it buys and how it fails; the code beside it is the
plain way, which is taken where the trick is off or cannot work. docs/adr/0100-tricks.md lists them all.

A user whose libraries do not suit a trick names it in `WINDROW_WITHOUT_TRICKS` before Windrow is imported: names with
commas between them, or `all`. Tests use `without`.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from enum import StrEnum

from windrow.errors import ConfigError

__all__ = ["VARIABLE", "Trick", "is_on", "parse_names", "without"]

VARIABLE = "WINDROW_WITHOUT_TRICKS"


class Trick(StrEnum):
    """What can be turned off."""

    DUCKDB_SUBMIT = "duckdb-submit"
    """`windrow.engines.duckdb.submit`"""
    CALLER_VARIABLES = "caller-variables"
    """`windrow.engines.duckdb.callers`"""
    ZSTD_POINTERS = "zstd-pointers"
    """`windrow.parquet.zstd`"""
    FREED_MEMORY = "freed-memory"
    """`windrow.merging.heap`"""
    JAVA_LOG = "java-log"
    """`windrow.runners.java_log`"""
    IMMORTAL_OBJECTS = "immortal-objects"
    """`windrow.immortal`"""
    RARE_COLLECTIONS = "rare-collections"
    """`windrow.cli.collector`"""


def parse_names(text: str) -> frozenset[Trick]:
    """Return the tricks that a list of names stands for."""
    names = {name.strip() for name in text.split(",")} - {""}
    if names == {"all"}:
        return frozenset(Trick)
    unknown = sorted(names.difference(Trick))
    if unknown:
        raise ConfigError(f"{VARIABLE}: there is no trick {unknown[0]!r}; choose from {', '.join(Trick)}, or all")
    return frozenset(map(Trick, names))


_off = parse_names(os.environ.get(VARIABLE, ""))


def is_on(trick: Trick) -> bool:
    """Whether a trick may be used."""
    return trick not in _off


@contextmanager
def without(*tricks: Trick) -> Iterator[None]:
    """Turn tricks off in this process while the block lasts."""
    global _off  # noqa: PLW0603 (one switch for the process, as what it switches)
    before, _off = _off, _off | set(tricks)
    try:
        yield
    finally:
        _off = before
