"""Row groups of our own splits are found by binary search where the splits are sorted by time first."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime, timedelta

import numpy as np
import pyarrow as pa
import pytest

from windrow.model.predicate import And, Between, Comparison, Op, Predicate
from windrow.model.scope import CompactionScope
from windrow.model.settings import TableSettings
from windrow.model.window import Window
from windrow.sidecar import Sidecar
from windrow.sidecar.bundle import Bundle
from windrow.sidecar.pruning import prune
from windrow.splits.sorting import sorted_rows
from windrow.splits.writer import OUR_PAGES, SplitName, write_sorted
from windrow.storage import open_store

START = datetime(2024, 1, 1, tzinfo=UTC)
ROWS_OF_A_GROUP = 64
GROUPS = OUR_PAGES // ROWS_OF_A_GROUP
ORDERS = ["timestamp/V2", "timestamp+/V2", "timestamp+|host/V2", "host|timestamp/V2"]


def at(milliseconds: int) -> datetime:
    return START + timedelta(milliseconds=milliseconds)


@pytest.fixture(scope="module")
def sidecars(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Sidecar]:
    """One split of 512 row groups for each order; a row each 10 milliseconds."""
    return {order: written(tmp_path_factory.mktemp("split"), order) for order in ORDERS}


def written(folder: object, order: str, *, as_number: bool = False) -> Sidecar:
    unit = {"timestamp_unit": "us"} if as_number else {}
    settings = TableSettings.of(sort=order, window="15m", **unit)
    first = int(START.timestamp() * 1_000_000)
    times = pa.array(first + np.arange(OUR_PAGES) * 10_000)
    rows = pa.table(
        {
            "timestamp": times if as_number else times.cast(pa.timestamp("us", "UTC")),
            "host": ["abcd"[row % 4] for row in range(OUR_PAGES)],
        }
    )
    scope = CompactionScope("t1", "default", 0, 0, settings.sort.canonical(), 900)
    split = write_sorted(
        open_store(str(folder)),
        sorted_rows(rows, settings.sort),
        settings,
        scope,
        Window.of(int(START.timestamp()), 900),
        SplitName("metrics", "c1-1-0", "c1", 5),
        {"timestamp": 1, "host": 2},
        row_group_rows=ROWS_OF_A_GROUP,
    )
    assert split.sidecar is not None
    return Sidecar.open(f"{folder}/{split.sidecar.key}")


@pytest.fixture
def looked(monkeypatch: pytest.MonkeyPatch) -> Iterator[list[int]]:
    """How many row groups a question looks at."""
    counts: list[int] = []
    column = Sidecar.column

    def counted(self: Sidecar, position: int, among: np.ndarray | None = None) -> object:
        counts.append(self.row_group_count if among is None else len(among))
        return column(self, position, among)

    monkeypatch.setattr(Sidecar, "column", counted)
    return counts


def questions() -> list[Predicate]:
    edges = [-5, 0, 635, 640, 100_003, 100_480, 327_670, 327_675]
    plain: list[Predicate] = [Comparison("timestamp", op, at(edge)) for edge in edges for op in Op]
    ranges: list[Predicate] = [Between("timestamp", at(low), at(high)) for low in edges for high in edges]
    both = And((Comparison("timestamp", Op.GREATER, at(635)), Comparison("timestamp", Op.LESS, at(1280))))
    return [*plain, *ranges, both]


@pytest.mark.parametrize("order", ORDERS)
def test_the_search_finds_what_a_look_at_all_finds(
    sidecars: dict[str, Sidecar], order: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    sidecar = sidecars[order]
    found = [prune(sidecar, question).tolist() for question in questions()]
    monkeypatch.setattr("windrow.sidecar.pruning.row_groups_in_time", lambda *_: None)
    assert found == [prune(sidecar, question).tolist() for question in questions()]


@pytest.mark.parametrize("order", ORDERS[:3])
def test_few_row_groups_of_a_split_sorted_by_time_are_looked_at(
    sidecars: dict[str, Sidecar], order: str, looked: list[int]
) -> None:
    sidecar = sidecars[order]
    assert sidecar.row_group_count == GROUPS
    assert prune(sidecar, Between("timestamp", at(6_000), at(6_500))).sum() == 2
    assert looked == [2]


def test_integer_timestamps_are_searched_too(tmp_path: object, looked: list[int]) -> None:
    sidecar = written(tmp_path, "timestamp/V2", as_number=True)
    first = int(START.timestamp() * 1_000_000)
    assert prune(sidecar, Between("timestamp", first + 6_000_000, first + 6_500_000)).sum() == 2
    assert looked == [2]


def test_all_row_groups_of_a_split_sorted_by_series_are_looked_at(
    sidecars: dict[str, Sidecar], looked: list[int]
) -> None:
    assert prune(sidecars["host|timestamp/V2"], Between("timestamp", at(6_000), at(6_500))).sum() > 2
    assert looked == [GROUPS]


def test_row_groups_of_several_files_are_not_searched(sidecars: dict[str, Sidecar]) -> None:
    one = sidecars["timestamp/V2"]
    kept = prune(Bundle([one, one]), Between("timestamp", at(6_000), at(6_500)))
    assert kept.reshape(2, GROUPS).sum(axis=1).tolist() == [2, 2]
