"""The `_pm` file beside a Parquet file: everything that planning asks about it, as arrays, without opening it."""

from windrow.sidecar.reader import Sidecar

__all__ = ["Sidecar"]
