"""The public names of the package, loaded when they are first used.

The command line answers `--help` without loading a single engine, since importing the package loads none.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    __version__: str

__all__ = ["__dir__", "__getattr__"]

_HOMES = {
    "Answer": "windrow.engines.answer",
    "CacheSettings": "windrow.cache",
    "CheckResult": "windrow.upkeep.check",
    "CompactionPlan": "windrow.compaction.compaction_plan",
    "CompactionResult": "windrow.compaction.outcomes",
    "DropPlan": "windrow.upkeep.drop",
    "DropResult": "windrow.upkeep.drop",
    "DroppedReport": "windrow.upkeep.dropped",
    "ExpirePlan": "windrow.upkeep.retention",
    "ExpireResult": "windrow.upkeep.retention",
    "Explanation": "windrow.engines.explanation",
    "FileFormat": "windrow.ingest.files",
    "GcPlan": "windrow.upkeep.gc_report",
    "GcResult": "windrow.upkeep.gc_report",
    "IngestPlan": "windrow.ingest.ingest_plan",
    "IngestResult": "windrow.ingest.ingest_result",
    "Lake": "windrow.lake",
    "PolicySettings": "windrow.model.settings",
    "Predicate": "windrow.model.predicate",
    "RegisterPlan": "windrow.ingest.register",
    "RegisterResult": "windrow.ingest.register",
    "RenameResult": "windrow.upkeep.drop",
    "RetypePlan": "windrow.retyping",
    "RetypeResult": "windrow.retyping",
    "Rows": "windrow.model.rows",
    "Scan": "windrow.engines.scan",
    "ScanPlan": "windrow.planning.scan_plan",
    "SettingsChange": "windrow.settings_change",
    "Table": "windrow.table",
    "TableSettings": "windrow.model.settings",
    "TuneResult": "windrow.compaction.tune",
    "UnregisterPlan": "windrow.ingest.registration",
    "connect": "windrow.lake",
    "spark_session": "windrow.runners.session",
}


def __dir__() -> list[str]:
    """List the public names of the package, and no room of its inside."""
    return sorted(import_module("windrow").__all__)


def __getattr__(name: str) -> Any:
    """Return a public name of the package from the module where it lives."""
    if name == "__version__":
        from importlib.metadata import version

        return version("windrow")
    if name not in _HOMES:
        raise AttributeError(f"module 'windrow' has no attribute {name!r}")
    return getattr(import_module(_HOMES[name]), name)
