"""Patterns of text as DuckDB reads them: regular expressions of RE2, and LIKE in which upper and lower case are one.

Lower case is that of each character by itself. Two letters outside of ASCII have one of ASCII as theirs: the Kelvin
sign, and the capital I with a dot.
"""

from __future__ import annotations

from functools import lru_cache
from itertools import takewhile
from typing import Any

import re2

__all__ = ["any_case_prefixes", "any_case_regex", "compiled", "matches_any_case", "regex_prefix"]

_QUIET = re2.Options()
_QUIET.log_errors = False
_SPECIAL = frozenset(r"\.+*?()|[]{}^$")
_MAKES_OPTIONAL = frozenset("*?{")
_MOST_PREFIXES = 64
_FORMS = {"k": ("K", "k", "\u212a"), "i": ("I", "i", "\u0130")}
_WITHOUT_CASE = {"%": ".*", "_": "."}


@lru_cache(maxsize=1024)
def compiled(pattern: str) -> Any:
    """Return a regular expression of RE2; None for what is none."""
    try:
        return re2.compile(pattern, _QUIET)
    except (re2.error, UnicodeEncodeError):
        return None


def regex_prefix(pattern: str) -> str:
    """Return the text that every match of an expression begins with; empty where that is not certain."""
    if pattern[:1] != "^" or "|" in pattern:
        return ""
    prefix = "".join(takewhile(lambda character: character not in _SPECIAL, pattern[1:]))
    # The last character may be one that need not be there.
    return prefix[:-1] if pattern[len(prefix) + 1 :][:1] in _MAKES_OPTIONAL else prefix


def matches_any_case(pattern: str, text: str) -> bool:
    """Whether a text is LIKE a pattern when both are in lower case."""
    return _like(_lower(pattern)).fullmatch(_lower(text)) is not None


def any_case_regex(pattern: str) -> str:
    """Return an expression that matches in all ASCII texts that are LIKE a pattern in any case."""
    return rf"(?i)\A{_like_regex(_lower(pattern))}\z"


def any_case_prefixes(pattern: str) -> tuple[str, ...]:
    """Return prefixes of which each text that is LIKE a pattern in any case has one; none is longer than it pays."""
    prefixes = [""]
    for character in takewhile(lambda each: each.isascii() and each not in _WITHOUT_CASE, pattern):
        forms = _FORMS.get(character.lower(), sorted({character.lower(), character.upper()}))
        if len(prefixes) * len(forms) > _MOST_PREFIXES:
            break
        prefixes = [prefix + form for prefix in prefixes for form in forms]
    return tuple(prefixes)


def _lower(text: str) -> str:
    if text.isascii():
        return text.lower()
    return "".join("i" if character == "\u0130" else character.lower() for character in text)


@lru_cache(maxsize=1024)
def _like(pattern: str) -> Any:
    return re2.compile(_like_regex(pattern), _QUIET)


def _like_regex(pattern: str) -> str:
    return "(?s:" + "".join(_WITHOUT_CASE.get(each) or re2.escape(each) for each in pattern) + ")"
