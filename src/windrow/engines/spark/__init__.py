"""Scans as DataFrames of Spark."""
