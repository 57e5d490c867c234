"""Tables of QuestDB as relations: a snapshot's files, and how DuckDB makes the table's values of what they store."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace
from functools import partial

import pyarrow as pa

from windrow.engines.duckdb.questdb_values import has_stored_test, is_read_as_stored, readings_of, zero_of
from windrow.engines.duckdb.relations import Relation
from windrow.engines.scan import Scan
from windrow.model.epochs import OldColumn
from windrow.model.limits import NO_LIMITS, Limits
from windrow.model.predicate import Predicate
from windrow.model.rows import Rows
from windrow.planning.data_files import DataFile
from windrow.planning.epoch_plans import epochs_planned
from windrow.planning.scan_context import ScanContext
from windrow.planning.scan_plan import ScanPlan
from windrow.questdb.folders import DATA
from windrow.questdb.snapshot import PartitionFile, Snapshot
from windrow.questdb.stored_tests import stored_test
from windrow.questdb.types import ColumnType, column_type
from windrow.questions.naming import Question
from windrow.questions.spelling import sql_text
from windrow.reading.read_context import ReadContext
from windrow.sidecar.pruning import Step
from windrow.storage import LocalStore

__all__ = ["scan_snapshot", "snapshot_relation"]


def scan_snapshot(
    snapshot: Snapshot,
    where: str | Predicate | None = None,
    columns: Iterable[str] | None = None,
    *,
    limits: Limits = NO_LIMITS,
) -> Scan:
    """A scan of the rows of a snapshot; wide decimals are exact in Arrow."""
    folder = str(snapshot.folder)
    context = ReadContext(folder, LocalStore(folder), limits=limits)
    return Scan.of(snapshot.name, snapshot_relation(snapshot, has_wide=True), context, where, columns)


def snapshot_relation(snapshot: Snapshot, *, has_wide: bool = False, prune: bool = True) -> Relation:
    """What a table of QuestDB stands for in a query.

    Decimals beyond DuckDB's digits are bytes for a caller that turns them into decimals, as `has_wide` says; for others
    a query that reads one fails.
    """
    kinds = {
        each.name: column_type(each.type, f"{snapshot.folder}: column {each.name!r}") for each in snapshot.meta.columns
    }
    shown = pa.schema([(name, _declared(kind, has_wide=has_wide)) for name, kind in kinds.items()])
    epochs: dict[tuple[object, ...], int] = {}
    old: dict[int, Mapping[str, OldColumn]] = {}
    files = []
    for partition in snapshot.partitions:
        changed = _changed(partition, kinds, snapshot, has_wide=has_wide)
        epoch = epochs.setdefault(
            tuple(sorted((name, each.type, each.readings) for name, each in changed.items())), len(epochs)
        )
        old[epoch] = changed
        files.append(DataFile(partition.store, DATA, partition.identity, epoch=epoch, described=partition.sidecar))
    folder = str(snapshot.folder)
    context = ScanContext(folder, LocalStore(folder), prune=prune, old=old)

    def plan(question: Question) -> ScanPlan:
        return epochs_planned(context, files, question if prune else Question(question.columns, None))

    def explain(question: Question) -> ScanPlan:
        found = plan(question)
        attached = Step("Parquet partitions", "partitions", len(snapshot.txn.partitions), len(files))
        return replace(found, steps=Rows(Step, (attached, *found.steps)))

    def release() -> None:
        for partition in snapshot.partitions:
            partition.store.release()

    wide = {name: kind.shown for name, kind in kinds.items() if has_wide and _is_wide(kind)}
    return Relation(shown, plan, explain=explain, release=release, old=old, wide=wide)


def _changed(
    partition: PartitionFile, kinds: Mapping[str, ColumnType], snapshot: Snapshot, *, has_wide: bool
) -> dict[str, OldColumn]:
    """The columns whose values are not what a partition stores, and how they are read."""
    found = {each.name: each for each in partition.columns}
    changed = {}
    for name, wanted in kinds.items():
        column, zero = found.get(name), zero_of(wanted)
        where = f"{snapshot.folder / partition.folder}: column {name!r}"
        if _is_wide(wanted) and not has_wide:
            problem = f"{where} is {wanted.shown}, which DuckDB cannot hold; read it with table.scan().to_arrow()"
            changed[name] = OldColumn(pa.binary(32), (), readings=(f"error({sql_text(problem)})",))
        elif column is None:
            if zero is not None:
                changed[name] = OldColumn(_declared(wanted, has_wide=has_wide), (), readings=(zero,))
        elif not is_read_as_stored(column.type, wanted, has_nulls=column.has_nulls):
            readings = readings_of(name, column.type, wanted, where)
            if readings:
                test = partial(stored_test, wanted.tag) if has_stored_test(column.type, wanted) else None
                changed[name] = OldColumn(column.type.stored, (), readings=readings, stored_test=test)
    return changed


def _is_wide(kind: ColumnType) -> bool:
    return bool(pa.types.is_decimal256(kind.shown))


def _declared(kind: ColumnType, *, has_wide: bool) -> pa.DataType:
    """The type of a column as DuckDB is told of it."""
    if not _is_wide(kind):
        return kind.shown
    return pa.binary(32) if has_wide else pa.string()
