"""Merging splits of a table: what goes in is checked, what comes out is verified, described and only then stored."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import nullcontext
from dataclasses import dataclass, replace
from itertools import pairwise

import numpy as np
import pyarrow as pa

from windrow.errors import Damaged, InvalidInput, NotFound, StorageError
from windrow.merging.heap import keep_freed_memory
from windrow.merging.inputs import TOLD, Input, by_requests, open_inputs
from windrow.merging.merge import DEFAULT_OPTIONS, Merge, MergeOptions
from windrow.merging.output import Output
from windrow.merging.readback import ReadBack
from windrow.merging.verify import verify_all, verify_sample
from windrow.model.invariants import require
from windrow.model.scope import CompactionScope
from windrow.model.settings import TableSettings, Verify
from windrow.model.sort_schema import SortSchema
from windrow.model.split import KEY_VALUE_PREFIX, SidecarLocation, SplitMetadata, sidecar_key
from windrow.model.window import Window
from windrow.model.zones import NULL, ColumnZone
from windrow.sidecar import Sidecar
from windrow.sidecar.build import build_sidecar
from windrow.sidecar.granules import FirstKeys
from windrow.splits.digests import digest_of
from windrow.splits.granule_keys import keys_of_rows
from windrow.splits.writer import SplitName
from windrow.splits.zone_maps import column_zone
from windrow.storage import ByteRange, Store, let_go

__all__ = ["merge_splits", "open_splits"]

LONG_ETAG = 16


@dataclass(frozen=True, slots=True)
class _Place:
    """Where the outputs of a merge belong."""

    scope: CompactionScope
    window: Window
    generation: int
    replaces: tuple[str, ...]


def merge_splits(  # noqa: PLR0913 - what few callers need is given by name
    store: Store,
    splits: Sequence[SplitMetadata],
    settings: TableSettings,
    name: Callable[[int], SplitName],
    options: MergeOptions = DEFAULT_OPTIONS,
    *,
    field_ids: Mapping[str, int] | None = None,
    verify: Verify | None = None,
    bookkeeping: Sequence[str] = (),
    into: Store | None = None,
    gather_into: Window | None = None,
) -> list[SplitMetadata]:
    """Merge splits of one window and store the outputs; `name` gives the n-th output its name.

    `gather_into` is a cold window that the windows of the splits lie in: the outputs are of it.

    Nothing is stored before all outputs are verified: as the settings have it, or as `verify` does. When storing one of
    them fails, those before it stay as orphans: nobody sees them, and garbage collection takes them.
    Bookkeeping columns may change in a merge: they are not compared. `into` is for splits that are but runs of a write
    in another store: the outputs go there, are of the first generation and replace nothing.
    """
    place = _place(splits, gather_into)
    if into is not None:
        place = replace(place, generation=0, replaces=())
    schema = SortSchema.parse(place.scope.sort_schema)
    verify = verify or settings.verify
    options = replace(options, bloom_filters=settings.bloom_filters, sums=verify == "full")
    keep_freed_memory()
    inputs = open_splits(store, splits, options.threads)
    merge = Merge.of(inputs, schema, options, timestamp=settings.timestamp, field_ids=field_ids)
    try:
        outputs = merge.run()
        for split, source in zip(splits, inputs, strict=True):
            source.verify(split.digest)
        described = [_describe(output, schema, settings, place, name(number)) for number, output in enumerate(outputs)]
        data = [output.finish(split.to_key_value()) for output, split in zip(outputs, described, strict=True)]
        _verify(merge, data, bookkeeping)
        keys = [_granule_keys(output, schema) for output in outputs]
        return _store(into or store, described, data, keys)
    finally:
        merge.close()


def open_splits(store: Store, splits: Sequence[SplitMetadata], threads: int = 1) -> list[Input]:
    """Open the files of splits; `Damaged` unless each is what the metadata and its sidecar describe."""
    pool = ThreadPoolExecutor(threads) if threads > 1 else nullcontext()
    with pool as executor:
        inputs = open_inputs(store, [split.key for split in splits], executor)
        for split, source in zip(splits, inputs, strict=True):
            _check_input(split, source)
        pairs = zip(splits, _read_at_once(store, splits), strict=True)
        sidecars = by_requests(lambda pair: pair[1] or _stored_sidecar(store, pair[0]), pairs, store, executor)
    for split, source, sidecar in zip(splits, inputs, sidecars, strict=True):
        _check_sidecar(split, source, sidecar)
    return inputs


def _read_at_once(store: Store, splits: Sequence[SplitMetadata]) -> Sequence[bytes | None]:
    """The sidecars, as far as a folder has them and nothing is odd; None for all others."""
    places = [split.sidecar for split in splits if split.sidecar is not None]
    if store.local is None or len(places) < len(splits):
        return [None] * len(splits)
    return store.local.read_each([(at.key, at.offset + at.length, ByteRange(at.offset, at.length)) for at in places])


def _stored_sidecar(store: Store, split: SplitMetadata) -> bytes | None:
    """The sidecar of a split, if it has one and that is there; it can be built again."""
    at = split.sidecar
    if at is None:
        return None
    try:
        (data,) = store.get_ranges(at.key, [ByteRange(at.offset, at.length)])
    except NotFound:
        return None
    except StorageError as error:
        if store.head(at.key).size >= at.offset + at.length:
            raise
        raise Damaged(f"{split.key}: its sidecar {at.key} was cut short; build the sidecar again") from error
    return bytes(data)


def _place(splits: Sequence[SplitMetadata], cold: Window | None) -> _Place:
    if not splits:
        raise InvalidInput("a merge of no splits; give at least one")
    keys = [split.key for split in splits]
    if len(set(keys)) != len(keys):
        twice = next(key for key in keys if keys.count(key) > 1)
        raise InvalidInput(f"{twice}: stands among the inputs of the merge twice; give each once")
    scopes, windows = [split.scope for split in splits], [split.window for split in splits]
    if cold is None:
        require("CS-1", scopes=scopes)
        require("CS-2", windows=windows)
    else:
        require("CW-2", cold=cold, windows=windows, scopes=scopes)
    window = cold or windows[0]
    if window is None:
        raise InvalidInput(f"{keys[0]}: has no window, and is never merged; leave it out")
    generation = max(split.generation for split in splits) + 1
    scope = replace(scopes[0], window_duration=window.duration)
    return _Place(scope, window, generation, tuple(split.split_id for split in splits))


def _check_input(split: SplitMetadata, source: Input) -> None:
    """Refuse a file that is not the one the metadata tells of."""
    if source.size != split.size_bytes:
        raise Damaged(
            f"{split.key}: has {source.size} bytes where {split.size_bytes} were written; "
            "it was cut short or replaced, take it out of the table"
        )
    own = source.footer.key_value
    start = str(split.window.start) if split.window else None
    expected = split.split_id, split.scope.sort_schema, split.scope.index_uid, start
    for field, value in zip(TOLD, expected, strict=True):
        stored = own.get(KEY_VALUE_PREFIX + field)
        if stored != value:
            raise Damaged(
                f"{split.key}: says that its {field} is {stored!r}, the metastore {value!r}; "
                "it is another split's file, take it out of the table"
            )
    if source.rows != split.row_count:
        raise Damaged(
            f"{split.key}: has {source.rows} rows where {split.row_count} were written; take it out of the table"
        )


def _check_sidecar(split: SplitMetadata, source: Input, sidecar: bytes | None) -> None:
    """Refuse a split whose sidecar describes another file: one of them is not what was published.

    A lake that was copied has files with other etags than those that were published; the published ones count too.
    """
    if split.sidecar is None or sidecar is None:
        return
    etags = dict.fromkeys((source.etag, split.etag if split.etag is not None else source.etag))
    # a long etag names one version of one object: that it is written there tells enough without parsing anything
    if any(etag is not None and len(etag) >= LONG_ETAG and etag.encode() in sidecar for etag in etags):
        return
    described = Sidecar.of(sidecar, name=split.sidecar.key, verify=False)
    if not any(described.describes(source.size, etag) for etag in etags):
        raise Damaged(
            f"{split.key}: its sidecar {split.sidecar.key} describes another file; "
            "take the split out of the table, or build the sidecar again if the file is the right one"
        )


def _describe(
    output: Output, schema: SortSchema, settings: TableSettings, place: _Place, name: SplitName
) -> SplitMetadata:
    times = _witnesses(output, settings.timestamp)
    nulls = output.rows if times is None else output.summaries[settings.timestamp].nulls
    zones = (_zone(output, column) for column in schema.column_names)
    split = name.describe(settings, place.scope, place.window, output.rows, times, nulls, zones)
    return replace(split, generation=place.generation, replaces=place.replaces)


def _zone(output: Output, column: str) -> ColumnZone:
    values = _witnesses(output, column)
    if values is None:
        return ColumnZone(NULL, NULL, output.rows)
    return replace(column_zone(values), null_count=output.summaries[column].nulls)


def _witnesses(output: Output, column: str) -> pa.ChunkedArray | None:
    if column not in output.summaries:
        return None
    kind = next(each.field.type for each in output.columns if each.name == column)
    return pa.chunked_array(output.summaries[column].witnesses, kind)


def _verify(merge: Merge, data: Sequence[memoryview], bookkeeping: Sequence[str]) -> None:
    require("MC-1", rows_in=sum(source.rows for source in merge.inputs), rows_out=sum(o.rows for o in merge.outputs))
    columns = pa.schema([column.field for column in merge.columns if column.name not in bookkeeping])
    buffers = [pa.py_buffer(each) for each in data]
    if merge.sums is not None:
        back = ReadBack(merge.columns, merge.schema, merge.sums.copied, merge.rows_at_once)
        verify_all(data, merge.sums, back, columns.names)
    for output, buffer, content in zip(merge.outputs, buffers, data, strict=True):
        verify_sample(buffer, output.witnesses, merge.inputs, merge.schema, columns)
        let_go(content)


def _granule_keys(output: Output, schema: SortSchema) -> list[tuple[FirstKeys, ...]]:
    """The first key of each granule, by row group, from the rows that granules begin with."""
    rows = pa.table({name: pa.chunked_array(output.first_keys[name]) for name in output.first_keys})
    ends = np.cumsum([0, *output.granules]).tolist()
    return keys_of_rows(rows, schema, [np.arange(low, high) for low, high in pairwise(ends)])


def _store(
    store: Store,
    splits: Sequence[SplitMetadata],
    data: list[memoryview],
    keys: Sequence[Sequence[Sequence[FirstKeys]]],
) -> list[SplitMetadata]:
    """Store the outputs, and let go of their bytes one by one."""
    stored = []
    for split, first in zip(splits, keys, strict=True):
        content = data.pop(0)
        info = store.put(split.key, content)
        sidecar = _sidecar(split, content, info.etag, first)
        where = SidecarLocation(sidecar_key(split.key), 0, len(sidecar))
        store.put(where.key, sidecar)
        digest = digest_of(content)
        stored.append(replace(split, size_bytes=info.size, etag=info.etag, sidecar=where, digest=digest))
    return stored


def _sidecar(split: SplitMetadata, content: memoryview, etag: str | None, keys: Sequence[Sequence[FirstKeys]]) -> bytes:
    def read(offset: int, length: int) -> bytes:
        return bytes(content[offset : offset + length])

    return build_sidecar(read, len(content), name=split.key, etag=etag, keys=keys)
