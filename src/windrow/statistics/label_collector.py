"""Learns the labels and series of one file from its rows, a row group at a time.

Rows that have the labels of the row before them, which is all but a few in a sorted file, are passed over first; of
the others each distinct set of labels counts once.
"""

from __future__ import annotations

import hashlib
from collections.abc import Collection, Mapping, Sequence

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc
from pyarrow import types

from windrow.model.ordering import dictionary_codes
from windrow.model.points import METRIC_NAME, is_text
from windrow.model.timeseries import TIMESERIES_ID, timeseries_ids
from windrow.statistics.hashing import coupons_of
from windrow.statistics.label_summary import (
    MOST_VALUES,
    LabelSummary,
    covered_labels,
    few_series,
    few_values,
    most_numerous,
    pairs_of,
)
from windrow.statistics.layout import FileId
from windrow.statistics.sketch import Sketch

__all__ = ["LabelCollector", "can_be_label"]

_LONGEST = 256
"""Longer texts stand for themselves by a digest."""
_SEPARATOR = b"\xff"
"""Is in no text."""


def can_be_label(kind: pa.DataType) -> bool:
    """Whether values of a type are counted as those of labels."""
    return is_text(kind) or types.is_integer(kind) or types.is_boolean(kind)


class LabelCollector:
    """Learns about one file, all of whose row groups it is given; `tags` are the columns that tell series apart."""

    def __init__(self, tags: Sequence[str]) -> None:
        self._tags, self._labels = tuple(tags), covered_labels(tags)
        self._series = Sketch()
        self._series_ids: list[npt.NDArray[np.int64] | None] = []
        self._pairs = {pair: Sketch() for pair in pairs_of(self._labels)}
        self._has_ids = True
        self._metrics: dict[str, Sketch] = {}
        self._values: dict[str, tuple[str, ...]] = dict.fromkeys(self._labels, ())

    def columns(self, names: Collection[str]) -> list[str]:
        """Those of the columns of a file that are read: not all tags where series have ids."""
        tags = self._labels if TIMESERIES_ID in names else self._tags
        return [name for name in (TIMESERIES_ID, METRIC_NAME, *tags) if name in names]

    def add(self, columns: Mapping[str, pa.Array]) -> None:
        """Take the rows of a row group: those of `columns` that the file has."""
        rows = pa.table({name: columns[name] for name in self.columns(columns.keys())})
        if not rows.num_rows or not rows.num_columns:
            return
        sets = _distinct(rows)
        self._add_series(sets)
        labels = {name: _Label(sets.column(name)) for name in self._labels if name in sets.column_names}
        for one, other in pairs_of(list(labels)):
            self._pairs[one, other].add(labels[one].with_values_of(labels[other]))
        for name in [name for name in self._values if name in labels]:
            self._add_values(name, labels[name])

    def summary(self, file: FileId, rows: int) -> LabelSummary:
        """What was learnt."""
        chosen = most_numerous(self._metrics)
        return LabelSummary(
            file,
            rows,
            rows,
            self._labels,
            self._series,
            few_series(self._series_ids) if self._series_ids or not rows else None,
            self._pairs,
            chosen,
            len(self._metrics) - len(chosen),
            self._values,
            self._has_ids,
        )

    def _add_series(self, sets: pa.Table) -> None:
        has_ids = TIMESERIES_ID in sets.column_names and types.is_integer(sets.schema.field(TIMESERIES_ID).type)
        ids = sets.column(TIMESERIES_ID).combine_chunks() if has_ids else _hashed(sets)
        self._has_ids &= has_ids
        valid = ids.is_valid()
        coupons = coupons_of(ids.filter(valid))
        self._series.add(coupons)
        numbers = None if ids.null_count else np.unique(ids.cast(pa.int64(), safe=False))
        self._series_ids.append(few_series([numbers]))
        if METRIC_NAME in sets.column_names:
            self._add_metrics(sets.column(METRIC_NAME).filter(pa.chunked_array([valid])), coupons)

    def _add_metrics(self, names: pa.ChunkedArray, coupons: npt.NDArray[np.uint32]) -> None:
        codes, distinct = dictionary_codes(names)
        order = np.argsort(codes, kind="stable")
        ends = np.cumsum(np.bincount(codes, minlength=len(distinct)))
        for place, name in enumerate(distinct.to_pylist()):
            own = order[ends[place - 1] if place else 0 : ends[place]]
            if own.size and name is not None:
                self._metrics.setdefault(name, Sketch()).add(coupons[own])

    def _add_values(self, name: str, label: _Label) -> None:
        """Add to the values of a label, or forget them once there are too many."""
        texts = label.texts()
        found = None if texts is None else few_values([*self._values[name], *texts])
        if found is None:
            del self._values[name]
        else:
            self._values[name] = found


