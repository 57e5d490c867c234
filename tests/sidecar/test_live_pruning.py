"""Pruning by sidecars that a running QuestDB wrote: no row that matches is left out, and row groups are."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from functools import cache
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from tests.questdb.conditions import Conditions, answers

from windrow.model.predicate import Comparison, In, IsNotNull, IsNull, Op, Predicate
from windrow.planning.sidecar_literals import fitted_to_sidecar
from windrow.questions.where import parse_where
from windrow.sidecar.build import build_sidecar
from windrow.sidecar.pruning import SidecarPruner, prune
from windrow.sidecar.reader import Sidecar

TABLES = Path(__file__).parents[1] / "data/golden/questdb-tables"
PARTITIONS = sorted(path.parent for path in TABLES.glob("*/*/data.parquet"))
BLOOMS, O3 = TABLES / "blooms-0/2024-01-01.1", TABLES / "o3-3-nulls/2024-02-02.2"
AT_ONCE = 500
LEAST = -(2**63)
DESIGNATED = 8 | 1 << 17


def partition(path: Path) -> str:
    return "/".join(path.relative_to(TABLES).parts)


@cache
def rows_of(folder: Path) -> pa.Table:
    """All rows that pyarrow finds, each with its row group, in types that DuckDB has."""
    file = pq.ParquetFile(folder / "data.parquet", memory_map=False)
    parts = [file.read_row_group(group) for group in range(file.num_row_groups)]
    numbers = np.repeat(np.arange(len(parts)), [len(part) for part in parts])
    table = pa.concat_tables(parts).append_column("row_group", pa.array(numbers))
    for place, field in enumerate(table.schema):
        if field.type == pa.timestamp("ns", "UTC"):
            table = table.set_column(place, field.name, table.column(place).cast(pa.timestamp("ns")))
    return table.drop_columns([field.name for field in table.schema if not compares(field.type)])


def compares(kind: pa.DataType) -> bool:
    return not (pa.types.is_decimal256(kind) or pa.types.is_binary(kind) or pa.types.is_fixed_size_binary(kind))


def conditions_on(table: pa.Table, seed: int) -> Conditions:
    return Conditions(table, seed, skip=["row_group"], often="ts")


def matching(table: pa.Table, conditions: list[str]) -> list[set[int]]:
    """The row groups in which DuckDB finds a row that fulfils each condition."""
    return [set(found or ()) for found in answers(table, conditions, "list(distinct row_group)")]


def kept(sidecar: Sidecar, condition: str) -> set[int]:
    """As `windrow pm prune` finds them."""
    pruner = SidecarPruner(fitted_to_sidecar(parse_where(condition), sidecar))
    return set(np.flatnonzero(pruner.prune(sidecar)).tolist())


@pytest.mark.parametrize("folder", PARTITIONS, ids=partition)
@pytest.mark.parametrize("count", [100, pytest.param(5_000, marks=pytest.mark.long)])
def test_no_row_that_matches_is_left_out(folder: Path, count: int) -> None:
    table, sidecar = rows_of(folder), Sidecar.open(folder / "_pm")
    conditions = list(conditions_on(table, seed=count).take(count))
    left_out = 0
    for start in range(0, count, AT_ONCE):
        some = conditions[start : start + AT_ONCE]
        for condition, wanted in zip(some, matching(table, some), strict=True):
            found = kept(sidecar, condition)
            assert wanted <= found, condition
            left_out += sidecar.row_group_count - len(found)
    assert left_out > count // 50


@pytest.mark.parametrize("folder", PARTITIONS, ids=partition)
def test_live_sidecars_leave_out_what_converted_ones_do(folder: Path) -> None:
    live, converted = Sidecar.open(folder / "_pm"), Sidecar.open(folder / "converter.pm")
    data = (folder / "data.parquet").read_bytes()
    ours = Sidecar.of(build_sidecar(lambda at, size: data[at : at + size], len(data), name="data.parquet"))
    for condition in conditions_on(rows_of(folder), seed=7).take(50):
        assert kept(live, condition) == kept(converted, condition) == kept(ours, condition), condition


def value_of(folder: Path, column: str, group: int) -> Any:
    table = rows_of(folder)
    values = table.filter(pa.array(np.asarray(table["row_group"]) == group))[column].drop_null().to_pylist()
    return values[min(3, len(values) - 1)]


@pytest.mark.parametrize("group", [0, 1])
@pytest.mark.parametrize("column", ["ts", "i", "v", "u", "d"])
def test_one_value_leaves_one_row_group_by_bounds_or_by_bloom_filters(column: str, group: int) -> None:
    value = value_of(BLOOMS, column, group)
    literal = value if isinstance(value, int | float) else f"'{value}'"
    for name in ("_pm", "converter.pm"):
        assert kept(Sidecar.open(BLOOMS / name), f"{column} = {literal}") == {group}


@pytest.mark.parametrize("condition", ["sy = 's55'", "sy in ('s4a', 's55')", "v = 'v12x'", "i = 15", "d = 0.15"])
def test_values_between_the_bounds_that_no_row_has_are_ruled_out_by_bloom_filters(condition: str) -> None:
    for name in ("_pm", "converter.pm"):
        assert kept(Sidecar.open(BLOOMS / name), condition) == set()


@pytest.mark.parametrize("group", range(4))
def test_a_time_leaves_one_row_group(group: int) -> None:
    moment = value_of(O3, "ts", group).isoformat(sep=" ", timespec="microseconds")
    assert kept(Sidecar.open(O3 / "_pm"), f"ts = '{moment}'") == {group}


@pytest.mark.parametrize(
    ("condition", "expected"),
    [
        ("sy = 'd'", {0}),
        ("sy = 'tail'", {3}),
        ("sy is null", set()),
        ("n = 301", {0}),
        ("n < 0", {0, 3}),
        ("n < 0 and ts > '2024-02-02 23:00:00'", {3}),
        ("val > -2.5 and val < -1.5 and n = 388", {0}),
    ],
)
def test_symbols_and_numbers(condition: str, expected: set[int]) -> None:
    assert kept(Sidecar.open(O3 / "_pm"), condition) == expected


def test_times_are_searched_for(make: SimpleNamespace, monkeypatch: pytest.MonkeyPatch) -> None:
    """A column that is marked as optional and has no level for nulls, as QuestDB marks its timestamps."""
    sidecar = Sidecar.of(make.create(spec([(n, n + 9) for n in range(0, 10_000, 10)], type=DESIGNATED, flags=4)))
    asked = []

    def column(position: int, row_groups: Any = None) -> Any:
        asked.append(sidecar.row_group_count if row_groups is None else len(row_groups))
        return type(sidecar).column(sidecar, position, row_groups)

    monkeypatch.setattr(sidecar, "column", column)
    predicate = Comparison("c", Op.EQUAL, datetime(1970, 1, 1, tzinfo=UTC) + timedelta(microseconds=5_005))
    assert np.flatnonzero(prune(sidecar, predicate)).tolist() == [500]
    assert max(asked) < 5


class TestColumnsThatAreMarkedOtherwise:
    """FIELD_REPETITION is a hint; the levels decide."""

    @pytest.mark.parametrize("level", [0, 1])
    @pytest.mark.parametrize("repetition", [0, 1])
    def test_a_column_of_a_table_is_flat(self, level: int, repetition: int, make: SimpleNamespace) -> None:
        symbol = spec([(0, 9), (20, 29)], type=12, physical_type=6, max_def_level=level, flags=repetition << 2)
        sidecar = Sidecar.of(make.create(symbol))
        assert prune(sidecar, Comparison("c", Op.EQUAL, "\x05")).tolist() == [True, False]

    def test_a_required_column_may_hold_nulls(self, make: SimpleNamespace) -> None:
        sidecar = Sidecar.of(make.create(spec([(0, 9), None], type=12, physical_type=6, max_def_level=1, nulls=[2, 5])))
        assert prune(sidecar, IsNull("c")).tolist() == [True, True]
        assert prune(sidecar, IsNotNull("c")).tolist() == [True, False]

    @pytest.mark.parametrize("levels", [(0, 2), (1, 1), (1, 3)])
    def test_more_levels_are_nested(self, levels: tuple[int, int], make: SimpleNamespace) -> None:
        levels_of = {"max_rep_level": levels[0], "max_def_level": levels[1]}
        sidecar = Sidecar.of(make.create(spec([(0, 9)], flags=4, **levels_of)))
        assert prune(sidecar, Comparison("c", Op.EQUAL, 100)).tolist() == [True]

    def test_a_struct_around_one_leaf_in_a_file_of_others_is_no_column(self) -> None:
        kind = pa.struct([pa.field("leaf", pa.int64())])
        table = pa.table(
            {"s": pa.array([{"leaf": None}, {"leaf": None}], kind)}, pa.schema([pa.field("s", kind, False)])
        )
        sink = pa.BufferOutputStream()
        pq.write_table(table, sink, store_schema=False)
        data = sink.getvalue().to_pybytes()
        for extensions in (True, False):
            made = build_sidecar(lambda at, size: data[at : at + size], len(data), name="s", extensions=extensions)
            assert Sidecar.of(made).descriptors[0]["max_def_level"] == 1
            assert prune(Sidecar.of(made), IsNotNull("s")).tolist() == [True]


class TestSentinels:
    """What stands for null in QuestDB, where a column has no level for nulls, is a value to all who read the file."""

    @pytest.mark.parametrize(
        "predicate",
        [
            Comparison("c", Op.EQUAL, LEAST),
            Comparison("c", Op.LESS, 0),
            In("c", (LEAST, 100)),
            IsNull("c"),
            IsNotNull("c"),
        ],
        ids=str,
    )
    def test_row_groups_that_count_some_are_never_left_out(self, predicate: Predicate, make: SimpleNamespace) -> None:
        sidecar = Sidecar.of(make.create(spec([(1, 9), (1, 9), None], nulls=[0, 2, 5], bloom_hex="00" * 32)))
        expected = [isinstance(predicate, IsNotNull), True, True]
        assert prune(sidecar, predicate).tolist() == expected

    @pytest.mark.parametrize("column", ["i", "l", "t2", "tn", "f", "db", "ip", "u", "sy", "d64", "g4"])
    def test_they_are_nulls_in_files_of_today(self, column: str) -> None:
        sidecar = Sidecar.open(TABLES / "nulls/2024-01-01.1/_pm")
        assert prune(sidecar, IsNull(column)).tolist() == [True]
        assert prune(sidecar, IsNotNull(column)).tolist() == [False]


def spec(pairs: list[tuple[int, int] | None], **more: Any) -> dict[str, Any]:
    """A described sidecar of one column, by its bounds: 64-bit integers, or a byte for text."""
    width = 1 if more.get("physical_type") == 6 else 8
    nulls = more.pop("nulls", [0] * len(pairs))
    filter_bits = more.pop("bloom_hex", None)
    column = {"name": "c", "type": 6, "physical_type": 2, "id": 0, **more}
    timestamp = 0 if column["type"] == DESIGNATED else -1

    def bound(pair: tuple[int, int] | None, at: int) -> Any:
        return pair and {"hex": pair[at].to_bytes(width, "little", signed=True).hex(), "exact": True}

    chunks = [
        {
            "codec": 0, "encodings": 1, "num_values": 5, "byte_range_start": 4, "total_compressed": 10,
            "null_count": count, "distinct_count": None, "bloom_hex": filter_bits, "bloom_external": None,
            "min": bound(pair, 0), "max": bound(pair, 1),
        }
        for pair, count in zip(pairs, nulls, strict=True)
    ]  # fmt: skip
    return {
        "columns": [column],
        "designated_timestamp": timestamp,
        "sorting_columns": [timestamp] if timestamp == 0 else [],
        "squash_tracker": -1,
        "bloom_columns": None,
        "bloom_external": False,
        "row_groups": [{"num_rows": 5, "chunks": [chunk]} for chunk in chunks],
        "parquet_footer_offset": 1000,
        "parquet_footer_length": 200,
        "unused_bytes": 0,
        "seq_txn": None,
        "scratchpad": None,
    }
