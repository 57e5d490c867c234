"""Variables of a caller that a query names, as DuckDB's own Python package finds them.

What it buys: `lake.sql("select * from metrics join hosts using (host)")` with `hosts` a data frame of the caller. The
frame is read two calls up the stack. That fails where Python keeps no frames, and where the caller wraps the call in a
function of his own: then no variable is there. The plain way is to give them: `tables={"hosts": hosts}`.
"""

from __future__ import annotations

import inspect
import re
from typing import Any

from windrow.engines.duckdb.frames import is_frame
from windrow.tricks import Trick, is_on

__all__ = ["named_frames"]

_WORD = re.compile(r"[^\W\d]\w*")


def named_frames(query: str) -> dict[str, Any]:
    """Data frames that are variables of whoever called the function that calls this, and that a query names."""
    frame = inspect.currentframe() if is_on(Trick.CALLER_VARIABLES) else None
    for _ in range(2):
        frame = None if frame is None else frame.f_back
    if frame is None:
        return {}
    near, far = frame.f_locals, frame.f_globals
    seen = {name: near.get(name, far.get(name)) for name in set(_WORD.findall(query))}
    return {name: value for name, value in seen.items() if is_frame(value)}
