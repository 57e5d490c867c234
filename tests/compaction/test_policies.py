"""When splits are worth a merge: cases as data, and what holds for any splits."""

from __future__ import annotations

import re
from collections import Counter
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from windrow.compaction.policies import (
    POLICIES,
    Circumstances,
    constant_write_amplification,
    expected_size,
    fewest_files,
    finalise,
    stable_log,
)
from windrow.metastore import Candidate
from windrow.model.settings import PolicySettings

MIB = 2**20
NOW = 1_700_000_000_000_000
ALL = {**POLICIES, "finalise": finalise}


def split(split_id, size, generation=0, age=0.0, rows=1000):
    return Candidate(split_id, f"{split_id}.parquet", int(size), rows, generation, NOW - int(age * 1e6))


def cases():
    text = Path(__file__).with_name("policies.txt").read_text()
    text = re.sub(r"^#.*\n", "", text, flags=re.MULTILINE)
    for block in text.strip().split("\n\n"):
        name, policy, splits, *expected = block.splitlines()
        yield pytest.param(policy, splits, expected, id=name)


def read_splits(text):
    for words in (each.split() for each in text.split(";")):
        count = int(words.pop(0)[:-1]) if words[0].endswith("*") else None
        name, size, *rest = words
        generation = next((int(word[1:]) for word in rest if word[0] == "g"), 0)
        age = next((float(word[:-1]) for word in rest if word[-1] == "s"), 0.0)
        for number in range(count or 1):
            # rows follow bytes, so that no split tells of a better compression
            rows = max(1, int(float(size) * 1000))
            yield split(name + ("" if count is None else str(number)), float(size) * MIB, generation, age, rows)


def read_policy(text):
    name, *settings = text.split()
    values = {"merge_factor": 10, "max_merge_factor": 12}
    values |= {key: int(value) for key, value in (each.split("=") for each in settings if "=" in each)}
    return ALL[name], Circumstances(NOW, 256 * MIB, PolicySettings(**values), endless="endless" in settings)


def named(words, splits):
    ids = [each.split_id for each in splits]
    return frozenset(one for one in ids for word in words if one == word or one.rstrip("0123456789") + "*" == word)


@pytest.mark.parametrize(("policy", "splits", "expected"), list(cases()))
def test_a_case(policy, splits, expected):
    (decide, at), splits = read_policy(policy), list(read_splits(splits))
    choice = decide(splits, at)
    merges = {named(line.split()[1:], splits) for line in expected if line.startswith("merge")}
    assert {frozenset(each.split_id for each in inputs) for inputs, _ in choice.merges} == merges
    left = {each.split_id: why for each, why in choice.left}
    for line in (line for line in expected if line.startswith("leave")):
        ids, _, reason = line.removeprefix("leave ").partition(": ")
        for one in named(ids.split(), splits):
            assert reason in left.pop(one)
    assert left == {}


sizes = st.integers(1, 300 * MIB) | st.integers(1, MIB)
anything = st.lists(
    st.tuples(sizes, st.integers(0, 9), st.floats(-10, 400_000), st.integers(1, 10**6)), max_size=80
).map(lambda rows: [split(f"s{n:03d}", size, gen, age, count) for n, (size, gen, age, count) in enumerate(rows)])
settings = st.builds(
    lambda low, more, ops: PolicySettings(merge_factor=low, max_merge_factor=low + more, max_merge_ops=ops),
    st.integers(2, 12),
    st.integers(0, 4),
    st.integers(1, 5),
)


def outcome(choice):
    merges = {frozenset(each.split_id for each in inputs) for inputs, _ in choice.merges}
    return merges, {each.split_id: why for each, why in choice.left}


@pytest.mark.parametrize("name", ALL)
class TestAnySplits:
    @given(splits=anything, policy=settings, more=st.booleans())
    def test_each_split_is_in_one_merge_or_left(self, name, splits, policy, more):
        choice = ALL[name](splits, Circumstances(NOW, 256 * MIB, policy, more_follow=more))
        decided = Counter(each for inputs, _ in choice.merges for each in inputs)
        decided.update(each for each, _ in choice.left)
        assert decided == Counter(splits)
        assert all(len(inputs) > 1 for inputs, _ in choice.merges)

    @given(splits=anything, policy=settings, random=st.randoms(use_true_random=False))
    def test_the_order_does_not_matter(self, name, splits, policy, random):
        at = Circumstances(NOW, 256 * MIB, policy)
        shuffled = random.sample(splits, len(splits))
        assert outcome(ALL[name](splits, at)) == outcome(ALL[name](shuffled, at))


@given(splits=anything, policy=settings)
def test_constant_merges_have_one_level_and_are_never_too_large(splits, policy):
    for inputs, _ in constant_write_amplification(splits, Circumstances(NOW, 256 * MIB, policy)).merges:
        assert len({each.generation for each in inputs}) == 1
        assert len(inputs) <= policy.max_merge_factor
        assert sum(each.size_bytes for each in inputs[:-1]) < 256 * MIB
        assert fewest_files(inputs, 256 * MIB) < len(inputs)


