"""The thread that learns from what queries have read, one for each lake.

It works when no query runs, or when it has waited for long, and never costs more than a share of the CPU that queries
used. What it cannot do now it does later; what it fails at is passed over, since statistics never are an error.
"""

from __future__ import annotations

import atexit
import logging
import threading
import time
import weakref
from collections import OrderedDict
from collections.abc import Callable, Generator, Iterable, Iterator
from dataclasses import dataclass, field

from windrow import forking
from windrow.learning.chunks import learn_chunks
from windrow.learning.earnings import Earnings
from windrow.learning.fetched_bytes import FetchedBytes
from windrow.learning.log import QueryLog, ReportedScan, ScannedRelation
from windrow.learning.scanned_files import FlatColumn, ScannedFile, load_together, whole_row_groups
from windrow.learning.tasks import Rank, Task, Tasks, tasks_of
from windrow.model.learning_settings import LearningSettings
from windrow.model.predicate import columns_of
from windrow.planning.data_files import DataFile, file_id_of, local_sidecar
from windrow.planning.scan_context import ScanContext
from windrow.planning.virtual_file import VirtualFile
from windrow.reading.read_context import ReadContext
from windrow.reading.virtual_reader import fetched_units
from windrow.sidecar import Sidecar
from windrow.statistics.catalog import Catalog
from windrow.statistics.layout import FileId

__all__ = ["Learner"]

_PAUSE = 0.02
"""Seconds that it waits for the next query, before it begins and while queries run."""
_PATIENCE = 1.0
"""Seconds after which it works beside queries."""
_LEAST = 0.0002
"""Seconds of CPU that reading a report takes."""
_MOST_FILES = 64
_MOST_WAITING = 1024
"""Files with tasks that nobody has paid for. Merges take files away, but nobody tells which ones."""
_MOST_SETTLED = 256
_MOST_KNOWN = 100_000
_LOADED_TOGETHER = 32
"""Files whose statistics are loaded from a catalog at once."""
_END = object()
_WEIGHT = 0.3
"""Of the last task, in what those of its rank are expected to cost."""
_STORED_EVERY = 2.0
"""Seconds after which what was learnt is stored, if there is more to do."""
_CLOSING = 10.0
_log = logging.getLogger(__name__)


class Learner:
    """Learns from the scans of a lake's queries, within what its settings allow."""

    def __init__(self, settings: LearningSettings, planning: ScanContext, reading: ReadContext) -> None:
        self.settings = settings
        self.log = QueryLog()
        self._planning = planning
        self._reading = reading
        self._begin()
        forking.register(self)

    def _begin(self) -> None:
        """Without a thread, until there is a relation."""
        self._starting = threading.Lock()
        self._work: _Work | None = None

    def after_fork(self) -> None:
        """Begin anew, in a forked child."""
        if self._work is not None:
            self._work.abandon()
        self.log.scans.clear()
        self.log.cpu.clear()
        self.log.running.clear()
        self.log.news = threading.Event()
        self._begin()

    def relation(self, catalog: Catalog) -> ScannedRelation:
        """Files that queries will name, with the catalog of their statistics."""
        with self._starting:
            if self._work is None or not self._work.is_alive:
                self._work = _Work(self.settings, self.log, self._planning, self._reading)
                # The thread knows nothing of the learner, so that a lake that is dropped ends it.
                weakref.finalize(self, self._work.stop)
        return ScannedRelation(self.log, catalog)

    def drain(self, timeout: float = 60.0) -> bool:
        """Wait until all that was reported is learnt, as far as it is paid for; whether that came to pass."""
        work = self._work
        return work is None or work.wait_until_idle(timeout)

    def close(self) -> None:
        """Store what is complete, and end the thread."""
        work = self._work
        if work is not None:
            if self.settings.seconds_at_close:
                work.wait_until_idle(self.settings.seconds_at_close)
            work.end()


