"""OTLP files in a table: attributes become columns or stay in the residual column; a query finds them either way."""

from __future__ import annotations

import gzip
import json
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from windrow.errors import Damaged, InvalidInput
from windrow.ingest.attributes import RESIDUAL, AttributeRule
from windrow.ingest.files import FileFormat, find_files
from windrow.ingest.promotion import with_promoted_attributes
from windrow.ingest.steps import add_timeseries_id, tags_of
from windrow.merging.splits import merge_splits
from windrow.model.invariants import require
from windrow.model.settings import TableSettings
from windrow.splits.writer import SplitName

DATA = Path(__file__).parents[1] / "data" / "otlp"
SORT = "metric_name|service|timeseries_id|timestamp/V2"
START = 1_704_067_200


def metrics_of(*points):
    """Return a request with a gauge of one point for each set of attributes."""
    data = [
        {
            "timeUnixNano": str((START + number) * 10**9),
            "asDouble": float(number),
            "attributes": [{"key": key, "value": {"stringValue": text}} for key, text in each.items()],
        }
        for number, each in enumerate(points)
    ]
    return {"resourceMetrics": [{"scopeMetrics": [{"metrics": [{"name": "m", "gauge": {"dataPoints": data}}]}]}]}


def write(path, *points):
    path.write_text(json.dumps(metrics_of(*points)), encoding="utf-8")
    return path


@pytest.fixture
def metrics(lake):
    return lake.create_table("metrics", sort=SORT)


def columns(table):
    return {column.name for column in table.inspect.columns()}


class TestFiles:
    @pytest.mark.parametrize(
        ("name", "stored"),
        [
            ("metrics.json", "metrics.otlp.json"),
            ("metrics.json", "metrics.json"),
            ("metrics.binpb", "metrics.pb"),
            ("stream.jsonl", "stream.jsonl"),
            ("stream.delimited.binpb", "stream.otlp"),
        ],
    )
    def test_json_and_protobuf_are_taken_by_name_or_by_how_they_start(self, lake, metrics, tmp_path, name, stored):
        (tmp_path / stored).write_bytes((DATA / name).read_bytes())
        result = metrics.ingest(tmp_path / stored)
        expected = json.loads((DATA / "metrics.rows.json").read_text(encoding="utf-8"))
        assert result.rows == len(expected) + ("stream" in name)
        assert result.null_timestamps == 1
        assert {"service.name", "host.name", RESIDUAL} <= columns(metrics)

    def test_packed_files_are_unpacked(self, metrics, tmp_path):
        (tmp_path / "m.otlp.json.gz").write_bytes(gzip.compress((DATA / "metrics.json").read_bytes()))
        (tmp_path / "m.json.gz").write_bytes(gzip.compress((DATA / "metrics.json").read_bytes()))
        assert metrics.ingest(str(tmp_path / "*.gz")).rows == 40

    def test_a_damaged_file_is_refused_by_name_and_the_table_stays_as_it_was(self, metrics, tmp_path):
        (tmp_path / "m.otlp.json").write_bytes((DATA / "metrics.json").read_bytes()[:-100])
        with pytest.raises(Damaged, match=r"m\.otlp\.json: expected ExportMetricsServiceRequests"):
            metrics.ingest(tmp_path / "m.otlp.json")
        assert metrics.version() == 0

    def test_a_share_that_is_none_is_refused(self, metrics):
        with pytest.raises(InvalidInput, match="rare_attributes=2"):
            metrics.ingest(DATA / "metrics.binpb", rare_attributes=2)

    @pytest.mark.spark
    @pytest.mark.xdist_group("spark")
    def test_sparks_tasks_read_them_by_themselves(self, lake, metrics, tmp_path, spark):
        for number in range(4):
            write(tmp_path / f"{number}.otlp.json", *({"host": f"h{number}"} for _ in range(10)))
        assert metrics.ingest(str(tmp_path / "*.json"), spark=spark).rows == 40
        assert lake.sql("select count(distinct host) as n from metrics").to_dict() == [{"n": 4}]


