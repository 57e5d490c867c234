"""Tables and their columns."""

from __future__ import annotations

from collections.abc import Mapping

import pyarrow as pa
import pytest

from windrow.errors import AlreadyExists, InvalidInput, NotFound
from windrow.metastore import MOST_ATTRIBUTES, Metastore, TableColumn
from windrow.testing.metastore_cases.samples import (
    SETTINGS,
    TABLE,
    OpenAgain,
    a_table,
    a_table_of,
    add,
    begin,
    everything,
)

__all__ = ["AttributeCases", "ColumnCases", "TableCases"]

BAD_NAMES = ("", "1st", "_x", "a-b", "a b", "a.b", "a/b", "../x", "tabelle-ä", "x" * 129, "a\0", "a\n", "drop table;")


class TableCases:
    """Which tables there are."""

    def test_a_new_table_is_empty_and_at_version_0(self, metastore: Metastore) -> None:
        table = metastore.create_table("metrics", SETTINGS, table_id=TABLE)
        assert (table.name, table.table_id, table.settings) == ("metrics", TABLE, SETTINGS)
        assert (table.version, table.oldest_version, table.schema_epoch) == (0, 0, 0)
        assert list(metastore.splits(TABLE, 0)) == []
        assert metastore.windows(TABLE, 0) == []
        assert metastore.columns(TABLE) == ()

    def test_another_client_sees_the_same_table(self, metastore: Metastore, open_again: OpenAgain) -> None:
        table = a_table(metastore)
        assert open_again().table("metrics") == table

    def test_tables_are_listed_by_name(self, metastore: Metastore) -> None:
        for number, name in enumerate(("b", "Z", "a", "a_b", "aB", "a1")):
            a_table(metastore, name, f"id-{number}")
        assert [table.name for table in metastore.tables()] == ["Z", "a", "a1", "aB", "a_b", "b"]

    def test_a_missing_table_is_not_found_with_the_nearest_name(self, metastore: Metastore) -> None:
        with pytest.raises(NotFound, match="none yet"):
            metastore.table("metrics")
        a_table(metastore)
        with pytest.raises(NotFound, match="'metrcs'; did you mean 'metrics'"):
            metastore.table("metrcs")
        with pytest.raises(NotFound, match="'wholly_else'; there are: metrics"):
            metastore.table("wholly_else")

    def test_a_name_is_given_once(self, metastore: Metastore, open_again: OpenAgain) -> None:
        first = a_table(metastore)
        with pytest.raises(AlreadyExists, match="'metrics' exists already"):
            open_again().create_table("metrics", SETTINGS.changed(window="1h"), table_id="other")
        assert metastore.tables() == [first]

    def test_names_that_differ_by_case_alone_would_share_a_folder(self, metastore: Metastore) -> None:
        a_table(metastore, "Metrics")
        with pytest.raises(AlreadyExists, match="'Metrics' exists already and differs from 'metricS'"):
            a_table(metastore, "metricS", "other")

    def test_an_id_is_given_once(self, metastore: Metastore) -> None:
        a_table(metastore)
        with pytest.raises(AlreadyExists, match=f"table id {TABLE} is taken"):
            a_table(metastore, "events", TABLE)

    @pytest.mark.parametrize("name", BAD_NAMES)
    def test_a_name_is_a_folder_and_a_table_in_sql(self, metastore: Metastore, name: str) -> None:
        with pytest.raises(InvalidInput, match="is not a table name"):
            a_table(metastore, name)
        assert metastore.tables() == []

    def test_the_longest_name_is_fine(self, metastore: Metastore) -> None:
        a_table(metastore, "x" * 128)
        assert metastore.table("x" * 128).table_id == TABLE

    @pytest.mark.parametrize("table_id", ["", "x" * 65, "a\nb", "a\0b"])
    def test_an_id_is_printable(self, metastore: Metastore, table_id: str) -> None:
        with pytest.raises(InvalidInput, match="table id"):
            a_table(metastore, "metrics", table_id)

    def test_settings_change_and_nothing_else_does(self, metastore: Metastore, open_again: OpenAgain) -> None:
        a_table(metastore)
        add(metastore, "c1")
        before = metastore.table("metrics")
        changed = SETTINGS.changed(window="1h", retention="30d", tags=["größe", "host'"])
        after = metastore.change_settings(TABLE, changed)
        assert after.settings == changed
        assert (after.version, after.created_at) == (before.version, before.created_at)
        assert open_again().table("metrics") == after

    def test_a_table_that_does_not_exist_has_nothing(self, metastore: Metastore) -> None:
        with pytest.raises(NotFound, match="no such table"):
            metastore.change_settings("nobody", SETTINGS)
        with pytest.raises(NotFound, match="no such table"):
            metastore.columns("nobody")
        with pytest.raises(NotFound, match="no such table"):
            metastore.windows("nobody", 0)
        with pytest.raises(NotFound, match="no such table"):
            list(metastore.splits("nobody", 0))


