"""Pages of flat columns, from any writer, decode to the values that pyarrow reads."""

import io
from itertools import chain

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from windrow.errors import Damaged
from windrow.parquet.chunk import chunk_starts
from windrow.parquet.footer import read_footer
from windrow.parquet.page_reader import Chunks, CodedRows, scan_pages, unpack, unreadable

ROWS, GROUP = 5000, 1700
RNG = np.random.default_rng(1)
TABLE = pa.table(
    {
        "run": pa.array([None if n == 7 else f"host-{n}" for n in np.sort(RNG.integers(0, 50, ROWS))]),
        "text": pa.array([f"text {n}" for n in RNG.permutation(ROWS)]),
        "tag": pa.array(
            [
                None if n < 5 or 1000 < row < 1400 or 3900 < row < 4500 else f"region-{n}"
                for row, n in enumerate(RNG.integers(0, 30, ROWS).tolist())
            ]
        ),
        "wide": pa.array(RNG.integers(-(2**62), 2**62, ROWS), mask=RNG.random(ROWS) < 0.3),
        "grid": pa.array(RNG.integers(0, 90, ROWS)),
        "narrow": pa.array(np.cumsum(RNG.integers(0, 100, ROWS)).astype(np.int32)),
        "float": pa.array(RNG.normal(size=ROWS), mask=RNG.random(ROWS) < 0.1),
        "half": pa.array(RNG.normal(size=ROWS).astype(np.float32)),
        "nulls": pa.nulls(ROWS, pa.int64()),
    }
)
TEXTS = ("run", "text", "tag")
PACKED = {
    "wide": "DELTA_BINARY_PACKED",
    "narrow": "DELTA_BINARY_PACKED",
    "float": "BYTE_STREAM_SPLIT",
    "half": "BYTE_STREAM_SPLIT",
}


def written(table=TABLE, **options):
    sink = io.BytesIO()
    pq.write_table(table, sink, row_group_size=GROUP, **{"data_page_size": 2000, **options})
    return sink.getvalue()


def chunks_of(data, name, first=None, last=None):
    footer = read_footer(data, name="file")
    leaf = next(leaf for leaf in footer.leaves if leaf.path == (name,))
    chunks = footer.chunks[:, leaf.index]
    starts, count = chunk_starts(chunks), len(chunks)
    return Chunks(
        starts,
        starts + chunks["total_compressed_size"],
        chunks["num_values"].copy(),
        chunks["codec"].astype(np.int64),
        np.full(count, leaf.max_definition == 1),
        np.full(count, name not in TEXTS),
        np.zeros(count, np.int64) if first is None else np.array(first),
        footer.row_group_rows.copy() if last is None else np.array(last),
        [f"group {n}" for n in range(count)],
    )


def decoded(data, chunks, name, kind):
    pages = scan_pages(np.frombuffer(data, np.uint8), chunks)
    assert not unreadable(pages, chunks).size
    unpacked = unpack(memoryview(data), pages, chunks)
    if name in TEXTS:
        column = unpacked.coded()
        by_row = isinstance(column, CodedRows)
        codes = column.codes if by_row else np.repeat(column.codes, np.diff(column.ends, prepend=0))
        texts = [text.decode() for text in column.texts.to_pylist()]
        assert texts == sorted(set(texts))
        return [None if code < 0 else texts[code] for code in codes.tolist()]
    width = kind.bit_width // 8
    column = unpacked.fixed(np.dtype(f"u{width}"))
    mask = None if column.valid is None else column.valid == 0
    return pa.array(column.values.view(kind.to_pandas_dtype()), mask=mask).to_pylist()


@pytest.mark.parametrize("codec", ["none", "snappy", "gzip", "brotli", "zstd", "lz4"])
@pytest.mark.parametrize("version", ["1.0", "2.0"])
@pytest.mark.parametrize("encodings", ["dictionary", "small dictionary", "plain", "packed"])
def test_every_page_decodes(codec, version, encodings):
    options = {
        "dictionary": {},
        "small dictionary": {"dictionary_pagesize_limit": 500},
        "plain": {"use_dictionary": False},
        "packed": {"use_dictionary": False, "column_encoding": PACKED},
    }[encodings]
    data = written(compression=codec, data_page_version=version, **options)
    for field in TABLE.schema:
        found = decoded(data, chunks_of(data, field.name), field.name, field.type)
        assert found == TABLE[field.name].to_pylist(), field.name


@pytest.mark.parametrize("name", TABLE.column_names)
@pytest.mark.parametrize(
    "options", [{}, {"use_dictionary": False, "column_encoding": PACKED}], ids=["dictionary", "packed"]
)
def test_only_the_rows_that_are_wanted_come(name, options):
    data, kind = written(**options), TABLE.schema.field(name).type
    spans = [(100, 101), (0, 1700), (333, 1600)]
    chunks = chunks_of(data, name, *zip(*spans, strict=True))
    expected = [TABLE[name].to_pylist()[GROUP * n + low : GROUP * n + high] for n, (low, high) in enumerate(spans)]
    assert decoded(data, chunks, name, kind) == list(chain.from_iterable(expected))


def test_required_columns_have_no_levels():
    table = pa.table({"x": pa.array([1, 2, 2])}, schema=pa.schema([pa.field("x", pa.int64(), nullable=False)]))
    for version in ("1.0", "2.0"):
        data = written(table, data_page_version=version)
        assert decoded(data, chunks_of(data, "x"), "x", pa.int64()) == [1, 2, 2]


def test_a_chunk_without_bytes_is_null():
    data = written()
    chunks = chunks_of(data, "grid")
    chunks.starts[1] = chunks.ends[1] = chunks.values[1] = 0
    found = decoded(data, chunks, "grid", pa.int64())
    assert found[GROUP : 2 * GROUP] == [None] * GROUP
    assert found[2 * GROUP :] == TABLE["grid"].to_pylist()[2 * GROUP :]


def test_what_is_not_read_here_is_told_by_its_chunk():
    data = written(use_dictionary=False, column_encoding={"text": "DELTA_BYTE_ARRAY"})
    chunks = chunks_of(data, "text")
    assert unreadable(scan_pages(np.frombuffer(data, np.uint8), chunks), chunks).tolist() == [0, 1, 2]


@pytest.mark.parametrize("name", ["run", "text", "tag", "wide", "narrow", "float"])
@pytest.mark.parametrize(
    "options", [{}, {"use_dictionary": False, "column_encoding": PACKED}], ids=["dictionary", "packed"]
)
def test_damaged_pages_are_refused_by_name_or_decode_to_something(name, options):
    data, kind = written(TABLE.slice(0, 600), compression="none", **options), TABLE.schema.field(name).type
    chunks, refused = chunks_of(data, name), 0
    rng = np.random.default_rng(4)
    for _ in range(300):
        spoiled = bytearray(data)
        for place in rng.integers(int(chunks.starts[0]), int(chunks.ends[0]), 3).tolist():
            spoiled[place] = int(rng.integers(0, 256))
        spoiled = bytes(spoiled)
        try:
            pages = scan_pages(np.frombuffer(spoiled, np.uint8), chunks)
            if not unreadable(pages, chunks).size:
                unpacked = unpack(memoryview(spoiled), pages, chunks)
                unpacked.coded() if name in TEXTS else unpacked.fixed(np.dtype(f"u{kind.bit_width // 8}"))
        except Damaged as error:
            refused += str(error).startswith("group 0")
    assert refused
