"""Which closed windows are gathered into one longer window, a cold one.

Groups of splits that are equal in all of their scope but the duration of their windows, and whose windows lie in one
cold window, are a family. One merge takes all splits of a family and replaces them in one commit.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace

from windrow.metastore import GroupSummary
from windrow.model.scope import CompactionScope
from windrow.model.settings import TableSettings
from windrow.model.window import Window

__all__ = ["MOST_FILES", "Family", "families"]

MOST_FILES = 16
"""Where a cold window would have more files of the target size, each of its windows is large enough: it is one merge,
and is begun anew when it fails."""


@dataclass(frozen=True, slots=True)
class Family:
    """Groups that are gathered into one cold window."""

    scope: CompactionScope
    """What they share, with the duration of the cold window."""
    window: Window
    groups: tuple[GroupSummary, ...]

    def members(self) -> Iterator[tuple[GroupSummary, Window]]:
        """Yield the groups with their windows, which all of them have."""
        return ((group, group.window) for group in self.groups if group.window is not None)


def families(
    groups: Iterable[GroupSummary], settings: TableSettings, closed_before: int
) -> Iterator[GroupSummary | Family]:
    """Put together what is gathered, of groups in the order in which their windows start; yield all others as they are.

    What is before the compaction start time is not merged. In memory are the groups of one cold window.
    """
    held: dict[CompactionScope, list[GroupSummary]] = {}
    period: Window | None = None
    for group in groups:
        cold = None if group.window is None else settings.cold_window_of(group.window, closed_before)
        if cold is None or cold.start < settings.compaction_start_time:
            yield group
            continue
        if cold != period:
            yield from _together(held, period, settings)
            held, period = {}, cold
        held.setdefault(replace(group.scope, window_duration=cold.duration), []).append(group)
    yield from _together(held, period, settings)


def _together(
    held: dict[CompactionScope, list[GroupSummary]], cold: Window | None, settings: TableSettings
) -> Iterator[GroupSummary | Family]:
    for scope, groups in held.items():
        size = sum(group.size_bytes for group in groups)
        if cold is None or len(groups) == 1 or size > MOST_FILES * settings.target_split_size:
            yield from groups
        else:
            yield Family(scope, cold, tuple(groups))
