"""What a table is made of: `_meta`, the registry of names, and the folders of partitions."""

from __future__ import annotations

import json
import struct
from contextlib import suppress
from datetime import UTC, datetime

import pytest
from hypothesis import given
from hypothesis import strategies as st

from windrow.errors import Damaged, Incompatible, NotFound, WindrowError
from windrow.questdb.folders import folder_name, partition_end
from windrow.questdb.meta import PartitionUnit, parse_meta
from windrow.questdb.registry import parse_registry, table_folders, table_name

from .read_tables import CASES, GOLDEN, MetaColumn, meta_bytes

TIMESTAMP, INT, LONG, VARCHAR = 8, 5, 6, 26


def seconds(text: str) -> int:
    return int(datetime.fromisoformat(text).replace(tzinfo=UTC).timestamp())


class TestMeta:
    @pytest.mark.parametrize("case", CASES)
    def test_golden_columns_are_those_of_select(self, case):
        meta = parse_meta((GOLDEN / case / "_meta").read_bytes(), case)
        rows = GOLDEN / case / "rows.json"
        if rows.exists():
            assert [each.name for each in meta.columns] == [
                each["name"] for each in json.loads(rows.read_text())["columns"]
            ]
        assert meta.structure_version == CASES[case]["txn"]["structureVersion"]
        assert meta.timestamp is not None
        assert meta.timestamp.name == "ts"

    def test_a_retyped_column_takes_the_place_and_the_id_of_the_first_of_its_chain(self):
        columns = [
            MetaColumn("ts", TIMESTAMP),
            MetaColumn("a", -INT),
            MetaColumn("gone", -LONG),
            MetaColumn("b", VARCHAR),
            MetaColumn("a", -LONG, replaces=1),
            MetaColumn("a", VARCHAR, replaces=4),
        ]
        meta = parse_meta(meta_bytes(columns), "_meta")
        assert [(each.name, each.type, each.id) for each in meta.columns] == [
            ("ts", TIMESTAMP, 0),
            ("a", VARCHAR, 1),
            ("b", VARCHAR, 3),
        ]

    @pytest.mark.parametrize(
        ("columns", "problem"),
        [
            ([MetaColumn("ts", TIMESTAMP), MetaColumn("a", INT, replaces=1)], "not before it"),
            ([MetaColumn("ts", TIMESTAMP), MetaColumn("TS", INT)], "one name"),
            ([MetaColumn("ts", -TIMESTAMP)], "dropped"),
            ([MetaColumn("ts", INT)], "no timestamp"),
            ([MetaColumn("ts", TIMESTAMP), MetaColumn("a", INT, 0), MetaColumn("b", INT, 0)], "same one"),
        ],
    )
    def test_columns_that_cannot_be_are_damage(self, columns, problem):
        with pytest.raises(Damaged, match=problem):
            parse_meta(meta_bytes(columns), "_meta")

    def test_another_version_of_the_format_is_refused(self):
        with pytest.raises(Incompatible, match="version 427"):
            parse_meta(meta_bytes([MetaColumn("ts", TIMESTAMP)], version=427), "_meta")

    @given(data=st.data())
    def test_damaged_bytes_are_an_error_or_a_structure_and_nothing_else(self, data):
        content = bytearray((GOLDEN / "cols-1-added" / "_meta").read_bytes())
        for _ in range(data.draw(st.integers(1, 4))):
            content[data.draw(st.integers(0, len(content) - 1))] = data.draw(st.integers(0, 255))
        cut = data.draw(st.one_of(st.none(), st.integers(0, len(content))))
        with suppress(WindrowError):
            parse_meta(bytes(content[:cut]), "_meta")


