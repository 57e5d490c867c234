"""The one seam to bytes: objects under keys, on a local disk, in a bucket, over HTTP or in memory.

`open_store` gives a store for a URL. Everything else in Windrow reads and writes through the `Store` protocol alone.
"""

from windrow.storage.counting import CountingStore, Counts
from windrow.storage.keys import check_key, uri_of
from windrow.storage.local import LocalStore
from windrow.storage.mapped import let_go, pieces
from windrow.storage.opening import address_of, open_store, options_for
from windrow.storage.patient import PatientStore, patient_if_remote
from windrow.storage.protocol import (
    FILE_VERBS,
    VERBS,
    ByteRange,
    BytesLike,
    FileVerb,
    Identity,
    LocalFiles,
    ObjectInfo,
    OpenFile,
    Store,
    Unfinished,
    Verb,
)
from windrow.storage.ranges import Fetch, coalesce, gap_for
from windrow.storage.reaching import is_foreign, local_path, reach, reach_foreign, reach_store, url_of
from windrow.storage.wrapping import Call, StoreWrapper

__all__ = [
    "FILE_VERBS",
    "VERBS",
    "ByteRange",
    "BytesLike",
    "Call",
    "CountingStore",
    "Counts",
    "Fetch",
    "FileVerb",
    "Identity",
    "LocalFiles",
    "LocalStore",
    "ObjectInfo",
    "OpenFile",
    "PatientStore",
    "Store",
    "StoreWrapper",
    "Unfinished",
    "Verb",
    "address_of",
    "check_key",
    "coalesce",
    "gap_for",
    "is_foreign",
    "let_go",
    "local_path",
    "open_store",
    "options_for",
    "patient_if_remote",
    "pieces",
    "reach",
    "reach_foreign",
    "reach_store",
    "uri_of",
    "url_of",
]
