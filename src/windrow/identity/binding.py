"""What a lake and its metastore say of each other: it is opened, claimed, or refused with a way out."""

from __future__ import annotations

import logging
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from enum import StrEnum
from typing import Any, Literal

from windrow.errors import ConfigError, Conflict, Damaged, InvalidInput, MetastoreError, NotFound
from windrow.identity.address import HERE, has_own_address, lake_address, same_place
from windrow.identity.folders import table_folders
from windrow.identity.marker import BESIDE, MARKER, Marker
from windrow.metastore import LakeRecord, SqlMetastore
from windrow.storage import Store, is_foreign

__all__ = ["Accept", "Binding", "BindingState", "Terms", "bind", "examine"]

Accept = Literal["move", "add", "repair"]
"""What to do about a lake that is refused otherwise."""

_log = logging.getLogger(__name__)
_TABLES_TRIED = 5
_SPLITS_TRIED = 3


class BindingState(StrEnum):
    """How a lake stands to a metastore."""

    BOUND = "bound"
    NEW = "new"
    UNCLAIMED = "unclaimed"
    """The metastore is older than lakes with ids; the files of its tables are here."""
    MOVED = "moved"
    OTHER = "other lakes"
    """The metastore serves lakes at other addresses."""
    STRANGER = "another metastore"
    """The marker of the lake names a metastore that is not this one."""
    LOST = "lost metastore"
    """The lake holds tables, and the metastore knows none."""


@dataclass(frozen=True, slots=True)
class Binding:
    """How a lake stands to a metastore, and everything that a refusal names."""

    state: BindingState
    place: str
    """The address of the lake as it was opened."""
    address: str
    """The same as the metastore writes it down."""
    metastore: str
    """Without user and password."""
    lake_id: str | None = None
    lakes: tuple[LakeRecord, ...] = ()
    """All lakes that the metastore serves."""
    folders: tuple[str, ...] = ()
    """Tables in the store that the metastore does not know, where it knows none."""
    marker: Marker | None = field(default=None, repr=False)
    empty: bool = False
    """Whether the metastore has neither lakes nor tables."""

    @property
    def record(self) -> LakeRecord | None:
        """The lake as the metastore knows it."""
        return next((each for each in self.lakes if each.lake_id == self.lake_id), None)

    def to_dict(self) -> dict[str, Any]:
        """Return plain values."""
        try:
            self.check()
        except (ConfigError, Damaged) as error:
            problem: str | None = str(error)
        else:
            problem = None
        return {
            "lake": self.place,
            "lake_id": self.lake_id,
            "metastore": self.metastore,
            "state": self.state.value,
            "problem": problem,
            "lakes": [each.to_dict() for each in self.lakes],
        }

    def check(self, accept: Accept | None = None) -> None:
        """Refuse a lake that may not be opened as it stands, unless that is accepted."""
        if accept not in (None, "move", "add", "repair"):
            raise InvalidInput(f"accept: {accept!r} is none of move, add, repair")
        match self.state:
            case BindingState.NEW if accept == "move":
                raise NotFound(f"the metastore {self.metastore} knows no lake that could have moved to {self.place}")
            case BindingState.MOVED if accept != "move":
                raise ConfigError(self._moved())
            case BindingState.OTHER if accept not in ("move", "add"):
                raise ConfigError(self._other())
            case BindingState.OTHER if accept == "move" and len(self.lakes) > 1:
                raise ConfigError(self._ambiguous())
            case BindingState.STRANGER if accept != "add":
                raise ConfigError(self._stranger())
            case BindingState.LOST if accept != "repair":
                raise Damaged(self._lost())

    def _moved(self) -> str:
        record = self.record
        return (
            f"the lake at {self.place} is lake {self.lake_id} of the metastore {self.metastore}, which knows it at "
            f"{record.address if record else 'another address'}; if it was moved, run `windrow lake move` (in Python "
            'connect(..., accept="move")); a copy needs a metastore of its own'
        )

    def _other(self) -> str:
        served = ", ".join(each.address for each in self.lakes) or "a lake whose files are not there"
        return (
            f"the metastore {self.metastore} does not serve the lake at {self.place}; it serves {served}; if that lake "
            "was moved here, run `windrow lake move`, and to serve this lake too, run `windrow lake add` (in Python "
            'connect(..., accept="move") or connect(..., accept="add"))'
        )

    def _ambiguous(self) -> str:
        ids = ", ".join(f"{each.lake_id} ({each.address})" for each in self.lakes)
        return (
            f"the lake at {self.place} has no {MARKER} that says which lake of the metastore {self.metastore} was "
            f"moved there: {ids}; copy that file from where the lake was, then move it"
        )

    def _stranger(self) -> str:
        named = self.marker.metastore if self.marker else "another one"
        named = f"{BESIDE} in its own folder" if named == BESIDE else named
        return (
            f"the lake at {self.place} belongs to the metastore {named}, by its {MARKER}, and {self.metastore} does "
            "not know it; open it with its own metastore (--metastore, in Python metastore=); if that is lost, run "
            "`windrow lake add` to give it this one, then `windrow check --repair`"
        )

    def _lost(self) -> str:
        folders = ", ".join(self.folders[:5]) + (", ..." if len(self.folders) > 5 else "")
        what = f"{BESIDE} is not there" if self.metastore == BESIDE else f"{self.metastore} has no tables"
        other = "" if self.marker else "; if it belongs to another metastore, name that one (--metastore)"
        return (
            f"the lake at {self.place} has lost its metastore: {what}, and the tables are: {folders}; put the database "
            'back from a backup, or run `windrow check --repair` (in Python connect(..., accept="repair") and '
            f"lake.rebuild()), which makes every table again from its Delta log and its files{other}"
        )


