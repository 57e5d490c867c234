"""Looks at every entry of a mirror: it is there, can be read, is what was written, and shows what its version shows."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from itertools import chain

from windrow.errors import SnapshotExpired
from windrow.metastore import TableRecord
from windrow.mirror import actions
from windrow.mirror.actions import Described
from windrow.mirror.checkpoints import Checkpoints
from windrow.mirror.compare import compare_adds, differences
from windrow.mirror.follow import Mirror
from windrow.mirror.log import MOST_MISSING, Entry, Log, State

__all__ = ["Fault", "audit", "repair_mirror"]

_ROUNDS = 3


@dataclass(frozen=True, slots=True)
class Fault:
    """Something that is wrong with a mirror, or with what it is compared with."""

    place: str
    problem: str
    entry: int | None = None
    """The entry to write again."""
    checkpoint: int | None = None
    """The checkpoint to make again; -1 for the file that points to the newest."""
    is_log: bool = True
    """Whether the log is wrong; if it is intact, the metastore is in doubt."""
    repairable: bool = True


def audit(mirror: Mirror, table: TableRecord, *, data: bool = True) -> list[Fault]:
    """Return all that is wrong with the mirror of a table; without `data`, older checkpoints are left out."""
    return list(_Audit(mirror, table, Log(mirror.store, table.folder), data).run())


def repair_mirror(mirror: Mirror, table: TableRecord) -> None:
    """Put right what can be: entries first, then checkpoints, which follow from them."""
    for _ in range(_ROUNDS):
        faults = [fault for fault in audit(mirror, table) if fault.repairable and fault.is_log]
        entries = [fault for fault in faults if fault.checkpoint is None]
        wrong = {fault.entry for fault in entries if fault.entry is not None}
        if not faults:
            return
        if entries:
            mirror.mend(table, wrong)
            mirror.follow(table)
        else:
            _remake(Checkpoints(Log(mirror.store, table.folder)), faults)


def _remake(checkpoints: Checkpoints, faults: Sequence[Fault]) -> None:
    """Make checkpoints again; one that cannot be made stays as it is, and the next look says so."""
    for fault in faults:
        if fault.checkpoint is not None and fault.checkpoint >= 0:
            checkpoints.make(fault.checkpoint)
    checkpoints.point()


@dataclass
class _Audit:
    mirror: Mirror
    table: TableRecord
    log: Log
    data: bool
    state: State = field(default_factory=State)
    version: int | None = None
    """What the entry before shows; None after one of somebody else's."""
    strange: int | None = None
    """The newest entry that is somebody else's."""
    is_certain: bool = True
    """Whether every entry so far could be used."""

    @cached_property
    def described(self) -> Described:
        """The newest version, described."""
        return self.mirror.described(self.table, self.table.version)

    def run(self) -> Iterator[Fault]:
        """Yield all that is wrong."""
        numbers = self.log.numbers()
        if not numbers:
            yield Fault(self.log.folder, f"shows version None, not {self.table.version}")
            return
        checkpoints = Checkpoints(self.log)
        made = checkpoints.numbers()
        looked = made if self.data else made[-1:]
        following = 0
        for number in numbers:
            if number - following >= MOST_MISSING:
                yield self._alone(number)
                break
            yield from (self._missing(each) for each in range(following, number))
            yield from self._entry(self.log.entry(number))
            if number in looked:
                yield from self._checkpoint(checkpoints, number)
            following = number + 1
        yield from (
            Fault(self.log.folder, f"checkpoint {each} has no entry; remove it", repairable=False)
            for each in made
            if each not in numbers
        )
        problem = checkpoints.pointer_problem(made)
        if problem is not None:
            yield Fault(f"{self.log.folder}/_last_checkpoint", problem, checkpoint=-1)
        yield from self._end()

    def _alone(self, number: int) -> Fault:
        problem = f"entry {number} stands alone, far behind the others; remove it"
        return Fault(self.log.key(number), problem, repairable=False)

    def _missing(self, number: int) -> Fault:
        self.is_certain = False
        self.version = None
        return Fault(self.log.key(number), f"entry {number} is missing", entry=number)

    def _entry(self, entry: Entry) -> Iterator[Fault]:
        if entry.actions is None:
            self.is_certain, self.version = False, None
            problem = f"entry {entry.number} cannot be used: {entry.problem}"
            yield Fault(self.log.key(entry.number), problem, entry=entry.number)
            return
        before, self.version = self.version, None if entry.origin is None else entry.origin["version"]
        self.state.take(entry)
        if entry.origin is None:
            self.strange = entry.number
        elif self.strange == entry.number - 1 and not entry.is_whole:
            # After an entry of somebody else's, Windrow says all that is visible.
            problem = f"entry {self.strange} cannot be used: it does not say which version it shows"
            yield Fault(self.log.key(self.strange), problem, entry=self.strange)
        if before is not None and self.version == before + 1 and not entry.is_whole:
            yield from self._step(entry, self.version)

    def _step(self, entry: Entry, version: int) -> Iterator[Fault]:
        """An entry after that of the version before adds and removes what its version did."""
        if not self.table.oldest_version < version <= self.table.version:
            return
        metastore, folder = self.mirror.metastore, self.table.folder
        place = self.log.key(entry.number)
        try:
            changes = list(metastore.changes(self.table.table_id, version - 1, version))
        except SnapshotExpired as error:
            yield Fault(place, f"the metastore cannot say what version {version} changed: {error}", is_log=False)
            return
        if not changes:
            yield Fault(place, f"the metastore has no commit of version {version}", is_log=False)
            return
        (change,) = changes
        added = {each["path"]: each for each in entry.of("add")}
        removed = {each["path"] for each in entry.of("remove")}
        by_path = {actions.path_of(folder, split.key): split for split in change.added}
        gone = {actions.path_of(folder, split.key) for split in change.removed}
        problems = [problem for problem, _ in compare_adds(added, by_path, self.described)]
        problems += [f"differs in the removed file {path}" for path in sorted(removed ^ gone)]
        origin = entry.origin or {}
        for what in ("commit_id", "kind", "published_at"):
            if origin[what] != getattr(change, what):
                problems.append(f"differs in the {what} of the version")
        is_log = not entry.is_sealed
        yield from (
            Fault(place, f"entry {entry.number} {problem}", entry=entry.number if is_log else None, is_log=is_log)
            for problem in problems
        )

    def _checkpoint(self, checkpoints: Checkpoints, number: int) -> Iterator[Fault]:
        problem = checkpoints.problem(number, self.state if self.is_certain else None)
        if problem is not None:
            place = f"{self.log.folder}/{number:020d}.checkpoint.parquet"
            yield Fault(place, f"checkpoint {number}: {problem}", checkpoint=number)

    def _end(self) -> Iterator[Fault]:
        """The log ends with the newest version, and shows its files."""
        folder, newest = self.log.folder, self.table.version
        if not self.is_certain:
            return
        if self.version is not None and self.version > newest:
            # Others may have published since the check began; the metastore is always the first to know.
            if self.version > self.mirror.metastore.table(self.table.name).version:
                problem = f"shows version {self.version}, which the metastore does not have"
                yield Fault(folder, problem, is_log=False)
            return
        if self.version != newest:
            yield Fault(folder, f"shows version {self.version}, not {newest}")
            return
        visible = chain.from_iterable(self.mirror.metastore.splits(self.table.table_id, newest))
        for each in differences(self.state, visible, self.described):
            yield Fault(folder, each.problem, is_log=not each.is_sealed)
