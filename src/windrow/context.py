"""What everybody who works on one lake shares: its store, its metastore, its clock and its ids."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Self
from weakref import WeakValueDictionary

from windrow.bounded import BoundedCache
from windrow.cache import Cache, MemoryCache
from windrow.errors import NotFound, StorageError
from windrow.identity.binding import Accept, BindingState, Terms, bind, examine
from windrow.identity.identify import beside
from windrow.identity.marker import BESIDE, Marker
from windrow.learning.learner import Learner
from windrow.metastore import Metastore
from windrow.metastore.database import plain_address
from windrow.mirror.follow import Mirror
from windrow.mirror.metastore import MirroredMetastore
from windrow.model.ids import time_ordered_id
from windrow.model.learning_settings import NOTHING_LEARNT, LearningSettings
from windrow.model.limits import NO_LIMITS, Limits
from windrow.planning.foreign_files import ForeignFiles
from windrow.planning.heat import Heat
from windrow.planning.listed_files import ListedVersions
from windrow.planning.scan_context import ScanContext
from windrow.reading.cells import Cells
from windrow.reading.forcing import Forcing
from windrow.reading.pins import Pins
from windrow.reading.read_context import ReadContext
from windrow.reading.series import SeriesCache
from windrow.statistics.cached_catalog import CachedCatalog
from windrow.statistics.catalog import TableCatalog
from windrow.storage import Store, patient_if_remote, reach_store

__all__ = ["Context"]

_MOST_CATALOGS = 256
_SERIES_BYTES = 64 * 2**20


def _now() -> int:
    return time.time_ns() // 1000


def _new_id() -> str:
    return time_ordered_id(time.time_ns() // 1_000_000, os.urandom(10))


@dataclass(frozen=True, slots=True)
class Context:
    """The parts of an open lake. A pickled one is opened anew from its addresses where it arrives."""

    url: str
    store: Store
    metastore: Metastore
    store_options: Mapping[str, str] = field(default_factory=dict, repr=False)
    now: Callable[[], int] = _now
    """Microseconds since the epoch."""
    new_id: Callable[[], str] = _new_id
    metastore_url: str | None = field(default=None, repr=False)
    """The address of the metastore with its password; None is the one in the lake's own folder."""
    cache: Cache[bytes] | None = None
    """For bytes of sidecars and of remote files; None keeps none."""
    parsed: MemoryCache[Any] | None = None
    """For parsed sidecars."""
    decoded: Cells | None = field(default=None, repr=False, compare=False)
    """For what is decoded for small questions; None keeps none."""
    series: SeriesCache | None = field(init=False, repr=False, compare=False)
    """For the series and times of row groups; None where nothing is decoded."""
    learnt: CachedCatalog | None = field(default=None, repr=False, compare=False)
    """Statistics of files that are in no table; None keeps none."""
    reading: Store | None = None
    """The store as queries read it: a remote one is requested again when it is slow."""
    prune: bool = True
    """Whether queries leave out what metadata shows not to match."""
    forcing: Forcing | None = field(default=None, repr=False, compare=False)
    """The source that reads are made to take, in tests."""
    sandbox: bool = False
    """Whether SQL reads tables of the lake and nothing else."""
    limits: Limits = NO_LIMITS
    """Threads and memory of this process for whatever works on the lake."""
    statistics: LearningSettings = NOTHING_LEARNT
    """What may be spent on statistics while queries run."""
    learner: Learner | None = field(init=False, repr=False, compare=False)
    """Learns from what queries read; None where nothing may be spent."""
    pins: Pins = field(init=False, repr=False, compare=False)
    """Versions that are being read."""
    listed: ListedVersions | None = field(init=False, repr=False, compare=False)
    """Listings of versions; None where nothing is cached."""
    heat: Heat = field(init=False, repr=False, compare=False)
    """Which windows queries read."""
    catalogs: BoundedCache[str, CachedCatalog] = field(init=False, repr=False, compare=False)
    """Statistics of the splits of tables, by the id of a table."""
    parts: WeakValueDictionary[type, Any] = field(init=False, repr=False, compare=False)
    """What rooms above share for this lake, by its kind, for as long as one of them holds it."""

    def __post_init__(self) -> None:
        object.__setattr__(self, "pins", Pins(self.metastore, self.new_id))
        listed = None if self.parsed is None else ListedVersions(self.parsed.budget)
        object.__setattr__(self, "listed", listed)
        series = None if self.decoded is None else SeriesCache(_SERIES_BYTES)
        object.__setattr__(self, "series", series)
        object.__setattr__(self, "heat", Heat(self.metastore))
        object.__setattr__(self, "catalogs", BoundedCache("statistics of tables", _MOST_CATALOGS))
        object.__setattr__(self, "learner", self._learner())
        object.__setattr__(self, "parts", WeakValueDictionary())

    @classmethod
    def open(
        cls,
        url: str,
        metastore_url: str | None = None,
        store_options: Mapping[str, str] | None = None,
        *,
        create: bool = True,
        accept: Accept | None = None,
        lake_key: int | None = None,
        **parts: Any,
    ) -> Self:
        """Open the store and the metastore of a lake; `parts` are clock, ids and caches, where they are given.

        With `lake_key`, which lake it is was resolved before.
        """
        options = dict(store_options or {})
        store = reach_store(url, options)
        address = metastore_url or beside(store, options)
        marker = Marker.read(store) if lake_key is None else None
        if metastore_url is None and store.root is not None:
            _prepare(store, store.root, marker, create=create, accept=accept)
        # A metastore that is lost is made again.
        made = create or accept == "repair"
        try:
            metastore = MirroredMetastore(address, store, create=made)
        except NotFound:
            # A lake with tables has lost its metastore: nobody should create one there.
            if lake_key is None:
                examine(store, marker, None, plain_address(address) if metastore_url else BESIDE).check(accept)
            raise
        try:
            if lake_key is None:
                bind(store, marker, metastore, Terms(create, accept, parts.get("new_id", _new_id)))
            else:
                metastore.lake_key = lake_key
        except BaseException:
            metastore.close()
            raise
        reading = patient_if_remote(store)
        return cls(store.url, store, metastore, options, metastore_url=metastore_url, reading=reading, **parts)

    @property
    def mirror(self) -> Mirror:
        """The Delta logs of the tables."""
        return Mirror(self.metastore, self.store)

    def statistics_of(self, table_id: str) -> CachedCatalog:
        """The statistics of a table's splits."""
        return self.catalogs.get_or_make(table_id, lambda: CachedCatalog(TableCatalog(self.metastore, table_id)))

    def _learner(self) -> Learner | None:
        if not self.statistics.share:
            return None
        store = self.reading or self.store
        planning = ScanContext(self.url, store, self.cache, self.parsed, self.store_options)
        return Learner(self.statistics, planning, ReadContext(self.url, store, self.cache, limits=self.limits))

    def foreign_files(self, *, beside: bool = False) -> ForeignFiles:
        """Files in no table, with what is known of them; `beside` is that of `ForeignFiles`."""
        scan = ScanContext(
            self.url,
            self.store,
            self.cache,
            self.parsed,
            threads=self.limits.workers,
            prune=self.prune,
            statistics=self.learnt,
        )
        return ForeignFiles(scan, self.store_options, beside=beside)

    def close(self) -> None:
        """Let go of the versions that are read, and give connections back."""
        if self.learner is not None:
            self.learner.close()
        self.pins.close()
        self.heat.close()
        self.metastore.close()

    def __reduce__(self) -> tuple[Callable[..., Context], tuple[Any, ...]]:
        lake_key = getattr(self.metastore, "lake_key", 0)
        return _open_again, (
            self.url,
            self.metastore_url,
            dict(self.store_options),
            lake_key,
            self.sandbox,
            self.limits,
            self.statistics,
        )


def _open_again(
    url: str,
    metastore_url: str | None,
    store_options: Mapping[str, str],
    lake_key: int,
    sandbox: bool,  # noqa: FBT001 (pickle passes by place)
    limits: Limits,
    statistics: LearningSettings,
) -> Context:
    parts: dict[str, Any] = {"sandbox": sandbox, "limits": limits, "statistics": statistics}
    return Context.open(url, metastore_url, store_options, create=False, lake_key=lake_key, **parts)


def _prepare(store: Store, root: Path, marker: Marker | None, *, create: bool, accept: Accept | None) -> None:
    """Have a folder for the database of a local lake; one that lost its database must not get an empty one unasked."""
    if (root / BESIDE).exists():
        return
    binding = examine(store, marker, None)
    if binding.state is BindingState.LOST and (root / BESIDE).exists():
        # Another process made the lake meanwhile.
        return
    binding.check(accept)
    if binding.state is BindingState.NEW and not create:
        raise NotFound(f"there is no lake in {root}: it has no {BESIDE}; create a table there first")
    _make_folder(root)


def _make_folder(root: Path) -> None:
    try:
        root.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise StorageError(
            f"the folder {root} cannot be made: {error.strerror}; choose a folder that you may write to"
        ) from error
