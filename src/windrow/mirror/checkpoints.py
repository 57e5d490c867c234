"""Checkpoints of a Delta log: files that say what the entries up to a number say, for readers that come later.

Beside each lies its digest, since a flipped byte of a Parquet file may be read by one library as another value and by
the next not at all.
"""

from __future__ import annotations

import hashlib
import json
import logging
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from windrow.errors import NotFound
from windrow.mirror.checkpoint_rows import SCHEMA, checkpoint_rows
from windrow.mirror.log import Log, State

__all__ = ["Checkpoints"]

_log = logging.getLogger(__name__)

_NAME = re.compile(r"(\d{20})\.checkpoint\..*parquet|(\d{20})\.checkpoint\..*json")
_POINTER = "_last_checkpoint"


@dataclass(frozen=True, slots=True)
class Checkpoints:
    """The checkpoints of a log."""

    log: Log

    def numbers(self) -> list[int]:
        """Return the entries that have a checkpoint, in order."""
        matches = (_NAME.fullmatch(name) for name in self.log.names())
        return sorted({int(match[1] or match[2]) for match in matches if match})

    def problem(self, number: int, state: State | None) -> str | None:
        """Return what is wrong with a checkpoint, or None; a log that is itself in doubt compares with nothing."""
        content = self.log.find(_name(number))
        if content is None:
            return "it is in parts, or of another kind than Windrow makes"
        digest = self.log.find(_seal(number))
        if digest is not None and digest != hashlib.sha256(content).hexdigest().encode():
            return "its digest is that of other bytes"
        own = self.read(number)
        if own is None:
            return "it cannot be read"
        return None if state is None else _difference(own, state)

    def read(self, number: int) -> State | None:
        """Return what a checkpoint shows; None when it cannot be read."""
        content = self.log.find(_name(number))
        try:
            return None if content is None else _state(pq.read_table(pa.BufferReader(content)))
        except (pa.ArrowException, OSError, KeyError, TypeError, ValueError):
            return None

    def pointer_problem(self, numbers: list[int]) -> str | None:
        """Return what is wrong with the file that points to the newest checkpoint, or None."""
        content = self.log.find(_POINTER)
        if content is None:
            return None
        try:
            stated = json.loads(content)
            number = stated["version"]
            expected = self._pointer(number) if number in numbers else None
        except (ValueError, TypeError, KeyError, RecursionError) as error:
            return f"it cannot be read: {error!r}"
        if expected is None:
            return f"there is no checkpoint {number!r}"
        differ = [name for name, value in stated.items() if expected.get(name, value) != value]
        missing = {"version", "size"} - stated.keys()
        return f"it says another {min([*differ, *missing])}" if differ or missing else None

    def make(self, number: int) -> bool:
        """Make a checkpoint from the entries alone; whether it could be made."""
        return self._make(number, None)

    def extend(self, number: int) -> None:
        """Make a checkpoint from the newest one and the entries since, and point to it."""
        if self._make(number, self._newest_before(number)):
            self._point_to(number)

    def point(self) -> None:
        """Point to the newest checkpoint."""
        sound = [number for number in self.numbers() if self.problem(number, None) is None]
        if sound:
            self._point_to(sound[-1])

    def _make(self, number: int, base: tuple[int, pa.Table] | None) -> bool:
        after, table = base or (-1, None)
        state, moment = State() if table is None else _described(table), None
        for each in range(after + 1, number + 1):
            try:
                entry = self.log.entry(each)
            except NotFound:
                entry = None
            if entry is None or entry.actions is None:
                _log.warning("%s: checkpoint %d could not be made: entry %d is damaged", self.log.folder, number, each)
                return False
            state.take(entry)
            moments = [info.get("timestamp") for info in entry.of("commitInfo")]
            moment = next((each for each in moments if isinstance(each, int)), moment)
        sink = pa.BufferOutputStream()
        try:
            pq.write_table(checkpoint_rows(state, moment, table), sink)
        except (pa.ArrowException, OverflowError) as error:  # somebody else's entry holds other types
            _log.warning("%s: checkpoint %d could not be made: %s", self.log.folder, number, error)
            return False
        content = sink.getvalue().to_pybytes()
        self._put(_name(number), content)
        self._put(_seal(number), hashlib.sha256(content).hexdigest().encode())
        return True

    def _newest_before(self, number: int) -> tuple[int, pa.Table] | None:
        """Return the checkpoint that readers begin from, where it is to the byte one that Windrow made."""
        try:
            base = json.loads(self.log.find(_POINTER) or b"")["version"]
            content, digest = self.log.find(_name(base)), self.log.find(_seal(base))
        except (ValueError, TypeError, KeyError, RecursionError):
            return None
        if content is None or digest != hashlib.sha256(content).hexdigest().encode() or base >= number:
            return None
        table = pq.read_table(pa.BufferReader(content))
        return (base, table) if table.schema.equals(SCHEMA) else None

    def _point_to(self, number: int) -> None:
        self._put(_POINTER, json.dumps(self._pointer(number)).encode())

    def _pointer(self, number: int) -> dict[str, int]:
        content = self.log.find(_name(number)) or b""
        try:
            table = pq.read_table(pa.BufferReader(content), columns=["add"])
        except (pa.ArrowException, OSError) as error:
            raise ValueError(f"checkpoint {number} cannot be read: {error}") from error
        added = table.num_rows - table["add"].null_count
        return {"version": number, "size": table.num_rows, "sizeInBytes": len(content), "numOfAddFiles": added}

    def _put(self, name: str, content: bytes) -> None:
        self.log.store.put(f"{self.log.folder}/{name}", content)


def _name(number: int) -> str:
    return f"{number:020d}.checkpoint.parquet"


def _seal(number: int) -> str:
    return f"_{number:020d}.checkpoint.sha256"


def _state(table: pa.Table) -> State:
    state = _described(table)
    for added in _rows(table, "add"):
        maps = {name: dict(added.get(name) or ()) for name in ("partitionValues", "tags")}
        state.live[added["path"]] = added | maps
    return state


def _described(table: pa.Table) -> State:
    """What a checkpoint says of all but files."""
    state = State()
    for described in _rows(table, "metaData"):
        shape = described["format"]
        state.metadata = described | {
            "configuration": dict(described["configuration"]),
            "format": {"provider": shape["provider"], "options": dict(shape["options"] or ())},
        }
    state.protocol = next(_rows(table, "protocol"), None)
    state.versions = {each["appId"]: each["version"] for each in _rows(table, "txn")}
    return state


def _rows(table: pa.Table, name: str) -> Iterator[dict[str, Any]]:
    return iter(table[name].drop_null().to_pylist())


def _difference(own: State, state: State) -> str | None:
    """Return what a checkpoint says that the entries do not."""
    for path in sorted(own.live.keys() ^ state.live.keys()):
        return f"differs from the entries in the file {path}"
    for path, added in state.live.items():
        if _plain(own.live[path]) != _plain(added):
            return f"differs from the entries in what they say of the file {path}"
    if _features(own.protocol) != _features(state.protocol):
        return "differs from the entries in the protocol"
    if _plain(own.metadata or {}) != _plain(state.metadata or {}):
        return "differs from the entries in what describes the table"
    return None


def _plain(action: Mapping[str, Any]) -> dict[str, Any]:
    """What describes a file or a table; whether an action changes data says nothing of what is visible."""
    return {name: value for name, value in action.items() if value is not None and name != "dataChange"}


def _features(protocol: Mapping[str, Any] | None) -> dict[str, Any]:
    plain = _plain(protocol or {})
    return {name: sorted(value) if isinstance(value, list) else value for name, value in plain.items()}
