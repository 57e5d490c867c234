"""Splits of a table are merged: checked before, verified after, described as the split writer describes its own."""

import json
import subprocess
import sys

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from windrow.cli.main import run
from windrow.errors import Damaged, InvalidInput, InvariantViolation, NotFound, StorageError
from windrow.merging import splits as merging
from windrow.merging.merge import MergeOptions
from windrow.merging.output import Layout
from windrow.merging.splits import merge_splits
from windrow.model.ordering import is_sorted
from windrow.model.scope import CompactionScope
from windrow.model.settings import TableSettings
from windrow.model.split import SplitMetadata
from windrow.model.window import Window
from windrow.parquet.footer import read_footer
from windrow.sidecar import Sidecar
from windrow.sidecar.check import check_against, check_bytes
from windrow.sidecar.layout import StatFlag
from windrow.splits.granule_keys import granule_keys
from windrow.splits.writer import SplitName, write_split
from windrow.splits.zone_maps import zone_maps
from windrow.storage import open_store

SETTINGS = TableSettings.of(sort="metric|host|timestamp&region/V2")
SCOPE = CompactionScope("uid", "default", 0, 0, SETTINGS.sort.canonical(), 900)
WINDOW = Window.of(1_700_000_100, 900)
FIELD_IDS = {name: place for place, name in enumerate(("metric", "host", "timestamp", "value", "region", "late"), 1)}


def points(seed=0, count=2000, window=WINDOW, **more):
    rng = np.random.default_rng(seed)
    return pa.table(
        {
            "metric": [f"m{n}" for n in rng.integers(0, 5, count)],
            "host": pa.array([f"h{n:02d}" for n in rng.integers(0, 20, count)], mask=rng.random(count) < 0.1),
            "timestamp": pa.array(window.start * 1000 + rng.integers(0, 900_000, count)).cast(pa.timestamp("ms")),
            "value": rng.normal(size=count),
            "region": [f"r{n}" for n in rng.integers(0, 3, count)],
            **more,
        }
    )


@pytest.fixture
def store():
    return open_store("memory://")


def written(store, count=3, **changes):
    arguments = {"settings": SETTINGS, "scope": SCOPE, "window": WINDOW, "field_ids": FIELD_IDS, **changes}
    return [
        write_split(store, points(seed), name=SplitName("metrics", f"in{seed}", "c1", 1), **arguments)
        for seed in range(count)
    ]


def name(number):
    return SplitName("metrics", f"out{number}", "c2", 2)


def keys(store):
    return sorted(info.key for info in store.list())


def table_of(store, split):
    return pq.read_table(pa.BufferReader(store.get(split.key)))


def test_a_merged_split_says_what_the_metastore_says(store):
    inputs = written(store)
    (split,) = merge_splits(store, inputs, SETTINGS, name)
    table = table_of(store, split)
    assert split.row_count == table.num_rows == 6000
    assert (split.generation, split.replaces, split.window) == (1, ("in0", "in1", "in2"), WINDOW)
    assert split.zones == zone_maps(table, SETTINGS.sort)
    assert is_sorted(table, SETTINGS.sort)
    pairs = read_footer(store.get(split.key), name="out").key_value
    said = SplitMetadata.from_key_value(
        pairs, key=split.key, size_bytes=split.size_bytes, etag=split.etag, digest=split.digest
    )
    assert said.to_dict() | {"sidecar": None} == split.to_dict() | {"sidecar": None}
    assert [field.metadata[b"PARQUET:field_id"] for field in table.schema] == [b"1", b"2", b"3", b"5", b"4"]


def test_the_file_declares_its_order_and_its_pages_are_granules(store):
    (split,) = merge_splits(store, written(store), SETTINGS, name, MergeOptions(layout=Layout(4096, 1024)))
    footer = read_footer(store.get(split.key), name="out")
    assert [tuple(column) for column in footer.row_group_sorting[0]] == [
        (0, False, False),
        (1, False, False),
        (2, True, True),
    ]
    assert footer.row_group_rows.tolist() == [4096, 1904]
    sidecar = Sidecar.of(store.get(split.sidecar.key), name="pm")
    assert sidecar.extensions.granules(0).rows.tolist() == [1024] * 4
    assert sidecar.extensions.granules(1).rows.tolist() == [1024, 880]
    expected = granule_keys(table_of(store, split), SETTINGS.sort, row_group_rows=4096, granule_rows=1024)
    for group in range(2):
        found = sidecar.extensions.granules(group).keys
        assert [key.values() for key in found] == [key.values() for key in expected[group]]