BATCH = pa.schema([("host", pa.string()), ("value", pa.float64())])
WIDER = pa.schema([("value", pa.float64()), ("region", pa.string()), ("host", pa.string())])


def ids(columns: Mapping[str, TableColumn]) -> dict[str, int]:
    """The field ids of columns."""
    return {name: column.field_id for name, column in columns.items()}


class ColumnCases:
    """Columns get their field ids before files are written, and are seen once a split that holds them is."""

    def test_a_column_keeps_its_field_id(self, metastore: Metastore, open_again: OpenAgain) -> None:
        a_table(metastore)
        assert ids(metastore.reserve_columns(TABLE, BATCH)) == {"host": 1, "value": 2}
        assert ids(open_again().reserve_columns(TABLE, WIDER)) == {"value": 2, "region": 3, "host": 1}
        assert ids(metastore.reserve_columns(TABLE, BATCH)) == {"host": 1, "value": 2}

    def test_tables_number_their_columns_apart(self, metastore: Metastore) -> None:
        a_table(metastore)
        a_table(metastore, "events", "table-2")
        metastore.reserve_columns(TABLE, BATCH)
        assert ids(metastore.reserve_columns("table-2", pa.schema([("value", pa.int8())]))) == {"value": 1}

    def test_a_reserved_column_is_not_seen_before_a_commit_that_names_it(self, metastore: Metastore) -> None:
        a_table(metastore)
        metastore.reserve_columns(TABLE, WIDER)
        assert metastore.columns(TABLE) == ()
        add(metastore, "c1", columns=("host", "value"))
        assert [(column.name, column.field_id) for column in metastore.columns(TABLE)] == [("value", 1), ("host", 3)]

    def test_an_older_version_has_the_columns_it_had(self, metastore: Metastore) -> None:
        a_table(metastore)
        metastore.reserve_columns(TABLE, WIDER)
        for number, name in enumerate(("host", "region", "host")):
            add(metastore, f"c{number}", columns=(name,))
        seen = [[column.name for column in metastore.columns(TABLE, version)] for version in range(4)]
        assert seen == [[], ["host"], ["region", "host"], ["region", "host"]]

    def test_another_type_is_refused(self, metastore: Metastore) -> None:
        a_table_of(metastore, BATCH)
        other = pa.schema([("new", pa.string()), ("value", pa.int64())])
        with pytest.raises(InvalidInput, match="'value' is double in the table and int64 in the data"):
            metastore.reserve_columns(TABLE, other)
        assert ids(metastore.reserve_columns(TABLE, pa.schema([("next", pa.int8())]))) == {"next": 3}

    def test_a_column_widens_to_a_type_that_holds_both(self, metastore: Metastore) -> None:
        a_table(metastore)
        metastore.reserve_columns(TABLE, pa.schema([("value", pa.int32()), ("host", pa.string())]))
        add(metastore, "c1", columns=("value", "host"))
        other = pa.schema([("host", pa.dictionary(pa.int8(), pa.large_string())), ("value", pa.float64())])
        reserved = metastore.reserve_columns(TABLE, other)
        assert [(each.name, each.type) for each in reserved.values()] == [
            ("host", pa.string()),
            ("value", pa.float64()),
        ]
        assert [str(column.type) for column in metastore.columns(TABLE)] == ["double", "string"]
        narrow = metastore.reserve_columns(TABLE, pa.schema([("value", pa.int8())]))
        assert narrow["value"].type == pa.float64(), "a narrower batch is widened, not the table narrowed"

    def test_every_conflict_of_a_batch_is_named(self, metastore: Metastore) -> None:
        a_table_of(metastore, BATCH)
        other = pa.schema([("host", pa.int64()), ("value", pa.string())])
        with pytest.raises(InvalidInput, match="'host' is string in the table .*; column 'value' is double"):
            metastore.reserve_columns(TABLE, other)

    def test_what_a_failed_run_reserved_binds_nobody(self, metastore: Metastore) -> None:
        a_table(metastore)
        first = metastore.reserve_columns(TABLE, BATCH)
        begin(metastore, "c1")
        other = pa.schema([("host", pa.int64())])
        with pytest.raises(InvalidInput, match="'host' is string in the table and int64 in the data"):
            metastore.reserve_columns(TABLE, other)
        metastore.abort("c1")
        again = metastore.reserve_columns(TABLE, other)
        assert (again["host"].type, again["host"].field_id) == (pa.int64(), first["host"].field_id)
        add(metastore, "c2", columns=other.names)
        with pytest.raises(InvalidInput, match="'host' is int64 in the table and string in the data"):
            metastore.reserve_columns(TABLE, BATCH)

    def test_a_column_is_in_a_batch_once(self, metastore: Metastore) -> None:
        a_table(metastore)
        with pytest.raises(InvalidInput, match="'host' is in the data 2 times"):
            metastore.reserve_columns(TABLE, pa.schema([("host", pa.string()), ("host", pa.string())]))

    def test_names_that_differ_by_case_alone_are_one(self, metastore: Metastore) -> None:
        a_table(metastore)
        metastore.reserve_columns(TABLE, pa.schema([("Host", pa.string())]))
        assert list(metastore.reserve_columns(TABLE, pa.schema([("host", pa.string())]))) == ["host"], "never published"
        add(metastore, "c1", columns=("host",))
        before = everything(metastore)
        with pytest.raises(InvalidInput, match="'Host' differs from 'host' of the table by case alone"):
            metastore.reserve_columns(TABLE, pa.schema([("Host", pa.string())]))
        assert everything(metastore) == before

    def test_a_batch_may_have_no_columns(self, metastore: Metastore) -> None:
        a_table(metastore)
        assert metastore.reserve_columns(TABLE, pa.schema([])) == {}

    def test_a_column_that_was_not_reserved_cannot_be_published(self, metastore: Metastore) -> None:
        a_table(metastore)
        before = everything(metastore)
        with pytest.raises(InvalidInput, match="'ghost' has no field id"):
            add(metastore, "c1", columns=("ghost",))
        metastore.abort("c1")
        assert everything(metastore)[TABLE]["splits"] == before[TABLE]["splits"]

    def test_every_type_comes_back_as_it_was(self, metastore: Metastore, open_again: OpenAgain) -> None:
        types = [
            pa.timestamp("ns", tz="Europe/Berlin"),
            pa.decimal128(38, 9),
            pa.list_(pa.struct([("a", pa.int8()), ("b", pa.map_(pa.string(), pa.float32()))])),
            pa.binary(),
            pa.date32(),
            pa.null(),
        ]
        schema = pa.schema([(f"c{number}", kind) for number, kind in enumerate(types)])
        a_table(metastore)
        metastore.reserve_columns(TABLE, schema)
        add(metastore, "c1", columns=schema.names)
        assert [column.type for column in open_again().columns(TABLE)] == types
        assert list(metastore.reserve_columns(TABLE, schema)) == schema.names


