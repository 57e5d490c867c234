"""Statements are compiled once in a process, however many SQLite databases it opens."""

from sqlalchemy.dialects.sqlite.pysqlite import SQLiteDialect_pysqlite

from windrow.metastore import SqlMetastore
from windrow.metastore.dialect import COMPILED, SharedDialect
from windrow.testing.metastore_cases.samples import TABLE, a_split, a_table, add


def use(path):
    with SqlMetastore(f"sqlite:///{path}") as metastore:
        a_table(metastore)
        add(metastore, "c1", a_split("s1", "c1"))
        return [split.split_id for page in metastore.splits(TABLE, 1) for split in page]


def test_a_second_database_compiles_nothing(tmp_path):
    for name in ("first", "second"):
        SqlMetastore(f"sqlite:///{tmp_path}/{name}.db").close()
    assert use(tmp_path / "first.db") == ["s1"]
    compiled = len(COMPILED)
    assert use(tmp_path / "second.db") == ["s1"]
    assert len(COMPILED) == compiled


def test_dialects_of_one_kind_are_equal_and_no_others():
    assert SharedDialect() == SharedDialect()
    assert hash(SharedDialect()) == hash(SharedDialect())
    assert SharedDialect() != SQLiteDialect_pysqlite()
