"""The joins of a query by themselves: for an engine to explain its own order, and to count the rows of a join."""

from __future__ import annotations

from sqlglot import exp

from windrow.questions.join_blocks import JoinBlock
from windrow.statistics.join_graph import members

__all__ = ["counting_query", "skeleton"]


def skeleton(block: JoinBlock) -> exp.Select:
    """Return a query of the joins and filters of a group, in the order as written, with the columns that it gives."""
    columns = [
        _column(block, each).as_(f"c{number}", copy=False) for number, each in enumerate(sorted(_referred(block)))
    ]
    return _select(block, block.graph.everything, columns or [exp.Literal.number(1).as_("c0", copy=False)])


def counting_query(block: JoinBlock, relations: int) -> exp.Select:
    """Return a query that counts the rows of a join of some relations, with all conditions that fit into it."""
    return _select(block, relations, [exp.Count(this=exp.Star()).as_("rows", copy=False)])


def _select(block: JoinBlock, relations: int, columns: list[exp.Expr]) -> exp.Select:
    sources = [block.sources[number] for number in members(relations)]
    first, *others = [
        exp.alias_(each.node.copy(), exp.to_identifier(each.node.alias_or_name, quoted=True), table=True, copy=False)
        for each in sources
    ]
    query = exp.Select(expressions=columns)
    query.set("from_", exp.From(this=first))
    query.set("joins", [exp.Join(this=each) for each in others])
    conditions = [_qualified(block, part) for number in members(relations) for part in block.filters[number]]
    for equality in block.graph.equalities:
        is_needed = not equality.is_implied or relations != block.graph.everything
        if is_needed and all(1 << number & relations for number, _ in equality.sides):
            left, right = (_column(block, side) for side in equality.sides)
            conditions.append(exp.EQ(this=left, expression=right))
    for residual, condition in block.residuals.items():
        if residual.relations & ~relations == 0:
            conditions.append(_qualified(block, condition))
    if conditions:
        query.set("where", exp.Where(this=exp.and_(*conditions, copy=False)))
    return query


def _column(block: JoinBlock, column: tuple[int, str]) -> exp.Column:
    return exp.column(column[1], block.sources[column[0]].node.alias_or_name, quoted=True)


def _qualified(block: JoinBlock, condition: exp.Expr) -> exp.Expr:
    copy = exp.paren(condition)
    for old, new in zip(list(condition.find_all(exp.Column)), list(copy.find_all(exp.Column)), strict=True):
        new.replace(_column(block, block.columns[id(old)]))
    return copy


def _referred(block: JoinBlock) -> set[tuple[int, str]]:
    """The columns that the SELECT refers to outside of what is placed in the joins."""
    placed = {id(node) for part in _placed(block) for node in part.find_all(exp.Column)}
    nodes = (node for node in block.select.find_all(exp.Column) if id(node) not in placed)
    return {block.columns[id(node)] for node in nodes if id(node) in block.columns}


def _placed(block: JoinBlock) -> list[exp.Expr]:
    return [*(part for parts in block.filters for part in parts), *block.residuals.values()]