@dataclass(eq=False)
class _Work:
    """What the thread has to do."""

    settings: LearningSettings
    log: QueryLog
    planning: ScanContext
    reading: ReadContext
    tasks: Tasks = field(default_factory=Tasks)
    files: OrderedDict[FileId, ScannedFile] = field(default_factory=OrderedDict)

    def __post_init__(self) -> None:
        self._closing = threading.Event()
        self._idle = threading.Event()
        self._earnings: Earnings | None = None
        self._stored = time.monotonic()
        self._factors = dict.fromkeys(Rank, 1.0)
        self._thread = threading.Thread(target=self._run, name="windrow-learner", daemon=True)
        self._is_here = True
        self._busy_since: float | None = None
        self._report: Iterator[None] | None = None
        """What is left of the report that is being read."""
        # A thread must not be in a library while the interpreter goes away.
        atexit.register(self.end)
        self._thread.start()

    @property
    def is_alive(self) -> bool:
        """Whether the thread works, or waits."""
        return self._thread.is_alive()

    def stop(self) -> None:
        """Have the thread end."""
        if self._is_here:
            self._closing.set()
            self.log.news.set()

    def end(self) -> None:
        """Have the thread end, and wait for it."""
        self.stop()
        if self._is_here and self._thread is not threading.current_thread():
            self._thread.join(_CLOSING)

    def abandon(self) -> None:
        """Leave the thread to the parent, in a forked child."""
        self._is_here = False

    def wait_until_idle(self, timeout: float) -> bool:
        """Wait until there is nothing left that may be done."""
        self._idle.clear()
        self.log.news.set()
        return self._idle.wait(timeout)

    # ---- the thread

    def _run(self) -> None:
        earnings = self._earnings = Earnings(self.settings.share)
        while not self._closing.is_set():
            self.log.news.wait()
            # Queries that follow each other at once are not disturbed.
            if self._closing.wait(_PAUSE):
                break
            self.log.news.clear()
            try:
                self._work(earnings)
            except Exception as error:
                _log.debug("statistics are not collected: %s", error, exc_info=True)
            if not self.log.news.is_set():
                self._idle.set()
        self._guarded(self._store)
        atexit.unregister(self.end)

    def _work(self, earnings: Earnings) -> None:
        self._earn(earnings)
        while (self._report or self.log.scans) and earnings.balance > _LEAST and self._may_go_on():
            self._report = self._report or self._add(self.log.scans.popleft())
            earnings.work(self._guarded, self._read_on)
            self._earn(earnings)
        while self.tasks and self._may_go_on():
            self._earn(earnings)
            first = self.tasks.first
            if first.cost * self._factors[first.rank] > earnings.balance:
                break
            task = self.tasks.pop()
            took = earnings.work(self._guarded, self._learn, task)
            self._factors[task.rank] += (took / task.cost - self._factors[task.rank]) * _WEIGHT
            if time.monotonic() - self._stored > _STORED_EVERY:
                earnings.work(self._guarded, self._store)
        earnings.work(self._guarded, self._store)
        self._forget()

    def _earn(self, earnings: Earnings) -> None:
        while self.log.cpu:
            earnings.earn(self.log.cpu.popleft())

    def _may_go_on(self) -> bool:
        """Wait while queries run, but not for ever; whether there is still time."""
        while self.log.running:
            self._busy_since = self._busy_since or time.monotonic()
            if time.monotonic() - self._busy_since > _PATIENCE:
                break
            if self._closing.wait(_PAUSE):
                return False
        else:
            self._busy_since = None
        return not self._closing.is_set()

    @staticmethod
    def _guarded(piece: Callable[..., None], *given: object) -> None:
        """Do a piece of work; its errors are nobody's."""
        try:
            with forking.working():
                piece(*given)
        except Exception as error:
            _log.debug("statistics are not collected: %s", error)

    def _read_on(self) -> None:
        """Read the report that was begun on to its next file; an error ends it."""
        report, self._report = self._report, None
        if report is not None and next(report, _END) is not _END:
            self._report = report

    def _add(self, scan: ReportedScan) -> Iterator[None]:
        """Find what is open in what a query read, file by file."""
        relation, columns = scan.relation, scan.question.columns
        if len(relation.known) >= _MOST_SETTLED:
            relation.known.clear()
        known, is_known = relation.known.setdefault(columns, set()), True
        if len(known) >= _MOST_KNOWN:
            known.clear()
        for virtual in scan.plan.virtual:
            is_known &= yield from self._add_virtual(scan, virtual, known)
        if is_known:
            if len(relation.settled) >= _MOST_SETTLED:
                relation.settled.clear()
            relation.settled.add(columns)

    def _add_virtual(self, scan: ReportedScan, virtual: VirtualFile, known: set[FileId]) -> Generator[None, None, bool]:
        """The same of one virtual file, but for files that are known; whether all rows of all of its files are."""
        missing = [number for number in sorted(virtual.members) if file_id_of(virtual.files[number]) not in known]
        if not missing:
            return virtual.is_whole
        sidecars = self._sidecars(virtual, missing)
        groups = {number: each for number, each in whole_row_groups(virtual, sidecars).items() if number in sidecars}
        units = fetched_units(virtual, self.reading)
        conditions = frozenset() if scan.question.predicate is None else frozenset(columns_of(scan.question.predicate))
        columns = frozenset(leaf.path[0] for leaf in virtual.schema.leaves)
        is_known = virtual.is_whole and len(sidecars) == len(missing)
        numbers = list(groups)
        for first in range(0, len(numbers), _LOADED_TOGETHER):
            catalog, some = scan.relation.catalog, numbers[first : first + _LOADED_TOGETHER]
            batch = [(number, self._scanned(virtual.files[number], sidecars[number], catalog)) for number in some]
            load_together(catalog, [scanned for _, scanned in batch], columns)
            for number, scanned in batch:
                scanned.data.add(units.get(number, ()))
                is_file_known = self._add_open(scanned, columns, groups[number], conditions)
                if is_file_known and len(groups[number]) == len(scanned.layout.row_groups):
                    known.add(scanned.layout.file)
                is_known &= is_file_known
                yield
        return is_known

    def _add_open(
        self, scanned: ScannedFile, columns: frozenset[str], row_groups: list[int], conditions: frozenset[str]
    ) -> bool:
        """Add what is open in a file to the tasks; whether nothing is."""
        is_known = self._add_chunks(scanned, scanned.open_chunks(columns, row_groups), conditions)
        if not self.settings.only_dictionaries:
            samples = scanned.open_samples(columns, row_groups)
            is_known &= self._add_chunks(scanned, samples, conditions, only=Rank.SAMPLE)
        return is_known

    def _sidecars(self, virtual: VirtualFile, numbers: Iterable[int]) -> dict[int, Sidecar]:
        found: dict[int, Sidecar] = {}
        for number in numbers:
            file = virtual.files[number]
            sidecar = None if file.described is not None else local_sidecar(self.planning, file)
            if sidecar is not None:
                found[number] = sidecar
        return found

    def _scanned(self, file: DataFile, sidecar: Sidecar, catalog: Catalog) -> ScannedFile:
        key = file_id_of(file)
        scanned = self.files.get(key)
        if scanned is None:
            scanned = self.files[key] = ScannedFile(
                file, sidecar, catalog, FetchedBytes(file, self.reading.cache), self.settings.synopses
            )
        self.files.move_to_end(key)
        return scanned

    def _add_chunks(
        self,
        scanned: ScannedFile,
        chunks: Iterable[tuple[FlatColumn, int]],
        conditions: frozenset[str],
        least: Rank = Rank.DICTIONARY,
        only: Rank | None = None,
    ) -> bool:
        """Add what is not there to the tasks, or only those of a rank; whether there is nothing to be learnt."""
        is_known = True
        fresh = []
        for column, row_group in chunks:
            if self.tasks.has(scanned, column, row_group):
                is_known = False
            else:
                fresh.append((column, row_group))
        for task in tasks_of(scanned, fresh, conditions, least, only):
            if task.rank is Rank.DICTIONARY or not self.settings.only_dictionaries:
                self.tasks.add(task)
                is_known = False
        return is_known

    def _learn(self, task: Task) -> None:
        scanned, column = task.scanned, task.column
        left = learn_chunks(task)
        # They come when it is the turn of what costs as much.
        self._add_chunks(scanned, [(column, each) for each in left], frozenset(), Rank.OTHER)
        if not self.settings.only_dictionaries:
            samples = scanned.open_samples([column.name], task.row_groups)
            self._add_chunks(scanned, samples, frozenset(), only=Rank.SAMPLE)

    def _store(self) -> None:
        """Store what was learnt, of files that are still those that were read."""
        self._stored = time.monotonic()
        for scanned in list(self.files.values()):
            try:
                scanned.data.close()
            except Exception:
                scanned.collector.take_changed()
                continue
            scanned.store()

    def _forget(self) -> None:
        """Let go of files that nothing is to be learnt of, and where too many wait, of those that waited longest."""
        if len(self.files) > _MOST_FILES:
            needed = self.tasks.files()
            for key, scanned in list(self.files.items()):
                if len(self.files) <= _MOST_FILES:
                    break
                if scanned not in needed:
                    del self.files[key]
        if len(self.files) > _MOST_WAITING:
            while len(self.files) > _MOST_WAITING:
                self.files.popitem(last=False)
            self.tasks.keep(set(self.files.values()))
