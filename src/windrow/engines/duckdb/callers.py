"""Variables of a caller that a query names, as DuckDB's own Python package finds them.

What it buys: `lake.sql("select * from metrics join hosts using (host)")` with `hosts` a data frame of the caller. The
frames of the stack are walked up to the first one that is not Windrow's. That fails where Python has no frames, and
where the caller wraps the call in a function of his own: then no variable is there. The plain way is to give them:
`tables={"hosts": hosts}`.
"""

from __future__ import annotations

import inspect
import re
from collections.abc import Iterable
from types import FrameType
from typing import Any

from windrow.engines.duckdb.frames import is_frame
from windrow.tricks import Trick, is_on

__all__ = ["frames_named", "words_of"]

_WORD = re.compile(r"[^\W\d]\w*")
_OURS = __name__.partition(".")[0]


def frames_named(names: Iterable[str]) -> dict[str, Any]:
    """Data frames that are variables of whoever called Windrow."""
    frame = _caller()
    if frame is None:
        return {}
    near, far = frame.f_locals, frame.f_globals
    seen = {name: near.get(name, far.get(name)) for name in names}
    return {name: value for name, value in seen.items() if is_frame(value)}


def words_of(query: str) -> frozenset[str]:
    """Every word of a query: what it may name."""
    return frozenset(_WORD.findall(query))


def _caller() -> FrameType | None:
    frame = inspect.currentframe() if is_on(Trick.CALLER_VARIABLES) else None
    while frame is not None and _is_ours(str(frame.f_globals.get("__name__"))):
        frame = frame.f_back
    return frame


def _is_ours(module: str) -> bool:
    return module == _OURS or module.startswith(f"{_OURS}.")
