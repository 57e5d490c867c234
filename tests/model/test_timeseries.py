"""Series ids and partition ids: the bytes that are hashed are pinned, and nothing else matters."""

from datetime import date
from decimal import Decimal

import numpy as np
import pyarrow as pa
import pytest
import siphash24 as library
from hypothesis import given, settings
from hypothesis import strategies as st

from windrow.errors import InvalidInput
from windrow.model.timeseries import partition_ids, residual_tags, timeseries_ids

PINNED = [
    ("cpu.usage", 0, {}, 8585688161913568022),
    ("cpu.usage", 0, {"env": "prod", "host": "node-1", "service": "api"}, -1249054409005369755),
    ("http.requests", 1, {"service": "web"}, -2615727422124831097),
]


def siphash(message, *, signed):
    return int.from_bytes(library.siphash24(message, key=bytes(16)).digest(), "little", signed=signed)


def tag_bytes(tags):
    return b"".join(key.encode() + b"\xff" + value.encode() + b"\xff" for key, value in tags if value is not None)


def id_by_hand(name, kind, tags):
    """The definition, for one point."""
    ordered = sorted(tags.items(), key=lambda tag: tag[0].encode())
    return siphash(name.encode() + b"\xff" + bytes([kind]) + tag_bytes(ordered), signed=True)


def one_row(name, kind, tags):
    return pa.table({"metric_name": [name], "metric_type": [kind]} | {key: [value] for key, value in tags.items()})


@pytest.mark.parametrize(("name", "kind", "tags", "expected"), PINNED)
def test_ids_never_change(name, kind, tags, expected):
    assert timeseries_ids(one_row(name, kind, tags), tags=list(tags)).to_pylist() == [expected]
    assert id_by_hand(name, kind, tags) == expected


def test_many_rows_at_once_with_tags_that_some_of_them_lack():
    table = pa.table(
        {
            "service": [None, "api", "web"],
            "host": [None, "node-1", None],
            "metric_name": ["cpu.usage", "cpu.usage", "http.requests"],
            "metric_type": [0, 0, 1],
            "env": [None, "prod", None],
        }
    )
    ids = timeseries_ids(table, tags=["service", "host", "env"])
    assert ids.type == pa.int64()
    assert ids.to_pylist() == [expected for *_, expected in PINNED]


TAGS = {"env": "prod", "host": "node-1", "service": "api"}


def test_the_order_of_tags_and_columns_does_not_matter():
    expected = timeseries_ids(one_row("cpu.usage", 0, TAGS), tags=["env", "host", "service"])
    backwards = one_row("cpu.usage", 0, dict(reversed(TAGS.items())))
    assert timeseries_ids(backwards, tags=["service", "host", "env", "host"]) == expected


def test_tags_are_ordered_by_the_bytes_of_their_names():
    tags = {"b": "1", "a": "2", "Z": "3", "é": "4", "\uffee": "5", "\U0001f600": "6", "a.b": "7", "a_b": "8"}
    assert timeseries_ids(one_row("m", 0, tags), tags=list(tags)).to_pylist() == [id_by_hand("m", 0, tags)]


@pytest.mark.parametrize(
    ("left", "right"),
    [
        (("m", 0, {"ab": "c"}), ("m", 0, {"a": "bc"})),
        (("m", 0, {"a": "b", "c": "d"}), ("m", 0, {"a": "bcd"})),
        (("ma", 0, {}), ("m", 0, {"a": ""})),
        (("m", 0, {"a": ""}), ("m", 0, {})),
        (("m", 0, {}), ("m", 1, {})),
        (("", 0, {}), ("\x00", 0, {})),
        (("m", 0, {"größe": "x"}), ("m", 0, {"grosse": "x"})),
    ],
)
def test_different_series_have_different_ids(left, right):
    ids = [timeseries_ids(one_row(*series), tags=list(series[2])).to_pylist() for series in (left, right)]
    assert ids[0] != ids[1]
    assert ids == [[id_by_hand(*left)], [id_by_hand(*right)]]


def test_a_tag_that_is_null_or_missing_is_absent():
    expected = timeseries_ids(one_row("m", 0, {"a": "1"}), tags=["a"])
    with_null = one_row("m", 0, {"a": "1"}).append_column("b", pa.array([None], pa.string()))
    assert timeseries_ids(with_null, tags=["a", "b", "c"]) == expected


NO_TAGS = ["start_timestamp_secs", "sum", "timestamp", "timestamp_secs", "value"]
NO_TAGS += ["timeseries_id", "metric_name", "metric_type"]


@pytest.mark.parametrize("name", NO_TAGS)
def test_what_is_no_tag_does_not_count(name):
    table = one_row("m", 0, {"a": "1"})
    if name not in table.column_names:
        table = table.append_column(name, pa.array(["9"]))
    assert timeseries_ids(table, tags=["a", name]) == timeseries_ids(table, tags=["a"])


