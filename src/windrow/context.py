"""What the faces of one lake share: its store, its metastore, its clock and its ids."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

from windrow.metastore import Metastore
from windrow.model.ids import time_ordered_id
from windrow.storage import Store

__all__ = ["Context"]


def _now() -> int:
    return time.time_ns() // 1000


def _new_id() -> str:
    return time_ordered_id(time.time_ns() // 1_000_000, os.urandom(10))


@dataclass(frozen=True, slots=True)
class Context:
    """The parts of an open lake."""

    url: str
    store: Store
    metastore: Metastore
    store_options: Mapping[str, str] = field(default_factory=dict)
    now: Callable[[], int] = _now
    """Microseconds since the epoch."""
    new_id: Callable[[], str] = _new_id