class TestPromotion:
    def test_the_share_is_of_all_rows_of_all_files(self, metrics, tmp_path):
        write(tmp_path / "a.json", *[{"common": "x", "odd": "1"}], *[{"common": "x"}] * 99)
        write(tmp_path / "b.json", *[{"common": "x"}] * 99, {"common": "x", "even": "2"})
        metrics.ingest([tmp_path / "a.json", tmp_path / "b.json"])
        assert {"common"} <= columns(metrics)
        assert not {"odd", "even"} & columns(metrics)

    def test_a_promoted_attribute_stays_promoted_though_it_becomes_rare(self, lake, metrics, tmp_path):
        metrics.ingest(write(tmp_path / "a.json", {"pod": "p1"}))
        metrics.ingest(write(tmp_path / "b.json", {"pod": "p2"}, *[{}] * 500))
        split = max(metrics.inspect.splits(), key=lambda split: split.rows)
        rows = pq.read_table(lake.context.store.path(split.key), partitioning=None)
        assert rows["pod"].drop_null().to_pylist() == ["p2"]
        assert rows[RESIDUAL].null_count == 501

    def test_what_a_table_is_sorted_or_partitioned_by_is_a_column_however_rare(self, lake, tmp_path):
        table = lake.create_table("tenants", sort=SORT, partition_by=["tenant"])
        points = [{"service": "a"}, {"tenant": "t"}, *[{}] * 500]
        table.ingest(write(tmp_path / "a.json", *points))
        assert {"service", "tenant"} <= columns(table)

    def test_a_failed_ingest_promotes_nothing(self, metrics, tmp_path):
        write(tmp_path / "a.json", {"pod": "p1"})
        with pytest.raises(InvalidInput, match="100%|late"):
            metrics.ingest(tmp_path / "a.json", drop_late=True)
        assert columns(metrics) == set()

    def test_of_many_files_some_are_looked_at_and_columns_of_the_table_are_known_without(self, tmp_path):
        for number in range(10):
            write(tmp_path / f"{number}.json", {"all": "x", "seldom" if number == 5 else "often": "y"})
        files = find_files([str(tmp_path)])
        rule = AttributeRule(always=frozenset({"seldom"}))
        promoted = with_promoted_attributes(files, rule, looked_at=files[0].size * 5)[0].promoted
        assert promoted == {"all", "often", "seldom"}
        assert {file.format for file in files} == {FileFormat.OTLP}

    def test_a_plan_names_the_columns_that_would_be_new(self, metrics, tmp_path):
        plan = metrics.ingest.plan(write(tmp_path / "a.json", {"pod": "p"}, *[{}] * 50))
        assert "pod" in plan.new_columns
        plan = metrics.ingest.plan(tmp_path / "a.json", rare_attributes=0.1)
        assert "pod" not in plan.new_columns


class TestQueries:
    def test_an_attribute_is_found_under_its_name_whether_promoted_early_late_or_never(self, lake, metrics, tmp_path):
        filler = [{}] * 300
        metrics.ingest(write(tmp_path / "a.json", {"late": "l1", "never": "n1", "early": "e1"}, *filler, {"early": "e2"}), rare_attributes=0.005)  # fmt: skip  # noqa: E501
        assert {"early"} <= columns(metrics)
        assert not {"late", "never"} & columns(metrics)
        metrics.ingest(write(tmp_path / "b.json", {"late": "l2"}))
        metrics.ingest(write(tmp_path / "c.json", {"early": "e3", "late": "l3", "never": "n2"}, *filler))
        assert {"early", "late"} <= columns(metrics)
        assert "never" not in columns(metrics)

        def found(name):
            return [row["v"] for row in lake.sql(f"select {name} as v from metrics where {name} is not null order by 1").to_dict()]  # fmt: skip  # noqa: E501

        assert found("early") == ["e1", "e2", "e3"]
        assert found("late") == ["l1", "l2", "l3"]
        assert found("never") == ["n1", "n2"]
        assert lake.sql("select count(*) as n from metrics where late = 'l1' or never = 'n2'").to_dict() == [{"n": 2}]

    def test_an_older_version_knows_the_attributes_it_had(self, lake, metrics, tmp_path):
        metrics.ingest(write(tmp_path / "a.json", *[{}] * 200))
        metrics.ingest(write(tmp_path / "b.json", {"rare": "x"}, *[{}] * 200))
        assert list(metrics.relation().attributes) == ["rare"]
        assert list(metrics.at(version=1).relation().attributes) == []

    def test_odd_names_are_found_too(self, lake, metrics, tmp_path):
        odd = ["k8s.pod/name", 'with "quotes"', "it's", "ünï", "select"]
        metrics.ingest(write(tmp_path / "a.json", dict.fromkeys(odd, "x"), *[{}] * 200))
        metrics.ingest(write(tmp_path / "b.json", dict.fromkeys(odd, "x")))
        (row,) = lake.sql("select * from metrics where value = 0 limit 1").to_dict()
        assert {name: row[name] for name in odd} == dict.fromkeys(odd, "x")

    def test_names_that_differ_by_case_alone_are_one_column_and_the_other_stays_in_the_map(
        self, lake, metrics, tmp_path
    ):
        metrics.ingest(write(tmp_path / "a.json", {"Host": "a", "host": "b"}))
        (row,) = lake.sql(f"select \"Host\" as up, {RESIDUAL}['host'] as low from metrics").to_dict()
        assert row == {"up": "a", "low": "b"}

    def test_a_column_of_numbers_is_not_mixed_with_an_attribute_of_its_name(self, lake, metrics, tmp_path):
        metrics.ingest(write(tmp_path / "a.json", {"load": "high"}, *[{}] * 200))
        metrics.ingest(pa.table({"metric_name": ["m"], "timestamp": pa.array([0], pa.timestamp("ns", "UTC")), "value": [1.0], "load": [0.5]}))  # fmt: skip  # noqa: E501
        assert lake.sql("select sum(load) as s from metrics").to_dict() == [{"s": 0.5}]
        rows = lake.sql(f"select count(*) as n from metrics where {RESIDUAL}['load'] = 'high'").to_dict()
        assert rows == [{"n": 1}]
        metrics.ingest(write(tmp_path / "b.json", {"load": "low"}))
        assert lake.sql("select sum(load) as s from metrics").to_dict() == [{"s": 0.5}], "it stays in the map"