def test_a_point_without_a_type_is_a_gauge():
    gauge = timeseries_ids(one_row("m", 0, {}), tags=[])
    assert timeseries_ids(pa.table({"metric_name": ["m"]}), tags=[]) == gauge
    for kind in (pa.int8(), pa.null()):
        nulls = pa.table({"metric_name": ["m"], "metric_type": pa.array([None], kind)})
        assert timeseries_ids(nulls, tags=[]) == gauge


def test_other_columns_may_hold_name_and_type():
    table = pa.table({"name": ["cpu.usage"], "kind": [0]})
    assert timeseries_ids(table, tags=["name"], metric_name="name", metric_type="kind").to_pylist() == [PINNED[0][3]]


@pytest.mark.parametrize(
    "kind",
    [pa.string(), pa.large_string(), pa.string_view(), pa.dictionary(pa.int8(), pa.string()), pa.binary()],
    ids=str,
)
def test_the_type_that_holds_a_text_does_not_matter(kind):
    chunks = pa.chunked_array([pa.array(["x", None], kind), pa.array(["y", "x"], kind)])
    table = pa.table({"metric_name": ["m"] * 4, "tag": chunks})
    expected = [id_by_hand("m", 0, {"tag": value}) for value in ("x", None, "y", "x")]
    assert timeseries_ids(table, tags=["tag"]).to_pylist() == expected


@pytest.mark.parametrize(
    ("values", "texts"),
    [
        (pa.array([1, -2, None]), ["1", "-2", None]),
        (pa.array([1, -2, None]).dictionary_encode(), ["1", "-2", None]),
        (pa.array([True, False, None]), ["true", "false", None]),
        (pa.array([1.5, None, 0.25]), ["1.5", None, "0.25"]),
        (pa.array([Decimal("1.50"), None]), ["1.50", None]),
        (pa.array([date(2024, 1, 2), None]), ["2024-01-02", None]),
    ],
    ids=str,
)
def test_other_tags_count_as_text(values, texts):
    table = pa.table({"metric_name": ["m"] * len(texts), "tag": values})
    expected = [id_by_hand("m", 0, {"tag": text}) for text in texts]
    assert timeseries_ids(table, tags=["tag"]).to_pylist() == expected


def test_a_dictionary_may_hold_a_value_twice_or_a_null():
    values = pa.DictionaryArray.from_arrays(pa.array([0, 1, 2, None]), pa.array(["x", None, "x"]))
    ids = timeseries_ids(pa.table({"metric_name": ["m"] * 4, "tag": values}), tags=["tag"]).to_pylist()
    assert ids == [id_by_hand("m", 0, {"tag": value}) for value in ("x", None, "x", None)]


@pytest.mark.parametrize(
    ("table", "problem"),
    [
        (pa.table({"a": ["x"]}), "'metric_name' is missing"),
        (pa.table({"metric_name": ["m", None]}), "'metric_name' is null in 1 rows"),
        (pa.table({"metric_name": ["m"], "metric_type": [256]}), "'metric_type' holds types that do not fit"),
        (pa.table({"metric_name": ["m"], "metric_type": [-1]}), "'metric_type' holds types that do not fit"),
        (pa.table({"metric_name": ["m"], "metric_type": ["gauge"]}), "'metric_type' is string; make it an integer"),
        (pa.table({"metric_name": ["m"], "a": [[1]]}), "'a' of type .* cannot be written as text"),
        (pa.table({"metric_name": ["m"], "a": [b"\xff"]}), "'a' of type binary cannot be written as text"),
    ],
)
def test_a_table_that_names_no_series_is_refused(table, problem):
    with pytest.raises(InvalidInput, match=problem):
        timeseries_ids(table, tags=["a"])


def test_no_rows_have_no_ids():
    table = one_row("m", 0, {"a": "1"}).slice(0, 0)
    assert timeseries_ids(table, tags=["a"]) == pa.array([], pa.int64())
    assert partition_ids(table, ["a"]).tolist() == []


texts = st.none() | st.sampled_from(["", "a", "b", "ab", "é\U0001f600"])
points = st.fixed_dictionaries(
    {"metric_name": st.sampled_from(["m", "n", ""]), "metric_type": st.integers(0, 2) | st.none()}
    | dict.fromkeys(("host", "env", "aß"), texts)
)
SCHEMA = pa.schema(
    {"metric_name": pa.string(), "metric_type": pa.uint8()} | dict.fromkeys(("host", "env", "aß"), pa.string())
)


@settings(deadline=None)
@given(st.lists(points, max_size=12))
def test_ids_of_tables_agree_with_the_definition(rows):
    table = pa.Table.from_pylist(rows, SCHEMA)
    tags = ["host", "env", "aß"]
    by_hand = [id_by_hand(row["metric_name"], row["metric_type"] or 0, {t: row[t] for t in tags}) for row in rows]
    assert timeseries_ids(table, tags=tags).to_pylist() == by_hand
    partitions = [siphash(tag_bytes([(t, row[t]) for t in tags]), signed=False) % 2**63 for row in rows]
    assert partition_ids(table, tags).tolist() == partitions


