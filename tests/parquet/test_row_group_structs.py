"""Row groups of a footer as bytes: put together again they are the footer."""

from __future__ import annotations

import io

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from tests.sidecar.whole_footers import restore_footer

from windrow.errors import InvalidInput
from windrow.parquet.file_writer import FileSchema, FileWriter, file_chunks
from windrow.parquet.footer import TAIL_SIZE, parse_footer, read_footer
from windrow.parquet.placement import VirtualSchema
from windrow.parquet.synthesis import assemble_footer
from windrow.sidecar import Sidecar
from windrow.sidecar.build import build_sidecar


def written(groups: int) -> bytes:
    sink = io.BytesIO()
    table = pa.table({"n": list(range(4 * groups)), "s": [f"{number}" for number in range(4 * groups)]})
    pq.write_table(table, sink, row_group_size=4, write_page_index=True)
    return sink.getvalue()


@pytest.mark.parametrize("groups", [0, 1, 2, 14, 15, 300])
def test_all_row_groups_give_the_same_footer(groups: int) -> None:
    footer = read_footer(written(groups), name="file")
    assert len(footer.row_group_structs) == len(footer.row_group_rows)
    count, rows = len(footer.row_group_structs), footer.num_rows
    again = assemble_footer(VirtualSchema.of(footer), count, rows, b"".join(footer.row_group_structs))
    assert again[:-TAIL_SIZE] == footer.metadata


def test_some_row_groups_are_read_alone() -> None:
    data = written(20)
    footer = read_footer(data, name="file")
    part = assemble_footer(
        VirtualSchema.of(footer), 2, 8, b"".join(footer.row_group_structs[group] for group in (17, 3))
    )
    rows = pq.read_table(pa.BufferReader(data[: len(data) - len(footer.metadata) - TAIL_SIZE] + part))
    assert rows["n"].to_pylist() == [*range(68, 72), *range(12, 16)]


def test_a_restored_footer_has_no_row_group_bytes() -> None:
    data = written(2)
    sidecar = Sidecar.of(build_sidecar(lambda start, size: data[start : start + size], len(data), name="file"))
    restored = restore_footer(sidecar)
    assert restored is not None
    with pytest.raises(InvalidInput, match="parse the file's"):
        _ = restored.row_group_structs


def test_a_writer_goes_on_behind_an_older_file() -> None:
    old = written(3)
    footer = read_footer(old, name="old")
    table = pa.table({"n": [7, 8], "s": ["x", "y"]})
    sink, more = io.BytesIO(), io.BytesIO()
    pq.write_table(table, more, write_page_index=True)
    writer = FileWriter(sink, FileSchema(table.schema, ""), (), start=len(old))
    writer.append(2, file_chunks(memoryview(more.getvalue()), name="more")[0], number=3)
    (struct,) = writer.finish_row_groups()
    groups = [*footer.row_group_structs, struct]
    tail = assemble_footer(VirtualSchema.of(footer), 4, 14, b"".join(groups))
    grown = old + sink.getvalue() + tail
    assert pq.read_table(pa.BufferReader(grown))["n"].to_pylist() == [*range(12), 7, 8]
    added = parse_footer(tail[:-TAIL_SIZE], name="grown").chunks[3]
    assert (added["data_page_offset"] >= len(old)).all()
    assert (added["offset_index_offset"] > added["data_page_offset"]).all()
