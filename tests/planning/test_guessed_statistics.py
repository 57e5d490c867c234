"""Guesses of distinct values, before anything was learnt, from dictionaries, bounds and row counts."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from windrow.planning.data_files import DataFile
from windrow.planning.guessed_statistics import guessed_columns
from windrow.planning.listed_files import ListedFiles
from windrow.planning.scan_context import ScanContext
from windrow.storage import LocalStore

ROWS = 4_000
NUMBERS = np.arange(ROWS)


def guesses(folder, table, **options):
    pq.write_table(table, folder / "file.parquet", row_group_size=1_000, **options)
    store = LocalStore(str(folder))
    file = DataFile(store, "file.parquet", store.head("file.parquet").identity)
    return guessed_columns(ScanContext("lake", store), [ListedFiles([file])], table.column_names, table.schema)


@pytest.mark.parametrize(
    ("values", "most", "least"),
    [
        (NUMBERS % 7 * 10**9, 7.1, 7),
        ((NUMBERS % 50).astype(str), 60, 50),
        (NUMBERS * 10**9, ROWS, ROWS / 2),
        (NUMBERS.astype(str), ROWS, ROWS / 2),
    ],
    ids=["few numbers", "few texts", "a key", "a key of text"],
)
def test_the_entries_of_dictionaries_stand_for_distinct_values(tmp_path, values, most, least):
    guess = guesses(tmp_path, pa.table({"x": values}))["x"]
    assert least <= guess.distinct.estimate <= most
    assert guess.distinct.is_vague
    assert guess.null_count == 0


def test_whole_numbers_without_a_dictionary_fill_their_range(tmp_path):
    guess = guesses(tmp_path, pa.table({"x": NUMBERS % 300}), use_dictionary=False)["x"]
    assert (guess.distinct.estimate, guess.minimum, guess.maximum) == (300, 0, 299)


def test_a_range_is_no_more_than_the_rows(tmp_path):
    assert guesses(tmp_path, pa.table({"x": NUMBERS * 1000}), use_dictionary=False)["x"].distinct.estimate == ROWS


def test_without_statistics_and_dictionaries_nothing_is_guessed(tmp_path):
    found = guesses(tmp_path, pa.table({"x": NUMBERS * 1.5}), use_dictionary=False, write_statistics=False)
    assert found == {} or found["x"].distinct is None


def test_nested_and_null_columns_are_no_matter(tmp_path):
    table = pa.table({"list": [[1, 2]] * ROWS, "none": pa.nulls(ROWS, pa.int64()), "x": NUMBERS % 3})
    found = guesses(tmp_path, table)
    assert found["x"].distinct.estimate == 3
    assert found["none"].null_count == ROWS
