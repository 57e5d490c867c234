"""Many processes, and processes that are killed: a commit is visible wholly or not at all, and one rival wins."""

import signal

import pyarrow as pa
import pytest

from windrow.errors import AlreadyExists
from windrow.metastore import PUBLISH_STEPS, CommitKind, CommitState, SqlMetastore
from windrow.testing.metastore_cases.samples import TABLE, a_split, a_table, add, begin, everything, ids

ROUNDS = 200


def test_of_two_rivals_exactly_one_wins_every_time(metastore, url, workers):
    a_table(metastore)
    add(metastore, "first", *(a_split(f"s{number}", "first") for number in range(ROUNDS)))
    rivals = workers(*(["publish_against_a_rival", url, name, ROUNDS] for name in "ab"))
    assert [ended for ended, _ in rivals] == [0, 0]
    winners = {number: name for name, (_, won) in zip("ab", rivals, strict=True) for number in won}
    assert sum(len(won) for _, won in rivals) == len(winners) == ROUNDS
    assert metastore.table("metrics").version == 1 + ROUNDS
    assert sorted(ids(metastore, 1 + ROUNDS)) == sorted(f"{name}-{number}" for number, name in winners.items())
    assert [change.version for change in metastore.changes(TABLE, 0)] == list(range(1, 2 + ROUNDS))
    states = [record.state for record in metastore.commits(TABLE)]
    assert (states.count(CommitState.PUBLISHED), states.count(CommitState.OPEN)) == (1 + ROUNDS, ROUNDS)


def test_those_who_do_not_contend_all_win(metastore, url, workers):
    a_table(metastore)
    published = [versions for _, versions in workers(*(["publish_beside_others", url, name, 30] for name in "abc"))]
    assert sorted(version for versions in published for version in versions) == list(range(1, 91))
    assert len(ids(metastore, 90)) == 90


@pytest.fixture
def merge_planned(metastore):
    """A table with two splits and an open commit that is to merge them."""
    a_table(metastore)
    metastore.reserve_columns(TABLE, pa.schema([("host", pa.string())]))
    add(metastore, "c1", a_split("s1", "c1"), a_split("s2", "c1"))
    begin(metastore, "c2", CommitKind.COMPACT)
    return metastore


@pytest.mark.parametrize("step", PUBLISH_STEPS)
def test_a_publisher_that_is_killed_leaves_the_old_or_the_new_version(merge_planned, url, workers, step):
    before = everything(merge_planned)
    assert workers(["publish_until", url, step]) == [(signal.SIGKILL, None)]
    if step == "committed":
        assert_merged(merge_planned)
    else:
        assert everything(merge_planned) == before


@pytest.mark.parametrize("step", PUBLISH_STEPS)
def test_a_killed_publisher_is_taken_over(merge_planned, url, workers, step):
    workers(["publish_until", url, step])
    for _ in range(2):
        record = begin(merge_planned, "c2", CommitKind.COMPACT)
        ((ended, version),) = workers(["publish_attempt", url, record.attempt])
        assert (ended, version) == (0, 2)
    assert_merged(merge_planned)


def assert_merged(metastore):
    """Nothing but the merge happened, once and wholly."""
    assert metastore.table("metrics").version == 2
    assert (ids(metastore, 1), ids(metastore, 2)) == (["s1", "s2"], ["m"])
    assert metastore.checkpoint(TABLE, "kafka") == "1"
    assert [column.name for column in metastore.columns(TABLE)] == ["host"]
    record = metastore.commit("c2")
    assert (record.state, record.version, record.added, record.removed) == (CommitState.PUBLISHED, 2, 1, 2)


@pytest.mark.parametrize("step", PUBLISH_STEPS)
def test_a_publisher_that_fails_at_a_step_changes_nothing_before_the_last(merge_planned, url, step):
    def fail(name):
        if name == step:
            raise KeyboardInterrupt

    before = everything(merge_planned)
    with SqlMetastore(url, at_step=fail) as client, pytest.raises(KeyboardInterrupt):
        client.publish("c2", add=[a_split("m", "c2", rows=20)], replace=["s1", "s2"])
    assert (everything(merge_planned) == before) == (step != "committed")
    assert merge_planned.publish("c2", add=[a_split("m", "c2", rows=20)], replace=["s1", "s2"]).version == 2


def test_steps_come_in_their_order(merge_planned, url):
    seen = []
    with SqlMetastore(url, at_step=seen.append) as client:
        client.publish("c2", add=[a_split("m", "c2", rows=20)], replace=["s1", "s2"])
    assert tuple(seen) == PUBLISH_STEPS


def test_an_empty_database_can_be_opened_by_many_at_once(empty_url, workers):
    assert workers(*[["open_new", empty_url]] * 6) == [(0, "opened")] * 6
    with SqlMetastore(empty_url, create=False) as metastore:
        assert metastore.tables() == []


def test_of_two_who_create_the_same_table_one_does(metastore, url, workers):
    names = [f"t{number}" for number in range(20)]
    first, second = (made for _, made in workers(*[["create_tables", url, names]] * 2))
    for name, pair in zip(names, zip(first, second, strict=True), strict=True):
        assert set(pair) == {name, AlreadyExists.__name__}
    assert len(metastore.tables()) == len(names)


def test_of_two_names_that_differ_by_case_one_is_made(metastore, url, workers):
    names = [f"t{number}" for number in range(20)]
    jobs = [["create_tables", url, names], ["create_tables", url, [name.upper() for name in names]]]
    first, second = (made for _, made in workers(*jobs))
    for name, pair in zip(names, zip(first, second, strict=True), strict=True):
        assert sorted(map(str.lower, pair)) == sorted([name, "alreadyexists"])
    assert len(metastore.tables()) == len(names)


def test_a_column_has_one_field_id_whoever_reserves_it(metastore, url, workers):
    a_table(metastore)
    first, second = (found for _, found in workers(*(["reserve_columns", url, name, 20] for name in "ab")))
    assert first.keys() & second.keys() == {f"shared{number}" for number in range(20)}
    merged = first | second
    assert merged == second | first
    assert sorted(merged.values()) == list(range(1, 61))


def test_a_commit_that_two_open_has_two_attempts(metastore, url, workers):
    a_table(metastore)
    attempts = [found for _, found in workers(*[["open_commits", url, 20]] * 2)]
    assert [sorted(pair) for pair in zip(*attempts, strict=True)] == [[1, 2]] * 20
