"""What a query needs of its tables: never less than all rows that matter to its answer."""

from __future__ import annotations

import json
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import duckdb
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sqlglot import exp

from windrow.errors import InvalidInput
from windrow.model.predicate import matches
from windrow.questions.references import needed_rows

SCHEMA = pa.schema(
    [
        ("host", pa.string()),
        ("Env", pa.string()),
        ("n", pa.int64()),
        ("v", pa.float64()),
        ("ts", pa.timestamp("us", "UTC")),
    ]
)
START = datetime(2026, 1, 1, tzinfo=UTC)
CASES = json.loads((Path(__file__).parent / "data" / "references.json").read_text())


@pytest.fixture(scope="module")
def engine() -> duckdb.DuckDBPyConnection:
    connection = duckdb.connect()
    connection.execute("SET TimeZone = 'UTC'; SET threads = 1")
    return connection


def constant_by(engine: duckdb.DuckDBPyConnection) -> Any:
    def constant(expression: exp.Expr) -> Any:
        try:
            return engine.execute(f"SELECT {expression.sql('duckdb')}").fetchall()[0][0]
        except duckdb.Error as error:
            raise InvalidInput(str(error)) from error

    return constant


@pytest.mark.parametrize("case", CASES, ids=lambda case: case["query"][:70])
def test_a_query_needs(case: dict[str, Any], engine: duckdb.DuckDBPyConnection) -> None:
    needed = needed_rows(case["query"], {"t": SCHEMA}, constant_by(engine))
    assert said(needed["t"]) == case["needs"]


def said(predicate: Any) -> str:
    """A predicate in short."""
    name = type(predicate).__name__
    match name:
        case "NoneType":
            return "all"
        case "And" | "Or":
            return "(" + f" {name.lower()} ".join(said(part) for part in predicate.parts) + ")"
        case "Not":
            return f"not {said(predicate.part)}"
        case "Comparison":
            return f"{predicate.column} {predicate.op.value} {shown(predicate.value)}"
        case "In":
            return f"{predicate.column} in [{', '.join(map(shown, predicate.values))}]"
        case "Between":
            return f"{predicate.column} from {shown(predicate.low)} to {shown(predicate.high)}"
        case "StartsWith":
            return f"{predicate.column} starts {predicate.prefix}"
    return f"{predicate.column} {name}"


def shown(value: object) -> str:
    return value.strftime("%m-%d %H:%M") if isinstance(value, datetime) else repr(value)


# ---- leaving out the rows that are not needed changes no answer

VALUES = {
    "host": ["'a'", "'ab'", "'b'", "''"],
    "env": ["'x'", "'y'"],
    "n": ["0", "1", "2", "-1", "1.5", "2e0"],
    "v": ["0.5", "1", "'nan'::double", "-1.5"],
    "ts": ["'2026-01-01 01:00:00'", "timestamp '2026-01-01 02:00:00'", "timestamptz '2026-01-01 00:30:00+00'"],
}
OPS = ["=", "<>", "<", "<=", ">", ">="]
TESTS = [
    "{name} {op} {value}",
    "{value} {op} {name}",
    "{name} between {value} and {other}",
    "{name} in ({value}, {other})",
    "{name} not in ({value}, null)",
    "{name} is null",
    "{name} is not null",
    "{name} is not distinct from {value}",
    "{of}host like {pattern}",
    "{of}host not like {pattern}",
    "{of}host ilike {pattern}",
    "{of}host not ilike {pattern}",
    "regexp_matches({of}host, {expression})",
    "{of}host ~ {expression}",
    "{of}host !~ {expression}",
    "date_trunc('hour', {of}ts) {op} '2026-01-01 01:00:00'",
    "{of}ts::date {op} date '2026-01-01'",
    "time_bucket(interval '30 minutes', {of}ts) {op} timestamptz '2026-01-01 01:30:00+00'",
    "length({name}::varchar) > 1",
]
PATTERNS = ["'a%'", "'a'", "'_b'", "'%'", "'a_%'", "'AB'"]
EXPRESSIONS = ["'^a'", "'b'", "'^ab?$'", "''", "'^(a|b)'"]


@st.composite
def single_tests(draw: st.DrawFn, of: str) -> str:
    column = draw(st.sampled_from(sorted(VALUES)))
    value, other = draw(st.tuples(*[st.sampled_from(VALUES[column])] * 2))
    parts = {"op": draw(st.sampled_from(OPS)), "pattern": draw(st.sampled_from(PATTERNS))}
    parts["expression"] = draw(st.sampled_from(EXPRESSIONS))
    return draw(st.sampled_from(TESTS)).format(name=f"{of}{column}", of=of, value=value, other=other, **parts)


def conditions(of: str) -> st.SearchStrategy[str]:
    return st.recursive(
        single_tests(of),
        lambda inner: st.one_of(
            st.builds("({} and {})".format, inner, inner),
            st.builds("({} or {})".format, inner, inner),
            st.builds("not ({})".format, inner),
            st.builds("({}) is true".format, inner),
        ),
        max_leaves=4,
    )


QUERIES = (Path(__file__).parent / "data" / "query_forms.sql").read_text().split(";\n")
PLACES = {"{}": "", "{a}": "a.", "{b}": "b.", "{s}": "s.", "{t}": "t."}
"""Where a form has a condition on which source."""


@st.composite
def queries(draw: st.DrawFn) -> str:
    query = draw(st.sampled_from([form for form in QUERIES if form.strip()]))
    for mark, of in PLACES.items():
        while mark in query:
            query = query.replace(mark, draw(conditions(of)), 1)
    return query


ROWS = st.lists(
    st.fixed_dictionaries(
        {
            "host": st.sampled_from(["a", "ab", "b", "", None]),
            "Env": st.sampled_from(["x", "y", None]),
            "n": st.sampled_from([0, 1, 2, -1, None]),
            "v": st.sampled_from([0.5, 1.0, float("nan"), -1.5, None]),
            "ts": st.sampled_from([None, *(START + timedelta(minutes=15 * step) for step in range(12))]),
        }
    ),
    max_size=12,
)


def answer(engine: duckdb.DuckDBPyConnection, query: str, rows: list[dict[str, Any]]) -> list[str] | None:
    engine.register("t", pa.Table.from_pylist(rows, SCHEMA))
    engine.register("u", pa.table({"n": pa.array([0, 1, 1, None], pa.int64())}))
    try:
        return sorted(map(repr, engine.execute(query).fetchall()))
    except duckdb.Error:
        return None


@settings(max_examples=settings().max_examples * 2)
@given(query=queries(), rows=ROWS)
def test_the_rows_that_are_not_needed_do_not_matter(
    query: str, rows: list[dict[str, Any]], engine: duckdb.DuckDBPyConnection
) -> None:
    needed = needed_rows(query, {"t": SCHEMA}, constant_by(engine))["t"]
    expected = answer(engine, query, rows)
    if needed is None or expected is None:
        return
    assert answer(engine, query, [row for row in rows if matches(needed, row)]) == expected