class AttributeCases:
    """Attributes of the residual column are listed by name from the version on that first holds them."""

    def test_an_attribute_is_known_from_the_commit_that_names_it(self, metastore: Metastore) -> None:
        a_table(metastore)
        assert metastore.attributes(TABLE) == ()
        add(metastore, "c1", attributes=("b", "a"))
        add(metastore, "c2", attributes=("c", "a"))
        add(metastore, "c3")
        seen = [metastore.attributes(TABLE, version) for version in range(4)]
        assert seen == [(), ("a", "b"), ("a", "b", "c"), ("a", "b", "c")]
        assert metastore.attributes(TABLE) == ("a", "b", "c")

    def test_a_refused_commit_names_none(self, metastore: Metastore) -> None:
        a_table(metastore)
        begin(metastore, "c1")
        with pytest.raises(InvalidInput):
            metastore.publish("c1", columns=("ghost",), attributes=("a",))
        assert metastore.attributes(TABLE) == ()

    def test_there_is_an_end_to_names(self, metastore: Metastore) -> None:
        a_table(metastore)
        names = [f"a{number:04}" for number in range(MOST_ATTRIBUTES + 5)]
        add(metastore, "c1", attributes=names[:10])
        add(metastore, "c2", attributes=names[3:])
        add(metastore, "c3", attributes=("zebra",))
        assert list(metastore.attributes(TABLE)) == names[:MOST_ATTRIBUTES]
