"""Sketches in a Puffin file: read by a parser of its own after the specification, and by DataSketches."""

from __future__ import annotations

import json
import struct

import pyarrow as pa
import pytest
import zstandard

import windrow

datasketches = pytest.importorskip("datasketches")


def parsed(data: bytes):
    """The blobs and the properties of a Puffin file, each blob with what the footer says of it."""
    assert data[:4] == data[-4:] == b"PFA1"
    length, flags = struct.unpack("<ii", data[-12:-4])
    assert flags == 0
    assert data[-16 - length : -12 - length] == b"PFA1"
    footer = json.loads(data[-12 - length : -12])
    end, blobs = 4, []
    for blob in footer["blobs"]:
        assert {"type", "fields", "snapshot-id", "sequence-number", "offset", "length"} <= blob.keys()
        assert blob["offset"] == end
        end += blob["length"]
        stored = data[blob["offset"] : end]
        assert zstandard.frame_content_size(stored) > 0
        blobs.append((blob, zstandard.decompress(stored)))
    assert end == len(data) - 16 - length
    return blobs, footer["properties"]


@pytest.fixture
def filled(tmp_path):
    lake = windrow.connect(tmp_path / "lake", statistics=0)
    table = lake.create_table("events", sort="host|timestamp/V2", window="15m", mirror=False)
    for part in range(2):
        numbers = range(3000 * part, 3000 * part + 4000)
        table.ingest(
            pa.table(
                {
                    "host": [f"host-{number % 40}" for number in numbers],
                    "timestamp": pa.array([number * 1000 for number in numbers], pa.timestamp("us")),
                    "value": [number * 0.5 for number in numbers],
                }
            )
        )
    return lake.table("events")


def test_a_table_has_a_blob_for_each_column(filled):
    filled.upkeep.analyze()
    blobs, properties = parsed(filled.inspect.puffin())
    assert properties["created-by"].startswith("windrow version ")
    fields = {row.name: row.field_id for row in filled.inspect.columns()}
    distinct = {row.column: row.distinct for row in filled.inspect.statistics()}
    assert [blob["properties"]["column"] for blob, _ in blobs] == list(fields)
    for blob, data in blobs:
        name = blob["properties"]["column"]
        assert (blob["type"], blob["fields"]) == ("windrow-datasketches-hll-v1", [fields[name]])
        assert blob["snapshot-id"] == blob["sequence-number"] == filled.version()
        assert int(blob["properties"]["ndv"]) == distinct[name]
        assert blob["properties"]["rows"] == blob["properties"]["known-rows"] == "8000"
        theirs = datasketches.hll_sketch.deserialize(data)
        assert theirs.get_estimate() == pytest.approx(distinct[name], rel=0.002)
    expected = datasketches.hll_sketch(12)
    for number in range(7000):
        expected.update(number * 0.5)
    [values] = [data for blob, data in blobs if blob["properties"]["column"] == "value"]
    union = datasketches.hll_union(12)
    union.update(expected)
    union.update(datasketches.hll_sketch.deserialize(values))
    assert union.get_estimate() == pytest.approx(expected.get_estimate(), rel=0.03)


def test_columns_of_which_nothing_is_known_have_no_blob(filled):
    assert parsed(filled.inspect.puffin())[0] == []
    filled.upkeep.analyze(["host"])
    [(blob, data)] = parsed(filled.inspect.puffin())[0]
    assert (blob["properties"]["column"], blob["properties"]["ndv"]) == ("host", "40")
    assert datasketches.hll_sketch.deserialize(data).get_estimate() == pytest.approx(40, abs=0.01)
