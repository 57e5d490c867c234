"""From a condition of Polars to a predicate that every selected row fulfils.

Polars serializes expressions as JSON of no promised shape. Parts of an unexpected shape give no predicate, and then
more is read: Polars filters every row by itself.
"""

from __future__ import annotations

import json
from datetime import UTC, date, datetime, timedelta
from typing import Any

import polars as pl

from windrow.errors import InvalidInput
from windrow.model.operators import comparisons_of, mirrored
from windrow.model.predicate import (
    And,
    Between,
    Comparison,
    In,
    IsNotNull,
    IsNull,
    Literal,
    Not,
    Or,
    Predicate,
    StartsWith,
)
from windrow.questions.conditions import all_of, any_of

__all__ = ["polars_to_predicate"]

_OPS = comparisons_of("polars")
_PLAIN = ("String", "Boolean", *(f"{sign}Int{bits}" for sign in ("", "U") for bits in (8, 16, 32, 64)), "Float64")
_MICROSECONDS = {"Microseconds": 1, "Milliseconds": 1000}
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


class _Unsupported(Exception):
    """A part without a predicate."""


def polars_to_predicate(condition: pl.Expr) -> Predicate | None:
    """Return a predicate that all rows of a condition fulfil; None when there is none."""
    try:
        tree = json.loads(condition.meta.serialize(format="json"))
    except Exception:  # an expression with Python in it cannot be written down, whatever that raises
        return None
    return _implied(tree)


def _implied(node: Any) -> Predicate | None:
    parts = _sides(node, "And", "LogicalAnd")
    if parts is not None:
        return all_of([_implied(part) for part in parts])
    parts = _sides(node, "Or", "LogicalOr")
    if parts is not None:
        return any_of([_implied(part) for part in parts])
    try:
        return _exactly(node)
    except (_Unsupported, InvalidInput, KeyError, TypeError, ValueError, IndexError, OverflowError):
        return None


def _sides(node: Any, *ops: str) -> tuple[Any, Any] | None:
    binary = node.get("BinaryExpr") if isinstance(node, dict) else None
    return (binary["left"], binary["right"]) if binary and binary.get("op") in ops else None


def _exactly(node: Any) -> Predicate:
    """Return the predicate equal to the condition, for nulls too."""
    [(kind, body)] = node.items()
    if kind == "BinaryExpr":
        return _binary(body["op"], body["left"], body["right"])
    if kind == "Function":
        return _function(body["function"], body["input"])
    raise _Unsupported


def _binary(op: str, left: Any, right: Any) -> Predicate:
    if op in ("And", "LogicalAnd"):
        return And((_exactly(left), _exactly(right)))
    if op in ("Or", "LogicalOr"):
        return Or((_exactly(left), _exactly(right)))
    if "Column" in left:
        return Comparison(left["Column"], _OPS[op], _value(right))
    return Comparison(right["Column"], mirrored(_OPS[op]), _value(left))


def _function(function: Any, inputs: list[Any]) -> Predicate:
    match function:
        case {"Boolean": "Not"}:
            return Not(_exactly(inputs[0]))
        case {"Boolean": "IsNull"}:
            return IsNull(inputs[0]["Column"])
        case {"Boolean": "IsNotNull"}:
            return IsNotNull(inputs[0]["Column"])
        case {"Boolean": {"IsIn": {"nulls_equal": False}}}:
            return In(inputs[0]["Column"], _values(inputs[1]))
        case {"Boolean": {"IsBetween": {"closed": "Both"}}}:
            return Between(inputs[0]["Column"], _value(inputs[1]), _value(inputs[2]))
        case {"StringExpr": "StartsWith"}:
            prefix = _value(inputs[1])
            if isinstance(prefix, str):
                return StartsWith(inputs[0]["Column"], prefix)
    raise _Unsupported


def _value(node: Any) -> Literal:
    match node["Literal"]:
        case {"Dyn": {"Int": int(value)}} | {"Dyn": {"Float": float(value)}}:
            return value
        case {"Scalar": {"Datetime": [int(count), str(unit), zone]}}:
            moment = _EPOCH + timedelta(microseconds=count * _MICROSECONDS[unit])
            return moment if zone is not None else moment.replace(tzinfo=None)
        case {"Scalar": {"Date": int(days)}}:
            return date(1970, 1, 1) + timedelta(days=days)
        case {"Scalar": dict(scalar)} if len(scalar) == 1:
            [(kind, value)] = scalar.items()
            if kind in _PLAIN and isinstance(value, str | bool | int | float):
                return value
    raise _Unsupported


def _values(node: Any) -> tuple[Literal, ...]:
    """A list is serialized as the bytes of an Arrow stream."""
    frame = pl.read_ipc_stream(bytes(node["Literal"]["Scalar"]["List"]))
    values = frame.to_series().to_list()
    if any(not isinstance(value, str | int | float | date) for value in values):
        raise _Unsupported
    return tuple(values)
