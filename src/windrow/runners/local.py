"""Runs work in this process, on a few threads."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait
from itertools import islice
from typing import TypeVar

__all__ = ["run_locally"]

T = TypeVar("T")


def run_locally(
    units: Iterable[T],
    work: Callable[[T, int], Iterator[str]],
    on_report: Callable[[str], None] | None = None,
    *,
    threads: int | None = None,
) -> list[str]:
    """Run the work on every unit, with its number, and return all reports in the order of the units.

    Units are taken from the iterable only as threads become free, so a stream of large units stays bounded. The first
    error stops what has not started.
    """
    count = threads or os.cpu_count() or 1
    reports: dict[int, Sequence[str]] = {}
    numbered = enumerate(units)
    with ThreadPoolExecutor(count, "windrow") as pool:
        running: dict[Future[list[str]], int] = {}
        try:
            while True:
                for number, unit in islice(numbered, count - len(running)):
                    running[pool.submit(_listed, work, unit, number)] = number
                if not running:
                    return [report for number in sorted(reports) for report in reports[number]]
                for done in wait(running, return_when=FIRST_COMPLETED).done:
                    reports[running.pop(done)] = done.result()
                    if on_report is not None:
                        for report in done.result():
                            on_report(report)
        except BaseException:
            pool.shutdown(cancel_futures=True)
            raise


def _listed(work: Callable[[T, int], Iterator[str]], unit: T, number: int) -> list[str]:
    return list(work(unit, number))
