"""When splits of a window are worth a merge: pure functions from splits to merges and reasons.

A policy sees the splits of one scope in one window and nothing else, so that it cannot merge across either. Two of them
are for windows that still grow, `stable-log` and `constant-write-amplification`; `finalise` is for windows that no
longer do, and `gather` for several of these that become one. All of them count in bytes. None of them is given splits
whose rows were rewritten as often as is allowed.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

from windrow.metastore import Candidate
from windrow.model.settings import PolicySettings, TableSettings
from windrow.model.units import format_bytes, format_seconds

__all__ = [
    "POLICIES",
    "Choice",
    "Circumstances",
    "Policy",
    "constant_write_amplification",
    "expected_size",
    "fewest_files",
    "finalise",
    "gather",
    "stable_log",
]

_LEVEL_STEP = 3
"""A level of stable-log holds splits up to so many times the size of its smallest."""
_LEVELS_BELOW_TARGET = 100
"""Splits below this share of the target are all of one level."""
_MOST_INPUTS = 256
"""Inputs of one merge of a closed window: it is read once, whatever it is made of."""


@dataclass(frozen=True, slots=True)
class Circumstances:
    """What a policy goes by, beside the splits."""

    now: int
    """Microseconds since the epoch."""
    target: int
    """Bytes that a file should have."""
    settings: PolicySettings = field(default_factory=PolicySettings)
    patience: int = 3600
    """Seconds that a small late split waits for company before a large one is rewritten for it."""
    endless: bool = False
    """Whether the window has no end, as that of points without a timestamp: age makes no split of it mature."""
    more_follow: bool = False
    """Whether more splits of the same group come: then only merges that are full are chosen."""

    @classmethod
    def of(cls, settings: TableSettings, now: int) -> Circumstances:
        """Return the circumstances of a table."""
        return cls(now, settings.target_split_size, settings.policy, settings.late_data_acceptance_window)

    def age(self, split: Candidate) -> float:
        """Return how many seconds ago a split was made; a split of the future is new."""
        return max(self.now - split.created_at, 0) / 1e6


@dataclass(slots=True)
class Choice:
    """What a policy decided: merges with their reasons, and the splits that stay with theirs."""

    merges: list[tuple[tuple[Candidate, ...], str]] = field(default_factory=list)
    left: list[tuple[Candidate, str]] = field(default_factory=list)

    def leave(self, splits: Sequence[Candidate], why: str) -> None:
        """Let splits stay as they are."""
        self.left.extend((split, why) for split in splits)


Policy = Callable[[Sequence[Candidate], Circumstances], Choice]
"""Decides about each of the splits it is given, once, whatever their order."""


def stable_log(splits: Sequence[Candidate], at: Circumstances) -> Choice:
    """Merge splits of about the same size, the largest first; a level is a range of sizes.

    Each level gives as many merges as it can: `merge_factor` splits or more, or fewer when they reach the target.
    Very small splits differ by how often their rows were rewritten, not by size: else the first of them would
    be rewritten with every few that come.
    """
    choice, young = _without_mature(splits, at)
    for level in reversed(_levels_by_size(young, at)):
        _merge_level(choice, level[::-1], "about the same size", at)
    return choice


def constant_write_amplification(splits: Sequence[Candidate], at: Circumstances) -> Choice:
    """Merge splits whose rows were rewritten equally often, the oldest first."""
    choice, young = _without_mature(splits, at)
    for level in _levels_by_generation(sorted(young, key=lambda each: (each.created_at // 1_000_000, each.split_id))):
        _merge_level(choice, level, f"generation {level[0].generation}", at)
    return choice


def finalise(splits: Sequence[Candidate], at: Circumstances) -> Choice:
    """Bring a window that no longer grows to the fewest files of the target size.

    Late splits join what is compacted already, whatever its age and size; a small one waits a while for company before
    a large one is rewritten for it.
    """
    choice = Choice()
    if len(splits) <= fewest_files(splits, at.target) and not at.more_follow:
        choice.leave(splits, "the window is closed and has the fewest files of the target size")
        return choice
    for pack in _packs(sorted(splits, key=_by_size), at):
        reason = _not_worth_it(pack, at)
        if reason is None:
            choice.merges.append((tuple(pack), _closed(pack, at)))
        else:
            choice.leave(pack, reason)
    return choice


def gather(splits: Sequence[Candidate], at: Circumstances) -> Choice:
    """Bring the splits of closed windows, none of which was gathered before, into one longer window by one merge.

    Its outputs part the series, so that the points of one lie together for the whole of the window, however many files
    there are. Of more splits than one merge takes, so many at a time are gathered, as if they were of one window.
    """
    if at.more_follow or len(splits) > _MOST_INPUTS:
        return finalise(splits, at)
    choice = Choice()
    if fewest_files(splits, at.target) >= len(splits):
        choice.leave(splits, "a gathering would leave as many files as there are")
    else:
        choice.merges.append((tuple(splits), _closed(splits, at)))
    return choice


POLICIES: dict[str, Policy] = {
    "stable-log": stable_log,
    "constant-write-amplification": constant_write_amplification,
}
"""The policies of windows that still grow, by the names that settings give them."""


def fewest_files(splits: Sequence[Candidate], target: int) -> int:
    """Return how many files of about the target size hold the rows of splits."""
    return max(1, (2 * expected_size(splits) + target) // (2 * target)) if splits else 0


def expected_size(splits: Sequence[Candidate]) -> int:
    """Return the bytes that splits will have as one: small files take more for a row than large ones do."""
    total = sum(split.size_bytes for split in splits)
    if not splits:
        return 0
    largest = max(splits, key=lambda split: split.row_count)
    rows = sum(split.row_count for split in splits)
    return min(total, max(largest.size_bytes, largest.size_bytes * rows // max(largest.row_count, 1)))


def _by_size(split: Candidate) -> tuple[int, int, str]:
    return split.size_bytes, split.created_at, split.split_id


def _without_mature(splits: Sequence[Candidate], at: Circumstances) -> tuple[Choice, list[Candidate]]:
    choice, young = Choice(), []
    for split in splits:
        why = _mature(split, at)
        if why is None:
            young.append(split)
        else:
            choice.left.append((split, why))
    return choice, young


def _mature(split: Candidate, at: Circumstances) -> str | None:
    # Anything smaller becomes fewer files in every merge; two larger ones could stay two for ever.
    if 4 * split.size_bytes >= 3 * at.target:
        return f"mature: it has about the target size of {format_bytes(at.target)}"
    if not at.endless and at.age(split) >= at.settings.maturation_period:
        return f"mature: it is older than {format_seconds(at.settings.maturation_period)}"
    return None


def _levels_by_size(splits: list[Candidate], at: Circumstances) -> list[list[Candidate]]:
    levels: list[list[Candidate]] = []
    bound = 0
    for split in sorted(splits, key=_by_size):
        if not levels or split.size_bytes >= bound:
            levels.append([])
            bound = max(_LEVEL_STEP * split.size_bytes, at.target // _LEVELS_BELOW_TARGET if len(levels) == 1 else 0)
        levels[-1].append(split)
    if levels and _LEVEL_STEP * levels[0][0].size_bytes < at.target // _LEVELS_BELOW_TARGET:
        levels[:1] = _levels_by_generation(levels[0])
    return levels


def _levels_by_generation(splits: Sequence[Candidate]) -> list[list[Candidate]]:
    levels: dict[int, list[Candidate]] = defaultdict(list)
    for split in splits:
        levels[split.generation].append(split)
    return [levels[generation] for generation in sorted(levels)]


def _merge_level(choice: Choice, level: Sequence[Candidate], what: str, at: Circumstances) -> None:
    """Take merges from the front of a level for as long as there are enough splits."""
    start, least = 0, _fewest_inputs(level, at)
    while taken := _taken(level, start, least, at):
        choice.merges.append((tuple(taken), _together(taken, what)))
        start += len(taken)
    choice.leave(level[start:], _too_few(len(level) - start, what, least, at))


def _fewest_inputs(level: Sequence[Candidate], at: Circumstances) -> int:
    """How many splits of a level make a merge; where no end of the window comes, two that waited long enough do."""
    waited = at.endless and all(at.age(split) >= at.patience for split in level)
    return 2 if waited else at.settings.merge_factor


def _taken(level: Sequence[Candidate], start: int, least: int, at: Circumstances) -> Sequence[Candidate]:
    """The splits from a place on that make a merge, none when they are too few."""
    end, size = start, 0
    most = min(start + at.settings.max_merge_factor, len(level))
    while end < most and size < at.target:
        size += level[end].size_bytes
        end += 1
    enough = end - start >= least or (size >= at.target and end - start > 1)
    return level[start:end] if enough else ()


def _packs(ordered: Sequence[Candidate], at: Circumstances) -> list[list[Candidate]]:
    """Cut splits, the smallest first, into merges that each fill a file and leave fewer files than there were."""
    packs: list[list[Candidate]] = []
    pack: list[Candidate] = []
    size = 0
    for split in ordered:
        pack.append(split)
        size += split.size_bytes
        full = size >= at.target and fewest_files(pack, at.target) < len(pack)
        if full or len(pack) == _MOST_INPUTS:
            packs.append(pack)
            pack, size = [], 0
    if pack and packs and not at.more_follow and _join(packs[-1], pack, at):
        packs[-1] = packs[-1] + pack
    elif pack:
        packs.append(pack)
    return packs


def _join(full: list[Candidate], rest: list[Candidate], at: Circumstances) -> bool:
    """Whether what is left over is better off in the merge before it."""
    alone = fewest_files(full, at.target) + min(len(rest), fewest_files(rest, at.target))
    return len(full) + len(rest) <= 2 * _MOST_INPUTS and fewest_files([*full, *rest], at.target) < alone


def _not_worth_it(pack: Sequence[Candidate], at: Circumstances) -> str | None:
    if at.more_follow and sum(each.size_bytes for each in pack) < at.target and len(pack) < _MOST_INPUTS:
        return "more splits of the window follow"
    if fewest_files(pack, at.target) >= len(pack):
        return "a merge would leave as many files as there are"
    *small, large = pack
    late = sum(each.size_bytes for each in small)
    waiting = any(0 <= at.now - each.created_at < at.patience * 10**6 for each in small)
    if waiting and len(small) < at.settings.merge_factor and large.size_bytes > late * at.settings.merge_factor:
        return (
            f"late: waits for company, at most {format_seconds(at.patience)}, before {format_bytes(large.size_bytes)} "
            f"are rewritten for {format_bytes(late)}"
        )
    return None


def _together(splits: Sequence[Candidate], what: str) -> str:
    return f"{len(splits)} splits of {what}, {format_bytes(sum(each.size_bytes for each in splits))}"


def _too_few(count: int, what: str, least: int, at: Circumstances) -> str:
    waiting = at.endless and least > 2
    return f"{count} splits of {what}; a merge needs {least}" + (
        f", or 2 of which none came within {format_seconds(at.patience)}" if waiting else ""
    )


def _closed(pack: Sequence[Candidate], at: Circumstances) -> str:
    return f"the window is closed: {len(pack)} splits become {fewest_files(pack, at.target)}"
