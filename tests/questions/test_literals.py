"""Values of a condition are read as DuckDB reads them against a column: the oracle is a native table of DuckDB."""

from __future__ import annotations

from datetime import UTC, datetime
from decimal import Decimal

import duckdb
import numpy as np
import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st

import windrow
from windrow.engines.spark.conditions import exact_predicate
from windrow.model.predicate import matches, negation_normal_form
from windrow.planning.sidecar_literals import fitted_to_sidecar
from windrow.questions.literals import fitted, fitted_exactly
from windrow.questions.where import parse_where
from windrow.sidecar import Sidecar
from windrow.sidecar.build import build_sidecar
from windrow.sidecar.pruning import prune

THE_ONE = 0.6147593170946526
FLOATS = pa.array([0.1, THE_ONE, 1 / 3, 16_777_217.0, -0.1, 123.456, 0.5, 1e-7], pa.float32())
DOUBLES = pa.array([0.1, THE_ONE, 1 / 3, 9_007_199_254_740_993.0, -0.1, 123.456, 0.5, 1e-7], pa.float64())
ROWS = pa.table({"f": FLOATS, "db": DOUBLES, "i": pa.array([*range(7), 2**53 + 1], pa.int64())})
CONDITIONS = [
    f"{column} {test}"
    for column in ("f", "db")
    for test in (
        f"= {THE_ONE}",
        f"in ({THE_ONE})",
        f"in (0.25, {THE_ONE})",
        f"= {THE_ONE}e0",
        f"in (0.1, {THE_ONE}e0)",
        "= 0.1",
        "= 1e-1",
        "in (0.1)",
        "in (0.1, 5)",
        "in (0.1, 1e-1)",
        "between 0.1 and 0.1",
        "between 0.1 and 1e-1",
        "between 0.1 and 0.5",
        "<= 0.1",
        ">= 0.1",
        "< 0.1",
        "> 0.1",
        "<> 0.1",
        "not in (0.1)",
        "= -0.1",
        "= 123.456",
        "= 0.0000001",
        "= 16777217",
        "= 16777217.0",
        "= 9007199254740993",
        "= 9007199254740993.0",
        "= 0.1000000000000000055511151231257827021181583404541015625",
        "= 0.333333333333333333333333333",
        "= 77.7",
        "> 20000000000000000.5",
    )
]


@pytest.fixture(scope="module")
def native():
    with duckdb.connect() as connection:
        connection.register("given_rows", ROWS)
        connection.execute("create table t as from given_rows")
        yield connection


@pytest.fixture(scope="module")
def table(tmp_path_factory):
    """Each row in a split of its own, so that a value that is misread leaves its row out."""
    with windrow.connect(tmp_path_factory.mktemp("literals") / "lake") as lake:
        made = lake.create_table("t", sort="timestamp/V2", window="15m", mirror=False)
        times = [datetime(2026, 1, 1, hour, tzinfo=UTC) for hour in range(len(ROWS))]
        made.ingest(ROWS.append_column("timestamp", pa.array(times, pa.timestamp("us", "UTC"))))
        assert len(made.inspect.splits()) == len(ROWS)
        yield lake, made


def expected(native, condition):
    return sorted(row[0] for row in native.execute(f"select i from t where {condition}").fetchall())


@pytest.mark.parametrize("condition", CONDITIONS)
class TestEveryFrontEnd:
    def test_queries_and_scans_find_the_rows_that_a_native_table_has(self, table, native, condition):
        lake, made = table
        rows = expected(native, condition)
        assert sorted(row["i"] for row in lake.sql(f"select i from t where {condition}").to_dict()) == rows
        assert lake.sql(f"select count(*) as n from t where {condition}").to_dict() == [{"n": len(rows)}]
        assert sorted(made.scan(where=condition, columns=["i"]).to_arrow()["i"].to_pylist()) == rows

    def test_plans_leave_out_no_row_that_matches(self, table, native, condition):
        assert table[1].plan(where=condition).rows >= len(expected(native, condition))

    @pytest.mark.parametrize("extensions", [True, False], ids=["with a schema", "without"])
    def test_sidecars_leave_out_no_row_group_that_matches(self, sidecars, native, condition, extensions):
        predicate = fitted_to_sidecar(parse_where(condition), sidecars[extensions])
        kept = prune(sidecars[extensions], predicate).nonzero()[0]
        numbers = ROWS["i"].to_pylist()
        assert set(expected(native, condition)) <= {numbers[place] for place in kept}

    def test_a_predicate_for_spark_selects_the_same_rows(self, native, condition):
        predicate = exact_predicate(condition, ROWS.schema)
        if predicate is not None:
            assert sorted(row["i"] for row in ROWS.to_pylist() if matches(predicate, row)) == expected(
                native, condition
            )


