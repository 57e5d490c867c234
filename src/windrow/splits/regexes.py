"""A short regular expression that matches every value of a column, and few others.

The values form a trie of characters. Its states are runs of the sorted values: those that share a prefix lie side by
side, so that the trie is never built; a state finds its children by bisection. States are opened from the heaviest
(most values) to the lightest, those of the same weight in breadth-first order, until the transitions run out. A state
that stays closed accepts any suffix, so that the expression matches a superset; when every state could be opened it
matches the values and nothing else.

Expressions are for RE2 and for whole matches (`re2.fullmatch`); they need no anchors.
"""

from __future__ import annotations

from bisect import bisect_right
from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from heapq import heappop, heappush
from itertools import islice

__all__ = ["DEEPEST", "superset_regex"]

DEEPEST = 256
"""No expression looks at more characters of a value than this by default."""

_DOT_MATCHES_NEWLINE = "(?s)"
_SPECIAL = frozenset(r"\.+*?()|[]{}^$")
_SPECIAL_IN_CLASS = frozenset(r"\[]^-")


def superset_regex(
    values: Sequence[str], *, transitions: int = 64, longest: int = 512, deepest: int = DEEPEST
) -> str | None:
    """Return an expression of at most `longest` characters that matches all values; None when none says anything.

    It looks at the first `deepest` characters of a value, so that longer ones may be cut behind the one after these.
    """
    ordered = sorted(dict.fromkeys(values))
    while ordered and transitions > 0:
        root = _pruned_trie(ordered, transitions, deepest)
        text = _DOT_MATCHES_NEWLINE + _written(root)
        if len(text) <= longest:
            return text if root.is_open else None
        transitions //= 2
    return None


@dataclass(slots=True)
class _State:
    """The values `[start, end)` of the sorted ones, which share their first `depth` characters."""

    start: int
    end: int
    depth: int
    ends_here: bool
    """Whether one of the values is the shared prefix itself."""
    is_open: bool = False
    children: dict[str, _State] = field(default_factory=dict)

    @classmethod
    def of(cls, values: list[str], start: int, end: int, depth: int) -> _State:
        # The shortest of the values comes first.
        return cls(start, end, depth, len(values[start]) == depth)

    def rank(self) -> tuple[int, int, int]:
        """Heavy states first, then those that a breadth-first walk visits first."""
        return self.start - self.end, self.depth, self.start

    def branches(self, values: list[str]) -> Iterator[tuple[str, _State]]:
        """Yield each next character with the state behind it, in order."""
        start = self.start + self.ends_here
        while start < self.end:
            character = values[start][self.depth]
            end = bisect_right(values, character, start, self.end, key=lambda value: value[self.depth])
            yield character, _State.of(values, start, end, self.depth + 1)
            start = end


def _pruned_trie(values: list[str], transitions: int, deepest: int) -> _State:
    root = _State.of(values, 0, len(values), 0)
    waiting = [(root.rank(), root)]
    while waiting:
        _, state = heappop(waiting)
        # One more than there is room for tells that they are too many.
        room = transitions + 1 if state.depth < deepest else 1
        children = dict(islice(state.branches(values), room))
        if len(children) < room:
            state.is_open, state.children = True, children
            transitions -= len(children)
            for child in children.values():
                heappush(waiting, (child.rank(), child))
    return root


def _written(state: _State) -> str:
    """Return the expression of what may follow the prefix of a state; it can be appended to anything."""
    if not state.is_open:
        return ".*" if state.ends_here else ".+"
    characters_before = defaultdict(list)
    for character, child in state.children.items():
        characters_before[_written(child)].append(character)
    branches = [_one_of(characters) + suffix for suffix, characters in characters_before.items()]
    if not branches:
        return ""
    if len(branches) == 1 and not state.ends_here:
        return branches[0]
    return f"(?:{'|'.join(branches)}){'?' if state.ends_here else ''}"


def _one_of(characters: list[str]) -> str:
    """Return an expression of one of the characters, which are in order."""
    if len(characters) == 1:
        return _escaped(characters[0], _SPECIAL)
    return f"[{''.join(map(_spelled, _runs(characters)))}]"


def _runs(characters: list[str]) -> Iterator[list[str]]:
    """Yield the stretches of characters that follow one another without a gap."""
    start = 0
    for place in range(1, len(characters) + 1):
        if place == len(characters) or ord(characters[place]) > ord(characters[place - 1]) + 1:
            yield characters[start:place]
            start = place


def _spelled(run: list[str]) -> str:
    escaped = [_escaped(character, _SPECIAL_IN_CLASS) for character in run]
    return min("".join(escaped), f"{escaped[0]}-{escaped[-1]}", key=len)


def _escaped(character: str, special: frozenset[str]) -> str:
    if character in special:
        return "\\" + character
    return character if character.isprintable() else f"\\x{{{ord(character):x}}}"
