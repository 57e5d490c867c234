"""Writes one sorted split: sort columns first, field ids, what the file says of itself, and the sidecar beside it."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace

import pyarrow as pa
import pyarrow.parquet as pq

from windrow.errors import InvalidInput
from windrow.model.invariants import require
from windrow.model.scope import CompactionScope
from windrow.model.settings import TableSettings
from windrow.model.sort_schema import Direction, SortSchema
from windrow.model.split import SidecarLocation, SplitMetadata, sidecar_key, split_key
from windrow.model.window import Window, time_bounds_us
from windrow.model.zones import NULL, ColumnZone
from windrow.parquet.arrow_schema import arrow_schema_pairs
from windrow.sidecar.build import build_sidecar
from windrow.splits.blooms import BLOOM_FILTER, has_filter
from windrow.splits.digests import digest_of
from windrow.splits.encodings import Encodings, choose_encodings
from windrow.splits.granule_keys import granule_keys
from windrow.splits.layout import GRANULE_ROWS, ROW_GROUP_ROWS
from windrow.splits.page_writer import write_pages
from windrow.splits.sorting import sorted_rows
from windrow.splits.texts import by_row_group, coded, plain_schema, values_of
from windrow.splits.zone_maps import column_zone
from windrow.storage import ObjectInfo, Store

__all__ = ["SplitName", "write_sorted", "write_split"]

OUR_PAGES = 32 * 1024
"""From so many rows on our own page writer is faster than pyarrow's, which has less to do before the first row."""
_FIELD_ID = b"PARQUET:field_id"


@dataclass(frozen=True, slots=True)
class SplitName:
    """Who writes a split, for which table, and when."""

    table: str
    """Its folder."""
    split_id: str
    commit_id: str
    created_at: int

    def describe(
        self,
        settings: TableSettings,
        scope: CompactionScope,
        window: Window,
        rows: int,
        times: pa.ChunkedArray | None,
        null_times: int,
        zones: Iterable[ColumnZone],
    ) -> SplitMetadata:
        """Return the metadata of a split before it is stored; refused when a time lies outside of its window.

        Among `times` are the least and the greatest of the rows; None where there is no such column.
        """
        bounds = None if times is None else time_bounds_us(times, unit=settings.timestamp_unit)
        low, high = bounds or (None, None)
        require("TW-1", window=window, time_min_us=low, time_max_us=high, null_timestamps=null_times)
        return SplitMetadata(
            split_id=self.split_id,
            scope=scope,
            window=window,
            key=split_key(self.table, scope.partition_id, window, self.split_id),
            size_bytes=0,
            row_count=rows,
            created_at=self.created_at,
            commit_id=self.commit_id,
            time_min=low,
            time_max=high,
            zones=tuple(zones),
        )


def write_split(
    store: Store,
    rows: pa.Table,
    settings: TableSettings,
    scope: CompactionScope,
    window: Window,
    name: SplitName,
    field_ids: Mapping[str, int],
) -> SplitMetadata:
    """Sort the rows of one window, write them as one file and return its metadata."""
    return write_sorted(store, sorted_rows(coded(rows), settings.sort), settings, scope, window, name, field_ids)


def write_sorted(
    store: Store,
    rows: pa.Table,
    settings: TableSettings,
    scope: CompactionScope,
    window: Window,
    name: SplitName,
    field_ids: Mapping[str, int],
    *,
    row_group_rows: int = ROW_GROUP_ROWS,
) -> SplitMetadata:
    """Write rows that are sorted already; text should be coded. Rows that are not sorted are refused."""
    if not rows.num_rows:
        raise InvalidInput(f"split {name.split_id} would have no rows; an empty file is not a split")
    rows = by_row_group(_sort_columns_first(rows, settings.sort), rows.num_rows)
    split = _describe(rows, settings, scope, window, name)
    require("SS-1", table=rows, schema=settings.sort)
    data = _parquet(rows, settings, split, field_ids, row_group_rows)
    info = store.put(split.key, data)
    sidecar = _sidecar(rows, settings.sort, data, info, row_group_rows)
    location = SidecarLocation(sidecar_key(split.key), 0, len(sidecar))
    store.put(location.key, sidecar)
    return replace(split, size_bytes=info.size, etag=info.etag, sidecar=location, digest=digest_of(data))


