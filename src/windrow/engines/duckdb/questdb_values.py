"""Values of QuestDB's types as DuckDB reads them: what Parquet holds for them, and types that changed since.

Every function gives SQL of a column, of one type or from one type to another. Conversions follow QuestDB: a value that
the new type cannot hold is null, fractions are cut, and a type without nulls has its zero instead.
"""

from __future__ import annotations

import pyarrow as pa

from windrow.errors import Incompatible
from windrow.questdb.stored_tests import TESTED_AS_TEXT
from windrow.questdb.types import (
    GEOHASHES,
    TEXTS,
    ZEROS,
    ColumnType,
    array_dimensions,
    geohash_bits,
    type_name,
)
from windrow.questions.spelling import sql_name, sql_text
from windrow.sidecar.types import Tag

__all__ = ["has_stored_test", "is_read_as_stored", "readings_of", "zero_of"]

_BASE32 = "0123456789bcdefghjkmnpqrstuvwxyz"
_INTEGERS = {Tag.BYTE: "TINYINT", Tag.SHORT: "SMALLINT", Tag.INT: "INTEGER", Tag.LONG: "BIGINT"}
_FLOATS = {Tag.FLOAT: "FLOAT", Tag.DOUBLE: "DOUBLE"}
_SIZES = (Tag.BYTE, Tag.SHORT, Tag.INT, Tag.LONG)
_TIMES = (Tag.DATE, Tag.TIMESTAMP)
_ANY_TEXT = TEXTS | {Tag.CHAR, Tag.UUID, Tag.IPV4}
_TICKS = {"ms": 10**3, "us": 10**6, "ns": 10**9}
_FORMATS = {"ms": "%Y-%m-%dT%H:%M:%S.%gZ", "us": "%Y-%m-%dT%H:%M:%S.%fZ", "ns": "%Y-%m-%dT%H:%M:%S."}
_ADDRESS = r"(25[0-5]|2[0-4]\d|1?\d?\d)(\.(25[0-5]|2[0-4]\d|1?\d?\d)){3}"


def is_read_as_stored(stored: ColumnType, wanted: ColumnType, *, has_nulls: bool) -> bool:
    """Whether a file's values are the table's, at most in a narrower type: bounds then tell of them."""
    if has_nulls and wanted.tag in ZEROS:
        return False
    if not (stored.is_shown_as_stored and wanted.is_shown_as_stored):
        return False
    if stored.tag in TEXTS and wanted.tag in TEXTS:
        return True
    is_wider = stored.tag in _SIZES and wanted.tag in _SIZES and _SIZES.index(stored.tag) <= _SIZES.index(wanted.tag)
    return bool(is_wider or (stored.tag, wanted.tag) == (Tag.FLOAT, Tag.DOUBLE) or stored.stored == wanted.stored)


def has_stored_test(stored: ColumnType, wanted: ColumnType) -> bool:
    """Whether tests of the table's values can be made tests of a file's values."""
    return stored.tag == wanted.tag and stored.tag in TESTED_AS_TEXT


def zero_of(wanted: ColumnType) -> str | None:
    """What QuestDB shows where a column of the type has no value; None for null."""
    return ZEROS.get(wanted.tag)


def readings_of(column: str, stored: ColumnType, wanted: ColumnType, where: str) -> tuple[str, ...]:
    """The SQL of a column of a file that makes the table's values of it, step by step."""
    name = sql_name(column)
    steps = _shown(name, stored)
    if stored.code != wanted.code and not (stored.tag in TEXTS and wanted.tag in TEXTS):
        steps += (_converted(name, stored, wanted, where),)
    zero = zero_of(wanted)
    return steps if zero is None else (*steps, f"coalesce({name}, {zero})")


