"""A sidecar that can be relied on: the stored one, or one made from the file if that is stale or damaged."""

from __future__ import annotations

import logging
from collections.abc import Callable

from windrow.errors import Damaged, Incompatible, NotFound, StorageError
from windrow.sidecar.build import build_sidecar
from windrow.sidecar.convert import Read
from windrow.sidecar.reader import Sidecar

__all__ = ["sound_sidecar"]

_log = logging.getLogger(__name__)


def sound_sidecar(load: Callable[[], Sidecar], read: Read, size: int, *, name: str, etag: str | None = None) -> Sidecar:
    """The sidecar that `load` gives, if it is sound and describes the Parquet file of this name, size and etag.

    Otherwise one is made from the bytes of that file, which `read` gives, and a warning says why; it is not stored.
    `load` verifies what it gives as far as the caller wants. Where the file does not help either, `Damaged` says both.
    """
    try:
        sidecar = load()
        if sidecar.describes(size, etag):
            return sidecar
        problem = f"{sidecar.name}: it describes another file than {name} of {size} bytes"
    except (Damaged, Incompatible, NotFound) as error:
        problem = str(error)
    try:
        data = build_sidecar(read, size, name=name, etag=etag)
    except (Damaged, Incompatible, NotFound, StorageError) as error:
        raise Damaged(f"{problem}; it cannot be made again from the Parquet file either: {error}") from error
    _log.warning("%s; it was made again from %s for this read", problem, name)
    return Sidecar.of(data, name=f"sidecar of {name}", verify=False)
