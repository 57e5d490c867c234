"""Files as a source: which they are, how they are dealt out to tasks, and how a task reads its share.

A task reads files by itself, without a copy through Java. Large Parquet files are dealt out by row groups.
"""

from __future__ import annotations

import glob
import os
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.csv
import pyarrow.json
import pyarrow.parquet as pq

from windrow.errors import Damaged, InvalidInput, NotFound, StorageError, WindrowError
from windrow.ingest.attributes import point_schema
from windrow.ingest.dead_letter import FILE, PROBLEM
from windrow.model.points import is_text
from windrow.runners.dealing import cut
from windrow.storage import ByteRange, reach_store
from windrow.storage.failures import disk_failure

if TYPE_CHECKING:
    from windrow.ingest.otlp_table import PointTable
    from windrow.ingest.parquet_heads import Head

__all__ = [
    "FileFormat",
    "FilePart",
    "SourceFile",
    "content_of",
    "deal_out",
    "find_files",
    "named",
    "read_part",
    "schema_of",
]

_BATCH_ROWS = 128 * 1024
_BATCH_BYTES = 8 * 2**20
"""Wide rows come in smaller batches."""
_READ_BYTES = 256 * 2**10
"""A column of a large row group is read so many bytes at a time."""
_PART_BYTES = 16 * 2**20
"""Parquet files are dealt out in pieces of about this size."""


class FileFormat(StrEnum):
    """What a file is written in."""

    PARQUET = "parquet"
    CSV = "csv"
    JSON = "json"
    """One JSON object a line."""
    OTLP = "otlp"
    """OpenTelemetry metrics, as JSON or protobuf."""


_ENDINGS = {
    ".parquet": FileFormat.PARQUET,
    ".pq": FileFormat.PARQUET,
    ".csv": FileFormat.CSV,
    ".json": FileFormat.JSON,
    ".jsonl": FileFormat.JSON,
    ".ndjson": FileFormat.JSON,
    ".otlp": FileFormat.OTLP,
    ".otlp.json": FileFormat.OTLP,
    ".otlp.jsonl": FileFormat.OTLP,
    ".otlp.pb": FileFormat.OTLP,
    ".binpb": FileFormat.OTLP,
    ".pb": FileFormat.OTLP,
}
"""Of those but Parquet, `.gz` may follow."""
_GZIP = ".gz"
_FIRST_BYTES = 256
"""So much of a JSON file shows whether it is OTLP."""
_OTLP_START = re.compile(rb"(\xef\xbb\xbf)?[ \t\r\n]*\{[ \t\r\n]*\"resourceMetrics\"")


@dataclass(frozen=True, slots=True)
class SourceFile:
    """A file to read: a local path, or an object of a store by its URL."""

    name: str
    format: FileFormat
    size: int
    store_options: Mapping[str, str] = field(default_factory=dict)
    types: Mapping[str, pa.DataType] = field(default_factory=dict)
    """Types that columns have already; text formats would have to guess them."""
    promoted: frozenset[str] = frozenset()
    """Attributes of OTLP metrics that become columns."""
    points: PointTable | None = field(default=None, repr=False, compare=False)
    """The points of OTLP metrics, where they were read already."""
    set_aside: bool = False
    """Name the file in its rows; when it is text that cannot be read as `types` asks, read it as lines."""

    @property
    def is_remote(self) -> bool:
        """Whether the file is read through a store."""
        return "://" in self.name

    @property
    def is_text(self) -> bool:
        """Whether the types of the columns are not in the file."""
        return self.format in (FileFormat.CSV, FileFormat.JSON)


@dataclass(frozen=True, slots=True)
class FilePart:
    """What a task reads of a file; `row_groups` is None for all of it."""

    file: SourceFile
    size: int
    row_groups: tuple[int, ...] | None = None
    memory: int | None = None
    """About how many bytes the rows take as Arrow data; None where the file does not tell."""
    times: tuple[int, int] | None = None
    """The first and the last microsecond of the rows; None where the file does not tell."""


def find_files(
    paths: Sequence[str],
    *,
    file_format: FileFormat | None = None,
    store_options: Mapping[str, str] | None = None,
    types: Mapping[str, pa.DataType] | None = None,
) -> list[SourceFile]:
    """Return the files that paths, folders, globs and URLs name, in order; a name that finds nothing is NotFound."""
    by_name = {}
    for path in paths:
        files = list(_remote_files(path, store_options or {}) if "://" in path else _local_files(path))
        if not files:
            raise NotFound(f"{path}: there is no such file, and no file in such a folder")
        for name, size in files:
            file = SourceFile(name, file_format or _format_of(name), size, store_options or {}, types or {})
            by_name[name] = file if file_format or not _is_otlp(file) else replace(file, format=FileFormat.OTLP)
    return list(by_name.values())


def schema_of(file: SourceFile) -> pa.Schema:
    """Return the columns of a file; of CSV and JSON, as its first block shows them."""
    with named(file):
        if file.format is FileFormat.PARQUET:
            with _opened(file) as source, _parquet(source) as parquet:
                return _in_utc(parquet.schema_arrow, _instants(parquet)).remove_metadata()
        if file.format is FileFormat.OTLP:
            return point_schema(file.promoted)
        return next(iter(_batches(FilePart(file, file.size)))).schema


