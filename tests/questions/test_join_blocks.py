"""Which joins of a query may be reordered, and that a reordered query is the same query."""

from __future__ import annotations

import json
from collections import Counter

import duckdb
import pyarrow as pa
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from sqlglot import parse_one

from windrow.questions.explicit_order import Target, rewrite
from windrow.questions.join_blocks import NotUnderstood, join_blocks
from windrow.statistics.join_graph import Join, set_of

SCHEMAS = {
    "a": pa.schema({"k": pa.int64(), "x": pa.int64(), "Name": pa.string()}),
    "b": pa.schema({"k": pa.int64(), "y": pa.int64()}),
    "c": pa.schema({"k": pa.int64(), "x": pa.int64(), "z": pa.string()}),
    "d": pa.schema({"w": pa.int64(), "when": pa.float64()}),
}


def blocks_of(sql):
    return join_blocks(parse_one(sql, read="duckdb"), SCHEMAS)


def graph_of(sql):
    (block,) = blocks_of(sql)
    return block.graph


# ---- what is understood


def test_conditions_stand_where_they_belong():
    (block,) = blocks_of(
        "select * from a, b, d where a.k = b.k and y = w and a.x > 3 and Name like '%s%' and a.x + y < 10 and 1 = 1"
    )
    graph = block.graph
    assert [[each.sql for each in relation.filters] for relation in graph.relations] == [
        ['"x" > 3', "\"Name\" LIKE '%s%'"],
        [],
        [],
    ]
    assert [(each.left, each.left_column, each.right, each.right_column) for each in graph.equalities] == [
        (0, "k", 1, "k"),
        (1, "y", 2, "w"),
    ]
    assert [each.condition.sql for each in graph.residuals] == ['"0.x" + "1.y" < 10']
    assert [each.sql() for each in block.rest] == ["1 = 1"]


def test_a_filter_is_a_predicate_where_one_says_it():
    like, less = graph_of("select 1 from a join b using (k) where x < 3 and Name like '%s'").relations[0].filters[::-1]
    assert like.predicate is None
    assert less.predicate is not None


def test_equalities_follow_from_others():
    graph = graph_of("select 1 from a, b, c where a.k = b.k and b.k = c.k")
    assert [(each.left, each.right, each.is_implied) for each in graph.equalities] == [
        (0, 1, False),
        (1, 2, False),
        (0, 2, True),
    ]


def test_what_every_branch_of_an_or_says_counts():
    graph = graph_of("select 1 from a, b where (a.k = b.k and a.x = 1 and y = 2) or (a.k = b.k and a.x = 3 and y = 4)")
    assert len(graph.equalities) == 1
    assert [each.sql for each in graph.relations[0].filters] == ['("x" = 1 OR "x" = 3)']
    assert [each.sql for each in graph.relations[1].filters] == ['("y" = 2 OR "y" = 4)']


def test_later_joins_keep_their_place():
    (block,) = blocks_of("select 1 from a join b using (k) left join c on c.x = a.x join d on d.w = y where z is null")
    assert [each.alias for each in block.sources] == ["a", "b"]
    assert [each.this.name for each in block.later] == ["c", "d"]
    assert [each.sql() for each in block.rest] == ["z IS NULL"]


def test_each_select_has_a_group_of_its_own():
    found = blocks_of(
        "select 1 from (select a.x from a, b where a.k = b.k) i, c where c.x in (select w from d, b where w = y)"
    )
    assert [[each.alias for each in block.sources] for block in found] == [["a", "b"], ["d", "b"]]


@pytest.mark.parametrize(
    "sql",
    [
        "select 1 from a",
        "select 1 from a, b",
        "select 1 from a, b where a.x < b.y",
        "select 1 from a natural join b",
        "select 1 from a full join b using (k)",
        "select 1 from a join b using (k) right join c on c.x = a.x",
        "select 1 from a join b using (k) left join c using (k)",
        "select 1 from a asof join b on a.k = b.k and a.x >= b.y",
        "select 1 from a positional join b",
        "select 1 from a, b, lateral (select a.x) l where a.k = b.k",
        "select 1 from a, unknown u where a.k = u.k",
        "with b as (select 1 as k) select 1 from a, b where a.k = b.k",
        "select 1 from a, other.b where a.k = b.k",
        "select 1 from a, a where a.k = a.x",
        "select 1 from a, b where a.k = b.k limit 3",
        "select distinct on (a.k) a.k, y from a, b where a.k = b.k",
        "select first(y) from a, b where a.k = b.k",
        "select list(y) from a, b where a.k = b.k",
        "select string_agg(name) from a, b where a.k = b.k",
        "select 1 from a, b where a.k = b.k and random() < 0.5",
        "select 1 from a, b where a.k = b.k and k > 3",
        "select a from a, b where a.k = b.k",
        "select 1 from a tablesample 10%, b where a.k = b.k",
        "select 1 from a t(p, q, r), b where p = b.k",
        "select 1 from d, c where d.when = c.k",
        "select (select count(*) from a, b where a.k = b.k and a.x = d.w) from d",
        "select (select count(*) from a, b where a.k = b.k and a.x = w) from d",
        "select columns('k') from a, b where a.k = b.k",
    ],
)
def test_what_is_not_wholly_understood_is_left_as_it_is(sql):
    assert blocks_of(sql) == []


