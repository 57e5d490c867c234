"""The Parquet files that a scan is about, and their sidecars: read, kept, and made anew where one is lost or wrong."""

from __future__ import annotations

from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from dataclasses import dataclass, field

from windrow.cache import Cache, CacheKey, CacheKind
from windrow.errors import Damaged, Incompatible, NotFound, StorageError
from windrow.model.split import SidecarLocation, SplitMetadata, sidecar_key
from windrow.parquet.footer import ParquetFooter, read_footer
from windrow.planning.footers import FIRST_CONTACT
from windrow.planning.scan_context import ScanContext
from windrow.sidecar import Sidecar
from windrow.sidecar.build import build_sidecar, footer_bytes_of
from windrow.sidecar.convert import Read
from windrow.sidecar.pruning import FEW_ROW_GROUPS, MOST_JUDGED
from windrow.sidecar.sound import sound_sidecar
from windrow.statistics.layout import FileId, split_id_of
from windrow.storage import (
    ByteRange,
    Identity,
    Store,
    is_foreign,
    local_path,
    patient_if_remote,
    reach_foreign,
    uri_of,
)

__all__ = ["DataFile", "build_for", "file_id_of", "local_sidecar", "open_sidecars", "split_file"]

_OBJECT_BYTES, _COLUMN_BYTES = 12_000, 850
"""What a parsed sidecar takes besides its bytes: objects, arrays and sections, and the schema of each column."""
_BOUND_BYTES = 160
"""What bounds of one column in one row group take, once they were asked about."""
_PARALLEL = 16


@dataclass(frozen=True, slots=True)
class DataFile:
    """One Parquet file."""

    store: Store
    key: str
    identity: Identity
    """What the file must be when it is read; of our own splits, which never change, the size is enough."""
    sidecar: SidecarLocation | None = None
    sidecar_store: Store | None = None
    """Where the sidecar is, if not beside the file."""
    describes_beside: bool = False
    """Whether a sidecar that has to be made is put beside the file, for others to find."""
    epoch: int = 0
    """The schema epoch that it was written in; 0 where there are none."""
    described: bytes | None = field(default=None, repr=False)
    """Its sidecar, where the planner made that: other readers of the file would find other columns, or other rows."""
    split: FileId | None = field(default=None, repr=False, compare=False)
    """What statistics of a split are stored under; None for a file that is in no table."""

    @property
    def uri(self) -> str:
        """Where the file is."""
        return uri_of(self.store.url, self.key)

    @property
    def is_mutable(self) -> bool:
        """Whether the file can be replaced by another one of its size."""
        return self.identity.etag is not None or self.identity.modified is not None

    @property
    def cache_identity(self) -> str | None:
        """What stands for the content in keys of caches; None where the address alone does."""
        return str(self.identity) if self.is_mutable else None

    def read(self, offset: int, length: int) -> bytes:
        """Bytes of this very file: `Replaced` if another one is there."""
        [data] = self.store.get_ranges(self.key, [ByteRange(offset, length)], expect=self.identity)
        return data


def split_file(context: ScanContext, split: SplitMetadata, stores: dict[str, Store]) -> DataFile:
    """The file of a split; `stores` keeps those that hold registered files, which are outside of the lake."""
    epoch = split.scope.doc_mapping_uid
    if not is_foreign(split.key):
        identity = Identity(split.size_bytes)
        return DataFile(context.store, split.key, identity, split.sidecar, epoch=epoch, split=split_id_of(split))
    folder, _, name = split.key.rpartition("/")
    if folder not in stores:
        store, _ = reach_foreign(split.key, context.store_options)
        stores[folder] = patient_if_remote(store)
    name = name if local_path(split.key) is None else str(local_path(split.key)).rpartition("/")[2]
    identity = Identity(split.size_bytes, split.etag)
    return DataFile(stores[folder], name, identity, split.sidecar, context.store, epoch=epoch, split=split_id_of(split))


def file_id_of(file: DataFile) -> FileId:
    """What statistics of a file are stored under."""
    return file.split or FileId(file.uri, str(file.identity))


def open_sidecars(context: ScanContext, files: Sequence[DataFile]) -> list[Sidecar]:
    """The sidecars of files, in their order; those that have to be fetched, several at once."""
    if len(files) < 2 or not any(file.store.is_remote for file in files):
        return [_open(context, file) for file in files]
    with ThreadPoolExecutor(min(_PARALLEL, len(files))) as pool:
        return list(pool.map(lambda file: _open(context, file), files))


def local_sidecar(context: ScanContext, file: DataFile) -> Sidecar | None:
    """The sidecar of a file without a request to a store; None where only a request would bring it."""
    if not file.store.is_remote and (file.sidecar_store is None or not file.sidecar_store.is_remote):
        return _open(context, file)
    if file.described is not None or context.parsed is None:
        return None

    def refuse(_: CacheKey) -> Sidecar:
        raise NotFound(f"{file.uri}: its sidecar is in no cache; the next query reads it")

    try:
        found: Sidecar = context.parsed.get(CacheKey(file.uri, -1, -1, CacheKind.SIDECAR, file.cache_identity), refuse)
    except NotFound:
        return None
    return found


