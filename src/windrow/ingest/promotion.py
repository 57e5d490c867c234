"""Decides, before anything is written, which attributes of OTLP files become columns."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace

from windrow.ingest.attributes import AttributeCounts, AttributeRule
from windrow.ingest.files import FileFormat, SourceFile, content_of

__all__ = ["with_promoted_attributes"]

_LOOKED_AT = 32 * 2**20
"""Attributes are counted in files of about so many bytes; of more, in files that lie evenly among them."""


def with_promoted_attributes(
    files: Sequence[SourceFile], rule: AttributeRule, *, keep: bool = False, looked_at: int = _LOOKED_AT
) -> list[SourceFile]:
    """Return the files, those of OTLP with the attributes that become columns in all of them alike.

    With `keep`, files that were looked at keep their points, for tasks of this process.
    """
    metrics = [file for file in files if file.format is FileFormat.OTLP]
    if not metrics:
        return list(files)
    from windrow.ingest.otlp import points_of

    chosen = list(_evenly(metrics, looked_at))
    points = {file.name: points_of([(file.name, content_of(file))]) for file in chosen}
    promoted = sum((each.counts() for each in points.values()), AttributeCounts()).promoted(rule)
    if len(chosen) < len(metrics):
        # A column of the table must be read as one, though the files that were looked at lack it.
        promoted |= rule.always
    by_file = points if keep else {}
    return [
        replace(file, promoted=promoted, points=by_file.get(file.name)) if file.format is FileFormat.OTLP else file
        for file in files
    ]


def _evenly(files: Sequence[SourceFile], most_bytes: int) -> Iterator[SourceFile]:
    """Yield all files, or every nth of them so that they have about the given size together."""
    step = max(1, -(-sum(file.size for file in files) // most_bytes))
    yield from files[::step]
