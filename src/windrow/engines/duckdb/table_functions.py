"""Calls of `questdb('path', 'table')` in place of a table: each becomes the name of a view.

The query is cut at the calls as a tokenizer sees them, so that texts and comments stay as they are, and so does
everything else that was written.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

from sqlglot import TokenType, tokenize
from sqlglot.errors import SqlglotError

from windrow.errors import InvalidInput
from windrow.questions.spelling import sql_name, sql_text

__all__ = ["CALL", "DatabaseCall", "with_views"]

CALL = "questdb"
"""The name of the function, in small letters."""
_ASSIGNS = frozenset({TokenType.COLON_EQ, TokenType.FARROW, TokenType.EQ})
_ALIASES = frozenset({TokenType.ALIAS, TokenType.VAR, TokenType.IDENTIFIER})
_TRUTH = {TokenType.TRUE: True, TokenType.FALSE: False}
_OPTIONS: dict[str, type] = {"native": str, "recover": bool, "deadline": float}
_USAGE = "write questdb('folder of a database', 'table') or questdb('folder of a table')"


@dataclass(frozen=True, slots=True)
class DatabaseCall:
    """One call: folder, perhaps a table, and options by name."""

    path: str
    table: str | None
    options: Mapping[str, Any]

    @property
    def name(self) -> str:
        """The call as it would be written; the view has this name."""
        given = [sql_text(each) for each in (self.path, self.table) if each is not None]
        given += [f"{key} := {value!r}" for key, value in self.options.items()]
        return f"{CALL}({', '.join(given)})"


def with_views(query: str) -> tuple[str, dict[str, DatabaseCall]]:
    """A query with names of views in place of calls, and the calls by these names."""
    if CALL not in query.lower():
        return query, {}
    try:
        tokens = list(tokenize(query, read="duckdb"))
    except SqlglotError:
        # The query itself will say what is wrong with it.
        return query, {}
    calls: dict[str, DatabaseCall] = {}
    pieces, end = [], 0
    for at, (token, following) in enumerate(pairwise(tokens)):
        is_call = token.text.lower() == CALL and following.token_type is TokenType.L_PAREN
        if not is_call or token.token_type is not TokenType.VAR or token.start < end:
            continue
        close = _closing(tokens, at + 2)
        call = _call(tokens[at + 2 : close])
        calls[call.name] = call
        has_alias = close + 1 < len(tokens) and tokens[close + 1].token_type in _ALIASES
        alias = "" if has_alias or call.table is None else f" AS {sql_name(call.table)}"
        pieces += [query[end : token.start], sql_name(call.name) + alias]
        end = tokens[close].end + 1
    return "".join([*pieces, query[end:]]), calls


def _closing(tokens: Sequence[Any], at: int) -> int:
    for place in range(at, len(tokens)):
        if tokens[place].token_type is TokenType.R_PAREN:
            return place
    raise InvalidInput(f"questdb(: the call is not closed; {_USAGE}")


def _call(tokens: Sequence[Any]) -> DatabaseCall:
    texts: list[str] = []
    options: dict[str, Any] = {}
    for argument in _arguments(tokens):
        match [token.token_type for token in argument]:
            case [TokenType.STRING] if not options:
                texts.append(argument[0].text)
            case [_, kind, _] if kind in _ASSIGNS:
                options[argument[0].text.lower()] = _value(argument[2])
            case _:
                written = " ".join(token.text for token in argument)
                raise InvalidInput(f"questdb(): {written!r} is no text; {_USAGE}")
    if len(texts) not in (1, 2):
        raise InvalidInput(f"questdb(): {len(texts)} texts are given; {_USAGE}")
    for name, value in options.items():
        if name not in _OPTIONS or not isinstance(value, _OPTIONS[name]):
            known = ", ".join(f"{each} (a {kind.__name__})" for each, kind in _OPTIONS.items())
            raise InvalidInput(
                f"questdb(): option {name!r} is unknown, or {value!r} is no value of it; there are {known}"
            )
    return DatabaseCall(texts[0], texts[1] if len(texts) > 1 else None, options)


def _arguments(tokens: Sequence[Any]) -> list[list[Any]]:
    arguments: list[list[Any]] = [[]]
    for token in tokens:
        if token.token_type is TokenType.COMMA:
            arguments.append([])
        else:
            arguments[-1].append(token)
    return arguments if arguments != [[]] else []


def _value(token: Any) -> str | bool | float:
    if token.token_type is TokenType.NUMBER:
        return float(token.text)
    return _TRUTH.get(token.token_type, str(token.text))
