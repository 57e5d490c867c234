"""Merging the splits of a table: what to merge and why, doing it on a runner, and publishing it."""
