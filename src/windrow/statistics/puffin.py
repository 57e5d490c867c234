"""Sketches as blobs of a Puffin file, the container in which Iceberg stores statistics.

    magic "PFA1", blobs, magic, footer in JSON, its length (4 bytes), flags (4 bytes, all zero), magic

The specification names one type of blob with distinct values, which holds Theta sketches. Ours are HyperLogLog, as
DataSketches stores them, so they have a type of their own, which readers that do not know it pass over. What a blob has
besides is as for that type: `ndv` is the estimate as a whole number.
"""

from __future__ import annotations

import json
import struct
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

import zstandard

from windrow.statistics.sketch import Sketch

__all__ = ["HLL_BLOB", "Blob", "puffin_file"]

HLL_BLOB = "windrow-datasketches-hll-v1"
"""The type of a blob that holds a compact HyperLogLog sketch of DataSketches."""
_MAGIC = b"PFA1"


@dataclass(frozen=True, slots=True)
class Blob:
    """The sketch of one column."""

    column: str
    field_id: int
    sketch: Sketch
    rows: int
    """Rows of the table."""
    known_rows: int
    """Rows whose values are in the sketch."""


def puffin_file(blobs: Iterable[Blob], version: int, written_by: str) -> bytes:
    """Return sketches of a version of a table as a Puffin file; the version stands for Iceberg's snapshot."""
    parts, entries, offset = [_MAGIC], list[dict[str, Any]](), len(_MAGIC)
    for blob in blobs:
        data = zstandard.ZstdCompressor(write_content_size=True).compress(blob.sketch.to_bytes())
        entries.append(_entry(blob, version) | {"offset": offset, "length": len(data), "compression-codec": "zstd"})
        parts.append(data)
        offset += len(data)
    footer = json.dumps({"blobs": entries, "properties": {"created-by": written_by}}, ensure_ascii=False).encode()
    return b"".join([*parts, _MAGIC, footer, struct.pack("<2i", len(footer), 0), _MAGIC])


def _entry(blob: Blob, version: int) -> dict[str, Any]:
    properties = {
        "ndv": str(round(blob.sketch.estimate)),
        "column": blob.column,
        "rows": str(blob.rows),
        "known-rows": str(blob.known_rows),
    }
    return {
        "type": HLL_BLOB,
        "fields": [blob.field_id],
        "snapshot-id": version,
        "sequence-number": version,
        "properties": properties,
    }
