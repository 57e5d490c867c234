"""The schema of a virtual file: each wanted column as the first file that has it declares it."""

from __future__ import annotations

from collections.abc import Sequence

import pyarrow as pa
import pyarrow.parquet as pq

from windrow.errors import Incompatible
from windrow.kernels import rules as r
from windrow.parquet import thrift as t
from windrow.parquet.converted import lacks_converted_type, with_converted_type
from windrow.parquet.footer import ParquetFooter
from windrow.parquet.placement import VirtualSchema, leaf_positions
from windrow.parquet.schema import Leaf, Repetition, leaves_of, subtree_end
from windrow.parquet.synthesis import synthesise_footer
from windrow.sidecar import Sidecar

__all__ = ["arrow_of", "arrow_schema", "column_names", "merged_schema", "positions_in", "schema_of"]


def schema_of(sidecar: Sidecar) -> ParquetFooter:
    """What a sidecar knows of its file's schema: a footer without row groups."""
    schema = sidecar.extensions.schema
    if schema is None:
        raise Incompatible(f"{sidecar.name}: it has no Parquet schema; rebuild the sidecar from its Parquet file")
    return schema


def column_names(footer: ParquetFooter) -> list[str]:
    """The top-level columns of a file, in its order."""
    return list(dict.fromkeys(leaf.path[0] for leaf in footer.leaves))


def merged_schema(footers: Sequence[ParquetFooter], columns: Sequence[str]) -> VirtualSchema:
    """The named columns that any of the files has, in the order of the names."""
    pieces: list[bytes] = []
    elements = [footers[0].schema[0]._replace(num_children=0)]
    orders: list[int] = []
    for name in columns:
        owner = next((footer for footer in footers if name in column_names(footer)), None)
        if owner is None:
            continue
        start, stop = _span(owner, name)
        pieces += _pieces(owner, start, stop)
        elements += owner.schema[start:stop]
        known = owner.column_orders
        orders += [0 if known is None else known[leaf.index] for leaf in _leaves(owner, name)]
        elements[0] = elements[0]._replace(num_children=(elements[0].num_children or 0) + 1)
    root = t.struct(t.binary(4, elements[0].name.encode()), t.i32(5, elements[0].num_children or 0))
    return VirtualSchema(
        t.list_of(2, r.RECORD, [root, *pieces]).value,
        leaves_of(elements, name="virtual file"),
        None if any(footer.column_orders is None for footer in footers) else _orders(orders),
        footers[0].created_by,
    )


def _pieces(footer: ParquetFooter, start: int, stop: int) -> list[bytes]:
    """Elements as the file has them, with what engines need to take them for what they are."""
    places = footer.element_positions.tolist()
    return [
        with_converted_type(element) if lacks_converted_type(element) else footer.metadata[places[at] : places[at + 1]]
        for at, element in enumerate(footer.schema[start:stop], start)
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
    names, at = [], 1
    while at < len(footer.schema):
        names.append(footer.schema[at].name.lower())
        at = subtree_end(footer.schema, at)
    return len(set(names)) < len(names)


def _leaves(footer: ParquetFooter, name: str) -> list[Leaf]:
    return [leaf for leaf in footer.leaves if leaf.path[0] == name]


def _span(footer: ParquetFooter, name: str) -> tuple[int, int]:
    at = 1
    while footer.schema[at].name != name:
        at = subtree_end(footer.schema, at)
    return at, subtree_end(footer.schema, at)


def _orders(tags: Sequence[int]) -> bytes:
    members = [t.struct(t.nested(tag, t.struct())) if tag else t.struct() for tag in tags]
    return t.list_of(7, r.RECORD, members).value
