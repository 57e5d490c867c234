"""Checks a table: metastore, files, sidecars, mirror, every invariant; by metadata, or wholly by data.

Splits are checked by threads of this process or by Spark's tasks. `repair` makes sidecars again and lets the mirror
catch up; what is wrong with a data file cannot be put right, and is reported.
"""

from __future__ import annotations

import json
import logging
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from itertools import chain, islice
from typing import TYPE_CHECKING, Any

from windrow.context import Context
from windrow.errors import Damaged, Incompatible, InvalidInput, MetastoreError, NotFound
from windrow.metastore import Pin, TableRecord
from windrow.metastore.stored import REBUILD
from windrow.mirror.audit import Fault, audit, repair_mirror
from windrow.model.names import name_problems
from windrow.model.settings import TableSettings
from windrow.model.shown import ShownVerdict
from windrow.model.sparse import Spread, sparse_warning
from windrow.model.split import SidecarLocation, SplitMetadata
from windrow.runners.local import run_locally
from windrow.runners.spark import run_on_spark, slots
from windrow.sidecar.build import build_sidecar
from windrow.sidecar.tails import reader_of
from windrow.storage import reach, reach_store
from windrow.upkeep.check_split import Finding, check_split

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

__all__ = ["CheckResult", "CheckTable"]

_log = logging.getLogger(__name__)
_PAGE = 200
_HOLD = 3600.0
_OWNER = "windrow check"
_IN_DOUBT = f"the Delta log is intact, so the metastore may be damaged or old: {REBUILD}"
_NOT_CHECKED = (
    "whether rows were lost before they were ingested",
    "series ids (DM-4): the tags that a table had when a split was written are not kept",
)


@dataclass(frozen=True, slots=True, repr=False)
class CheckResult(ShownVerdict):
    """What was looked at, what is wrong, and what was put right."""

    table: str
    version: int
    by: str
    """`metadata` or `data`."""
    splits: int
    rows: int
    size_bytes: int
    unprotected: int
    """Splits without a digest: damage in them that contradicts nothing is not seen."""
    findings: tuple[Finding, ...]
    repaired: tuple[Finding, ...] = ()
    not_checked: tuple[str, ...] = _NOT_CHECKED
    warnings: tuple[str, ...] = ()
    """What is not wrong, but slow, and what to set."""


@dataclass(frozen=True, slots=True)
class _Work:
    """What every task knows; plain values, so that it travels to any worker."""

    lake_url: str
    store_options: Mapping[str, str]
    settings: TableSettings
    data: bool

    def __call__(self, splits: Iterable[Mapping[str, Any]]) -> Iterator[str]:
        """Check splits, and yield what is wrong with them as text."""
        store = reach_store(self.lake_url, self.store_options)
        for each in splits:
            split = SplitMetadata.from_dict(each)
            try:
                findings = check_split(store, split, self.settings, data=self.data, options=self.store_options)
            except (Damaged, InvalidInput) as error:
                findings = [Finding("metastore", str(split.key), str(error))]
            yield from (json.dumps(finding.to_dict()) for finding in findings)


