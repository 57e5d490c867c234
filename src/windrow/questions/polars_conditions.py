"""From a condition of Polars to a predicate that every selected row fulfils: what cannot be said is left out.

Polars writes an expression down as JSON, of which no shape is promised. Whatever looks otherwise than expected says
nothing here, and then more is read: Polars filters every row by itself.
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

__all__ = ["said_by_polars"]

_OPS = comparisons_of("polars")
_PLAIN = ("String", "Boolean", *(f"{sign}Int{bits}" for sign in ("", "U") for bits in (8, 16, 32, 64)), "Float64")
_MICROSECONDS = {"Microseconds": 1, "Milliseconds": 1000}
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


class _Unsaid(Exception):
    """A part that is not understood."""


def said_by_polars(condition: pl.Expr) -> Predicate | None:
    """Return what a condition says, or None when that is nothing."""
    try:
        tree = json.loads(condition.meta.serialize(format="json"))
    except Exception:  # an expression with Python in it cannot be written down, whatever that raises
        return None
    return _said(tree)


def _said(node: Any) -> Predicate | None:
    parts = _sides(node, "And", "LogicalAnd")
    if parts is not None:
        return all_of([_said(part) for part in parts])
    parts = _sides(node, "Or", "LogicalOr")
    if parts is not None:
        return any_of([_said(part) for part in parts])
    try:
        return _exactly(node)
    except (_Unsaid, InvalidInput, KeyError, TypeError, ValueError, IndexError, OverflowError):
        return None


def _sides(node: Any, *ops: str) -> tuple[Any, Any] | None:
    binary = node.get("BinaryExpr") if isinstance(node, dict) else None
    return (binary["left"], binary["right"]) if binary and binary.get("op") in ops else None


def _exactly(node: Any) -> Predicate:
    """Return the predicate that means the same, for nulls too."""
    [(kind, body)] = node.items()
    if kind == "BinaryExpr":
        return _binary(body["op"], body["left"], body["right"])
    if kind == "Function":
        return _function(body["function"], body["input"])
    raise _Unsaid


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
    raise _Unsaid


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
    raise _Unsaid


def _values(node: Any) -> tuple[Literal, ...]:
    """A list is written down as the bytes of an Arrow stream."""
    frame = pl.read_ipc_stream(bytes(node["Literal"]["Scalar"]["List"]))
    values = frame.to_series().to_list()
    if any(not isinstance(value, str | int | float | date) for value in values):
        raise _Unsaid
    return tuple(values)
