"""What is known of the columns of a table, or of files, as rows for people."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from itertools import chain

from windrow.metastore import Metastore
from windrow.statistics.catalog import Catalog, TableCatalog
from windrow.statistics.hashing import domain_of
from windrow.statistics.layout import FileId, split_id_of
from windrow.statistics.puffin import Blob
from windrow.statistics.sketch import Sketch
from windrow.statistics.table_summary import table_statistics

__all__ = ["StatisticsRow", "column_rows", "sketch_blobs", "statistics_rows"]

_PAGE = 200


@dataclass(frozen=True, slots=True)
class StatisticsRow:
    """What is known of one column."""

    column: str
    rows: int
    """Rows of the table."""
    learnt_rows: int
    """Rows whose values were read for it."""
    distinct: int | None
    """How many different values there are; None when nothing is known."""
    distinct_error: float | None
    """The relative standard error of that; 0 for an exact count."""
    is_exact: bool
    nulls: int | None
    minimum: str | None
    maximum: str | None


def statistics_rows(metastore: Metastore, table_id: str, version: int) -> Iterator[StatisticsRow]:
    """What is known of each column of a table."""
    splits = chain.from_iterable(metastore.splits(table_id, version))
    sizes = {split_id_of(split): split.row_count for split in splits}
    names = [each.name for each in metastore.columns(table_id, version)]
    return column_rows(sizes, names, TableCatalog(metastore, table_id))


def column_rows(sizes: Mapping[FileId, int], names: Iterable[str], catalog: Catalog) -> Iterator[StatisticsRow]:
    """What is known of columns of files with so many rows; one column after the other, since files may be many."""
    rows = {file.key: count for file, count in sizes.items()}
    for name in names:
        known = catalog.load(list(sizes), [name])
        column = table_statistics(rows, known, [name]).column(name)
        distinct = column.distinct
        yield StatisticsRow(
            column=name,
            rows=sum(rows.values()),
            learnt_rows=sum(columns[name].known_rows for columns in known.values()),
            distinct=None if distinct is None else round(distinct.estimate),
            distinct_error=None if distinct is None or distinct.is_vague else distinct.error,
            is_exact=distinct is not None and distinct.is_exact,
            nulls=column.null_count,
            minimum=None if column.minimum is None else str(column.minimum),
            maximum=None if column.maximum is None else str(column.maximum),
        )


def sketch_blobs(metastore: Metastore, table_id: str, version: int) -> Iterator[Blob]:
    """The sketch of each column of a table that has one, of all splits together, one column after the other.

    Values that a column had before its type changed are left out: their hashes are others.
    """
    splits = [split for page in metastore.splits(table_id, version) for split in page]
    rows, catalog = sum(split.row_count for split in splits), TableCatalog(metastore, table_id)
    for column in metastore.columns(table_id, version):
        sketch, known_rows = Sketch(), 0
        for start in range(0, len(splits), _PAGE):
            files = [split_id_of(split) for split in splits[start : start + _PAGE]]
            for found in catalog.load(files, [column.name], with_samples=False).values():
                summary = found[column.name]
                if domain_of(summary.type) == domain_of(column.type):
                    sketch.merge(summary.sketch)
                    known_rows += summary.known_rows
        if known_rows:
            yield Blob(column.name, column.field_id, sketch, rows, known_rows)
