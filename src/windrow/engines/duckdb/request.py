"""What a caller wants of the engine: a query, and what the names in it can stand for."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass, field
from typing import Any

import duckdb

from windrow.engines.duckdb.constants import Parameters
from windrow.engines.duckdb.frames import as_tables
from windrow.engines.duckdb.named_tables import Tables
from windrow.engines.duckdb.relations import Relation
from windrow.engines.duckdb.table_functions import DatabaseCall
from windrow.errors import WindrowError
from windrow.model.predicate import Predicate
from windrow.model.sources import SourceKind
from windrow.questions.naming import Naming
from windrow.reading.read_context import ReadContext
from windrow.reading.source import EVERY_SOURCE

__all__ = ["Request"]


@dataclass(frozen=True, slots=True)
class Request:
    """A query, and what the names in it can stand for."""

    query: str
    tables: Tables
    """Those that the query names are looked at."""
    files: Callable[[str], Relation | None] = lambda _: None
    """What the path or address of Parquet files stands for; None leaves them to DuckDB."""
    databases: Callable[[DatabaseCall], Relation] | None = None
    """What a table of another database stands for; None leaves the call to DuckDB."""
    parameters: Parameters = None
    frames: Mapping[str, Any] = field(default_factory=dict)
    """Data of the caller, by name, as DuckDB can read it."""
    variables: Callable[[Collection[str]], Mapping[str, Any]] = lambda _: {}
    """Data of the caller for names that stand for nothing else."""
    context: ReadContext | None = None
    """How bytes are read; None is as the engine reads them."""
    allowed: frozenset[SourceKind] = EVERY_SOURCE
    """Where rows may come from."""
    pruned_by: Predicate | None = None
    """What rows must fulfil besides, of the only table: those that do not may be left out, or not."""
    refusal: Callable[[duckdb.Error], WindrowError] | None = None
    """Words of its own for what DuckDB refuses."""

    def frames_for(self, naming: Naming, relations: Mapping[str, Relation]) -> dict[str, Any]:
        """The data of the caller that a query names, as DuckDB can read it."""
        taken = {name.lower() for name in (*relations, *self.frames)}
        free = [name for name in naming.tables if name.lower() not in taken]
        return {**self.frames, **as_tables(self.variables(free), relations)} if free else dict(self.frames)
