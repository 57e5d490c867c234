"""Spark looks for data sources in modules that are named like this one; so it knows `format("windrow")` by itself."""

from windrow.engines.spark_sink import WindrowSink as DefaultSource

__all__ = ["DefaultSource"]