def examine(store: Store, marker: Marker | None, metastore: SqlMetastore | None, absent: str = BESIDE) -> Binding:
    """Compare a lake with a metastore; None is one that is not there yet, and named. Nothing is changed."""
    address = lake_address(store, metastore)
    served = () if metastore is None else tuple(metastore.lakes())
    unclaimed = metastore is not None and metastore.has_unclaimed_tables()
    unbound = Binding(
        BindingState.NEW,
        store.url,
        address,
        absent if metastore is None else metastore.database.place,
        marker.lake_id if marker else None,
        served,
        marker=marker,
        empty=not served and not unclaimed,
    )
    if not has_own_address(store):
        return replace(unbound, state=BindingState.BOUND, lake_id=_read_through(served, marker))
    lake = next((each for each in served if _is(each, marker, address)), None)
    if lake is not None:
        return _of_lake(store, replace(unbound, lake_id=lake.lake_id), lake, metastore)
    stranger = BindingState.OTHER if marker is None else BindingState.STRANGER
    if unclaimed and metastore is not None:
        here = _files_are_here(store, metastore)
        claims = here or (here is None and marker is None and not served)
        return replace(unbound, state=BindingState.UNCLAIMED if claims else stranger)
    if served or (marker is not None and marker.metastore != own_name(address, metastore, absent)):
        return replace(unbound, state=stranger)
    folders = tuple(table_folders(store))
    return replace(unbound, state=BindingState.LOST if folders else BindingState.NEW, folders=folders)


def own_name(address: str, metastore: SqlMetastore | None, absent: str = BESIDE) -> str:
    """Return how the marker of a lake names its metastore; one in its folder moves with it and has no address."""
    if metastore is None:
        return absent
    return BESIDE if address == HERE else metastore.database.address


def _of_lake(store: Store, unbound: Binding, lake: LakeRecord, metastore: SqlMetastore | None) -> Binding:
    if not same_place(lake.address, unbound.address):
        return replace(unbound, state=BindingState.MOVED)
    folders = () if lake.tables else tuple(table_folders(store))
    if folders and metastore is not None:
        # Tables that came while the folders were listed are no lost ones.
        lake = next((each for each in metastore.lakes() if each.lake_id == lake.lake_id), lake)
    lost = folders and not lake.tables
    return replace(unbound, state=BindingState.LOST if lost else BindingState.BOUND, folders=folders)


