"""The expression of a column matches every value, few others, and stays short."""

from __future__ import annotations

import json
import string
from pathlib import Path

import pytest
import re2
from hypothesis import example, given
from hypothesis import strategies as st

from windrow.splits.regexes import DEEPEST, superset_regex

CASES = json.loads((Path(__file__).parent / "cases" / "regexes.json").read_text(encoding="utf-8"))


@pytest.mark.parametrize("case", CASES, ids=lambda case: case["case"])
def test_expressions_are_written_like_this(case):
    limits = {name: case[name] for name in ("transitions", "longest", "deepest") if name in case}
    assert superset_regex(case["values"], **limits) == case["regex"]


alphabets = st.sampled_from(
    [
        st.sampled_from("ab"),
        st.sampled_from(string.hexdigits.lower() + "-"),
        st.sampled_from(string.punctuation + " "),
        st.sampled_from("\x00\t\n\r\x1b\x7f\x85\xa0\u2028"),
        st.sampled_from("aäöé\u0301ß中文\U0001f600\ud7ff\ue000\U0010ffff"),
        st.characters(exclude_categories=["Cs"]),
    ]
)
texts = alphabets.flatmap(lambda characters: st.lists(st.text(characters, max_size=12), min_size=1, max_size=40))
budgets = st.integers(1, 200)


@example(["a", "ab", "abc", "b"], 2, 600)
@given(texts, budgets, st.integers(10, 600))
def test_every_value_matches(values, transitions, longest):
    regex = superset_regex(values, transitions=transitions, longest=longest)
    if regex is not None:
        assert len(regex) <= longest
        assert [value for value in values if not re2.fullmatch(regex, value)] == []


class PrunedTrie:
    """The definition, slowly: all prefixes are states, and the heaviest that fit are opened."""

    def __init__(self, values, transitions):
        self.values = set(values)
        self.opened = set()
        waiting = {""}
        while waiting:
            state = min(waiting, key=lambda prefix: (-self.weight(prefix), len(prefix), prefix))
            waiting.remove(state)
            children = {value[: len(state) + 1] for value in self.values if value.startswith(state)} - {state}
            if len(children) <= transitions and len(state) < DEEPEST:
                transitions -= len(children)
                self.opened.add(state)
                waiting |= children

    def weight(self, prefix):
        return sum(value.startswith(prefix) for value in self.values)

    def accepts(self, text):
        for depth in range(len(text) + 1):
            prefix = text[:depth]
            if not self.weight(prefix):
                return False
            if prefix not in self.opened:
                return text in self.values or len(text) > depth
        return text in self.values


@given(texts, budgets, st.data())
def test_it_matches_what_the_pruned_trie_accepts(values, transitions, data):
    regex = superset_regex(values, transitions=transitions, longest=100_000)
    trie = PrunedTrie(values, transitions)
    assert (regex is None) == ("" not in trie.opened)
    drawn = data.draw(st.lists(st.text(st.sampled_from("".join(values) + "a\n"), max_size=12), max_size=20))
    for text in [*drawn, *(value[:-1] for value in values), *(value + "x" for value in values)] if regex else []:
        assert bool(re2.fullmatch(regex, text)) == trie.accepts(text), text


@given(texts, st.randoms(use_true_random=False))
def test_neither_order_nor_repetition_of_the_values_matters(values, random):
    again = values + random.choices(values, k=5)
    random.shuffle(again)
    assert superset_regex(again) == superset_regex(values)


def test_a_small_set_matches_exactly():
    services = ["ads", "cart", "checkout", "currency", "email", "payment"]
    regex = superset_regex(services)
    strangers = ["", "ad", "adsx", "ads\n", "\nads", "Cart", "cartcheckout", "emai", "mail", "payments"]
    assert [text for text in services + strangers if re2.fullmatch(regex, text)] == services


def test_long_values_are_cut_at_the_depth():
    values = ["x" * (DEEPEST - 1) + "y" * 1_000_000, "x" * (DEEPEST + 1)]
    regex = superset_regex(values, transitions=10_000)
    assert regex == "(?s)" + "x" * (DEEPEST - 1) + "[xy].+"
    assert all(re2.fullmatch(regex, value) for value in values)


def test_many_values():
    values = [f"pod-{number * 2_654_435_761 % 2**32:08x}" for number in range(100_000)]
    regex = superset_regex(values)
    assert [value for value in values[::1000] if not re2.fullmatch(regex, value)] == []
    assert not re2.fullmatch(regex, "node-1")
    assert not re2.fullmatch(regex, "pod-x")
