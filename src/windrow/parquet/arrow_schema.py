"""The Arrow schema in the key-value metadata of a file, no longer than pyarrow needs it to read the same columns.

A Parquet schema tells most types by itself, and field ids always: a file of plain columns needs no Arrow schema, which
would be a quarter of a file of twenty rows. Large texts, time zones, durations and the names inside of nested values
are told by it alone.
"""

from __future__ import annotations

import base64
from functools import lru_cache

import pyarrow as pa
import pyarrow.parquet as pq

__all__ = ["ARROW_SCHEMA", "arrow_schema_pairs"]

ARROW_SCHEMA = "ARROW:schema"


def arrow_schema_pairs(schema: pa.Schema) -> dict[str, str]:
    """The key-value metadata with which pyarrow reads the columns as they are described; none for plain ones."""
    # schemas are equal whatever their field ids are, their bytes are not
    stored = _shortest(schema.serialize().to_pybytes())
    return {} if stored is None else {ARROW_SCHEMA: stored}


@lru_cache(maxsize=64)
def _shortest(serialized: bytes) -> str | None:
    schema = pa.ipc.read_schema(pa.py_buffer(serialized))
    whole = _text(schema)
    expected = _read_back(schema, whole)
    bare = pa.schema([field.remove_metadata() for field in schema])
    # other versions of pyarrow tell extension types by the Arrow schema alone
    extended = any(isinstance(kind, pa.BaseExtensionType) for kind in schema.types)
    shorter = (_text(bare),) if extended else (None, _text(bare))
    return next((text for text in shorter if _read_back(schema, text) == expected), whole)


def _text(schema: pa.Schema) -> str:
    return base64.b64encode(schema.serialize()).decode()


def _read_back(schema: pa.Schema, stored: str | None) -> pa.Buffer:
    """What pyarrow reads from a file of these columns that stores an Arrow schema, or none."""
    sink = pa.BufferOutputStream()
    with pq.ParquetWriter(sink, schema, store_schema=False) as writer:
        if stored is not None:
            writer.add_key_value_metadata({ARROW_SCHEMA: stored})
    return pq.read_schema(pa.BufferReader(sink.getvalue())).remove_metadata().serialize()