def _read_through(served: Sequence[LakeRecord], marker: Marker | None) -> str | None:
    """Which lake is read through an address that is not its own."""
    if marker is not None or len(served) != 1:
        return marker.lake_id if marker else None
    return served[0].lake_id


def _is(lake: LakeRecord, marker: Marker | None, address: str) -> bool:
    return same_place(lake.address, address) if marker is None else lake.lake_id == marker.lake_id


def _files_are_here(store: Store, metastore: SqlMetastore) -> bool | None:
    """Whether the store holds some of the files that the metastore's tables show; None where they show none."""
    here: bool | None = None
    for table in metastore.tables()[:_TABLES_TRIED]:
        page = next(metastore.splits(table.table_id, table.version, page_size=_SPLITS_TRIED), [])
        for split in page:
            # A registered file lies elsewhere; its sidecar is in the lake.
            key = split.sidecar.key if is_foreign(split.key) and split.sidecar is not None else split.key
            here = _exists(store, key)
            if here:
                return True
    return here


def _exists(store: Store, key: str) -> bool:
    try:
        store.head(key)
    except NotFound:
        return False
    return True


@dataclass(frozen=True, slots=True)
class Terms:
    """What a metastore may do for a lake that it does not serve yet."""

    create: bool
    accept: Accept | None
    new_id: Callable[[], str]


def bind(store: Store, marker: Marker | None, metastore: SqlMetastore, terms: Terms) -> None:
    """Let a metastore serve a lake: as it does already, for the first time, or as is accepted; else refuse."""
    try:
        _bind(store, marker, metastore, terms)
    except Conflict:
        # Another lake came first; now it is seen.
        _bind(store, Marker.read(store), metastore, terms)


def _bind(store: Store, marker: Marker | None, metastore: SqlMetastore, terms: Terms) -> None:
    binding, accept = examine(store, marker, metastore), terms.accept
    binding.check(accept)
    record, anew = binding.record, False
    if binding.state in (BindingState.MOVED, BindingState.OTHER) and accept == "move" and binding.lakes:
        record, anew = record or binding.lakes[0], True
        metastore.move_lake(record.lake_id, binding.address)
    elif (
        record is None
        and has_own_address(store)
        and (terms.create or accept == "add" or binding.state is not BindingState.NEW)
    ):
        anew = binding.state is BindingState.STRANGER
        claims = binding.empty or binding.state is BindingState.UNCLAIMED or accept == "move"
        record = _added(metastore, binding, terms.new_id, claims=claims)
    if record is None:
        return
    metastore.lake_key = record.lake_key
    if not has_own_address(store) or not (anew or marker is None):
        return
    if terms.create or store.root is None or store.root.is_dir():
        # Else it is a disk that is not mounted, which must not look like a lake.
        _mark(store, Marker(record.lake_id, own_name(binding.address, metastore)), metastore, record, over=anew)


def _added(metastore: SqlMetastore, binding: Binding, new_id: Callable[[], str], *, claims: bool) -> LakeRecord | None:
    try:
        return metastore.add_lake(binding.lake_id or new_id(), binding.address, claims=claims)
    except MetastoreError as error:
        if error.retryable:
            raise
        # Whoever may only read the metastore can still read tables; one who may write claims it later.
        _log.debug("the metastore %s does not know the lake at %s yet: %s", binding.metastore, binding.place, error)
        return None


def _mark(store: Store, marker: Marker, metastore: SqlMetastore, record: LakeRecord, *, over: bool) -> None:
    there = marker.write(store, over=over)
    if there.lake_id == marker.lake_id:
        return
    if not record.tables:
        # Another metastore took the lake at the same moment.
        metastore.forget_lake(record.lake_id)
    raise Conflict(f"the lake at {store.url} became another one just now; open it again")
