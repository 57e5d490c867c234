"""A merge is published only inside of one scope and window, whoever planned it."""

from __future__ import annotations

import pytest

from windrow.errors import InvariantViolation
from windrow.metastore import CommitKind
from windrow.model.window import Window
from windrow.testing.metastore_cases.samples import a_split, a_table, add, begin, everything, scope


@pytest.mark.parametrize(
    "part",
    [
        {"table_id": "table-2"},
        {"source_id": "other"},
        {"partition_id": 7},
        {"doc_mapping_uid": 1},
        {"sort_schema": "region|timestamp&host/V2"},
        {"duration": 300},
    ],
    ids=lambda part: next(iter(part)),
)
def test_a_merge_that_moves_rows_to_another_scope_is_refused(metastore, part):
    a_table(metastore)
    add(metastore, "c1", a_split("a", "c1"), a_split("b", "c1"))
    begin(metastore, "c2", CommitKind.COMPACT)
    before = everything(metastore)
    window = Window(0, part.get("duration", 900))
    moved = a_split("m", "c2", rows=20, scope=scope(**part), window=window, time_max=0)
    with pytest.raises(InvariantViolation, match=r"CS-[12]"):
        metastore.publish("c2", add=[moved], replace=["a", "b"])
    assert everything(metastore) == before
