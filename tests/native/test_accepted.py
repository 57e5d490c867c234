"""What kernels may say, and what it means: what it means in Python, but numbers have 64 bits."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from tests.native import accepted

SMALL = st.integers(-(2**30), 2**30)
WORDS = st.integers(0, 2**64 - 1)
quickly = settings(max_examples=50, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])


def integers(*values):
    return np.array(values, np.int64)


class TestNumbers:
    @quickly
    @given(SMALL, SMALL)
    def test_integers_are_those_of_python(self, samples, one, other):
        assert samples.arithmetic(one, other) == accepted.arithmetic(one, other)
        assert samples.chosen(one, other) == accepted.chosen(one, other)
        assert samples.compared(one % 10) == accepted.compared(one % 10)
        if other:
            assert samples.divided(one, other) == accepted.divided(one, other)
            assert samples.quotient(one, other) == one / other

    @pytest.mark.parametrize(("one", "other"), [(7, 2), (-7, 2), (7, -2), (-7, -2), (6, -3), (0, -5)])
    def test_division_rounds_down(self, samples, one, other):
        assert samples.divided(one, other) == (one // other, one % other)

    @quickly
    @given(WORDS, WORDS)
    def test_words_count_modulo_two_to_the_64(self, samples, one, other):
        mask = 2**64 - 1
        expected = (one * other + one - other & mask) ^ (one >> 7) ^ (other << 9 & mask)
        assert samples.of_words(one, other) == expected
        if other:
            assert samples.divided_words(one, other) == (one // other, one % other)

    def test_integers_wrap(self, samples):
        exactly = accepted.arithmetic(2**63 - 1, 5)
        assert samples.arithmetic(2**63 - 1, 5) == (exactly + 2**63) % 2**64 - 2**63 != exactly

    @pytest.mark.parametrize("name", ["divided", "divided_words"])
    def test_a_division_by_zero_is_an_error(self, samples, name):
        with pytest.raises(ZeroDivisionError, match=f"accepted_{name}: a division by zero"):
            getattr(samples, name)(5, 0)

    def test_a_shift_to_the_right_keeps_the_sign(self, samples):
        assert samples.shifted(-9, 1) == accepted.shifted(-9, 1)
        assert samples.shifted(9, 40) == accepted.shifted(9, 40)

    @pytest.mark.parametrize("value", [0, 200, -1, 2**31, 2**40 + 300])
    def test_casts_take_the_lowest_bits(self, samples, value):
        low = [(value + half) % (2 * half) - half for half in (2**31, 2**7)]
        assert samples.cut(value) == (value % 256, *low)

    @pytest.mark.parametrize("value", [1.9, -1.9, 0.0, 1e15])
    def test_a_float_is_cut_towards_zero(self, samples, value):
        assert samples.from_float(value) == int(value)


class TestArrays:
    @pytest.mark.parametrize("values", [(), (5,), (1, 2, 0, 60, 4), (-3, 9, 0, 0, 7, 1)])
    def test_loops(self, samples, values):
        assert samples.walked(integers(*values)) == accepted.walked(integers(*values))

    def test_parts_are_the_same_memory_and_copies_are_not(self, samples):
        ways = []
        for way in (samples, accepted):
            values, out = integers(1, 2, 3, 4, 5), np.zeros(6, np.int64)
            way.parts(values, out)
            ways.append((values.tolist(), out.tolist()))
        assert ways[0] == ways[1] == ([1, -1, 3, 4, 5], [4, 3, 4, 7, 7, 7])

    def test_memory_of_its_own(self, samples):
        assert samples.made(200) == accepted.made(200) == 200 + 3 + 2

    @pytest.mark.parametrize("kind", [np.int32, np.int64, np.uint64])
    def test_one_function_for_several_types(self, samples, kind):
        assert samples.total_of(np.arange(5, dtype=kind)) == 10

    def test_a_type_that_no_call_has_is_refused(self, samples):
        with pytest.raises(TypeError, match="accepted_total_of is not compiled for arrays of the types f8"):
            samples.total_of(np.zeros(3))

    def test_tuples_go_in_and_come_out(self, samples):
        assert samples.swapped(1, 2) == accepted.swapped(1, 2) == (2, (1, 2))
        assert samples.total_of_parts((integers(5, 6), integers(1))) == 10


class TestTheFrame:
    def test_memory_that_is_written_to_must_be_writable(self, samples):
        values = integers(3)
        values.flags.writeable = False
        assert samples.at(values, 0) == 3
        with pytest.raises(ValueError, match="read-only"):
            samples.put(values, 0)

    def test_what_is_no_number_is_refused(self, samples):
        with pytest.raises(TypeError):
            samples.quotient("1", 2)
        with pytest.raises(OverflowError):
            samples.quotient(2**64, 2)

    def test_the_module_says_what_it_was_built_from(self, samples):
        assert samples.digest() == "of samples"

    def test_other_threads_run_meanwhile(self, samples):
        import threading
        import time

        thread = threading.Thread(target=samples.spin, args=(np.arange(1000), 100_000))
        turns = 0
        thread.start()
        while thread.is_alive():
            turns += 1
            time.sleep(0)
        assert turns > 20


class TestChecks:
    """A build that checks compares every access with the size of its array."""

    @pytest.mark.parametrize("place", [-1, 3, 2**40, -(2**63)])
    def test_an_index_outside_is_an_error(self, checked, place):
        values = integers(1, 2, 3)
        for function in (checked.at, checked.put):
            with pytest.raises(IndexError, match=f"{'at' if function is checked.at else 'put'}: an index is out of"):
                function(values, place)
        assert values.tolist() == [1, 2, 3]

    @pytest.mark.parametrize(("row", "column"), [(2, 0), (0, 3), (-1, 0), (1, -1)])
    def test_both_indices_of_a_table_are_checked(self, checked, row, column):
        values = np.arange(6)
        assert checked.in_table(values, 1, 2) == 5
        with pytest.raises(IndexError):
            checked.in_table(values, row, column)

    @pytest.mark.parametrize(("low", "high"), [(-1, 2), (2, 1), (0, 4), (4, 5)])
    def test_a_part_lies_within_its_array(self, checked, low, high):
        assert checked.part(integers(1, 2, 3), 1, 3) == 2
        with pytest.raises(IndexError):
            checked.part(integers(1, 2, 3), low, high)

    def test_what_fails_leaves_no_memory_behind(self, checked):
        """What a kernel allocated is freed, also when it ended by an error."""
        import resource

        values = np.zeros(1_000_000, np.int64)
        for turn in range(60):
            if turn == 10:
                before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
            with pytest.raises(IndexError):
                checked.in_table(values, 0, 0)  # copies eight megabytes first
        assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before < 100_000