def _shown(name: str, kind: ColumnType) -> tuple[str, ...]:
    """The values that a file stores, as they are shown."""
    match kind.tag:
        case Tag.CHAR:
            # Half of a pair of UTF-16 is no character.
            half = f"WHEN {name} BETWEEN 55296 AND 57343 THEN chr(65533)"
            return (f"CASE WHEN {name} = 0 THEN '' {half} ELSE chr(CAST({name} AS INTEGER)) END",)
        case Tag.IPV4:
            parts = ", ".join(f"CAST({name} >> {shift} & 255 AS VARCHAR)" for shift in (24, 16, 8, 0))
            return (f"CASE WHEN {name} > 0 THEN concat_ws('.', {parts}) END",)
        case Tag.UUID:
            cuts = ((1, 8), (9, 4), (13, 4), (17, 4), (21, 12))
            return (
                f"lower(hex({name}))",
                " || '-' || ".join(f"substr({name}, {first}, {length})" for first, length in cuts),
            )
        case Tag.LONG256:
            pairs = f"list_reverse(regexp_extract_all(lower(hex({name})), '..'))"
            return (f"array_to_string({pairs}, '')", f"'0x' || regexp_replace({name}, '^(00){{1,31}}', '')")
        case Tag.ARRAY:
            return (f"hex({name})", _array(name, array_dimensions(kind.code)))
    return (_geohash(name, geohash_bits(kind.code)),) if kind.tag in GEOHASHES else ()


def _geohash(name: str, bits: int) -> str:
    """Five bits to a letter; one to a digit where they are no multiple of five."""
    step, letters = (5, _BASE32) if bits % 5 == 0 else (1, "01")
    shifts = range(bits - step, -1, -step)
    parts = [f"substr('{letters}', CAST({name} >> {shift} & {len(letters) - 1} AS BIGINT) + 1, 1)" for shift in shifts]
    return f"CASE WHEN {name} >= 0 THEN {' || '.join(parts)} END"


