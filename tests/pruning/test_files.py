"""Files of all types and of several writers: what their row groups are ruled out by, and what they must not be."""

from __future__ import annotations

import io
from dataclasses import replace
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal
from pathlib import Path
from typing import Any

import duckdb
import numpy as np
import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from windrow.model.predicate import And, Comparison, IsNull, Not, Op, Predicate, StartsWith
from windrow.parquet import chunk as parquet
from windrow.parquet.footer import read_footer
from windrow.sidecar import Sidecar
from windrow.sidecar.convert import Source, convert
from windrow.sidecar.pruning import prune

DATA = Path(__file__).parents[1] / "data"
EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


def written(table: pa.Table, size: int = 2, **options: Any) -> bytes:
    file = io.BytesIO()
    pq.write_table(table, file, row_group_size=size, **options)
    return file.getvalue()


def source_of(data: bytes, **more: Any) -> Source:
    return Source(read_footer(data, name="test"), len(data), read=lambda at, size: data[at : at + size], **more)


def sidecar_of(table: pa.Table, size: int = 2, *, extensions: bool = True, **options: Any) -> Sidecar:
    return Sidecar.of(convert(source_of(written(table, size, **options)), extensions=extensions))


def changed(table: pa.Table, **fields: Any) -> Sidecar:
    """The sidecar if the file's footer said something else."""
    source = source_of(written(table))
    return Sidecar.of(convert(replace(source, footer=replace(source.footer, **fields))))


def equal(column: str, value: Any) -> Comparison:
    return Comparison(column, Op.EQUAL, value)


def kept(sidecar: Sidecar, predicate: Predicate, **more: Any) -> str:
    return "".join(map(str, prune(sidecar, predicate, **more).astype(int)))


class TestTypes:
    """Each file has one row group below the literal, one that holds it and one above."""

    CASES = (
        (pa.int16(), [-5, 0, 7], 0),
        (pa.uint32(), [1, 2**31 + 5, 2**32 - 1], 2**31 + 5),
        (pa.uint64(), [1, 2**63 + 5, 2**64 - 1], 2**63 + 5),
        (pa.float32(), [-1.5, 0.5, 9.0], 0.5),
        (pa.date32(), [date(1960, 1, 1), date(1970, 1, 2), date(2020, 1, 1)], date(1970, 1, 2)),
        (pa.timestamp("ms"), [EPOCH, EPOCH + timedelta(1), EPOCH + timedelta(2)], EPOCH + timedelta(1)),
        (pa.timestamp("us"), [EPOCH, EPOCH + timedelta(1), EPOCH + timedelta(2)], EPOCH + timedelta(1)),
        (pa.timestamp("ns"), [EPOCH, EPOCH + timedelta(1), EPOCH + timedelta(2)], EPOCH + timedelta(1)),
        (pa.decimal128(7, 2), [Decimal("-1.50"), Decimal("0.25"), Decimal("9.00")], 0.25),
        (pa.decimal128(15, 2), [Decimal("-1.50"), Decimal("0.25"), Decimal("9.00")], Decimal("0.250")),
        (pa.decimal128(30, 2), [Decimal("-1.50"), Decimal("0.25"), Decimal("9.00")], Decimal("0.25")),
        (pa.string(), ["host-0001-a", "host-0001-b", "host-0002-a"], "host-0001-b"),
        (pa.binary(), [b"a", b"\x80", b"\xff"], b"\x80"),
        (pa.binary(16), [b"a" * 16, b"b" * 16, b"\xff" * 16], b"b" * 16),
    )

    @pytest.mark.parametrize(("kind", "values", "literal"), CASES, ids=lambda value: str(value)[:20])
    @pytest.mark.parametrize("integers", [False, True])
    def test_row_groups_are_told_apart(
        self, kind: pa.DataType, values: list[Any], literal: Any, integers: bool
    ) -> None:
        table = pa.table({"c": pa.array(values, kind)})
        sidecar = sidecar_of(table, 1, store_decimal_as_integer=integers)
        assert kept(sidecar, equal("c", literal)) == "010"
        assert kept(sidecar, Comparison("c", Op.LESS, literal)) == "100"
        assert kept(sidecar, Comparison("c", Op.GREATER, literal))[:2] == ("11" if "float" in str(kind) else "00")

    @pytest.mark.parametrize(("kind", "values", "literal"), CASES, ids=lambda value: str(value)[:20])
    def test_without_our_sections_nothing_is_lost(self, kind: pa.DataType, values: list[Any], literal: Any) -> None:
        sidecar = sidecar_of(pa.table({"c": pa.array(values, kind)}), 1, extensions=False)
        assert kept(sidecar, equal("c", literal))[1] == "1"
        assert kept(sidecar, Comparison("c", Op.LESS_OR_EQUAL, literal))[:2] == "11"
        assert kept(sidecar, Comparison("c", Op.GREATER_OR_EQUAL, literal))[1:] == "11"

    @pytest.mark.parametrize("kind", [pa.uint32(), pa.uint64()])
    def test_without_them_the_sign_of_large_integers_is_not_known(self, kind: pa.DataType) -> None:
        top = 2**kind.bit_width - 1
        sidecar = sidecar_of(pa.table({"c": pa.array([1, 2, 3, top], kind)}), extensions=False)
        assert kept(sidecar, equal("c", 9)) == "01"
        assert kept(sidecar, Comparison("c", Op.GREATER, 9)) == "01"
        assert kept(sidecar, Comparison("c", Op.LESS, 0)) == "01"

    def test_half_floats(self) -> None:
        sidecar = sidecar_of(pa.table({"c": pa.array(np.array([-1, 0, 2, 9], "f2"))}))
        assert kept(sidecar, equal("c", -0.5)) == "10"
        assert kept(sidecar, Comparison("c", Op.LESS, 2)) == "10"
        assert kept(sidecar, Comparison("c", Op.GREATER, 100)) == "11"

    def test_a_time_of_day_has_nulls_alone(self) -> None:
        sidecar = sidecar_of(pa.table({"c": pa.array([1, 1, None, None], pa.time64("us"))}))
        assert kept(sidecar, equal("c", EPOCH)) == "10"

    def test_a_time_that_is_declared_the_old_way(self) -> None:
        table = pa.table({"c": pa.array([0, 10, 20, 30], pa.int64())})
        footer = source_of(written(table)).footer
        converted_to_microseconds = bytes.fromhex("2c 4801 72 1502 00 1504 2502 1801 63 2514 00")
        start = len(footer.metadata)
        metadata = footer.metadata + converted_to_microseconds
        sidecar = changed(table, metadata=metadata, schema_span=(start, len(metadata)))
        assert kept(sidecar, equal("c", EPOCH + timedelta(microseconds=20))) == "01"
        assert kept(sidecar, equal("c", EPOCH + timedelta(microseconds=15))) == "00"

    def test_texts_that_descriptors_take_for_bytes(self, tmp_path: Path) -> None:
        path = tmp_path / "json.parquet"
        duckdb.sql(f"""copy (select '"b"'::json j) to '{path}'""")
        sidecar = Sidecar.of(convert(source_of(path.read_bytes())))
        assert [kept(sidecar, equal("j", text)) for text in ('"a"', '"b"', '"c"')] == ["0", "1", "0"]

    def test_decimals_of_writers_that_compared_them_wrongly(self) -> None:
        table = pa.table({"c": pa.array([1, 2], pa.decimal128(30, 0)), "n": [1, 2]})
        broken = changed(table, created_by="parquet-cpp version 1.5.1-SNAPSHOT")
        assert kept(broken, equal("c", 9)) == "1"
        assert kept(broken, equal("n", 9)) == "0"
        assert kept(sidecar_of(table), equal("c", 9)) == "0"

    def test_bounds_of_an_unknown_order(self) -> None:
        table = pa.table({"n": [1, 2], "s": ["a", "b"], "h": pa.array(np.array([1, 2], "f2"))})
        metadata = source_of(written(table)).footer.metadata
        orders = bytes.fromhex("3c" + "7c0000" * 3)
        span = (len(metadata), len(metadata) + len(orders))
        sidecar = changed(table, metadata=metadata + orders, column_orders=(7, 7, 7), column_orders_span=span)
        for column, value in (("n", 9), ("s", "z"), ("h", -5)):
            assert kept(sidecar, equal(column, value)) == "1"


