"""Tables that a running QuestDB wrote: its sidecars are read, checked, made again and updated, byte for byte."""

from __future__ import annotations

import io
import json
from itertools import pairwise
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest
from tests.parquet.placed import place_row_groups
from tests.sidecar.whole_footers import convert_update, restore_footer

from windrow.parquet.footer import read_footer
from windrow.parquet.placement import VirtualSchema
from windrow.parquet.synthesis import synthesise_footer
from windrow.sidecar import layout
from windrow.sidecar.build import build_sidecar
from windrow.sidecar.check import check_against, check_bytes
from windrow.sidecar.convert import Source
from windrow.sidecar.flat_columns import is_flat
from windrow.sidecar.inspect import describe_snapshot
from windrow.sidecar.reader import Sidecar

TABLES = Path(__file__).parents[1] / "data/golden/questdb-tables"
SIDECARS = sorted(TABLES.glob("*/*/_pm"))
PARTITIONS = sorted(path.parent for path in TABLES.glob("*/*/data.parquet"))
STEPS = ["o3-0", "o3-1-merge", "o3-2-tail", "o3-3-nulls"]
GROWING = ["2024-02-01.1", "2024-02-02.2"]
UPDATES = [(before, after, part) for before, after in pairwise(STEPS) for part in GROWING]


def partition(path: Path) -> str:
    return "/".join(path.relative_to(TABLES).parts[:2])


def source_of(data: bytes) -> Source:
    footer = read_footer(data, name="data.parquet")
    return Source(footer, len(data), "data.parquet", lambda offset, length: data[offset : offset + length])


def is_live(folder: Path) -> bool:
    """Whether a running server wrote the sidecar, not the migration."""
    return not folder.parent.name.startswith("migrated")


def test_there_are_tables() -> None:
    assert (len(SIDECARS), len(PARTITIONS), sum(map(is_live, PARTITIONS))) == (28, 25, 23)


@pytest.mark.parametrize("path", SIDECARS, ids=partition)
def test_nothing_is_wrong_with_a_sidecar(path: Path) -> None:
    assert check_bytes(path.read_bytes()) == []


@pytest.mark.parametrize("folder", PARTITIONS, ids=partition)
class TestPartitions:
    """Each partition, with its sidecar and the one that QuestDB's converter makes."""

    def test_the_sidecar_describes_the_file(self, folder: Path) -> None:
        data = (folder / "data.parquet").read_bytes()
        found = Sidecar.open(folder / "_pm")
        assert check_against(found, read_footer(data, name="data.parquet"), len(data)) == []

    def test_our_converter_writes_the_bytes_of_theirs(self, folder: Path) -> None:
        data = (folder / "data.parquet").read_bytes()
        made = build_sidecar(source_of(data).read or bytes, len(data), name="data.parquet", extensions=False)
        assert made == (folder / "converter.pm").read_bytes()

    def test_live_and_converted_sidecars_differ_in_column_flags_alone(self, folder: Path) -> None:
        live, converted = Sidecar.open(folder / "_pm"), Sidecar.open(folder / "converter.pm")
        for field in set(layout.DESCRIPTOR.names or ()) - {"flags"}:
            assert live.descriptors[field].tolist() == converted.descriptors[field].tolist()
        assert without_place(describe_snapshot(live)) == without_place(describe_snapshot(converted))

    def test_it_is_from_questdb_and_every_column_is_flat(self, folder: Path) -> None:
        for name in ("_pm", "converter.pm"):
            found = Sidecar.open(folder / name)
            assert found.from_questdb
            assert all(is_flat(found, position) for position in range(found.column_count))

    def test_types_tell_the_schema(self, folder: Path) -> None:
        footer = read_footer((folder / "data.parquet").read_bytes(), name="data.parquet")
        schema = Sidecar.open(folder / "_pm").schema
        assert schema is not None
        assert [meaning(leaf) for leaf in schema.leaves] == [meaning(leaf) for leaf in footer.leaves]

    def test_pyarrow_reads_the_file_by_a_footer_of_the_sidecar(self, folder: Path) -> None:
        data = (folder / "data.parquet").read_bytes()
        restored = restore_footer(Sidecar.open(folder / "_pm"))
        assert restored is not None
        schema = VirtualSchema.of(restored)
        pages = data[: -len(source_of(data).footer.metadata) - 8]
        again = pages + synthesise_footer(schema, place_row_groups(restored, schema))
        assert pq.read_table(io.BytesIO(again)).equals(pq.read_table(io.BytesIO(data)))

    def test_null_counts_are_known(self, folder: Path) -> None:
        for name in ("_pm", "converter.pm"):
            found = Sidecar.open(folder / name)
            assert all(found.column(position).null_count[1].all() for position in range(found.column_count))

    def test_column_tops_are_nulls_in_the_data(self, folder: Path) -> None:
        """So null counts tell all: they are those of the rows."""
        data = (folder / "data.parquet").read_bytes()
        notes = json.loads(source_of(data).footer.key_value["questdb"] or "")
        assert {column["column_top"] for column in notes["schema"]} == {0}
        found, rows = Sidecar.open(folder / "_pm"), pq.read_table(io.BytesIO(data))
        counts = [int(found.column(position).null_count[0].sum()) for position in range(found.column_count)]
        assert counts == [column.null_count for column in rows.columns]