def deal_out(files: Sequence[SourceFile], tasks: int, heads: Mapping[str, Head]) -> list[tuple[FilePart, ...]]:
    """Deal files out to at most `tasks` tasks of about equal size: to each some that follow each other.

    Files that tell their times come in the order of these, so that tasks have as few windows in common as can be.
    """
    parts = [part for file in files for part in _parts(file, heads.get(file.name))]
    if all(part.times is not None for part in parts):
        parts.sort(key=lambda part: part.times or (0, 0))
    return [tuple(parts[number] for number in share) for share in cut([part.size for part in parts], tasks)]


def read_part(part: FilePart, columns: Sequence[str] | None = None) -> Iterator[pa.RecordBatch]:
    """Yield the rows of a part; text columns of Parquet files stay dictionary-encoded.

    Where only some columns are wanted, others need not be read, but may come along.
    """
    with named(part.file):
        if not part.file.set_aside:
            yield from _batches(part, columns)
            return
        for batch in _batches_or_lines(part):
            notes = batch.schema.metadata or {}
            yield batch.replace_schema_metadata({**notes, FILE: part.file.name})


def _batches_or_lines(part: FilePart) -> Iterable[pa.RecordBatch]:
    """Return the rows of a part; of text that cannot be read to its end, only its lines."""
    file = part.file
    if not file.is_text:
        return _batches(part)
    try:
        return list(_batches(part))
    except pa.ArrowInvalid as error:
        return [_lines(file, f"cannot be read as {file.format}: {error}")]


def _lines(file: SourceFile, problem: str) -> pa.RecordBatch:
    """Return a file of text as rows of one line each; with those of CSV goes its first one, which names the columns."""
    lines = [line for line in content_of(file).decode(errors="replace").splitlines() if line.strip()]
    rows = {"line": lines}
    if file.format is FileFormat.CSV:
        rows = {"header": lines[:1] * (len(lines) - 1), "line": lines[1:]}
    return pa.RecordBatch.from_pydict(rows, metadata={PROBLEM: problem})


def content_of(file: SourceFile) -> bytes:
    """Return all bytes of a file, unpacked."""
    with named(file), _opened(file) as source:
        return bytes(source.read())


def _batches(part: FilePart, columns: Sequence[str] | None = None) -> Iterator[pa.RecordBatch]:
    file = part.file
    if file.format is FileFormat.OTLP:
        yield from _points_of(file).to_arrow(file.promoted).to_batches(_BATCH_ROWS)
        return
    with _opened(file) as source:
        if file.format is FileFormat.PARQUET:
            schema = pq.read_schema(source)
            own = set(schema.names)
            wanted = schema.names if columns is None else [name for name in columns if name in own]
            texts = [each.name for each in schema if is_text(each.type)]
            with _parquet(source, texts) as parquet:
                instants = _instants(parquet)
                rows = _batch_rows(parquet.metadata)
                for batch in parquet.iter_batches(rows, row_groups=part.row_groups, columns=wanted):
                    yield batch.cast(_in_utc(batch.schema, instants)) if instants else batch
        elif file.format is FileFormat.CSV:
            options = pyarrow.csv.ConvertOptions(column_types=dict(file.types), strings_can_be_null=True)
            yield from pyarrow.csv.open_csv(source, convert_options=options)
        else:
            explicit = pa.schema(list(file.types.items())) if file.types else None
            yield from pyarrow.json.open_json(source, parse_options=pyarrow.json.ParseOptions(explicit_schema=explicit))


def _parquet(source: pa.NativeFile, texts: Sequence[str] = ()) -> pq.ParquetFile:
    return pq.ParquetFile(
        source, read_dictionary=list(texts), coerce_int96_timestamp_unit="us", buffer_size=_READ_BYTES
    )


