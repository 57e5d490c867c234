"""The columns of a merge: the union of the inputs' columns, and where their chunks are."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import groupby

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from windrow.errors import InvariantViolation
from windrow.merging.inputs import Input
from windrow.model.sort_schema import SortSchema
from windrow.model.widening import widened
from windrow.parquet.chunk import FOOTER_CHUNK
from windrow.parquet.schema import Leaf, SchemaElement
from windrow.splits.column_plans import ColumnPlan, Way

__all__ = ["chunk_table", "united_schema", "with_field_ids"]

_FIELD_ID = b"PARQUET:field_id"


def united_schema(inputs: Sequence[Input], schema: SortSchema) -> pa.Schema:
    """Every column that any input has, sort columns first; nullable where an input lacks it.

    A column has the type that holds the values of all inputs exactly.
    """
    distinct = {source.signature: source for source in reversed(inputs)}
    schemas = [(source.key, _plain_schema(source.arrow_schema())) for source in reversed(list(distinct.values()))]
    fields: dict[str, tuple[str, pa.Field]] = {}
    for key, own in schemas:
        for field in own:
            owner, united = fields.setdefault(field.name, (key, field))
            kind = widened(united.type, field.type)
            if kind is None:
                raise InvariantViolation(
                    "MC-4",
                    f"column {field.name!r} is {united.type} in {owner} and {field.type} in {key}; "
                    "merge only splits in which a column has one type, or types that one holds exactly",
                )
            fields[field.name] = owner, united.with_type(kind).with_nullable(united.nullable or field.nullable)
    everywhere = set.intersection(*({field.name for field in own} for _, own in schemas)) if schemas else set()
    first = [column.name for column in schema.columns if column.name in fields]
    names = first + sorted(name for name in fields if name not in first)
    return pa.schema([fields[name][1] if name in everywhere else fields[name][1].with_nullable(True) for name in names])


def with_field_ids(schema: pa.Schema, field_ids: Mapping[str, int]) -> pa.Schema:
    """The schema with some of its field ids changed."""
    return pa.schema(
        [
            field.with_metadata({_FIELD_ID: str(field_ids[field.name])}) if field.name in field_ids else field
            for field in schema
        ]
    )


def _plain_schema(schema: pa.Schema) -> pa.Schema:
    return pa.schema([field.with_type(_plain(field.type)) for field in schema])


def _plain(kind: pa.DataType) -> pa.DataType:
    """One type for all ways in which Arrow holds texts or bytes: they are the same in a file."""
    if pa.types.is_dictionary(kind):
        return _plain(kind.value_type)
    if pa.types.is_large_string(kind) or pa.types.is_string_view(kind):
        return pa.string()
    return pa.binary() if pa.types.is_large_binary(kind) or pa.types.is_binary_view(kind) else kind


def chunk_table(
    inputs: Sequence[Input], columns: Sequence[ColumnPlan]
) -> tuple[npt.NDArray[np.void], npt.NDArray[np.int64]]:
    """The chunk of each column (of those that go by our own ways) in each row group of all inputs, and a mark for each.

    The mark is 1 for a chunk that is nullable, 0 for one that is not, -1 where the input lacks the column, and -2 where
    the chunk has to be read by pyarrow, since its file holds the column in another form than the output does.
    """
    table, marks = [np.zeros((0, len(columns)), FOOTER_CHUNK)], [np.zeros((0, len(columns)), np.int64)]
    for _, alike in groupby(inputs, lambda source: source.footer.schema_bytes):
        footers = [source.footer for source in alike]
        places, mark = _shape(footers[0].leaves, columns)
        # as plain words: records are put behind each other field by field
        words = np.concatenate([footer.chunks.view(np.int64) for footer in footers])
        chunks = words.view(FOOTER_CHUNK)
        # what an input lacks takes the place of another chunk, which its mark keeps from being looked at
        table.append(chunks[:, places] if chunks.shape[1] else np.zeros((len(chunks), len(columns)), FOOTER_CHUNK))
        marks.append(np.broadcast_to(mark, (len(chunks), len(columns))))
    return np.concatenate(table), np.concatenate(marks)


def _shape(leaves: Sequence[Leaf], columns: Sequence[ColumnPlan]) -> tuple[list[int], npt.NDArray[np.int64]]:
    by_name: dict[str, list[Leaf]] = {}
    for leaf in leaves:
        by_name.setdefault(leaf.path[0], []).append(leaf)
    places, marks = [], []
    for column in columns:
        own = by_name.get(column.name, [])
        if not own:
            places.append(0)
            marks.append(-1)
        elif column.way is not Way.ARROW and _same_form(own, column.leaves):
            places.append(own[0].index)
            marks.append(own[0].max_definition)
        else:
            places.append(0)
            marks.append(-2)
    return places, np.array(marks, np.int64)


def _same_form(own: Sequence[Leaf], output: Sequence[Leaf]) -> bool:
    """Whether values of one leaf can be handed on to the other as they are, given that they are of one Arrow type."""
    if len(own) != 1 or len(output) != 1 or own[0].max_repetition or own[0].max_definition > 1:
        return False
    ours, theirs = own[0].element, output[0].element
    return ours.physical_type == theirs.physical_type and _unit(ours) == _unit(theirs)


def _unit(element: SchemaElement) -> str | None:
    """What a time counts."""
    return element.logical_type.unit if element.logical_type else _CONVERTED_UNITS.get(element.converted_type or 0)


_CONVERTED_UNITS = {7: "MILLIS", 8: "MICROS", 9: "MILLIS", 10: "MICROS"}
