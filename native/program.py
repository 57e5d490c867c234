"""All kernels as one program in C: each function once for each combination of types that it is called with."""

from __future__ import annotations

import ast
import inspect
import textwrap
from collections.abc import Callable, Sequence
from typing import Any, get_type_hints

import numpy as np

from native.expressions import Code, Expressions
from native.statements import Statements
from native.types import INT, NOTHING, SMALL, WORD, Array, Bad, Scalar, Tuple, Type, annotated, c_name, tag

__all__ = ["Program"]

Function = Callable[..., Any]


class Program:
    """What has been translated so far."""

    def __init__(self, kernels: set[Function], natives: set[Function]) -> None:
        self._kernels = kernels
        self._natives = natives
        self._names: dict[tuple[Function, tuple[Type, ...]], tuple[str, Type]] = {}
        self._trees: dict[Function, ast.FunctionDef] = {}
        self._constants: dict[int, str] = {}
        self._tuples: dict[Tuple, str] = {}
        self.tables: list[str] = []
        self.types: list[str] = []
        self.heads: list[str] = []
        self.functions: list[str] = []
        self.tuple_type((WORD, WORD))  # what `native.h` returns

    def constant(self, value: np.ndarray, kind: Array) -> str:
        """A global array."""
        if id(value) not in self._constants:
            name = f"c_{len(self._constants)}"
            items = ", ".join(f"UINT64_C({int(each)})" if int(each) >= 0 else str(int(each)) for each in value)
            self.tables.append(f"static {kind.element}_t {name}_items[] = {{{items}}};")
            self.tables.append(f"#define {name} (({c_name(kind)}){{{name}_items, {value.size}}})")
            self._constants[id(value)] = name
        return self._constants[id(value)]

    def tuple_type(self, parts: tuple[Type, ...]) -> Tuple:
        """A tuple of some types, which is declared."""
        kind = Tuple(parts)
        if kind not in self._tuples:
            for each in parts:
                if isinstance(each, Tuple):
                    self.tuple_type(each.parts)
            self._tuples[kind] = tag(kind)
            fields = " ".join(f"{c_name(each)} part{place};" for place, each in enumerate(parts))
            self.types.append(f"typedef struct {{ {fields} }} {tag(kind)};")
        return kind

    def tuple_value(self, parts: Sequence[Code]) -> Code:
        """Some values as a tuple."""
        wide = tuple(INT if kind == SMALL else kind for _, kind in parts)
        kind = self.tuple_type(wide)
        return f"(({c_name(kind)}){{{', '.join(code for code, _ in parts)}}})", kind

    def call(self, caller: Expressions, node: ast.Call, function: Function, arguments: list[Code]) -> Code:
        """A call of another kernel, or of a function that is written in C."""
        if node.keywords:
            raise caller.bad(node)
        kinds = self.parameters(function, [kind for _, kind in arguments])
        name, returns = self.function(function, kinds)
        given = [caller.as_type(node, code, kind) for code, kind in zip(arguments, kinds, strict=True)]
        return f"{name}({', '.join(given)})", returns

    def parameters(self, function: Function, given: Sequence[Type]) -> tuple[Type, ...]:
        """The types of parameters: arrays are as they are given, numbers as they are annotated."""
        hints = get_type_hints(function)
        names = list(inspect.signature(function).parameters)
        if len(names) != len(given):
            raise Bad(f"{function.__name__} takes {len(names)} arguments")
        kinds: list[Type] = []
        for name, kind in zip(names, given, strict=True):
            own = annotated(hints[name]) if isinstance(kind, Scalar) else None
            kinds.append(own or (INT if kind == SMALL else kind))
        return tuple(kinds)

    def function(self, function: Function, kinds: tuple[Type, ...]) -> tuple[str, Type]:
        """The name in C of a function for some types, and what it returns."""
        key = function, kinds
        if key not in self._names:
            returns = self._returns(function)
            module = function.__module__.rpartition(".")[2]
            if function in self._natives:
                self._names[key] = f"native_{function.__name__.strip('_')}", returns
            elif function in self._kernels:
                self._names[key] = f"k{len(self._names)}_{module}_{function.__name__.strip('_')}", returns
                self._translate(function, kinds, *self._names[key])
            else:
                raise Bad(f"{function} is no kernel")
        return self._names[key]

    def _returns(self, function: Function) -> Type:
        kind = annotated(get_type_hints(function)["return"])
        if isinstance(kind, Tuple):
            return self._declared(kind)
        if kind is None:
            raise Bad(f"{function.__name__} returns one of several types")
        return kind

    def _declared(self, kind: Tuple) -> Tuple:
        for each in kind.parts:
            if isinstance(each, Tuple):
                self._declared(each)
        return self.tuple_type(kind.parts)

    def _translate(self, function: Function, kinds: tuple[Type, ...], name: str, returns: Type) -> None:
        tree = ast.parse(textwrap.dedent(inspect.getsource(function))).body[0]
        if not isinstance(tree, ast.FunctionDef):
            raise Bad(f"{function} is no function")
        ast.increment_lineno(tree, function.__code__.co_firstlineno - 1)
        body = Statements(self, function, returns)
        parameters = [each.arg for each in tree.args.args]
        body.variables.update(zip(parameters, kinds, strict=True))
        body.body(tree.body)
        given = ", ".join(f"{c_name(kind)} v_{each}" for each, kind in zip(parameters, kinds, strict=True)) or "void"
        own = f"{name}_body" if body.allocates and not _holds_array(returns) else name
        self.heads.append(f"static {c_name(returns)} {own}({given});")
        zero = [f"{c_name(kind)} v_{each};" for each, kind in body.declared.items()]
        self.functions.append("\n".join([f"static {c_name(returns)} {own}({given}) {{", *zero, *body.lines, "}"]))
        if own != name:
            self._shell(name, own, returns, given, ", ".join(f"v_{each}" for each in parameters))

    def _shell(self, name: str, own: str, returns: Type, given: str, arguments: str) -> None:
        """What a function allocates is freed when it returns."""
        self.heads.append(f"static {c_name(returns)} {name}({given});")
        before, after = "block *mark = allocated();", "release(mark);"
        if returns == NOTHING:
            body = f"{before} {own}({arguments}); {after}"
        else:
            body = f"{before} {c_name(returns)} value = {own}({arguments}); {after} return value;"
        self.functions.append(f"static {c_name(returns)} {name}({given}) {{ {body} }}")


def _holds_array(kind: Type) -> bool:
    return isinstance(kind, Array) or (isinstance(kind, Tuple) and any(map(_holds_array, kind.parts)))