def test_the_sidecar_agrees_with_the_file(store):
    for split in merge_splits(store, written(store), SETTINGS, name, MergeOptions(outputs=3)):
        data, file = store.get(split.sidecar.key), store.get(split.key)
        assert check_bytes(data) == []
        assert check_against(Sidecar.of(data, name="pm"), read_footer(file, name="out"), len(file)) == []


def test_the_command_that_checks_sidecars_finds_nothing(tmp_path):
    store = open_store(str(tmp_path))
    for split in merge_splits(store, written(store), SETTINGS, name, MergeOptions(outputs=2)):
        paths = [str(tmp_path / split.sidecar.key), "--parquet", str(tmp_path / split.key)]
        assert run(["pm", "check", *paths]) == 0


def test_a_sidecar_that_is_gone_can_be_built_again(store):
    inputs = written(store)
    store.delete(inputs[0].sidecar.key)
    assert merge_splits(store, inputs, SETTINGS, name)[0].row_count == 6000


def test_generations_go_up_and_several_outputs_share_them(store):
    first = merge_splits(store, written(store), SETTINGS, name, MergeOptions(outputs=2))
    again = merge_splits(store, first, SETTINGS, lambda number: SplitName("metrics", f"again{number}", "c3", 3))
    assert [split.generation for split in (*first, *again)] == [1, 1, 2]
    assert again[0].replaces == ("out0", "out1")


def test_columns_that_came_later_are_null_before(store):
    inputs = written(store, 1)
    late = points(9).append_column("late", pa.array([1] * 2000))
    inputs.append(write_split(store, late, SETTINGS, SCOPE, WINDOW, SplitName("metrics", "late", "c1", 1), FIELD_IDS))
    (split,) = merge_splits(store, inputs, SETTINGS, name, verify="full")
    assert table_of(store, split)["late"].null_count == 2000


def test_points_without_a_time_are_merged_in_their_window(store):
    window, empty = Window.overflow_of(900), points(1).set_column(2, "timestamp", pa.nulls(2000, pa.timestamp("ms")))
    inputs = [
        write_split(store, empty, SETTINGS, SCOPE, window, SplitName("metrics", f"null{n}", "c1", 1), FIELD_IDS)
        for n in range(2)
    ]
    (split,) = merge_splits(store, inputs, SETTINGS, name)
    assert (split.time_min, split.time_max, split.zones[2].null_count) == (None, None, 4000)


def test_splits_of_other_scopes_and_windows_are_refused(store):
    inputs, other = written(store), Window.of(WINDOW.end, 900)
    scope = CompactionScope("other", "default", 0, 0, SETTINGS.sort.canonical(), 900)
    strange = [write_split(store, points(4), SETTINGS, scope, WINDOW, SplitName("metrics", "else", "c1", 1), FIELD_IDS)]
    with pytest.raises(InvariantViolation, match="CS-1"):
        merge_splits(store, [*inputs, *strange], SETTINGS, name)
    late = write_split(
        store, points(3, window=other), SETTINGS, SCOPE, other, SplitName("metrics", "next", "c1", 1), FIELD_IDS
    )
    with pytest.raises(InvariantViolation, match="CS-2"):
        merge_splits(store, [*inputs, late], SETTINGS, name)
    with pytest.raises(InvalidInput, match=r"in0.parquet: stands among the inputs of the merge twice"):
        merge_splits(store, [inputs[0], inputs[0]], SETTINGS, name)
    with pytest.raises(InvalidInput, match="no splits"):
        merge_splits(store, [], SETTINGS, name)


