"""Sketches count, unite, and are the same to DataSketches and to us."""

from __future__ import annotations

import math
import struct
from contextlib import suppress

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from windrow.errors import Damaged
from windrow.kernels.sketches import coupons_of_numbers
from windrow.statistics.sketch import LG_K, Sketch, united

datasketches = pytest.importorskip("datasketches")

PACKINGS = (datasketches.HLL_4, datasketches.HLL_6, datasketches.HLL_8)
# Of every mode: empty, list, set, the last set and the first registers, few and many values per register.
COUNTS = (0, 1, 7, 8, 24, 25, 384, 385, 386, 3000, 30_000)


def numbers(count: int, seed: int = 0) -> np.ndarray:
    return np.random.default_rng([seed, count]).integers(-(2**63), 2**63 - 1, count)


def sketch_of(values: np.ndarray, lg_k: int = LG_K) -> Sketch:
    coupons = np.empty(values.size, np.uint32)
    coupons_of_numbers(values.view(np.uint64), coupons)
    sketch = Sketch(lg_k)
    sketch.add(coupons)
    return sketch


def theirs_of(values: np.ndarray, lg_k: int = LG_K, packing=datasketches.HLL_8):
    sketch = datasketches.hll_sketch(lg_k, packing)
    for value in values.tolist():
        sketch.update(value)
    return sketch


def read_by_library(data: bytes) -> float:
    return datasketches.hll_sketch.deserialize(data).get_estimate()


class TestTheSameToDataSketches:
    @pytest.mark.parametrize("lg_k", [4, 7, 8, 11, 12, 14])
    @pytest.mark.parametrize("count", COUNTS)
    def test_both_count_alike_and_read_each_other(self, lg_k, count):
        values = numbers(count)
        ours, theirs = sketch_of(values, lg_k), theirs_of(values, lg_k)
        expected = pytest.approx(theirs.get_estimate(), rel=1e-6, abs=1e-6)
        assert ours.estimate == expected
        assert read_by_library(ours.to_bytes()) == expected

    @pytest.mark.parametrize("packing", PACKINGS)
    @pytest.mark.parametrize("lg_k", [4, 8, 12])
    @pytest.mark.parametrize("count", COUNTS)
    def test_every_packing_is_read_compact_or_not(self, packing, lg_k, count):
        theirs, expected = theirs_of(numbers(count), lg_k, packing), sketch_of(numbers(count), lg_k)
        for data in (theirs.serialize_compact(), theirs.serialize_updatable()):
            found = Sketch.from_bytes(data)
            assert found.to_bytes() == expected.to_bytes() or found.estimate == pytest.approx(expected.estimate)
            assert (found.registers is None) == (expected.registers is None)
            assert np.array_equal(found.registers, expected.registers) or found.registers is None

    @pytest.mark.parametrize("lg_k", [6, 8, 12])
    @pytest.mark.parametrize("count", [5, 60, 800, 2500, 5000, 9000, 12_000, 40_000])
    def test_unions_are_estimated_alike(self, lg_k, count):
        parts = [numbers(count, seed) for seed in range(3)]
        union = datasketches.hll_union(lg_k)
        for part in parts:
            union.update(theirs_of(part, lg_k))
        ours = united((sketch_of(part, lg_k) for part in parts), lg_k)
        theirs = union.get_result(datasketches.HLL_8)
        # the library goes by tables of trials, we by the expected sum
        assert ours.estimate == pytest.approx(theirs.get_estimate(), rel=0.005)
        assert read_by_library(ours.to_bytes()) == pytest.approx(ours.estimate, rel=0.002)
        assert Sketch.from_bytes(theirs.serialize_compact()).estimate == pytest.approx(theirs.get_estimate(), rel=0.002)

    def test_a_union_of_more_and_fewer_registers_has_the_fewer(self):
        parts = [(numbers(20_000, 1), 14), (numbers(30_000, 2), 11), (numbers(20, 3), 8)]
        union = datasketches.hll_union(14)
        for part, lg_k in parts:
            union.update(theirs_of(part, lg_k))
        ours = united((sketch_of(*part) for part in parts), 14)
        theirs = union.get_result(datasketches.HLL_8)
        assert ours.lg_k == 11
        assert np.array_equal(ours.registers, np.frombuffer(theirs.serialize_updatable()[40:], np.uint8))
        assert ours.estimate == pytest.approx(theirs.get_estimate(), rel=0.002)


