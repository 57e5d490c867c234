"""Checks one split: what the metastore says of it, what its file says of itself, and what is in it.

By metadata, the file's footer and its sidecar are read; by data, its rows too. Findings are values: nothing is raised
for what is wrong with a split, only for a store that fails.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import asdict, dataclass
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from windrow.errors import Damaged, Incompatible, InvalidInput, InvariantViolation, NotFound
from windrow.metastore.guards import check_added
from windrow.model.invariants import require
from windrow.model.points import required_columns, signal_of
from windrow.model.settings import TableSettings
from windrow.model.sort_schema import SortSchema
from windrow.model.split import SplitMetadata
from windrow.model.window import time_bounds_us
from windrow.model.zones import ColumnZone
from windrow.parquet.chunk import HAS_NULL_COUNT
from windrow.parquet.footer import ParquetFooter
from windrow.sidecar.check import check_against, check_bytes
from windrow.sidecar.reader import Sidecar
from windrow.splits.digests import digest_of
from windrow.splits.zone_maps import zone_maps
from windrow.storage import ByteRange, ObjectInfo, Store, reach
from windrow.upkeep.footers import footer_at

__all__ = ["Finding", "check_split"]

_STATED = (
    "split_id",
    "commit_id",
    "index_uid",
    "source_id",
    "partition_id",
    "doc_mapping_uid",
    "sort_schema",
    "window_start",
    "window_overflow",
    "row_count",
    "created_at",
    "time_min",
    "time_max",
    "generation",
    "window_duration",
    "replaces",
    "schema_column_min_values",
    "schema_column_max_values",
    "schema_column_regexes",
    "schema_column_null_counts",
)
"""What a file says of itself that must be what the metastore says."""


_SENSELESS = (Damaged, Incompatible, InvalidInput, LookupError, ValueError, TypeError, ArithmeticError)


@dataclass(frozen=True, slots=True)
class Finding:
    """Something that is wrong."""

    kind: str
    """What it is about: file, footer, sidecar, rows, metastore, database, mirror; or the id of an invariant."""
    place: str
    problem: str
    repairable: bool = False
    """Whether `repair` puts it right."""

    def to_dict(self) -> dict[str, Any]:
        """Return plain values."""
        return asdict(self)

    def __str__(self) -> str:
        return f"{self.kind}: {self.place}: {self.problem}"


def check_split(
    store: Store, split: SplitMetadata, settings: TableSettings, *, data: bool, options: Mapping[str, str] | None = None
) -> list[Finding]:
    """Return all that is wrong with a split."""
    findings = list(_rules(split))
    try:
        place, key = reach(store, split.key, options)
        info, footer = footer_at(place, key)
    except NotFound:
        return [*findings, Finding("file", split.key, "it is gone; its rows are lost unless a backup has it")]
    except (Damaged, Incompatible) as error:
        return [*findings, Finding("file", split.key, str(error))]
    findings += _guarded(split, _file(split, info, footer))
    findings += _guarded(split, _sidecar(store, split, info, footer))
    rows = _rows(split, place.get(key), settings) if data else _nulls(split, footer, settings)
    findings += _guarded(split, rows)
    return findings


def _guarded(split: SplitMetadata, findings: Iterable[Finding]) -> Iterator[Finding]:
    """Findings, and one more where a damaged footer leads to nothing that can be looked at."""
    try:
        yield from findings
    except _SENSELESS as error:
        yield Finding("footer", split.key, f"it makes no sense: {error}")


def _rules(split: SplitMetadata) -> Iterator[Finding]:
    """What must hold of the metastore's own words."""
    try:
        check_added(split.commit_id, [split])
    except InvariantViolation as error:
        yield Finding(error.invariant, split.key, error.evidence)
    except InvalidInput as error:
        yield Finding("metastore", split.key, str(error))


def _file(split: SplitMetadata, info: ObjectInfo, footer: ParquetFooter) -> Iterator[Finding]:
    if info.size != split.size_bytes:
        yield Finding("file", split.key, f"it has {info.size} bytes, the metastore says {split.size_bytes}")
    if footer.num_rows != split.row_count:
        yield Finding("footer", split.key, f"it has {footer.num_rows} rows, the metastore says {split.row_count}")
    if split.window is None:
        return
    try:
        pairs = {name: value for name, value in footer.key_value.items() if value is not None}
        in_file = SplitMetadata.from_key_value(pairs, key=split.key, size_bytes=info.size).to_dict()
    except Damaged as error:
        yield Finding("footer", split.key, str(error))
        return
    recorded = split.to_dict()
    for name in _STATED:
        if in_file[name] != recorded[name]:
            yield Finding("footer", split.key, f"says {name} {in_file[name]!r}, the metastore {recorded[name]!r}")
    yield from _sorting(split, in_file["sort_schema"], footer)


