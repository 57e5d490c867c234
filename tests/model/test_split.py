"""A split says the same of itself in the metastore, in plain values and in the file."""

from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from windrow.errors import Damaged
from windrow.model.scope import CompactionScope
from windrow.model.split import SidecarLocation, SplitMetadata, split_key
from windrow.model.window import Window
from windrow.model.zones import NULL, ColumnZone, SortColumnValue

texts = st.text(st.characters(exclude_categories=["Cs"]), max_size=20)
int64s = st.integers(-(2**63), 2**63 - 1)
values = st.one_of(st.none(), texts, st.integers(-(2**63), 2**64 - 1), st.floats(allow_nan=False)).map(
    SortColumnValue.of
)
zones = st.builds(ColumnZone, values, values, st.integers(0, 2**40), st.one_of(st.none(), texts))
windows = st.one_of(
    st.none(), st.integers(-(10**6), 10**6).map(lambda n: Window(n * 900, 900)), st.just(Window.overflow_of(900))
)


@st.composite
def splits(draw):
    window = draw(windows)
    return SplitMetadata(
        split_id=draw(texts),
        scope=CompactionScope(
            draw(texts), draw(texts), draw(int64s), draw(int64s), draw(texts), 0 if window is None else 900
        ),
        window=window,
        key=draw(texts),
        size_bytes=draw(st.integers(0, 2**62)),
        row_count=draw(st.integers(0, 2**62)),
        created_at=draw(int64s),
        commit_id=draw(texts),
        etag=draw(st.one_of(st.none(), texts)),
        time_min=draw(st.one_of(st.none(), int64s)),
        time_max=draw(st.one_of(st.none(), int64s)),
        zones=tuple(draw(st.lists(zones, max_size=3))),
        sidecar=draw(st.one_of(st.none(), st.builds(SidecarLocation, texts, int64s, int64s))),
        generation=draw(st.integers(0, 9)),
        replaces=tuple(draw(st.lists(texts, max_size=3))),
    )


@given(splits())
def test_plain_values_give_the_same_split_back(split):
    assert SplitMetadata.from_dict(json.loads(json.dumps(split.to_dict()))) == split


@given(splits())
def test_the_file_knows_all_but_its_own_size_place_and_sidecar(split):
    told = SplitMetadata.from_key_value(
        split.to_key_value(), key=split.key, size_bytes=split.size_bytes, etag=split.etag
    )
    assert told.to_dict() | {"sidecar": None} == split.to_dict() | {"sidecar": None}


def test_every_field_of_the_adr_is_in_the_file():
    names = {name.removeprefix("windrow.") for name in example().to_key_value()}
    adr = "window_start window_duration_secs sort_schema schema_column_min_values schema_column_max_values"
    scope = "index_uid source_id partition_id doc_mapping_uid sort_schema window_duration"
    assert {*adr.split(), *scope.split(), "schema_column_regexes"} <= names


def example():
    scope = CompactionScope("t", "default", 0, 0, "host|timestamp/V2", 900)
    zone = ColumnZone(SortColumnValue.of("a"), SortColumnValue.of("b"), 1, "a|b")
    return SplitMetadata(
        "s", scope, Window(0, 900), "k", 1, 2, 3, "c", zones=(zone, ColumnZone(NULL, NULL, 2)), time_min=0, time_max=1
    )


def test_bounds_are_positional():
    split = example()
    assert split.schema_column_min_values == (SortColumnValue.of("a"), NULL)
    assert split.schema_column_max_values == (SortColumnValue.of("b"), NULL)
    assert split.schema_column_regexes == ("a|b", None)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"windrow.split_id": None}, "no windrow.split_id; Windrow did not write this file"),
        ({"windrow.row_count": "many"}, "cannot be read"),
        ({"windrow.window_start": "7"}, "cannot be read"),
        ({"windrow.schema_column_min_values": "[]"}, "cannot be read"),
        ({"windrow.schema_column_min_values": "5"}, "cannot be read"),
    ],
)
def test_a_file_that_lies_is_damaged_and_named(change, message):
    pairs = example().to_key_value() | change
    with pytest.raises(Damaged, match=f"^lake/x.parquet: .*{message}"):
        SplitMetadata.from_key_value(
            {k: v for k, v in pairs.items() if v is not None}, key="lake/x.parquet", size_bytes=1
        )


def test_the_key_tells_tenant_and_window():
    assert split_key("m", 5, Window(-900, 900), "id") == "m/partition_id=5/window_start=-900/id.parquet"


def test_scopes_say_in_what_they_differ():
    one, two = example().scope, CompactionScope("t", "other", 0, 0, "host|timestamp/V2", 300)
    assert one.differences(two) == ["source_id: 'default' and 'other'", "window_duration: 900 and 300"]
    assert one.differences(one) == []
