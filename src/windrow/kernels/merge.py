"""The order of a merge: runs of key columns meet in series, series are merged, and rows inside them by the last key.

Rows of all inputs are numbered through, input by input. A run is a key and the row that it ends before.
"""

# Kernels hand each other arrays and places in them, one by one: an object that holds them would cost more than they.
# ruff: noqa: PLR0913, PLR0917, FBT001

from __future__ import annotations

from typing import TypeVar

import numpy as np
import numpy.typing as npt

from windrow.kernels.compiled import kernel

__all__ = [
    "append_rows",
    "append_runs",
    "check_rows",
    "check_runs",
    "combine_runs",
    "merge_each",
    "merge_order",
    "merge_rows",
    "merge_scattered",
    "pack_rows",
    "scattered_share",
]

Words = npt.NDArray[np.uint64]
Ints = npt.NDArray[np.int32]
Longs = npt.NDArray[np.int64]
Places = TypeVar("Places", npt.NDArray[np.int64], npt.NDArray[np.int32])
"""Rows and counts of them; they have half the size where there are few."""
Numbers = TypeVar("Numbers", npt.NDArray[np.uint64], npt.NDArray[np.int32])
"""Numbers of a column, none of them negative."""

FEW_ROWS, SHORT_RUN = 256, 4
"""A series of so few rows, in runs that are so short on average, is sorted faster than merged."""
ABOVE = np.uint64(2**64 - 1)


@kernel
def combine_runs(
    keys: Words, ends: Longs, others: Words, other_ends: Longs, bits: int, out: Words, out_ends: Longs
) -> int:
    """Cut the runs of two columns at each other's ends; a key becomes `key << bits | other`. How many runs there are.

    Neighbours with the same key stay apart: the cuts of the first column may mean more than its keys.
    """
    one, other, runs = 0, 0, 0
    shift = np.uint64(bits)
    while one < keys.size and other < others.size:
        key = keys[one] << shift if bits < 64 else np.uint64(0)
        one_end, other_end = ends[one], other_ends[other]
        end = min(one_end, other_end)
        out[runs] = key | others[other]
        out_ends[runs] = end
        runs += 1
        one += one_end == end
        other += other_end == end
    return runs


@kernel
def check_runs(numbers: Words, ends: Longs, input_ends: Longs, last_key: Words, begins: Longs, inputs: Ints) -> int:
    """Find where each run begins and which input it is of; the first row that must come before the row ahead, or -1.

    No run reaches across the end of an input.
    """
    begin, owner, wrong = 0, 0, -1
    for run in range(ends.size):
        while input_ends[owner] <= begin:
            owner += 1
        begins[run], inputs[run] = begin, owner
        first = begin + 1
        if run and inputs[run - 1] == owner:
            if numbers[run] < numbers[run - 1]:
                return begin if wrong < 0 else wrong
            if numbers[run] == numbers[run - 1]:
                first = begin
        # counted and not looked for, so that several are compared at once
        back = 0
        for row in range(first, ends[run]):
            back += last_key[row] < last_key[row - 1]
        if back and wrong < 0:
            wrong = first
            while last_key[wrong] >= last_key[wrong - 1]:
                wrong += 1
        begin = ends[run]
    return wrong


