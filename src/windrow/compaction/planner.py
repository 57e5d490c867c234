"""What to merge, and why: walks the metastore in little memory and decides about every visible split.

Groups are scope by scope and window by window, so that nothing is ever merged across either. The windows that matter
most come first: those that are queried most, then the newest.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, timedelta
from itertools import groupby, repeat
from types import MappingProxyType

from windrow.compaction.cold import Family, families
from windrow.compaction.policies import POLICIES, Choice, Circumstances, Policy, fewest_files, finalise, gather
from windrow.errors import InvariantViolation
from windrow.metastore import Candidate, GroupSummary, Metastore, TableRecord
from windrow.model.invariants import require
from windrow.model.scope import CompactionScope
from windrow.model.split import SplitMetadata
from windrow.model.units import format_count
from windrow.model.window import Window

__all__ = ["Decision", "Left", "PlannedMerge", "Planner"]

NO_WINDOWS: Mapping[str, Window] = MappingProxyType({})
CHUNK = 20_000
"""Splits of a group that are decided about at a time."""

Heat = Callable[[Window], float]
"""Returns how often queries read a window."""


@dataclass(frozen=True, slots=True)
class PlannedMerge:
    """Splits that become fewer."""

    scope: CompactionScope
    window: Window
    inputs: tuple[Candidate, ...]
    outputs: int
    why: str
    windows: tuple[Window, ...] = ()
    """Of a gathering, the windows of the inputs, one for each; of other merges, none: they are all of `window`."""

    @property
    def count(self) -> int:
        """How many splits go in."""
        return len(self.inputs)

    @property
    def places(self) -> set[Window]:
        """The windows that splits are taken from."""
        return set(self.windows) or {self.window}

    @property
    def split_ids(self) -> tuple[str, ...]:
        """Which splits go in."""
        return tuple(split.split_id for split in self.inputs)

    @property
    def size_bytes(self) -> int:
        """Bytes that the merge reads."""
        return sum(split.size_bytes for split in self.inputs)

    def splits(self) -> list[SplitMetadata]:
        """Return the inputs as a merge takes them."""
        return [
            SplitMetadata(
                split_id=each.split_id,
                scope=replace(self.scope, window_duration=window.duration),
                window=window,
                key=each.key,
                size_bytes=each.size_bytes,
                row_count=each.row_count,
                created_at=each.created_at,
                commit_id="",
                etag=each.etag,
                sidecar=each.sidecar,
                generation=each.generation,
                digest=each.digest,
            )
            for each, window in zip(self.inputs, self.windows or repeat(self.window), strict=False)
        ]


@dataclass(frozen=True, slots=True)
class Left:
    """Splits that stay as they are, for one reason."""

    scope: CompactionScope
    window: Window | None
    count: int
    size_bytes: int
    why: str
    split_ids: tuple[str, ...] = ()
    """Which, where the group was looked at split by split."""

    @property
    def outputs(self) -> int:
        """As many as there are."""
        return self.count


Decision = PlannedMerge | Left


@dataclass(frozen=True, slots=True)
class Planner:
    """Plans the merges of one table."""

    metastore: Metastore
    table: TableRecord
    now: int
    """Microseconds since the epoch."""
    policy: Policy | None = None
    """For windows that still grow; the table's own by default."""
    wanted: Callable[[Window | None], bool] = field(default=lambda _: True)
    """Which windows to look at."""
    heat: Heat = field(default=lambda _: 0.0)
    chunk: int = CHUNK

    def decisions(self) -> Iterator[Decision]:
        """Decide about every visible split: first what is settled for whole groups, then window by window."""
        worth_a_look: dict[Window, set[CompactionScope]] = defaultdict(set)
        gathered: dict[Window, list[Family]] = defaultdict(list)
        for group in self._groups():
            if isinstance(group, Family):
                gathered[group.window].append(group)
                continue
            why = self._settled(group)
            if why is None and group.window is not None:
                worth_a_look[_place(group.window)].add(group.scope)
            elif why is not None:
                yield Left(group.scope, group.window, group.splits, group.size_bytes, why)
        banned = {each.split_id: each.reason for each in self.metastore.quarantined(self.table.table_id)}
        for window in sorted({*worth_a_look, *gathered}, key=self._rank):
            yield from self._window(window, worth_a_look.pop(window, set()), banned)
            for family in gathered.pop(window, ()):
                yield from self._family(family, banned)

    def merges(self) -> Iterator[PlannedMerge]:
        """Return the merges alone."""
        return (each for each in self.decisions() if isinstance(each, PlannedMerge))

    def closed(self, window: Window) -> bool:
        """Whether a window no longer grows: late points of streams are not accepted any more."""
        return not window.overflow and window.end <= self.closed_before

    @property
    def closed_before(self) -> int:
        """The second up to which no late points are accepted any more."""
        return self.table.settings.closed_before(self.now)

    def _groups(self) -> Iterator[GroupSummary | Family]:
        """All groups that are looked at, those that may be gathered together.

        A run over some windows gathers where it is to look at the cold window, and takes all of it then.
        """
        settings, before = self.table.settings, self.closed_before

        def is_looked_at(group: GroupSummary) -> bool:
            cold = None if group.window is None else settings.cold_window_of(group.window, before)
            return self.wanted(group.window) or (cold is not None and self.wanted(cold))

        looked_at = filter(is_looked_at, self.metastore.groups(self.table.table_id))
        for group in families(looked_at, settings, before):
            if isinstance(group, Family) and not self.wanted(group.window):
                yield from (each for each in group.groups if self.wanted(each.window))
            elif isinstance(group, Family) or self.wanted(group.window):
                yield group

    def _settled(self, group: GroupSummary) -> str | None:
        """The reason that leaves a whole group as it is, None when it has to be looked at split by split."""
        window, start = group.window, self.table.settings.compaction_start_time
        if window is None:
            return "it has no window: registered files are never merged"
        if not group.scope.sort_schema:
            return "it is not sorted"
        if not window.overflow and window.start < start:
            return (
                f"its window starts before the compaction start time {_moment(start)}; an earlier "
                "compaction_start_time lets it be merged"
            )
        if group.splits < 2:
            now = self.table.settings.sort.canonical()
            if group.scope.sort_schema == now:
                return "it is alone in its window"
            then = group.scope.sort_schema
            return f"it is alone in its window among splits sorted by {then}; the table is sorted by {now}"
        return None

    def _rank(self, window: Window) -> tuple[float, bool, int]:
        return -self.heat(window), window.overflow, -window.start

    def _window(self, place: Window, scopes: set[CompactionScope], banned: dict[str, str]) -> Iterator[Decision]:
        pieces = self.metastore.candidates(self.table.table_id, place) if scopes else ()
        for scope, pages in groupby(pieces, key=lambda piece: piece[0]):
            if scope in scopes:
                window = replace(place, duration=scope.window_duration)
                yield from self._group(scope, window, (page for _, page in pages), banned)

    def _family(self, family: Family, banned: dict[str, str]) -> Iterator[Decision]:
        """Decide about all splits that lie in one cold window; those of the window itself come last."""
        require("CW-3", cold=family.window, closed_before=self.closed_before)
        windows: dict[str, Window] = {}

        def pages() -> Iterator[list[Candidate]]:
            for group, place in sorted(family.members(), key=lambda each: each[1].duration):
                for _, page in self.metastore.candidates(self.table.table_id, place, scope=group.scope):
                    windows.update((split.split_id, place) for split in page)
                    yield page

        for decision in self._group(family.scope, family.window, pages(), banned, windows):
            yield decision
            for split in decision.split_ids:
                windows.pop(split, None)

    def _group(
        self,
        scope: CompactionScope,
        window: Window,
        pages: Iterable[list[Candidate]],
        banned: dict[str, str],
        windows: Mapping[str, Window] = NO_WINDOWS,
    ) -> Iterator[Decision]:
        """Decide about a group in chunks: what a chunk leaves is decided about anew with the next one.

        `windows` are those of the splits, by their ids, where they are not all the same.
        """
        at = replace(Circumstances.of(self.table.settings, self.now), endless=window.overflow)
        if window.is_cold:
            # So much more is rewritten for a late point, which waits so much longer for company.
            at = replace(at, patience=max(at.patience, window.duration))
        held: list[Candidate] = []
        for page in pages:
            barred = [(split, why) for split in page if (why := self._barred(split, banned)) is not None]
            yield from _left(scope, window, Choice(left=barred))
            away = {split.split_id for split, _ in barred}
            held += [split for split in page if split.split_id not in away] if away else page
            if len(held) >= self.chunk:
                choice = self._chosen(scope, window, held, replace(at, more_follow=True), windows)
                yield from self._merges(scope, window, choice, windows)
                held = [split for split, _ in choice.left]
                if len(held) > self.chunk // 2:
                    yield from _left(scope, window, choice)
                    held = []
        choice = self._chosen(scope, window, held, at, windows)
        yield from self._merges(scope, window, choice, windows)
        yield from _left(scope, window, choice)

    def _barred(self, split: Candidate, banned: dict[str, str]) -> str | None:
        """The reason that keeps a split from any merge, whatever the policy."""
        if split.split_id in banned:
            return f"it is in quarantine: {banned[split.split_id]}"
        policy = self.table.settings.policy
        if split.generation >= policy.rewrites_bound:
            return f"its rows were rewritten {policy.rewrites_bound} times or more, the bound of {policy.name}"
        return None

    def _chosen(
        self,
        scope: CompactionScope,
        window: Window,
        splits: list[Candidate],
        at: Circumstances,
        windows: Mapping[str, Window],
    ) -> Choice:
        if len(splits) == 1:
            return Choice(left=[(splits[0], "it is alone: the others of its window are merged already, or left")])
        if windows and not any(windows[split.split_id] == window for split in splits):
            policy: Policy = gather
        else:
            policy = finalise if self.closed(window) else self.policy or POLICIES[self.table.settings.policy.name]
        choice = policy(splits, at)
        _check_conserved(splits, choice, scope, window)
        return choice

    def _merges(
        self, scope: CompactionScope, window: Window, choice: Choice, windows: Mapping[str, Window]
    ) -> Iterator[PlannedMerge]:
        start, target = self.table.settings.compaction_start_time, self.table.settings.target_split_size
        for inputs, why in choice.merges:
            require("CS-3", window=window, compaction_start_time=start)
            places, outputs = (
                tuple(windows[split.split_id] for split in inputs if windows),
                fewest_files(inputs, target),
            )
            if set(places) <= {window}:
                yield PlannedMerge(scope, window, inputs, outputs, why)
            else:
                of_several = f"{len(inputs)} splits of {format_count(len(set(places)), 'window')} become {outputs}"
                yield PlannedMerge(scope, window, inputs, outputs, f"gathered: {of_several}", places)


