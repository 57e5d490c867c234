"""The registry of invariants: for every id, evidence under which it holds and evidence that violates it."""

from dataclasses import replace

import pyarrow as pa
import pytest

from windrow.errors import InvalidInput, InvariantViolation, Outcome
from windrow.model.invariants import INVARIANTS, Invariant, require
from windrow.model.scope import CompactionScope
from windrow.model.sort_schema import SortSchema
from windrow.model.timeseries import timeseries_ids
from windrow.model.window import Window

ALL_IDS = [f"DM-{n}" for n in range(1, 6)] + [f"SS-{n}" for n in range(1, 6)] + [f"TW-{n}" for n in range(1, 4)]
ALL_IDS += [f"CS-{n}" for n in range(1, 4)] + [f"CW-{n}" for n in range(1, 4)] + [f"MC-{n}" for n in range(1, 5)]

SECOND = 10**6
DAY = Window(0, 86_400)
SCOPE = CompactionScope("table", "default", 0, 0, "host|timestamp/V2", 900)
OTHER_DURATION, OTHER_SOURCE = replace(SCOPE, window_duration=300), replace(SCOPE, source_id="other")
WINDOW, NEXT, OVERFLOW = Window(900, 900), Window(1800, 900), Window.overflow_of(900)

SCHEMA = SortSchema.parse("host|timestamp/V2")
SORTED = pa.table({"host": ["a", "a", "a", "b", None], "timestamp": [None, 9, 3, 5, 7]})
UNSORTED = pa.table({"host": ["a", "b", "b"], "timestamp": [1, 2, 3]})
HOST_NULL_FIRST = pa.table({"host": [None, "a"], "timestamp": [1, 1]})
TIME_NULL_LAST = pa.table({"host": ["a", "a"], "timestamp": [1, None]})

POINTS = pa.table({"metric_name": ["cpu", "cpu", "mem"], "host": ["a", "b", None]})
SERIES = timeseries_ids(POINTS, tags=["host"])
WITH_IDS = POINTS.append_column("timeseries_id", SERIES)
WITH_WRONG_IDS = POINTS.append_column("timeseries_id", pa.array([*SERIES.to_pylist()[:2], 7]))
WITH_NULL_IDS = POINTS.append_column("timeseries_id", pa.array([*SERIES.to_pylist()[:2], None]))


def stated(metastore="a|gone|t-&m/V2", key_value="a|gone|t-&m/V2", columns=(("a", False, False), ("t", True, True))):
    return {"metastore": metastore, "key_value": key_value, "sorting_columns": columns, "file_columns": ("t", "a", "m")}


def lacking(nulls):
    return {"schema": SCHEMA, "file_columns": ["timestamp"], "null_counts": nulls, "row_count": 3}


def within(window, low, high, nulls=0):
    return {"window": window, "time_min_us": low, "time_max_us": high, "null_timestamps": nulls}


def columns(inputs, output):
    return {"schemas_in": [pa.schema(each) for each in inputs], "schema_out": pa.schema(output)}


TEXT, ENCODED, INT = pa.string(), pa.dictionary(pa.int32(), pa.large_string()), pa.int64()

HOLDS = [
    ("DM-1", {"table": POINTS, "required": ["metric_name"]}),
    ("DM-1", {"table": POINTS, "required": []}),
    ("DM-2", {"points_accepted": 3, "points_written": 3}),
    ("DM-3", {"points_accepted": 3, "points_written": 3}),
    ("DM-4", {"table": WITH_IDS, "tags": ["host"]}),
    ("DM-4", {"table": WITH_IDS.slice(0, 0), "tags": ["host"]}),
    ("DM-5", {"ids_in": pa.chunked_array([[3, 1], [3]]), "ids_out": pa.array([1, 3, 3])}),
    ("SS-1", {"table": SORTED, "schema": SCHEMA}),
    ("SS-1", {"table": SORTED.slice(0, 0), "schema": SCHEMA}),
    ("SS-2", {"table": SORTED, "schema": SCHEMA}),
    ("SS-2", {"table": UNSORTED, "schema": SCHEMA}),
    ("SS-3", lacking({"host": 3, "timestamp": 0})),
    ("SS-4", {"schema_before": SCHEMA, "schema_after": "host|timestamp/V2"}),
    ("SS-5", stated()),
    ("TW-1", within(WINDOW, 900 * SECOND, 1800 * SECOND - 1)),
    ("TW-1", within(WINDOW, None, None)),
    ("TW-1", within(OVERFLOW, None, None, 5)),
    ("TW-1", within(None, 0, 10**15, 5)),
    ("TW-2", {"duration": 900}),
    ("TW-3", {"windows_in": [WINDOW, WINDOW], "windows_out": [WINDOW]}),
    ("TW-3", {"windows_in": [OVERFLOW, OVERFLOW], "windows_out": [OVERFLOW, OVERFLOW]}),
    ("TW-3", {"windows_in": [WINDOW], "windows_out": []}),
    ("CW-1", {"start": -86_400, "duration": 86_400}),
    ("CW-2", {"cold": DAY, "windows": [WINDOW, NEXT, Window(0, 300), DAY], "scopes": [SCOPE, OTHER_DURATION]}),
    ("CW-3", {"cold": DAY, "closed_before": 86_400}),
    ("CS-1", {"scopes": [("table", 900), ("table", 900)]}),
    ("CS-2", {"windows": [WINDOW, WINDOW]}),
    ("CS-2", {"windows": [OVERFLOW, OVERFLOW]}),
    ("CS-3", {"window": WINDOW, "compaction_start_time": 900}),
    ("CS-3", {"window": OVERFLOW, "compaction_start_time": 900}),
    ("MC-1", {"rows_in": 7, "rows_out": 7}),
    ("MC-2", {"content_hash_in": 7, "content_hash_out": 7}),
    ("MC-3", {"table": SORTED, "schema": SCHEMA}),
    ("MC-4", columns([{"a": TEXT}, {"a": ENCODED, "b": INT}], {"b": INT, "a": pa.string_view()})),
    ("MC-4", columns([{"a": pa.int32()}, {"a": INT}], {"a": INT})),
    ("MC-4", columns([{"a": pa.binary()}, {"a": pa.large_binary()}], {"a": pa.binary_view()})),
]

