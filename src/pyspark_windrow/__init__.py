"""Spark looks for data sources in modules that are named like this one; so it knows `format("windrow")` by itself."""

from pyspark_windrow.source import WindrowSource as DefaultSource

__all__ = ["DefaultSource"]
