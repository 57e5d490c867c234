"""Columns cut into row groups, and what is learnt of them: what several suites are made of."""

from __future__ import annotations

import datetime as dt
from decimal import Decimal

import numpy as np
import pyarrow as pa
from hypothesis import strategies as st

from windrow.statistics.collector import FileCollector
from windrow.statistics.layout import FileId, FileLayout

EPOCH = dt.datetime.fromisoformat("1970-01-01")
MOMENTS = st.datetimes(EPOCH - dt.timedelta(days=100_000), EPOCH + dt.timedelta(days=80_000))
VALUES = {
    pa.int64(): st.integers(-(2**63), 2**63 - 1),
    pa.int8(): st.integers(-128, 127),
    pa.uint64(): st.integers(0, 2**64 - 1),
    pa.float64(): st.floats(),
    pa.float32(): st.floats(width=32),
    pa.bool_(): st.booleans(),
    pa.string(): st.text(max_size=80),
    pa.large_binary(): st.binary(max_size=80),
    pa.string_view(): st.text(max_size=5),
    pa.date32(): st.dates(),
    pa.timestamp("us"): MOMENTS,
    pa.timestamp("ns", "UTC"): MOMENTS.map(lambda moment: moment.replace(tzinfo=dt.UTC)),
    pa.decimal128(12, 2): st.decimals(-(10**9), 10**9, places=2),
    pa.decimal128(38, 3): st.integers(-(10**37), 10**37).map(lambda whole: Decimal(whole).scaleb(-3)),
    pa.null(): st.none(),
}


@st.composite
def columns(draw, kinds=tuple(VALUES)):
    """A column and the rows of its row groups."""
    kind = draw(st.sampled_from(kinds))
    values = draw(st.lists(st.one_of(st.none(), VALUES[kind]), max_size=40))
    cuts = sorted(draw(st.lists(st.integers(0, len(values)), max_size=5)))
    rows = np.diff([0, *cuts, len(values)]).tolist()
    return pa.array(values, kind), tuple(rows)


def layout_of(rows, key: str = "split-1", identity: str = "1000 bytes") -> FileLayout:
    return FileLayout(FileId(key, identity), tuple(rows))


def parts_of(column: pa.Array, rows) -> list[pa.Array]:
    starts = [0, *np.cumsum(rows).tolist()]
    return [column.slice(start, count) for start, count in zip(starts, rows, strict=False)]


def learnt(column: pa.Array, rows, *, name: str = "x", layout: FileLayout | None = None, only=None, known=None):
    """What is known of a column after its row groups, or only some of them, were read."""
    collector = FileCollector(layout or layout_of(rows), known)
    for row_group, part in enumerate(parts_of(column, rows)):
        if only is None or row_group in only:
            collector.add(row_group, 0, {name: part})
    return collector.changed.get(name)
