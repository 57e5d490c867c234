"""A selection dealt out to tasks: each gets files, or a part of a large one, and reads them through our own storage."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field

import pyarrow as pa

from windrow.engines.arrow import RowStream
from windrow.engines.duckdb.relations import Relation
from windrow.engines.selection import Selection
from windrow.model.epochs import OldColumns
from windrow.model.predicate import Predicate
from windrow.model.split import SidecarLocation
from windrow.planning.data_files import DataFile
from windrow.planning.epoch_plans import epochs_planned
from windrow.planning.scan_context import ScanContext
from windrow.planning.scan_plan import ScanPlan
from windrow.questions.naming import Question
from windrow.reading.read_context import ReadContext
from windrow.runners.dealing import dealt
from windrow.storage import Identity, Store, patient_if_remote, reach_store

__all__ = ["Share", "Task", "deal_out", "files_of"]

_TASK_BYTES = 64 * 2**20
_LEAST_BYTES = 2**19
"""To start a task costs more than to read so little."""


@dataclass(frozen=True, slots=True)
class _File:
    """A file by its address, as it travels to a task."""

    store: str
    key: str
    identity: Identity
    sidecar: SidecarLocation | None
    sidecar_store: str | None
    epoch: int
    described: bytes | None = field(repr=False)

    @classmethod
    def of(cls, file: DataFile) -> _File:
        other = None if file.sidecar_store is None else file.sidecar_store.url
        return cls(file.store.url, file.key, file.identity, file.sidecar, other, file.epoch, file.described)

    def opened(self, stores: _Stores) -> DataFile:
        other = None if self.sidecar_store is None else stores.get(self.sidecar_store)
        return DataFile(
            stores.get(self.store),
            self.key,
            self.identity,
            self.sidecar,
            other,
            epoch=self.epoch,
            described=self.described,
        )


@dataclass(frozen=True, slots=True)
class Share:
    """What one task reads: files, or one part of several of them."""

    files: tuple[_File, ...]
    part: int = 0
    parts: int = 1


@dataclass(frozen=True, slots=True)
class Task:
    """What every task has to know besides its share."""

    name: str
    columns: pa.Schema
    attributes: Mapping[str, str]
    wanted: tuple[str, ...]
    where: str | None
    pruned_by: Predicate | None
    lake: str
    store_options: Mapping[str, str] = field(repr=False)
    memory_budget: int = 128 * 2**20
    old: OldColumns = field(default_factory=dict)

    @classmethod
    def of(cls, selection: Selection, lake: str, store_options: Mapping[str, str]) -> Task:
        """The task of reading a selection."""
        relation = selection.needed
        return cls(
            selection.name,
            relation.columns,
            dict(relation.attributes),
            selection.columns,
            selection.where,
            selection.pruned_by,
            lake,
            dict(store_options),
            old=relation.old,
        )

    def rows(self, share: Share) -> Iterator[pa.RecordBatch]:
        """Read a share, in a task; only rows that meet the condition come."""
        stores = _Stores(self.store_options)
        files = [file.opened(stores) for file in share.files]
        # Spark runs as many tasks as it has cores; those of one file need a piece each.
        context = ScanContext(
            self.lake, files[0].store, store_options=self.store_options, threads=share.parts, old=self.old
        )

        def plan(question: Question) -> ScanPlan:
            return epochs_planned(context, files, question, share=(share.part, share.parts))

        relation = Relation(self.columns, plan, self.attributes, old=self.old)
        selection = Selection(self.name, relation, self.wanted, self.where, self.pruned_by)
        yield from RowStream(selection, ReadContext(self.lake, files[0].store, in_flight=self.memory_budget))


def files_of(plan: ScanPlan) -> list[DataFile]:
    """The files of which a plan reads something."""
    used = {virtual.files[number].uri: virtual.files[number] for virtual in plan.virtual for number in virtual.members}
    return [used[uri] for uri in sorted(used)]


def deal_out(files: Sequence[DataFile], tasks: int) -> list[Share]:
    """Deal files out evenly by their bytes, to about so many tasks or to more where they are large."""
    total = sum(file.identity.size for file in files)
    target = min(_TASK_BYTES, max(_LEAST_BYTES, -(-total // max(tasks, 1))))
    large = [file for file in files if file.identity.size > target]
    small = [file for file in files if file.identity.size <= target]
    shares = [share for file in large for share in _parts(file, -(-file.identity.size // target))]
    left = -(-sum(file.identity.size for file in small) // target)
    return shares + [Share(tuple(map(_File.of, each))) for each in dealt(small, left, lambda file: file.identity.size)]


def _parts(file: DataFile, parts: int) -> list[Share]:
    return [Share((_File.of(file),), part, parts) for part in range(parts)]


class _Stores:
    """Stores that are open in a task, by address."""

    def __init__(self, options: Mapping[str, str]) -> None:
        self._options = options
        self._open: dict[str, Store] = {}

    def get(self, url: str) -> Store:
        if url not in self._open:
            self._open[url] = patient_if_remote(reach_store(url, self._options))
        return self._open[url]
