"""Brings the columns of a batch to the types that the table has for them."""

from __future__ import annotations

from collections.abc import Collection, Mapping

import pyarrow as pa
import pyarrow.compute as pc

from windrow.errors import InvalidInput
from windrow.model.names import name_problems, same_but_for_case, twins_in
from windrow.model.ordering import encoded
from windrow.model.points import is_text
from windrow.model.widening import WAYS_OUT, joined, plain, takes

__all__ = ["coerced", "conflict_of", "joined_types"]

_CODE = pa.int32()


def coerced(rows: pa.Table, types: Mapping[str, pa.DataType]) -> pa.Table:
    """Return the rows with every column of the table's type; a value that does not fit is refused with its column.

    Text that comes as codes of a dictionary stays so, with codes of 32 bits.
    """
    columns = {}
    for name in rows.column_names:
        column = rows[name]
        try:
            columns[name] = column if column.type == types[name] else _cast(column, types[name])
        except (pa.ArrowInvalid, pa.ArrowNotImplementedError) as error:
            raise InvalidInput(f"column {name!r} cannot become {types[name]}: {error}") from error
    return pa.table(columns)


def conflict_of(schema: pa.Schema, types: Mapping[str, pa.DataType], casts: Collection[str] = ()) -> str | None:
    """Say why rows of a schema cannot have the table's types, None when they can; some columns are cast."""
    for each in schema:
        if each.name not in types:
            return f"column {each.name!r} comes from this data alone, which does not fit the table"
        if each.name not in casts and not takes(types[each.name], each.type):
            return f"column {each.name!r} is {types[each.name]} in the table and {each.type} in the data"
    return None


def joined_types(
    name: str, schema: pa.Schema, types: Mapping[str, pa.DataType], of_table: Mapping[str, pa.DataType]
) -> dict[str, pa.DataType]:
    """Return the types of a file's columns, widened to hold those of the files before it, or else of the table."""
    merged = {}
    for problem in name_problems(schema.names):
        raise InvalidInput(f"{name}: {problem}")
    for column, twin in twins_in(schema.names, [*of_table, *types]).items():
        where = "of the table" if twin in of_table else "of the files before it"
        raise InvalidInput(f"{name}: {same_but_for_case(column, twin, where)}")
    for each in schema:
        before = types.get(each.name, of_table.get(each.name))
        both = plain(each.type) if before is None else joined(before, each.type)
        if both is None:
            where, hint = (
                ("in the files before it", "bring them in apart, or cast them (cast=)")
                if each.name in types
                else ("in the table", WAYS_OUT)
            )
            raise InvalidInput(f"{name}: column {each.name!r} is {each.type}, {where} {before}; {hint}")
        merged[each.name] = both
    return merged


def _cast(column: pa.ChunkedArray, kind: pa.DataType) -> pa.ChunkedArray:
    if pa.types.is_dictionary(column.type):
        # Casting the few distinct values is cheaper than casting all rows.
        if is_text(kind):
            column = encoded(column)
            return pa.chunked_array([_codes(each, kind) for each in column.chunks], pa.dictionary(_CODE, kind))
        column = column.unify_dictionaries()
        chunks = [pc.take(chunk.dictionary.cast(kind), chunk.indices) for chunk in column.chunks]
        return pa.chunked_array(chunks, kind)
    return column.cast(kind)


def _codes(chunk: pa.DictionaryArray, kind: pa.DataType) -> pa.DictionaryArray:
    return pa.DictionaryArray.from_arrays(chunk.indices.cast(_CODE), chunk.dictionary.cast(kind))
