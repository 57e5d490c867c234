"""Libraries that come with an extra of the package: a call that needs one names the extra."""

from __future__ import annotations

from importlib.util import find_spec

from windrow.errors import MissingDependency

__all__ = ["require_polars"]


def require_polars() -> None:
    """Refuse to go on without Polars."""
    if find_spec("polars") is None:
        raise MissingDependency("Polars is not installed; run: pip install 'windrow[polars]'")
