"""A lake before its metastore, store and caches are loaded."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from windrow.engines.direct.answers import DirectAnswers

__all__ = ["Unopened"]


class Unopened:
    """A lake that was found whole, and is opened when its first answers are given or something else is wanted."""

    def __init__(self, url: str, direct: DirectAnswers, open_: Callable[[], Any]) -> None:
        self.url = url
        self.direct = direct
        self.open = open_
