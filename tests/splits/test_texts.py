"""Text that repeats becomes codes of sorted values, and no row changes by that."""

from __future__ import annotations

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from windrow.splits.texts import by_row_group, coded, plain_schema, values_of, with_codes

words = st.one_of(st.none(), st.sampled_from(["a", "b", "\x00", "é", "zz"]), st.text(max_size=3))
KINDS = [pa.string(), pa.large_string(), pa.string_view(), pa.dictionary(pa.int8(), pa.string())]
KINDS += [pa.dictionary(pa.uint32(), pa.large_string())]


def column(values, kind, cut):
    return pa.chunked_array([pa.array(part, kind) for part in (values[:cut], values[cut:])], kind)


@given(st.lists(words, max_size=40), st.sampled_from(KINDS), st.integers(0, 40), st.integers(1, 9))
def test_the_rows_stay_and_dictionaries_hold_what_they_must(values, kind, cut, row_group_rows):
    rows = by_row_group(coded(pa.table({"text": column(values, kind, cut)})), row_group_rows)
    found = rows["text"]
    assert found.to_pylist() == values
    assert set(values_of(found).to_pylist()) - {None} == set(values) - {None}
    if pa.types.is_dictionary(found.type):
        assert [len(chunk) for chunk in found.chunks[:-1]] == [row_group_rows] * (found.num_chunks - 1)
        for chunk in found.chunks:
            assert chunk.dictionary.to_pylist() == sorted(set(chunk.to_pylist()) - {None})


@given(st.lists(words, max_size=20), st.sampled_from(KINDS))
def test_a_batch_with_codes_is_the_same_batch(values, kind):
    batch = pa.record_batch(
        {"text": pa.array(values, kind), "number": pa.array(range(len(values)))}, metadata={"a": "b"}
    )
    found = with_codes(batch)
    assert found.to_pylist() == batch.to_pylist()
    assert found.schema.metadata == {b"a": b"b"}


def test_a_dictionary_that_holds_nulls_and_values_twice_is_cleaned():
    strange = pa.DictionaryArray.from_arrays(pa.array([0, 1, 2, 3, None, 0]), pa.array(["b", "a", None, "b"]))
    found = coded(pa.table({"text": strange}))["text"]
    assert found.to_pylist() == ["b", "a", None, "b", None, "b"]
    assert found.chunk(0).dictionary.to_pylist() == ["a", "b"]


@pytest.mark.parametrize(
    ("values", "is_coded"), [(["x"], True), ([None] * 4, True), (["x", "y"] * 3, True), (list("abcdef"), False)]
)
def test_text_is_coded_where_it_repeats(values, is_coded):
    found = coded(pa.table({"text": values}).cast(pa.schema([("text", pa.string())])))["text"]
    assert pa.types.is_dictionary(found.type) == is_coded


def test_text_that_repeats_only_in_other_row_groups_is_plain():
    rows = coded(pa.table({"text": list("abcdef" * 4)}))
    assert pa.types.is_dictionary(by_row_group(rows, 24)["text"].type)
    assert by_row_group(rows, 6)["text"].type == pa.string()


def test_other_columns_keep_their_type_and_readers_see_no_codes():
    numbers = pa.array([7, 7, 8]).dictionary_encode()
    rows = pa.table({"text": ["x", "x", "y"], "number": [1, 2, 3], "coded": numbers})
    prepared = by_row_group(coded(rows), 2)
    assert prepared["number"].type == pa.int64()
    assert prepared["coded"].to_pylist() == [7, 7, 8]
    assert plain_schema(prepared.schema).types == [pa.string(), pa.int64(), pa.int64()]
