"""Windrow keeps a lake of time-series Parquet sorted, compacted and fast.

import windrow

lake = windrow.connect("./lake")
metrics = lake.create_table("metrics", sort="metric_name|service|host|timestamp/V2", window="15m")
metrics.ingest(df)
lake.sql("select metric_name, avg(value) from metrics group by all").to_arrow()
"""

from typing import TYPE_CHECKING

from windrow import errors
from windrow.errors import (
    AlreadyExists,
    Closed,
    CommitUnknown,
    ConfigError,
    Conflict,
    Damaged,
    Incompatible,
    InvalidInput,
    InvariantViolation,
    LeaseExpired,
    MetastoreError,
    MissingDependency,
    NotFound,
    Outcome,
    Replaced,
    SnapshotExpired,
    SortSchemaError,
    StorageError,
    WindrowError,
)
from windrow.exports import __dir__ as __dir__
from windrow.exports import __getattr__ as __getattr__

if TYPE_CHECKING:
    from windrow.cache import CacheSettings
    from windrow.compaction.compaction_plan import CompactionPlan
    from windrow.compaction.outcomes import CompactionResult
    from windrow.compaction.tune import TuneResult
    from windrow.engines.answer import Answer
    from windrow.engines.explanation import Explanation
    from windrow.engines.scan import Scan
    from windrow.exports import __version__ as __version__
    from windrow.ingest.files import FileFormat
    from windrow.ingest.ingest_plan import IngestPlan
    from windrow.ingest.ingest_result import IngestResult
    from windrow.ingest.register import RegisterPlan, RegisterResult
    from windrow.ingest.registration import UnregisterPlan
    from windrow.lake import Lake, connect
    from windrow.model.predicate import Predicate
    from windrow.model.rows import Rows
    from windrow.model.settings import PolicySettings, TableSettings
    from windrow.planning.scan_plan import ScanPlan
    from windrow.retyping import RetypePlan, RetypeResult
    from windrow.runners.session import spark_session
    from windrow.settings_change import SettingsChange
    from windrow.table import Table
    from windrow.upkeep.check import CheckResult
    from windrow.upkeep.drop import DropPlan, DropResult, RenameResult
    from windrow.upkeep.dropped import DroppedReport
    from windrow.upkeep.gc_report import GcPlan, GcResult
    from windrow.upkeep.retention import ExpirePlan, ExpireResult

__all__ = [
    "AlreadyExists",
    "Answer",
    "CacheSettings",
    "CheckResult",
    "Closed",
    "CommitUnknown",
    "CompactionPlan",
    "CompactionResult",
    "ConfigError",
    "Conflict",
    "Damaged",
    "DropPlan",
    "DropResult",
    "DroppedReport",
    "ExpirePlan",
    "ExpireResult",
    "Explanation",
    "FileFormat",
    "GcPlan",
    "GcResult",
    "Incompatible",
    "IngestPlan",
    "IngestResult",
    "InvalidInput",
    "InvariantViolation",
    "Lake",
    "LeaseExpired",
    "MetastoreError",
    "MissingDependency",
    "NotFound",
    "Outcome",
    "PolicySettings",
    "Predicate",
    "RegisterPlan",
    "RegisterResult",
    "RenameResult",
    "Replaced",
    "RetypePlan",
    "RetypeResult",
    "Rows",
    "Scan",
    "ScanPlan",
    "SettingsChange",
    "SnapshotExpired",
    "SortSchemaError",
    "StorageError",
    "Table",
    "TableSettings",
    "TuneResult",
    "UnregisterPlan",
    "WindrowError",
    "__version__",
    "connect",
    "errors",
    "spark_session",
]
