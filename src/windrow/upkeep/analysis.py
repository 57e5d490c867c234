"""Learns at once, by reading a table, what queries would leave behind one after the other."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from functools import partial
from itertools import chain

import pyarrow as pa
import pyarrow.parquet as pq

from windrow.context import Context
from windrow.errors import Damaged, NotFound
from windrow.model.shown import ShownByField
from windrow.model.split import SplitMetadata
from windrow.statistics.catalog import Catalog, Columns
from windrow.statistics.collector import FileCollector, collects
from windrow.statistics.layout import FileId, FileLayout, split_id_of
from windrow.storage import reach
from windrow.storage.handles import Handle, StoredFile

__all__ = ["Analysis", "AnalyzeTable", "learn_file", "learn_missing", "opened_file"]

_PAGE = 200
_SHORT_BYTES = 4
"""A text that takes no more bytes in a file stands in a dictionary."""


@dataclass(frozen=True, slots=True, repr=False)
class Analysis(ShownByField):
    """What was read of a table for its statistics."""

    table: str
    version: int
    splits: int
    rows: int
    columns: int
    """Columns of splits of which something was learnt; of the others everything was known."""


@dataclass(frozen=True, slots=True)
class AnalyzeTable:
    """An analysis of one table."""

    context: Context
    name: str
    on_splits: Callable[[int, int], None] = field(default=lambda _, __: None)
    """Hears of the rows and bytes of splits as they are done."""

    def run(self, columns: Collection[str] | None = None) -> Analysis:
        """Learn what is not known of the newest version: of some columns, or of all."""
        table = self.context.metastore.table(self.name)
        if columns is not None:
            _check_columns(columns, [each.name for each in self.context.metastore.columns(table.table_id)], self.name)
        catalog = self.context.statistics_of(table.table_id)
        splits = rows = learnt = 0
        with self.context.pins.hold(table.table_id, table.version):
            pages = self.context.metastore.splits(table.table_id, table.version, page_size=_PAGE)
            for split, found in self._learnt(chain.from_iterable(pages), catalog, columns):
                catalog.store(found)
                splits, rows, learnt = splits + 1, rows + split.row_count, learnt + len(found)
                self.on_splits(split.row_count, split.size_bytes)
        return Analysis(self.name, table.version, splits, rows, learnt)

    def _learnt(
        self, splits: Iterator[SplitMetadata], catalog: Catalog, columns: Collection[str] | None
    ) -> Iterator[tuple[SplitMetadata, Columns]]:
        learn = partial(self._learn, catalog=catalog, columns=columns)
        with ThreadPoolExecutor(self.context.limits.threads, "windrow") as pool:
            yield from pool.map(learn, splits)

    def _learn(
        self, split: SplitMetadata, *, catalog: Catalog, columns: Collection[str] | None
    ) -> tuple[SplitMetadata, Columns]:
        store, key = reach(self.context.store, split.key, self.context.store_options)
        try:
            file = opened_file(StoredFile(store, key, split.size_bytes))
            return split, learn_missing(file, split_id_of(split), catalog, columns)
        except (pa.ArrowException, OSError) as error:
            hint = f"run windrow check {self.name} --data"
            raise Damaged(f"{split.key}: it cannot be read for statistics: {error}; {hint}") from error


def learn_missing(file: pq.ParquetFile, file_id: FileId, catalog: Catalog, columns: Collection[str] | None) -> Columns:
    """Read what a catalog does not know of some columns of a file, or of all, and return what was learnt."""
    layout = FileLayout(file_id, _row_groups(file))
    names = [name for name in file.schema_arrow.names if columns is None or name in columns]
    return learn_file(file, layout, catalog.load([file_id], names).get(file_id.key, {}), names)


def learn_file(file: pq.ParquetFile, layout: FileLayout, known: Columns, names: Collection[str]) -> Columns:
    """Read what is not known of columns of a file, and return those of which something was learnt."""
    schema = file.schema_arrow
    collector = FileCollector(layout, known)
    flat = [name for name in names if collects(layout, schema.field(name).type)]
    for row_group in range(file.metadata.num_row_groups):
        wanted = [name for name in flat if collector.wants(name, row_group)]
        if wanted:
            rows = file.read_row_group(row_group, columns=wanted, use_threads=False)
            collector.add(row_group, 0, {name: _in_one(rows.column(name)) for name in wanted})
    return collector.changed


def opened_file(stored: StoredFile) -> pq.ParquetFile:
    """A file whose short texts are decoded as dictionaries."""
    handle = Handle(stored)
    metadata = pq.read_metadata(handle)
    return pq.ParquetFile(handle, metadata=metadata, read_dictionary=_short_texts(metadata))


def _short_texts(metadata: pq.FileMetaData) -> list[str]:
    if not metadata.num_row_groups:
        return []
    first = metadata.row_group(0)
    chunks = [first.column(number) for number in range(first.num_columns)]
    return [
        chunk.path_in_schema
        for chunk in chunks
        if chunk.physical_type == "BYTE_ARRAY" and chunk.total_uncompressed_size < _SHORT_BYTES * chunk.num_values
    ]


def _row_groups(file: pq.ParquetFile) -> tuple[int, ...]:
    metadata = file.metadata
    return tuple(metadata.row_group(number).num_rows for number in range(metadata.num_row_groups))


def _in_one(column: pa.ChunkedArray) -> pa.Array:
    merged = column.unify_dictionaries().combine_chunks()
    return pa.concat_arrays(merged.chunks) if isinstance(merged, pa.ChunkedArray) else merged


def _check_columns(columns: Collection[str], known: Collection[str], table: str) -> None:
    unknown = sorted(set(columns).difference(known))
    if unknown:
        raise NotFound(f"table {table!r} has no column {unknown[0]!r}; it has {', '.join(known)}")