@kernel
def scattered_share(entries: Longs, series: Words, begins: Longs, ends: Longs, last_key: Words, samples: int) -> float:
    """How much of a run lies behind the begin of the next one of its series, on average over some of them."""
    seen, share = 0, 0.0
    step = max(entries.size // samples, 1)
    for place in range(0, entries.size - 1, step):
        one, other = entries[place], entries[place + 1]
        if series[one] == series[other]:
            first, bound = begins[one], last_key[begins[other]]
            # the first row of a run may come behind the bound itself
            ahead = _gallop(last_key, first, ends[one], bound, True) - first if last_key[first] <= bound else 0
            share += 1 - ahead / (ends[one] - first)
            seen += 1
    return share / seen if seen else 0.0


@kernel
def _gallop(last_key: Words, start: int, end: int, bound: np.uint64, ties: bool) -> int:
    """The first row from `start` on that comes behind the bound; rows that equal it do so unless `ties`."""
    low, step = start, 1
    while low + step < end and (last_key[low + step] < bound or (ties and last_key[low + step] == bound)):
        low += step
        step *= 2
    high = min(low + step, end)
    low += 1
    while low < high:
        middle = (low + high) >> 1
        if last_key[middle] < bound or (ties and last_key[middle] == bound):
            low = middle + 1
        else:
            high = middle
    return low


@kernel
def _before(heads: Words, one: int, other: int) -> bool:
    """Whether the head of one entry comes before that of another; entries are numbered in the order that ties have."""
    return heads[one] < heads[other] or (heads[one] == heads[other] and one < other)


@kernel
def _sift(heap: Longs, size: int, heads: Words) -> None:
    """Let the top sink to its place."""
    at, entry = 0, heap[0]
    while True:
        child = 2 * at + 1
        if child + 1 < size and _before(heads, heap[child + 1], heap[child]):
            child += 1
        if child >= size or not _before(heads, heap[child], entry):
            break
        heap[at], at = heap[child], child
    heap[at] = entry


@kernel
def _emit(order: tuple[Places, Places, Ints], runs: int, owner: int, start: int, count: int) -> int:
    """Append rows to the order; they join the run before when they follow it in the same input."""
    starts, counts, owners = order
    if runs and owners[runs - 1] == owner and starts[runs - 1] + counts[runs - 1] == start:
        counts[runs - 1] += count
        return runs
    starts[runs] = start
    counts[runs] = count
    owners[runs] = owner
    return runs + 1


@kernel
def _merge_series(
    runs_in: tuple[Longs, Longs, Ints, Words],
    at: Longs,
    first: int,
    last: int,
    tree: tuple[Words, Longs],
    order: tuple[Places, Places, Ints],
    runs: int,
) -> int:
    """Merge the rows of one series, which the entries from `first` up to `last` hold, each in order; the runs then."""
    entries, ends, inputs, last_key = runs_in
    heads, heap = tree
    size = 0
    for place in range(first, last):
        heads[place] = last_key[at[entries[place]]]
        hole = size
        size += 1
        while hole and _before(heads, place, heap[(hole - 1) >> 1]):
            heap[hole] = heap[(hole - 1) >> 1]
            hole = (hole - 1) >> 1
        heap[hole] = place
    while size > 1:
        top = heap[0]
        second = heap[2] if size > 2 and _before(heads, heap[2], heap[1]) else heap[1]
        entry = entries[top]
        start = at[entry]
        stop = _gallop(last_key, start, ends[entry], heads[second], top < second)
        runs = _emit(order, runs, inputs[entry], start, stop - start)
        at[entry] = stop
        if stop == ends[entry]:
            size -= 1
            heap[0] = heap[size]
        else:
            heads[top] = last_key[stop]
        _sift(heap, size, heads)
    entry = entries[heap[0]]
    return _emit(order, runs, inputs[entry], at[entry], ends[entry] - at[entry])


@kernel
def _sort_few(
    runs_in: tuple[Longs, Longs, Ints, Words],
    at: Longs,
    first: int,
    last: int,
    few: tuple[Words, Longs, Ints],
    order: tuple[Places, Places, Ints],
    runs: int,
) -> int:
    """Put the few rows of one series in order one by one; what comes late moves ahead of what is greater."""
    entries, ends, inputs, last_key = runs_in
    keys, rows, of = few
    size = 0
    for place in range(first, last):
        entry = entries[place]
        for row in range(at[entry], ends[entry]):
            hole, key = size, last_key[row]
            while hole and keys[hole - 1] > key:
                keys[hole] = keys[hole - 1]
                rows[hole] = rows[hole - 1]
                of[hole] = of[hole - 1]
                hole -= 1
            keys[hole] = key
            rows[hole] = row
            of[hole] = inputs[entry]
            size += 1
    for place in range(size):
        runs = _emit(order, runs, of[place], rows[place], 1)
    return runs


@kernel
def merge_order(
    entries: Longs,
    series: Words,
    begins: Longs,
    ends: Longs,
    inputs: Ints,
    last_key: Words,
    starts: Places,
    counts: Places,
    owners: Ints,
    group_ends: Longs,
    group_rows: Longs,
) -> tuple[int, int]:
    """Merge the runs of all inputs: `entries` are the runs ordered by their series, ties by input.

    Within a run rows ascend by `last_key`. The order is a sequence of (first row, rows, input). Rows of one series are
    a group: the place in the order that it ends before, and a row of it. How many runs and groups there are.
    """
    at, heads, heap = begins.copy(), np.empty(entries.size, np.uint64), np.empty(entries.size, np.int64)
    keys, rows_of, of = np.empty(FEW_ROWS, np.uint64), np.empty(FEW_ROWS, np.int64), np.empty(FEW_ROWS, np.int32)
    runs_out = starts, counts, owners
    runs, groups, first, place = 0, 0, 0, 0
    while first < entries.size:
        last, rows = first, 0
        while last < entries.size and series[entries[last]] == series[entries[first]]:
            rows += ends[entries[last]] - begins[entries[last]]
            last += 1
        if last == first + 1:
            entry = entries[first]
            runs = _emit(runs_out, runs, inputs[entry], begins[entry], rows)
        else:
            runs_in = entries, ends, inputs, last_key
            if rows <= FEW_ROWS and rows < SHORT_RUN * (last - first):
                few = keys, rows_of, of
                runs = _sort_few(runs_in, at, first, last, few, runs_out, runs)
            else:
                runs = _merge_series(runs_in, at, first, last, (heads, heap), runs_out, runs)
        place += rows
        group_ends[groups], group_rows[groups] = place, begins[entries[first]]
        groups += 1
        first = last
    return runs, groups


@kernel
def pack_rows(runs: Words, ends: Longs, numbers: Numbers, bits: int, out: Words) -> None:
    """The number of a column of runs and that of each row, which has so many bits, become one."""
    row, shift = 0, np.uint64(bits)
    for run in range(ends.size):
        high = runs[run] << shift if bits < 64 else np.uint64(0)
        for place in range(row, ends[run]):
            out[place] = high | np.uint64(numbers[place])
        row = ends[run]


@kernel
def append_rows(keys: Words, numbers: Numbers, bits: int) -> None:
    """Append the numbers of a column, of so many bits, to the keys of rows."""
    shift = np.uint64(bits)
    if bits > 63:
        for row in range(keys.size):
            keys[row] = np.uint64(numbers[row])
    else:
        for row in range(keys.size):
            keys[row] = keys[row] << shift | np.uint64(numbers[row])


@kernel
def append_runs(keys: Words, numbers: Words, ends: Longs, bits: int) -> None:
    """The same for a column of runs."""
    row, shift = 0, np.uint64(bits)
    for run in range(ends.size):
        number = numbers[run]
        for place in range(row, ends[run]):
            keys[place] = (keys[place] << shift if bits < 64 else np.uint64(0)) | number
        row = ends[run]


@kernel
def check_rows(keys: Words, input_ends: Longs) -> int:
    """The first row that must come before the row ahead of it in its input, -1 when there is none."""
    begin = 0
    for owner in range(input_ends.size):
        for row in range(begin + 1, input_ends[owner]):
            if keys[row] < keys[row - 1]:
                return row
        begin = max(begin, input_ends[owner])
    return -1


@kernel
def _merge_two(keys: Words, rows: Ints, first: int, middle: int, last: int, out_keys: Words, out_rows: Ints) -> None:
    """Merge two neighbouring stretches of rows; those of the first come first where keys are equal."""
    one, other, at = first, middle, first
    while one < middle and other < last:
        # without a branch: which one is less cannot be foreseen
        behind = keys[other] < keys[one]
        place = other if behind else one
        out_keys[at] = keys[place]
        out_rows[at] = rows[place]
        other += behind
        one += not behind
        at += 1
    while one < middle:
        out_keys[at] = keys[one]
        out_rows[at] = rows[one]
        one, at = one + 1, at + 1
    while other < last:
        out_keys[at] = keys[other]
        out_rows[at] = rows[other]
        other, at = other + 1, at + 1


@kernel
def _merge_words(words: Words, begins: Longs, sizes: Longs, count: int, out: Words) -> None:
    """Merge neighbouring stretches of distinct words in pairs; behind each stands a word that is above all others."""
    for pair in range(0, count - 1, 2):
        one, other, at = begins[pair], begins[pair + 1], begins[pair]
        size = sizes[pair] + sizes[pair + 1]
        for place in range(at, at + size):
            # without a branch: which one is less cannot be foreseen
            left, right = words[one], words[other]
            behind = right < left
            out[place] = right if behind else left
            other += behind
            one += not behind
        out[at + size] = ABOVE
        begins[pair >> 1], sizes[pair >> 1] = at, size
    if count & 1:
        at, size = begins[count - 1], sizes[count - 1]
        for place in range(at, at + size + 1):
            out[place] = words[place]
        begins[count >> 1], sizes[count >> 1] = at, size


@kernel
def _largest(entries: Longs, series: Words, begins: Longs, ends: Longs) -> tuple[int, int]:
    """How many rows and how many runs the largest series have."""
    most, most_runs, first = 0, 0, 0
    while first < entries.size:
        last, count = first, 0
        while last < entries.size and series[entries[last]] == series[entries[first]]:
            count += ends[entries[last]] - begins[entries[last]]
            last += 1
        most, most_runs, first = max(most, count), max(most_runs, last - first), last
    return most, most_runs


@kernel
def merge_scattered(
    entries: Longs,
    series: Words,
    begins: Longs,
    ends: Longs,
    last_key: Words,
    bits: int,
    rows: Ints,
    group_ends: Longs,
    group_rows: Longs,
) -> int:
    """Merge runs of series whose rows lie in each other, row by row: the rows in their order, and how many series.

    `entries` are the runs ordered by their series, ties by input; `last_key` has so many bits. Key and place of a row
    in its series are one word, and the words of a series few enough to stay in the processor's cache while its runs are
    merged in pairs. -1 when key and place do not fit.
    """
    most, most_runs = _largest(entries, series, begins, ends)
    place_bits = 1
    while most >> place_bits:
        place_bits += 1
    if bits + place_bits > 63:
        return -1
    shift, mask = np.uint64(place_bits), np.uint64((1 << place_bits) - 1)
    words, others = np.empty(most + most_runs, np.uint64), np.empty(most + most_runs, np.uint64)
    own, at, sizes = np.empty(most, np.int32), np.empty(most_runs, np.int64), np.empty(most_runs, np.int64)
    groups, done, first = 0, 0, 0
    while first < entries.size:
        last, count = first, 0
        while last < entries.size and series[entries[last]] == series[entries[first]]:
            begin, run = begins[entries[last]], last - first
            size = ends[entries[last]] - begin
            at[run], sizes[run] = count + run, size
            for row in range(size):
                words[count + run + row] = last_key[begin + row] << shift | np.uint64(count + row)
                own[count + row] = begin + row
            count += size
            words[count + run] = ABOVE
            last += 1
        group_rows[groups] = begins[entries[first]]
        runs = last - first
        while runs > 1:
            _merge_words(words, at, sizes, runs, others)
            words, others = others, words
            runs = (runs + 1) >> 1
        for row in range(count):
            rows[done + row] = own[np.int64(words[row] & mask)]
        done += count
        group_ends[groups] = done
        groups, first = groups + 1, last
    return groups


@kernel
def _merge_pairs(keys: Words, rows: Ints, ends: Longs, count: int, out: Words, out_rows: Ints) -> None:
    """Merge neighbouring stretches, of which there are `count` and which end before `ends`, in pairs."""
    first = 0
    for pair in range(0, count - 1, 2):
        middle, last = ends[pair], ends[pair + 1]
        _merge_two(keys, rows, first, middle, last, out, out_rows)
        ends[pair >> 1] = last
        first = last
    if count & 1:
        for place in range(first, ends[count - 1]):
            out[place] = keys[place]
            out_rows[place] = rows[place]
        ends[count >> 1] = ends[count - 1]


def merge_rows(keys: Words, input_ends: Longs) -> tuple[Words, Ints]:
    """The keys of all rows in their order, and the rows: neighbouring inputs are merged until one is left.

    The keys of each input ascend. Rows with the same key keep their order.
    """
    found, rows = np.empty_like(keys), np.empty(keys.size, np.int32)
    merge_each(keys, input_ends, found, rows)
    return found, rows


@kernel
def merge_each(keys: Words, input_ends: Longs, out: Words, out_rows: Ints) -> None:
    """The same, into two arrays."""
    ends, count, passes, found = input_ends.copy(), input_ends.size, 0, keys
    while 1 << passes < count:
        passes += 1
    target, target_rows = out, out_rows
    source, source_rows = np.empty(keys.size, np.uint64), np.empty(keys.size, np.int32)
    if passes & 1 == 0:
        # the last pass writes to `out`
        source, source_rows, target, target_rows = target, target_rows, source, source_rows
    for row in range(keys.size):
        source_rows[row] = row
    if passes == 0:
        out[:] = keys
    while count > 1:
        _merge_pairs(found, source_rows, ends, count, target, target_rows)
        count, found = (count + 1) >> 1, target
        source, source_rows, target, target_rows = target, target_rows, source, source_rows