MAPS = pa.map_(pa.string(), pa.string())


def with_rest(columns, maps):
    return pa.table({"metric_name": ["m"] * len(maps)} | columns | {"rest": pa.array(maps, MAPS)})


@settings(deadline=None)
@given(st.lists(st.tuples(points, st.sets(st.sampled_from(["host", "env", "aß"]))), max_size=12), st.integers(0, 12))
def test_an_id_does_not_depend_on_where_a_tag_lives(drawn, cut):
    tags = ["host", "env", "aß"]
    expected = pa.Table.from_pylist([row for row, _ in drawn], SCHEMA)
    moved = pa.Table.from_pylist([row | dict.fromkeys(away) for row, away in drawn], SCHEMA)
    maps = pa.array([[(tag, row[tag]) for tag in away if row[tag] is not None] or None for row, away in drawn], MAPS)
    moved = moved.append_column("rest", pa.chunked_array([maps.slice(0, cut), maps.slice(cut)]))
    assert timeseries_ids(moved, tags=tags, residual="rest") == timeseries_ids(expected, tags=tags)
    tail = timeseries_ids(moved.slice(cut), tags=tags, residual="rest")
    assert tail == timeseries_ids(expected.slice(cut), tags=tags), "a slice has ids of its own rows"


def test_a_tag_without_a_column_is_found_in_the_residual_column():
    table = with_rest({"host": ["a", None, None]}, [[("zone", "z")], [("host", "b"), ("app", "x")], None])
    expected = [{"host": "a", "zone": "z"}, {"app": "x", "host": "b"}, {}]
    ids = timeseries_ids(table, tags=["host", *residual_tags(table, "rest")], residual="rest").to_pylist()
    assert ids == [id_by_hand("m", 0, tags) for tags in expected]


def test_a_column_goes_before_the_residual_column():
    table = with_rest({"host": ["a"]}, [[("host", "b")]])
    assert timeseries_ids(table, tags=["host"], residual="rest").to_pylist() == [id_by_hand("m", 0, {"host": "a"})]


def test_only_named_tags_count_wherever_they_live():
    table = with_rest({}, [[("host", "a"), ("pod", "p")], [("value", "9"), ("metric_name", "n"), ("host", None)]])
    ids = timeseries_ids(table, tags=["host", "value", "metric_name", "rest"], residual="rest").to_pylist()
    assert ids == [id_by_hand("m", 0, {"host": "a"}), id_by_hand("m", 0, {})]


def test_entries_of_a_map_have_no_order_and_the_last_of_a_name_counts():
    table = with_rest({}, [[("a", "1"), ("b", "2")], [("b", "2"), ("a", "0"), ("a", "1")]])
    first, second = timeseries_ids(table, tags=["a", "b"], residual="rest").to_pylist()
    assert first == second == id_by_hand("m", 0, {"a": "1", "b": "2"})


def test_a_residual_column_that_is_missing_holds_no_tags():
    table = one_row("m", 0, {"a": "1"})
    assert timeseries_ids(table, tags=["a"], residual="rest") == timeseries_ids(table, tags=["a"])
    assert residual_tags(table, "rest") == ()


def test_residual_tags_are_those_of_the_rows():
    table = with_rest({}, [[("x", "1")], [("b", "2"), ("a", None)], None, [("a", "3")], [("y", "4")]])
    assert residual_tags(table, "rest") == ("a", "b", "x", "y")
    assert residual_tags(table.slice(1, 3), "rest") == ("a", "b")
    assert residual_tags(table.slice(0, 0), "rest") == ()


def test_a_residual_column_of_another_type_is_refused():
    table = pa.table({"metric_name": ["m"], "rest": [["a"]]})
    with pytest.raises(InvalidInput, match="'rest' is list<.*; make it a map from text to text"):
        timeseries_ids(table, tags=["a"], residual="rest")


def test_a_table_without_a_tenant_key_has_one_partition():
    ids = partition_ids(pa.table({"a": ["x", "y"]}), [])
    assert ids.dtype == np.int64
    assert ids.tolist() == [0, 0]


def test_the_columns_of_a_tenant_key_have_an_order():
    table = pa.table({"a": ["x"], "b": ["y"]})
    assert partition_ids(table, ["a", "b"]).tolist() != partition_ids(table, ["b", "a"]).tolist()


def test_partition_ids_never_change():
    table = pa.table({"tenant": ["acme", None, "widgets"]})
    expected = [4191484303639051620, 2202906307356721367, 3152666079303565524]
    assert partition_ids(table, ["tenant"]).tolist() == expected
