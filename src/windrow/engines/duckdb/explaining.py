"""Queries that are explained instead of answered, or planned and no more."""

from __future__ import annotations

import re
import time
from collections.abc import Sequence
from typing import NamedTuple

import pyarrow as pa

from windrow.engines.duckdb.sinks import Run, Statement
from windrow.engines.duckdb.views import Bound
from windrow.engines.estimates import JoinEstimates
from windrow.engines.explanation import Explanation, FunnelStep, Reads, TableFunnel
from windrow.questions.spelling import spelled
from windrow.reading.source import DecodedRows, MetadataAnswer, PlainPaths, VirtualFiles
from windrow.reading.virtual_reader import VirtualReader

__all__ = ["ExplainRequest", "ExplainSink", "PlanSink", "as_table", "explain_request"]

_EXPLAIN = re.compile(
    r"(?:\s|--[^\n]*\n|/\*.*?\*/)*explain(?:\s+(analyze)\b|\s*\(((?:\s*(?:analyze|format\s+'?\w+'?)\s*,?)+)\))?"
    r"(?=\s[\s(]*(?:select|with|from|values|pivot|unpivot)\b)\s*",
    re.IGNORECASE | re.DOTALL,
)
_FORMAT = re.compile(r"format\s+'?(\w+)", re.IGNORECASE)


class ExplainRequest(NamedTuple):
    """A query that is to be explained."""

    query: str
    analyze: bool
    format: str = "text"
    """How DuckDB writes its plan: text, json, html, graphviz and others."""


def explain_request(query: str) -> ExplainRequest | None:
    """Return the query behind EXPLAIN, with ANALYZE or options or without; None for other statements."""
    found = _EXPLAIN.match(query)
    if found is None:
        return None
    options = found[2] or ""
    written = _FORMAT.search(options)
    analyze = found[1] is not None or "analyze" in options.lower()
    return ExplainRequest(query[found.end() :], analyze, "text" if written is None else written[1].lower())


def as_table(explanation: Explanation) -> pa.Table:
    """An explanation as rows, with the columns of DuckDB's own EXPLAIN."""
    keys, values = ["windrow", "physical_plan"], [explanation.funnel, explanation.plan]
    return pa.table({"explain_key": keys, "explain_value": values})


class PlanSink:
    """What a query would read; nothing is run."""

    binds = False
    streams = False

    def __init__(self, *, explains: bool = False) -> None:
        self.explains = explains

    def __call__(self, statement: Statement, run: Run) -> Sequence[Bound]:  # noqa: ARG002
        """Return what each name stands for, and where its rows would come from."""
        return statement.bound


class ExplainSink:
    """What a query reads and why, with DuckDB's own plan; with `analyze` it is run."""

    explains = True
    binds = True
    streams = False

    def __init__(self, *, analyze: bool, written: str = "text") -> None:
        self._analyze = analyze
        self._format = written

    def __call__(self, statement: Statement, run: Run) -> Explanation:
        """Return the explanation."""
        was_run = self._analyze and statement.answer is None
        began = time.perf_counter()
        rows, plan = _run(statement, run, self._format) if was_run else (None, _planned(statement, run, self._format))
        if self._analyze and statement.answer is not None:
            rows = len(statement.answer)
        seconds = time.perf_counter() - began if self._analyze else None
        tables = tuple(_funnel(bound, was_run=was_run) for bound in statement.bound)
        return Explanation(
            query=statement.query,
            tables=tables,
            planning_ms=statement.planning * 1000,
            plan=plan,
            rows=rows,
            running_ms=None if seconds is None else seconds * 1000,
            joins=_estimates(statement, run, counts=was_run),
        )


def _run(statement: Statement, run: Run, written: str) -> tuple[int, str]:
    """Run the query; how many rows its answer has, and what DuckDB says of how it went."""
    connection = statement.connection
    connection.execute("PRAGMA enable_profiling = 'no_output'")
    try:
        rows = len(statement.table(run))
        # The hints of DuckDB's package do not know the name of the format that EXPLAIN ANALYZE has.
        return rows, str(connection.get_profiling_information(format=written))  # type: ignore[arg-type]
    finally:
        connection.execute("PRAGMA disable_profiling")


def _estimates(statement: Statement, run: Run, *, counts: bool) -> tuple[JoinEstimates, ...]:
    """What was estimated of joins; after a run also the rows that there were, each counted by a query of its own."""

    def count(query: str) -> int:
        [(rows,)] = run(statement.connection.sql(query).fetchall)
        return int(rows)

    return tuple(each.explained(count if counts else None) for each in statement.joins)


def _planned(statement: Statement, run: Run, written: str) -> str:
    """How DuckDB would go about the query."""
    plan = statement.connection.sql(f"EXPLAIN (FORMAT {written}) {statement.query}", params=statement.parameters)
    return "\n".join(str(row[-1]) for row in run(plan.fetchall))


def _funnel(bound: Bound, *, was_run: bool) -> TableFunnel:
    plan = bound.source.plan
    return TableFunnel(
        name=bound.name,
        columns=tuple(bound.relation.columns.names),
        why=_why(bound),
        steps=tuple(FunnelStep(step.step, step.units, step.asked, step.kept) for step in plan.steps),
        files=sum(len({segment.file for segment in each.segments}) for each in plan.virtual),
        rows=plan.rows,
        bytes=plan.bytes,
        source=bound.source.kind,
        from_metadata=plan.rows == 0,
        read=_reads(bound) if was_run else None,
        statistics=tuple(plan.statistics),
    )


def _why(bound: Bound) -> str:
    if isinstance(bound.source, MetadataAnswer):
        learnt = [use.column for use in bound.source.plan.statistics if use.learnt]
        with_them = f", with what queries learnt of {', '.join(learnt)}" if learnt else ""
        return f"nothing is read: {bound.source.plan.answered_by} the answer{with_them}"
    if bound.question.predicate is None:
        return "read whole: no condition of the query can be asked of metadata"
    return f"what is left may hold rows that meet {spelled(bound.question.predicate)}"


def _reads(bound: Bound) -> Reads | None:
    """What was read; None where DuckDB read the files by itself."""
    match bound.source:
        case PlainPaths() | MetadataAnswer():
            return None
        case DecodedRows(rows=rows):
            return Reads(*rows.counts)
        case VirtualFiles():
            counts = [reader.counts for reader in bound.readers if isinstance(reader, VirtualReader)]
            return Reads(*(sum(each[place] for each in counts) for place in range(4)))
