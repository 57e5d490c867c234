"""A batch of a stream: what names its commit, and how the checkpoint of its query moves."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any

from windrow.errors import InvalidInput
from windrow.metastore import Checkpoint, Metastore

__all__ = ["StreamBatch"]


@dataclass(frozen=True, slots=True)
class StreamBatch:
    """Which batch of which streaming query. Both numbers survive a restart from the query's checkpoint folder."""

    query_id: str
    batch_id: int
    offsets: str | None = None
    """A fingerprint of the offsets that the batch reads, where the checkpoint folder can be read."""

    def commit_id(self, table_id: str, source_id: str) -> str:
        """Return the name of the commit: the same for every attempt at this batch, and for nothing else.

        One batch may be written into several tables, and as several sources into one, by a commit each.
        """
        parts = "\0".join((self.query_id, table_id, source_id))
        return f"{hashlib.sha256(parts.encode()).hexdigest()[:32]}-{self.batch_id}"

    def checkpoint(self, metastore: Metastore, table_id: str, source_id: str) -> Checkpoint:
        """Return the step that publishing this batch takes, from where the query stands in the table now."""
        name = f"{source_id}@{self.query_id}"
        position = metastore.checkpoint(table_id, name)
        if position is not None and int(position) > self.batch_id:
            raise InvalidInput(
                f"query {self.query_id} stands at batch {position} of source {source_id!r}, and batch {self.batch_id} "
                "was never published; its checkpoint folder is older than the table. Start the query with a new "
                "checkpoint folder"
            )
        return Checkpoint(name, str(self.batch_id), position)

    def check_replay(self, published: Mapping[str, Any]) -> None:
        """Refuse to take this batch for the published one of the same number when it reads other offsets."""
        before = published.get("offsets")
        if self.offsets is not None and before is not None and self.offsets != before:
            raise InvalidInput(
                f"batch {self.batch_id} of query {self.query_id} was published with other offsets; its checkpoint "
                "folder is older than the table. Start the query with a new checkpoint folder"
            )

    def to_dict(self) -> dict[str, Any]:
        """Return plain values."""
        return asdict(self)
