"""Every field of a sidecar as plain dicts, lists, numbers and text, ready for JSON."""

from __future__ import annotations

from collections.abc import Iterable
from enum import IntEnum
from itertools import islice
from typing import Any

import numpy as np

from windrow.parquet.codecs import Codec
from windrow.sidecar import layout
from windrow.sidecar.columns import Bound, ColumnChunks
from windrow.sidecar.granules import GranuleIndex
from windrow.sidecar.reader import Sidecar

Plain = dict[str, Any]


def describe(sidecar: Sidecar, *, snapshots: int | None = None) -> Plain:
    """The whole file: the header, and every snapshot in the chain of footers (or so many), the newest one first."""
    header = sidecar.header
    return {
        "name": sidecar.name,
        "committed_size": header.committed_size,
        "feature_flags": header.feature_flags,
        "features": _names(layout.Feature, header.feature_flags),
        "designated_timestamp": header.designated_timestamp,
        "sorting_columns": list(sidecar.sorting),
        "squash_tracker": sidecar.header_sections.squash_tracker,
        "bloom_columns": sidecar.bloom_columns.tolist(),
        "bloom_external": header.bloom_external,
        "columns": [_column(sidecar, position) for position in range(sidecar.column_count)],
        "snapshots": [describe_snapshot(snapshot) for snapshot in islice(sidecar.snapshots(), snapshots)],
    }


def describe_snapshot(sidecar: Sidecar) -> Plain:
    """One snapshot: its footer, its row groups and what Windrow adds."""
    footer, sections = sidecar.footer, sidecar.footer_sections
    stored, computed = sidecar.checksums()
    columns = [sidecar.column(position) for position in range(sidecar.column_count)]
    return {
        "size": footer.size,
        "footer_offset": footer.offset,
        "footer_length": footer.length,
        "parquet_footer_offset": footer.parquet_footer_offset,
        "parquet_footer_length": footer.parquet_footer_length,
        "parquet_size": footer.parquet_size,
        "unused_bytes": footer.unused_bytes,
        "previous_size": footer.previous_size,
        "feature_flags": footer.feature_flags,
        "features": _names(layout.FooterFeature, footer.feature_flags),
        "crc32": stored,
        "crc32_computed": computed,
        "seq_txn": sections.seq_txn,
        "scratchpad": [{"code": code, "hex": content.hex()} for code, content in sections.scratchpad],
        "row_groups": [_row_group(sidecar, group, columns) for group in range(sidecar.row_group_count)],
        "windrow": _extensions(sidecar),
    }


def _column(sidecar: Sidecar, position: int) -> Plain:
    record = _record(sidecar.descriptors[position], leave_out=("name_offset", "name_length", "reserved"))
    flags = record["flags"]
    repetition = (flags & layout.REPETITION_MASK) >> layout.REPETITION_SHIFT
    return {
        "name": sidecar.column_name(position),
        **record,
        "flag_names": _names(layout.ColumnFlag, flags),
        "repetition": repetition,
        "order": sidecar.order(position).name,
    }


def _row_group(sidecar: Sidecar, group: int, columns: list[ColumnChunks]) -> Plain:
    return {
        "block_offset": int(sidecar.entries[group]) * layout.WORD,
        "num_rows": int(sidecar.row_counts[group]),
        "chunks": [_chunk(sidecar, group, position, column) for position, column in enumerate(columns)],
    }


def _chunk(sidecar: Sidecar, group: int, position: int, column: ColumnChunks) -> Plain:
    record = _record(column.records[group], leave_out=("reserved",))
    bloom, external = sidecar.bloom(group, position), sidecar.external_bloom(group, position)
    for field in ("null_count", "distinct_count"):
        _, present = getattr(column, field)
        record[field] = record[field] if present[group] else None
    return {
        **record,
        "codec_name": _name(Codec, record["codec"]),
        "encoding_names": _names(layout.EncodingBit, record["encodings"]),
        "stat_flag_names": _names(layout.StatFlag, record["stat_flags"]),
        "min": _bound(column.stored_minimum, group),
        "max": _bound(column.stored_maximum, group),
        "bloom_hex": None if bloom is None else bloom.hex(),
        "bloom_external": None if external is None else list(external),
    }


def _bound(bound: Bound, group: int) -> Plain | None:
    if not bound.present[group]:
        return None
    value = bound.values[group]
    is_bytes = isinstance(value, bytes)
    raw = value if is_bytes else value.tobytes()
    plain = {} if is_bytes else {"value": value.item()}
    return {"hex": raw.hex(), "exact": bool(bound.exact[group]), **plain}


def _extensions(sidecar: Sidecar) -> Plain:
    extensions = sidecar.extensions
    schema = extensions.schema_bytes
    groups = range(sidecar.row_group_count)
    pages = [extensions.page_records(group) for group in groups]
    return {
        "schema_bytes": None if schema is None else len(schema),
        "created_by": extensions.created_by,
        "version": extensions.version,
        "etag": extensions.etag,
        "key_value": extensions.key_value,
        "pages": [None if records is None else [_record(record) for record in records] for records in pages],
        "granules": [_granules(extensions.granules(group)) for group in groups],
    }


def _granules(index: GranuleIndex | None) -> Plain | None:
    if index is None:
        return None
    keys = [{"column": key.column, "values": [value and value.hex() for value in key.values()]} for key in index.keys]
    return {
        "rows": index.rows.tolist(),
        "page_offsets": index.page_offsets.tolist(),
        "page_sizes": index.page_sizes.tolist(),
        "keys": keys,
    }


def _record(record: np.void, leave_out: Iterable[str] = ("reserved",)) -> Plain:
    names = [name for name in record.dtype.names or () if name not in leave_out]
    return {name: record[name].item() for name in names}


def _names(bits: type[IntEnum], value: int) -> list[str]:
    return [bit.name for bit in bits if value & bit]


def _name(codes: type[IntEnum], value: int) -> str | None:
    return codes(value).name if value in set(codes) else None
