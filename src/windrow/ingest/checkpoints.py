"""The checkpoint folder of a streaming query, as far as Windrow reads it: whose it is, and at which batch it stands.

Spark writes `metadata` when the query is first started, and `offsets/<batch>` before it runs a batch. Both outlive
the driver.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from dataclasses import dataclass

from windrow.errors import InvalidInput, WindrowError
from windrow.ingest.batch import StreamBatch
from windrow.storage import Store, reach_store

__all__ = ["QueryCheckpoint"]


@dataclass(frozen=True, slots=True)
class QueryCheckpoint:
    """The checkpoint folder of one query."""

    store: Store

    @classmethod
    def at(cls, url: str, store_options: Mapping[str, str]) -> QueryCheckpoint:
        """Open the folder; the options are those of the lake and count where both are remote."""
        try:
            return cls(reach_store(url, store_options))
        except InvalidInput as error:
            raise InvalidInput(
                f"checkpoint {url}: Windrow cannot read it ({error}). Keep it in a folder or bucket that it can read, "
                "or write by foreachBatch(table.stream.write), which needs no look at the checkpoint"
            ) from error

    def query_id(self) -> str:
        """Return the id that the query keeps over all its restarts."""
        try:
            return str(json.loads(self.store.get("metadata"))["id"])
        except (WindrowError, ValueError, KeyError, TypeError) as error:
            raise InvalidInput(
                f"checkpoint {self.store.url}: it does not name its query ({error}); give the folder that is the "
                "checkpointLocation of the running query"
            ) from error

    def batch(self) -> StreamBatch:
        """Return the batch that the query runs now: the newest whose offsets are written down."""
        names = (info.key.rpartition("/")[2] for info in self.store.list("offsets"))
        numbers = [int(name) for name in names if name.isdigit()]
        if not numbers:
            raise InvalidInput(f"checkpoint {self.store.url}: no batch was started yet; start the query first")
        return StreamBatch(self.query_id(), max(numbers), self.offsets(max(numbers)))

    def offsets(self, batch_id: int) -> str:
        """Return a fingerprint of what a batch reads; Spark writes it down once, before it first runs the batch."""
        return hashlib.sha256(self.store.get(f"offsets/{batch_id}")).hexdigest()[:16]
