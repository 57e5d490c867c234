"""Each column is encoded in the way that a sample of it found smallest."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from windrow.errors import InvalidInput
from windrow.model.points import is_text
from windrow.splits.encodings import choose_encodings
from windrow.splits.texts import by_row_group, coded

ROWS = 40_000


def random(seed=7):
    return np.random.default_rng(seed)


def runs(values, length):
    return np.repeat(values, length)[:ROWS]


def series():
    """Every kind of column, and how it is best written."""
    walk = np.cumsum(random().normal(size=ROWS))
    return {
        "few texts in runs": (runs([f"host-{number}" for number in range(400)], 100), "dictionary"),
        "texts in short runs": (runs([f"pod-{one:05d}" for one in random().integers(0, 2000, ROWS)], 3), "dictionary"),
        "few texts anywhere": ([f"host-{number}" for number in random().integers(0, 400, ROWS)], "dictionary"),
        "a text once": ([f"{number:016x}" for number in random().integers(0, 2**62, ROWS)], "PLAIN"),
        "few floats": (random().choice([0.1, 0.25, 19.99], ROWS), "dictionary"),
        "constant floats": (np.full(ROWS, 1.5), "PLAIN"),
        "floats that wander": (walk, "BYTE_STREAM_SPLIT"),
        "single floats that wander": (walk.astype(np.float32), "BYTE_STREAM_SPLIT"),
        "floats in runs of their own": (runs(random().random(2000), 20), "PLAIN"),
        "a counter": (np.cumsum(random().integers(0, 100, ROWS)), "DELTA_BINARY_PACKED"),
        "a grid of times": (pa.array(np.arange(ROWS) * 300).cast(pa.timestamp("s")), "DELTA_BINARY_PACKED"),
        "random integers": (random().integers(-(2**62), 2**62, ROWS), "PLAIN"),
        "few integers": (random().choice([10**12, 10**14, -5], ROWS), "dictionary"),
        "booleans": (random().random(ROWS) > 0.5, "PLAIN"),
        "nulls": (pa.nulls(ROWS, pa.float64()), "PLAIN"),
        "few bytes": (pa.array(runs([b"x" * 40, b"y" * 40], ROWS // 2)).cast(pa.binary()), "PLAIN"),
        "few integers of a dictionary": (
            pa.array(random().choice([10**12, -5], ROWS)).dictionary_encode(),
            "dictionary",
        ),
    }


def prepared(table, row_group_rows=128 * 1024):
    """The table as the writer has it: text by codes, where it repeats."""
    return by_row_group(coded(table), row_group_rows)


def named(encodings, name):
    return "dictionary" if name in encodings["use_dictionary"] else encodings["column_encoding"].get(name, "PLAIN")


@pytest.mark.parametrize(("name", "values", "expected"), [(name, *case) for name, case in series().items()])
def test_what_fits_which_values(name, values, expected):
    assert named(choose_encodings(prepared(pa.table({name: values}))), name) == expected


def written(table, **encodings):
    sink = pa.BufferOutputStream()
    pq.write_table(table, sink, compression="zstd", compression_level=3, **encodings)
    return pq.ParquetFile(pa.BufferReader(sink.getvalue()))


def size(file, column=0):
    return file.metadata.row_group(0).column(column).total_compressed_size


@pytest.mark.parametrize("name", list(series()))
def test_the_choice_is_near_the_smallest(name):
    table = pa.table({name: series()[name][0]})
    others = ["PLAIN", "BYTE_STREAM_SPLIT", "DELTA_BINARY_PACKED"]
    sizes = [size(written(table, use_dictionary=True))]
    for encoding in others:
        try:
            sizes.append(size(written(table, use_dictionary=False, column_encoding={name: encoding})))
        except OSError:  # the type has no such encoding
            continue
    assert size(written(table, **choose_encodings(prepared(table)))) <= min(sizes) * 1.03 + ROWS / (
        3 if is_text(table.schema[0].type) else 16
    )


def test_the_file_is_encoded_as_chosen():
    table = pa.table({name: values for name, (values, _) in series().items()})
    file = written(table, **choose_encodings(prepared(table)))
    for place, (name, (_, expected)) in enumerate(series().items()):
        found = file.metadata.row_group(0).column(place).encodings
        assert ("RLE_DICTIONARY" if expected == "dictionary" else expected) in found, name
    assert file.read().equals(table.cast(file.schema_arrow))


def test_the_same_table_gives_the_same_choice():
    table = pa.table({name: values for name, (values, _) in series().items()})
    rechunked = pa.concat_tables([table.slice(0, 1), table.slice(1, 5000), table.slice(5001)])
    assert choose_encodings(prepared(rechunked)) == choose_encodings(prepared(table))


def test_a_dictionary_that_stops_growing_pays_in_a_large_row_group_only():
    texts = [f"{number * 2_654_435_761 % 2**32:08x}" for number in random().integers(0, 3000, ROWS)]
    table = pa.table({"id": texts})
    assert named(choose_encodings(prepared(table)), "id") == "dictionary"
    assert named(choose_encodings(prepared(table, row_group_rows=2000)), "id") == "PLAIN"


def test_columns_are_named_by_their_path():
    maps = pa.array([[("k", "v")]] * 100, pa.map_(pa.string(), pa.string()))
    table = pa.table({"service.name": ["api"] * 100, "attributes": maps, "inner": [{"a": [1]}] * 100})
    chosen = choose_encodings(prepared(table))
    assert chosen == {
        "use_dictionary": [
            "attributes.key_value.key",
            "attributes.key_value.value",
            "inner.a.list.element",
            "service.name",
        ],
        "column_encoding": {},
    }
    assert written(table, **chosen).read().equals(table)


def test_an_empty_table_is_encoded_as_usual():
    table = pa.table({"host": pa.array([], pa.string()), "value": pa.array([], pa.float64())})
    assert choose_encodings(prepared(table)) == {"use_dictionary": ["host"], "column_encoding": {}}
    assert choose_encodings(pa.table({})) == {"use_dictionary": [], "column_encoding": {}}


@pytest.mark.parametrize("wrong", [{"sample_rows": 31}, {"row_group_rows": 0}])
def test_a_sample_of_nothing_is_refused(wrong):
    with pytest.raises(InvalidInput, match="sample_rows=.*row_group_rows="):
        choose_encodings(pa.table({"a": [1]}), **wrong)


KINDS = [pa.int8(), pa.uint64(), pa.float16(), pa.float32(), pa.bool_(), pa.binary(2), pa.decimal128(9, 2)]
KINDS += [pa.date32(), pa.time64("us"), pa.timestamp("ns", "UTC"), pa.string_view(), pa.large_string(), pa.null()]
KINDS += [pa.decimal32(5, 1), pa.duration("ms"), pa.uuid()]
PLAIN_VALUES = {pa.binary(2): b"xy", pa.uuid(): b"0123456789abcdef", pa.null(): None, pa.bool_(): True}


@settings(deadline=None)
@given(st.sampled_from(KINDS), st.lists(st.booleans(), max_size=200))
def test_any_type_can_be_written_as_chosen(kind, present):
    text = "x" if pa.types.is_string_view(kind) or pa.types.is_large_string(kind) else 1
    value = PLAIN_VALUES.get(kind, text)
    table = pa.table({"column": pa.array([value if there else None for there in present], kind)})
    file = written(table, **choose_encodings(table, sample_rows=32))
    assert file.metadata.num_rows == table.num_rows
