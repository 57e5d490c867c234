"""Statistics of a column as bytes: compact, versioned, with a checksum, and of bounded size.

The content of a record (see `windrow.statistics.envelope`, magic "WRCS"):

    header, type, rows of row groups, which of them were read, synopses, sketch, sample

The header says how long each part is. All numbers are little-endian. The sketch is what DataSketches stores; the sample
is an Arrow stream. A reader names the file that it has in mind, and takes nothing that is about another.
"""

from __future__ import annotations

import struct
from dataclasses import replace
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from windrow.bounded import memo
from windrow.model.stored_types import type_from_bytes, type_to_bytes
from windrow.pruning.bounds import Mask
from windrow.pruning.types import Family
from windrow.statistics.column_summary import ColumnSummary
from windrow.statistics.envelope import DIGEST_BYTES, opened, sealed, unreadable
from windrow.statistics.layout import MOST_ROW_GROUPS, FileId, FileLayout
from windrow.statistics.sample import SAMPLE_ROWS, ColumnSample
from windrow.statistics.sketch import Sketch
from windrow.statistics.synopsis import Facts, Synopses
from windrow.statistics.values import column_type_of

__all__ = ["MOST_BYTES", "decode", "encode"]

MOST_BYTES = 64 * 1024
"""Of one column of one file. A sample that would need more is left out, then the bounds of texts are."""

_MAGIC, _VERSION = b"WRCS", 1
_HEADER = struct.Struct("<7IQ16s")
_HAS_MINIMUM, _HAS_MAXIMUM, _HAS_NAN, _EXACT_MINIMUM, _EXACT_MAXIMUM, _IS_EMPTY = (1 << bit for bit in range(6))


def encode(summary: ColumnSummary) -> bytes:
    """The statistics of a column as bytes."""
    data = _encoded(summary)
    if len(data) > MOST_BYTES:
        data = _encoded(replace(summary, sample=None))
    if len(data) > MOST_BYTES:
        data = _encoded(replace(summary, sample=None, synopses=_without_bounds(summary.synopses)))
    return data


def decode(data: bytes, file: FileId, *, name: str = "statistics", with_sample: bool = True) -> ColumnSummary | None:
    """The statistics in some bytes; None where they are of another content of the file; or `Damaged`."""
    content = opened(_MAGIC, _VERSION, data, file, name)
    try:
        return None if content is None else _content(content, file, with_sample=with_sample)
    except (struct.error, ValueError, pa.ArrowException) as error:
        raise unreadable(name, error) from error


def _encoded(summary: ColumnSummary) -> bytes:
    synopses, sample = summary.synopses, summary.sample
    kind = type_to_bytes(summary.type)
    parts = [
        kind,
        summary.layout.row_counts.astype("<i8").tobytes(),
        np.packbits(synopses.covered).tobytes(),
        _stored_facts(synopses),
        summary.sketch.to_bytes(),
        b"" if sample is None else np.packbits(sample.known).tobytes() + _stream(sample.values),
    ]
    rows = 0 if sample is None else sample.known.size
    draw = bytes(DIGEST_BYTES) if sample is None else sample.draw
    sizes = [len(part) for part in parts[:5]]
    header = _HEADER.pack(synopses.group_size, rows, *sizes, summary.inherited_rows, draw)
    return sealed(_MAGIC, _VERSION, summary.layout.file, b"".join([header, *parts]))


