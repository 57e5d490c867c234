"""The file that statistics are of: which contents, and how many rows in which row groups."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import numpy.typing as npt

from windrow.model.split import SplitMetadata

__all__ = ["MOST_ROW_GROUPS", "FileLayout", "split_layout"]

MOST_ROW_GROUPS = 32_767
"""Files of more row groups have no statistics: the row groups themselves would take more room than these may."""
_DIGEST_BYTES = 16


@dataclass(frozen=True)
class FileLayout:
    """One content of one file. Statistics of another identity, or of other row groups, are not about it."""

    key: str
    """What a catalog finds the file by: a split's id, or the address of a foreign file."""
    identity: str
    """What tells contents of the file apart: size, and etag or time of change."""
    row_groups: tuple[int, ...]
    """The rows of each row group."""

    @cached_property
    def rows(self) -> int:
        """All rows."""
        return sum(self.row_groups)

    @cached_property
    def row_counts(self) -> npt.NDArray[np.int64]:
        """The rows of each row group, as an array."""
        return np.array(self.row_groups, np.int64)

    @cached_property
    def starts(self) -> npt.NDArray[np.int64]:
        """Where each row group starts, and after them where the file ends."""
        return np.concatenate([np.zeros(1, np.int64), np.cumsum(self.row_counts)])

    @cached_property
    def fingerprint(self) -> bytes:
        """A short name of the content."""
        text = b"\0".join([self.key.encode(), self.identity.encode(), self.row_counts.tobytes()])
        return hashlib.blake2b(text, digest_size=_DIGEST_BYTES).digest()


def split_layout(split: SplitMetadata, row_groups: Iterable[int]) -> FileLayout:
    """The layout of a split whose row groups have so many rows."""
    return FileLayout(split.split_id, f"{split.size_bytes} {split.etag or ''}", tuple(row_groups))