TAG_SETS = st.lists(
    st.dictionaries(st.sampled_from(["service", "a", "b", "unit", "Ä"]), st.sampled_from(["", "x", "y\0"])), min_size=1
)


class TestSeries:
    @settings(max_examples=50)
    @given(TAG_SETS, st.floats(0, 1), st.floats(0, 1))
    def test_a_series_has_one_id_before_and_after_promotion(self, sets, one, other):
        from tests.ingest.otlp_rows import read_otlp

        request = [("m.json", json.dumps(metrics_of(*sets)).encode())]
        table = TableSettings.of(sort=SORT)
        tables = [add_timeseries_id(read_otlp(request, rare=rare), table) for rare in (one, other)]
        assert tables[0]["timeseries_id"] == tables[1]["timeseries_id"]
        for rows in tables:
            require("DM-4", table=rows, tags=tags_of(rows, table), residual=RESIDUAL)
        names = [tuple(sorted((k, v) for k, v in each.items() if k != "unit")) for each in sets]
        assert len(set(tables[0]["timeseries_id"].to_pylist())) == len(set(names))

    def test_ids_are_the_same_in_the_table_whenever_the_attribute_was_promoted(self, lake, metrics, tmp_path):
        metrics.ingest(write(tmp_path / "a.json", {"pod": "p1"}, *[{}] * 300))
        metrics.ingest(write(tmp_path / "b.json", {"pod": "p1"}))
        rows = lake.sql("select count(*) as n, count(distinct timeseries_id) as ids from metrics where pod = 'p1'")
        assert rows.to_dict() == [{"n": 2, "ids": 1}]

    def test_declared_tags_are_found_in_the_residual_column_too(self, tmp_path):
        rows = pa.table(
            {
                "metric_name": ["m"] * 3,
                "pod": ["p", None, None],
                RESIDUAL: pa.array([None, [("pod", "p")], [("pod", "q")]], pa.map_(pa.string(), pa.string())),
            }
        )
        first, second, third = add_timeseries_id(rows, TableSettings.of(sort=SORT, tags=["pod"]))["timeseries_id"]
        assert first == second != third

    def test_a_merge_of_splits_from_before_and_after_promotion_keeps_rows_and_ids(self, lake, metrics, tmp_path):
        metrics.ingest(write(tmp_path / "a.json", {"pod": "p1"}, *[{}] * 300))
        metrics.ingest(write(tmp_path / "b.json", {"pod": "p1"}, {"pod": "p2"}))
        store, record = lake.context.store, metrics.record()
        splits = [split for page in lake.context.metastore.splits(record.table_id, 2) for split in page]
        ids = {column.name: column.field_id for column in lake.context.metastore.columns(record.table_id)}
        (merged,) = merge_splits(
            store,
            splits,
            record.settings,
            lambda _: SplitName("metrics", "merged", "c", 0),
            field_ids=ids,
            verify="full",
        )
        rows = pq.read_table(store.path(merged.key), partitioning=None)
        pods = {row["timeseries_id"]: row["pod"] or dict(row[RESIDUAL] or []).get("pod") for row in rows.to_pylist()}
        assert (rows.num_rows, sorted(pods.values(), key=str)) == (303, [None, "p1", "p2"])
