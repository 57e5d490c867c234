"""Converted types, the older way of giving a column its meaning, for files that have logical types alone.

A writer should give a column its logical type and, where there is one, the converted type of before. DuckDB goes by
converted types for all but times: a column with the logical type UINT_32 and nothing else is signed to it.
"""

from __future__ import annotations

from windrow.parquet import thrift as t
from windrow.parquet.schema import CONVERTED_DECIMAL, CONVERTED_TYPES, LogicalType, SchemaElement

__all__ = ["lacks_converted_type", "with_converted_type"]

_TIMES = ("TIME", "TIMESTAMP")
"""Engines read these by their logical types; a converted type would not tell whether they are UTC."""
_CODES: dict[LogicalType, int] = {
    meaning: code for code, meaning in reversed(CONVERTED_TYPES.items()) if meaning.name not in _TIMES
}


def lacks_converted_type(element: SchemaElement) -> bool:
    """Whether an element has a logical type alone, though there is a converted type for it."""
    return element.converted_type is None and element.logical_type is not None and _code(element) is not None


def with_converted_type(element: SchemaElement) -> bytes:
    """An element that lacks its converted type, written with it and without the logical type, which says no more."""
    meaning, code = element.logical_type, _code(element)
    assert meaning is not None  # noqa: S101 (the caller has looked)
    numbers = {
        1: element.physical_type,
        2: element.type_length,
        3: element.repetition,
        5: element.num_children,
        6: code,
        7: meaning.scale,
        8: meaning.precision,
        9: element.field_id,
    }
    fields = [t.i32(field, int(value)) for field, value in numbers.items() if value is not None]
    return t.struct(*sorted([*fields, t.binary(4, element.name.encode())], key=lambda field: field.id))


def _code(element: SchemaElement) -> int | None:
    meaning = element.logical_type
    if meaning is None:
        return None
    return CONVERTED_DECIMAL if meaning.name == "DECIMAL" else _CODES.get(meaning)
