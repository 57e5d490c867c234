"""A sidecar goes to its next version by its own bytes alone."""

from __future__ import annotations

import zlib
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st

from windrow.errors import Incompatible
from windrow.sidecar import Sidecar, layout
from windrow.sidecar.build import build_sidecar
from windrow.sidecar.check import check_bytes
from windrow.sidecar.inspect import describe_snapshot
from windrow.sidecar.rewrite import Sections, rewrite

GOLDEN = Path(__file__).parents[1] / "data" / "golden"
SINGLE = sorted([*GOLDEN.glob("parquet/*.pm"), *(path for path in GOLDEN.glob("pm/*.pm") if ".step" not in path.name)])
CHAINS = sorted(GOLDEN.glob("pm/*.step*.pm"))
PLACES = ("size", "footer_offset", "previous_size", "crc32", "crc32_computed")


def facts(sidecar):
    """All that a snapshot states, but for where it is."""
    found = {name: value for name, value in describe_snapshot(sidecar).items() if name not in PLACES}
    for group in found["row_groups"]:
        del group["block_offset"]
        for chunk in group["chunks"]:
            del chunk["min_stat"], chunk["max_stat"]  # may be the place of a long bound
    return found


@pytest.mark.parametrize("path", SINGLE, ids=lambda path: path.stem)
def test_a_file_in_todays_layout_comes_back_byte_for_byte(path):
    data = path.read_bytes()
    assert rewrite(Sidecar.of(data)) == data


@pytest.mark.parametrize("path", CHAINS, ids=lambda path: path.stem)
def test_a_chain_collapses_to_any_one_of_its_snapshots(path):
    for snapshot in Sidecar.of(path.read_bytes()).snapshots():
        single = Sidecar.of(rewrite(snapshot))
        assert [each.parquet_size for each in single.snapshots()] == [snapshot.parquet_size]
        assert facts(single) == facts(snapshot)
        assert check_bytes(bytes(single.buffer)) == []
        assert len(single.buffer) <= len(snapshot.buffer)


@pytest.mark.parametrize("path", [*SINGLE, *CHAINS], ids=lambda path: path.stem)
@pytest.mark.parametrize("sections", Sections)
def test_a_second_rewrite_changes_nothing(path, sections):
    once = rewrite(Sidecar.of(path.read_bytes()), sections)
    assert rewrite(Sidecar.of(once), sections) == once


@pytest.mark.parametrize("path", SINGLE, ids=lambda path: path.stem)
def test_sections_of_ours_come_as_absent_and_go_without_a_trace(path):
    data = path.read_bytes()
    before, added = Sidecar.of(data), Sidecar.of(rewrite(Sidecar.of(data), Sections.WINDROW))
    absent = added.extensions
    assert absent.schema_bytes is absent.created_by is absent.key_value is absent.etag is absent.version is None
    assert not added.extensions.granule_counts.any()
    assert [added.order(i) for i in range(added.column_count)] == [before.order(i) for i in range(before.column_count)]
    assert check_bytes(bytes(added.buffer)) == []
    assert rewrite(added, Sections.QUESTDB) == data


def test_what_our_sections_hold_is_taken_along(tmp_path):
    rows = pa.table({"a": pa.array(range(1000)), "text": [f"a longer text than eight bytes {i}" for i in range(1000)]})
    path = tmp_path / "rows.parquet"
    pq.write_table(rows, path, row_group_size=300, write_page_index=True, max_rows_per_page=100, store_schema=False)
    stored = path.read_bytes()
    data = build_sidecar(lambda start, length: stored[start : start + length], len(stored), name="rows", etag="e1")
    assert rewrite(Sidecar.of(data)) == data
    plain = build_sidecar(lambda s, n: stored[s : s + n], len(stored), name="rows", extensions=False)
    assert rewrite(Sidecar.of(data), Sections.QUESTDB) == plain


