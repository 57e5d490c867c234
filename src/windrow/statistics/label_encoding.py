"""What is known of the labels and series of a file as bytes, of bounded size.

The content of a record (see `windrow.statistics.envelope`, magic "WRLS"): the length of the header (4 bytes), a header
in JSON, the ids of series (8 bytes each), and sketches as DataSketches stores them, one after the other: of all series,
of pairs, of metrics. The header says how many there are and how long each is.
"""

from __future__ import annotations

import json
import struct
from collections.abc import Iterator
from dataclasses import replace
from itertools import accumulate, pairwise
from typing import Any

import numpy as np

from windrow.statistics.envelope import opened, sealed, unreadable
from windrow.statistics.label_summary import MOST_SERIES, LabelSummary, pairs_of
from windrow.statistics.layout import FileId
from windrow.statistics.sketch import LG_K, Sketch

__all__ = ["MOST_BYTES", "decode_labels", "encode_labels"]

MOST_BYTES = 64 * 1024
"""Of one file. Sketches of pairs and metrics that would need more get fewer registers; then values are left out."""

_MAGIC, _VERSION = b"WRLS", 1
_MOST_TEXT = 24 * 1024
"""Bytes of values of labels."""
_FEWEST = 7
"""Registers of a sketch, as a power of two; fewer would tell little."""


def encode_labels(summary: LabelSummary) -> bytes:
    """What is known of labels as bytes."""
    data = b""
    for each in _smaller(replace(summary, values=_short_lists(summary))):
        data = sealed(_MAGIC, _VERSION, each.file, _stored(each))
        if len(data) <= MOST_BYTES:
            break
    return data


def decode_labels(data: bytes, file: FileId, *, name: str = "statistics") -> LabelSummary | None:
    """What is known of labels in some bytes; None where they are of another content of the file; or `Damaged`."""
    content = opened(_MAGIC, _VERSION, data, file, name)
    try:
        return None if content is None else _read(content, file)
    except (struct.error, ValueError, KeyError, TypeError) as error:
        raise unreadable(name, error) from error


def _short_lists(summary: LabelSummary) -> dict[str, tuple[str, ...]]:
    """The shortest lists of values that have room together."""
    sizes = {name: sum(len(value) + 3 for value in values) for name, values in summary.values.items()}
    ordered = sorted(sizes, key=lambda name: (sizes[name], name))
    ends = accumulate(sizes[name] for name in ordered)
    fitting = [name for name, end in zip(ordered, ends, strict=True) if end <= _MOST_TEXT]
    return {name: summary.values[name] for name in sorted(fitting)}


def _smaller(summary: LabelSummary) -> Iterator[LabelSummary]:
    """The same in less and less room."""
    for lg_k in range(LG_K, _FEWEST - 1, -1):
        pairs = {pair: _folded(sketch, lg_k) for pair, sketch in summary.pairs.items()}
        metrics = {name: _folded(sketch, lg_k) for name, sketch in summary.metrics.items()}
        yield replace(summary, pairs=pairs, metrics=metrics)
    yield replace(summary, pairs=pairs, metrics={}, other_metrics=summary.other_metrics + len(metrics), values={})


def _folded(sketch: Sketch, lg_k: int) -> Sketch:
    """Coupons take less room than registers, and tell more, unless there are many."""
    coupons = sketch.coupons
    is_small = sketch.lg_k <= lg_k if coupons is None else coupons.nbytes <= 1 << lg_k
    return sketch if is_small else sketch.folded(lg_k)


def _stored(summary: LabelSummary) -> bytes:
    ids = np.empty(0, np.int64) if summary.series_ids is None else summary.series_ids
    sketches = [each.to_bytes() for each in _sketches(summary)]
    header = {
        "rows": summary.rows,
        "known_rows": summary.known_rows,
        "labels": summary.labels,
        "series": None if summary.series_ids is None else ids.size,
        "has_ids": summary.has_ids,
        "metrics": list(summary.metrics),
        "other_metrics": summary.other_metrics,
        "values": dict(summary.values),
        "sizes": [len(each) for each in sketches],
    }
    text = json.dumps(header, separators=(",", ":"), ensure_ascii=False).encode("utf-8", "surrogatepass")
    return b"".join([struct.pack("<I", len(text)), text, ids.astype("<i8").tobytes(), *sketches])


def _sketches(summary: LabelSummary) -> list[Sketch]:
    pairs = [summary.pairs[pair] for pair in pairs_of(summary.labels)]
    return [summary.series, *pairs, *summary.metrics.values()]


def _read(data: bytes, file: FileId) -> LabelSummary:
    (length,) = struct.unpack_from("<I", data)
    header: dict[str, Any] = json.loads(data[4 : 4 + length].decode("utf-8", "surrogatepass"))
    rows, known_rows, count = header["rows"], header["known_rows"], header["series"]
    if not 0 <= known_rows <= rows or (count or 0) > MOST_SERIES:
        raise ValueError(f"{known_rows} of {rows} rows are known, and {count} series")
    start = 4 + length
    ids = np.frombuffer(data, "<i8", count or 0, start).astype(np.int64)
    ends = list(accumulate(header["sizes"], initial=start + 8 * (count or 0)))
    if ends[-1] != len(data):
        raise ValueError(f"{len(data)} bytes, not {ends[-1]}")
    labels = tuple(map(str, header["labels"]))
    series, *others = (Sketch.from_bytes(data[begin:end]) for begin, end in pairwise(ends))
    pairs = pairs_of(labels)
    return LabelSummary(
        file,
        rows,
        known_rows,
        labels,
        series,
        None if count is None else ids,
        dict(zip(pairs, others[: len(pairs)], strict=True)),
        dict(zip(header["metrics"], others[len(pairs) :], strict=True)),
        int(header["other_metrics"]),
        {str(name): tuple(map(str, values)) for name, values in header["values"].items()},
        bool(header["has_ids"]),
    )
