"""Windrow keeps a lake of time-series Parquet sorted, compacted and fast.

import windrow

lake = windrow.connect("./lake")
metrics = lake.create_table("metrics", sort="metric_name|service|host|timestamp/V2", window="15m")
metrics.ingest(df)
lake.sql("select metric_name, avg(value) from metrics group by all").arrow()
"""

from importlib.metadata import version
from typing import TYPE_CHECKING

from windrow import errors
from windrow.exports import __dir__ as __dir__
from windrow.exports import __getattr__ as __getattr__

if TYPE_CHECKING:
    from windrow.lake import Lake, connect
    from windrow.table import Table

__version__ = version("windrow")

__all__ = ["Lake", "Table", "__version__", "connect", "errors"]
