"""Split metadata: what describes one Parquet file of a table, and how the file states it of itself."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields
from typing import Any

from windrow.errors import Damaged
from windrow.model.scope import CompactionScope
from windrow.model.window import Window
from windrow.model.zones import ColumnZone, SortColumnValue

__all__ = [
    "KEY_VALUE_PREFIX",
    "SidecarLocation",
    "SplitMetadata",
    "dead_letter_folder",
    "dead_letter_key",
    "sidecar_key",
    "split_key",
]

KEY_VALUE_PREFIX = "windrow."


@dataclass(frozen=True, slots=True)
class SidecarLocation:
    """Where the sidecar of a split lies: a range of an object."""

    key: str
    offset: int
    length: int


@dataclass(frozen=True, slots=True)
class SplitMetadata:
    """One file of a table. Times are microseconds since the epoch, UTC."""

    split_id: str
    scope: CompactionScope
    window: Window | None
    """None for a registered file: it has no window and is never merged."""
    key: str
    """The data file, relative to the lake."""
    size_bytes: int
    row_count: int
    created_at: int
    commit_id: str
    etag: str | None = None
    time_min: int | None = None
    """Lower bound of the timestamps; None when all are null."""
    time_max: int | None = None
    """Upper bound of the timestamps, inclusive."""
    zones: Sequence[ColumnZone] = ()
    """One for each schema column, sort columns first, then metadata-only ones; empty for a registered file."""
    sidecar: SidecarLocation | None = None
    generation: int = 0
    """How many merges lie behind the rows: 0 as ingested, else the largest of the inputs plus one."""
    replaces: tuple[str, ...] = ()
    """The splits that a merge made this one from."""
    digest: str | None = None
    """What the bytes of the file amount to, as they were written; None where nobody computed it then."""

    @property
    def schema_column_min_values(self) -> tuple[SortColumnValue, ...]:
        """Lower bounds, one per schema column."""
        return tuple(zone.minimum for zone in self.zones)

    @property
    def schema_column_max_values(self) -> tuple[SortColumnValue, ...]:
        """Upper bounds, one per schema column."""
        return tuple(zone.maximum for zone in self.zones)

    @property
    def schema_column_regexes(self) -> tuple[str | None, ...]:
        """Regular expressions that match every value, one per schema column."""
        return tuple(zone.regex for zone in self.zones)

    def to_dict(self) -> dict[str, Any]:
        """Return plain values that JSON can hold; `from_dict` reads them."""
        window, sidecar = self.window, self.sidecar
        return {
            "split_id": self.split_id,
            "commit_id": self.commit_id,
            **self.scope.to_dict(),
            "window_start": None if window is None else window.start,
            "window_overflow": window is not None and window.overflow,
            "window_duration_secs": self.scope.window_duration,
            "row_count": self.row_count,
            "created_at": self.created_at,
            "time_min": self.time_min,
            "time_max": self.time_max,
            "generation": self.generation,
            "replaces": list(self.replaces),
            "schema_column_min_values": [value.to_json() for value in self.schema_column_min_values],
            "schema_column_max_values": [value.to_json() for value in self.schema_column_max_values],
            "schema_column_regexes": list(self.schema_column_regexes),
            "schema_column_null_counts": [zone.null_count for zone in self.zones],
            "key": self.key,
            "size_bytes": self.size_bytes,
            "etag": self.etag,
            "sidecar": None if sidecar is None else [sidecar.key, sidecar.offset, sidecar.length],
            "digest": self.digest,
        }

    @classmethod
    def from_dict(cls, data: Mapping[str, Any]) -> SplitMetadata:
        """Read what `to_dict` wrote; a missing field is a KeyError with its name, but older ones may lack a digest."""
        start = data["window_start"]
        scope = CompactionScope(**{part.name: data[part.name] for part in fields(CompactionScope)})
        zones = zip(
            data["schema_column_min_values"],
            data["schema_column_max_values"],
            data["schema_column_null_counts"],
            data["schema_column_regexes"],
            strict=True,
        )
        return cls(
            scope=scope,
            window=None if start is None else Window(start, scope.window_duration, data["window_overflow"]),
            zones=tuple(
                ColumnZone(SortColumnValue.from_json(low), SortColumnValue.from_json(high), nulls, regex)
                for low, high, nulls, regex in zones
            ),
            sidecar=None if data["sidecar"] is None else SidecarLocation(*data["sidecar"]),
            replaces=tuple(data["replaces"]),
            digest=data.get("digest"),
            **{name: data[name] for name in _PLAIN},
        )

    def to_key_value(self) -> dict[str, str]:
        """Return what the file says of itself: all but its own size and place, which it cannot know."""
        values = self.to_dict()
        return {KEY_VALUE_PREFIX + name: _text(value) for name, value in values.items() if name not in _OUTSIDE}

    @classmethod
    def from_key_value(
        cls,
        pairs: Mapping[str, str],
        *,
        key: str,
        size_bytes: int,
        etag: str | None = None,
        digest: str | None = None,
    ) -> SplitMetadata:
        """Read what a file says of itself."""
        names = {name.removeprefix(KEY_VALUE_PREFIX): name for name in pairs if name.startswith(KEY_VALUE_PREFIX)}
        outside = {"key": key, "size_bytes": size_bytes, "etag": etag, "sidecar": None, "digest": digest}
        try:
            return cls.from_dict({name: _value(name, pairs[full]) for name, full in names.items()} | outside)
        except KeyError as error:
            raise Damaged(
                f"{key}: key-value metadata has no {KEY_VALUE_PREFIX}{error.args[0]}; Windrow did not write this file"
            ) from None
        except (ValueError, TypeError) as error:
            raise Damaged(f"{key}: key-value metadata under {KEY_VALUE_PREFIX} cannot be read: {error}") from None


_PLAIN = (
    "split_id",
    "commit_id",
    "row_count",
    "created_at",
    "time_min",
    "time_max",
    "generation",
    "key",
    "size_bytes",
    "etag",
)
_OUTSIDE = frozenset(("key", "size_bytes", "etag", "sidecar", "digest"))
_TEXTS = frozenset(("split_id", "commit_id", "index_uid", "source_id", "sort_schema"))


def _text(value: Any) -> str:
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False, separators=(",", ":"))


def _value(name: str, text: str) -> Any:
    return text if name in _TEXTS else json.loads(text)


def split_key(table: str, partition_id: int, window: Window, split_id: str) -> str:
    """Return where a split of a table lies, relative to the lake."""
    return f"{table}/partition_id={partition_id}/window_start={window.start}/{split_id}.parquet"


def sidecar_key(key: str) -> str:
    """Return where the sidecar of a data file lies: beside it, with an underscore that makes engines pass it by.

    >>> sidecar_key("metrics/a.parquet")
    'metrics/_a.pm'
    """
    folder, slash, name = key.rpartition("/")
    return f"{folder}{slash}_{name.removesuffix('.parquet')}.pm"


def dead_letter_folder(table: str) -> str:
    """Return where the rows lie that ingests dropped, relative to the lake."""
    return f"{table}/_dead_letter"


def dead_letter_key(table: str, name: str) -> str:
    """Return where a file of rows that an ingest dropped lies, relative to the lake."""
    return f"{dead_letter_folder(table)}/{name}.parquet"