def _sorting(split: SplitMetadata, in_file: str, footer: ParquetFooter) -> Iterator[Finding]:
    names = [leaf.path[0] for leaf in footer.leaves]
    sorting = footer.row_group_sorting[0] or () if footer.row_group_sorting else ()
    stated = [(names[each.column], each.descending, each.nulls_first) for each in sorting]
    evidence = {"metastore": split.scope.sort_schema, "key_value": in_file, "sorting_columns": stated}
    yield from _invariant("SS-5", split.key, file_columns=names, **evidence)


def _sidecar(store: Store, split: SplitMetadata, info: ObjectInfo, footer: ParquetFooter) -> Iterator[Finding]:
    if split.sidecar is None:
        return
    where = split.sidecar
    try:
        (stored,) = store.get_ranges(where.key, [ByteRange(where.offset, where.length)])
    except NotFound:
        yield Finding("sidecar", where.key, "it is gone", repairable=True)
        return
    except OSError as error:
        yield Finding("sidecar", where.key, str(error), repairable=True)
        return
    problems = check_bytes(stored, name=where.key)
    if not problems:
        problems = check_against(Sidecar.of(stored, name=where.key), footer, info.size)
    yield from (Finding("sidecar", where.key, f"{each.where}: {each.problem}", repairable=True) for each in problems)


def _required(split: SplitMetadata, settings: TableSettings) -> tuple[str, ...]:
    """The columns that the points of a split need, by the schema that it was written with."""
    stated = split.scope.sort_schema
    return required_columns(signal_of(SortSchema.parse(stated)) if stated else settings.signal)


def _nulls(split: SplitMetadata, footer: ParquetFooter, settings: TableSettings) -> Iterator[Finding]:
    """What the footer tells of values that points need."""
    for name in _required(split, settings):
        for leaf in (each for each in footer.leaves if each.path == (name,)):
            chunks = footer.chunks[:, leaf.index]
            nulls = int(chunks["null_count"][(chunks["flags"] & HAS_NULL_COUNT) != 0].sum())
            if nulls:
                yield Finding("DM-1", split.key, f"column {name!r} is null in {nulls} of {footer.num_rows} rows")


def _rows(split: SplitMetadata, content: bytes, settings: TableSettings) -> Iterator[Finding]:
    if split.digest is not None and digest_of(content) != split.digest:
        yield Finding("file", split.key, f"its bytes are not those that were written: the digest was {split.digest}")
    try:
        rows = pq.read_table(pa.BufferReader(content), page_checksum_verification=True)
    except (pa.ArrowException, OSError) as error:
        yield Finding("rows", split.key, f"they cannot be read: {error}")
        return
    if rows.num_rows != split.row_count:
        yield Finding("rows", split.key, f"there are {rows.num_rows}, the metastore says {split.row_count}")
    yield from _invariant("DM-1", split.key, table=rows, required=_required(split, settings))
    if split.window is None:
        return
    schema = SortSchema.parse(split.scope.sort_schema)
    yield from _invariant("SS-1", split.key, table=rows, schema=schema)
    yield from _times(split, rows, settings)
    for name, stated, actual in zip(schema.column_names, split.zones, zone_maps(rows, schema), strict=True):
        if _bounds(stated) != _bounds(actual):
            yield Finding("rows", split.key, f"column {name!r} lies in {_bounds(actual)}, the metastore says otherwise")


def _times(split: SplitMetadata, rows: pa.Table, settings: TableSettings) -> Iterator[Finding]:
    if settings.timestamp not in rows.column_names:
        return
    times = rows[settings.timestamp]
    low, high = time_bounds_us(times, unit=settings.timestamp_unit) or (None, None)
    evidence = {"time_min_us": low, "time_max_us": high, "null_timestamps": times.null_count}
    yield from _invariant("TW-1", split.key, window=split.window, **evidence)
    if (low, high) != (split.time_min, split.time_max):
        yield Finding("rows", split.key, f"their times go from {low} to {high}, the metastore says otherwise")


def _bounds(zone: ColumnZone) -> tuple[Any, ...]:
    return zone.minimum.plain, zone.maximum.plain, zone.null_count


def _invariant(identifier: str, place: str, **evidence: Any) -> Iterator[Finding]:
    try:
        require(identifier, **evidence)
    except InvariantViolation as error:
        yield Finding(identifier, place, error.evidence)
