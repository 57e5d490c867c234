"""Pages that cannot match are left out by the page index of a file, wherever it can be had without a request."""

from __future__ import annotations

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from tests.reading.samples import parquet, put_file

from windrow.cache import CacheKind, MemoryCache, RoutingCache
from windrow.engines.duckdb.engine import DuckDBEngine
from windrow.engines.duckdb.foreign_relations import ForeignRelations
from windrow.errors import Replaced
from windrow.parquet.footer import read_footer
from windrow.planning.data_files import weight_of
from windrow.planning.foreign_files import ForeignFiles
from windrow.planning.scan_context import ScanContext
from windrow.planning.scan_plan import plan_files
from windrow.questions.where import parse_where
from windrow.reading.read_context import ReadContext
from windrow.reading.virtual_reader import VirtualReader
from windrow.storage import LocalStore, open_store
from windrow.storage.handles import Handle

ROWS, PAGE, PAGES = 4000, 100, 40
LAYOUT = {"row_group_size": ROWS, "max_rows_per_page": PAGE, "compression": "none", "use_dictionary": False}


def table_of(rows=ROWS):
    return pa.table({"key": range(rows), "other": [n * 7 % 1000 for n in range(rows)]})


def planned(file, condition, columns=("key",), **context):
    made = ScanContext("lake", file.store, threads=1, **context)
    return plan_files(made, [file], predicate=parse_where(condition), columns=columns)


def step(plan, name):
    return next(((each.asked, each.kept) for each in plan.steps if each.step == name), None)


@pytest.fixture
def file(tmp_path):
    return put_file(LocalStore(tmp_path), "a.parquet", parquet(table_of(), **LAYOUT))


def test_pages_that_can_match_are_read(file):
    plan = planned(file, "key between 150 and 250")
    assert step(plan, "statistics and nulls") == (1, 1)
    assert step(plan, "granule keys") == (PAGES, PAGES)
    assert step(plan, "page index") == (PAGES, 2)
    assert plan.rows == 2 * PAGE
    assert plan.bytes < file.identity.size / 10


