"""The Spark session of one command: started when it is wanted, stopped when the command ends."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

import click

from windrow.cli.invocation import Invocation
from windrow.cli.progress import waiting
from windrow.extras import is_installed

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

__all__ = ["runner_option", "sparks", "wants_spark"]

runner_option = click.option(
    "--runner", type=click.Choice(["auto", "local", "spark"]), default="auto", show_default=True, help="Who works."
)
"""For commands that choose by themselves, as `wants_spark` says."""


def wants_spark(runner: str, size: int, worth_spark: int) -> bool:
    """Whether Spark is chosen, or there is work of so many bytes that starting it takes less long than the work."""
    return runner == "spark" or (runner == "auto" and size >= worth_spark and is_installed("spark"))


@contextmanager
def sparks(invocation: Invocation, *, wanted: bool) -> Iterator[SparkSession | None]:
    """Give a session, or None where this process does the work itself."""
    if not wanted:
        yield None
        return
    from windrow.runners.session import spark_session

    with waiting("starting Spark"):
        session = spark_session(invocation.config.spark_master, options=invocation.config.spark_options)
    try:
        yield session
    finally:
        session.stop()