def _describe(
    rows: pa.Table, settings: TableSettings, scope: CompactionScope, window: Window, name: SplitName
) -> SplitMetadata:
    times = rows[settings.timestamp]
    zones = (_zone(rows, column) for column in settings.sort.column_names)
    return name.describe(settings, scope, window, rows.num_rows, times, times.null_count, zones)


def _zone(rows: pa.Table, name: str) -> ColumnZone:
    """Return the zone of a column, from its distinct values where the rows hold them."""
    if name not in rows.column_names:
        return ColumnZone(NULL, NULL, rows.num_rows)
    return replace(column_zone(values_of(rows[name])), null_count=rows[name].null_count)


def _parquet(
    rows: pa.Table, settings: TableSettings, split: SplitMetadata, field_ids: Mapping[str, int], row_group_rows: int
) -> memoryview:
    described = _with_field_ids(rows.schema, field_ids)
    encodings, key_value = choose_encodings(rows, row_group_rows=row_group_rows), split.to_key_value()
    if rows.num_rows >= OUR_PAGES:
        return write_pages(rows, plain_schema(described), settings, encodings, key_value, row_group_rows)
    return memoryview(_by_arrow(rows, described, settings, encodings, key_value, row_group_rows))


def _by_arrow(
    rows: pa.Table,
    described: pa.Schema,
    settings: TableSettings,
    encodings: Encodings,
    key_value: dict[str, str],
    row_group_rows: int,
) -> pa.Buffer:
    sink = pa.BufferOutputStream()
    with pq.ParquetWriter(
        sink,
        described,
        compression="zstd",
        compression_level=3,
        max_rows_per_page=GRANULE_ROWS,
        write_page_index=True,
        write_page_checksum=True,
        sorting_columns=_sorting_columns(rows.schema, settings.sort),
        bloom_filter_options=_bloom_filters(rows.schema, settings.bloom_filters),
        store_schema=False,
        **encodings,
    ) as writer:
        writer.write_table(pa.Table.from_arrays(rows.columns, schema=described), row_group_rows)
        # that text was coded here is nothing that readers should see
        writer.add_key_value_metadata(key_value | arrow_schema_pairs(plain_schema(described)))
    return sink.getvalue()


def _bloom_filters(rows: pa.Schema, wanted: Sequence[str]) -> dict[str, dict[str, float]] | None:
    """Return how large filters are to be; what has no filter, such as booleans and nested values, is left out."""
    kinds = {field.name: field.type for field in plain_schema(rows)}
    return {name: BLOOM_FILTER for name in wanted if name in kinds and has_filter(kinds[name])} or None


def _sidecar(rows: pa.Table, schema: SortSchema, data: memoryview, info: ObjectInfo, row_group_rows: int) -> bytes:
    """Describe the file from the bytes that were just written, without reading it back."""
    keys = granule_keys(rows, schema, row_group_rows=row_group_rows, granule_rows=GRANULE_ROWS)
    return build_sidecar(
        lambda start, length: bytes(data[start : start + length]), len(data), name=info.key, etag=info.etag, keys=keys
    )


def _sort_columns_first(rows: pa.Table, schema: SortSchema) -> pa.Table:
    first = [column.name for column in schema.columns if column.name in rows.column_names]
    return rows.select(first + sorted(name for name in rows.column_names if name not in first))


def _sorting_columns(rows: pa.Schema, schema: SortSchema) -> list[pq.SortingColumn]:
    """A null is greater than any value: last when ascending, first when descending."""
    return [
        pq.SortingColumn(rows.get_field_index(column.name), descending, nulls_first=descending)
        for column in schema.columns
        if column.name in rows.names
        for descending in [column.direction is Direction.DESCENDING]
    ]


def _with_field_ids(schema: pa.Schema, field_ids: Mapping[str, int]) -> pa.Schema:
    missing = [name for name in schema.names if name not in field_ids]
    if missing:
        raise InvalidInput(f"column {missing[0]!r} has no field id; reserve the columns before they are written")
    return pa.schema([field.with_metadata({_FIELD_ID: str(field_ids[field.name])}) for field in schema])
