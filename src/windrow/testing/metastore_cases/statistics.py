"""What collectors of statistics ask of a metastore."""

from __future__ import annotations

from windrow.metastore import Metastore, StoredStatistics
from windrow.testing.metastore_cases.samples import TABLE, OpenAgain, a_split, a_table, add

__all__ = ["StatisticsCases"]


def _entry(split_id: str, column: str, revision: int = 0, data: bytes = b"\0known") -> StoredStatistics:
    return StoredStatistics(split_id, column, revision, data)


class StatisticsCases:
    """Statistics of columns, by split."""

    def test_statistics_are_found_by_split_and_column(self, metastore: Metastore) -> None:
        a_table(metastore)
        add(metastore, "c1", a_split("a", "c1"), a_split("b", "c1"))
        assert metastore.store_statistics(TABLE, [_entry("b", "host"), _entry("a", "x"), _entry("a", "host")]) == []
        found = metastore.statistics(TABLE, ["a", "b"])
        assert found == [_entry("a", "host", 1), _entry("a", "x", 1), _entry("b", "host", 1)]
        assert metastore.statistics(TABLE, ["a", "none"], ["host", "y"]) == [_entry("a", "host", 1)]
        assert metastore.statistics(TABLE, []) == []

    def test_statistics_are_replaced_only_by_who_read_them(self, metastore: Metastore, open_again: OpenAgain) -> None:
        a_table(metastore)
        add(metastore, "c1", a_split("a", "c1"))
        other = open_again()
        assert metastore.store_statistics(TABLE, [_entry("a", "host", 0, b"one")]) == []
        late = _entry("a", "host", 0, b"two")
        assert other.store_statistics(TABLE, [late, _entry("a", "x")]) == [late]
        assert other.store_statistics(TABLE, [_entry("a", "host", 1, b"both")]) == []
        assert metastore.store_statistics(TABLE, [_entry("a", "host", 1, b"one")]) == [_entry("a", "host", 1, b"one")]
        assert metastore.statistics(TABLE, ["a"], ["host"]) == [_entry("a", "host", 2, b"both")]

    def test_statistics_belong_to_splits_of_one_table(self, metastore: Metastore) -> None:
        a_table(metastore)
        a_table(metastore, name="other", table_id="other")
        add(metastore, "c1", a_split("a", "c1"))
        assert metastore.store_statistics(TABLE, [_entry("a", "host"), _entry("none", "host")]) == []
        assert metastore.store_statistics("other", [_entry("a", "host")]) == []
        assert metastore.statistics(TABLE, ["a", "none"]) == [_entry("a", "host", 1)]
        assert metastore.statistics("other", ["a", "none"]) == []

    def test_statistics_go_with_their_split(self, metastore: Metastore) -> None:
        a_table(metastore)
        add(metastore, "c1", a_split("a", "c1"), a_split("b", "c1"))
        metastore.store_statistics(TABLE, [_entry("a", "host"), _entry("b", "host")])
        add(metastore, "c2", a_split("merged", "c2"), replace=["a"])
        metastore.drop_versions(TABLE, grace=0)
        metastore.claim(TABLE, limit=10)
        assert metastore.statistics(TABLE, ["a", "b"]) == [_entry("a", "host", 1), _entry("b", "host", 1)]
        assert metastore.forget(TABLE, ["a"]) == 1
        assert metastore.statistics(TABLE, ["a", "b"]) == [_entry("b", "host", 1)]
