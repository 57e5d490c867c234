"""Queries that are made from templates are those that a parser makes."""

from __future__ import annotations

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from windrow.questions.naming import Naming
from windrow.questions.templates import Templates, literals_in

SHAPES = [
    "select count(*), sum(value) from metrics where metric_name = {t} and timestamp >= timestamptz {d}",
    "select * from m where a between {n} and {n} and b in ({t}, {t}, {n}) limit {n}",
    "select a + {n} as b from m where c like {t} or not (d < -{n} and e <> {t}) order by {n}",
    "select a from m where t > timestamp {d} - interval {i} and u = {n}",
    "select a from m where t > now() - interval {n} hour and x = {t}",
    "select date_trunc({u}, t) as d, x[{n}] from m where t < date {d} group by {n}",
    "with q as (select * from m where a = {n}) select * from q, 'raw/{w}.parquet' r where r.b = {t} and q.c = ?",
    "select strftime(t, {t}), a->>{t}, cast({t} as integer), {n}::double, try_cast({t} as date) from m where b = {t}",
    'select case when a = {n} then {t} else {t} end as k, "odd {w}" from m where k > {n} having count(*) > {n}',
    "select E{t}, x'00', {n}.5, 1_000, {t} {t} from m where a = {n}",
    "select a from m tablesample {n}% where b = {t} union all select {n} from n where c > {n} offset {n}",
    "pivot m on a in ({t}, {t}) using sum(b)",
    "select {t} from m where a = {n} -- and b = {t}",
    "select * from m where a = $1 and b > ? and c = $name and d = {t}",
    "selekt {t} from",
]
VALUES = {
    "t": st.text("ab'%_ ;?$1\"\n", max_size=5).map(lambda text: "'" + text.replace("'", "''") + "'")
    | st.sampled_from(["'5 hours'", "'2026-01-01'", "'%Y-%m'", "'$.a[0]'", "'year'", "'1e5'"]),
    "n": st.sampled_from(["0", "1", "7", "12", "3.25", "1e3", "18446744073709551616", "007"]),
    "d": st.sampled_from(["'2026-01-01'", "'2026-01-01 12:00:00+02'", "'2026-01-01T12:00:00Z'", "'today'"]),
    "i": st.sampled_from(["'5 hours'", "'1' day", "'90 minutes'", "'5'"]),
    "u": st.sampled_from(["'hour'", "'day'", "'week'"]),
    "w": st.sampled_from(["x", "y1"]),
}


@st.composite
def queries(draw):
    """Some queries of few shapes, so that templates are met again with other values."""
    shapes = draw(st.lists(st.sampled_from(SHAPES), min_size=1, max_size=3))
    return [_filled(draw, shape) for shape in shapes for _ in range(draw(st.integers(1, 4)))]


def _filled(draw, shape):
    for name, values in VALUES.items():
        while "{" + name + "}" in shape:
            shape = shape.replace("{" + name + "}", draw(values), 1)
    return shape


def plain(query):
    """The query with marks of parameters named, as templates name them."""
    found = literals_in(query)
    if found is None:
        return query
    between, literals = found
    return "".join(a + b for a, b in zip(between, [*(each.written for each in literals), ""], strict=True))


@given(queries())
@example(["select a from m where b = 'x'", "select a from m where b = 'it''s'"])
@example(["select a from m where t > timestamp '2026-01-01'", "select a from m where t > timestamp '2026-01-01 00+02'"])
def test_a_template_with_the_values_of_a_query_is_the_query(asked):
    templates = Templates()
    for query in asked:
        fresh = Naming.of(plain(query))
        with templates.lend(query) as naming:
            assert naming.tree == fresh.tree
            assert repr(naming.tree) == repr(fresh.tree)
            assert (naming.words, naming.files) == (fresh.words, fresh.files)


def test_a_query_that_differs_by_its_values_is_not_parsed_again(monkeypatch):
    templates = Templates()
    with templates.lend("select a from m where b = 'x' and c > 1") as naming:
        first = naming.tree
    monkeypatch.setattr(Naming, "of", None)
    with templates.lend("select a from m where b = 'y''z' and c > 22") as naming:
        assert naming.tree is first
        assert naming.tree.sql("duckdb") == "SELECT a FROM m WHERE b = 'y''z' AND c > 22"


def test_a_template_is_lent_to_one_query_at_a_time():
    templates, query = Templates(), "select a from m where b = {}"
    with templates.lend(query.format(1)) as first, templates.lend(query.format(2)) as second:
        assert [each.tree.sql("duckdb")[-1] for each in (first, second)] == ["1", "2"]
    with templates.lend(query.format(3)) as third:
        assert third.tree in (first.tree, second.tree)


def test_marks_of_parameters_are_named_by_their_order():
    with Templates().lend("select a from m where b = ? and c > ? limit 3") as naming:
        text = naming.tree.sql("duckdb")
    assert text == "SELECT a FROM m WHERE b = $windrow_1 AND c > $windrow_2 LIMIT 3"


@pytest.mark.parametrize("query", ["select 'a' -- 'b'", "select $$a$$", "select E'\\''", "select /* 'x */ 'y'"])
def test_where_it_takes_a_parser_to_find_literals_one_is_used(query):
    assert literals_in(query) is None


def test_no_more_templates_are_kept_than_a_few_hundred():
    templates = Templates()
    for number in range(300):
        with templates.lend(f"select a_{number} from m where b = 'x'"):
            pass
    assert len(templates._templates) == len(templates._fixed) == 256
