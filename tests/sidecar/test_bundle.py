"""A bundle answers as the sidecars that it is made of."""

from __future__ import annotations

import io

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st

from windrow.model.predicate import And, Comparison, In, IsNull, Op
from windrow.sidecar import Sidecar
from windrow.sidecar.build import build_sidecar
from windrow.sidecar.bundle import Bundle, likeness
from windrow.sidecar.granules import first_keys
from windrow.sidecar.pruning import SidecarPruner
from windrow.sidecar.restore import restore_chunks

ROWS = st.lists(
    st.tuples(st.integers(-50, 50), st.none() | st.text("abcdefghij", max_size=14), st.floats(width=64)),
    min_size=1,
    max_size=12,
)


def keys_of(numbers):
    """What granules of two rows start with, by row group of four."""
    groups = [numbers[first : first + 4] for first in range(0, len(numbers), 4)]
    return [[first_keys(0, [number.to_bytes(8, "little", signed=True) for number in group[::2]])] for group in groups]


def sidecar_of(rows, name="file"):
    rows = sorted(rows, key=lambda row: row[0])
    table = pa.table(
        {
            "number": pa.array([row[0] for row in rows], pa.int64()),
            "text": pa.array([row[1] for row in rows], pa.string()),
            "float": pa.array([row[2] for row in rows], pa.float64()),
        }
    )
    sink = io.BytesIO()
    pq.write_table(table, sink, row_group_size=4, max_rows_per_page=2, write_page_index=True)
    data = sink.getvalue()
    keys = keys_of([row[0] for row in rows])
    return Sidecar.of(build_sidecar(lambda at, size: data[at : at + size], len(data), name=name, keys=keys), name=name)


PREDICATES = [
    Comparison("number", Op.GREATER, 20),
    Comparison("text", Op.EQUAL, "abc"),
    In("number", (1, 2, 3)),
    IsNull("text"),
    And((Comparison("float", Op.LESS, 0.5), Comparison("text", Op.GREATER_OR_EQUAL, "e"))),
]


@given(st.lists(ROWS, min_size=1, max_size=6), st.sampled_from(PREDICATES))
def test_a_bundle_is_pruned_and_restored_as_its_sidecars_are(files, predicate):
    sidecars = [sidecar_of(rows, f"file {number}") for number, rows in enumerate(files)]
    assert len({likeness(each) for each in sidecars}) == 1
    bundle, pruner = Bundle(sidecars), SidecarPruner(predicate)
    expected = [pruner.prune(each) for each in sidecars]
    found = pruner.prune(bundle)
    assert found.tolist() == np.concatenate(expected).tolist()
    assert bundle.owners.tolist() == [n for n, each in enumerate(sidecars) for _ in range(each.row_group_count)]
    assert bundle.groups.tolist() == [n for each in sidecars for n in range(each.row_group_count)]
    assert bundle.row_counts.tolist() == [n for each in sidecars for n in each.row_counts.tolist()]
    masks = [each.kept for each in pruner.prune_granules(bundle, found)]
    single = [
        each.kept
        for kept, sidecar in zip(expected, sidecars, strict=True)
        for each in pruner.prune_granules(sidecar, kept)
    ]
    assert [mask.tolist() for mask in masks] == [mask.tolist() for mask in single]


@given(st.lists(ROWS, min_size=1, max_size=6))
def test_records_and_the_bounds_that_they_point_to_are_the_same(files):
    sidecars = [sidecar_of(rows) for rows in files]
    bundle = Bundle(sidecars)
    together = restore_chunks(bundle)
    apart = [(each, restore_chunks(each)) for each in sidecars]
    offsets = [name for name in together.dtype.names if name in ("min_offset", "max_offset")]
    start = 0
    for sidecar, chunks in apart:
        mine = together[start : start + len(chunks)]
        start += len(chunks)
        for name in chunks.dtype.names:
            if name not in offsets:
                assert mine[name].tolist() == chunks[name].tolist(), name
        for side in ("min", "max"):
            assert bounds(bundle, mine, side) == bounds(sidecar, chunks, side)


def bounds(sidecar, chunks, side):
    spans = zip(chunks[f"{side}_offset"].ravel().tolist(), chunks[f"{side}_length"].ravel().tolist(), strict=True)
    return [bytes(sidecar.buffer[offset : offset + length]) for offset, length in spans]


def test_sidecars_of_other_columns_are_not_alike():
    one = sidecar_of([(1, "a", 0.0)])
    sink = io.BytesIO()
    pq.write_table(pa.table({"number": [1]}), sink)
    data = sink.getvalue()
    other = Sidecar.of(build_sidecar(lambda at, size: data[at : at + size], len(data), name="other"))
    assert likeness(one) != likeness(other)


@pytest.mark.parametrize("shape", ["without our sections", "wide"])
def test_some_sidecars_stay_alone(shape):
    columns = 600 if shape == "wide" else 1
    sink = io.BytesIO()
    pq.write_table(pa.table({f"c{n}": list(range(40)) for n in range(columns)}), sink, row_group_size=2)
    data = sink.getvalue()
    made = build_sidecar(lambda at, size: data[at : at + size], len(data), name="x", extensions=shape == "wide")
    sidecar = Sidecar.of(made)
    if shape == "wide" and sidecar.column_bounds(0) is None:
        pytest.skip("not wide enough to have bounds by column")
    assert likeness(sidecar) is None
