"""Columns become what the table has, or are refused with both types."""

from __future__ import annotations

import pyarrow as pa
import pytest

from windrow.errors import InvalidInput
from windrow.ingest.coerce import coerced


def test_rows_get_the_types_of_the_table():
    dictionary = pa.chunked_array([pa.array(["x", None]).dictionary_encode(), pa.array(["y"]).dictionary_encode()])
    rows = pa.table({"host": dictionary, "value": pa.chunked_array([[1, 2, 3]], pa.int32())})
    made = coerced(rows, {"host": pa.string(), "value": pa.float64()})
    coded = pa.dictionary(pa.int32(), pa.string())
    assert made.schema == pa.schema([("host", coded), ("value", pa.float64())]), "codes of text stay codes"
    assert made.to_pydict() == {"host": ["x", None, "y"], "value": [1.0, 2.0, 3.0]}


def test_a_value_that_does_not_fit_is_refused_with_its_column():
    with pytest.raises(InvalidInput, match="column 't' cannot become"):
        coerced(pa.table({"t": pa.array([2**62], pa.timestamp("s"))}), {"t": pa.timestamp("ns")})