@dataclass(frozen=True, slots=True)
class CheckTable:
    """A check of one table."""

    context: Context
    name: str
    on_splits: Callable[[int, int], None] = field(default=lambda _, __: None)
    """Hears of the rows and bytes of splits as they are checked."""

    def run(self, *, data: bool = False, repair: bool = False, spark: SparkSession | None = None) -> CheckResult:
        """Check the newest version; with `repair`, put right what can be, and say what is left."""
        table = self.context.metastore.table(self.name)
        by = "data" if data else "metadata"
        broken = self._database(self.context.metastore.integrity())
        found = broken or self._database(self.context.metastore.problems(table.table_id))
        counts = (0, 0, 0, 0)
        if broken or (found and not 0 <= table.oldest_version <= table.version):
            return CheckResult(self.name, table.version, by, *counts, tuple(found))
        warnings: tuple[str, ...] = ()
        with self._held(table, table.version) as at:
            try:
                warnings = self._warnings(table)
                of_splits, counts = self._splits(table, at, data=data, spark=spark)
                found += of_splits
                found += self._names(table)
                found += self._mirror(table, data=data)
            except (Damaged, InvalidInput) as error:
                found += self._database([str(error)])
        left = self._repair(table, found, data=data) if repair else found
        repaired = tuple(each for each in found if each not in left)
        return CheckResult(self.name, table.version, by, *counts, tuple(left), repaired, warnings=warnings)

    def _warnings(self, table: TableRecord) -> tuple[str, ...]:
        listed = chain.from_iterable(self.context.metastore.splits(table.table_id, table.version, page_size=_PAGE))
        warning = sparse_warning(Spread.of_splits(listed), table.settings)
        return () if warning is None else (warning,)

    def _splits(
        self, table: TableRecord, at: int | Pin, *, data: bool, spark: SparkSession | None
    ) -> tuple[list[Finding], tuple[int, int, int, int]]:
        work = _Work(self.context.url, dict(self.context.store_options), table.settings, data)
        listed = chain.from_iterable(self.context.metastore.splits(table.table_id, at, page_size=_PAGE))
        findings: list[Finding] = []
        splits = rows = size = unprotected = 0
        while page := list(islice(listed, _PAGE)):
            if isinstance(at, Pin):
                at = self.context.metastore.renew(at, seconds=_HOLD)
            units = [split.to_dict() for split in page]
            reports = (
                _on_spark(spark, work, units) if spark is not None else _here(work, units, self.context.limits.threads)
            )
            findings += (Finding(**json.loads(report)) for report in reports)
            done = sum(split.row_count for split in page), sum(split.size_bytes for split in page)
            splits, rows, size = splits + len(page), rows + done[0], size + done[1]
            unprotected += sum(split.digest is None for split in page)
            self.on_splits(*done)
        return findings, (splits, rows, size, unprotected)

    def _database(self, problems: Sequence[str]) -> list[Finding]:
        """What the metastore finds wrong with itself cannot be put right: the Delta log may be the better copy."""
        hinted = (each if REBUILD in each else f"{each}; {REBUILD}" for each in problems)
        return [Finding("database", "metastore", problem) for problem in hinted]

    def _names(self, table: TableRecord) -> list[Finding]:
        """Columns of older tables may differ by case alone, which engines take for one."""
        names = [column.name for column in self.context.metastore.columns(table.table_id, table.version)]
        return [Finding("metastore", table.name, problem) for problem in name_problems(names)]

    def _mirror(self, table: TableRecord, *, data: bool) -> list[Finding]:
        """Every entry of the mirror shows what its version shows."""
        if not table.settings.mirror or not table.version:
            return []
        # Garbage collection may have raised the oldest version since the check began.
        table = replace(table, oldest_version=self.context.metastore.table(self.name).oldest_version)
        with self._held(table, table.oldest_version):
            faults = audit(self.context.mirror, table, data=data)
        return [_finding(fault) for fault in faults]

    @contextmanager
    def _held(self, table: TableRecord, version: int) -> Iterator[int | Pin]:
        """Hold a version, so that garbage collection leaves what is being read."""
        pin = self._pin(table, version)
        try:
            yield pin or version
        finally:
            if pin is not None:
                self.context.metastore.release(pin)

    def _pin(self, table: TableRecord, version: int) -> Pin | None:
        """Return a pin; None for a role that may only read, which checks without."""
        metastore, new_id = self.context.metastore, self.context.new_id
        try:
            return metastore.pin(table.table_id, version, pin_id=new_id(), owner=_OWNER, seconds=_HOLD)
        except MetastoreError as error:
            if error.retryable:
                raise
            _log.debug("version %d is checked without a pin, which could not be written: %s", version, error)
            return None

    def _repair(self, table: TableRecord, findings: Sequence[Finding], *, data: bool) -> list[Finding]:
        """Put right what can be, look again, and return what is still wrong.

        Nothing is written while the database is in doubt: the mirror may be the better copy.
        """
        if any(each.kind == "database" for each in findings):
            return list(findings)
        behind = any(each.kind == "mirror" and each.repairable for each in findings)
        if behind:
            repair_mirror(self.context.mirror, table)
        made = self._make_sidecars(table, {each.place for each in findings if each.kind == "sidecar"})
        left = [each for each in findings if not (each.kind == "sidecar" and each.place in made)]
        if behind:
            left = [each for each in left if each.kind != "mirror"]
            left += self._mirror(self.context.metastore.table(self.name), data=data)
        return left + [each for place in made.values() for each in place]

    def _make_sidecars(self, table: TableRecord, broken: set[str]) -> dict[str, list[Finding]]:
        """Make sidecars again from their files, and return those that could be made with what is wrong with them."""
        made: dict[str, list[Finding]] = {}
        listed = chain.from_iterable(self.context.metastore.splits(table.table_id, table.version)) if broken else ()
        for split in listed:
            where = split.sidecar
            if where is not None and where.key in broken:
                again = self._make_sidecar(table, split, where)
                if again is not None:
                    made[where.key] = again
        return made

    def _make_sidecar(self, table: TableRecord, split: SplitMetadata, where: SidecarLocation) -> list[Finding] | None:
        """Make a sidecar again and look at it; None when its file does not allow it."""
        options = self.context.store_options
        store, key = reach(self.context.store, split.key, options)
        try:
            size = store.head(key).size
            made = build_sidecar(reader_of(store, key), size, name=split.key, etag=split.etag)
        except (NotFound, Damaged, Incompatible):
            return None
        place = SidecarLocation(where.key, 0, len(made))
        self.context.store.put(place.key, made)
        self.context.metastore.place_sidecars(table.table_id, {split.split_id: place})
        findings = check_split(
            self.context.store, replace(split, sidecar=place), table.settings, data=False, options=options
        )
        return [each for each in findings if each.kind == "sidecar"]


def _finding(fault: Fault) -> Finding:
    kind, repairable = ("mirror", fault.repairable) if fault.is_log else ("database", False)
    return Finding(kind, fault.place, fault.problem if fault.is_log else f"{fault.problem}; {_IN_DOUBT}", repairable)


def _here(work: _Work, units: Sequence[Mapping[str, Any]], threads: int | None) -> list[str]:
    return run_locally(units, lambda unit, _: work([unit]), threads=threads)


def _on_spark(spark: SparkSession, work: _Work, units: Sequence[Mapping[str, Any]]) -> list[str]:
    tasks = min(len(units), slots(spark))
    shares = [[json.dumps(unit) for unit in units[number::tasks]] for number in range(tasks)]
    return run_on_spark(spark, shares, lambda texts, _: work(map(json.loads, texts)))
