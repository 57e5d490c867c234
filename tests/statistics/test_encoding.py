"""Statistics come back as they were stored, in bounded room, and what is damaged or stale is never taken for true."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.statistics.files import columns, layout_of, learnt

from windrow.errors import Damaged
from windrow.statistics.encoding import MOST_BYTES, decode, encode


def same(one, other) -> bool:
    samples = [None if each.sample is None else (each.sample.draw, each.sample.known.tolist()) for each in (one, other)]
    values = [None if each.sample is None else each.sample.values for each in (one, other)]
    return (
        one.type == other.type
        and one.sketch.to_bytes() == other.sketch.to_bytes()
        and one.synopses.facts == other.synopses.facts
        and one.synopses.group_size == other.synopses.group_size
        and np.array_equal(one.covered, other.covered)
        and samples[0] == samples[1]
        and (values[0] is values[1] or repr(values[0].to_pylist()) == repr(values[1].to_pylist()))
        and one.inherited_rows == other.inherited_rows
    )


@given(columns(), st.sets(st.integers(0, 5), min_size=1))
@settings(deadline=None)
def test_statistics_come_back(found, only):
    column, rows = found
    summary = learnt(column, rows, only=only)
    if summary is not None:
        data = encode(summary)
        assert same(decode(data, summary.layout.file), summary)
        assert encode(decode(data, summary.layout.file)) == data


def many(values: pa.Array, row_groups: int = 100):
    return learnt(values, [len(values) // row_groups] * row_groups)


class TestRoom:
    @pytest.mark.parametrize(
        "values",
        [
            pa.array(np.random.default_rng(1).integers(0, 2**62, 100_000)),
            pa.array(np.random.default_rng(2).random(100_000)),
            pa.array([f"a text of some length, number {n * 7919 % 100_000}" for n in range(100_000)]),
        ],
        ids=["numbers", "floats", "texts"],
    )
    def test_a_column_takes_about_sixteen_kilobytes(self, values):
        data = encode(many(values))
        assert len(data) < 24 * 1024

    def test_what_needs_too_much_room_goes(self):
        noise = np.random.default_rng(3)
        texts = pa.array([noise.bytes(2000) for _ in range(3000)])
        summary = many(texts)
        assert summary.sample is not None
        data = encode(replace(summary, sample=replace(summary.sample, values=texts.slice(0, 1024))))
        assert len(data) <= MOST_BYTES
        found = decode(data, summary.layout.file)
        assert found.sample is None
        assert found.synopses.facts == summary.synopses.facts

    def test_a_thousand_columns_of_long_texts_are_bounded_each(self):
        noise = np.random.default_rng(4)
        assert len(encode(many(pa.array([noise.bytes(300) for _ in range(2000)])))) <= MOST_BYTES


class TestDamage:
    DATA = encode(learnt(pa.array(range(1000)), [500, 500]))
    FILE = layout_of([500, 500]).file

    @given(st.integers(0, len(DATA) - 1), st.integers(1, 255))
    def test_a_bit_that_flipped_is_noticed(self, at, flip):
        data = bytearray(self.DATA)
        data[at] ^= flip
        try:
            found = decode(bytes(data), self.FILE)
        except Damaged:
            return
        # three bytes after the version are spare
        assert at in (5, 6, 7)
        assert found is not None

    @given(st.integers(0, len(DATA) - 1))
    def test_bytes_that_are_cut_short_are_refused(self, length):
        with pytest.raises(Damaged, match="collected anew"):
            decode(self.DATA[:length], self.FILE)

    @given(st.binary())
    def test_noise_is_refused(self, noise):
        with pytest.raises(Damaged, match="metrics: "):
            decode(noise, self.FILE, name="metrics")

    def test_another_version_is_refused(self):
        with pytest.raises(Damaged, match="no statistics that this version reads"):
            decode(self.DATA[:4] + b"\2" + self.DATA[5:], self.FILE)

    @pytest.mark.parametrize(
        "layout",
        [
            layout_of([500, 500], identity="1001 bytes"),
            layout_of([500, 500], "b"),
        ],
    )
    def test_statistics_of_another_content_are_passed_over(self, layout):
        assert decode(self.DATA, layout.file) is None