@given(splits=anything, policy=settings)
def test_stable_log_merges_are_never_too_large(splits, policy):
    for inputs, _ in stable_log(splits, Circumstances(NOW, 256 * MIB, policy)).merges:
        assert (
            policy.merge_factor <= len(inputs) <= policy.max_merge_factor
            or sum(each.size_bytes for each in inputs) >= 256 * MIB
        )
        assert sum(each.size_bytes for each in inputs[:-1]) < 256 * MIB


@given(splits=anything, policy=settings)
def test_finalising_leaves_fewer_files(splits, policy):
    for inputs, _ in finalise(splits, Circumstances(NOW, 256 * MIB, policy)).merges:
        assert fewest_files(inputs, 256 * MIB) < len(inputs)


def merged(inputs, target, names):
    outputs = fewest_files(inputs, target)
    size, rows = sum(each.size_bytes for each in inputs), sum(each.row_count for each in inputs)
    generation = max(each.generation for each in inputs) + 1
    return [split(next(names), size // outputs, generation, 0, rows // outputs) for _ in range(outputs)]


def settle(policy, splits, at):
    """Merge until nothing is left to merge; return what remains and the bytes that were written."""
    names = (f"m{number}" for number in range(10**6))
    written = rounds = 0
    while True:
        choice = policy(splits, at)
        if not choice.merges:
            return splits, written
        outputs = [each for inputs, _ in choice.merges for each in merged(inputs, at.target, names)]
        written += sum(each.size_bytes for each in outputs)
        splits = [each for each, _ in choice.left] + outputs
        rounds += 1
        assert rounds < 100


def _mature(each):
    return each.generation >= 3 or 4 * each.size_bytes >= 3 * 256 * MIB


@pytest.mark.parametrize("factor", [3, 4, 5])
def test_many_small_splits_converge_by_levels(factor):
    at = Circumstances(
        NOW, 256 * MIB, PolicySettings(merge_factor=factor, max_merge_factor=factor + 2, max_merge_ops=3)
    )
    remaining, written = settle(constant_write_amplification, [split(f"a{n}", 10 * MIB) for n in range(200)], at)
    young = Counter(
        each.generation for each in remaining if each.generation < 3 and 4 * each.size_bytes < 3 * at.target
    )
    assert all(count < factor for count in young.values())
    assert written <= 3 * 2000 * MIB


@pytest.mark.parametrize("factor", [3, 4, 5, 10])
def test_many_small_splits_converge_by_size(factor):
    at = Circumstances(NOW, 256 * MIB, PolicySettings(merge_factor=factor, max_merge_factor=factor + 2))
    remaining, written = settle(stable_log, [split(f"a{n}", 10 * MIB) for n in range(200)], at)
    assert len([each for each in remaining if each.size_bytes < at.target]) < 3 * factor
    assert written <= 4 * 2000 * MIB


@pytest.mark.parametrize("count", [2, 5, 26, 200, 1000])
def test_a_closed_window_converges_to_the_fewest_files(count):
    at = Circumstances(NOW, 256 * MIB)
    remaining, written = settle(finalise, [split(f"a{n}", 10 * MIB, age=7200) for n in range(count)], at)
    assert len(remaining) <= fewest_files([split("all", count * 10 * MIB)], 256 * MIB)
    assert written <= 2 * count * 10 * MIB


@given(splits=anything)
def test_finalising_ends(splits):
    at = Circumstances(NOW, 256 * MIB, patience=0)
    remaining, _ = settle(finalise, splits, at)
    assert not finalise(remaining, replace(at, now=NOW + 10**15)).merges


@pytest.mark.parametrize("policy", [stable_log, constant_write_amplification])
def test_a_split_a_day_without_an_end_costs_few_rewrites_and_leaves_few_files(policy):
    names = (f"m{number}" for number in range(10**6))
    splits, now = [], NOW
    for day in range(200):
        now = NOW + day * 86_400 * 10**6
        choice = policy(splits, Circumstances(now, 256 * MIB, PolicySettings(max_merge_ops=8), endless=True))
        outputs = [each for inputs, _ in choice.merges for each in merged(inputs, 256 * MIB, names)]
        fresh = [each._replace(created_at=now) for each in [*outputs, split(f"a{day}", 5000, rows=5)]]
        splits = [each for each, _ in choice.left] + fresh
    assert len(splits) <= 16
    assert max(each.generation for each in splits) <= 8


def test_large_files_tell_what_small_ones_will_take():
    small = [split(f"a{n}", 100_000, rows=1000) for n in range(10)]
    assert expected_size(small) == 1_000_000
    assert expected_size([*small, split("b", 1_000_000, rows=100_000)]) == 1_100_000
    assert expected_size([]) == 0
