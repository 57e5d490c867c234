"""The `windrow` command: its commands, and the one place where errors become exit codes.

Engines, Spark and the metastore are imported by the commands that need them, when they run: `windrow --help` is fast.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from gc import collect
from io import TextIOWrapper
from typing import NoReturn

import click

from windrow.cli.analyze import analyze
from windrow.cli.cache import cache
from windrow.cli.collector import collect_seldom
from windrow.cli.compact import compact
from windrow.cli.config import config
from windrow.cli.demo import demo
from windrow.cli.doctor import doctor
from windrow.cli.exit_codes import ExitCode, table_of_exit_codes
from windrow.cli.failures import report, silence_stdout
from windrow.cli.ingest import ingest
from windrow.cli.inspect import inspect
from windrow.cli.lake import lake
from windrow.cli.migrate import migrate
from windrow.cli.options import Group
from windrow.cli.pm import pm
from windrow.cli.questdb import questdb
from windrow.cli.questdb_store import append, compact_partitions
from windrow.cli.register import register, unregister
from windrow.cli.retype import retype
from windrow.cli.shell_completion import complete, completion
from windrow.cli.sql import sql
from windrow.cli.tables import change, create, describe, drop, list_tables, rename
from windrow.cli.tune import tune
from windrow.cli.upkeep import check, expire, gc

__all__ = ["cli", "main", "run"]


@click.group(
    cls=Group,
    top=True,
    context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100},
    epilog=f"\b\nExit codes:\n{table_of_exit_codes()}",
)
@click.version_option(None, "-V", "--version", package_name="windrow", message="%(prog)s %(version)s")
def cli() -> None:
    """Keep a lake of time-series Parquet sorted, compacted and fast.

    Settings come from options, then from WINDROW_* variables, then from windrow.toml: see `windrow config show`.
    The global options may stand before or after the command.
    """


_TABLES = (create, list_tables, describe, change, retype, rename, drop)
_DATA = (ingest, register, unregister, compact, tune, analyze, inspect, sql, doctor, check, expire, gc)

for _command in (*_TABLES, *_DATA, migrate, questdb, lake, pm, cache, config, completion, demo):
    cli.add_command(_command)

for _command in (append, compact_partitions):
    questdb.add_command(_command)


def run(arguments: Sequence[str]) -> int:
    """Run one command line and return its exit code."""
    try:
        code = _run(list(arguments))
        sys.stdout.flush()
    except BrokenPipeError:
        silence_stdout()
        code = ExitCode.CLOSED_PIPE
    if code:
        # DuckDB complains at the end of the process of what the broken query has left behind.
        collect()
    return code


def _run(arguments: list[str]) -> int:
    try:
        with cli.make_context("windrow", list(arguments)) as context:
            cli.invoke(context)
    except click.exceptions.Exit as ended:
        return ended.exit_code
    except click.exceptions.NoArgsIsHelpError as error:
        click.echo(error.format_message(), err=True)
        return ExitCode.USAGE
    except BrokenPipeError:
        raise
    except (Exception, KeyboardInterrupt) as error:
        return report(error, as_json="--json" in arguments)
    return ExitCode.OK


def main() -> NoReturn:
    """Run the command line of this process."""
    collect_seldom()
    if isinstance(sys.stdout, TextIOWrapper):
        # A tag may hold letters that the terminal's encoding does not know.
        sys.stdout.reconfigure(errors="backslashreplace")
    code = complete(cli)
    sys.exit(run(sys.argv[1:]) if code is None else code)
