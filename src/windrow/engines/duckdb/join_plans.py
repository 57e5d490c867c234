"""The order in which DuckDB would join a group of relations, and how many rows it expects, as EXPLAIN shows them."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import product
from typing import Any

import duckdb
import numpy as np
from sqlglot import exp

from windrow.questions.join_blocks import JoinBlock
from windrow.statistics.join_graph import Join, JoinTree, joins_of, members, set_of

__all__ = ["JoinPlan", "join_plan"]

_MOST_ASSIGNMENTS = 5000


@dataclass(frozen=True, slots=True)
class JoinPlan:
    """A tree of joins, and the rows that DuckDB expects of each set of relations in it."""

    tree: JoinTree
    rows: Mapping[int, float]


@dataclass(frozen=True, slots=True)
class _Shape:
    """The joins of a plan over its leaves, by their number."""

    tree: JoinTree
    leaves: tuple[frozenset[str], ...]
    """The columns of each leaf."""
    rows: Mapping[int, float]


def join_plan(
    query: exp.Expr, block: JoinBlock, cost: Callable[[JoinTree], float], cursor: duckdb.DuckDBPyConnection
) -> JoinPlan | None:
    """Return what DuckDB plans for a query of a group; None where that is no tree of joins."""
    try:
        found = cursor.execute(f"EXPLAIN (FORMAT json) {query.sql('duckdb')}").fetchall()
    except duckdb.Error:
        return None
    shape = _shape_of(json.loads(found[0][1])[0])
    return None if shape is None else _cheapest(shape, block, cost)


def _shape_of(plan: Mapping[str, Any]) -> _Shape | None:
    leaves: list[frozenset[str]] = []
    rows: dict[int, float] = {}
    tree = _tree(plan, leaves, rows)
    return None if tree is None else _Shape(tree, tuple(leaves), rows)


def _tree(node: Mapping[str, Any], leaves: list[frozenset[str]], rows: dict[int, float]) -> JoinTree | None:
    children = node["children"]
    tree: JoinTree | None
    if not children:
        columns = node["extra_info"].get("Projections", [])
        leaves.append(frozenset([columns] if isinstance(columns, str) else columns))
        tree = len(leaves) - 1
    else:
        sides = [_tree(child, leaves, rows) for child in children]
        left, right = sides if len(sides) == 2 and "JOIN" in node["name"] else (None, None)
        joined = None if left is None or right is None else Join(left, right)
        tree = sides[0] if len(sides) == 1 else joined
    expected = str(node["extra_info"].get("Estimated Cardinality", ""))
    if tree is not None and expected.isdigit():
        rows[set_of(tree)] = float(expected)
    return tree


def _cheapest(shape: _Shape, block: JoinBlock, cost: Callable[[JoinTree], float]) -> JoinPlan | None:
    """The plan of the group; of several that it may be the cheapest: DuckDB's order is not taken for a worse one."""
    trees = [(_relabelled(shape.tree, each), each) for each in _assignments(shape.leaves, block)]
    fitting = [(tree, numbers) for tree, numbers in trees if _is_connected(tree, block)]
    if not fitting:
        return None
    tree, numbers = min(fitting, key=lambda each: cost(each[0]))
    return JoinPlan(tree, {sum(1 << numbers[at] for at in members(some)): rows for some, rows in shape.rows.items()})


def _assignments(leaves: Sequence[frozenset[str]], block: JoinBlock) -> Iterator[tuple[int, ...]]:
    """Which relation each leaf may be, by its columns: one table may stand in a query more than once."""
    if len(leaves) != len(block.sources):
        return
    names = [frozenset(source.schema.names) for source in block.sources]
    fitting = [[number for number, own in enumerate(names) if columns <= own] for columns in leaves]
    if np.prod([float(len(each)) for each in fitting]) <= _MOST_ASSIGNMENTS:
        yield from (each for each in product(*fitting) if len(set(each)) == len(each))


def _is_connected(tree: JoinTree, block: JoinBlock) -> bool:
    return all(block.graph.between(set_of(join.left), set_of(join.right)) for join in joins_of(tree))


def _relabelled(tree: JoinTree, numbers: Sequence[int]) -> JoinTree:
    if isinstance(tree, Join):
        return Join(_relabelled(tree.left, numbers), _relabelled(tree.right, numbers))
    return numbers[tree]