def with_flags(data, *, header=0, footer=0, section=b""):
    """A sidecar whose flags claim more features, and whose footer has one more section."""
    sidecar = Sidecar.of(data)
    raw = bytearray(data[: sidecar.footer.crc_offset]) + section
    raw[8:16] = layout.U64.pack(sidecar.header.feature_flags | header)
    flags = sidecar.footer.offset + 32
    raw[flags : flags + 8] = layout.U64.pack(sidecar.footer.feature_flags | footer)
    raw[:8] = layout.U64.pack(len(raw) + 8)
    return bytes(raw) + layout.U32_PAIR.pack(zlib.crc32(raw[8:]), sidecar.footer.length + len(section))


def test_optional_sections_of_a_later_version_are_dropped(golden_simple):
    newer = with_flags(golden_simple, header=1 << 20, footer=1 << 9, section=b"what nobody understands yet")
    assert rewrite(Sidecar.of(newer)) == golden_simple


@pytest.mark.parametrize("where", ["header", "footer"])
def test_required_features_of_a_later_version_are_refused(golden_simple, where):
    with pytest.raises(Incompatible, match="unknown required features"):
        Sidecar.of(with_flags(golden_simple, **{where: 1 << 40}), verify=False)


def test_an_order_that_was_listed_becomes_a_flag():
    """Files from before SORTING_IS_DTS_ASC list the one column that the flag stands for."""
    today = (GOLDEN / "pm/f_sorting_is_dts_asc.pm").read_bytes()
    before = Sidecar.of(today)
    first = layout.HEADER_SIZE + before.column_count * layout.DESCRIPTOR_SIZE
    listed = bytearray(today[:first] + layout.U32.pack(before.header.designated_timestamp) + today[first:])
    listed[8:16] = layout.U64.pack(before.header.feature_flags & ~layout.Feature.SORTING_IS_DTS_ASC)
    listed[20:24] = layout.U32.pack(1)
    for position in range(before.column_count):
        place = layout.HEADER_SIZE + position * layout.DESCRIPTOR_SIZE
        listed[place : place + 8] = layout.U64.pack(layout.U64.unpack_from(listed, place)[0] + 4)
    old = _sealed(_with_blocks_moved(bytes(listed), before, 4))
    assert Sidecar.of(old).sorting == before.sorting
    assert old != today
    assert rewrite(Sidecar.of(old)) == today


def _with_blocks_moved(data, before, by):
    """Blocks begin at multiples of 8: padding takes what an insertion before them has shifted."""
    start = int(before.entries[0]) * layout.WORD
    padding = bytes(layout.aligned(start + by) - start - by)
    moved = bytearray(data[: start + by] + padding + data[start + by :])
    total = by + len(padding)
    place = before.footer.entries_offset + total
    for group in range(before.row_group_count):
        entry = int(before.entries[group]) + total // layout.WORD
        moved[place + 4 * group : place + 4 * group + 4] = layout.U32.pack(entry)
    return bytes(moved)


def _sealed(data):
    """The same bytes with size and CRC put right."""
    sized = layout.U64.pack(len(data)) + data[8:-8]
    return sized + layout.U32.pack(zlib.crc32(sized[8:])) + data[-4:]


@given(lost=st.integers(2**20, 2**40))
def test_a_bound_outside_of_the_file_is_left_out(lost):
    data = (GOLDEN / "pm/d_ool_stats.pm").read_bytes()
    sidecar = Sidecar.of(data)
    group, column = np.argwhere((sidecar.chunks["stat_flags"] & 3) == 1)[0].tolist()
    place = (int(sidecar.entries[group]) + 1) * 8 + column * layout.CHUNK_SIZE + 48
    astray = _sealed(data[:place] + layout.U64.pack(lost << 16 | 12) + data[place + 8 :])
    assert check_bytes(astray) != []
    written = rewrite(Sidecar.of(astray))
    assert check_bytes(written) == []
    assert not Sidecar.of(written).column(column).stored_minimum.present[group]


@pytest.fixture
def golden_simple():
    return (GOLDEN / "pm/a_simple_3col_2rg.pm").read_bytes()