def _content(data: bytes, file: FileId, *, with_sample: bool) -> ColumnSummary:
    group_size, sample_rows, *sizes, inherited, draw = _HEADER.unpack_from(data)
    at, parts = _HEADER.size, []
    for size in sizes:
        parts.append(data[at : at + size])
        at += size
    kind = _kind(parts[0])
    rows = np.frombuffer(parts[1], "<i8")
    if rows.size > MOST_ROW_GROUPS or (rows < 0).any():
        raise ValueError(f"{rows.size} row groups, of {rows.min()} rows")
    layout = FileLayout(file, tuple(rows.tolist()))
    covered = _mask(parts[2], rows.size)
    facts = _facts(parts[3], is_object=column_type_of(kind).dtype == "object", kind=kind)
    if group_size < 1 or len(facts) != -(-covered.size // group_size) or sample_rows > SAMPLE_ROWS:
        raise ValueError(f"{len(facts)} synopses of {covered.size} row groups, and {sample_rows} rows of a sample")
    sample = _sample(data[at:], draw, sample_rows) if with_sample and at < len(data) else None
    synopses = Synopses(column_type_of(kind), group_size, facts, covered)
    return ColumnSummary(layout, kind, Sketch.from_bytes(parts[4]), synopses, sample, inherited)


_kind = memo("types of statistics", 256)(type_from_bytes)


def _mask(data: bytes, size: int) -> Mask:
    return np.unpackbits(np.frombuffer(data, np.uint8), count=size).astype(bool)


# ---- synopses


def _stored_facts(synopses: Synopses) -> bytes:
    facts, dtype = synopses.facts, synopses.type.dtype
    flags = np.array([_flags(each) for each in facts], np.uint8)
    nulls = np.array([each.null_count for each in facts], "<i8")
    head = struct.pack("<I", len(facts)) + flags.tobytes() + nulls.tobytes()
    if dtype == "object":
        return head + _stored_texts([_bytes_of(end) for each in facts for end in (each.minimum, each.maximum)])
    ends = [end or 0 for each in facts for end in (each.minimum, each.maximum)]
    return head + np.array(ends, dtype).tobytes()


def _flags(facts: Facts) -> int:
    marks = (
        (_HAS_MINIMUM, facts.minimum is not None),
        (_HAS_MAXIMUM, facts.maximum is not None),
        (_HAS_NAN, facts.has_nan),
        (_EXACT_MINIMUM, facts.is_exact[0]),
        (_EXACT_MAXIMUM, facts.is_exact[1]),
        (_IS_EMPTY, facts.is_empty),
    )
    return sum(bit for bit, is_set in marks if is_set)


def _facts(data: bytes, *, is_object: bool, kind: pa.DataType) -> tuple[Facts, ...]:
    (count,) = struct.unpack_from("<I", data)
    flags = np.frombuffer(data, np.uint8, count, 4)
    nulls = np.frombuffer(data, "<i8", count, 4 + count)
    start = 4 + 9 * count
    column_type = column_type_of(kind)
    ends: list[Any]
    if is_object:
        ends = _texts(data, start, 2 * count)
        if column_type.family is Family.NUMBER:
            ends = [int.from_bytes(end, "little", signed=True) for end in ends]
    else:
        ends = np.frombuffer(data, column_type.dtype, 2 * count, start).tolist()
    return tuple(
        Facts(
            ends[2 * place] if flag & _HAS_MINIMUM else None,
            ends[2 * place + 1] if flag & _HAS_MAXIMUM else None,
            null_count,
            bool(flag & _HAS_NAN),
            (bool(flag & _EXACT_MINIMUM), bool(flag & _EXACT_MAXIMUM)),
            bool(flag & _IS_EMPTY),
        )
        for place, (flag, null_count) in enumerate(zip(flags.tolist(), nulls.tolist(), strict=True))
    )


def _bytes_of(end: Any) -> bytes:
    if isinstance(end, int):
        return end.to_bytes(33, "little", signed=True)
    return end or b""


def _stored_texts(texts: list[bytes]) -> bytes:
    return np.array([len(text) for text in texts], "<u4").tobytes() + b"".join(texts)


def _texts(data: bytes, start: int, count: int) -> list[bytes]:
    lengths: npt.NDArray[np.uint32] = np.frombuffer(data, "<u4", count, start)
    ends = (start + 4 * count + np.cumsum(lengths, dtype=np.int64)).tolist()
    return [data[end - length : end] for end, length in zip(ends, lengths.tolist(), strict=True)]


def _without_bounds(synopses: Synopses) -> Synopses:
    facts = (replace(each, minimum=None, maximum=None, is_exact=(False, False)) for each in synopses.facts)
    return replace(synopses, facts=tuple(facts))


# ---- samples


def _stream(values: pa.Array) -> bytes:
    sink = pa.BufferOutputStream()
    batch = pa.record_batch([values], names=[""])
    with pa.ipc.new_stream(sink, batch.schema) as writer:
        writer.write_batch(batch)
    return bytes(sink.getvalue())


def _sample(data: bytes, draw: bytes, rows: int) -> ColumnSample:
    size = (rows + 7) // 8
    table = pa.ipc.open_stream(pa.py_buffer(data[size:])).read_all()
    table.validate(full=True)
    if table.num_rows != rows:
        raise ValueError(f"{table.num_rows} rows of a sample, not {rows}")
    return ColumnSample(draw, _mask(data[:size], rows), table.column(0).combine_chunks())
