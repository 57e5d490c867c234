"""How the values of each column are encoded, chosen by what they are.

Text has a dictionary where it is coded (`splits.texts` says when that pays), else it is plain.

Of all else a sample is written in each way that fits the type, compressed as the split will be, and the smallest wins:
a dictionary or plain values for any type, byte-stream-split for floats, deltas for integers and times. A dictionary
page is paid once for a row group and data pages by the row, so that the two are scaled up apart. Plain values stay
unless another way saves half a bit a row, and a little in all.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TypedDict

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from windrow.errors import InvalidInput
from windrow.model.ordering import dictionary_codes
from windrow.model.points import is_text

__all__ = ["Encodings", "choose_encodings"]

_STRETCHES = 32
_WORTH_IT = 256
_WORTH_IT_A_ROW = 1 / 16
_DICTIONARY, _PLAIN, _DELTA, _SPLIT = "RLE_DICTIONARY", "PLAIN", "DELTA_BINARY_PACKED", "BYTE_STREAM_SPLIT"


class Encodings(TypedDict):
    """Arguments of `pyarrow.parquet.write_table`, by keyword; a column that is in neither is plain."""

    use_dictionary: list[str]
    column_encoding: dict[str, str]


def choose_encodings(table: pa.Table, *, sample_rows: int = 4096, row_group_rows: int = 128 * 1024) -> Encodings:
    """Return how to encode the columns of a table that is written in row groups of this many rows.

    Columns are named by their path in the file. What lies inside a nested column has a dictionary, unmeasured.
    """
    if sample_rows < _STRETCHES or row_group_rows < 1:
        raise InvalidInput(
            f"encodings by sample_rows={sample_rows} and row_group_rows={row_group_rows}: "
            f"use at least {_STRETCHES} and 1"
        )
    nested = [field.name for field in table.schema if pa.types.is_nested(field.type)]
    texts = [field.name for field in table.schema if is_text(field.type)]
    chosen = dict.fromkeys(_written(table.select(nested).slice(0, 0), {}), _DICTIONARY)
    chosen |= {name: _DICTIONARY if pa.types.is_dictionary(table[name].type) else _PLAIN for name in texts}
    sample = _sample(table.drop_columns(nested + texts), sample_rows)
    chosen |= _smallest(sample, min(table.num_rows, row_group_rows))
    return _arguments(chosen)


def _arguments(encodings: Mapping[str, str]) -> Encodings:
    return {
        "use_dictionary": [path for path, encoding in encodings.items() if encoding == _DICTIONARY],
        "column_encoding": {path: encoding for path, encoding in encodings.items() if encoding in (_DELTA, _SPLIT)},
    }


def _sample(table: pa.Table, rows: int) -> pa.Table:
    """Return stretches from all over the table, since rows compress by their neighbours; dictionaries are resolved."""
    if table.num_rows > rows:
        length = rows // _STRETCHES
        gap = (table.num_rows - length) / (_STRETCHES - 1)
        table = pa.concat_tables([table.slice(int(gap * stretch), length) for stretch in range(_STRETCHES)])
    fields = [
        field.with_type(field.type.value_type) if pa.types.is_dictionary(field.type) else field
        for field in table.schema
    ]
    return table.cast(pa.schema(fields)).combine_chunks()


def _smallest(sample: pa.Table, rows: int) -> dict[str, str]:
    """Return the best encoding of each column, for that many rows like those of the sample."""
    if not sample.num_rows or not sample.num_columns:
        return dict.fromkeys(sample.column_names, _PLAIN)
    sizes = _projected_sizes(sample, max(1.0, rows / sample.num_rows))
    for by_encoding in sizes.values():
        by_encoding[_PLAIN] -= max(_WORTH_IT, rows * _WORTH_IT_A_ROW)
    return {name: min(by_encoding, key=by_encoding.__getitem__) for name, by_encoding in sizes.items()}


def _projected_sizes(sample: pa.Table, scale: float) -> dict[str, dict[str, float]]:
    """Return, for each column and encoding, the bytes of a row group that is larger than the sample by the scale."""
    special = {field.name: encoding for field in sample.schema if (encoding := _special_encoding(field.type))}
    trials = [dict.fromkeys(sample.column_names, encoding) for encoding in (_DICTIONARY, _PLAIN)] + [special]
    sizes: dict[str, dict[str, float]] = {name: {} for name in sample.column_names}
    for trial in trials:
        for name, chunk in _written(sample.select(list(trial)), trial).items():
            sizes[name][trial[name]] = _projected_size(chunk, sample[name], scale)
    return sizes


def _projected_size(chunk: pq.ColumnChunkMetaData, values: pa.ChunkedArray, scale: float) -> float:
    dictionary = chunk.data_page_offset - chunk.dictionary_page_offset if chunk.has_dictionary_page else 0
    pages: float = (chunk.total_compressed_size - dictionary) * scale
    return pages + dictionary * _dictionary_growth(values, scale) if dictionary else pages


def _dictionary_growth(values: pa.ChunkedArray, scale: float) -> float:
    """Estimate how much a dictionary grows with the rows: by the values that only one stretch of the sample holds."""
    try:
        codes, distinct = dictionary_codes(values)
    except pa.ArrowNotImplementedError:
        return scale
    stretches = np.arange(len(codes)) * _STRETCHES // len(codes)
    held = np.unique(codes * _STRETCHES + stretches) // _STRETCHES
    share = np.count_nonzero(np.bincount(held) == 1) / max(len(distinct), 1)
    return 1 + (scale - 1) * share


def _special_encoding(kind: pa.DataType) -> str | None:
    if pa.types.is_floating(kind):
        return _SPLIT
    # Spark reads no byte-stream-split unsigned integers; deltas of all integers it does.
    return _DELTA if pa.types.is_integer(kind) or pa.types.is_timestamp(kind) or pa.types.is_date(kind) else None


def _written(sample: pa.Table, encodings: Mapping[str, str]) -> dict[str, pq.ColumnChunkMetaData]:
    """Write the sample and return what became of each column, by its path."""
    sink = pa.BufferOutputStream()
    pq.write_table(
        sample,
        sink,
        compression="zstd",
        compression_level=3,
        write_statistics=False,
        store_schema=False,
        **_arguments(encodings),
    )
    group = pq.read_metadata(pa.BufferReader(sink.getvalue())).row_group(0)
    chunks = map(group.column, range(group.num_columns))
    return {chunk.path_in_schema: chunk for chunk in chunks}