def weight_of(sidecar: Sidecar) -> int:
    """The memory that a parsed sidecar takes."""
    columns = sidecar.column_count
    bounds = _BOUND_BYTES * min(columns, MOST_JUDGED) * min(sidecar.row_group_count, FEW_ROW_GROUPS)
    return sidecar.content.size + _OBJECT_BYTES + _COLUMN_BYTES * columns + bounds


def _open(context: ScanContext, file: DataFile) -> Sidecar:
    if file.described is not None:
        return Sidecar.of(file.described, name=file.uri, verify=False)
    if context.parsed is None:
        return _load(context, file)
    key = CacheKey(file.uri, -1, -1, CacheKind.SIDECAR, file.cache_identity)
    found: Sidecar = context.parsed.get(key, lambda _: _load(context, file))
    return found


def _load(context: ScanContext, file: DataFile) -> Sidecar:
    """The sidecar that was written with the file; where it is lost or describes another file, one that is made now."""
    place = file.sidecar
    if place is None:
        key = CacheKey(file.uri, -1, -1, CacheKind.SIDECAR, file.cache_identity)
        make = _beside if file.describes_beside else build_for
        cache = context.cache
        data = make(file) if cache is None else cache.get(key, lambda _: make(file, cache))
        return Sidecar.of(data, name=file.uri, verify=False)
    return sound_sidecar(lambda: _read(context, file, place), _TailReader(file).read, file.identity.size, name=file.uri)


def _read(context: ScanContext, file: DataFile, place: SidecarLocation) -> Sidecar:
    size, store = file.identity.size, file.sidecar_store or file.store
    path = store.local.path(place.key) if store.local is not None and not place.offset else None
    if path is not None:
        return _complete(Sidecar.open(path, parquet_size=size))
    uri = uri_of(store.url, place.key)

    def fetch(_: CacheKey) -> bytes:
        try:
            return store.get_ranges(place.key, [ByteRange(place.offset, place.length)])[0]
        except StorageError as error:
            if error.retryable:
                raise
            # One that is shorter than it was is as good as none.
            raise Damaged(f"{uri}: the sidecar cannot be read: {error}") from error

    key = CacheKey(uri, place.offset, place.length, CacheKind.SIDECAR)
    data = fetch(key) if context.cache is None else context.cache.get(key, fetch)
    return _complete(Sidecar.of(data, name=uri, parquet_size=size, committed=place.length))


def _complete(sidecar: Sidecar) -> Sidecar:
    if sidecar.schema is None:
        raise Incompatible(f"{sidecar.name}: the columns of the file do not follow from it; build it with our sections")
    return sidecar


def build_for(file: DataFile, cache: Cache[bytes] | None = None) -> bytes:
    """A sidecar made from the file itself; its footer comes from the cache if that has it."""
    read, size = _TailReader(file).read, file.identity.size
    footer = None if cache is None else _cached_footer(cache, file, read)
    return build_sidecar(read, size, name=file.uri, etag=file.identity.etag, footer=footer)


def _cached_footer(cache: Cache[bytes], file: DataFile, read: Read) -> ParquetFooter | None:
    """The footer as the cache has it; None where that is damaged."""
    key = CacheKey.footer(file.uri, file.cache_identity)
    data = cache.get(key, lambda _: footer_bytes_of(read, file.identity.size, name=file.uri))
    try:
        return read_footer(data, name=file.uri)
    except Damaged:
        cache.invalidate(key)
        return None


def _beside(file: DataFile, cache: Cache[bytes] | None = None) -> bytes:
    """The sidecar beside a file if it describes what the file is now, and otherwise a new one, which is put there."""
    key = sidecar_key(file.key)
    with suppress(NotFound, StorageError, Damaged, Incompatible):
        data = file.store.get(key)
        found = _complete(Sidecar.of(data, name=uri_of(file.store.url, key), parquet_size=file.identity.size))
        if found.extensions.etag == file.identity.etag:
            return data
    made = build_for(file, cache)
    # Where nothing may be written, the cache has it.
    with suppress(StorageError):
        file.store.put(key, made)
    return made


class _TailReader:
    """Reads a file; its end, where footer and page indexes are, by one request."""

    def __init__(self, file: DataFile) -> None:
        self._file = file
        self._start = max(file.identity.size - FIRST_CONTACT, 0)
        self._tail = b""

    def read(self, offset: int, length: int) -> bytes:
        """Bytes of the file."""
        if offset < self._start:
            return self._file.read(offset, length)
        if not self._tail:
            self._tail = self._file.read(self._start, self._file.identity.size - self._start)
        return self._tail[offset - self._start : offset - self._start + length]