@pytest.mark.parametrize(
    ("sql", "problem"),
    [
        ("select sum(a.x) from a, b, c where a.k = b.k and b.k = c.k", "no name of its own"),
        ("select * exclude (y) from a, b, c where a.k = b.k and b.k = c.k", "more than the columns"),
        ("select * from a join b using (k) left join d on w = y", "more than the columns"),
    ],
)
def test_names_that_cannot_be_written_down_are_refused(sql, problem):
    tree = parse_one(sql, read="duckdb")
    (block,) = join_blocks(tree, SCHEMAS)
    order = Join(2, Join(1, 0)) if len(block.sources) == 3 else Join(1, 0)
    with pytest.raises(NotUnderstood, match=problem):
        rewrite(block, order, Target(needs_barriers=True))


def test_an_order_of_other_relations_is_refused():
    (block,) = blocks_of("select 1 as one from a, b, c where a.k = b.k and b.k = c.k")
    with pytest.raises(NotUnderstood, match="other relations"):
        rewrite(block, Join(0, 1), Target(needs_barriers=True))


# ---- how it is written


def rewritten(sql, order, target):
    tree = parse_one(sql, read="duckdb")
    (block,) = join_blocks(tree, SCHEMAS)
    rewrite(block, order, target)
    return tree


THREE = "select y, a.x as ax from a, b, d where a.k = b.k and y = w and a.x > 3"


def test_for_duckdb_a_query_that_nobody_may_join_across():
    assert rewritten(THREE, Join(2, Join(0, 1)), Target(needs_barriers=True)).sql("duckdb") == (
        'SELECT y, "joined_1"."a_x_1" AS ax FROM d AS "d" JOIN '
        '(SELECT "a"."x" AS "a_x_1", "b"."y" AS "y", RANDOM() AS "barrier_1" FROM a AS "a" '
        'JOIN b AS "b" ON "a"."k" = "b"."k" WHERE ("a"."x" > 3)) AS "joined_1" ON "joined_1"."y" = "d"."w"'
    ).replace('"a_x_1"', '"x"')


def test_for_spark_nesting_and_hints():
    small = Target(needs_barriers=False, is_broadcast=lambda relations: relations == 0b11)
    assert rewritten(THREE, Join(2, Join(0, 1)), small).sql("spark") == (
        "SELECT /*+ BROADCAST(`joined_1`) */ y, `joined_1`.`x` AS ax FROM d AS `d` JOIN "
        "(SELECT `a`.`x` AS `x`, `b`.`y` AS `y` FROM a AS `a` "
        "JOIN b AS `b` ON `a`.`k` = `b`.`k` WHERE (`a`.`x` > 3)) AS `joined_1` ON `joined_1`.`y` = `d`.`w`"
    )


def test_duckdb_obeys_the_order_and_drops_the_random_numbers():
    connection = duckdb.connect()
    for name, rows in {"a": 10, "b": 100_000, "d": 1000}.items():
        columns = {"a": "i as k, i as x, 'n' as Name", "b": "i as k, i as y", "d": 'i as w, i as "when"'}[name]
        connection.execute(f"create table {name} as select {columns} from range({rows}) t(i)")
    sql = rewritten(THREE, Join(0, Join(2, 1)), Target(needs_barriers=True)).sql("duckdb")
    plan = connection.execute(f"explain (format json) {sql}").fetchall()[0][1]
    top, inner = nested_joins(json.loads(plan)[0])
    assert (set(top.split(" = ")), set(inner.split(" = "))) == ({"k", "b_k_1"}, {"w", "y"})
    assert "random" not in plan.lower()


def nested_joins(node):
    """The conditions of joins, outer ones first."""
    own = [node["extra_info"]["Conditions"]] if "JOIN" in node["name"] else []
    return own + [each for child in node["children"] for each in nested_joins(child)]


# ---- the same rows, columns and names

