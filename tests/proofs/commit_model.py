"""A small model of the commit protocol, walked through every state it can reach.

One file is written, published, retired and collected, while leases run out, answers are lost, processes crash, readers
hold on, the clock is set back, and a backup is restored. Each guard of the protocol can be taken away; then the walk
finds a state in which something is lost. The model is of the protocol, not of the code: it shows that the guards
suffice, and that each is needed.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Collection, Iterator
from typing import NamedTuple

GUARDS = (
    "a publish needs an open commit with a lease",
    "a commit is ended before its files are judged",
    "a lost answer is read back and deletes nothing",
    "a pin keeps its version",
    "the grace period keeps what unpinned readers read",
    "a version that was dropped cannot be pinned",
    "only splits beyond the oldest version are marked",
    "commits are asked before splits",
    "files of unknown commits stay",
)
"""What the protocol rests on."""

(LEASE, END_FIRST, READ_BACK, PIN, GRACE, FENCE, MARK, ORDER, UNKNOWN) = GUARDS


class State(NamedTuple):
    """Where everybody stands."""

    writer: str = "idle"
    commit: str = "none"
    lease: bool = True
    file: bool = False
    split: str = "none"
    acked: bool = False
    retired: bool = False
    """Whether the split was ever replaced or expired."""
    restored: bool = False
    """Whether the metastore was put back to a backup from before the commit."""
    reader: str = "idle"
    dropped: bool = False
    """Whether the version that shows the retired split is no longer kept."""
    gc: str = "idle"
    rounds: int = 0
    saw_ended: bool = False
    saw_split: bool = False
    claimed: bool = False


class Explored(NamedTuple):
    """What a walk found."""

    states: int
    lost: str | None
    """What was lost, if something can be."""
    path: tuple[str, ...]
    """The shortest way to it."""


def explore(without: Collection[str] = ()) -> Explored:
    """Walk through every state, with all guards but some."""
    guards = frozenset(GUARDS) - set(without)
    came: dict[State, tuple[State, str] | None] = {State(): None}
    waiting = deque(came)
    while waiting:
        state = waiting.popleft()
        for step, following in _steps(state, guards):
            if following in came:
                continue
            came[following] = (state, step)
            lost = _lost(following)
            if lost is not None:
                return Explored(len(came), lost, _path(came, following))
            waiting.append(following)
    return Explored(len(came), None, ())


def _lost(state: State) -> str | None:
    """What must never be."""
    if state.split == "visible" and not state.file:
        return "a visible split has no file"
    if state.reader in ("pinned", "quick") and not state.file:
        return "a reader's file is gone"
    if state.acked and not state.retired and not state.file:
        return "the file of an acknowledged commit is gone"
    if state.writer == "failed" and state.split == "visible":
        return "a commit that was called failed is visible"
    return None


def _steps(state: State, guards: frozenset[str]) -> Iterator[tuple[str, State]]:
    yield from _writing(state, guards)
    yield from _environment(state)
    yield from _reading(state, guards)
    yield from _collecting(state, guards)


def _writing(s: State, guards: frozenset[str]) -> Iterator[tuple[str, State]]:
    if s.writer == "idle":
        yield "open", s._replace(writer="open", commit="open")
    if s.writer == "open":
        yield "write", s._replace(writer="wrote", file=True)
    if s.writer == "wrote":
        allowed = (s.commit == "open" and s.lease) if LEASE in guards else s.commit != "none"
        if allowed and s.split == "none":
            done = s._replace(commit="published", split="visible")
            yield "publish", done._replace(writer="done", acked=True)
            yield "publish, answer lost", done._replace(writer="unsure")
        else:
            yield "publish refused", s._replace(writer="failed")
        yield "publish lost on its way", s._replace(writer="unsure")
    if s.writer == "unsure" and READ_BACK in guards:
        published = s.commit == "published"
        yield "read back", s._replace(writer="done" if published else "wrote", acked=published)
    elif s.writer == "unsure":
        yield "take it for failed and clean up", s._replace(writer="failed", file=False)
    if s.writer in ("open", "wrote", "unsure"):
        yield "writer crashes", s._replace(writer="dead")


def _environment(s: State) -> Iterator[tuple[str, State]]:
    if s.lease and s.commit == "open":
        yield "lease runs out", s._replace(lease=False)
    if not s.lease:
        yield "the clock is set back", s._replace(lease=True)
    if s.split == "visible":
        yield "replaced or expired by another commit", s._replace(split="retired", retired=True)
    if s.split == "visible" and s.acked and not s.restored and s.reader == "idle" and s.gc == "idle":
        yield "a backup is restored", s._replace(split="none", commit="none", restored=True, writer="done")


def _reading(s: State, guards: frozenset[str]) -> Iterator[tuple[str, State]]:
    if s.reader == "idle":
        if s.split == "visible":
            yield "read without a pin", s._replace(reader="quick")
        kept = s.split in ("retired", "marked") and (not s.dropped or FENCE not in guards)
        if s.split == "visible" or kept:
            yield "pin a version", s._replace(reader="pinned")
    elif s.reader in ("pinned", "quick"):
        yield "end of reading", s._replace(reader="done")


def _collecting(s: State, guards: frozenset[str]) -> Iterator[tuple[str, State]]:
    if s.gc != "idle":
        yield "gc crashes", s._replace(gc="idle", claimed=False, saw_ended=False, saw_split=False)
    if s.gc == "idle" and s.rounds < 2:
        ending = s.commit == "open" and not s.lease and END_FIRST in guards
        yield "gc ends commits", s._replace(gc="ended", rounds=s.rounds + 1, commit="aborted" if ending else s.commit)
    if s.gc == "ended":
        held = (s.reader == "pinned" and PIN in guards) or (s.reader == "quick" and GRACE in guards)
        yield "gc drops versions", s._replace(gc="dropped", dropped=s.dropped or (s.split == "retired" and not held))
    if s.gc == "dropped":
        beyond = s.split in ("retired", "marked") and s.dropped
        claim = beyond if MARK in guards else s.split in ("retired", "marked")
        yield "gc marks", s._replace(gc="marked", claimed=claim, split="marked" if claim else s.split)
    if s.gc == "marked":
        yield "gc deletes what it marked", s._replace(gc="deleted", file=s.file and not s.claimed)
    if s.gc == "deleted":
        gone = s._replace(gc="listed", split="forgotten" if s.claimed else s.split)
        yield "gc forgets what it marked, and lists files", gone
    if s.gc in ("listed", "asked"):
        yield _judge(s, guards)
    if s.gc == "judged":
        dead = s.saw_ended and not s.saw_split
        after = s._replace(gc="idle", claimed=False, saw_ended=False, saw_split=False)
        yield "gc deletes orphans", after._replace(file=s.file and not dead)


def _judge(s: State, guards: frozenset[str]) -> tuple[str, State]:
    """Ask of the commit and of the split, in two steps."""
    commit_first = ORDER in guards
    if (s.gc == "listed") == commit_first:
        ended = s.commit in ("published", "aborted") or (s.commit == "none" and UNKNOWN not in guards)
        # Who ends no commits has to take those for ended whose lease ran out.
        ended = ended or (END_FIRST not in guards and s.commit == "open" and not s.lease)
        return "gc asks of the commit", s._replace(gc="asked" if commit_first else "judged", saw_ended=ended and s.file)
    known = s.split in ("visible", "retired", "marked")
    return "gc asks of the split", s._replace(gc="judged" if commit_first else "asked", saw_split=known)


def _path(came: dict[State, tuple[State, str] | None], state: State) -> tuple[str, ...]:
    steps: list[str] = []
    before = came[state]
    while before is not None:
        state, step = before
        steps.append(step)
        before = came[state]
    return tuple(reversed(steps))
