"""The schema of a virtual file: each wanted column as the first file that has it declares it."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import NamedTuple

import pyarrow as pa
import pyarrow.parquet as pq

from windrow.errors import Incompatible
from windrow.kernels import rules as r
from windrow.parquet import thrift as t
from windrow.parquet.converted import lacks_converted_type, with_converted_type
from windrow.parquet.footer import ParquetFooter
from windrow.parquet.placement import VirtualSchema, leaf_positions
from windrow.parquet.schema import Repetition, SchemaElement, leaves_of, subtree_end
from windrow.parquet.synthesis import synthesise_footer
from windrow.sidecar import Sidecar

__all__ = ["arrow_of", "arrow_schema", "column_names", "merged_schema", "positions_in", "schema_of"]


def schema_of(sidecar: Sidecar) -> ParquetFooter:
    """What a sidecar knows of its file's schema: a footer without row groups."""
    schema = sidecar.schema
    if schema is None:
        raise Incompatible(f"{sidecar.name}: it has no Parquet schema; rebuild the sidecar from its Parquet file")
    return schema


def column_names(footer: ParquetFooter) -> list[str]:
    """The top-level columns of a file, in its order."""
    return list(dict.fromkeys(leaf.path[0] for leaf in footer.leaves))


def merged_schema(footers: Sequence[ParquetFooter], columns: Sequence[str]) -> VirtualSchema:
    """The named columns that any of the files has, in the order of the names."""
    pieces: list[bytes] = []
    elements: list[SchemaElement] = []
    orders: list[int] = []
    owners = [_Columns.of(footer) for footer in footers]
    chosen = [(name, owner) for name in columns if (owner := next((o for o in owners if name in o.spans), None))]
    for name, owner in chosen:
        start, stop = owner.spans[name]
        pieces += owner.pieces(start, stop)
        elements += owner.footer.schema[start:stop]
        known = owner.footer.column_orders
        orders += [0 if known is None else known[leaf] for leaf in owner.leaves[name]]
    root = footers[0].schema[0]._replace(num_children=len(chosen))
    head = t.struct(t.binary(4, root.name.encode()), t.i32(5, len(chosen)))
    return VirtualSchema(
        t.list_of(2, r.RECORD, [head, *pieces]).value,
        leaves_of([root, *elements], name="virtual file"),
        None if any(footer.column_orders is None for footer in footers) else _orders(orders),
        footers[0].created_by,
    )


class _Columns(NamedTuple):
    """The top-level columns of a file by name; of those with one name the first."""

    footer: ParquetFooter
    spans: dict[str, tuple[int, int]]
    """Which elements of the schema belong to each."""
    leaves: dict[str, list[int]]
    """Which leaves belong to each name."""
    positions: list[int]
    """Where in the footer each element begins."""

    @classmethod
    def of(cls, footer: ParquetFooter) -> _Columns:
        leaves: dict[str, list[int]] = {}
        for leaf in footer.leaves:
            leaves.setdefault(leaf.path[0], []).append(leaf.index)
        spans: dict[str, tuple[int, int]] = {}
        for start, stop in _spans(footer):
            # A group without a leaf is no column.
            if footer.schema[start].name in leaves:
                spans.setdefault(footer.schema[start].name, (start, stop))
        return cls(footer, spans, leaves, footer.element_positions.tolist())

    def pieces(self, start: int, stop: int) -> list[bytes]:
        """Elements as the file has them, with what engines need to take them for what they are."""
        data, places = self.footer.metadata, self.positions
        return [
            with_converted_type(element) if lacks_converted_type(element) else data[places[at] : places[at + 1]]
            for at, element in enumerate(self.footer.schema[start:stop], start)
        ]


def positions_in(footer: ParquetFooter, schema: VirtualSchema) -> list[int] | None:
    """Where a file has the leaves of the schema, -1 for those it lacks; None if it cannot be read by this schema."""
    try:
        positions = leaf_positions(footer, schema)
    except Incompatible:
        return None
    lacks = [leaf for leaf, position in zip(schema.leaves, positions, strict=True) if position < 0]
    # Rows without a column are nulls, which only a column that allows them can hold.
    return None if any(leaf.root.repetition is Repetition.REQUIRED for leaf in lacks) else positions


def arrow_schema(sidecar: Sidecar) -> pa.Schema:
    """The columns of a file as Arrow has them."""
    footer = schema_of(sidecar)
    names = column_names(footer)
    if _repeats(footer):
        raise Incompatible(f"{sidecar.name}: two columns have one name; rename one of them")
    return arrow_of(merged_schema([footer], names))


def arrow_of(schema: VirtualSchema) -> pa.Schema:
    """The columns of a virtual file as Arrow has them."""
    # Of a footer without row groups, since the whole of it would be parsed.
    try:
        return pq.read_schema(pa.BufferReader(synthesise_footer(schema, []))).remove_metadata()
    except (pa.ArrowException, OSError) as error:
        raise Incompatible(
            f"a column is of a form that Arrow does not read: {error}; leave it out, or write the file anew by another "
            "program, such as DuckDB's COPY"
        ) from error


def _repeats(footer: ParquetFooter) -> bool:
    """Whether two top-level columns have names that a query cannot tell apart."""
    names = [footer.schema[start].name.lower() for start, _ in _spans(footer)]
    return len(set(names)) < len(names)


def _spans(footer: ParquetFooter) -> Iterator[tuple[int, int]]:
    """Yield where the elements of each top-level column begin and end."""
    at = 1
    while at < len(footer.schema):
        end = subtree_end(footer.schema, at)
        yield at, end
        at = end


def _orders(tags: Sequence[int]) -> bytes:
    members = [t.struct(t.nested(tag, t.struct())) if tag else t.struct() for tag in tags]
    return t.list_of(7, r.RECORD, members).value
