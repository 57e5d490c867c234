"""Expressions of kernels become expressions of C."""

from __future__ import annotations

import ast
from collections.abc import Callable
from types import ModuleType
from typing import TYPE_CHECKING, Any

import numpy as np

from native.types import FLOAT, INT, NOTHING, SMALL, TRUTH, WORD, Array, Bad, Scalar, Tuple, Type, c_name, tag

if TYPE_CHECKING:
    from native.program import Program

__all__ = ["Expressions"]

_OPERATORS: dict[type[ast.AST], str] = {
    ast.Add: "+",
    ast.Sub: "-",
    ast.Mult: "*",
    ast.BitAnd: "&",
    ast.BitOr: "|",
    ast.BitXor: "^",
    ast.Eq: "==",
    ast.NotEq: "!=",
    ast.Lt: "<",
    ast.LtE: "<=",
    ast.Gt: ">",
    ast.GtE: ">=",
}
_CASTS = {"uint8": WORD, "uint32": WORD, "uint64": WORD, "int8": INT, "int32": INT, "int64": INT, "float64": FLOAT}
_C_CASTS = {name: f"{name}_t" for name in _CASTS} | {"float64": "double"}
_ALLOCATIONS = ("empty", "zeros", "full", "empty_like")
_LARGEST = 1 << 63

Code = tuple[str, Type]


def _is_plain(node: ast.expr) -> bool:
    """Whether an expression is a comparison of names and constants."""
    return isinstance(node, ast.Compare) and all(
        isinstance(each, ast.Name | ast.Constant | ast.Attribute) for each in (node.left, *node.comparators)
    )


