"""Columns in other types than they came in: by the caller's word, or where every value stays what it is."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from typing import NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from windrow.errors import InvalidInput
from windrow.model.widening import joined, plain

__all__ = ["Converted", "cast_schema", "converted", "joining", "parse_casts"]

_NAMES = {
    "boolean": pa.bool_(),
    "bigint": pa.int64(),
    "int": pa.int32(),
    "integer": pa.int32(),
    "text": pa.string(),
    "timestamp": pa.timestamp("us"),
    "timestamptz": pa.timestamp("us", "UTC"),
    "varchar": pa.string(),
}
_ZONED = re.compile(r"timestamp\[(s|ms|us|ns), *(?:tz=)?([^\]]+)\]")


class Converted(NamedTuple):
    """A column in another type."""

    values: pa.ChunkedArray
    """Null where a value cannot have the type."""
    lost: pa.ChunkedArray | None = None
    """Which rows have such a value; None where none has."""


def parse_casts(casts: Mapping[str, str | pa.DataType] | None) -> dict[str, pa.DataType]:
    """Return types by column; a type is one of Arrow's, or its name such as "double" or "timestamp[us, UTC]"."""
    return {column: _type_of(column, kind) for column, kind in (casts or {}).items()}


def _type_of(column: str, kind: str | pa.DataType) -> pa.DataType:
    if isinstance(kind, pa.DataType):
        return plain(kind)
    text = str(kind).strip().lower()
    zoned = _ZONED.fullmatch(str(kind).strip())
    if zoned is not None:
        return pa.timestamp(zoned[1], zoned[2].strip())
    try:
        return _NAMES[text] if text in _NAMES else plain(pa.type_for_alias(text))
    except (ValueError, TypeError):
        raise InvalidInput(
            f"cast: column {column!r} cannot become {kind!r}, which is no type; use one such as double, int64, string, "
            'bool, date32, "timestamp[us]" or "timestamp[us, UTC]"'
        ) from None


def cast_schema(schema: pa.Schema, casts: Mapping[str, pa.DataType]) -> pa.Schema:
    """Return the columns as they are once they are cast; one that is not there is refused."""
    missing = [name for name in casts if name not in schema.names]
    if missing:
        raise InvalidInput(f"cast: column {missing[0]!r} is not in the data, which has {', '.join(schema.names)}")
    return pa.schema([(each.name, casts.get(each.name, each.type)) for each in schema])


def joining(schema: pa.Schema, types: Mapping[str, pa.DataType]) -> pa.Schema:
    """Return the columns as they join the table's: whole numbers are floats where the table has floats."""

    def kind_of(each: pa.Field) -> pa.DataType:
        before = types.get(each.name)
        is_whole = before is not None and pa.types.is_floating(before) and pa.types.is_integer(plain(each.type))
        return joined(before, each.type) if is_whole else each.type

    return pa.schema([(each.name, kind_of(each)) for each in schema])


def converted(column: pa.ChunkedArray, kind: pa.DataType, *, lossy: bool) -> Converted:
    """Return a column in another type; where it may be `lossy`, digits behind those that the type holds are cut."""
    column = column.cast(plain(column.type))
    if column.type == kind:
        return Converted(column)
    if lossy and pa.types.is_floating(column.type) and pa.types.is_integer(kind):
        # Arrow would not look at the range of those that it cuts.
        column, lossy = pc.trunc(column), False
    options = pc.CastOptions(kind, allow_float_truncate=lossy, allow_time_truncate=lossy, allow_decimal_truncate=lossy)
    try:
        return Converted(column.cast(options=options))
    except pa.ArrowNotImplementedError as error:
        raise InvalidInput(f"{column.type} cannot become {kind}: {error}") from error
    except pa.ArrowInvalid:
        pass
    if pa.types.is_integer(column.type) and pa.types.is_floating(kind):
        options = pc.CastOptions(kind, allow_float_truncate=True)
        lost = _changed(column, column.cast(options=options))
    else:
        lost = _refused(column, lambda values: values.cast(options=options))
    kept = pc.if_else(lost, pa.scalar(None, column.type), column)
    return Converted(kept.cast(options=options), lost if pc.any(lost).as_py() else None)


def _changed(integers: pa.ChunkedArray, floats: pa.ChunkedArray) -> pa.ChunkedArray:
    """Return which integers are others as floats; Arrow refuses all that are large, of which many are exact."""
    numbers = np.asarray(pc.fill_null(floats, 0.0)).astype(np.float64)
    whole = np.asarray(pc.fill_null(integers, 0))
    bounds = np.iinfo(whole.dtype)
    # The greatest integer is no float: the float beside it is already too large.
    fits = (numbers >= float(bounds.min)) & (numbers < float(bounds.max))
    same = np.where(fits, numbers, 0).astype(whole.dtype) == whole
    return pa.chunked_array([pa.array(~(same & fits))])


def _refused(column: pa.ChunkedArray, cast: Callable[[pa.ChunkedArray], object]) -> pa.ChunkedArray:
    """Return which values cannot be cast, by halving: few of many are."""
    mask = np.zeros(len(column), np.bool_)
    stretches = [(0, len(column))]
    while stretches:
        start, end = stretches.pop()
        try:
            cast(column.slice(start, end - start))
        except pa.ArrowInvalid:
            if end - start == 1:
                mask[start] = True
            else:
                middle = (start + end) // 2
                stretches += [(start, middle), (middle, end)]
    return pa.chunked_array([pa.array(mask)])
