"""A predicate with values of the types that a sidecar knows of its columns."""

from __future__ import annotations

from collections.abc import Iterable
from contextlib import suppress

import pyarrow as pa

from windrow.errors import Incompatible
from windrow.model.predicate import Predicate, columns_of
from windrow.parquet.schema import PhysicalType
from windrow.planning.virtual_schema import arrow_schema
from windrow.questions.literals import fitted_where_typed
from windrow.sidecar import Sidecar
from windrow.sidecar.flat_columns import flat_column

__all__ = ["fitted_to_sidecar"]


def fitted_to_sidecar(predicate: Predicate, sidecar: Sidecar) -> Predicate:
    """Return what a predicate says of the columns of a file, as far as its sidecar knows their types."""
    return fitted_where_typed(predicate, _sidecar_schema(sidecar, columns_of(predicate)))


def _sidecar_schema(sidecar: Sidecar, names: Iterable[str]) -> pa.Schema:
    """The columns of a file; without a schema in the sidecar its floats alone, of which no value is exact in text."""
    if sidecar.schema is not None:
        with suppress(Incompatible):
            return arrow_schema(sidecar)
    found = {name: flat_column(sidecar, name, ()) for name in names}
    kinds = {int(PhysicalType.FLOAT): pa.float32(), int(PhysicalType.DOUBLE): pa.float64()}
    floats = {name: kinds.get(each.physical_type) for name, each in found.items() if each is not None}
    return pa.schema([(name, kind) for name, kind in floats.items() if kind is not None])
