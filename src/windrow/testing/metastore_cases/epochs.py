"""Cases of schema epochs: a column gets another type as one version, and nothing of before is published after it."""

from __future__ import annotations

import pyarrow as pa
import pytest

from windrow.errors import Conflict, InvalidInput, InvariantViolation, LeaseExpired, NotFound
from windrow.metastore import CommitKind, Metastore, Published
from windrow.model.epochs import OldValues, SchemaHistory
from windrow.testing.metastore_cases.samples import (
    TABLE,
    OpenAgain,
    a_split,
    a_table_of,
    add,
    begin,
    everything,
    scope,
)

__all__ = ["EpochCases"]

BATCH = pa.schema([("host", pa.string()), ("value", pa.int64())])


def retyped(
    metastore: Metastore, commit_id: str = "r1", column: str = "value", kind: pa.DataType | None = None, epoch: int = 1
) -> Published:
    """Give a column another type; a number of any kind by default."""
    begin(metastore, commit_id, CommitKind.RETYPE)
    kind = kind or pa.float64()
    return metastore.change_type(commit_id, column=column, kind=kind, rule=OldValues.CAST_OR_NULL, epoch=epoch)


def types(metastore: Metastore, version: int | None = None) -> dict[str, str]:
    """The types of the columns at a version."""
    return {column.name: str(column.type) for column in metastore.columns(TABLE, version)}


class EpochCases:
    """A change of a column's type begins a schema epoch."""

    def test_a_change_is_a_version_and_older_ones_keep_their_types(
        self, metastore: Metastore, open_again: OpenAgain
    ) -> None:
        a_table_of(metastore, BATCH)
        before = metastore.columns(TABLE)
        assert metastore.history(TABLE) == SchemaHistory()
        assert retyped(metastore).version == 2
        for client in (metastore, open_again()):
            assert client.table("metrics").schema_epoch == 1
            assert types(client) == types(client, 2) == {"host": "string", "value": "double"}
            assert client.columns(TABLE, 1) == before
            assert [each.field_id for each in client.columns(TABLE)] == [each.field_id for each in before]
        assert metastore.history(TABLE, 1).epoch == 0
        assert metastore.history(TABLE).old_columns()[0]["value"].steps == ((OldValues.CAST_OR_NULL, pa.float64()),)
        assert metastore.problems(TABLE) == []

    def test_what_was_written_in_an_earlier_epoch_is_not_published_any_more(self, metastore: Metastore) -> None:
        a_table_of(metastore, BATCH)
        begin(metastore, "c2")
        begin(metastore, "c3", CommitKind.REGISTER)
        retyped(metastore)
        before = everything(metastore)
        for commit_id in ("c2", "c3"):
            with pytest.raises(Conflict, match="written for schema epoch 0, and the table is at epoch 1"):
                metastore.publish(commit_id, add=(a_split(commit_id, commit_id),), columns=BATCH.names)
        assert everything(metastore) == before
        newer = scope(doc_mapping_uid=1)
        metastore.publish("c2", add=(a_split("c2", "c2", scope=newer),), columns=BATCH.names)
        assert metastore.visible_epochs(TABLE, 3) == {0, 1}
        assert metastore.visible_epochs(TABLE, 2) == {0}

    def test_a_merge_stays_in_the_epoch_of_its_inputs(self, metastore: Metastore) -> None:
        a_table_of(metastore, BATCH)
        retyped(metastore)
        newer = scope(doc_mapping_uid=1)
        add(metastore, "c2", a_split("c2", "c2", scope=newer), columns=BATCH.names)
        for number, where in enumerate((newer, scope())):
            begin(metastore, f"m{number}", CommitKind.COMPACT)
            both = a_split(f"m{number}", f"m{number}", 0, 20, scope=where)
            with pytest.raises(InvariantViolation, match="MC-1"):
                metastore.publish(f"m{number}", add=(both,), replace=("c1", "c2"))
        merged = a_split("m1", "m1", generation=1)
        assert metastore.publish("m1", add=(merged,), replace=("c1",)).version == 4
        assert len(list(metastore.groups(TABLE))) == 2

    def test_a_change_that_was_planned_at_another_epoch_or_version_is_refused(self, metastore: Metastore) -> None:
        a_table_of(metastore, BATCH)
        retyped(metastore)
        begin(metastore, "r2", CommitKind.RETYPE)
        begin(metastore, "c2")
        before = everything(metastore)
        change = {"column": "value", "kind": pa.string(), "rule": OldValues.NULL}
        with pytest.raises(Conflict, match="planned at epoch 0"):
            metastore.change_type("r2", epoch=1, **change)
        with pytest.raises(Conflict, match="and version 1; plan it again"):
            metastore.change_type("r2", epoch=2, version=1, **change)
        with pytest.raises(NotFound, match="no column 'other'"):
            metastore.change_type("r2", epoch=2, **{**change, "column": "other"})
        with pytest.raises(InvalidInput, match="of kind ingest"):
            metastore.change_type("c2", epoch=2, **change)
        with pytest.raises(LeaseExpired):
            metastore.change_type("r2", attempt=2, epoch=2, **change)
        assert everything(metastore) == before
        assert metastore.change_type("r2", epoch=2, version=2, **change).version == 3

    def test_the_same_change_again_returns_the_first_result(self, metastore: Metastore) -> None:
        a_table_of(metastore, BATCH)
        first = retyped(metastore)
        assert retyped(metastore) == first
        assert metastore.table("metrics").schema_epoch == 1

    def test_columns_widen_and_join_in_the_newest_epoch_alone(self, metastore: Metastore) -> None:
        a_table_of(metastore, BATCH)
        retyped(metastore, kind=pa.int16())
        wider = pa.schema([("value", pa.int32()), ("region", pa.string())])
        reserved = metastore.reserve_columns(TABLE, wider)
        assert {name: each.field_id for name, each in reserved.items()} == {"value": 2, "region": 3}
        add(metastore, "c2", a_split("c2", "c2", scope=scope(doc_mapping_uid=1)), columns=wider.names)
        assert types(metastore) == {"host": "string", "value": "int32", "region": "string"}
        assert types(metastore, 1) == {"host": "string", "value": "int64"}
        with pytest.raises(InvalidInput, match="'value' is int32 in the table and string in the data; .*retype"):
            metastore.reserve_columns(TABLE, pa.schema([("value", pa.string())]))
