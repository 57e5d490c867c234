"""Which columns and files a query names; where it can mean more, all."""

from __future__ import annotations

from pathlib import Path

import pytest

from windrow.questions.naming import Naming

COLUMNS = ["metric", "ts", "value", "n", "f", "d"]


def cases():
    lines = [line for line in Path(__file__).with_name("naming.txt").read_text().splitlines() if line[:1] != "#"]
    return list(zip(lines[0::2], lines[1::2], strict=True))


@pytest.mark.parametrize(("query", "columns"), cases(), ids=lambda text: text.strip()[:60])
def test_a_query_can_mean(query, columns):
    naming = Naming.of(query)
    found = [name for name in COLUMNS if naming.refers_to(name)]
    assert (" ".join(found) or "(none)") == (" ".join(COLUMNS) if columns.strip() == "*" else columns.strip())


def test_paths_and_addresses_of_parquet_files_are_found():
    query = "select * from 'raw/*.parquet' a join 's3://b/c.parquet' b using (x) where a.y in (select z from t)"
    assert Naming.of(query).files == ("raw/*.parquet", "s3://b/c.parquet")
    assert Naming.of("selekt 'x.parquet'").files == ()


def test_of_a_query_that_is_nested_too_deep_nothing_is_known():
    assert Naming.of("select " + "(" * 3000 + "1" + ")" * 3000 + " from metrics").words is None
