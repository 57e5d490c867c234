"""What Python sees of kernels: functions that take arrays and numbers, and find the variant for their types."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterator
from typing import Any, get_type_hints

from native.program import Program
from native.types import FLOAT, NOTHING, TRUTH, WORD, Array, Bad, Scalar, Tuple, Type, annotated, c_name, choices
from native.writes import written_parameters

__all__ = ["can_be_called", "method_name", "wrapper"]

_CODES = {
    "uint8": "u1",
    "bool": "u1",
    "uint16": "u2",
    "uint32": "u4",
    "uint64": "u8",
    "int8": "i1",
    "int32": "i4",
    "int64": "i8",
}
_TAKES = {WORD: "taken_word", FLOAT: "taken_float", TRUTH: "taken_truth"}


def can_be_called(function: Callable[..., Any]) -> bool:
    """Whether Python can call a kernel; numbers of several types are for other kernels alone."""
    hints = get_type_hints(function)
    return all(annotated(hint, bound) is not None for bound in choices(hints) for hint in hints.values())


def method_name(function: Callable[..., Any]) -> str:
    """The name by which Python calls a kernel."""
    return f"{function.__module__.rpartition('.')[2]}_{function.__name__}"


def wrapper(program: Program, function: Callable[..., Any]) -> tuple[str, str]:
    """The name by which Python calls a kernel, and the function in C that it calls."""
    hints = get_type_hints(function)
    name = method_name(function)
    parameters = list(inspect.signature(function).parameters)
    written, variants = written_parameters(function), []
    for bound in choices(hints):
        kinds = tuple(_parameter(program, annotated(hints[each], bound)) for each in parameters)
        variants.append((kinds, *program.function(function, kinds)))
    leaves = list(_leaves(variants[0][0]))
    lines = [
        f"static PyObject *py_{name}(PyObject *self, PyObject *const *arguments, Py_ssize_t count) {{",
        f"taken values[{max(len(leaves), 1)}]; memset(values, 0, sizeof values); PyObject *result = NULL; (void)self;",
        f'if (count != {len(parameters)}) return refused_count("{name}", count, {len(parameters)});',
    ]
    for number, (path, kind) in enumerate(leaves):
        more = _more(kind, is_written=parameters[path[0]] in written)
        lines.append(f"if (!{_take(kind)}(&values[{number}], {_item(path)}{more})) goto done;")
    for kinds, called, returns in variants:
        lines.append(_variant(name, kinds, called, returns, leaves))
    lines.append(f'refused_types("{name}", values, {len(leaves)});')
    lines.append(f"done: given_back(values, {len(leaves)}); return result;\n}}")
    return name, "\n".join(lines)


def _parameter(program: Program, kind: Type | None) -> Type:
    if kind is None:
        raise Bad("a kernel that Python calls takes numbers of one type")
    if isinstance(kind, Tuple):
        return program.tuple_type(kind.parts)
    return kind


def _leaves(kinds: tuple[Type, ...], before: tuple[int, ...] = ()) -> Iterator[tuple[tuple[int, ...], Type]]:
    for place, kind in enumerate(kinds):
        if isinstance(kind, Tuple):
            yield from _leaves(kind.parts, (*before, place))
        else:
            yield (*before, place), kind


def _item(path: tuple[int, ...]) -> str:
    item = f"arguments[{path[0]}]"
    for place in path[1:]:
        item = f"part_of({item}, {place})"
    return item


def _take(kind: Type) -> str:
    return "taken_array" if isinstance(kind, Array) else _TAKES.get(kind, "taken_int")  # type: ignore[arg-type]


def _more(kind: Type, *, is_written: bool) -> str:
    return f", {kind.dimensions}, {int(is_written)}" if isinstance(kind, Array) else ""


def _given(kind: Type, numbers: Iterator[int]) -> str:
    if isinstance(kind, Tuple):
        return f"({c_name(kind)}){{{', '.join(_given(each, numbers) for each in kind.parts)}}}"
    value = f"values[{next(numbers)}]"
    if isinstance(kind, Array):
        sizes = f"{value}.size" if kind.dimensions == 1 else f"{value}.rows, {value}.columns"
        return f"({c_name(kind)}){{{value}.data, {sizes}}}"
    return f"{value}.{'as_float' if kind == FLOAT else 'as_word' if kind == WORD else 'as_int'}"


def _variant(
    name: str, kinds: tuple[Type, ...], called: str, returns: Type, leaves: list[tuple[tuple[int, ...], Type]]
) -> str:
    """Call one variant if the arrays are those that it takes."""
    own = [kind for _, kind in _leaves(kinds)]
    tests = [
        f"is_{_CODES[kind.element]}(&values[{number}])" for number, kind in enumerate(own) if isinstance(kind, Array)
    ]
    numbers = iter(range(len(leaves)))
    call = f"{called}({', '.join(_given(kind, numbers) for kind in kinds)})"
    assigned = call if returns == NOTHING else f"value = {call}"
    declared = "" if returns == NOTHING else f"{c_name(returns)} value; memset(&value, 0, sizeof value);"
    return (
        f"if ({' && '.join(tests) or '1'}) {{ scope here; {declared} PyThreadState *state = PyEval_SaveThread();\n"
        f"enter(&here); int trouble = setjmp(here.escape); if (!trouble) {assigned};\n"
        f"leave(&here); PyEval_RestoreThread(state);\n"
        f'if (trouble) refused("{name}", trouble); else result = {_result("value", returns)}; goto done; }}'
    )


def _result(value: str, kind: Type) -> str:
    if kind == NOTHING:
        return "none()"
    if isinstance(kind, Tuple):
        parts = ", ".join(_result(f"{value}.part{place}", each) for place, each in enumerate(kind.parts))
        return f"tuple_of({len(kind.parts)}, {parts})"
    if not isinstance(kind, Scalar):
        raise Bad("a kernel that Python calls writes into arrays that it is given, and returns none")
    if kind == FLOAT:
        return f"PyFloat_FromDouble({value})"
    if kind == WORD:
        return f"PyLong_FromUnsignedLongLong({value})"
    return f"{'PyBool_FromLong' if kind == TRUTH else 'PyLong_FromLongLong'}({value})"