def _moment(seconds: int) -> str:
    """A moment as people read it; as a number where the calendar ends."""
    try:
        return (datetime(1970, 1, 1, tzinfo=UTC) + timedelta(seconds=seconds)).isoformat().replace("+00:00", "Z")
    except OverflowError:
        return str(seconds)


def _place(window: Window) -> Window:
    """One window for all durations that start together: their splits lie together in the metastore.

    Cold windows have different starts or lie together too.
    """
    if window.overflow or window.is_cold:
        return Window.overflow_of(3600) if window.overflow else window
    return replace(window, duration=60)


def _left(scope: CompactionScope, window: Window, choice: Choice) -> Iterator[Left]:
    by_reason: dict[str, list[Candidate]] = defaultdict(list)
    for split, why in choice.left:
        by_reason[why].append(split)
    for why, splits in by_reason.items():
        size = sum(split.size_bytes for split in splits)
        yield Left(scope, window, len(splits), size, why, tuple(split.split_id for split in splits))


def _check_conserved(given: list[Candidate], choice: Choice, scope: CompactionScope, window: Window) -> None:
    """A policy decides about each split that it was given, once, and about no other."""
    merged = [split for inputs, _ in choice.merges for split in inputs]
    decided = Counter(split.split_id for split in merged)
    decided.update(split.split_id for split, _ in choice.left)
    ids = {split.split_id for split in given}
    strangers = sorted(decided.keys() - ids)
    if strangers:
        raise InvariantViolation(
            "CS-1", f"the policy would merge split {strangers[0]}, which is none of {scope} in window {window}"
        )
    if any(count > 1 for count in decided.values()) or len(decided) != len(ids):
        wrong = next(iter(sorted(ids - decided.keys())), None) or decided.most_common(1)[0][0]
        raise InvariantViolation("MC-1", f"the policy decided about split {wrong} {decided[wrong]} times, not once")
    if any(len(inputs) < 2 for inputs, _ in choice.merges):
        raise InvariantViolation("MC-1", f"the policy would merge a single split in window {window}")
