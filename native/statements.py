"""Statements of kernels become statements of C."""

from __future__ import annotations

import ast
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

from native.expressions import Code, Expressions
from native.types import INT, SMALL, Array, Bad, Scalar, Tuple, Type, c_name, tag

if TYPE_CHECKING:
    from native.program import Program

__all__ = ["Statements"]


class Statements(Expressions):
    """Translates the body of one function."""

    def __init__(self, program: Program, function: Callable[..., Any], returns: Type) -> None:
        super().__init__(program, function)
        self.returns = returns
        self.declared: dict[str, Type] = {}

    def body(self, statements: Sequence[ast.stmt]) -> None:
        """Translate statements one after the other."""
        for each in statements:
            method: Callable[[Any], None] | None = getattr(self, f"_do_{type(each).__name__.lower()}", None)
            if method is None:
                raise self.bad(each)
            try:
                method(each)
            except Bad as error:
                raise error if error.place else self.bad(each, str(error)) from error

    def _block(self, head: str, statements: Sequence[ast.stmt]) -> None:
        self.lines.append(f"{head} {{")
        self.body(statements)
        self.lines.append("}")

    def _do_expr(self, node: ast.Expr) -> None:
        if not isinstance(node.value, ast.Constant):
            self.lines.append(f"{self.code(node.value)[0]};")

    def _do_pass(self, _node: ast.Pass) -> None:
        return

    def _do_break(self, _node: ast.Break) -> None:
        self.lines.append("break;")

    def _do_continue(self, _node: ast.Continue) -> None:
        self.lines.append("continue;")

    def _do_return(self, node: ast.Return) -> None:
        if node.value is None:
            self.lines.append("return;")
            return
        self.lines.append(f"return {self.as_type(node, self.code(node.value), self.returns)};")

    def _do_annassign(self, node: ast.AnnAssign) -> None:
        if node.value is None:
            raise self.bad(node)
        self._store(node.target, self.code(node.value))

    def _do_assign(self, node: ast.Assign) -> None:
        if len(node.targets) == 1:
            target = node.targets[0]
            if isinstance(target, ast.Tuple) and isinstance(node.value, ast.Tuple):
                self._store_each(target, node.value)
            elif isinstance(target, ast.Subscript) and isinstance(target.slice, ast.Slice):
                self._store_slice(target, node.value)
            else:
                self._store(target, self.code(node.value))
            return
        code, kind = self.code(node.value)
        name = self.spare(code, kind)
        for each in node.targets:
            self._store(each, (name, kind))

    def _store_each(self, target: ast.Tuple, value: ast.Tuple) -> None:
        """All values are taken before the first is stored."""
        pairs = []
        for one, other in zip(target.elts, value.elts, strict=True):
            if isinstance(one, ast.Tuple) and isinstance(other, ast.Tuple):
                self._store_each(one, other)
                continue
            code, kind = self.code(other)
            pairs.append((one, (self.spare(code, kind), kind)))
        for one, stored in pairs:
            self._store(one, stored)

    def _store_slice(self, target: ast.Subscript, value: ast.expr) -> None:
        (part, kind), (code, other) = self.code(target), self.code(value)
        if other == kind:
            self.lines.append(f"{tag(kind)}_move({part}, {code});")
        elif isinstance(other, Scalar) and isinstance(kind, Array):
            self.lines.append(f"{tag(kind)}_fill({part}, {code});")
        else:
            raise self.bad(target)

    def _store(self, target: ast.expr, code: Code) -> None:
        text, kind = code
        if isinstance(target, ast.Name):
            self._store_name(target, code)
        elif isinstance(target, ast.Subscript):
            place, array = self.place(target)
            if not isinstance(kind, Scalar):
                raise self.bad(target)
            self.lines.append(f"{place} = ({array.element}_t)({text});")
        elif isinstance(target, ast.Tuple) and isinstance(kind, Tuple):
            name = self.spare(text, kind)
            for number, (each, part) in enumerate(zip(target.elts, kind.parts, strict=True)):
                self._store(each, (f"{name}.part{number}", part))
        else:
            raise self.bad(target)

    def _store_name(self, target: ast.Name, code: Code) -> None:
        name, (text, kind) = target.id, code
        if name not in self.variables:
            wide = self._widened(kind)
            self.variables[name] = self.declared[name] = wide
        self.lines.append(f"v_{name} = {self.as_type(target, (text, kind), self.variables[name])};")

    def _widened(self, kind: Type) -> Type:
        if isinstance(kind, Tuple):
            return self.program.tuple_type(tuple(map(self._widened, kind.parts)))
        return INT if kind == SMALL else kind

    def _do_augassign(self, node: ast.AugAssign) -> None:
        target: ast.expr = node.target
        read = ast.increment_lineno(ast.parse(ast.unparse(target), mode="eval"), node.lineno - 1).body
        value = ast.copy_location(ast.BinOp(read, node.op, node.value), node)
        ast.fix_missing_locations(value)
        self._store(target, self.code(value))

    def _do_if(self, node: ast.If) -> None:
        self._block(f"if ({self.truth(node.test)})", node.body)
        if node.orelse:
            self._block("else", node.orelse)

    def _do_while(self, node: ast.While) -> None:
        before = len(self.lines)
        condition = self.truth(node.test)
        if len(self.lines) != before or node.orelse:
            raise self.bad(node)
        self._block(f"while ({condition})", node.body)

    def _do_for(self, node: ast.For) -> None:
        if node.orelse or not isinstance(node.target, ast.Name):
            raise self.bad(node)
        if isinstance(node.iter, ast.Call) and self.value(node.iter.func) is range:
            self._range(node, node.target, node.iter)
        elif isinstance(node.iter, ast.Tuple):
            self._each_of(node, node.target, node.iter)
        else:
            self._elements(node, node.target)

    def _range(self, node: ast.For, target: ast.Name, call: ast.Call) -> None:
        bounds = [self.index(each) for each in call.args]
        start, stop = (["0", *bounds] if len(bounds) == 1 else bounds)[:2]
        step = bounds[2] if len(bounds) == 3 else "1"
        # a step is a negative constant, or positive
        sign = ">" if step.startswith("(-") else "<"
        end, by = self.spare(stop, INT), self.spare(step, INT)
        self.spares += 1
        at = f"s{self.spares}"
        self.lines.append(f"for (int64_t {at} = {start}; {at} {sign} {end}; {at} += {by}) {{")
        self._store_name(target, (at, INT))
        self.body(node.body)
        self.lines.append("}")

    def _each_of(self, node: ast.For, target: ast.Name, values: ast.Tuple) -> None:
        parts = [self.number(each) for each in values.elts]
        kind = parts[0][1]
        for _, other in parts:
            kind = self.joined(node, kind, other)
        self.spares += 1
        at, table = f"s{self.spares}", f"t{self.spares}"
        self.lines.append(f"{c_name(kind)} {table}[] = {{{', '.join(code for code, _ in parts)}}};")
        self.lines.append(f"for (int64_t {at} = 0; {at} < {len(parts)}; {at}++) {{")
        self._store_name(target, (f"{table}[{at}]", kind))
        self.body(node.body)
        self.lines.append("}")

    def _elements(self, node: ast.For, target: ast.Name) -> None:
        code, kind = self.code(node.iter)
        if not isinstance(kind, Array) or kind.dimensions != 1:
            raise self.bad(node)
        array = self.spare(code, kind)
        self.spares += 1
        at = f"s{self.spares}"
        self.lines.append(f"for (int64_t {at} = 0; {at} < {array}.size; {at}++) {{")
        self._store_name(target, (f"({c_name(kind.scalar)}){array}.data[{at}]", kind.scalar))
        self.body(node.body)
        self.lines.append("}")
