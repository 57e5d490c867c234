"""The public names, pinned: a change here is a change for every user."""

from __future__ import annotations

import inspect
import subprocess
import sys

import windrow
import windrow.cache
import windrow.errors
import windrow.metastore
import windrow.storage
import windrow.testing

ENTRANCES = ["Lake", "Table", "connect", "spark_session"]
VALUES = ["CacheSettings", "FileFormat", "PolicySettings", "Predicate", "TableSettings"]
RESULTS = [
    "Answer",
    "CheckResult",
    "CompactionPlan",
    "CompactionResult",
    "DropPlan",
    "DropResult",
    "DroppedReport",
    "ExpirePlan",
    "ExpireResult",
    "Explanation",
    "GcPlan",
    "GcResult",
    "IngestPlan",
    "IngestResult",
    "RegisterPlan",
    "RegisterResult",
    "RenameResult",
    "RetypePlan",
    "RetypeResult",
    "Rows",
    "Scan",
    "ScanPlan",
    "SettingsChange",
    "TuneResult",
    "UnregisterPlan",
]


def test_the_package_offers_these_names_and_no_others():
    names = [*ENTRANCES, *VALUES, *RESULTS, *windrow.errors.__all__, "__version__", "errors"]
    assert sorted(windrow.__all__) == sorted(names)


def test_importing_the_package_loads_its_errors_and_nothing_else_of_it():
    code = "import sys, windrow; print(*sorted(name for name in sys.modules if name.partition('.')[0] in sys.argv[1:]))"
    heavy = ["windrow", "duckdb", "numpy", "pandas", "polars", "pyarrow", "pyspark", "sqlalchemy"]
    done = subprocess.run([sys.executable, "-c", code, *heavy], capture_output=True, text=True, check=True)
    assert done.stdout.split() == ["windrow", "windrow.errors", "windrow.exports"]


def test_the_errors_are_these():
    assert sorted(windrow.errors.__all__) == [
        "AlreadyExists",
        "Closed",
        "CommitUnknown",
        "ConfigError",
        "Conflict",
        "Damaged",
        "Incompatible",
        "InvalidInput",
        "InvariantViolation",
        "LeaseExpired",
        "MetastoreError",
        "MissingDependency",
        "NotFound",
        "Outcome",
        "Replaced",
        "SnapshotExpired",
        "SortSchemaError",
        "StorageError",
        "WindrowError",
    ]


def test_every_error_has_the_one_root():
    names = [getattr(windrow.errors, name) for name in windrow.errors.__all__ if name != "Outcome"]
    assert all(issubclass(kind, windrow.errors.WindrowError) for kind in names)


def test_every_public_name_is_there_and_has_a_docstring():
    for room in (windrow, windrow.cache, windrow.errors, windrow.metastore, windrow.storage, windrow.testing):
        for name in room.__all__:
            thing = getattr(room, name)
            if inspect.isclass(thing) or inspect.isfunction(thing):
                assert inspect.getdoc(thing), f"{room.__name__}.{name}"


def test_the_testing_kit_is_shipped():
    assert {"FaultyStore", "MetastoreTests", "RecordingStore", "StoreTests"} <= set(windrow.testing.__all__)
