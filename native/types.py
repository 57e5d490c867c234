"""The types of kernels: numbers, arrays and tuples, out of annotations, and their names in C."""

from __future__ import annotations

import itertools
import types
from dataclasses import dataclass
from typing import Any, TypeVar, Union, get_args, get_origin

import numpy as np

__all__ = [
    "FLOAT",
    "INT",
    "NOTHING",
    "SMALL",
    "TRUTH",
    "WORD",
    "Array",
    "Bad",
    "Scalar",
    "Tuple",
    "Type",
    "annotated",
    "c_name",
    "choices",
    "tag",
]


class Bad(Exception):
    """A kernel uses what is not translated, at a place in a file where that is clear."""

    def __init__(self, why: str, place: str = "") -> None:
        super().__init__(f"{place}: {why}" if place else why)
        self.place = place


@dataclass(frozen=True)
class Scalar:
    """A number. A small one is not negative and below 2**63, so that it goes together with both kinds of integers."""

    name: str


INT, WORD, SMALL, FLOAT, TRUTH, NOTHING = map(Scalar, ("int", "word", "small", "float", "truth", "nothing"))


@dataclass(frozen=True)
class Array:
    """A contiguous array of one or two dimensions."""

    element: str
    dimensions: int = 1

    @property
    def scalar(self) -> Scalar:
        """What an element is when it is loaded."""
        if self.element == "uint64":
            return WORD
        if self.element == "float64":
            return FLOAT
        return SMALL if self.element in ("uint8", "uint16", "uint32", "bool") else INT


@dataclass(frozen=True)
class Tuple:
    """Several values."""

    parts: tuple[Type, ...]


Type = Scalar | Array | Tuple

_C = {INT: "int64_t", WORD: "uint64_t", SMALL: "int64_t", FLOAT: "double", TRUTH: "int64_t", NOTHING: "void"}
_ANNOTATED: dict[Any, Scalar] = {
    int: INT,
    float: FLOAT,
    bool: TRUTH,
    type(None): NOTHING,
    np.uint64: WORD,
    np.uint32: WORD,
    np.int64: INT,
    np.int32: INT,
    np.uint8: WORD,
    np.int8: INT,
}


def tag(kind: Type) -> str:
    """The type as a part of a name in C."""
    if isinstance(kind, Scalar):
        return kind.name
    if isinstance(kind, Array):
        return kind.element if kind.dimensions == 1 else f"{kind.element}_2"
    return f"tuple{len(kind.parts)}_" + "_".join(map(tag, kind.parts))


def c_name(kind: Type) -> str:
    """The type in C."""
    return _C[kind] if isinstance(kind, Scalar) else tag(kind) + ("_array" if isinstance(kind, Array) else "")


def annotated(hint: Any, bound: dict[Any, Any] | None = None) -> Type | None:
    """The type of an annotation; None for numbers of several types, which depend on the caller."""
    if isinstance(hint, TypeVar):
        return annotated((bound or {})[hint])
    if hint in _ANNOTATED:
        return _ANNOTATED[hint]
    alias = getattr(get_origin(hint), "__value__", None)
    if alias is not None:  # numpy 2.5 made `NDArray` an alias of its own kind
        return annotated(alias[get_args(hint)], bound)
    if get_origin(hint) in (Union, types.UnionType):
        return None
    if get_origin(hint) is tuple:
        parts = [annotated(each, bound) for each in get_args(hint)]
        return Tuple(tuple(each for each in parts if each is not None))
    if get_origin(hint) is np.ndarray:
        shape, dtype = get_args(hint)
        element = np.dtype(get_args(dtype)[0]).name
        return Array(element, 2 if get_args(shape) == (int, int) else 1)
    raise Bad(f"no type for the annotation {hint}")


def choices(hints: dict[str, Any]) -> list[dict[Any, Any]]:
    """All ways to choose types for the type variables of a signature."""
    variables: dict[Any, None] = {}
    for hint in hints.values():
        for each in (hint, *get_args(hint)):
            if isinstance(each, TypeVar):
                variables[each] = None
    options = [each.__constraints__ for each in variables]
    return [dict(zip(variables, chosen, strict=True)) for chosen in itertools.product(*options)]