KEYS = st.none() | st.integers(0, 3)
COLUMNS = {
    "a": st.tuples(KEYS, KEYS, st.none() | st.sampled_from(["s", "t", ""])),
    "b": st.tuples(KEYS, KEYS),
    "c": st.tuples(KEYS, KEYS, st.none() | st.sampled_from(["s", "u"])),
    "d": st.tuples(KEYS, st.none() | st.sampled_from([0.0, -0.0, 1.5, float("nan")])),
}
ROWS = st.fixed_dictionaries({name: st.lists(each, max_size=7) for name, each in COLUMNS.items()})
QUERIES = [
    "select * from a, b where a.k = b.k",
    "select * from a join b using (k) join c using (k)",
    "select b.*, c.z, * from a join b using (k), c where c.x = a.x and y > 0",
    "select k, y, name from a join b using (k) where k > 0 order by k",
    "select distinct a.K, c.z from a, b, c, d where a.k = b.k and b.y = c.x and d.w = a.x",
    "select a.x, count(*) as n, sum(y) as s from a, b, d where a.k = b.k and y = w group by a.x having count(*) > 1",
    (
        "select one.k, two.k, three.x from a one, a two, a three"
        " where one.k = two.x and two.k = three.x and one.x = three.k"
    ),
    (
        "select name, z from a join b on a.k = b.k join c on c.k = b.k and c.x > a.x left join d on d.w = c.x"
        " where b.y is not null"
    ),
    "select a.k as q from a join b on a.k = b.k join c on b.y = c.k semi join d on d.w = c.x",
    "select a.k as q from a join b on a.k = b.k join c on b.y = c.k anti join d on d.w = c.x where a.x <> c.x",
    (
        "select a.x as ax from a, b, c where a.k = b.k and c.k = b.k and exists (select 1 from d"
        " where w = a.x and w <> c.x)"
    ),
    "select a.x as ax from a, b, c where a.k = b.k and c.k = b.k and a.x in (select w from d)",
    "select y from a, b, c where a.k = b.k and c.k = b.k and y = (select min(w) from d where w >= y)",
    "select i.q, sum(i.y) as s from (select a.x as q, y, z from a, b, c where a.k = b.k and c.x = y) i group by i.q",
    "with f as (select a.k, y from a, b, d where a.k = b.k and w = y) select * from f, c where c.k = f.k",
    "select a.x as ax from a, b, c where a.k = b.k and ((a.x = 1 and c.x = 2) or (a.x = 2 and c.x = 1)) and c.k = a.k",
    "select a.x as ax from a, b, c where (a.k = b.k and a.x = 1 and c.k = y) or (a.k = b.k and c.k = y and c.z = 's')",
    'select "when" as v, b.y from d join b on d.w = b.y join a on a.k = b.k where "when" > 0',
    "select a.x + c.x as q from a, b, c where a.k = b.k and b.y = c.k order by q",
    (
        "select max(y) as m from a, b, c where a.k = b.k and c.k = b.k union all select min(a.x) as m from a, b, d"
        " where a.k = b.k and w = y"
    ),
    (
        "select name, row_number() over (partition by a.k order by y, c.x, name, c.z) as r from a, b, c"
        " where a.k = b.k and c.k = b.k"
    ),
    "select a.x as ax, (select count(*) from d where d.w = b.y) as n from a, b, c where a.k = b.k and c.k = b.k",
    "select a.k as q from a, b, c, d where a.k = b.k and b.k = c.k and c.k = d.w and a.x = c.x",
]


@st.composite
def orders(draw, block):
    """Any tree of joins without cross products."""
    graph = block.graph
    trees = list(range(len(graph.relations)))
    while len(trees) > 1:
        pairs = [(a, b) for a in trees for b in trees if a != b and graph.neighbours_of(set_of(a)) & set_of(b)]
        left, right = draw(st.sampled_from(pairs))
        trees = [each for each in trees if each not in (left, right)] + [Join(left, right)]
    return trees[0]


def answer(connection, sql):
    result = connection.execute(sql)
    return [each[0] for each in result.description], Counter(map(repr, result.fetchall()))


@pytest.mark.parametrize("sql", QUERIES)
@given(rows=ROWS, data=st.data())
@settings(max_examples=8, deadline=None, suppress_health_check=[HealthCheck.too_slow])
def test_any_order_answers_as_the_query_does(sql, rows, data):
    connection = duckdb.connect(config={"threads": 1})
    for name, schema in SCHEMAS.items():
        columns = list(zip(*rows[name], strict=True)) or [[] for _ in schema.names]
        table = pa.table([pa.array(each, field.type) for each, field in zip(columns, schema, strict=True)], schema)
        connection.register(name, table)
    tree = parse_one(sql, read="duckdb")
    blocks = join_blocks(tree, SCHEMAS)
    assert blocks
    for block in blocks:
        rewrite(block, data.draw(orders(block)), Target(needs_barriers=True))
    assert answer(connection, tree.sql("duckdb")) == answer(connection, sql)
    connection.close()


def test_names_of_the_result_may_be_given():
    sql = "select sum(a.x), min(c.z) from a, b, c where a.k = b.k and b.k = c.k"
    connection = duckdb.connect()
    for name, schema in SCHEMAS.items():
        connection.register(name, schema.empty_table())
    tree = parse_one(sql, read="duckdb")
    (block,) = join_blocks(tree, SCHEMAS)
    names, _ = answer(connection, sql)
    rewrite(block, Join(2, Join(1, 0)), Target(needs_barriers=True), names)
    assert answer(connection, tree.sql("duckdb")) == answer(connection, sql)
