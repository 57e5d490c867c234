"""Windrow keeps a lake of time-series Parquet sorted, compacted and fast.

import windrow

lake = windrow.connect("./lake")
metrics = lake.create_table("metrics", sort="metric_name|service|host|timestamp/V2", window="15m")
metrics.ingest(df)
lake.sql("select metric_name, avg(value) from metrics group by all").arrow()
"""

from importlib import import_module
from importlib.metadata import version
from typing import TYPE_CHECKING, Any

from windrow import errors

if TYPE_CHECKING:
    from windrow.lake import Lake, connect
    from windrow.table import Table

__version__ = version("windrow")

__all__ = ["Lake", "Table", "__version__", "connect", "errors"]

_HOMES = {"Lake": "windrow.lake", "Table": "windrow.table", "connect": "windrow.lake"}


def __getattr__(name: str) -> Any:
    """Re-export when first asked for: the command line answers `--help` without loading a single engine."""
    if name not in _HOMES:
        raise AttributeError(f"module 'windrow' has no attribute {name!r}")
    return getattr(import_module(_HOMES[name]), name)
