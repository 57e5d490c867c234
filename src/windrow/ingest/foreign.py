"""Parquet files that others wrote: what their footers tell, read without a row."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field

import pyarrow as pa
import pyarrow.parquet as pq

from windrow.errors import Conflict, Damaged, NotFound
from windrow.model.points import required_columns
from windrow.model.settings import TableSettings
from windrow.model.split import SplitMetadata
from windrow.model.window import time_bounds_us
from windrow.parquet.footer import read_footer
from windrow.sidecar.build import build_sidecar
from windrow.sidecar.tails import reader_of, stored_tail
from windrow.storage import Identity, Store, is_foreign, local_path, patient_if_remote, reach_foreign

__all__ = ["ForeignFile", "RegisteredFiles", "look_at"]

_PARALLEL = 16
"""So many files are looked at at once."""


@dataclass(frozen=True, slots=True)
class ForeignFile:
    """A file as its footer and its store describe it."""

    url: str
    size: int
    etag: str | None
    rows: int
    schema: pa.Schema
    times: tuple[int, int] | None
    """Bounds of the timestamps in microseconds, None when the footer does not tell them."""
    nulls: Mapping[str, int] = field(default_factory=dict)
    """How often columns that a point needs are null, as far as the footer tells."""

    def sidecar(self, options: Mapping[str, str]) -> bytes:
        """Build the sidecar, unless the file is no longer what was looked at."""
        store, key = reach_foreign(self.url, options)
        if store.head(key).etag != self.etag:
            raise Conflict(f"{_name(self.url)}: the file changed while it was being registered; register it again")
        return build_sidecar(
            reader_of(store, key),
            self.size,
            name=_name(self.url),
            etag=self.etag,
        )


def look_at(url: str, settings: TableSettings, options: Mapping[str, str]) -> ForeignFile:
    """Read the footer of a file; one that is damaged, encrypted or no Parquet is refused by its name."""
    store, key = reach_foreign(url, options)
    name = _name(url)
    end, info = stored_tail(store, key, name)
    tail = end.data
    read_footer(tail, name=name)  # refuses what a sidecar cannot describe, such as encrypted columns
    try:
        # Times of 96 bits, as Spark writes them, are microseconds to DuckDB.
        with pq.ParquetFile(pa.BufferReader(tail), coerce_int96_timestamp_unit="us") as parquet:
            metadata, schema = parquet.metadata, parquet.schema_arrow.remove_metadata()
            times = _time_bounds(metadata, schema, settings)
            nulls = _null_counts(metadata, required_columns(settings.signal))
    except (pa.ArrowException, OSError) as error:
        raise Damaged(f"{name}: cannot be read as Parquet: {error}") from error
    return ForeignFile(url, info.size, info.etag, metadata.num_rows, schema, times, nulls)


class RegisteredFiles:
    """The registered files of a table, and the stores that hold them."""

    def __init__(self, table: str, options: Mapping[str, str] | None = None) -> None:
        self._table = table
        self._options = options
        self._stores: dict[str, Store] = {}

    def check(self, splits: Iterable[SplitMetadata]) -> None:
        """Refuse a file that is gone, or has other bytes than when it was registered.

        Metadata answers for files of which nothing is read, so each is looked at: remote ones by one request each,
        several at once.
        """
        registered = [split for split in splits if split.window is None and is_foreign(split.key)]
        remote = [split for split in registered if local_path(split.key) is None]
        for split in registered:
            if local_path(split.key) is not None:
                self._check(split)
        if len(remote) > 1:
            with ThreadPoolExecutor(min(_PARALLEL, len(remote)), thread_name_prefix="windrow-head") as pool:
                list(pool.map(self._check, remote))
        elif remote:
            self._check(remote[0])

    def _check(self, split: SplitMetadata) -> None:
        store, key = self._reach(split.key)
        name = f"{_name(split.key)}: the file"
        way_out = f"bring it back, or take it out of the table with unregister ({split.key})"
        try:
            info = store.head(key)
        except NotFound as error:
            raise NotFound(f"{name} is registered in table {self._table!r} and gone; {way_out}") from error
        if not Identity(split.size_bytes, split.etag).fits(info):
            raise Damaged(f"{name} has changed since it was registered in table {self._table!r}; {way_out}")

    def _reach(self, url: str) -> tuple[Store, str]:
        """The store of a file and its key there; to open one store for each folder is enough."""
        folder = url.rpartition("/")[0]
        opened = self._stores.get(folder)
        path = local_path(url)
        if opened is not None:
            return opened, url.rpartition("/")[2] if path is None else path.name
        store, key = reach_foreign(url, self._options)
        return self._stores.setdefault(folder, patient_if_remote(store)), key


def _name(url: str) -> str:
    return str(local_path(url) or url)


def _time_bounds(metadata: pq.FileMetaData, schema: pa.Schema, settings: TableSettings) -> tuple[int, int] | None:
    """Return the bounds of the timestamps, where every row group states them as counts of the column's own unit."""
    place = next((n for n, path in enumerate(_paths(metadata)) if path == settings.timestamp), None)
    kind = schema.field(settings.timestamp).type if settings.timestamp in schema.names else None
    if place is None or kind is None or pa.types.is_unsigned_integer(kind):
        return None
    statistics = [metadata.row_group(number).column(place).statistics for number in range(metadata.num_row_groups)]
    if not statistics or any(
        each is None or not each.has_min_max or each.physical_type == "INT96" for each in statistics
    ):
        return None
    counts = pa.array([count for each in statistics for count in (each.min_raw, each.max_raw)], pa.int64())
    times = counts.cast(pa.int32()).cast(pa.date32()) if pa.types.is_date(kind) else counts.cast(kind)
    return time_bounds_us(times, unit=settings.timestamp_unit)


def _null_counts(metadata: pq.FileMetaData, names: Sequence[str]) -> dict[str, int]:
    paths = _paths(metadata)
    groups = range(metadata.num_row_groups)
    statistics = {
        name: [metadata.row_group(n).column(paths.index(name)).statistics for n in groups]
        for name in names
        if name in paths
    }
    return {
        name: sum(each.null_count for each in chunks if each and each.has_null_count)
        for name, chunks in statistics.items()
    }


def _paths(metadata: pq.FileMetaData) -> list[str]:
    return [metadata.schema.column(number).path for number in range(metadata.num_columns)]