class Expressions:
    """Translates the expressions of one function, whose variables have types."""

    def __init__(self, program: Program, function: Callable[..., Any]) -> None:
        self.program = program
        self.globals = function.__globals__
        self.file = function.__code__.co_filename
        self.variables: dict[str, Type] = {}
        self.allocates = False
        self.lines: list[str] = []
        self.spares = 0

    def code(self, node: ast.expr) -> Code:
        """An expression in C and its type."""
        method: Callable[[Any], Code] | None = getattr(self, f"_{type(node).__name__.lower()}", None)
        if method is None:
            raise self.bad(node)
        return method(node)

    def number(self, node: ast.expr) -> tuple[str, Scalar]:
        """An expression that must be a number."""
        code, kind = self.code(node)
        if not isinstance(kind, Scalar):
            raise self.bad(node, "must be a number")
        return code, kind

    def index(self, node: ast.expr) -> str:
        """An expression as an index."""
        code, kind = self.number(node)
        return code if kind in (INT, SMALL, TRUTH) else f"(int64_t)({code})"

    def bad(self, node: ast.AST, why: str = "is not translated") -> Bad:
        """The error that names a piece of source."""
        text = ast.unparse(node).partition("\n")[0]
        return Bad(f"{text} {why}", f"{self.file}:{getattr(node, 'lineno', '?')}")

    def joined(self, node: ast.AST, one: Type, other: Type) -> Scalar:
        """The type of two numbers together."""
        pair = {one, other} - {SMALL, TRUTH}
        if FLOAT in pair:
            return FLOAT
        if len(pair) == 2 or not all(isinstance(each, Scalar) for each in pair):
            raise self.bad(node, f"puts {one} and {other} together")
        return pair.pop() if pair else SMALL  # type: ignore[return-value]

    def literal(self, node: ast.AST, value: Any) -> Code:
        """A constant."""
        if isinstance(value, bool | np.bool_):
            return str(int(value)), TRUTH
        if isinstance(value, float | np.floating):
            return repr(float(value)), FLOAT
        if isinstance(value, np.unsignedinteger) or (isinstance(value, int) and value >= _LARGEST):
            return f"UINT64_C({int(value)})", WORD
        if isinstance(value, int | np.integer):
            return (f"INT64_C({value})", SMALL) if value >= 0 else (f"(-INT64_C({-value}))", INT)
        if isinstance(value, np.ndarray):
            kind = Array(value.dtype.name)
            return self.program.constant(value, kind), kind
        raise self.bad(node, f"is {type(value).__name__}, which is not translated")

    def value(self, node: ast.expr) -> Any:
        """What a global name, or an attribute of a global module, stands for."""
        if isinstance(node, ast.Attribute) and isinstance(self.value(node.value), ModuleType):
            return getattr(self.value(node.value), node.attr)
        if isinstance(node, ast.Name) and node.id not in self.variables:
            builtins = self.globals["__builtins__"]
            named = builtins if isinstance(builtins, dict) else vars(builtins)
            return self.globals.get(node.id, named.get(node.id))
        return None

    def spare(self, code: str, kind: Type) -> str:
        """A variable for an expression that is used several times."""
        self.spares += 1
        self.lines.append(f"{c_name(kind)} s{self.spares} = {code};")
        return f"s{self.spares}"

    def as_type(self, node: ast.AST, code: Code, wanted: Type) -> str:
        """An expression that is stored where a type is expected."""
        text, kind = code
        if kind == wanted:
            return text
        if isinstance(kind, Tuple) and isinstance(wanted, Tuple) and len(kind.parts) == len(wanted.parts):
            name = self.spare(text, kind)
            parts = [
                self.as_type(node, (f"{name}.part{place}", part), goal)
                for place, (part, goal) in enumerate(zip(kind.parts, wanted.parts, strict=True))
            ]
            return f"({c_name(wanted)}){{{', '.join(parts)}}}"
        if isinstance(kind, Scalar) and isinstance(wanted, Scalar):
            fits = kind in (SMALL, TRUTH) or wanted == FLOAT or {kind, wanted} <= {INT, SMALL, TRUTH}
            if fits and wanted != NOTHING:
                return f"({c_name(wanted)})({text})"
        raise self.bad(node, f"gives {kind} where {wanted} is expected")

    def _constant(self, node: ast.Constant) -> Code:
        return self.literal(node, node.value)

    def _name(self, node: ast.Name) -> Code:
        if node.id in self.variables:
            return f"v_{node.id}", self.variables[node.id]
        return self.literal(node, self.value(node))

    def _attribute(self, node: ast.Attribute) -> Code:
        value = self.value(node)
        if value is not None:
            return self.literal(node, value)
        code, kind = self.code(node.value)
        if isinstance(kind, Array) and node.attr == "size":
            return (f"{code}.size", INT) if kind.dimensions == 1 else (f"({code}.rows * {code}.columns)", INT)
        if isinstance(kind, Array) and node.attr == "itemsize":
            return f"(int64_t)sizeof(*{code}.data)", SMALL
        raise self.bad(node)

    def _subscript(self, node: ast.Subscript) -> Code:
        base = node.value
        number = node.slice.value if isinstance(node.slice, ast.Constant) else None
        if isinstance(base, ast.Attribute) and base.attr == "shape" and isinstance(number, int):
            code, kind = self.code(base.value)
            return f"{code}.{('rows', 'columns')[number]}", INT
        code, kind = self.code(base)
        if isinstance(kind, Tuple):
            if not isinstance(number, int):
                raise self.bad(node)
            return f"{code}.part{number}", kind.parts[number]
        if isinstance(node.slice, ast.Slice):
            return self._slice(code, kind, node.slice), kind
        if isinstance(kind, Array) and kind.dimensions == 2 and not isinstance(node.slice, ast.Tuple):
            return f"{tag(kind)}_row({code}, {self.index(node.slice)})", Array(kind.element)
        place, kind = self.place(node)
        scalar = kind.scalar
        return f"({c_name(scalar)}){place}", scalar

    def place(self, node: ast.Subscript) -> tuple[str, Array]:
        """An element of an array, to be read or to be written."""
        code, kind = self.code(node.value)
        if not isinstance(kind, Array):
            raise self.bad(node)
        if kind.dimensions == 1:
            return f"{code}.data[AT({self.index(node.slice)}, {code}.size)]", kind
        if not isinstance(node.slice, ast.Tuple):
            raise self.bad(node)
        row, column = map(self.index, node.slice.elts)
        return f"{code}.data[AT({row}, {code}.rows) * {code}.columns + AT({column}, {code}.columns)]", kind

    def _slice(self, code: str, kind: Type, part: ast.Slice) -> str:
        if not isinstance(kind, Array) or kind.dimensions != 1 or part.step:
            raise self.bad(part)
        low = self.index(part.lower) if part.lower else "0"
        high = self.index(part.upper) if part.upper else f"{code}.size"
        return f"{tag(kind)}_slice({code}, {low}, {high})"

    def _binop(self, node: ast.BinOp) -> Code:
        (left, one), (right, other) = self.number(node.left), self.number(node.right)
        if isinstance(node.op, ast.LShift | ast.RShift):
            return self._shift(node, left, one, right)
        if isinstance(node.op, ast.Pow):
            return f"ldexp(1.0, (int)({right}))", FLOAT
        if isinstance(node.op, ast.Div):
            return f"((double)({left}) / (double)({right}))", FLOAT
        kind = self.joined(node, one, other)
        if isinstance(node.op, ast.FloorDiv | ast.Mod):
            name = "divided" if isinstance(node.op, ast.FloorDiv) else "remainder_of"
            return f"{name}_{'word' if kind == WORD else 'int'}({left}, {right})", kind
        if type(node.op) not in _OPERATORS:
            raise self.bad(node)
        if kind in (SMALL, TRUTH) and isinstance(node.op, ast.Sub):
            kind = INT
        cast = f"({c_name(kind)})"
        return f"({cast}({left}) {_OPERATORS[type(node.op)]} {cast}({right}))", kind

    def _shift(self, node: ast.BinOp, left: str, kind: Scalar, right: str) -> Code:
        if kind == FLOAT:
            raise self.bad(node)
        kind = SMALL if kind == TRUTH else kind
        if isinstance(node.op, ast.LShift):
            return f"({c_name(kind)})((uint64_t)({left}) << ({right}))", kind
        return f"(({c_name(kind)})({left}) >> ({right}))", kind

    def _unaryop(self, node: ast.UnaryOp) -> Code:
        if isinstance(node.op, ast.Not):
            return f"!({self.truth(node.operand)})", TRUTH
        code, kind = self.number(node.operand)
        if isinstance(node.op, ast.USub):
            if kind == WORD:
                raise self.bad(node)
            return f"(-({code}))", kind if kind == FLOAT else INT
        if isinstance(node.op, ast.Invert) and kind != FLOAT:
            return f"(~({code}))", kind if kind == WORD else INT
        raise self.bad(node)

    def truth(self, node: ast.expr) -> str:
        """An expression as a condition."""
        return self.number(node)[0]

    def _boolop(self, node: ast.BoolOp) -> Code:
        sign = "&" if isinstance(node.op, ast.And) else "|"
        # a branch may be guessed wrong; where both sides are cheap and safe there is none
        sign = f" {sign} " if all(map(_is_plain, node.values)) else f" {sign}{sign} "
        return "(" + sign.join(f"({self.truth(each)})" for each in node.values) + ")", TRUTH

    def _compare(self, node: ast.Compare) -> Code:
        parts, left = [], node.left
        for operator, right in zip(node.ops, node.comparators, strict=True):
            if isinstance(operator, ast.In | ast.NotIn) and isinstance(right, ast.Tuple):
                any_of = " || ".join(self._compared(node, ast.Eq(), left, each) for each in right.elts)
                parts.append(f"{'!' if isinstance(operator, ast.NotIn) else ''}({any_of})")
            else:
                parts.append(self._compared(node, operator, left, right))
            left = right
        return f"({' && '.join(parts)})", TRUTH

    def _compared(self, node: ast.Compare, operator: ast.cmpop, left: ast.expr, right: ast.expr) -> str:
        (one, first), (other, second) = self.number(left), self.number(right)
        cast = c_name(self.joined(node, first, second))
        if type(operator) not in _OPERATORS:
            raise self.bad(node)
        return f"(({cast})({one}) {_OPERATORS[type(operator)]} ({cast})({other}))"

    def _ifexp(self, node: ast.IfExp) -> Code:
        (body, one), (other, second) = self.code(node.body), self.code(node.orelse)
        kind = one if one == second else self.joined(node, one, second)
        return f"(({self.truth(node.test)}) ? {body} : {other})", kind

    def _tuple(self, node: ast.Tuple) -> Code:
        parts = [self.code(each) for each in node.elts]
        return self.program.tuple_value(parts)

    def _call(self, node: ast.Call) -> Code:
        target = self.value(node.func)
        if target in (min, max):
            return self._extreme(node, "least" if target is min else "greatest")
        if target is len:
            code, kind = self.code(node.args[0])
            return f"{code}.{'size' if isinstance(kind, Array) and kind.dimensions == 1 else 'rows'}", INT
        if target in (bool, int, float):
            code, kind = self.number(node.args[0])
            names = {bool: "bool", int: "int64", float: "float64"}
            return (f"(({code}) != 0)", TRUTH) if target is bool else self._cast(code, names[target])
        if target is not None and getattr(target, "__module__", "") == "numpy":
            return self._numpy(node, target)
        if target is not None:
            return self.program.call(self, node, target, [self.code(each) for each in node.args])
        if isinstance(node.func, ast.Attribute):
            return self._method(node, node.func)
        raise self.bad(node)

    def _cast(self, code: str, name: str) -> Code:
        return f"({c_name(_CASTS[name])})({_C_CASTS[name]})({code})", _CASTS[name]

    def _numpy(self, node: ast.Call, target: Any) -> Code:
        name = target.__name__
        if name in _CASTS:
            return self._cast(self.number(node.args[0])[0], name)
        if name not in _ALLOCATIONS:
            raise self.bad(node)
        self.allocates = True
        if name == "empty_like":
            code, kind = self.code(node.args[0])
            return f"{tag(kind)}_new({code}.size)", kind
        dtype = self.value(node.args[-1])
        shape = node.args[0].elts if isinstance(node.args[0], ast.Tuple) else [node.args[0]]
        kind = Array(np.dtype(dtype).name, len(shape))
        sizes = ", ".join(map(self.index, shape))
        if name == "full":
            return f"{tag(kind)}_full({sizes}, ({kind.element}_t)({self.number(node.args[1])[0]}))", kind
        return f"{tag(kind)}_{'zeros' if name == 'zeros' else 'new'}({sizes})", kind

    def _extreme(self, node: ast.Call, name: str) -> Code:
        code, kind = self.number(node.args[0])
        for each in node.args[1:]:
            other, second = self.number(each)
            kind = self.joined(node, kind, second)
            code = f"{name}_{kind.name if kind in (WORD, FLOAT) else 'int'}({code}, {other})"
        return code, kind

    def _method(self, node: ast.Call, function: ast.Attribute) -> Code:
        code, kind = self.code(function.value)
        if isinstance(kind, Array) and function.attr == "sort":
            return f"{tag(kind)}_sort({code})", NOTHING
        if isinstance(kind, Array) and function.attr == "copy":
            self.allocates = True
            return f"{tag(kind)}_copy({code})", kind
        if isinstance(kind, Array) and kind.dimensions == 2 and function.attr == "reshape":
            return f"{tag(kind)}_flat({code})", Array(kind.element)
        raise self.bad(node)
