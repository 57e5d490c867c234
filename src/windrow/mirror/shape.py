"""Which shape the actions of a Delta log must have before anything is taken from them.

A log may have been damaged, or written by anybody. What passes here has the types that the rest of the room relies on.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from typing import Any
from urllib.parse import unquote

from windrow.metastore import CommitKind
from windrow.storage import is_foreign
from windrow.storage.keys import key_problem

__all__ = ["MOST_VERSION", "SPLIT_TAG", "problem_of"]

MOST_VERSION = 2**53
"""A larger version of a table is no version that anybody counted up to."""

SPLIT_TAG = "windrow.split"

_NEEDED: Mapping[str, Mapping[str, type]] = {
    "add": {"path": str, "partitionValues": dict, "size": int, "modificationTime": int, "dataChange": bool},
    "remove": {"path": str, "dataChange": bool},
    "metaData": {"id": str, "format": dict, "schemaString": str, "partitionColumns": list},
    "protocol": {"minReaderVersion": int, "minWriterVersion": int},
    "txn": {"appId": str, "version": int},
    "commitInfo": {},
}
_ORIGIN: Mapping[str, type] = {
    "version": int,
    "commit_id": str,
    "kind": str,
    "published_at": int,
    "checkpoints": dict,
}


def problem_of(actions: Sequence[Any]) -> str | None:
    """Return what is wrong with the actions of an entry, or None."""
    return next((problem for action in actions for problem in _problems(action)), None)


def _problems(action: Any) -> Iterator[str]:
    if not isinstance(action, dict):
        yield "a line is not a JSON object"
        return
    for kind, needed in _NEEDED.items():
        value = action.get(kind)
        if value is None:
            continue
        if not isinstance(value, dict):
            yield f"{kind} is not a JSON object"
            return
        yield from _mistyped(kind, value, needed)
    yield from _path_problems(action)
    yield from _text_problems(action)
    info = action.get("commitInfo") or {}
    if isinstance(info, dict) and "windrow" in info:
        yield from _origin_problems(info["windrow"])


def _mistyped(kind: str, value: Mapping[str, Any], needed: Mapping[str, type]) -> Iterator[str]:
    for name, expected in needed.items():
        if not _is(value.get(name), expected):
            yield f"{kind}.{name} is {value.get(name)!r}"[:200]


def _is(value: Any, expected: type) -> bool:
    return isinstance(value, expected) and (expected is bool or not isinstance(value, bool))


def _path_problems(action: Mapping[str, Any]) -> Iterator[str]:
    """A path stays in the table's folder, or is the URL of a registered file."""
    for kind in ("add", "remove"):
        path = (action.get(kind) or {}).get("path")
        if isinstance(path, str) and not is_foreign(path):
            problem = key_problem(unquote(path))
            if problem is not None:
                yield f"{kind}.path {path[:200]!r}: {problem}"


def _text_problems(action: Mapping[str, Any]) -> Iterator[str]:
    """Texts that are JSON themselves."""
    added, described = action.get("add") or {}, action.get("metaData") or {}
    if added.get("stats") is not None and not isinstance(_parsed(added["stats"]), dict):
        yield "add.stats is not a JSON object"
    tags = added.get("tags")
    if tags is not None and not isinstance(tags, dict):
        yield "add.tags is not a JSON object"
    elif tags and SPLIT_TAG in tags and not _is_split(_parsed(tags[SPLIT_TAG])):
        yield f"add.tags has no sound {SPLIT_TAG}"
    if "schemaString" in described and not isinstance(_parsed(described["schemaString"]), dict):
        yield "metaData.schemaString is not a JSON object"
    if not isinstance(described.get("configuration") or {}, dict):
        yield "metaData.configuration is not a JSON object"


def _is_split(value: Any) -> bool:
    if not isinstance(value, dict) or not isinstance(value.get("split_id"), str):
        return False
    place = value.get("sidecar")
    has_place = isinstance(place, list) and len(place) == 3 and isinstance(place[0], str)
    is_placed = place is None or (has_place and _is(place[1], int) and _is(place[2], int))
    return is_placed and all(isinstance(value.get(name), str | None) for name in ("etag", "digest"))


def _origin_problems(origin: Any) -> Iterator[str]:
    if not isinstance(origin, dict):
        yield "commitInfo.windrow is not a JSON object"
        return
    problems = list(_mistyped("commitInfo.windrow", origin, _ORIGIN))
    yield from problems
    if problems:
        return
    if not 0 <= origin["version"] <= MOST_VERSION:
        yield f"the version {origin['version']} is none that a table can have"
    if origin["kind"] not in list(CommitKind):
        yield f"the kind of commit {origin['kind']!r} does not exist"
    if not all(isinstance(each, str) for each in origin["checkpoints"].values()):
        yield "commitInfo.windrow.checkpoints are not texts"


def _parsed(text: Any) -> Any:
    try:
        return json.loads(text)
    except (ValueError, TypeError, RecursionError):
        return None