def test_a_value_between_the_pages_leaves_nothing(tmp_path):
    """Its row group holds larger and smaller ones."""
    keys = [n + n // PAGE * 1000 for n in range(ROWS)]
    file = put_file(LocalStore(tmp_path), "a.parquet", parquet(pa.table({"key": keys}), **LAYOUT))
    plan = planned(file, "key = 500")
    assert (step(plan, "page index"), plan.rows) == ((PAGES, 0), 0)


def test_a_condition_that_pages_know_nothing_of_leaves_all(file):
    plan = planned(file, "other > 5")
    assert (step(plan, "page index"), plan.rows) == ((PAGES, PAGES), ROWS)


def test_columns_whose_pages_are_cut_elsewhere_keep_the_row_group_whole(tmp_path):
    table = table_of().append_column("tags", pa.array([[n] * (n % 3) for n in range(ROWS)]))
    data = parquet(table, **{**LAYOUT, "data_page_size": 700})
    file = put_file(LocalStore(tmp_path), "a.parquet", data)
    assert planned(file, "key = 5", columns=None).rows == ROWS


def test_a_file_without_the_columns_is_counted_by_one_whose_pages_are_cut_elsewhere(tmp_path):
    many = pa.table({"many": [n * 7919 % 100_003 for n in range(ROWS)], "few": [n % 5 for n in range(ROWS)]})
    many = many.append_column("some", many["few"])
    layout = {"dictionary_pagesize_limit": 100, "write_batch_size": 30, "use_dictionary": True}
    file = put_file(LocalStore(tmp_path), "a.parquet", parquet(many, **{**LAYOUT, **layout}))
    context = ScanContext("lake", file.store, threads=4)
    [virtual] = plan_files(context, [file], columns=("absent",)).virtual
    with VirtualReader(virtual, ReadContext("lake", file.store)) as reader:
        assert pq.read_table(Handle(reader)).num_rows == ROWS
    [cut] = plan_files(context, [file], columns=("few", "some")).virtual
    assert len(cut.chunks) > 2, "columns whose pages are cut alike can be read by several threads"


def test_what_was_read_of_an_index_is_not_read_again(file, monkeypatch):
    parsed = MemoryCache(10**7, weigh=weight_of)
    first = planned(file, "key = 5", parsed=parsed)
    monkeypatch.setattr(LocalStore, "get_ranges", lambda *_, **__: pytest.fail("a plan read a file again"))
    assert planned(file, "key = 5", parsed=parsed).rows == first.rows == PAGE


def test_an_index_of_a_file_that_was_replaced_is_not_believed(file):
    parsed = MemoryCache(10**7, weigh=weight_of)
    assert planned(file, "other = 7000", parsed=parsed).rows == 0, "the sidecar is known"
    file.store.put(file.key, parquet(table_of(ROWS + 1), **LAYOUT))
    with pytest.raises(Replaced):
        planned(file, "key = 5", parsed=parsed)


def index_of(data):
    """Where the column index of the first column is, and how many bytes it has."""
    record = read_footer(data, name="x").chunks[0, 0]
    return int(record["column_index_offset"]), int(record["column_index_length"])


@pytest.mark.parametrize("damage", [b"\xff" * 64, b"\x00", bytes(64)], ids=["nonsense", "nothing", "zeros"])
def test_a_damaged_index_costs_time_alone(tmp_path, damage):
    data = parquet(table_of(), **LAYOUT)
    start, length = index_of(data)
    broken = data[:start] + damage[:length] + data[start + len(damage[:length]) :]
    file = put_file(LocalStore(tmp_path), "a.parquet", broken)
    assert planned(file, "key = 5").rows == ROWS


class Far:
    """A remote file, asked by DuckDB, with a cache or without one."""

    def __init__(self, server, data, cache):
        server.objects["/raw/a.parquet"] = data
        self.server, self.cache = server, cache
        self.path = f"{server.url}/raw/a.parquet"
        store = open_store("memory://")
        context = ScanContext("x", store, cache, MemoryCache(10**7, weigh=weight_of))
        self.relations = ForeignRelations(ForeignFiles(context))
        self.engine = DuckDBEngine(ReadContext("x", store, cache))

    def ask(self, condition):
        """The rows, the bytes that were sent for them, and the requests."""
        self.server.requests.clear()
        self.server.sent = 0
        found = self.engine.sql(f"select key from '{self.path}' where {condition}", {}, self.relations).to_dict()
        return [row["key"] for row in found], self.server.sent, len(self.server.requests)


@pytest.fixture
def far(range_server, tmp_path):
    made = []

    def make(data, cache=None):
        made.append(Far(range_server, data, cache))
        return made[-1]

    yield make
    for each in made:
        each.engine.close()


@pytest.fixture
def large():
    """A file of which the end that is asked for first holds the indexes, and not the data."""
    rows = 50_000
    return parquet(table_of(rows), **{**LAYOUT, "row_group_size": rows, "max_rows_per_page": 500})


@pytest.fixture
def footers():
    """The cache that an application has for footers, and page indexes with them."""
    return MemoryCache(10**7)


@pytest.fixture
def cache(footers):
    return RoutingCache(MemoryCache(10**7), {CacheKind.DATA_FILE_FOOTER: footers})


def test_of_a_remote_file_the_index_came_along_with_the_footer(far, large, cache, footers):
    there = far(large, cache)
    there.ask("key < 0")
    assert footers.size() == 2, "the footer, and the index"
    found, sent, requests = there.ask("key = 777")
    page = 500 * 8
    assert (found, requests) == ([777], 1)
    assert page <= sent < page + 100, "one page with its header, and nothing else"


def test_without_it_the_row_group_is_fetched(far, large, cache, footers):
    there = far(large, cache)
    there.ask("key < 0")
    footers.invalidate_all()
    found, sent, requests = there.ask("key = 777")
    assert (found, requests) == ([777], 1)
    assert sent > 50_000 * 8


def test_without_a_cache_the_row_group_is_fetched(far, large):
    found, sent, _ = far(large).ask("key = 777")
    assert found == [777]
    assert sent > 50_000 * 8


def test_an_index_that_did_not_come_along_is_not_asked_for(far, cache, footers):
    rows = 100_000
    there = far(parquet(table_of(rows), **{**LAYOUT, "row_group_size": rows, "max_rows_per_page": 20}), cache)
    there.ask("key < 0")
    assert footers.size() == 1, "the footer alone"
    found, sent, requests = there.ask("key = 777")
    assert (found, requests) == ([777], 1)
    assert sent > rows * 8


def test_the_index_of_a_replaced_file_is_not_used(far, large, cache):
    there = far(large, cache)
    assert there.ask("key = 777")[0] == [777]
    rows = 50_000
    table = pa.table({"key": [rows - n for n in range(rows)], "other": range(rows)})
    data = parquet(table, **{**LAYOUT, "row_group_size": rows, "max_rows_per_page": 500})
    there.server.objects["/raw/a.parquet"] = data
    assert there.ask("key = 777")[0] == [777]