VIOLATED = [
    ("DM-1", {"table": POINTS, "required": ["metric_name", "host"]}, "'host' is null in 1 of 3 rows"),
    ("DM-1", {"table": POINTS, "required": ["value"]}, "'value' is missing"),
    ("DM-2", {"points_accepted": 3, "points_written": 2}, "1 of 3 accepted points were not written"),
    ("DM-3", {"points_accepted": 3, "points_written": 5}, "2 points were written beyond the 3"),
    ("DM-4", {"table": WITH_WRONG_IDS, "tags": ["host"]}, "row 2 has the timeseries_id 7"),
    ("DM-4", {"table": WITH_NULL_IDS, "tags": ["host"]}, "row 2"),
    ("DM-4", {"table": WITH_IDS, "tags": []}, "row 0"),
    ("DM-4", {"table": POINTS, "tags": ["host"]}, "'timeseries_id' is missing"),
    ("DM-5", {"ids_in": [1, 3, 3], "ids_out": [1, 1, 3]}, "series 1 has 1 rows before and 2 after"),
    ("DM-5", {"ids_in": [1, 3], "ids_out": [1, 4]}, "series 3 has 1 rows before and 0 after"),
    ("SS-1", {"table": UNSORTED, "schema": SCHEMA}, "row 2 must come before .* because of column 'timestamp'"),
    ("SS-1", {"table": UNSORTED, "schema": SortSchema.parse("host-/V2")}, "row 1 .* because of column 'host'"),
    ("SS-2", {"table": HOST_NULL_FIRST, "schema": SCHEMA}, "nulls of column 'host' are not last at row 1"),
    ("SS-2", {"table": TIME_NULL_LAST, "schema": SCHEMA}, "nulls of column 'timestamp' are not first at row 1"),
    ("SS-3", lacking({"host": 2, "timestamp": 0}), "lacks column 'host', but 2 nulls are stated for 3 rows"),
    ("SS-3", lacking({}), "lacks column 'host', but 0 nulls"),
    ("SS-4", {"schema_before": SCHEMA, "schema_after": "host/V2"}, "written as host.timestamp/V2 and would become"),
    ("SS-5", stated(key_value="a|gone|t&m/V2"), "the metastore says .* key-value metadata"),
    ("SS-5", stated(columns=(("a", False, False), ("t", False, True))), "sorting columns are"),
    ("SS-5", stated(columns=(("a", False, False), ("t", True, False))), "sorting columns are"),
    ("SS-5", stated(columns=(("t", True, True), ("a", False, False))), "sorting columns are"),
    ("SS-5", stated(columns=(("a", False, False),)), "sorting columns are"),
    ("TW-1", within(WINDOW, 900 * SECOND - 1, 901 * SECOND), "do not all lie in window 1970-01-01T00:15:00Z/PT15M"),
    ("TW-1", within(WINDOW, 900 * SECOND, 1800 * SECOND), "do not all lie"),
    ("TW-1", within(WINDOW, 900 * SECOND, 901 * SECOND, 1), "1 points without a timestamp"),
    ("TW-1", within(OVERFLOW, 0, 0, 1), "points with a timestamp lie in the overflow window"),
    ("TW-2", {"duration": 700}, "700 does not divide an hour"),
    ("TW-3", {"windows_in": [WINDOW, NEXT], "windows_out": [WINDOW]}, "a merge of .*, .* gives"),
    ("TW-3", {"windows_in": [WINDOW], "windows_out": [WINDOW, NEXT]}, "a merge of"),
    ("TW-3", {"windows_in": [Window(0, 900)], "windows_out": [OVERFLOW]}, "gives overflow/PT15M"),
    ("CW-1", {"start": 3600, "duration": 86_400}, "starts at 3600"),
    ("CW-1", {"start": 0, "duration": 5400}, "5400 is not a whole number of hours"),
    ("CW-2", {"cold": WINDOW, "windows": [WINDOW], "scopes": [SCOPE]}, "no cold window"),
    ("CW-2", {"cold": OVERFLOW, "windows": [OVERFLOW], "scopes": [SCOPE]}, "no cold window"),
    ("CW-2", {"cold": DAY, "windows": [WINDOW, Window(86_400, 900)], "scopes": [SCOPE]}, "1970-01-02.* be gathered"),
    ("CW-2", {"cold": DAY, "windows": [Window(0, 5 * 3600)], "scopes": [SCOPE]}, "PT300M would be gathered"),
    ("CW-2", {"cold": DAY, "windows": [OVERFLOW], "scopes": [SCOPE]}, "overflow/PT15M would be gathered"),
    ("CW-2", {"cold": DAY, "windows": [None], "scopes": [SCOPE]}, "no window would be gathered"),
    ("CW-2", {"cold": DAY, "windows": [WINDOW], "scopes": [SCOPE, OTHER_SOURCE]}, "splits of 2 scopes"),
    ("CW-3", {"cold": DAY, "closed_before": 86_399}, "late points are accepted from 86399 on"),
    ("CS-1", {"scopes": [("table", 900), ("table", 300)]}, "splits of 2 scopes"),
    ("CS-2", {"windows": [WINDOW, NEXT]}, "T00:15:00Z/PT15M, .*T00:30:00Z/PT15M"),
    ("CS-2", {"windows": [Window(0, 900), OVERFLOW]}, "overflow/PT15M"),
    ("CS-2", {"windows": [None, None]}, "no window"),
    ("CS-3", {"window": WINDOW, "compaction_start_time": 901}, "starts at 900, before the compaction start time 901"),
    ("CS-3", {"window": None, "compaction_start_time": 0}, "a split without a window"),
    ("MC-1", {"rows_in": 7, "rows_out": 6}, "7 rows went in, 6 came out"),
    ("MC-2", {"content_hash_in": 7, "content_hash_out": 8}, "hash to 7, those that came out to 8"),
    ("MC-3", {"table": UNSORTED, "schema": SCHEMA}, "row 2 must come before"),
    ("MC-4", columns([{"a": TEXT}, {"a": INT}], {"a": TEXT}), "'a' is text in one input and int64 in another"),
    ("MC-4", columns([{"a": TEXT}, {"b": INT}], {"a": TEXT}), "'b' is int64 in the inputs, absent after"),
    ("MC-4", columns([{"a": TEXT}], {"a": TEXT, "b": INT}), "'b' is absent in the inputs, int64 after"),
    ("MC-4", columns([{"a": pa.int32()}, {"a": INT}], {"a": pa.int32()}), "'a' is int64 in the inputs, int32 after"),
    ("MC-4", columns([{"a": TEXT}], {"a": INT}), "'a' is text in the inputs, int64 after"),
]


