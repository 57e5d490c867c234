"""Round trips: whatever is written, in one go or in updates, is read back as it was."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from windrow.sidecar import layout, writer
from windrow.sidecar.blocks import RowGroups, lay_blocks
from windrow.sidecar.inspect import describe_snapshot
from windrow.sidecar.reader import Sidecar

BOUND = st.one_of(
    st.none(),
    st.fixed_dictionaries({"hex": st.binary(min_size=1, max_size=40).map(bytes.hex), "exact": st.booleans()}),
)
U64 = st.integers(0, 2**64 - 1)
CHUNK = st.fixed_dictionaries(
    {
        "codec": st.integers(0, 7),
        "encodings": st.integers(0, 63),
        "num_values": U64,
        "byte_range_start": U64,
        "total_compressed": U64,
        "null_count": st.one_of(st.none(), U64),
        "distinct_count": st.one_of(st.none(), U64),
        "min": BOUND,
        "max": BOUND,
        "bloom_hex": st.one_of(st.none(), st.binary(min_size=1, max_size=70).map(bytes.hex)),
        "bloom_external": st.none(),
    }
)


@st.composite
def histories(draw: st.DrawFn) -> tuple[dict[str, Any], list[dict[str, Any]]]:
    """A new sidecar and what happens to it: replaced and added row groups, published or lost in a crash."""
    count = draw(st.integers(0, 4))
    group = st.fixed_dictionaries({"num_rows": U64, "chunks": st.lists(CHUNK, min_size=count, max_size=count)})
    names = draw(st.lists(st.text(max_size=8), min_size=count, max_size=count))
    created = {
        "columns": [{"name": name, "type": 26, "physical_type": 6} for name in names],
        "designated_timestamp": -1,
        "sorting_columns": draw(st.lists(st.integers(0, count - 1), max_size=3)) if count else [],
        "squash_tracker": draw(st.integers(-1, 9)),
        "bloom_columns": list(range(count)),
        "bloom_external": False,
        "row_groups": draw(st.lists(group, max_size=3)),
    }
    steps = [
        {
            "replaced": draw(group),
            "index": draw(st.integers(0, 3)),
            "added": draw(st.lists(group, max_size=2)),
            "lost": draw(st.booleans()),
        }
        for _ in range(draw(st.integers(0, 3)))
    ]
    return created, steps


def footer(number: int) -> dict[str, Any]:
    return {
        "parquet_footer_offset": 1_000 * (number + 1),
        "parquet_footer_length": 10,
        "unused_bytes": number,
        "seq_txn": number,
        "scratchpad": [{"code": number, "hex": "00"}],
    }


@settings(max_examples=60, deadline=None)
@given(history=histories())
def test_every_snapshot_of_a_history_is_what_was_written(
    history: tuple[dict[str, Any], list[dict[str, Any]]], make: SimpleNamespace
) -> None:
    created, steps = history
    data = make.create({**created, **footer(0)})
    groups, snapshots, anchor = list(created["row_groups"]), [], len(data)
    snapshots.append((0, list(groups)))
    for number, each in enumerate(steps, 1):
        after, replace = [*groups, *each["added"]], []
        if each["index"] < len(groups):
            after[each["index"]] = each["replaced"]
            replace = [{"index": each["index"], "row_group": each["replaced"]}]
        step = {
            **footer(number),
            "parse_anchor": anchor,
            "append_base": len(data),
            "replace": replace,
            "add": each["added"],
        }
        data = make.update(data, step)
        if not each["lost"]:
            groups, anchor = after, len(data)
            snapshots.append((number, list(groups)))
    for number, written in snapshots:
        sidecar = (
            Sidecar.of(data, parquet_size=1_000 * (number + 1) + 18) if anchor == len(data) or number == 0 else None
        )
        if sidecar is not None:
            assert sidecar.seq_txn == (number or 0)
            assert plain(sidecar) == written


def plain(sidecar: Sidecar) -> list[dict[str, Any]]:
    wanted = (
        "codec",
        "encodings",
        "num_values",
        "byte_range_start",
        "total_compressed",
        "null_count",
        "distinct_count",
        "bloom_hex",
        "bloom_external",
    )
    return [
        {
            "num_rows": group["num_rows"],
            "chunks": [
                {**{key: chunk[key] for key in wanted}, "min": chunk["min"], "max": chunk["max"]}
                for chunk in group["chunks"]
            ],
        }
        for group in describe_snapshot(sidecar)["row_groups"]
    ]


@pytest.mark.parametrize("base", [0, 1, 8, 77])
def test_blocks_start_at_the_first_multiple_of_eight(base: int) -> None:
    groups = RowGroups(np.array([1, 2], "<u8"), np.zeros((2, 3), layout.CHUNK))
    blocks = lay_blocks(groups, base)
    assert (blocks.entries * 8).tolist() == [layout.aligned(base), layout.aligned(base) + 200]
    assert base + len(blocks.data) == blocks.entries[-1] * 8 + 200


def test_without_row_groups_there_are_no_bytes_not_even_padding() -> None:
    assert len(lay_blocks(RowGroups(np.zeros(0, "<u8"), np.zeros((0, 3), layout.CHUNK)), 77).data) == 0


def test_more_bounds_than_are_copied_at_once(make: SimpleNamespace) -> None:
    count = 40
    bound = {"hex": "61" * 60_000, "exact": True}
    numbers = dict.fromkeys(
        ("codec", "encodings", "num_values", "byte_range_start", "total_compressed", "null_count", "distinct_count"), 0
    )
    chunk = {**numbers, "min": bound, "max": bound, "bloom_hex": None, "bloom_external": None}
    groups = make.groups([{"num_rows": 1, "chunks": [chunk] * count}], count)
    descriptors = np.zeros(count, layout.DESCRIPTOR)
    descriptors["physical_type"] = 6
    sidecar = Sidecar.of(writer.create(writer.Columns(["c"] * count, descriptors), groups, writer.SnapshotFields(1, 1)))
    assert {sidecar.column(i).maximum.values[0] for i in range(count)} == {b"a" * 60_000}
