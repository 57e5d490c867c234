"""Spark's Python daemon, with all loaded that our tasks need: workers are forked from it and start at once.

A worker that Spark starts by itself imports Arrow, pandas and the metastore; so does each other one, on every core, and
again after a minute of rest, when Spark ends idle workers. Here that is done once in each executor.
`spark.python.daemon.module` names this module; `spark_session` sets it.
"""

from __future__ import annotations

import os
import sys
import traceback
from importlib import import_module

__all__ = ["main", "preload"]

_WORKER = "pyspark.worker"
"""Tasks run in this one. Spark keeps daemons of other kinds too, which need nothing of ours."""
_KERNELS = ("encode", "hashes", "merge", "pages", "sorting", "sums", "texts", "thrift")
_MODULES = (
    "pandas",
    "pyarrow.compute",
    "pyarrow.parquet",
    _WORKER,
    "windrow.merging.splits",
    "windrow.metastore",
    *(f"windrow.kernels.{name}" for name in _KERNELS),
)


def main() -> None:
    """Load everything, then be the daemon."""
    from pyspark.daemon import manager

    if sys.argv[1:2] == [_WORKER]:
        try:
            preload()
        except Exception:  # the daemon must start; tasks can load it all by themselves
            traceback.print_exc()
    manager()


def preload() -> None:
    """Import what tasks import, and own the process. No thread is left behind."""
    # Linear algebra would start threads, which no fork survives; our tasks do none.
    os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
    for name in _MODULES:
        import_module(name)
    from windrow.merging.heap import own_process

    own_process()


if __name__ == "__main__":
    main()
