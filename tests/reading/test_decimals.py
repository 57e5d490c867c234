"""Decimals in rows that are decoded: however a file writes them, what DuckDB finds in a table of its own."""

from __future__ import annotations

import random
from dataclasses import replace
from decimal import Decimal

import duckdb
import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import windrow
from windrow.cache import CacheSettings
from windrow.engines.table_relation import scan_context
from windrow.model.predicate import Comparison, Op
from windrow.planning.table_plans import plan_table
from windrow.questions.naming import Question
from windrow.questions.where import parse_where
from windrow.reading.cells import Cells
from windrow.reading.decoded_rows import decoded_rows
from windrow.reading.matching import matching_values
from windrow.storage import Identity

ROWS = 500
PRECISIONS = [(1, 0), (4, 2), (9, 2), (10, 3), (18, 0), (19, 5), (38, 10)]
FORMS = {
    "bytes": {},
    "plain bytes": {"use_dictionary": False},
    "pages of both kinds": {"dictionary_pagesize_limit": 200, "data_page_size": 300},
    "version 2 pages": {"data_page_version": "2.0", "compression": "zstd"},
    "numbers": {"store_decimal_as_integer": True},
    "plain numbers": {"store_decimal_as_integer": True, "use_dictionary": False},
}


def values(precision, scale, *, nulls):
    draw = random.Random(precision)
    most = 10**precision - 1
    choices = [0, 1, -1, most, -most, *(draw.randint(-most, most) for _ in range(200))]
    whole = [None if draw.random() < nulls else draw.choice(choices) for _ in range(ROWS)]
    return pa.array(
        [None if each is None else Decimal(f"{each}e-{scale}") for each in whole], pa.decimal128(precision, scale)
    )


@pytest.fixture(scope="module")
def rows():
    columns = {"ts": pa.array(range(ROWS), pa.timestamp("us", "UTC")), "n": pa.array(range(ROWS), pa.int64())}
    columns |= {f"d{p}": values(p, s, nulls=0.2) for p, s in PRECISIONS}
    return pa.table(columns | {"set9": values(9, 2, nulls=0), "nothing": pa.nulls(ROWS, pa.decimal128(9, 2))})


@pytest.fixture(scope="module", params=FORMS)
def table(request, rows, tmp_path_factory):
    folder = tmp_path_factory.mktemp("decimals")
    path = folder / "given.parquet"
    pq.write_table(rows, path, row_group_size=200, **FORMS[request.param])
    with windrow.connect(folder / "lake", cache=CacheSettings(folder=folder / "cache")) as lake:
        made = lake.create_table("t", sort="ts/V2", timestamp="ts", mirror=False)
        made.register.run(path)
        yield made


@pytest.fixture(scope="module")
def ingested(rows, tmp_path_factory):
    """Written by us; after the first answer rows are decoded."""
    folder = tmp_path_factory.mktemp("ingested")
    with windrow.connect(folder / "lake", cache=CacheSettings(folder=folder / "cache")) as lake:
        made = lake.create_table("t", sort="ts/V2", timestamp="ts", mirror=False)
        made.ingest(rows)
        yield made


def conditions(name, precision, scale):
    step = Decimal(1).scaleb(-scale)
    # DuckDB compares in a type of at most 38 digits, which has to hold both sides.
    literals = (0, step, -step, *(["0.00000000001"] if precision < 20 else []))
    yield from (f"{name} {op} {literal}" for op in ("=", "<>", "<", ">=") for literal in literals)
    yield from (f"{name} in (0, {step}, 0.5)", f"{name} between {-step} and {step}", f"{name} is null")


@pytest.mark.parametrize("precision", PRECISIONS, ids=str)
def test_a_query_answers_as_over_a_native_table(ingested, rows, precision):
    name = f"d{precision[0]}"
    with duckdb.connect() as native:
        native.register("arrived", rows)
        native.execute("create table t as from arrived")
        for condition in conditions(name, *precision):
            query = f"select n, {name}, set9, nothing from t where {condition} order by n"
            wanted = native.sql(query).to_arrow_table()
            assert ingested.sql(query).to_arrow().equals(wanted), condition


def test_rows_are_decoded_as_they_were_written(table, rows):
    names = tuple(rows.column_names)
    record = table.record()
    question = Question(names, parse_where("d9 > 0"))
    plan = plan_table(scan_context(table.context), table.context.metastore, record, record.version, question)
    cells = Cells(2**26)
    for each in plan.virtual:
        # As if the file were one of ours, which never change.
        files = [replace(file, identity=Identity(file.identity.size)) for file in each.files]
        virtual = replace(each, files=files)
        found = [decoded_rows(cells, virtual, question.predicate) for _ in range(2)][1]
        kept = rows.filter(pa.compute.greater(rows["d9"], 0))
        assert found.table.equals(kept.select(found.table.column_names).cast(found.table.schema))


def test_a_decimal_of_more_than_64_bits_rules_nothing_out():
    kind = pa.decimal128(38, 2)
    array = pa.array([Decimal("1.50"), Decimal(10) ** 30], kind)
    stored = np.frombuffer(array.buffers()[1], "V16")
    assert matching_values(Comparison("x", Op.GREATER, 1), stored, kind) is None
    assert matching_values(Comparison("x", Op.GREATER, Decimal("1.5")), stored[:1], kind).tolist() == [False]
    assert matching_values(Comparison("x", Op.EQUAL, Decimal("1.505")), stored[:1], kind) is None
    assert matching_values(Comparison("x", Op.EQUAL, Decimal("NaN")), stored[:1], kind) is None