class TestUnions:
    @given(st.lists(st.integers(0, 3000), max_size=4), st.randoms(use_true_random=False))
    @settings(deadline=None, max_examples=40)
    def test_the_order_of_parts_does_not_matter(self, sizes, random):
        parts = [sketch_of(np.arange(size) * (place + 1)) for place, size in enumerate(sizes)]
        shuffled = random.sample(parts, len(parts))
        one, other = united(parts), united(shuffled)
        assert np.array_equal(one.coupons, other.coupons) if one.coupons is not None else other.coupons is None
        assert one.registers is None or np.array_equal(one.registers, other.registers)

    def test_a_part_is_left_as_it_was(self):
        part = sketch_of(np.arange(5000))
        before = part.to_bytes()
        united([part, sketch_of(np.arange(9000))])
        assert part.to_bytes() == before

    def test_the_same_again_changes_no_estimate_of_registers(self):
        once = sketch_of(np.arange(50_000))
        assert np.array_equal(united([once, once]).registers, once.registers)

    @given(st.integers(0, 5000), st.integers(4, 12))
    @settings(deadline=None, max_examples=40)
    def test_fewer_registers_are_those_that_fewer_would_have_been(self, count, lg_k):
        values = np.arange(count)
        found, expected = sketch_of(values).folded(lg_k), sketch_of(values, lg_k)
        if found.registers is not None:
            registers = expected.registers
            if registers is not None:
                assert np.array_equal(found.registers, registers)
        else:
            assert np.array_equal(found.coupons, expected.coupons)


def errors(count: int, values: int, parts: int = 1) -> np.ndarray:
    found = [
        united(sketch_of(numbers(values // parts, 100 * at + part)) for part in range(parts)) for at in range(count)
    ]
    return np.array([each.estimate / values - 1 for each in found])


def sketch_of_so_many(bits: int, seed: int = 0) -> Sketch:
    """Registers as 2 ** bits values would leave them, by the distribution of the greatest number in each."""
    random = np.random.default_rng([bits, seed])
    load = 2.0**bits / (1 << LG_K)
    largest = np.ceil(-np.log2(-np.log(random.random(1 << LG_K)) / load)).clip(1, 63)
    data = bytearray(sketch_of(np.arange(5000)).to_bytes())
    data[40:] = largest.astype(np.uint8).tobytes()
    data[5] |= 16
    return Sketch.from_bytes(bytes(data))


class TestErrors:
    @pytest.mark.parametrize(("parts", "factor"), [(1, 0.8326), (4, 1.04)])
    @pytest.mark.parametrize("values", [2000, 20_000])
    def test_a_hundred_sketches_err_as_theory_says(self, parts, factor, values):
        rms = math.sqrt(float((errors(100, values, parts) ** 2).mean()))
        # a hundred tell the true error to 7 %, so three times that is allowed; the long test is strict
        assert rms <= factor / math.sqrt(1 << LG_K) * 1.21

    def test_an_estimate_says_how_it_errs(self):
        assert sketch_of(np.arange(10)).error < 1e-4
        assert sketch_of(np.arange(9999)).error == pytest.approx(0.013, abs=1e-3)
        assert united([sketch_of(np.arange(9999)), sketch_of(np.arange(5))]).error == pytest.approx(0.013, abs=1e-3)
        assert united([sketch_of(np.arange(9999)), sketch_of(-np.arange(9999))]).error == pytest.approx(0.016, abs=1e-3)

    @pytest.mark.parametrize("bits", [30, 40, 50, 60])
    def test_numbers_beyond_any_column_are_estimated(self, bits):
        found = sketch_of_so_many(bits)
        assert found.estimate == pytest.approx(2.0**bits, rel=0.08)
        assert read_by_library(found.to_bytes()) == pytest.approx(found.estimate, rel=0.01)

    def test_parts_of_a_number_beyond_any_column_are_united(self):
        """Eight parts of 2 ** 57 values each, of which none is in two parts, are 2 ** 60."""
        found = united(sketch_of_so_many(57, seed) for seed in range(8))
        assert found.estimate == pytest.approx(2.0**60, rel=4 * found.error)
        assert read_by_library(found.to_bytes()) == pytest.approx(found.estimate, rel=0.01)


class TestDamage:
    @pytest.mark.parametrize("count", [5, 200, 5000])
    def test_a_sketch_that_is_cut_short_is_refused(self, count):
        data = sketch_of(np.arange(count)).to_bytes()
        for length in {0, 1, 7, 8, 11, 20, 39, len(data) - 1}:
            if length < len(data):
                with pytest.raises(Damaged, match="no HyperLogLog sketch"):
                    Sketch.from_bytes(data[:length])

    @pytest.mark.parametrize(
        ("at", "byte"), [(0, 9), (1, 2), (2, 3), (3, 3), (3, 22), (7, 3), (7, 14), (40, 200), (15, 0xFF)]
    )
    def test_what_is_no_sketch_is_refused(self, at, byte):
        data = bytearray(sketch_of(np.arange(5000)).to_bytes())
        data[at] = byte
        with pytest.raises(Damaged):
            Sketch.from_bytes(bytes(data), name="a sketch")

    def test_exceptions_that_contradict_registers_are_refused(self):
        packed = bytearray(theirs_of(numbers(60_000), 14, datasketches.HLL_4).serialize_compact())
        (exceptions,) = struct.unpack_from("<I", packed, 36)
        assert exceptions
        assert np.array_equal(Sketch.from_bytes(bytes(packed)).registers, sketch_of(numbers(60_000), 14).registers)
        struct.pack_into("<I", packed, 36, exceptions - 1)
        with pytest.raises(Damaged, match="exceptions"):
            Sketch.from_bytes(bytes(packed))

    @given(st.binary(max_size=60))
    def test_noise_is_refused_or_read(self, noise):
        with suppress(Damaged):
            Sketch.from_bytes(noise)
