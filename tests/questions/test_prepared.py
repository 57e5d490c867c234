"""What a query needs by compiled conditions is what it needs by the plain way, for every query and every value."""

from __future__ import annotations

import json
from datetime import UTC, datetime
from pathlib import Path
from random import Random

import duckdb
import pyarrow as pa
import pytest
from tests.engines.questions import POINT, Questions

from windrow.engines.duckdb.constants import Constants
from windrow.questions.naming import Naming
from windrow.questions.prepared import prepared_need
from windrow.questions.references import needed_rows
from windrow.questions.templates import Templates

TYPES = {
    "text": pa.string(),
    "whole": pa.int64(),
    "double": pa.float64(),
    "single": pa.float32(),
    "exact": pa.decimal128(9, 2),
    "date": pa.date32(),
    "time": pa.timestamp("us", "UTC"),
    "truth": pa.bool_(),
}
SCHEMA = pa.schema([(name.capitalize() if name == "env" else name, TYPES[kind]) for name, kind in POINT.items()])
CASES = json.loads((Path(__file__).parent / "data" / "references.json").read_text())
AT = datetime(2026, 1, 1, 0, 30, tzinfo=UTC)


@pytest.fixture(scope="module")
def connection():
    with duckdb.connect() as connection:
        connection.execute("SET TimeZone = 'UTC'; SET threads = 1")
        yield connection


def needs(connection, naming, params=None):
    """Both ways: compiled, and plain."""
    answers = []
    prepared = prepared_need(naming, "t", SCHEMA)
    for way in (prepared, lambda constant: needed_rows(naming, {"t": SCHEMA}, constant)["t"]):
        constants = Constants(connection, params)
        try:
            # As text, in which NaN is equal to itself.
            answers.append("not for here" if way is None else repr(way(constants)))
        except duckdb.Error as error:
            answers.append(type(error).__name__)
        finally:
            constants.end(commit=False)
    return answers


def test_conditions_of_any_shape_need_the_same(connection):
    fast = 0
    for seed in range(1500):
        draw = Random(seed)
        condition = Questions(draw, "hosts.parquet").condition(POINT)
        # The moment of a query is not that of the next one.
        condition = condition.replace("now()", "timestamptz '2026-06-01 00:00:00+00'")
        query = f"select count(*), max(n) from t where {condition} and v {draw.choice('<>')} {draw.random()}"
        compiled, plain = needs(connection, Naming.of(query))
        assert compiled in ("not for here", plain), query
        fast += compiled != "not for here"
    # Only what has queries inside goes the plain way.
    assert fast > 1200


@pytest.mark.parametrize("case", CASES, ids=lambda case: case["query"][:70])
def test_queries_of_any_shape_need_the_same_or_go_the_plain_way(case, connection):
    compiled, plain = needs(connection, Naming.of(case["query"]))
    assert compiled in ("not for here", plain)


@pytest.mark.parametrize(
    "form",
    [
        "n = {whole} and {time} <= ts",
        "n > -{whole} or v = {whole}",
        "env = {text} and not host = {text}",
        "ts between {time} and {time}",
        "single = {whole} and exact < {whole}",
        "host in ({text}, {text}) and day = {time}",
    ],
)
def test_a_template_answers_with_the_values_of_each_query(form, connection):
    templates = Templates()
    values = {
        "whole": ["1", "1.5", "9007199254740993", "1e300", "0.1"],
        "text": ["'a'", "'web-1'", "''", "'it''s'"],
        "time": ["timestamptz '2026-01-01 00:30:00+00'", "timestamptz '2026-01-01 00:30:00.1234567+00'", "'soon'"],
    }
    for seed in range(40):
        draw = Random(seed)
        query = "select host from t where " + form
        for kind, choices in values.items():
            while f"{{{kind}}}" in query:
                query = query.replace(f"{{{kind}}}", draw.choice(choices), 1)
        with templates.lend(query) as naming:
            need = naming.prepared.setdefault("t", prepared_need(naming, "t", SCHEMA))
            lent = repr(need(Constants(connection, None)))
        assert lent == needs(connection, Naming.of(query))[1], query


@pytest.mark.parametrize("value", [1, 1.5, "web", AT, None, [1]])
def test_parameters_are_values(value, connection):
    with Templates().lend("select * from t where n = ? and host = $2 and ts > ?") as naming:
        compiled, plain = needs(connection, naming, [value, value, value])
    assert compiled == plain


@pytest.mark.parametrize(
    "query",
    [
        "select * from t a, t b where a.n = 1",
        "select * from other.t where n = 1",
        "select * from t tablesample 10% where n = 1",
        "select * from t as t(a, b) where n = 1",
        "select unnest([n]) from t where n = 1",
        "select * from (select * from t) where n = 1",
        "from t where n in (select 1)",
    ],
)
def test_what_is_more_than_one_select_from_one_table_goes_the_plain_way(query):
    assert prepared_need(Naming.of(query), "t", SCHEMA) is None


def test_columns_that_differ_by_case_alone_go_the_plain_way():
    schema = pa.schema([("n", pa.int64()), ("N", pa.int64())])
    assert prepared_need(Naming.of("select 1 from t where n = 1"), "t", schema) is None
