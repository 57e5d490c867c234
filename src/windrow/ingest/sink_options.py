"""The options of Spark's sink: which table of which lake, and how rows are taken into it."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass, field
from difflib import get_close_matches
from typing import Any

from windrow.context import Context
from windrow.errors import InvalidInput
from windrow.ingest.batch import StreamBatch
from windrow.ingest.checkpoints import QueryCheckpoint
from windrow.ingest.run import Ingest
from windrow.ingest.settings import IngestSettings
from windrow.model.units import parse_seconds

__all__ = ["SinkOptions", "needed_option", "option_flag", "refuse_unknown", "store_options_of"]

_STORE = "store."
_LEASE = "1h"
"""No process of ours lives through the whole of a write to prolong the lease, so it is a long one."""
_OURS = ("lake", "table", "metastore", "source", "drop_late", "future", "most_dropped", "dead_letter", "lease")
_SPARKS = ("path", "checkpointlocation", "queryname")


@dataclass(frozen=True, slots=True)
class SinkOptions:
    """What the options of a sink say, checked."""

    lake: str
    table: str
    settings: IngestSettings
    metastore: str | None = field(default=None, repr=False)
    store_options: Mapping[str, str] = field(default_factory=dict, repr=False)
    checkpoint: str | None = None

    @classmethod
    def of(cls, options: Mapping[str, str], *, streaming: bool) -> SinkOptions:
        """Read the options as Spark hands them over: text, with names in lower case."""
        given = {name.lower(): value for name, value in options.items()}
        refuse_unknown(given, _OURS, _SPARKS)
        return cls(
            lake=needed_option(given, "lake", given.get("path")),
            table=needed_option(given, "table"),
            settings=IngestSettings(
                **_parsed(given, {"source": str, "future": str, "most_dropped": _share}),
                drop_late=option_flag("drop_late", given.get("drop_late", str(streaming))),
                dead_letter=option_flag("dead_letter", given.get("dead_letter", "false")),
                lease=parse_seconds(given.get("lease", _LEASE), "option lease"),
            ),
            metastore=given.get("metastore"),
            store_options=store_options_of(given),
            checkpoint=needed_option(given, "checkpointLocation") if streaming else None,
        )

    def open(self) -> closing[Context]:
        """Open the lake, for a block."""
        context = Context.open(self.lake, self.metastore, self.store_options, create=False)
        return closing(context)

    def ingest(self, context: Context, batch: StreamBatch | None = None) -> Ingest:
        """Return the run that a write is."""
        return Ingest.of(context, self.table, self.settings, batch)

    def batch(self) -> StreamBatch:
        """Return the batch of the stream that runs now."""
        return QueryCheckpoint.at(self.checkpoint or "", self.store_options).batch()


def needed_option(given: Mapping[str, str], name: str, otherwise: str | None = None) -> str:
    """Return an option that has to be there."""
    value = given.get(name.lower(), otherwise)
    if not value:
        raise InvalidInput(f"format windrow: the option {name!r} is missing; add .option({name!r}, ...)")
    return value


def store_options_of(given: Mapping[str, str]) -> dict[str, str]:
    """Return the options of the store, which begin with `store.`."""
    return {name.removeprefix(_STORE): given[name] for name in given if name.startswith(_STORE)}


def refuse_unknown(given: Iterable[str], ours: Sequence[str], sparks: Sequence[str]) -> None:
    """Refuse options that nobody knows, with the nearest of ours."""
    for name in given:
        if name not in (*ours, *sparks) and not name.startswith(_STORE):
            near = get_close_matches(name, ours, 1)
            hint = f"did you mean {near[0]!r}?" if near else f"it knows {', '.join(ours)} and {_STORE}<name>"
            raise InvalidInput(f"format windrow: unknown option {name!r}; {hint}")


def _parsed(given: Mapping[str, str], kinds: Mapping[str, Callable[[str], Any]]) -> dict[str, Any]:
    return {name: kind(given[name]) for name, kind in kinds.items() if name in given}


def option_flag(name: str, text: str) -> bool:
    """Return an option that is true or false."""
    if text.lower() not in {"true", "false"}:
        raise InvalidInput(f"format windrow: option {name!r} is {text!r}; write true or false")
    return text.lower() == "true"


def _share(text: str) -> float:
    try:
        share = float(text)
    except ValueError:
        share = -1.0
    if not 0 <= share <= 1:
        raise InvalidInput(f"format windrow: option 'most_dropped' is {text!r}; write a number from 0 to 1")
    return share