@pytest.fixture(scope="module")
def sidecars(tmp_path_factory):
    """Sidecars of a file with a row group for each row, by whether they have the schema."""
    path = tmp_path_factory.mktemp("sidecars") / "x.parquet"
    pq.write_table(ROWS, path, row_group_size=1)
    data = path.read_bytes()

    def read(offset, length):
        return data[offset : offset + length]

    return {
        extensions: Sidecar.of(build_sidecar(read, len(data), name="x", extensions=extensions), name="x")
        for extensions in (True, False)
    }


@pytest.mark.parametrize("column", ["f", "db"])
@pytest.mark.parametrize("value", [THE_ONE, 0.1, 0.5, 123.456, 16_777_217.0])
def test_polars_finds_the_rows_that_it_finds_in_a_frame(table, column, value):
    frame = pl.from_arrow(ROWS)
    scanned = table[1].scan().to_polars()
    for condition in (pl.col(column) == value, pl.col(column).is_in([value]), pl.col(column) >= value):
        found = scanned.filter(condition).select("i").collect()["i"].sort().to_list()
        assert found == frame.filter(condition)["i"].sort().to_list()


def test_values_that_no_row_group_holds_still_leave_them_out(sidecars):
    for condition in ("f = 77.7", "db = 77.7", "f <= -5.5", "db in (77.7, 88.8)"):
        predicate = fitted_to_sidecar(parse_where(condition), sidecars[True])
        assert prune(sidecars[True], predicate).sum() < len(ROWS)


numbers = st.one_of(
    st.floats(allow_nan=False, allow_infinity=False, width=32, min_value=-1e7, max_value=1e7),
    st.decimals(allow_nan=False, allow_infinity=False, places=4, min_value=-10_000, max_value=10_000),
    st.integers(-(2**30), 2**30),
)


def _written(value):
    return (
        repr(value)
        if isinstance(value, float) and "e" in repr(value)
        else format(Decimal(repr(value) if isinstance(value, float) else value), "f")
    )


@given(
    st.lists(numbers, min_size=1, max_size=6),
    st.lists(numbers, min_size=1, max_size=3),
    st.sampled_from(["=", "<", ">=", "in"]),
)
def test_whatever_is_compared_the_rows_are_those_of_a_native_table(native_floats, values, others, op):
    """Rows hold the compared values among others, in both widths."""
    compared = [values[0], *others]
    stored = [float(value) for value in (*values, *others)]
    rows = pa.table({"f": pa.array(np.array(stored, np.float32)), "db": pa.array(stored, pa.float64())})
    text = f"in ({', '.join(map(_written, compared))})" if op == "in" else f"{op} {_written(compared[0])}"
    native_floats.register("compared", rows)
    native_floats.execute("create or replace table compared_rows as from compared")
    for column in ("f", "db"):
        condition = f"{column} {text}"
        truth = native_floats.execute(f"select {condition} from compared_rows").fetchall()
        predicate = parse_where(condition)
        wide, exact = fitted(negation_normal_form(predicate), rows.schema), fitted_exactly(predicate, rows.schema)
        for row, (is_match,) in zip(rows.to_pylist(), truth, strict=True):
            assert wide is None or matches(wide, row) or not is_match, (condition, row)
            assert exact is None or matches(exact, row) == is_match, (condition, row)


@pytest.fixture(scope="module")
def native_floats():
    with duckdb.connect() as connection:
        yield connection
