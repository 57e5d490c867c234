"""Where a statement of SQL ends: at a semicolon that is in no text, no name and no comment."""

from __future__ import annotations

__all__ = ["is_complete", "statements"]


def is_complete(text: str) -> bool:
    """Whether what was typed can be run: a command, nothing at all, or statements with a semicolon behind the last."""
    stripped = text.strip()
    if not stripped or stripped.startswith("."):
        return True
    ends = _ends(text)
    return bool(ends) and _is_empty(text[ends[-1] :])


def statements(text: str) -> list[str]:
    """Return the statements in a text, without their semicolons; the last may lack its own."""
    starts = [0, *_ends(text)]
    stops = [*(end - 1 for end in _ends(text)), len(text)]
    pieces = [text[start:stop].strip() for start, stop in zip(starts, stops, strict=True)]
    return [piece for piece in pieces if not _is_empty(piece)]


def _ends(text: str) -> list[int]:
    """The places behind each semicolon that ends a statement; none while a text or a comment is open."""
    tokens = _tokens(text)
    return [] if tokens is None else [end for kind, end in tokens if kind == "SEMICOLON"]


def _is_empty(text: str) -> bool:
    return not text.strip() or _tokens(text) == []


def _tokens(text: str) -> list[tuple[str, int]] | None:
    """The kind of each token and the place behind it; None when the text cannot be read to its end."""
    from sqlglot.dialects.duckdb import DuckDB
    from sqlglot.errors import TokenError

    try:
        return [(token.token_type.name, token.end + 1) for token in DuckDB().tokenize(text)]
    except TokenError:
        return None