def _array(name: str, dimensions: int) -> str:
    """An array out of its digits: a length of 4 bytes for each dimension, padding to 8 bytes, then doubles."""
    lengths = [_number(name, str(8 * place), 4, "INTEGER") for place in range(dimensions)]
    first = -(-4 * dimensions // 8) * 16
    indexes = [f"i{place}" for place in range(dimensions)]
    position = indexes[0]
    for length, index in zip(lengths[1:], indexes[1:], strict=True):
        position = f"({position} * {length} + {index})"
    number = _number(name, f"{first} + 16 * {position}", 8, "DOUBLE")
    found = f"CASE WHEN NOT isnan({number}) THEN {number} END"
    for length, index in zip(reversed(lengths), reversed(indexes), strict=True):
        found = f"list_transform(range({length}), lambda {index}: {found})"
    return f"CASE WHEN {name} IS NOT NULL THEN {found} END"


def _number(digits: str, start: str, size: int, kind: str) -> str:
    """A number out of digits, the lowest byte of which comes first."""
    pairs = [f"substr({digits}, {start} + {2 * place + 1}, 2)" for place in reversed(range(size))]
    return f"CAST(CAST(unhex({' || '.join(pairs)}) AS BIT) AS {kind})"


def _converted(name: str, stored: ColumnType, wanted: ColumnType, where: str) -> str:
    """The value of one type as another."""
    found = None
    if wanted.tag in _ANY_TEXT:
        found = _checked_text(_text(name, stored), wanted) if _has_text(stored) else None
    elif wanted.tag in _INTEGERS:
        found = _integer(name, stored, _INTEGERS[wanted.tag])
    elif wanted.tag in _TIMES:
        found = _time(name, stored, wanted)
    elif wanted.tag is Tag.BOOLEAN and stored.tag in TEXTS:
        found = f"lower({name}) = 'true'"
    elif wanted.tag is Tag.BOOLEAN and (stored.tag in _INTEGERS or stored.tag in _FLOATS):
        found = f"{name} <> 0"
    elif (wanted.tag in _FLOATS or pa.types.is_decimal128(wanted.shown)) and _is_number(stored):
        found = f"TRY_CAST({name} AS {_FLOATS.get(wanted.tag) or _decimal(wanted)})"
    if found is None:
        raise Incompatible(
            f"{where} is {type_name(stored.code)} in the file and {type_name(wanted.code)} in the table, and there is "
            "no conversion; run ALTER TABLE ... CONVERT PARTITION TO NATIVE and TO PARQUET for it in QuestDB"
        )
    return found


def _decimal(kind: ColumnType) -> str:
    return f"DECIMAL({kind.shown.precision}, {kind.shown.scale})"


def _is_number(kind: ColumnType) -> bool:
    """Whether values are numbers, or texts that may be numbers."""
    is_decimal = pa.types.is_decimal128(kind.shown)
    return bool(is_decimal or kind.tag in TEXTS or kind.tag in _INTEGERS or kind.tag in _FLOATS or kind.tag in _TIMES)


def _has_text(kind: ColumnType) -> bool:
    return bool(kind.shown == pa.string() or kind.tag is Tag.BOOLEAN or _is_number(kind))


def _text(name: str, kind: ColumnType) -> str:
    if kind.tag in _TIMES:
        spelled = sql_text(_FORMATS[kind.shown.unit])
        if kind.shown.unit != "ns":
            return f"strftime({name} AT TIME ZONE 'UTC', {spelled})"
        # DuckDB's own directive for nanoseconds leaves a letter behind it out.
        rest = f"((epoch_ns({name}) % 1000000000 + 1000000000) % 1000000000)"
        second = f"make_timestamp((epoch_ns({name}) - {rest}) // 1000)"
        return f"strftime({second}, {spelled}) || lpad(CAST({rest} AS VARCHAR), 9, '0') || 'Z'"
    return f"CAST({name} AS VARCHAR)"


def _checked_text(text: str, wanted: ColumnType) -> str:
    match wanted.tag:
        case Tag.CHAR:
            return f"left({text}, 1)"
        case Tag.UUID:
            return f"CAST(TRY_CAST({text} AS UUID) AS VARCHAR)"
        case Tag.IPV4:
            return f"CASE WHEN regexp_full_match({text}, {sql_text(_ADDRESS)}) THEN {text} END"
    return text


def _integer(name: str, stored: ColumnType, kind: str) -> str | None:
    if stored.tag in TEXTS:
        return f"CASE WHEN regexp_full_match({name}, '[+-]?[0-9]+') THEN TRY_CAST({name} AS {kind}) END"
    if stored.tag in _FLOATS:
        return f"TRY_CAST(trunc({name}) AS {kind})"
    if stored.tag in _TIMES:
        return f"TRY_CAST(epoch_{stored.shown.unit}({name}) AS {kind})"
    if pa.types.is_decimal128(stored.shown):
        return f"TRY_CAST(trunc({name}) AS {kind})"
    return f"TRY_CAST({name} AS {kind})" if stored.tag in _INTEGERS or stored.tag is Tag.BOOLEAN else None


def _time(name: str, stored: ColumnType, wanted: ColumnType) -> str | None:
    unit = wanted.shown.unit
    if stored.tag in TEXTS:
        count, before = f"epoch_ns(TRY_CAST({name} AS TIMESTAMP_NS))", "ns"
    elif stored.tag in _TIMES:
        count, before = f"epoch_{stored.shown.unit}({name})", stored.shown.unit
    elif stored.tag in _INTEGERS:
        count, before = f"CAST({name} AS BIGINT)", unit
    else:
        return None
    ticks = _scaled(count, before, "ns" if unit == "ns" else unit)
    if unit == "ns":
        return f"CAST(make_timestamp_ns({ticks}) AS TIMESTAMPTZ_NS)"
    return f"make_timestamptz({_scaled(ticks, unit, 'us')})"


def _scaled(count: str, before: str, after: str) -> str:
    """A count of one unit as one of another; beyond 64 bits there is none."""
    if before == after:
        return count
    if _TICKS[before] < _TICKS[after]:
        return f"TRY_CAST(CAST({count} AS HUGEINT) * {_TICKS[after] // _TICKS[before]} AS BIGINT)"
    return f"({count} // {_TICKS[before] // _TICKS[after]})"
