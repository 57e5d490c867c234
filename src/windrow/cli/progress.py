"""Progress of long work, on stderr and only where stderr is a terminal."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from itertools import count
from typing import Any

__all__ = ["counting", "merging", "stepping", "ticking", "waiting"]


@contextmanager
def waiting(what: str) -> Iterator[None]:
    """Show that something goes on, whose end is open."""
    from rich.console import Console

    console = Console(stderr=True)
    if not console.is_terminal:
        yield
        return
    with console.status(what):
        yield


@contextmanager
def counting(what: str, total: int) -> Iterator[Callable[[int], None]]:
    """Show how many of all rows are done; the block calls what it gets with the rows of each split."""
    splits = count(1)
    with _bar(what, total, "rows, {task.fields[splits]} splits", splits=0) as advance:
        yield lambda rows: advance(rows, splits=next(splits))


@contextmanager
def merging(what: str, total: int) -> Iterator[Callable[[int], None]]:
    """Show how many of the planned merges are done; the block calls what it gets with the bytes of each."""
    from windrow.model.units import format_bytes

    done = 0
    with _bar(what, total, "merges, {task.fields[read]}", read="0 B") as advance:

        def merged(size: int) -> None:
            nonlocal done
            done += size
            advance(1, read=format_bytes(done))

        yield merged


@contextmanager
def stepping(what: str, total: int, units: str) -> Iterator[Callable[[], None]]:
    """Show how many of all steps are done; the block calls what it gets after each."""
    with _bar(what, total, units) as advance:
        yield lambda: advance(1)


@contextmanager
def _bar(what: str, total: int, text: str, **fields: Any) -> Iterator[Callable[..., None]]:
    """Show a bar; the block calls what it gets with a number of steps and the fields of the text."""
    from rich.console import Console
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

    columns = (
        TextColumn("{task.description}"),
        BarColumn(),
        MofNCompleteColumn(),
        TextColumn(text),
        TimeRemainingColumn(),
    )
    console = Console(stderr=True)
    with Progress(*columns, console=console, transient=True, disable=not console.is_terminal) as progress:
        bar = progress.add_task(what, total=total, **fields)
        yield lambda steps, **changed: progress.update(bar, advance=steps, **changed)


@contextmanager
def ticking(what: str, expected: int | None = None) -> Iterator[Callable[[int, int], None]]:
    """Show how many rows, bytes and splits are done, of how many `expected` ones; the block tells of each split."""
    from rich.console import Console

    from windrow.model.units import format_bytes

    console = Console(stderr=True)
    if not console.is_terminal:
        yield lambda _, __: None
        return
    done, of = [0, 0, 0], f" of about {expected:,}" if expected else ""
    with console.status(f"{what}: 0{of} splits" if of else what) as status:

        def advance(rows: int, size: int) -> None:
            done[:] = done[0] + rows, done[1] + size, done[2] + 1
            status.update(f"{what}: {done[0]:,} rows, {format_bytes(done[1])}, {done[2]:,}{of} splits")

        yield advance
