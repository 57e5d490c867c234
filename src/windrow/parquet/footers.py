"""Footers of many files, parsed by one call."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from itertools import pairwise

import numpy as np
import numpy.typing as npt

from windrow.parquet.chunk import ENCRYPTED
from windrow.parquet.footer import ParquetFooter, parse_footer
from windrow.parquet.footer_grammar import FOOTER_GRAMMAR

__all__ = ["parse_footers"]


def parse_footers(stored: Sequence[bytes], names: Sequence[str], keys: Sequence[str]) -> list[ParquetFooter]:
    """Footers by their thrift bytes, with no more of what files say of themselves than some keys.

    What follows from its schema is taken from another file of the same schema, where there was one.
    """
    ends = np.cumsum([len(each) for each in stored], dtype=np.int64)
    starts = np.concatenate([[0], ends[:-1]]) if ends.size else ends
    tables, counts = FOOTER_GRAMMAR.walk_each(b"".join(stored), starts, ends, names)
    chunks = tables["chunks"]
    begins = np.repeat(starts, np.diff(counts["chunks"]))
    for bound in ("min", "max", "old_min", "old_max"):
        # positions count from the first byte of each footer
        chunks[f"{bound}_offset"] -= begins
    by_schema: dict[bytes, ParquetFooter] = {}
    file, groups = tables["file"], tables["groups"]
    spans = np.stack([file["schema_offset"] - starts, file["schema_length"], file["num_rows"]], axis=1).tolist()
    odd = bool((chunks["flags"] & ENCRYPTED).any()) or len(set(groups["columns_count"].tolist())) > 1
    columns = int(groups["columns_count"][0]) if groups.size else 0
    wanted = {key.encode(): key for key in keys}
    key_values = _key_values(stored, starts.tolist(), tables["key_values"], counts["key_values"].tolist(), wanted)
    cuts = zip(pairwise(counts["groups"].tolist()), pairwise(counts["chunks"].tolist()), strict=True)
    footers = []
    for metadata, name, (start, length, rows), key_value, ((low, high), (first, last)) in zip(
        stored, names, spans, key_values, cuts, strict=True
    ):
        like = by_schema.get(metadata[start : start + length])
        if odd or like is None or len(like.leaves) != columns or last - first != (high - low) * columns:
            footer = parse_footer(metadata, name=name)
            by_schema.setdefault(footer.schema_bytes, footer)
        else:
            own = chunks[first:last].reshape(high - low, columns)
            footer = _like(like, metadata, start, rows, key_value, groups[low:high], own)
        footers.append(footer)
    return footers


def _like(
    like: ParquetFooter,
    metadata: bytes,
    start: int,
    rows: int,
    key_value: dict[str, str | None],
    groups: npt.NDArray[np.void],
    chunks: npt.NDArray[np.void],
) -> ParquetFooter:
    """A footer with the schema of another, which begins at `start`."""
    return ParquetFooter(
        metadata=metadata,
        version=like.version,
        num_rows=rows,
        created_by=like.created_by,
        key_value=key_value,
        schema=like.schema,
        leaves=like.leaves,
        column_orders=like.column_orders,
        row_group_rows=groups["num_rows"],
        row_group_bytes=groups["total_byte_size"],
        row_group_sorting=(None,) * groups.size,
        chunks=chunks,
        element_positions=like.element_positions + start - like.schema_span[0],
        schema_span=(start, start + len(like.schema_bytes)),
        column_orders_span=None,
    )


def _key_values(
    stored: Sequence[bytes],
    starts: Sequence[int],
    table: npt.NDArray[np.void],
    counts: Sequence[int],
    wanted: Mapping[bytes, str],
) -> Iterator[dict[str, str | None]]:
    """What each file says of itself, as far as it is wanted."""
    # a file has many entries: those whose key has another length are passed over
    likely = np.flatnonzero(np.isin(table["key_length"], [len(name) for name in wanted]))
    rows, ends = table[likely].tolist(), np.searchsorted(likely, counts).tolist()
    for metadata, begin, (first, last) in zip(stored, starts, pairwise(ends), strict=True):
        values: dict[str, str | None] = {}
        for _, key_at, key_length, at, length in rows[first:last]:
            name = wanted.get(metadata[key_at - begin : key_at - begin + key_length])
            if name is not None:
                values[name] = metadata[at - begin : at - begin + length].decode(errors="replace")
        yield values
