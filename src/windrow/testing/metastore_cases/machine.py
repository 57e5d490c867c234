"""Any sequence of commits, compared step by step with a model that keeps every version as a plain dict."""

from __future__ import annotations

import itertools
from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule, run_state_machine_as_test

from windrow.errors import Conflict, InvariantViolation, LeaseExpired
from windrow.metastore import Checkpoint, CommitKind, Metastore, Published
from windrow.model.split import SplitMetadata
from windrow.testing.metastore_cases.listing import order, sums
from windrow.testing.metastore_cases.samples import a_split, a_table, scope

__all__ = ["MachineCases", "MetastoreMachine"]

_numbers = itertools.count()
starts = st.sampled_from((-900, 0, 900))
counts = st.integers(1, 4)


class MetastoreMachine(RuleBasedStateMachine):
    """One table of a metastore and its model. Two clients take turns."""

    def __init__(self, clients: list[Metastore]) -> None:
        super().__init__()
        self.clients = clients
        self.name = f"t{next(_numbers)}"
        self.table_id = f"id-{self.name}"
        a_table(clients[0], self.name, self.table_id)
        self.versions: list[dict[str, SplitMetadata]] = [{}]
        self.published: list[Published] = []
        self.position: str | None = None

    @property
    def newest(self) -> dict[str, SplitMetadata]:
        """The splits of the newest version."""
        return self.versions[-1]

    @property
    def metastore(self) -> Metastore:
        """The client whose turn it is."""
        return self.clients[len(self.versions) % len(self.clients)]

    def splits(self, commit_id: str, rows: list[int], start: int) -> list[SplitMetadata]:
        """Return new splits of a commit."""
        where = scope(self.table_id)
        return [
            a_split(f"{commit_id}-{number}", commit_id, start, count, scope=where) for number, count in enumerate(rows)
        ]

    def begin(self, kind: CommitKind) -> str:
        """Open a commit."""
        commit_id = f"{self.name}-{next(_numbers)}"
        self.metastore.open_commit(self.table_id, kind, commit_id=commit_id, lease=60)
        return commit_id

    def publish(self, commit_id: str, add: list[SplitMetadata], remove: list[str], **more: Any) -> None:
        """Publish to the metastore and to the model."""
        result = self.metastore.publish(commit_id, add=add, replace=remove, **more)
        rows = sum(split.row_count for split in add), sum(self.newest[split_id].row_count for split_id in remove)
        assert result == Published(commit_id, len(self.versions), len(add), len(remove), *rows)
        left = {split_id: split for split_id, split in self.newest.items() if split_id not in remove}
        self.versions.append(left | {split.split_id: split for split in add})
        self.published.append(result)

    def some(self, data: st.DataObject) -> list[str]:
        """Choose visible splits."""
        return data.draw(st.lists(st.sampled_from(sorted(self.newest)), unique=True, min_size=1))

    @rule(start=starts, rows=st.lists(counts, max_size=3))
    def ingest(self, start: int, rows: list[int]) -> None:
        """New splits come."""
        commit_id, position = self.begin(CommitKind.INGEST), f"p{len(self.versions)}"
        added = self.splits(commit_id, rows, start)
        self.publish(commit_id, added, [], checkpoint=Checkpoint("kafka", position, self.position))
        self.position = position

    @precondition(lambda self: self.newest)
    @rule(data=st.data())
    def expire(self, data: st.DataObject) -> None:
        """Splits go."""
        self.publish(self.begin(CommitKind.EXPIRE), [], self.some(data))

    @precondition(lambda self: self.newest)
    @rule(data=st.data(), start=starts)
    def merge(self, data: st.DataObject, start: int) -> None:
        """Splits become one; when they are of several windows, or the merge loses a row, it is refused."""
        chosen, lost = self.some(data), data.draw(st.integers(0, 1))
        rows = sum(self.newest[split_id].row_count for split_id in chosen) - lost
        commit_id = self.begin(CommitKind.COMPACT)
        merged = self.splits(commit_id, [rows] if rows else [], start)
        if lost or {self.newest[split_id].window for split_id in chosen} != {merged[0].window}:
            self.refused(InvariantViolation, lambda: self.metastore.publish(commit_id, add=merged, replace=chosen))
        else:
            self.publish(commit_id, merged, chosen)

    @precondition(lambda self: len(self.versions) > 2)
    @rule(data=st.data(), start=starts)
    def replace_what_is_gone(self, data: st.DataObject, start: int) -> None:
        """A commit that was planned from an older version conflicts when what it replaces is gone."""
        planned = data.draw(st.sampled_from(self.versions[:-1]))
        commit_id = self.begin(CommitKind.EXPIRE)
        if planned.keys() <= self.newest.keys():
            self.publish(commit_id, [], list(planned))
            return
        added = self.splits(commit_id, [1], start)
        self.refused(Conflict, lambda: self.metastore.publish(commit_id, add=added, replace=list(planned)))

    @precondition(lambda self: self.published)
    @rule(data=st.data(), start=starts)
    def publish_again(self, data: st.DataObject, start: int) -> None:
        """A commit that is published stays as it is."""
        first = data.draw(st.sampled_from(self.published))
        other = self.splits(first.commit_id, [1, 2], start)
        assert self.metastore.publish(first.commit_id, add=other) == first

    @rule(start=starts)
    def take_over(self, start: int) -> None:
        """A lost attempt cannot publish; its successor can."""
        commit_id = self.begin(CommitKind.INGEST)
        self.metastore.open_commit(self.table_id, CommitKind.INGEST, commit_id=commit_id, lease=60)
        added = self.splits(commit_id, [1], start)
        self.refused(LeaseExpired, lambda: self.metastore.publish(commit_id, add=added))
        self.publish(commit_id, added, [], attempt=2)

    def refused(self, error: type[Exception], call: Callable[[], object]) -> None:
        """A call raises; the invariant sees to it that nothing changed."""
        with pytest.raises(error):
            call()

    @invariant()
    def every_version_is_what_it_was(self) -> None:
        """Every version is listed as the model has it."""
        assert self.metastore.table(self.name).version == len(self.versions) - 1
        assert self.metastore.checkpoint(self.table_id, "kafka") == self.position
        for version, splits in enumerate(self.versions):
            pages = self.metastore.splits(self.table_id, version, page_size=3)
            assert [split for page in pages for split in page] == sorted(splits.values(), key=order)

    @invariant()
    def sums_and_changes_agree(self) -> None:
        """Windows are summed, and changes lead from each version to the next."""
        metastore = self.metastore
        assert metastore.windows(self.table_id, len(self.versions) - 1) == sums(self.newest.values())
        changes = list(metastore.changes(self.table_id, 0))
        assert [change.commit_id for change in changes] == [result.commit_id for result in self.published]
        for change, before, after in zip(changes, self.versions[:-1], self.versions[1:], strict=True):
            assert {split.split_id for split in change.added} == after.keys() - before.keys()
            assert {split.split_id for split in change.removed} == before.keys() - after.keys()


class MachineCases:
    """Runs the machine; a subclass may raise `machine_examples`."""

    machine_examples = 6

    def test_any_sequence_of_commits_keeps_every_version(
        self, metastore: Metastore, open_again: Callable[[], Metastore]
    ) -> None:
        clients = [metastore, open_again()]

        class Machine(MetastoreMachine):
            def __init__(self) -> None:
                super().__init__(clients)

        small = settings(
            max_examples=self.machine_examples,
            stateful_step_count=12,
            deadline=None,
            database=None,
            suppress_health_check=list(HealthCheck),
        )
        run_state_machine_as_test(Machine, settings=small)