@pytest.mark.parametrize(
    ("harm", "message"),
    [
        (lambda store, one, two: store.put(one.key, store.get(one.key)[:-100]), "cut short"),
        (lambda store, one, two: store.put(one.key, store.get(two.key)), "bytes where|another split's file"),
        (lambda store, one, two: store.delete(one.key), "in0"),
        (lambda store, one, two: store.put(one.sidecar.key, store.get(two.sidecar.key)), "describes another file"),
        (lambda store, one, two: store.put(one.sidecar.key, store.get(one.sidecar.key)[:40]), "in0"),
    ],
    ids=["cut short", "replaced", "gone", "another's sidecar", "sidecar cut short"],
)
def test_inputs_that_are_not_what_was_written_are_refused_and_nothing_is_left_behind(store, harm, message):
    inputs = written(store)
    harm(store, inputs[0], inputs[1])
    before = keys(store)
    with pytest.raises((Damaged, NotFound, StorageError), match=message) as caught:
        merge_splits(store, inputs, SETTINGS, name)
    assert "in0" in str(caught.value)
    assert keys(store) == before


class _Full:
    """A store that has room for one more object."""

    def __init__(self, store):
        self._store, self._left = store, 2

    def __getattr__(self, verb):
        return getattr(self._store, verb)

    def put(self, key, data):
        self._left -= 1
        if self._left < 0:
            raise StorageError(f"{key}: no space left")
        return self._store.put(key, data)


def test_when_an_output_cannot_be_stored_those_before_it_are_left_to_garbage_collection(store):
    inputs = written(store)
    before = keys(store)
    with pytest.raises(StorageError, match="no space left"):
        merge_splits(_Full(store), inputs, SETTINGS, name, MergeOptions(outputs=3))
    left = set(keys(store)) - set(before)
    assert {key.rpartition("/")[2] for key in left} == {"out0.parquet", "_out0.pm"}


@pytest.mark.parametrize("verify", ["sample", "full"])
@pytest.mark.parametrize(
    ("rule", "harm"),
    [
        ("MC-2", lambda table: table.set_column(4, "value", pa.array(np.arange(table.num_rows) * 1.0))),
        (
            "MC-2",
            lambda table: table.set_column(4, "value", table["value"].take(pa.array(np.arange(table.num_rows)[::-1]))),
        ),
        ("MC-3", lambda table: table.take(pa.array(np.arange(table.num_rows)[::-1]))),
    ],
    ids=["other values", "values of other rows", "other order"],
)
def test_an_output_that_differs_from_its_inputs_is_never_stored(store, monkeypatch, verify, rule, harm):
    inputs = written(store)
    finish = merging.Output.finish

    def spoiled(output, key_value):
        table = harm(pq.read_table(pa.BufferReader(bytes(finish(output, key_value)))))
        sink = pa.BufferOutputStream()
        pq.write_table(table, sink)
        return memoryview(sink.getvalue())

    monkeypatch.setattr(merging.Output, "finish", spoiled)
    before = keys(store)
    with pytest.raises(InvariantViolation, match=rule):
        merge_splits(store, inputs, SETTINGS, name, verify=verify)
    assert keys(store) == before


def test_every_value_is_compared_unless_a_sample_is_wanted(store, monkeypatch):
    inputs = written(store)
    finish = merging.Output.finish

    def touched(output, key_value):
        table = pq.read_table(pa.BufferReader(bytes(finish(output, key_value))))
        values = table["value"].to_pylist()
        values[5000] += 1.0
        sink = pa.BufferOutputStream()
        pq.write_table(table.set_column(4, "value", pa.array(values)), sink)
        return memoryview(sink.getvalue())

    monkeypatch.setattr(merging.Output, "finish", touched)
    with pytest.raises(InvariantViolation, match="MC-2.*column 'value'"):
        merge_splits(store, inputs, SETTINGS, name)
    assert merge_splits(store, inputs, SETTINGS, name, verify="sample")
    assert merge_splits(store, inputs, SETTINGS.changed(verify="sample"), name)


def test_bookkeeping_columns_are_not_compared(store, monkeypatch):
    inputs = written(store)
    finish = merging.Output.finish

    def touched(output, key_value):
        table = pq.read_table(pa.BufferReader(bytes(finish(output, key_value))))
        sink = pa.BufferOutputStream()
        pq.write_table(table.set_column(4, "value", pa.array([0.0] * table.num_rows)), sink)
        return memoryview(sink.getvalue())

    monkeypatch.setattr(merging.Output, "finish", touched)
    assert merge_splits(store, inputs, SETTINGS, name, verify="full", bookkeeping=["value"])


