"""The schema of a Parquet file: its elements as written, and its leaves, the columns that have bytes."""

from __future__ import annotations

from collections.abc import Sequence
from enum import IntEnum
from typing import NamedTuple

from windrow.errors import Damaged

__all__ = ["Leaf", "LogicalType", "PhysicalType", "Repetition", "SchemaElement", "leaves_of", "subtree_end"]

MAX_NESTING = 128
CONVERTED_LIST = 3


class PhysicalType(IntEnum):
    """How the values of a column are laid down."""

    BOOLEAN = 0
    INT32 = 1
    INT64 = 2
    INT96 = 3
    FLOAT = 4
    DOUBLE = 5
    BYTE_ARRAY = 6
    FIXED_LEN_BYTE_ARRAY = 7


class Repetition(IntEnum):
    """How often a field can occur in its parent: once, at most once, any number of times."""

    REQUIRED = 0
    OPTIONAL = 1
    REPEATED = 2


class LogicalType(NamedTuple):
    """What the values of a column mean; only the parameters that belong to `name` are set."""

    name: str
    unit: str | None = None
    is_adjusted_to_utc: bool | None = None
    bit_width: int | None = None
    is_signed: bool | None = None
    precision: int | None = None
    scale: int | None = None


def _integer(bit_width: int, *, signed: bool) -> LogicalType:
    return LogicalType("INTEGER", bit_width=bit_width, is_signed=signed)


# The meaning of converted types, which came before logical types. Decimals are not here: they have parameters.
CONVERTED_TYPES = {
    0: LogicalType("STRING"),
    1: LogicalType("MAP"),
    2: LogicalType("MAP"),
    CONVERTED_LIST: LogicalType("LIST"),
    4: LogicalType("ENUM"),
    6: LogicalType("DATE"),
    7: LogicalType("TIME", unit="MILLIS", is_adjusted_to_utc=True),
    8: LogicalType("TIME", unit="MICROS", is_adjusted_to_utc=True),
    9: LogicalType("TIMESTAMP", unit="MILLIS", is_adjusted_to_utc=True),
    10: LogicalType("TIMESTAMP", unit="MICROS", is_adjusted_to_utc=True),
    **{11 + power: _integer(8 << power, signed=False) for power in range(4)},
    **{15 + power: _integer(8 << power, signed=True) for power in range(4)},
    19: LogicalType("JSON"),
    20: LogicalType("BSON"),
    21: LogicalType("INTERVAL"),
}
CONVERTED_DECIMAL = 5

# What a plain number is anyway.
_PLAIN = {PhysicalType.INT32: _integer(32, signed=True), PhysicalType.INT64: _integer(64, signed=True)}


class SchemaElement(NamedTuple):
    """One element of the schema as the file has it; `None` stands for what the file does not say."""

    name: str
    field_id: int | None = None
    physical_type: PhysicalType | None = None
    type_length: int | None = None
    repetition: Repetition | None = None
    num_children: int | None = None
    converted_type: int | None = None
    scale: int | None = None
    precision: int | None = None
    logical_type: LogicalType | None = None

    @property
    def meaning(self) -> LogicalType | None:
        """What the values mean, in whichever way the file says it; None if they are just numbers or bytes."""
        meaning = self.logical_type
        if meaning is None and self.converted_type == CONVERTED_DECIMAL:
            meaning = LogicalType("DECIMAL", precision=self.precision, scale=self.scale or 0)
        if meaning is None and self.converted_type is not None:
            meaning = CONVERTED_TYPES.get(self.converted_type)
        plain = self.physical_type is not None and meaning == _PLAIN.get(self.physical_type)
        return None if plain else meaning

    @property
    def is_leaf(self) -> bool:
        """Whether the element is a column with values, not a group."""
        return self.physical_type is not None and not self.num_children

    @property
    def is_list(self) -> bool:
        """Whether the element is a group that is declared a list."""
        named = self.logical_type is not None and self.logical_type.name == "LIST"
        return not self.is_leaf and (named or self.converted_type == CONVERTED_LIST)


class Leaf(NamedTuple):
    """A column that has chunks: its place in every row group, its path and its levels."""

    index: int  # type: ignore[assignment]  # nobody searches a leaf as the tuple that it is
    path: tuple[str, ...]
    element: SchemaElement
    root: SchemaElement
    max_repetition: int
    max_definition: int
    repeated_groups: int
    single_child: bool
    """Whether every group on the path has this one child alone."""

    @property
    def list_dimensions(self) -> int:
        """How deep the lists nest when the field is nothing but lists around this leaf; 0 for anything else."""
        return self.repeated_groups if self.root.is_list and self.single_child else 0


class _Group(NamedTuple):
    """An open group: what its children inherit from it."""

    path: tuple[str, ...] = ()
    root: SchemaElement | None = None
    repetition: int = 0
    definition: int = 0
    repeated_groups: int = 0
    single_child: bool = True

    def group(self, element: SchemaElement) -> _Group:
        """What the children of a group inside of this one inherit."""
        repeated = element.repetition is Repetition.REPEATED
        return _Group(
            (*self.path, element.name),
            self.root or element,
            self.repetition + repeated,
            self.definition + (element.repetition is not Repetition.REQUIRED),
            self.repeated_groups + repeated,
            self.single_child and element.num_children == 1,
        )

    def leaf(self, index: int, element: SchemaElement) -> Leaf:
        """A leaf of this group."""
        return Leaf(
            index,
            (*self.path, element.name),
            element,
            self.root or element,
            self.repetition + (element.repetition is Repetition.REPEATED),
            self.definition + (element.repetition is not Repetition.REQUIRED),
            self.repeated_groups,
            self.single_child,
        )


def subtree_end(schema: Sequence[SchemaElement], start: int) -> int:
    """The position after the last element that belongs to the one at `start`."""
    left = 1
    while left:
        left += (schema[start].num_children or 0) - 1
        start += 1
    return start


def leaves_of(schema: Sequence[SchemaElement], *, name: str) -> tuple[Leaf, ...]:
    """The leaves of a schema in the order of the chunks of every row group."""
    if not schema:
        raise Damaged(f"{name}: the schema is empty, not even a root; write the file again")
    group, left = _Group(), schema[0].num_children or 0
    outer: list[tuple[_Group, int]] = []
    leaves: list[Leaf] = []
    for element in schema[1:]:
        while left == 0 and outer:
            group, left = outer.pop()
        _check(element, left, len(outer), name)
        left -= 1
        if element.is_leaf:
            leaves.append(group.leaf(len(leaves), element))
        else:
            outer.append((group, left))
            group, left = group.group(element), element.num_children or 0
    if left or any(more for _, more in outer):
        raise Damaged(f"{name}: the schema ends before all children that its groups announce; write the file again")
    return tuple(leaves)


def _check(element: SchemaElement, left: int, depth: int, name: str) -> None:
    if left and element.repetition is not None and depth < MAX_NESTING:
        return
    problem = f"is nested more than {MAX_NESTING} groups deep"
    if not left:
        problem = "belongs to no group"
    elif element.repetition is None:
        problem = "says nothing about its repetition"
    raise Damaged(f"{name}: schema element {element.name!r} {problem}; write the file again")
