"""Scans by the sidecars that QuestDB writes: planned and decoded without the footer of the Parquet file."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import duckdb
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from windrow.errors import Incompatible
from windrow.model.split import SidecarLocation
from windrow.parquet.footer import read_footer
from windrow.planning.data_files import DataFile, open_sidecars
from windrow.planning.scan_context import ScanContext
from windrow.planning.scan_plan import ScanPlan, plan_files
from windrow.planning.sidecar_literals import fitted_to_sidecar
from windrow.planning.virtual_schema import arrow_schema, schema_of
from windrow.questions.where import parse_where
from windrow.reading.decoding import columns_of_schema, load
from windrow.reading.read_context import ReadContext
from windrow.reading.virtual_reader import VirtualReader
from windrow.sidecar import Sidecar
from windrow.sidecar.build import build_sidecar
from windrow.sidecar.convert import Source, convert, describe_row_groups
from windrow.sidecar.rewrite import Sections, rewrite
from windrow.sidecar.writer import SnapshotFields, update
from windrow.storage import ByteRange, Identity, LocalStore, Store, open_store
from windrow.storage.handles import Handle
from windrow.testing import RecordingStore

TABLES = Path(__file__).parents[1] / "data/golden/questdb-tables"
PARTITIONS = sorted(path.parent for path in TABLES.glob("*/*/data.parquet"))
BLOOMS, O3 = TABLES / "blooms-0/2024-01-01.1", TABLES / "o3-3-nulls/2024-02-02.2"


class RangesStore(RecordingStore):
    """Writes down which bytes of which objects are read."""

    def __init__(self, store: Store) -> None:
        super().__init__(store)
        self.ranges: list[tuple[str, ByteRange]] = []

    def around(self, call: Any, run: Callable[[], Any]) -> Any:
        self.ranges += [(call.key, each) for each in call.ranges]
        return super().around(call, run)

    def of(self, key: str) -> list[ByteRange]:
        return [each for name, each in self.ranges if name == key]


def partition(path: Path) -> str:
    return "/".join(path.relative_to(TABLES).parts)


def file_of(store: Store, folder: Path) -> DataFile:
    """A partition as whoever reads `_txn` describes it."""
    place = SidecarLocation("_pm", 0, (folder / "_pm").stat().st_size)
    return DataFile(store, "data.parquet", Identity((folder / "data.parquet").stat().st_size), place)


def planned(store: Store, folder: Path, where: str | None = None, columns: list[str] | None = None) -> ScanPlan:
    context, file = ScanContext("x", store), file_of(store, folder)
    predicate = None if where is None else fitted_to_sidecar(parse_where(where), open_sidecars(context, [file])[0])
    return plan_files(context, [file], predicate=predicate, columns=columns)


def rows_of(plan: ScanPlan, store: Store) -> pa.Table:
    parts = []
    for virtual in plan.virtual:
        with VirtualReader(virtual, ReadContext("x", store)) as reader:
            parts.append(pq.read_table(Handle(reader)))
    return pa.concat_tables(parts)


@pytest.mark.parametrize("folder", PARTITIONS, ids=partition)
def test_all_rows_are_read_from_a_file_whose_footer_is_lost(folder: Path, tmp_path: Path) -> None:
    data, footer = (folder / "data.parquet").read_bytes(), Sidecar.open(folder / "_pm").footer.parquet_footer_offset
    (tmp_path / "data.parquet").write_bytes(data[:footer] + bytes(len(data) - footer))
    (tmp_path / "_pm").write_bytes((folder / "_pm").read_bytes())
    store = RangesStore(LocalStore(tmp_path))
    plan = planned(store, tmp_path)
    assert store.of("data.parquet") == []
    assert rows_of(plan, store).equals(pq.read_table(folder / "data.parquet"))
    assert {call.verb for call in store.calls} <= {"get_ranges", "open", "read_at", "check", "read_each"}


@pytest.mark.parametrize("folder", PARTITIONS, ids=partition)
def test_duckdb_reads_the_virtual_file(folder: Path, tmp_path: Path) -> None:
    store = LocalStore(folder)
    [virtual] = planned(store, folder).virtual
    with VirtualReader(virtual, ReadContext("x", store)) as reader:
        (tmp_path / "virtual.parquet").write_bytes(reader.read_at(0, reader.size))
    ours, theirs = (
        duckdb.sql(f"select * from read_parquet('{path}')").fetchall()
        for path in (tmp_path / "virtual.parquet", folder / "data.parquet")
    )
    if folder.parent.name.startswith("migrated-alltypes"):
        # DuckDB takes IPv4 addresses of these files for signed numbers: they lack a converted type.
        ours, theirs = ([row[:17] + row[18:] for row in rows] for rows in (ours, theirs))
    assert str(ours) == str(theirs)


@pytest.mark.parametrize(
    ("folder", "where", "row_groups"),
    [
        (O3, "ts = '2024-02-02 10:00:00+00'", 1),
        (O3, "sy = 'tail'", 1),
        (O3, "n between 400 and 410 and val > 0", 1),
        (BLOOMS, "u = '10000000-0000-0000-0000-000000000000'", 0),
        (BLOOMS, "sy = 's55'", 0),
        (BLOOMS, "v = 'v13'", 1),
    ],
)
def test_only_row_groups_that_can_match_are_read(folder: Path, where: str, row_groups: int) -> None:
    store = RangesStore(LocalStore(folder))
    plan = planned(store, folder, where)
    assert sum(virtual.row_groups for virtual in plan.virtual) == row_groups
    assert store.of("data.parquet") == []
    table = duckdb.sql(f"select * from read_parquet('{folder}/data.parquet') where {where}").to_arrow_table()
    with duckdb.connect() as connection:
        connection.register("found", rows_of(plan, store) if row_groups else table.slice(0, 0))
        assert len(connection.execute(f"select * from found where {where}").fetchall()) == len(table)


def stretched(folder: Path, into: Path) -> None:
    """The same file with much between its pages and its footer, so that it is not worth to be read at once."""
    data = (folder / "data.parquet").read_bytes()
    footer = read_footer(data, name="data.parquet")
    end = len(data) - len(footer.metadata) - 8
    longer = data[:end] + bytes(2**24) + data[end:]
    (into / "data.parquet").write_bytes(longer)
    (into / "_pm").write_bytes(convert(Source(footer, len(longer)), extensions=False))


def test_columns_are_read_by_their_byte_ranges_and_the_tail_is_not(tmp_path: Path) -> None:
    stretched(O3, tmp_path)
    store = RangesStore(LocalStore(tmp_path))
    found = rows_of(planned(store, tmp_path, "ts >= '2024-02-02 10:00:00+00'", ["n"]), store)
    chunks = Sidecar.open(tmp_path / "_pm").column("n").records[1:]
    starts, ends = chunks["byte_range_start"], chunks["byte_range_start"] + chunks["total_compressed"]
    read = store.of("data.parquet")
    assert (min(each.start for each in read), max(each.end for each in read)) == (starts.min(), ends.max())
    assert found["n"].to_pylist() == [*range(389, 577), -1, -2, -3]


def test_small_plans_are_decoded_here() -> None:
    store = LocalStore(O3)
    [virtual] = planned(store, O3, columns=["sy", "val", "n"]).virtual
    columns = columns_of_schema(virtual.schema)
    assert columns is not None
    loaded = load(virtual, range(virtual.row_groups), columns)
    assert loaded is not None
    numbers = loaded[0][2].data.fixed("u8").values.view("<i8").tolist()
    assert numbers == pq.read_table(O3 / "data.parquet")["n"].to_pylist()


def test_an_update_since_the_listing_is_passed_over(tmp_path: Path) -> None:
    """The sidecar has grown since its size was noted; the Parquet file of then is still described."""
    steps = [TABLES / step / "2024-02-02.2" for step in ("o3-0", "o3-2-tail")]
    (tmp_path / "_pm").write_bytes((steps[1] / "_pm").read_bytes())
    (tmp_path / "data.parquet").write_bytes((steps[0] / "data.parquet").read_bytes())
    place = SidecarLocation("_pm", 0, (steps[0] / "_pm").stat().st_size)
    for store in (LocalStore(tmp_path), RangesStore(LocalStore(tmp_path))):
        file = DataFile(store, "data.parquet", Identity((tmp_path / "data.parquet").stat().st_size), place)
        plan = plan_files(ScanContext("x", store), [file])
        assert rows_of(plan, store).equals(pq.read_table(steps[0] / "data.parquet"))


def test_a_sidecar_of_ours_that_questdb_has_updated(tmp_path: Path) -> None:
    """Its footer has no section of ours any more: page records are gone, the schema in the header is not."""
    before, after = ((TABLES / step / "2024-02-02.2/data.parquet").read_bytes() for step in ("o3-0", "o3-2-tail"))
    footer = read_footer(after, name="data.parquet")
    made = build_sidecar(lambda at, size: before[at : at + size], len(before), name="data.parquet")
    groups = describe_row_groups(Source(footer, len(after)), extensions=False)
    place = len(after) - len(footer.metadata) - 8
    change = update(Sidecar.of(made), groups, range(4), SnapshotFields(place, len(footer.metadata)))
    (tmp_path / "_pm").write_bytes(change.size.to_bytes(8, "little") + made[8:] + change.data)
    (tmp_path / "data.parquet").write_bytes(after)
    store = LocalStore(tmp_path)
    sidecar = Sidecar.open(tmp_path / "_pm")
    assert sidecar.extensions.schema is not None
    assert sidecar.extensions.created_by is None
    assert rows_of(planned(store, tmp_path), store).equals(pq.read_table(tmp_path / "data.parquet"))
    assert sum(each.row_groups for each in planned(store, tmp_path, "sy = 'tail'").virtual) == 1


@pytest.mark.parametrize("sections", Sections)
def test_a_rewritten_sidecar_is_enough_too(sections: Sections, tmp_path: Path) -> None:
    """Sections of ours that were added without the Parquet file have no schema in them."""
    (tmp_path / "_pm").write_bytes(rewrite(Sidecar.open(BLOOMS / "_pm"), sections))
    (tmp_path / "data.parquet").write_bytes((BLOOMS / "data.parquet").read_bytes())
    store = RangesStore(LocalStore(tmp_path))
    plan = planned(store, tmp_path)
    assert store.of("data.parquet") == []
    assert rows_of(plan, store).equals(pq.read_table(BLOOMS / "data.parquet"))


def test_a_plain_sidecar_of_a_file_of_others_is_made_again_from_its_footer(
    caplog: pytest.LogCaptureFixture, tmp_path: Path
) -> None:
    """INT and LONG may be unsigned there, and bytes may be JSON: columns do not follow from it."""
    table = pa.table({"n": pa.array([1, 2**63], pa.uint64())})
    pq.write_table(table, tmp_path / "data.parquet")
    data = (tmp_path / "data.parquet").read_bytes()
    plain = build_sidecar(lambda at, size: data[at : at + size], len(data), name="x", extensions=False)
    (tmp_path / "_pm").write_bytes(plain)
    with pytest.raises(Incompatible, match="no Parquet schema"):
        schema_of(Sidecar.of(plain))
    store = LocalStore(tmp_path)
    plan = planned(store, tmp_path)
    assert rows_of(plan, store).equals(table)
    assert "do not follow from it" in caplog.text


def test_the_columns_are_those_that_arrow_finds() -> None:
    for folder in PARTITIONS:
        found = arrow_schema(Sidecar.open(folder / "_pm"))
        assert found.equals(pq.read_schema(folder / "data.parquet"), check_metadata=False)


def test_filters_in_the_parquet_file_are_asked_where_reads_are_cheap(tmp_path: Path) -> None:
    data = (BLOOMS / "data.parquet").read_bytes()
    (tmp_path / "data.parquet").write_bytes(data)
    made = build_sidecar(lambda at, size: data[at : at + size], len(data), name="x", external_blooms=True)
    (tmp_path / "_pm").write_bytes(made)
    where = "u = '20000000-0000-0000-0000-000000000000'"
    assert planned(LocalStore(tmp_path), tmp_path, where).virtual == []
    remote = RangesStore(open_store("memory://"))
    for key, content in (("data.parquet", data), ("_pm", made)):
        remote.put(key, content)
    assert sum(each.row_groups for each in planned(remote, tmp_path, where).virtual) == 2
    assert remote.of("data.parquet") == []