class TestForeignFiles:
    """Bounds as other writers shorten or spoil them."""

    @pytest.mark.parametrize(("writer", "length"), [("duckdb", 256), ("polars", 64)])
    def test_shortened_text(self, writer: str, length: int, tmp_path: Path) -> None:
        path = tmp_path / "long.parquet"
        texts = ["k" * 300 + letter for letter in "aceg"]
        frame = pl.DataFrame({"s": texts})
        if writer == "duckdb":
            duckdb.sql(f"copy (select s from frame) to '{path}' (row_group_size 2)")
        else:
            frame.write_parquet(path, row_group_size=2)
        sidecar = Sidecar.of(convert(source_of(path.read_bytes())))
        assert {len(value) for value in sidecar.column("s").maximum.values} == {length}
        for text in texts:
            assert "1" in kept(sidecar, equal("s", text))
            assert "1" in kept(sidecar, StartsWith("s", text))
        assert "1" not in kept(sidecar, equal("s", "k" * (length - 1) + "lz"))
        assert "1" not in kept(sidecar, Comparison("s", Op.LESS, "k" * length))
        assert "1" not in kept(sidecar, Not(StartsWith("s", "k" * (length - 1))))

    def test_nan_among_the_bounds(self) -> None:
        data = (DATA / "parquet-testing" / "nan_in_stats.parquet").read_bytes()
        sidecar = Sidecar.of(convert(source_of(data)))
        for value in (-1e300, 0, 1e300):
            assert kept(sidecar, equal("x", value)) == "1"

    def test_no_bounds_at_all(self) -> None:
        sidecar = sidecar_of(pa.table({"c": [1, 2, None, None]}), write_statistics=False)
        assert kept(sidecar, And((equal("c", 9), IsNull("c")))) == "11"

    def test_floats_that_are_known_to_hold_no_nan(self) -> None:
        table = pa.table({"x": [1.0, 2.0, 3.0, 9.0]})
        chunks = source_of(written(table)).footer.chunks.copy()
        chunks["flags"][0] |= parquet.NAN_FREE
        above = Comparison("x", Op.GREATER, 20)
        assert kept(sidecar_of(table), above) == "11"
        assert kept(changed(table, chunks=chunks), above) == "01"