def _batch_rows(metadata: pq.FileMetaData) -> int:
    """Return how many rows make a batch of moderate size."""
    size: int = sum(metadata.row_group(number).total_byte_size for number in range(metadata.num_row_groups))
    return min(_BATCH_ROWS, max(_BATCH_BYTES * int(metadata.num_rows) // max(size, 1), 1024))


def _instants(parquet: pq.ParquetFile) -> frozenset[str]:
    """Return the columns that are instants although Parquet does not say so: times of 96 bits, as Spark writes them."""
    leaves = [parquet.schema.column(place) for place in range(len(parquet.schema))]
    return frozenset(leaf.path for leaf in leaves if leaf.physical_type == "INT96" and "." not in leaf.path)


def _in_utc(schema: pa.Schema, instants: frozenset[str]) -> pa.Schema:
    return pa.schema(
        [each.with_type(pa.timestamp("us", "UTC")) if each.name in instants else each for each in schema],
        schema.metadata,
    )


def _points_of(file: SourceFile) -> PointTable:
    from windrow.ingest.otlp import points_of

    return points_of([(file.name, content_of(file))]) if file.points is None else file.points


@contextmanager
def _opened(file: SourceFile) -> Iterator[Any]:
    """Open a file so that Arrow can read it; an object of a store is fetched whole."""
    if file.is_remote:
        folder, _, name = file.name.rpartition("/")
        fetched = pa.BufferReader(reach_store(folder, file.store_options).get(name))
        yield pa.CompressedInputStream(fetched, "gzip") if name.endswith(_GZIP) else fetched
    elif file.format is FileFormat.PARQUET:
        # Not mapped: a file that is cut short while it is read would end the process, not the read.
        with pa.OSFile(file.name) as source:
            yield source
    else:
        with pa.input_stream(file.name) as source:
            yield source


def _is_otlp(file: SourceFile) -> bool:
    """Collectors write OTLP to files that are called JSON; how they start shows what they are."""
    if file.format is not FileFormat.JSON or not file.size:
        return False
    if not file.is_remote:
        with named(file), _opened(file) as source:
            return _OTLP_START.match(source.read(_FIRST_BYTES)) is not None
    folder, _, name = file.name.rpartition("/")
    if name.endswith(_GZIP):
        return _OTLP_START.match(content_of(file)) is not None
    start = ByteRange(0, min(_FIRST_BYTES, file.size))
    return _OTLP_START.match(reach_store(folder, file.store_options).get_ranges(name, [start])[0]) is not None


@contextmanager
def named(file: SourceFile) -> Iterator[None]:
    """Name the file in what goes wrong with it."""
    try:
        yield
    except WindrowError:
        raise
    except FileNotFoundError as error:
        raise NotFound(f"{file.name}: the file is gone; it was there when the ingest was planned") from error
    except (pa.ArrowInvalid, pa.ArrowNotImplementedError, StopIteration) as error:
        raise Damaged(f"{file.name}: cannot be read as {file.format}: {error or 'it is empty'}") from error
    except pa.ArrowException as error:
        raise StorageError(f"{file.name}: {error}") from error
    except OSError as error:
        # What the system reports has a number; what Arrow finds wrong with the bytes has none.
        if error.errno is not None:
            raise disk_failure(error, file.name) from error
        raise Damaged(f"{file.name}: cannot be read as {file.format}: {error}") from error


def _parts(file: SourceFile, head: Head | None) -> list[FilePart]:
    """Cut a large Parquet file between row groups."""
    if head is None:
        return [FilePart(file, file.size)]
    if file.size <= _PART_BYTES:
        return [_part(file, head, None)]
    parts: list[FilePart] = []
    groups: list[int] = []
    for number, size in enumerate(head.sizes.tolist()):
        groups.append(number)
        size_so_far = size + int(head.sizes[groups[:-1]].sum())
        if size_so_far >= _PART_BYTES or number == head.sizes.size - 1:
            parts.append(_part(file, head, groups))
            groups = []
    return parts or [_part(file, head, None)]


def _part(file: SourceFile, head: Head, groups: list[int] | None) -> FilePart:
    own = list(range(head.rows.size)) if groups is None else groups
    times = None if head.times is None or not own else head.times[own]
    return FilePart(
        file,
        file.size if groups is None else int(head.sizes[own].sum()),
        None if groups is None else tuple(groups),
        int(head.memory[own].sum()),
        None if times is None else (int(times[:, 0].min()), int(times[:, 1].max())),
    )


def _format_of(name: str) -> FileFormat:
    endings = [ending for ending in _ENDINGS if name.lower().removesuffix(_GZIP).endswith(ending)]
    if not endings:
        raise InvalidInput(f"{name}: the name does not tell the format; name one of {', '.join(FileFormat)}")
    return _ENDINGS[max(endings, key=len)]


def _local_files(path: str) -> Iterator[tuple[str, int]]:
    """Yield local files; hidden ones and those that start with an underscore are passed by, as everywhere in a lake."""
    try:
        for name in sorted(glob.glob(path, recursive=True)) or [path]:  # noqa: PTH207 - patterns may be absolute
            place = Path(name)
            for each in _inside(place) if place.is_dir() else [place]:
                if each.is_file() and not (place.is_dir() and _is_hidden(each.relative_to(place))):
                    yield str(each.absolute()), each.stat().st_size
    except OSError as error:
        raise disk_failure(error, str(error.filename or path)) from error


def _inside(folder: Path) -> list[Path]:
    """Return the files in and below a folder; one that cannot be listed is an error, unlike for `rglob`."""

    def fail(error: OSError) -> None:
        raise error

    paths = (Path(place, name) for place, _, names in os.walk(folder, onerror=fail) for name in names)
    return sorted(paths)


def _is_hidden(path: Path) -> bool:
    return any(part.startswith((".", "_")) for part in path.parts)


def _remote_files(url: str, options: Mapping[str, str]) -> Iterator[tuple[str, int]]:
    folder, _, name = url.rstrip("/").rpartition("/")
    store = reach_store(url, options)
    listed = [(f"{url.rstrip('/')}/{info.key}", info.size) for info in store.list() if not _is_hidden(Path(info.key))]
    yield from listed or [(url, reach_store(folder, options).head(name).size)]
