"""The marker of a lake: a small file at its top that says which lake it is and which metastore it belongs to.

Spark, Hive, pyarrow and readers of Delta pass it by, since its name begins with an underscore.
"""

from __future__ import annotations

import json
import logging
from dataclasses import dataclass

from windrow.errors import AlreadyExists, Damaged, Incompatible, InvalidInput, NotFound, StorageError
from windrow.identity.names import BESIDE, MARKER, MARKER_FORMAT
from windrow.storage import Store

__all__ = ["BESIDE", "MARKER", "Marker"]

_log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class Marker:
    """What a lake says of itself."""

    lake_id: str
    metastore: str
    """The address of its metastore, without user and password."""

    @classmethod
    def read(cls, store: Store) -> Marker | None:
        """Return the marker of a lake; None where there is none, or where it may not be read."""
        try:
            data = store.get(MARKER)
        except NotFound:
            return None
        except StorageError as error:
            if error.retryable:
                raise
            # Some buckets answer "denied" for what is not there; the address alone decides then.
            _log.debug("the marker of the lake at %s was not read: %s", store.url, error)
            return None
        return _parsed(data, f"{store.url}/{MARKER}")

    def to_bytes(self) -> bytes:
        """Return the content of the file."""
        kind = "sqlite" if self.metastore == BESIDE else self.metastore.partition(":")[0]
        content = {"format": MARKER_FORMAT, "lake_id": self.lake_id, "kind": kind, "metastore": self.metastore}
        return json.dumps(content, indent=2).encode() + b"\n"

    def write(self, store: Store, *, over: bool = False) -> Marker:
        """Write the marker where there is none, or over the one that is there; return the one that is there then.

        A store that may only be read has none until someone who may write opens it.
        """
        try:
            if over:
                store.put(MARKER, self.to_bytes())
            else:
                store.put_if_absent(MARKER, self.to_bytes())
        except AlreadyExists:
            return Marker.read(store) or self
        except (StorageError, InvalidInput) as error:
            _log.debug("the marker of the lake at %s was not written: %s", store.url, error)
        return self


def _parsed(data: bytes, name: str) -> Marker:
    try:
        content = json.loads(data)
        made = content["format"], Marker(content["lake_id"], content["metastore"])
    except (ValueError, KeyError, TypeError) as error:
        raise Damaged(
            f"{name} is not what Windrow writes there; delete it, it is written again from the metastore"
        ) from error
    if made[0] != MARKER_FORMAT:
        raise Incompatible(f"{name} was written by a newer Windrow (format {made[0]}); install a newer Windrow")
    return made[1]
