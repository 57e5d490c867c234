"""Parquet files that are nobody's table: found by path, glob or address, described at first touch, fast afterwards.

The first touch of a remote file is one request for its end; what it says becomes a sidecar in the cache, and later
scans ask for data alone. Every answer of a store tells which object it is of, so a replaced file is noticed by the
same request that would have read it.
"""

from __future__ import annotations

import fnmatch
import glob
import re
from collections.abc import Callable, Mapping, Sequence
from datetime import datetime
from pathlib import Path

from windrow.cache import Cache, CacheKey, CacheKind
from windrow.errors import NotFound
from windrow.parquet.footer import TAIL_SIZE, ParquetFooter, parse_footer
from windrow.planning.data_files import DataFile
from windrow.planning.footers import load_footer
from windrow.planning.page_indexes import keep_page_indexes
from windrow.planning.scan_context import ScanContext
from windrow.sidecar import Sidecar
from windrow.sidecar.aligned_pages import find_granules
from windrow.sidecar.convert import Source, convert
from windrow.sidecar.granules import GranuleIndex
from windrow.storage import Identity, LocalStore, PatientStore, Store, reach_store, uri_of

__all__ = ["ForeignFiles"]

_WILDCARD = re.compile(r"[*?\[]")
_SCHEME = re.compile(r"[a-z][a-z0-9+.-]*://")
_MODIFIED = "modified "


class ForeignFiles:
    """Finds files and keeps what is known of them; `store_options` are those of `windrow.storage.open_store`.

    With `beside` the sidecars of local files are kept beside them, where all who read them find them.
    """

    def __init__(
        self,
        context: ScanContext,
        store_options: Mapping[str, str] | None = None,
        *,
        beside: bool = False,
        open_remote: Callable[[str, Mapping[str, str] | None], Store] | None = None,
    ) -> None:
        self.context = context
        self._beside = beside
        self._options = store_options
        self._open_remote = open_remote or _patient_store
        self._stores: dict[str, Store] = {}

    def find(self, pattern: str) -> list[DataFile]:
        """The files of a path, a glob or an address, in order of their names; none is `NotFound`."""
        found = self._remote(pattern) if _is_remote(pattern) else self._local(pattern)
        if not found:
            raise NotFound(f"{pattern}: there is no such file; check the path, or whether it was deleted")
        return found

    def forget(self, pattern: str) -> None:
        """Forget what is known of remote files: one of them was replaced."""
        if self.context.cache is not None and _is_remote(pattern):
            for store, key in self._objects(pattern):
                self.context.cache.invalidate(_described(store, key))

    def _local(self, pattern: str) -> list[DataFile]:
        plain = pattern.removeprefix("file://")
        paths = [Path(path) for path in sorted(glob.glob(plain, recursive=True))]  # noqa: PTH207 (a Path has no whole pattern)
        return [self._local_file(path) for path in paths if path.is_file()]

    def _local_file(self, path: Path) -> DataFile:
        real = path.resolve()
        store = self._store(str(real.parent), lambda url, _: LocalStore(url))
        return DataFile(store, real.name, store.head(real.name).identity, describes_beside=self._beside)

    def _remote(self, pattern: str) -> list[DataFile]:
        return [self._remote_file(store, key) for store, key in self._objects(pattern)]

    def _remote_file(self, store: Store, key: str) -> DataFile:
        """A remote file as its description in the cache says; it is looked at only if there is none."""
        cache = self.context.cache
        described = _described(store, key)
        load = self._describe
        data = load(store, key) if cache is None else cache.get(described, lambda _: load(store, key))
        sidecar = Sidecar.of(data, name=described.uri, verify=False)
        file = DataFile(store, key, _identity(sidecar))
        if self.context.parsed is not None:
            self.context.parsed.put(CacheKey(file.uri, -1, -1, CacheKind.SIDECAR, file.cache_identity), sidecar)
        return file

    def _describe(self, store: Store, key: str) -> bytes:
        """The sidecar of a remote file, from one request; a small file is then here as a whole."""
        footer, info, tail = load_footer(store, key)
        file = DataFile(store, key, _known(info.identity))
        start = info.size - len(tail)
        parsed = parse_footer(footer[:-TAIL_SIZE], name=file.uri)
        # Page indexes that did not come along are not worth a request: what they save is not known.
        at_hand = bool((parsed.chunks["offset_index_offset"] >= start).all())

        def read(offset: int, length: int) -> bytes:
            return tail[offset - start : offset - start + length]

        granules = find_granules(parsed, read, name=file.uri) if at_hand else None
        if self.context.cache is not None:
            self.context.cache.get(CacheKey.footer(file.uri, file.cache_identity), lambda _: footer)
            self._keep(self.context.cache, file, parsed, granules, tail)
        return convert(Source(parsed, info.size, file.uri, None, _etag_of(file.identity), granules))

    def _keep(
        self,
        cache: Cache[bytes],
        file: DataFile,
        footer: ParquetFooter,
        granules: Sequence[GranuleIndex | None] | None,
        tail: bytes,
    ) -> None:
        """Keep what else came along with the footer: a small file as a whole, and page indexes that are of use."""
        if len(tail) == file.identity.size:
            cache.put(CacheKey(file.uri, 0, len(tail), CacheKind.DATA_RANGE, file.cache_identity), tail)
        if any(each is not None and len(each.rows) > 1 for each in granules or ()):
            keep_page_indexes(cache, file, footer.chunks, tail)

    def _objects(self, pattern: str) -> list[tuple[Store, str]]:
        """The objects that an address names; a wildcard is looked for in the listing of the folder before it."""
        folder, _, name = pattern.rpartition("/")
        wildcard = _WILDCARD.search(pattern)
        if wildcard is None:
            return [(self._store(folder, self._open_remote), name)]
        folder = pattern[: wildcard.start()].rpartition("/")[0]
        store = self._store(folder, self._open_remote)
        wanted = pattern[len(folder) + 1 :]
        return [(store, info.key) for info in store.list() if fnmatch.fnmatchcase(info.key, wanted)]

    def _store(self, url: str, make: Callable[[str, Mapping[str, str] | None], Store]) -> Store:
        if url not in self._stores:
            self._stores[url] = make(url, self._options)
        return self._stores[url]


def _patient_store(url: str, options: Mapping[str, str] | None) -> Store:
    return PatientStore(reach_store(url, options))


def _is_remote(pattern: str) -> bool:
    return _SCHEME.match(pattern) is not None and not pattern.startswith("file:")


def _described(store: Store, key: str) -> CacheKey:
    """The key of what is known of a remote file; which content that is, is said inside."""
    return CacheKey(uri_of(store.url, key), -1, -1, CacheKind.SIDECAR)


def _known(identity: Identity) -> Identity:
    """An identity as a sidecar can keep it: by etag, or by time where there is none."""
    return Identity(identity.size, identity.etag, None if identity.etag is not None else identity.modified)


def _etag_of(identity: Identity) -> str | None:
    if identity.etag is None and identity.modified is not None:
        return _MODIFIED + identity.modified.isoformat()
    return identity.etag


def _identity(sidecar: Sidecar) -> Identity:
    etag = sidecar.extensions.etag
    if etag is not None and etag.startswith(_MODIFIED):
        return Identity(sidecar.parquet_size, None, datetime.fromisoformat(etag.removeprefix(_MODIFIED)))
    return Identity(sidecar.parquet_size, etag)