class TestFolders:
    @pytest.mark.parametrize("case", CASES)
    def test_golden_partitions_are_in_these_folders(self, case):
        meta = parse_meta((GOLDEN / case / "_meta").read_bytes(), case)
        for each in CASES[case]["partitions"]:
            assert folder_name(meta.unit, each["timestamp"], each["nameTxn"]) == each["folder"]

    @pytest.mark.parametrize(
        ("unit", "moment", "ticks", "folder", "end"),
        [
            (PartitionUnit.YEAR, "2024-01-01", 0, "2024", "2025-01-01"),
            (PartitionUnit.MONTH, "2024-12-01", 0, "2024-12", "2025-01-01"),
            (PartitionUnit.WEEK, "2024-01-01", 0, "2024-W01", "2024-01-08"),
            (PartitionUnit.WEEK, "2027-01-04", 0, "2027-W01", "2027-01-11"),
            (PartitionUnit.DAY, "2024-02-29", 0, "2024-02-29", "2024-03-01"),
            (PartitionUnit.HOUR, "2024-01-01T23:00", 0, "2024-01-01T23", "2024-01-02"),
            (PartitionUnit.DAY, "2024-04-02T20:00", 1, "2024-04-02T200000-000001", "2024-04-03"),
            (PartitionUnit.DAY, "2024-04-02T20:00", 0, "2024-04-02T20", "2024-04-03"),
            (PartitionUnit.DAY, "2024-04-02T20:15", 0, "2024-04-02T201500", "2024-04-03"),
            (PartitionUnit.MONTH, "2024-04-02", 0, "2024-04-02", "2024-05-01"),
            (PartitionUnit.YEAR, "2024-04-02T20:00", 7, "2024-04-02T200000-000007", "2025-01-01"),
        ],
    )
    def test_a_folder_is_named_after_the_low_bound(self, unit, moment, ticks, folder, end):
        timestamp = seconds(moment) * 10**6 + ticks
        assert folder_name(unit, timestamp) == folder
        assert folder_name(unit, timestamp, 12) == f"{folder}.12"
        assert partition_end(unit, timestamp) == seconds(end) * 10**6

    def test_nanoseconds_have_nine_digits(self):
        timestamp = seconds("2024-04-02T20:00") * 10**9 + 1
        assert folder_name(PartitionUnit.DAY, timestamp, ticks_per_second=10**9) == "2024-04-02T200000-000000001"

    def test_a_table_without_partitions_has_one_folder(self):
        assert folder_name(PartitionUnit.NONE, 0) == "default"
        assert partition_end(PartitionUnit.NONE, 0) is None

    def test_a_bound_beyond_all_dates_is_damage(self):
        with pytest.raises(Damaged, match="no date"):
            folder_name(PartitionUnit.DAY, 2**63 - 1)


class TestRegistry:
    def test_the_golden_registry_names_every_table_that_has_wal(self):
        # A table without WAL is in no registry.
        wanted = {row[1]: row[5] for row in json.loads((GOLDEN / "tables.json").read_text()) if row[4]}
        assert parse_registry((GOLDEN / "tables.d.0").read_bytes(), "tables.d.0") == wanted

    def test_the_highest_number_counts(self, tmp_path):
        (tmp_path / "tables.d.0").write_bytes((GOLDEN / "tables.d.0").read_bytes())
        (tmp_path / "tables.d.10").write_bytes(struct.pack("<q", 8))
        (tmp_path / "tables.d.2").write_bytes(b"old")
        assert table_folders(tmp_path) == {}

    @pytest.mark.parametrize(
        ("content", "problem"),
        [
            (b"", "no registry"),
            (struct.pack("<q", 900), "ends at byte 900"),
            (struct.pack("<qi", 12, 0), "cut off"),
            (struct.pack("<qii", 16, 0, 5), "5 characters"),
            (struct.pack("<qii2si2sii", 32, 7, 1, b"a\0", 1, b"b\0", 1, 1), "operation 7"),
        ],
    )
    def test_a_damaged_registry_says_where(self, content, problem):
        with pytest.raises(Damaged, match=problem):
            parse_registry(content, "tables.d.0")

    def test_a_folder_without_a_name_file_is_named_after_itself(self, tmp_path):
        assert table_name(tmp_path / "trades~12") == "trades"

    def test_a_database_that_is_not_there_is_not_found(self, tmp_path):
        with pytest.raises(NotFound, match="no such folder"):
            table_folders(tmp_path / "nowhere")
