"""What is learnt of one split by reading it: columns, labels and series. It runs anywhere, and stores nothing."""

from __future__ import annotations

import base64
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from windrow.errors import Damaged
from windrow.model.split import SplitMetadata
from windrow.model.stored_types import type_from_text, type_to_text
from windrow.statistics.catalog import Catalog, Columns
from windrow.statistics.collector import FileCollector, collects
from windrow.statistics.encoding import decode, encode
from windrow.statistics.label_collector import LabelCollector
from windrow.statistics.label_encoding import decode_labels, encode_labels
from windrow.statistics.label_summary import LabelSummary, covered_labels
from windrow.statistics.layout import FileId, FileLayout, split_id_of
from windrow.storage import Store, reach
from windrow.storage.handles import Handle, StoredFile

__all__ = ["Learnt", "Lesson", "labels_are_known", "learn_file", "learn_missing", "learn_split", "opened_file"]

_SHORT_BYTES = 4
"""A text that takes no more bytes in a file stands in a dictionary."""


@dataclass(frozen=True, slots=True)
class Lesson:
    """What is to be learnt of a split."""

    split: SplitMetadata
    columns: Mapping[str, pa.DataType]
    """Columns of the table, and their types there; a split that lacks one has nulls in it."""
    tags: Sequence[str] | None = None
    """What tells series apart; None where labels are not to be learnt."""

    def to_dict(self) -> dict[str, Any]:
        """Plain values, for tasks elsewhere."""
        columns = {name: type_to_text(kind) for name, kind in self.columns.items()}
        return {"split": self.split.to_dict(), "columns": columns, "tags": self.tags}

    @classmethod
    def from_dict(cls, data: Mapping[str, Any]) -> Lesson:
        """Read what `to_dict` gave."""
        columns = {name: type_from_text(text) for name, text in data["columns"].items()}
        return cls(SplitMetadata.from_dict(data["split"]), columns, data["tags"])


@dataclass(frozen=True, slots=True)
class Learnt:
    """What was learnt of a split."""

    split: SplitMetadata
    columns: Columns = field(default_factory=dict)
    labels: LabelSummary | None = None

    def to_dict(self) -> dict[str, Any]:
        """Plain values: the records that catalogs store, as text."""
        columns = {name: _text(encode(summary)) for name, summary in self.columns.items()}
        labels = None if self.labels is None else _text(encode_labels(self.labels))
        return {"columns": columns, "labels": labels}

    @classmethod
    def from_dict(cls, split: SplitMetadata, data: Mapping[str, Any]) -> Learnt:
        """Read what `to_dict` gave of a split."""
        file, stored = split_id_of(split), data["labels"]
        columns = {name: decode(base64.b64decode(text), file) for name, text in data["columns"].items()}
        labels = None if stored is None else decode_labels(base64.b64decode(stored), file)
        return cls(split, {name: each for name, each in columns.items() if each is not None}, labels)


def learn_split(store: Store, lesson: Lesson, known: Columns, options: Mapping[str, str], *, table: str) -> Learnt:
    """Read of a split what is to be learnt, and is not known."""
    split = lesson.split
    store, key = reach(store, split.key, options)
    try:
        file = opened_file(StoredFile(store, key, split.size_bytes))
        layout = FileLayout(split_id_of(split), _row_groups(file))
        collector = None if lesson.tags is None else LabelCollector(lesson.tags)
        names = file.schema_arrow.names
        columns = learn_file(file, layout, known, [name for name in lesson.columns if name in names], collector)
        columns |= _nulls(layout, known, _absent(lesson.columns, file.schema_arrow))
    except (pa.ArrowException, OSError) as error:
        hint = f"run windrow check {table} --data"
        raise Damaged(f"{split.key}: it cannot be read for statistics: {error}; {hint}") from error
    return Learnt(split, columns, None if collector is None else collector.summary(layout.file, layout.rows))


def learn_missing(file: pq.ParquetFile, file_id: FileId, catalog: Catalog, columns: Collection[str] | None) -> Columns:
    """Read what a catalog does not know of some columns of a file, or of all, and return what was learnt."""
    layout = FileLayout(file_id, _row_groups(file))
    names = [name for name in file.schema_arrow.names if columns is None or name in columns]
    return learn_file(file, layout, catalog.load([file_id], names).get(file_id.key, {}), names)


def learn_file(
    file: pq.ParquetFile,
    layout: FileLayout,
    known: Columns,
    names: Collection[str],
    labels: LabelCollector | None = None,
) -> Columns:
    """Read what is not known of columns of a file, and return those of which something was learnt.

    With a collector of labels, it is given all rows of the columns that it takes.
    """
    schema = file.schema_arrow
    collector = FileCollector(layout, known)
    flat = [name for name in names if collects(layout, schema.field(name).type)]
    of_labels = [] if labels is None else labels.columns(schema.names)
    for row_group in range(file.metadata.num_row_groups):
        wanted = [name for name in flat if collector.wants(name, row_group)]
        needed = list(dict.fromkeys([*wanted, *of_labels]))
        if needed:
            rows = file.read_row_group(row_group, columns=needed, use_threads=False)
            columns = {name: _in_one(rows.column(name)) for name in needed}
            collector.add(row_group, 0, {name: columns[name] for name in wanted})
            if labels is not None:
                labels.add({name: columns[name] for name in of_labels})
    return collector.changed


def labels_are_known(known: LabelSummary | None, tags: Sequence[str]) -> bool:
    """Whether nothing is left to learn of the labels of a split."""
    return known is not None and known.is_complete and set(covered_labels(tags)) <= set(known.labels)


def _absent(columns: Mapping[str, pa.DataType], schema: pa.Schema) -> dict[str, pa.DataType]:
    """The columns that a file surely lacks; one with maps may have the values of any column in them."""
    if any(pa.types.is_map(each.type) for each in schema):
        return {}
    spelled = {name.casefold() for name in schema.names}
    return {name: kind for name, kind in columns.items() if name.casefold() not in spelled}


def _nulls(layout: FileLayout, known: Columns, absent: Mapping[str, pa.DataType]) -> Columns:
    """What there is to know of columns that a file lacks: all of their values are null."""
    collector = FileCollector(layout, known)
    for row_group, rows in enumerate(layout.row_groups):
        for name, kind in absent.items():
            if collector.wants(name, row_group):
                collector.add(row_group, 0, {name: pa.nulls(rows, kind)})
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


def _text(data: bytes) -> str:
    return base64.b64encode(data).decode("ascii")
