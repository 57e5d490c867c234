"""Learns at once, by reading a table, what queries would leave behind one after the other.

Splits are read by threads of this process or by Spark's tasks. Tasks learn and report records, which only this process
stores: they need no metastore, and an attempt that is repeated changes nothing.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from functools import partial
from typing import TYPE_CHECKING

import pyarrow as pa

from windrow.context import Context
from windrow.errors import NotFound
from windrow.metastore import TableRecord
from windrow.model.points import tag_columns
from windrow.model.shown import ShownByField
from windrow.model.split import SplitMetadata
from windrow.runners.spark import run_on_spark, slots
from windrow.statistics.cached_catalog import CachedCatalog
from windrow.statistics.catalog import Columns
from windrow.statistics.collector import MOST_COLUMNS
from windrow.statistics.hashing import domain_of
from windrow.statistics.label_catalog import LabelCatalog
from windrow.statistics.label_collector import can_be_label
from windrow.statistics.layout import split_id_of
from windrow.storage import reach_store
from windrow.upkeep.split_learning import Learnt, Lesson, labels_are_known, learn_split

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

__all__ = ["Analysis", "AnalyzeTable"]

_PAGE = 200


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
class _Work:
    """What every task knows; plain values, so that it travels to any worker."""

    lake_url: str
    store_options: Mapping[str, str]
    table: str

    def __call__(self, lessons: Iterable[str]) -> Iterator[str]:
        """Learn, and yield the place of each lesson with what was learnt, as text."""
        store = reach_store(self.lake_url, self.store_options)
        for text in lessons:
            place, data = json.loads(text)
            learnt = learn_split(store, Lesson.from_dict(data), {}, self.store_options, table=self.table)
            yield json.dumps([place, learnt.to_dict()])


@dataclass(frozen=True, slots=True)
class AnalyzeTable:
    """An analysis of one table."""

    context: Context
    name: str
    on_splits: Callable[[int, int], None] = field(default=lambda _, __: None)
    """Hears of the rows and bytes of splits as they are done."""

    def run(self, columns: Collection[str] | None = None, *, spark: SparkSession | None = None) -> Analysis:
        """Learn what is not known of the newest version: of some columns, or of all, and then of labels and series."""
        table = self.context.metastore.table(self.name)
        types = {each.name: each.type for each in self.context.metastore.columns(table.table_id)}
        if columns is not None:
            _check_columns(columns, list(types), self.name)
        wanted = {name: kind for name, kind in types.items() if columns is None or name in columns}
        tags = _tags(table, types) if columns is None else None
        catalog, labels = (
            self.context.statistics_of(table.table_id),
            LabelCatalog(self.context.metastore, table.table_id),
        )
        splits = rows = learnt = 0
        with self.context.pins.hold(table.table_id, table.version):
            for page in self.context.metastore.splits(table.table_id, table.version, page_size=_PAGE):
                lessons = _lessons(page, catalog, labels, wanted, tags)
                for found in self._learnt(lessons, catalog, spark):
                    catalog.store(found.columns)
                    if found.labels is not None:
                        labels.store(found.labels)
                    learnt += len(found.columns)
                    self.on_splits(found.split.row_count, found.split.size_bytes)
                splits, rows = splits + len(page), rows + sum(split.row_count for split in page)
        return Analysis(self.name, table.version, splits, rows, learnt)

    def _learnt(
        self, lessons: Sequence[Lesson], catalog: CachedCatalog, spark: SparkSession | None
    ) -> Iterator[Learnt]:
        """What is learnt of splits; of one of which nothing is to be learnt nothing is read."""
        yield from (Learnt(each.split) for each in lessons if not each.columns and each.tags is None)
        lessons = [each for each in lessons if each.columns or each.tags is not None]
        if spark is not None:
            yield from self._on_spark(spark, lessons)
            return
        with ThreadPoolExecutor(self.context.limits.threads, "windrow") as pool:
            yield from pool.map(partial(self._here, catalog), lessons)

    def _here(self, catalog: CachedCatalog, lesson: Lesson) -> Learnt:
        known = _known(catalog, lesson.split, lesson.columns)
        return learn_split(self.context.store, lesson, known, self.context.store_options, table=self.name)

    def _on_spark(self, spark: SparkSession, lessons: Sequence[Lesson]) -> Iterator[Learnt]:
        if not lessons:
            return
        work = _Work(self.context.url, dict(self.context.store_options), self.name)
        texts = [json.dumps([place, lesson.to_dict()]) for place, lesson in enumerate(lessons)]
        tasks = min(len(lessons), slots(spark))
        shares = [texts[number::tasks] for number in range(tasks)]
        for report in run_on_spark(spark, shares, lambda share, _: work(share)):
            place, data = json.loads(report)
            yield Learnt.from_dict(lessons[place].split, data)


def _known(catalog: CachedCatalog, split: SplitMetadata, columns: Collection[str]) -> Columns:
    return catalog.load([split_id_of(split)], columns).get(split.split_id, {})


def _lessons(
    page: Sequence[SplitMetadata],
    catalog: CachedCatalog,
    labels: LabelCatalog,
    wanted: Mapping[str, pa.DataType],
    tags: Sequence[str] | None,
) -> list[Lesson]:
    """What is not known of each split."""
    of_labels = {} if tags is None else labels.load([split_id_of(split) for split in page])
    lessons = []
    for split in page:
        known = _known(catalog, split, wanted)
        columns = {name: kind for name, kind in wanted.items() if _is_open(known, name, kind)}
        is_known = tags is None or labels_are_known(of_labels.get(split.split_id), tags)
        lessons.append(Lesson(split, columns, None if is_known else tags))
    return lessons


def _is_open(known: Columns, name: str, kind: pa.DataType) -> bool:
    """Whether something may be learnt of a column of a split."""
    if name in known:
        return not known[name].is_complete
    return domain_of(kind) is not None and len(known) < MOST_COLUMNS


def _tags(table: TableRecord, types: Mapping[str, pa.DataType]) -> tuple[str, ...]:
    """The columns that tell the series of a table apart."""
    settings = table.settings
    tags = tag_columns(
        pa.schema(list(types.items())), declared=settings.tags, timestamp=settings.timestamp, signal=settings.signal
    )
    return tuple(name for name in tags if name in types and can_be_label(types[name]))


def _check_columns(columns: Collection[str], known: Collection[str], table: str) -> None:
    unknown = sorted(set(columns).difference(known))
    if unknown:
        raise NotFound(f"table {table!r} has no column {unknown[0]!r}; it has {', '.join(known)}")