class _Label:
    """The values of a label in some rows, each of them once, and which row has which."""

    def __init__(self, values: pa.ChunkedArray) -> None:
        self._is_text = is_text(values.type)
        plain = values.cast(pa.large_string()).combine_chunks().dictionary_encode()
        self._distinct: pa.Array = plain.dictionary
        codes = plain.indices.fill_null(len(plain.dictionary)).to_numpy(zero_copy_only=False)
        self._codes: npt.NDArray[np.int64] = codes.astype(np.int64)
        self._bytes = _short(self._distinct.cast(pa.large_binary()))

    def texts(self) -> list[str] | None:
        """The values, where they are texts and may be on record in full."""
        return self._distinct.to_pylist() if self._is_text and len(self._distinct) <= MOST_VALUES else None

    def with_values_of(self, other: _Label) -> npt.NDArray[np.uint32]:
        """The coupons of the values that both have together."""
        own, others = len(self._distinct), len(other._distinct)
        present = (self._codes < own) & (other._codes < others)
        keys = np.unique(self._codes[present] * max(others, 1) + other._codes[present])
        firsts = self._bytes.take(pa.array(keys // max(others, 1)))
        seconds = other._bytes.take(pa.array(keys % max(others, 1)))
        return coupons_of(pc.binary_join_element_wise(firsts, seconds, pa.scalar(_SEPARATOR, pa.large_binary())))


def _short(values: pa.Array) -> pa.Array:
    """Byte strings, the long ones by their digests."""
    if not len(values) or pc.max(pc.binary_length(values)).as_py() <= _LONGEST:
        return values
    return pa.array(
        [value if len(value) <= _LONGEST else hashlib.blake2b(value).digest() for value in values.to_pylist()],
        pa.large_binary(),
    )


def _distinct(rows: pa.Table) -> pa.Table:
    """Each distinct row once, in order of the first ones."""
    codes = {name: dictionary_codes(rows.column(name))[0] for name in rows.column_names}
    differs = np.zeros(rows.num_rows, bool)
    differs[0] = True
    for each in codes.values():
        differs[1:] |= each[1:] != each[:-1]
    places = np.flatnonzero(differs)
    keys = pa.table({str(at): each[places] for at, each in enumerate(codes.values())} | {"place": places})
    firsts = keys.group_by([str(at) for at in range(len(codes))], use_threads=False).aggregate([("place", "min")])
    return rows.take(firsts["place_min"])


def _hashed(sets: pa.Table) -> pa.Array:
    """Ids of the series of rows that have none: of their metric and tags, or of an id that is no number."""
    named = [name for name in sets.column_names if name != METRIC_NAME]
    tags = {f"tag {name}": sets.column(name) for name in named if name == TIMESERIES_ID or TIMESERIES_ID not in named}
    metric = pa.chunked_array([pa.array([""] * sets.num_rows)])
    if METRIC_NAME in sets.column_names and TIMESERIES_ID not in named:
        metric = sets.column(METRIC_NAME).cast(pa.string()).fill_null("")
    return timeseries_ids(pa.table(tags | {METRIC_NAME: metric}), tags=list(tags))