def test_the_registry_holds_every_invariant_in_order():
    assert list(INVARIANTS) == ALL_IDS
    assert all(isinstance(each, Invariant) and each.id == key for key, each in INVARIANTS.items())


def test_sentences_are_sentences_and_differ():
    sentences = [each.sentence for each in INVARIANTS.values()]
    assert all(sentence[0].isupper() and sentence.endswith(".") for sentence in sentences)
    assert len(set(sentences)) == len(sentences)


def test_every_invariant_is_seen_to_hold_and_to_fail():
    assert {case[0] for case in HOLDS} == {case[0] for case in VIOLATED} == set(ALL_IDS)


@pytest.mark.parametrize(("identifier", "evidence"), HOLDS, ids=[case[0] for case in HOLDS])
def test_holds(identifier, evidence):
    assert INVARIANTS[identifier].check(**evidence) is None
    require(identifier, **evidence)


@pytest.mark.parametrize(("identifier", "evidence", "found"), VIOLATED, ids=[case[0] for case in VIOLATED])
def test_is_violated(identifier, evidence, found):
    with pytest.raises(InvariantViolation, match=found) as caught:
        require(identifier, **evidence)
    assert caught.value.invariant == identifier
    assert caught.value.evidence == INVARIANTS[identifier].check(**evidence)
    assert caught.value.outcome is Outcome.NOT_COMMITTED


def test_an_unknown_id_is_refused():
    with pytest.raises(InvalidInput, match="'DM-9' is no invariant; use one of DM-1, DM-2"):
        require("DM-9")


def test_the_registry_cannot_be_changed():
    with pytest.raises(TypeError):
        INVARIANTS["DM-1"] = INVARIANTS["DM-2"]
