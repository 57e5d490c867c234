"""Sidecars from the command line: built, looked at, checked and asked."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

DATA = Path(__file__).parents[1] / "data"


@pytest.fixture
def parquet(here):
    rows = pa.table({"host": ["a", "a", "b", None], "value": [1, 2, 3, 4]})
    pq.write_table(rows, here / "data.parquet", row_group_size=2)
    return "data.parquet"


def test_a_sidecar_is_built_beside_its_file_and_is_found_to_be_right(call, parquet, here):
    assert call("pm", "build", parquet).out.startswith("wrote _data.pm, ")
    answer = call("pm", "check", "_data.pm", "--parquet", parquet)
    assert (answer.code, answer.out) == (0, "_data.pm: nothing is wrong with it\n")
    assert (here / "_data.pm").is_file()


@pytest.mark.parametrize("path", sorted((DATA / "golden/parquet").glob("*.parquet")), ids=lambda path: path.stem)
def test_without_extensions_it_is_what_questdb_writes(call, here, path):
    assert call("pm", "build", str(path), "-o", "out.pm", "--no-extensions").code == 0
    assert (here / "out.pm").read_bytes() == path.with_suffix(".pm").read_bytes()


def test_inspect_shows_columns_to_people_and_every_field_to_programs(call, parquet):
    call("pm", "build", parquet)
    shown = call("pm", "inspect", "_data.pm").out
    assert "BYTE_ARRAY" in shown
    assert "row groups                   2" in shown
    found = call("pm", "inspect", "_data.pm", "--json").json
    assert [column["name"] for column in found["columns"]] == ["host", "value"]
    assert len(found["snapshots"][0]["row_groups"]) == 2


def test_prune_names_the_row_groups_that_can_match(call, parquet):
    call("pm", "build", parquet)
    assert call("pm", "prune", "_data.pm", "--where", "host = 'a' and value < 2", "--json").json["kept"] == [0]
    assert call("pm", "prune", "_data.pm", "--where", "value > 9").out.endswith("can match: none\n")
    assert call("pm", "prune", "_data.pm", "--where", "host is null").out.endswith("can match: 1\n")


def test_a_damaged_sidecar_is_refused_with_the_field(call, parquet, here):
    call("pm", "build", parquet)
    damaged = bytearray((here / "_data.pm").read_bytes())
    damaged[100] ^= 1
    (here / "_data.pm").write_bytes(damaged)
    answer = call("pm", "check", "_data.pm")
    assert answer.code == 6
    assert "CHECKSUM at byte" in answer.err
    assert call("pm", "prune", "_data.pm", "--where", "value > 9").code == 6


def test_another_file_than_the_described_one_is_found_out(call, parquet, here):
    call("pm", "build", parquet)
    pq.write_table(pa.table({"host": ["z"], "value": [9]}), here / "other.parquet")
    answer = call("pm", "check", "_data.pm", "--parquet", "other.parquet")
    assert answer.code == 6
    assert "describes a Parquet file of" in answer.err


@pytest.mark.parametrize(
    ("arguments", "code", "message"),
    [
        (("build", "nothing.parquet"), 3, "there is no file nothing.parquet"),
        (("inspect", "."), 5, ". is not a file"),
        (("check", "nothing.pm"), 3, "there is no file"),
        (("prune", "_data.pm", "--where", "lower(host) = 'a'"), 2, "metadata cannot answer this"),
        (("build", str(DATA / "parquet-testing/PARQUET-1481.parquet"), "-o", "x.pm"), 6, "PARQUET-1481"),
    ],
)
def test_bad_input_is_refused_by_name(call, parquet, here, arguments, code, message):
    call("pm", "build", parquet)
    answer = call("pm", *arguments)
    assert answer.code == code
    assert message in answer.err
    assert not (here / "x.pm").exists()


@pytest.mark.parametrize("kind", [pa.float32(), pa.float64()], ids=str)
@pytest.mark.parametrize("test", ["= 0.6147593170946526", "in (0.6147593170946526)", "in (0.5, 0.6147593170946526)"])
@pytest.mark.parametrize("options", [[], ["--no-extensions"]], ids=["ours", "QuestDB's"])
def test_prune_reads_a_number_as_a_value_of_the_column(call, here, kind, test, options):
    rows = pa.table({"db": pa.array([0.25, 0.6147593170946526], kind)})
    pq.write_table(rows, here / "data.parquet", row_group_size=1)
    call("pm", "build", "data.parquet", *options)
    assert 1 in call("pm", "prune", "_data.pm", "--where", f"db {test}", "--json").json["kept"]
    assert call("pm", "prune", "_data.pm", "--where", "db = 0.3", "--json").json["kept"] == []


@pytest.mark.parametrize("options", [[], ["--no-extensions"]], ids=["ours", "QuestDB's"])
def test_bloom_filters_may_stay_in_the_parquet_file(call, here, options):
    rows = pa.table({"n": [1, 9, 2, 8]})
    pq.write_table(rows, here / "data.parquet", row_group_size=2, bloom_filter_options={"n": {"ndv": 10}})
    call("pm", "build", "data.parquet", "--external-blooms", *options)
    found = call("pm", "inspect", "_data.pm", "--json").json
    assert found["features"][:2] == ["BLOOM_FILTERS", "BLOOM_FILTERS_EXTERNAL"]
    assert call("pm", "check", "_data.pm", "--parquet", "data.parquet").code == 0
    asked = ("pm", "prune", "_data.pm", "--where", "n = 8", "--json")
    assert call(*asked).json["kept"] == [0, 1]
    with_file = call(*asked, "--parquet", "data.parquet").json
    assert with_file["kept"] == [1]
    assert {step["step"]: step["kept"] for step in with_file["steps"]}["bloom filters"] == 1


@pytest.mark.parametrize(
    "path", sorted((DATA / "golden/questdb-tables").glob("*/*/_pm")), ids=lambda path: path.parts[-3]
)
def test_sidecars_of_a_running_questdb_are_right(call, path):
    parquet = path.with_name("data.parquet")
    options = ["--parquet", str(parquet)] if parquet.exists() else []
    assert call("pm", "check", str(path), *options).code == 0


@pytest.mark.parametrize(
    ("where", "kept"),
    [
        ("ts < '2024-01-01 10:00:00+00'", [0]),
        ("ts = '2024-01-01 20:00:00'", [1]),
        ("u = '00000000-0000-0000-0000-000000000000'", []),
        ("sy = 's55'", []),
        ("i = 14", [0]),
    ],
)
def test_prune_by_a_sidecar_of_a_running_questdb(call, where, kept):
    path = DATA / "golden/questdb-tables/blooms-0/2024-01-01.1/_pm"
    assert call("pm", "prune", str(path), "--where", where, "--json").json["kept"] == kept