MERGE_ALONE = """
import json
import sys
from windrow.merging.splits import merge_splits
from windrow.model.settings import TableSettings
from windrow.model.split import SplitMetadata
from windrow.splits.writer import SplitName
from windrow.storage import open_store
splits = [SplitMetadata.from_dict(split) for split in json.loads(sys.argv[2])]
settings = TableSettings.of(sort=splits[0].scope.sort_schema)
merge_splits(open_store(sys.argv[1]), splits, settings, lambda _: SplitName("metrics", "out", "c2", 2))
print(*({"pandas", "duckdb", "sqlalchemy", "sqlglot", "obstore", "pyspark", "polars"} & set(sys.modules)))
"""


def test_a_process_that_merges_loads_nothing_that_a_merge_has_no_use_for(tmp_path):
    inputs = json.dumps([split.to_dict() for split in written(open_store(str(tmp_path)))])
    done = subprocess.run(
        [sys.executable, "-c", MERGE_ALONE, str(tmp_path), inputs], stdout=subprocess.PIPE, check=True
    )
    assert done.stdout.split() == []


def test_threads_change_nothing(store):
    inputs = written(store)
    options = {"outputs": 2, "layout": Layout(1024, 256)}
    alone = [store.get(split.key) for split in merge_splits(store, inputs, SETTINGS, name, MergeOptions(**options))]
    both = merge_splits(store, inputs, SETTINGS, name, MergeOptions(threads=2, **options))
    assert [store.get(split.key) for split in both] == alone


def distinct_counts(store, split):
    """Of each column and row group, as the file and its sidecar have them; None where there is none."""
    metadata = pq.read_metadata(pa.BufferReader(store.get(split.key)))
    chunks = Sidecar.of(store.get(split.sidecar.key), name="pm").chunks
    there = chunks["stat_flags"] & StatFlag.DISTINCT_COUNT_PRESENT != 0
    found = {}
    for group, place in np.ndindex(metadata.num_row_groups, metadata.num_columns):
        chunk = metadata.row_group(group).column(place)
        own = chunk.statistics.distinct_count if chunk.statistics.has_distinct_count else None
        assert own == (int(chunks["distinct_count"][group, place]) if there[group, place] else None)
        found[chunk.path_in_schema, group] = own
    return found


@pytest.mark.parametrize("outputs", [1, 3])
def test_files_and_sidecars_have_the_distinct_counts_of_dictionaries(store, outputs):
    first = merge_splits(store, written(store), SETTINGS, name, MergeOptions(outputs=outputs))
    again = merge_splits(store, first, SETTINGS, lambda number: SplitName("metrics", f"again{number}", "c3", 3))
    for split in (*first, *again):
        table = table_of(store, split)
        for (column, _), count in distinct_counts(store, split).items():
            assert count == (
                len(table[column].drop_null().unique()) if column in ("metric", "host", "region") else None
            )


def test_row_groups_that_are_copied_keep_their_distinct_counts(store):
    apart = [
        points(seed)
        .set_column(0, "metric", pa.array([f"m{seed}"] * 2000))
        .append_column("late", pa.array([1.5] * 2000))
        for seed in range(2)
    ]
    inputs = [
        write_split(store, rows, SETTINGS, SCOPE, WINDOW, SplitName("metrics", f"in{place}", "c1", 1), FIELD_IDS)
        for place, rows in enumerate(apart)
    ]
    fine, coarse = (MergeOptions(layout=Layout(2000, granule)) for granule in (500, 2000))
    once = [
        merge_splits(store, [split], SETTINGS, lambda _, at=at: SplitName("metrics", f"one{at}", "c2", 2), fine)[0]
        for at, split in enumerate(inputs)
    ]
    (both,) = merge_splits(store, once, SETTINGS, name, coarse)
    found = distinct_counts(store, both)
    assert (found["metric", 0], found["metric", 1], found["late", 0]) == (1, 1, 1)


def test_large_splits_have_distinct_counts_when_they_are_written(store):
    rows = points(count=40_000)
    split = write_split(store, rows, SETTINGS, SCOPE, WINDOW, SplitName("metrics", "large", "c1", 1), FIELD_IDS)
    found = distinct_counts(store, split)
    assert {name: found[name, 0] for name in ("metric", "host", "region")} == {"metric": 5, "host": 20, "region": 3}
