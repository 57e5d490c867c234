"""Data frames of the caller that a query names: pandas, Polars, Arrow, and whatever exports an Arrow stream."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import Any

import pyarrow as pa

from windrow.errors import InvalidInput

__all__ = ["as_tables", "is_frame"]

_LIBRARIES = ("pandas", "polars", "pyarrow")


def as_tables(frames: Mapping[str, object], taken: Collection[str]) -> dict[str, Any]:
    """Frames as DuckDB can be given them; a name that stands for a table of the lake already is refused."""
    small = {name.lower() for name in taken}
    for name in frames:
        if name.lower() in small:
            raise InvalidInput(f"tables: {name!r} is a table of the lake too; give the data another name")
    return {name: _readable(name, frame) for name, frame in frames.items()}


def is_frame(value: object) -> bool:
    """Whether a value is a data frame of a library, or an Arrow table."""
    library = type(value).__module__.partition(".")[0]
    return library in _LIBRARIES and (_is_pandas(value) or _is_lazy(value) or hasattr(value, "__arrow_c_stream__"))


def _readable(name: str, frame: Any) -> Any:
    if _is_lazy(frame):
        frame = frame.collect()
    if _is_pandas(frame):
        return frame
    if hasattr(frame, "__arrow_c_stream__"):
        return frame if isinstance(frame, pa.Table) else pa.table(frame)
    raise InvalidInput(
        f"tables: {name!r} is of type {type(frame).__name__}; give a pandas or Polars DataFrame, an Arrow table or "
        "anything that exports an Arrow stream"
    )


def _is_pandas(value: object) -> bool:
    return type(value).__name__ == "DataFrame" and type(value).__module__.partition(".")[0] == "pandas"


def _is_lazy(value: object) -> bool:
    return type(value).__name__ == "LazyFrame" and type(value).__module__.partition(".")[0] == "polars"
