"""Sidecars from plain descriptions: the JSON of the golden cases, and what tests write down themselves."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from windrow.sidecar import layout, writer
from windrow.sidecar.blocks import RowGroups
from windrow.sidecar.content import Held
from windrow.sidecar.layout import StatFlag
from windrow.sidecar.reader import Sidecar
from windrow.sidecar.stored_bounds import Spans, place_bounds
from windrow.sidecar.structure import footer_chain, read_header

Spec = Mapping[str, Any]
_NUMBERS = ("codec", "encodings", "num_values", "byte_range_start", "total_compressed")


def columns_of(spec: Spec, windrow: bytes | None = None) -> writer.Columns:
    descriptors = np.zeros(len(spec["columns"]), layout.DESCRIPTOR)
    for record, column in zip(descriptors, spec["columns"], strict=True):
        for field in set(column) - {"name"}:
            record[field] = column[field]
    return writer.Columns(
        names=[column["name"] for column in spec["columns"]],
        descriptors=descriptors,
        designated_timestamp=spec["designated_timestamp"],
        sorting=spec["sorting_columns"],
        squash_tracker=spec["squash_tracker"],
        bloom_columns=spec["bloom_columns"] or (),
        bloom_external=spec["bloom_external"],
        windrow=windrow,
    )


def groups_of(specs: Sequence[Spec], columns: int, **more: Any) -> RowGroups:
    chunks = np.zeros((len(specs), columns), layout.CHUNK)
    heap, spans = bytearray(), np.zeros((2, 3, len(specs), columns), np.int64)
    blooms, external = {}, {}
    for place, chunk in _places(specs):
        for field in _NUMBERS:
            chunks[field][place] = chunk[field]
        _count(chunks, place, "null_count", StatFlag.NULL_COUNT_PRESENT, chunk)
        _count(chunks, place, "distinct_count", StatFlag.DISTINCT_COUNT_PRESENT, chunk)
        for side, bound in enumerate((chunk["min"], chunk["max"])):
            if bound is not None:
                raw = bytes.fromhex(bound["hex"])
                spans[(side, slice(None), *place)] = len(heap), len(raw), bound["exact"]
                heap += raw
        if chunk["bloom_hex"] is not None:
            blooms[place] = bytes.fromhex(chunk["bloom_hex"])
        if chunk["bloom_external"] is not None:
            external[place] = tuple(chunk["bloom_external"])
    minimum, maximum = (Spans(starts, lengths, exact != 0) for starts, lengths, exact in spans)
    bounds = place_bounds(chunks, bytes(heap), minimum, maximum)
    rows = np.array([spec["num_rows"] for spec in specs], "<u8")
    return RowGroups(rows, chunks, bounds, blooms, external, **more)


def _places(specs: Sequence[Spec]) -> list[tuple[tuple[int, int], Spec]]:
    return [((group, column), chunk) for group, spec in enumerate(specs) for column, chunk in enumerate(spec["chunks"])]


def _count(chunks: np.ndarray, place: tuple[int, int], field: str, flag: StatFlag, chunk: Spec) -> None:
    if chunk[field] is not None:
        chunks[field][place] = chunk[field]
        chunks["stat_flags"][place] |= flag


def snapshot_of(spec: Spec, windrow: Mapping[int, bytes] | None = None) -> writer.SnapshotFields:
    scratchpad = spec["scratchpad"]
    return writer.SnapshotFields(
        spec["parquet_footer_offset"],
        spec["parquet_footer_length"],
        spec["unused_bytes"],
        spec["seq_txn"],
        None if scratchpad is None else [(entry["code"], bytes.fromhex(entry["hex"])) for entry in scratchpad],
        windrow,
    )


def create(spec: Spec) -> bytes:
    """The sidecar that a description of all its parts gives."""
    return writer.create(columns_of(spec), groups_of(spec["row_groups"], len(spec["columns"])), snapshot_of(spec))


def update(existing: bytes, step: Spec) -> bytes:
    """The sidecar after one described update."""
    content = Held(existing)
    chain = footer_chain(content, read_header(content, "existing"), "existing")
    anchor = next(footer for footer in chain if footer.size == step["parse_anchor"])
    sidecar = Sidecar.of(existing, name="existing", parquet_size=anchor.parquet_size)
    replaced = {change["index"]: change["row_group"] for change in step["replace"]}
    added = {sidecar.row_group_count + i: group for i, group in enumerate(step["add"])}
    changed = dict(sorted((replaced | added).items()))
    groups = groups_of(list(changed.values()), sidecar.column_count)
    change = writer.update(sidecar, groups, list(changed), snapshot_of(step), base=step["append_base"])
    return apply(existing, change)


def apply(existing: bytes, change: writer.Update) -> bytes:
    """The file after the bytes were appended and the header was patched."""
    patched = layout.U64.pack(change.size) + existing[8 : change.base] + change.data
    assert len(patched) == change.size
    return patched


@pytest.fixture(scope="session")
def make() -> SimpleNamespace:
    """Everything that turns descriptions into sidecars."""
    return SimpleNamespace(
        create=create, update=update, apply=apply, columns=columns_of, groups=groups_of, snapshot=snapshot_of
    )
