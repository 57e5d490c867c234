"""The file that statistics are of: which contents, and how many rows in which row groups."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from windrow.model.split import SplitMetadata

__all__ = ["MOST_ROW_GROUPS", "FileId", "FileLayout", "split_id_of"]

MOST_ROW_GROUPS = 32_767
"""Files of more row groups have no statistics: the row groups themselves would take more room than these may."""
_DIGEST_BYTES = 16


class FileId(NamedTuple):
    """One content of one file."""

    key: str
    """What a catalog finds the file by: a split's id, or the address of a foreign file."""
    identity: str
    """What tells contents of the file apart: size, and etag or time of change."""

    @property
    def digest(self) -> bytes:
        """A short name of the content."""
        return _digest(self.key.encode(), self.identity.encode())


@dataclass(frozen=True)
class FileLayout:
    """One content of one file, cut into row groups. Statistics of other row groups are not about it."""

    file: FileId
    row_groups: tuple[int, ...]
    """The rows of each row group."""

    @property
    def key(self) -> str:
        """What a catalog finds the file by."""
        return self.file.key

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
        """A short name of the content and its row groups."""
        return _digest(self.file.digest, self.row_counts.tobytes())


def split_id_of(split: SplitMetadata) -> FileId:
    """The content of a split, as the metastore knows it."""
    return FileId(split.split_id, f"{split.size_bytes} {split.etag or ''}")


def _digest(*parts: bytes) -> bytes:
    return hashlib.blake2b(b"\0".join(parts), digest_size=_DIGEST_BYTES).digest()
