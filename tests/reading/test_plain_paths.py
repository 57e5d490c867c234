"""When an engine reads files themselves, and not a virtual file."""

from __future__ import annotations

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from tests.reading.samples import parquet, put_file

from windrow.engines.duckdb.engine import DuckDBEngine, Relation
from windrow.engines.duckdb.foreign_relations import ForeignRelations
from windrow.errors import Replaced
from windrow.model.predicate import Comparison, Op
from windrow.model.rows import Rows
from windrow.model.sources import SourceKind
from windrow.planning.foreign_files import ForeignFiles
from windrow.planning.scan_context import ScanContext
from windrow.planning.scan_plan import ScanPlan, plan_files
from windrow.questions.naming import Question
from windrow.reading.forcing import Forcing
from windrow.reading.plain_paths import plain_paths
from windrow.reading.read_context import ReadContext
from windrow.reading.source import EVERY_SOURCE, PlainPaths, source_of
from windrow.sidecar.pruning import Step
from windrow.storage import LocalStore, open_store

ROWS = 400
TABLE = pa.table(
    {
        "number": range(ROWS),
        "text": [f"text {n}" for n in range(ROWS)],
        "float": [n / 7 for n in range(ROWS)],
        "bytes": [b"%d" % n for n in range(ROWS)],
        "list": [[n] for n in range(ROWS)],
        "nothing": pa.nulls(ROWS, pa.int64()),
    }
)


@pytest.fixture
def store(tmp_path):
    return LocalStore(tmp_path / "partition_id=7")


def planned(store, columns, predicate=None, tables=(TABLE,), name="{}.parquet"):
    options = {"row_group_size": 100, "max_rows_per_page": 50, "write_page_index": True}
    files = [
        put_file(store, name.format(number), parquet(table, **options), sidecar=True)
        for number, table in enumerate(tables)
    ]
    [virtual] = plan_files(ScanContext("lake", store, threads=1), files, predicate=predicate, columns=columns).virtual
    return virtual


def is_plain(virtual):
    return plain_paths(virtual, anyway=True) is not None


def test_numbers_and_texts_of_local_files_can_be_read_plainly(store):
    assert is_plain(planned(store, ["number", "text"]))


@pytest.mark.parametrize("column", ["float", "bytes", "list", "nothing"])
def test_what_an_engine_might_take_for_something_else_cannot(store, column):
    assert not is_plain(planned(store, ["number", column]))


def test_a_column_that_a_file_lacks_cannot(store):
    assert not is_plain(planned(store, ["number", "text"], tables=[TABLE, TABLE.select(["number"])]))


def test_files_elsewhere_cannot():
    assert not is_plain(planned(open_store("memory://"), ["number"]))


def test_a_path_that_would_be_taken_for_a_pattern_cannot(store):
    assert not is_plain(planned(store, ["number"], name="a[{}].parquet"))


def test_small_files_and_parts_of_files_are_read_plainly_only_when_that_is_forced(store):
    assert plain_paths(planned(store, ["number"])) is None
    part = planned(store, ["number"], Comparison("number", Op.LESS, 30))
    assert not part.is_whole
    assert is_plain(part)
    assert plain_paths(part) is None


@pytest.fixture
def large(tmp_path):
    """A file that is worth reading by itself."""
    path = tmp_path / "large.parquet"
    table = pa.table({"number": range(3_000_000)})
    pq.write_table(table, path, compression="none", use_dictionary=False)
    return path


def test_a_large_file_is_read_plainly_where_all_of_it_is_wanted(large):
    files = ForeignFiles(ScanContext("lake", LocalStore(large.parent), threads=1))
    relation = ForeignRelations(files)(str(large))
    [virtual] = plan_files(files.context, files.find(str(large)), columns=["number"]).virtual
    paths = plain_paths(virtual)
    assert paths == [str(large)]
    engine = DuckDBEngine(ReadContext("lake", files.context.store))
    try:
        answer = engine.sql(f"select sum(number) as s from '{large}'", {}, lambda _: relation)
        assert answer.to_dict() == [{"s": 3_000_000 * 2_999_999 // 2}]
    finally:
        engine.close()


def test_a_file_that_was_replaced_meanwhile_is_no_answer(large):
    store = LocalStore(large.parent)
    files = ForeignFiles(ScanContext("lake", store, threads=1))
    plan = plan_files(files.context, files.find(str(large)), columns=["number"])
    source = source_of(Question(), plan, ReadContext("lake", store), EVERY_SOURCE)
    assert isinstance(source, PlainPaths)
    source.finish()
    other = large.with_name("other")
    pq.write_table(pa.table({"number": [1]}), other)
    other.replace(large)
    with pytest.raises(Replaced):
        source.finish()


def test_folders_named_like_columns_are_no_columns(store):
    virtual = planned(store, ["number", "text"])
    forcing = Forcing(SourceKind.PATHS)
    engine = DuckDBEngine(ReadContext("lake", store, forcing=forcing))
    relation = Relation(TABLE.select(["number", "text"]).schema, lambda _: ScanPlan([virtual], Rows(Step, ())))
    try:
        assert engine.sql("select * from t limit 1", {"t": lambda: relation}).table.column_names == ["number", "text"]
        assert forcing.taken == {SourceKind.PATHS: 1}
    finally:
        engine.close()