def test_a_column_that_was_added_later_has_nulls_in_the_rows_before() -> None:
    found = Sidecar.open(TABLES / "cols-2-column-top/2024-03-02.5/_pm")
    assert [found.column(name).null_count[0].tolist() for name in ("z", "sy2")] == [[48], [48]]
    assert found.row_counts.tolist() == [51]


def meaning(leaf: Any) -> tuple[Any, ...]:
    element = leaf.element
    return element.name, element.field_id, element.repetition, element.type_length, element.meaning, leaf[4:]


def without_place(snapshot: dict[str, Any]) -> dict[str, Any]:
    """All that a snapshot says of a Parquet file, but not what depends on earlier snapshots."""
    kept = {"parquet_size", "row_groups"}
    groups = [
        {"num_rows": each["num_rows"], "chunks": [without_slots(chunk) for chunk in each["chunks"]]}
        for each in snapshot["row_groups"]
    ]
    return {**{name: snapshot[name] for name in kept}, "row_groups": groups}


def without_slots(chunk: dict[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in chunk.items() if name not in ("min_stat", "max_stat")}


@pytest.mark.parametrize(("before", "after", "part"), UPDATES)
def test_an_update_in_place_is_the_one_that_questdb_made(before: str, after: str, part: str) -> None:
    old, new = (TABLES / step / part / "_pm" for step in (before, after))
    existing, wanted = old.read_bytes(), new.read_bytes()
    data = (TABLES / after / part / "data.parquet").read_bytes()
    if existing == wanted:
        assert data == (TABLES / before / part / "data.parquet").read_bytes()
        return
    source = source_of(data)
    notes = json.loads(source.footer.key_value["questdb"] or "")
    sidecar = Sidecar.of(existing)
    made = convert_update(sidecar, source, unused_bytes=notes["unused_bytes"], seq_txn=notes["seq_txn"])
    assert layout.U64.pack(made.size) + existing[8 : made.base] + made.data == wanted


def test_updates_are_among_the_steps() -> None:
    changed = [
        (b, a, p)
        for b, a, p in UPDATES
        if (TABLES / b / p / "_pm").read_bytes() != (TABLES / a / p / "_pm").read_bytes()
    ]
    assert len(changed) == 3


@pytest.mark.parametrize("part", GROWING)
@pytest.mark.parametrize("step", STEPS)
def test_a_reader_of_an_older_file_size_sees_the_row_groups_of_then(step: str, part: str) -> None:
    then = Sidecar.open(TABLES / step / part / "_pm")
    size = (TABLES / step / part / "data.parquet").stat().st_size
    now = Sidecar.open(TABLES / STEPS[-1] / part / "_pm", parquet_size=size)
    assert now.parquet_size == size
    # Where a block lies never changes either.
    assert describe_snapshot(now) == describe_snapshot(then)
    assert check_against(now, read_footer((TABLES / step / part / "data.parquet").read_bytes(), name=step), size) == []


@pytest.mark.parametrize("path", sorted((TABLES / "crash-stale-tail").glob("*/_pm")), ids=partition)
def test_after_a_crash_the_newest_footer_has_the_true_size(path: Path) -> None:
    manifest = json.loads((TABLES / "manifest.json").read_text())
    case = next(each for each in manifest if each["case"] == "crash-stale-tail")
    noted = next(each for each in case["partitions"] if each["folder"] == path.parent.name)
    found = Sidecar.open(path)
    assert found.parquet_size == noted["pm_newest_parquet_size"] < noted["value"]
    assert int(found.row_counts.sum()) == noted["rows"]
