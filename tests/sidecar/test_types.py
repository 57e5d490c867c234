"""Column types: which one a Parquet column gets, and how its bounds compare."""

from __future__ import annotations

import pytest

from windrow.parquet.schema import Leaf, LogicalType, PhysicalType, Repetition, SchemaElement
from windrow.sidecar.layout import Order
from windrow.sidecar.types import Tag, array_type, decimal_type, infer_type, order_of, order_of_leaf

INT32, INT64 = PhysicalType.INT32, PhysicalType.INT64
BYTES, FIXED = PhysicalType.BYTE_ARRAY, PhysicalType.FIXED_LEN_BYTE_ARRAY


def leaf(physical: PhysicalType, logical: LogicalType | None = None, **element: int) -> Leaf:
    described = SchemaElement(
        "c", physical_type=physical, repetition=Repetition.OPTIONAL, logical_type=logical, **element
    )
    return Leaf(0, ("c",), described, described, 0, 1, 0, single_child=True)


def integer(bits: int, signed: bool) -> LogicalType:
    return LogicalType("INTEGER", bit_width=bits, is_signed=signed)


def timestamp(unit: str) -> LogicalType:
    return LogicalType("TIMESTAMP", unit=unit, is_adjusted_to_utc=True)


COLUMNS = [
    (leaf(PhysicalType.BOOLEAN), Tag.BOOLEAN, Order.UNSIGNED),
    (leaf(INT32), Tag.INT, Order.SIGNED),
    (leaf(INT32, integer(8, True)), Tag.BYTE, Order.SIGNED),
    (leaf(INT32, integer(16, True)), Tag.SHORT, Order.SIGNED),
    (leaf(INT32, integer(16, False)), Tag.INT, Order.UNSIGNED),
    (leaf(INT32, converted_type=16), Tag.SHORT, Order.SIGNED),
    (leaf(INT32, converted_type=13), Tag.INT, Order.UNSIGNED),
    (leaf(INT32, LogicalType("DATE")), Tag.DATE, Order.SIGNED),
    (leaf(INT64), Tag.LONG, Order.SIGNED),
    (leaf(INT64, integer(64, False)), Tag.LONG, Order.UNSIGNED),
    (leaf(INT64, timestamp("MILLIS")), Tag.DATE, Order.SIGNED),
    (leaf(INT64, timestamp("MICROS")), Tag.TIMESTAMP, Order.SIGNED),
    (leaf(INT64, timestamp("NANOS")), 262152, Order.SIGNED),
    (leaf(INT64, converted_type=10), Tag.LONG, Order.SIGNED),
    (leaf(INT64, LogicalType("DECIMAL", precision=18, scale=3)), 791071, Order.SIGNED),
    (leaf(PhysicalType.INT96), 262152, Order.UNDEFINED),
    (leaf(PhysicalType.FLOAT), Tag.FLOAT, Order.FLOAT),
    (leaf(PhysicalType.DOUBLE), Tag.DOUBLE, Order.FLOAT),
    (leaf(BYTES, LogicalType("STRING")), Tag.VARCHAR, Order.BYTES),
    (leaf(BYTES, converted_type=0), Tag.VARCHAR, Order.BYTES),
    (leaf(BYTES, LogicalType("JSON")), Tag.BINARY, Order.BYTES),
    (leaf(BYTES), Tag.BINARY, Order.BYTES),
    (leaf(BYTES, converted_type=5, precision=4, scale=2), 525341, Order.SIGNED_BIG_ENDIAN),
    (leaf(FIXED, LogicalType("UUID"), type_length=16), Tag.UUID, Order.BYTES),
    (leaf(FIXED, type_length=16), Tag.LONG128, Order.BYTES),
    (leaf(FIXED, type_length=32), Tag.LONG256, Order.BYTES),
    (leaf(FIXED, type_length=5), -1, Order.BYTES),
    (leaf(FIXED, LogicalType("FLOAT16"), type_length=2), -1, Order.UNDEFINED),
    (leaf(FIXED, converted_type=21, type_length=12), -1, Order.UNDEFINED),
]


@pytest.mark.parametrize(("column", "column_type", "order"), COLUMNS)
def test_a_column_has_a_type_and_an_order(column: Leaf, column_type: int, order: Order) -> None:
    assert (infer_type(column), order_of_leaf(column)) == (column_type, order)


@pytest.mark.parametrize(
    ("precision", "scale", "column_type"),
    [(4, 2, 525341), (18, 3, 791071), (38, 5, 1320480), (76, 0, 19489), (0, 0, -1), (77, 0, -1), (4, 5, -1)],
)
def test_decimals_have_a_type_by_their_digits(precision: int, scale: int, column_type: int) -> None:
    assert decimal_type(precision, scale) == column_type


@pytest.mark.parametrize(("dimensions", "column_type"), [(1, 2587), (2, 18971)])
def test_arrays_have_a_type_by_their_dimensions(dimensions: int, column_type: int) -> None:
    assert array_type(dimensions) == column_type


@pytest.mark.parametrize(
    ("column_type", "physical", "order"),
    [
        (Tag.INT, INT32, Order.SIGN_UNKNOWN),
        (Tag.LONG, INT64, Order.SIGN_UNKNOWN),
        (Tag.TIMESTAMP | 1 << 17, INT64, Order.SIGNED),
        (Tag.IPV4, INT32, Order.UNSIGNED),
        (Tag.SHORT, INT32, Order.SIGNED),
        (Tag.SYMBOL, BYTES, Order.BYTES),
        (791071, FIXED, Order.SIGNED_BIG_ENDIAN),
        (-1, FIXED, Order.UNDEFINED),
        (262152, PhysicalType.INT96, Order.UNDEFINED),
        (Tag.BOOLEAN, PhysicalType.BOOLEAN, Order.UNSIGNED),
        (Tag.ARRAY, PhysicalType.DOUBLE, Order.FLOAT),
        (Tag.INT, 99, Order.UNDEFINED),
    ],
)
def test_without_a_schema_the_order_comes_from_the_type(column_type: int, physical: int, order: Order) -> None:
    assert order_of(column_type, physical) == order
