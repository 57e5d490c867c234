"""The settings of a table as they are typed: every value is text here."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from datetime import UTC, datetime
from math import floor
from typing import Any

from windrow.errors import InvalidInput

__all__ = ["dotted", "read_pairs", "read_setting"]

_LISTS = ("tags", "partition_by", "bloom_filters", "primary_key")
_TEXTS = ("sort", "timestamp", "timestamp_unit", "timestamp_precision", "policy.name")
_TRUTHS = {"true": True, "false": False}
_MAY_BE_NONE = ("tags", "retention", "timestamp_unit", "cold_window")


def read_pairs(pairs: Iterable[str]) -> dict[str, Any]:
    """Read settings written as `key=value`; those of the policy are `policy.merge_factor=12` and come out nested."""
    values: dict[str, Any] = {}
    for pair in pairs:
        name, equals, text = pair.partition("=")
        name = name.strip().replace("-", "_")
        if not equals or not name:
            raise InvalidInput(f"{pair!r} is not a setting with a value; write it as key=value, such as window=5m")
        place, key = values, name
        if name.startswith("policy."):
            place, key = values.setdefault("policy", {}), name.removeprefix("policy.")
        if key in place:
            raise InvalidInput(f"{name} is given twice; give it once")
        place[key] = read_setting(name, text)
    return values


def dotted(settings: Mapping[str, Any]) -> dict[str, Any]:
    """Return settings by the names that `read_pairs` knows: those of the policy have its name before theirs."""
    policy = {f"policy.{name}": value for name, value in settings["policy"].items()}
    return {name: value for name, value in settings.items() if name != "policy"} | policy


def read_setting(name: str, text: str) -> Any:
    """Return what a person typed for a setting as `TableSettings` takes it."""
    text = text.strip()
    if name in _MAY_BE_NONE and text.lower() == "none":
        return None
    if name in _LISTS:
        return [part.strip() for part in text.split(",")] if text else []
    if name == "mirror" and text.lower() in _TRUTHS:
        return _TRUTHS[text.lower()]
    if name == "compaction_start_time":
        return _epoch_seconds(name, text)
    return int(text) if text.isdecimal() and name not in _TEXTS else text


def _epoch_seconds(name: str, text: str) -> int:
    if text.removeprefix("-").isdecimal():
        return int(text)
    try:
        moment = datetime.fromisoformat(text)
    except ValueError as error:
        raise InvalidInput(
            f"{name}: {text!r} is no moment; write seconds since the epoch, or a time such as 2026-01-31T12:00:00Z"
        ) from error
    return floor((moment if moment.tzinfo else moment.replace(tzinfo=UTC)).timestamp())
