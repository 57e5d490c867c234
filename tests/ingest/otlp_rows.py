"""The rows of OTLP files by themselves: read, counted and laid out at once."""

from __future__ import annotations

from windrow.ingest.attributes import AttributeRule
from windrow.ingest.otlp import points_of


def read_otlp(files, *, rare=0.01, already_promoted=frozenset()):
    """The points of files in order; attributes become columns by what these files hold."""
    rule = AttributeRule(rare, already_promoted)
    points = points_of(files)
    return points.to_arrow(points.counts().promoted(rule))
