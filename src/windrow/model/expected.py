"""The columns of a table that has no points yet, as far as its settings tell."""

from __future__ import annotations

import pyarrow as pa

from windrow.model.points import METRIC_TYPE, VALUE, Signal
from windrow.model.settings import TableSettings
from windrow.model.timeseries import TIMESERIES_ID

__all__ = ["expected_columns"]


def expected_columns(settings: TableSettings) -> pa.Schema:
    """Return the columns that every point will have, and what the settings name; text where nothing tells more."""
    time = pa.timestamp("us") if settings.timestamp_unit is None else pa.int64()
    types = {METRIC_TYPE: pa.int32(), VALUE: pa.float64(), TIMESERIES_ID: pa.int64(), settings.timestamp: time}
    values = (VALUE,) if settings.signal is Signal.METRICS else ()
    names = dict.fromkeys([*settings.sort.column_names, *(settings.tags or ()), *settings.partition_by, *values])
    return pa.schema([(name, types.get(name, pa.string())) for name in names])
