"""How a command that failed says so: one line or one JSON object, an exit code, never a traceback unasked."""

from __future__ import annotations

import logging
import os
import sys

import click

from windrow.cli.exit_codes import ExitCode, exit_code_of
from windrow.cli.output import to_json
from windrow.config import masked
from windrow.errors import Damaged, InvalidInput, StorageError, WindrowError

__all__ = ["report", "silence_stdout"]

_log = logging.getLogger(__name__)


def report(error: BaseException, *, as_json: bool) -> ExitCode:
    """Say what went wrong and return the exit code of it."""
    _log.debug("the command failed here:", exc_info=error)
    error = _of_others(error) or error
    kind, message, code = _described(error)
    if as_json:
        outcome = getattr(error, "outcome", None)
        record = {"kind": kind, "message": message, "retryable": getattr(error, "retryable", False), "outcome": outcome}
        click.echo(to_json({"error": record}))
    else:
        click.echo(f"error: {message}", err=True)
    return code


def _described(error: BaseException) -> tuple[str, str, ExitCode]:
    if isinstance(error, WindrowError):
        return type(error).__name__, str(error), exit_code_of(error)
    if isinstance(error, click.UsageError):
        return "Usage", _usage(error), ExitCode.USAGE
    if isinstance(error, KeyboardInterrupt | click.Abort):
        return "Interrupted", "interrupted", ExitCode.INTERRUPTED
    problem = masked("", f"{type(error).__name__}: {error}".strip().partition("\n")[0])
    return (
        "Bug",
        f"unexpected: {problem}; this is a bug, please report it with what --log-level debug adds",
        ExitCode.BUG,
    )


def _of_others(error: BaseException) -> WindrowError | None:
    """What the system or a library refuses, by its kind; None for what can only be a mistake in Windrow."""
    if isinstance(error, WindrowError | click.ClickException | click.Abort):
        return None
    from windrow.storage.failures import disk_failure

    # A library that was never loaded has raised nothing.
    arrow, duckdb = sys.modules.get("pyarrow"), sys.modules.get("duckdb")
    problem = masked("", str(error).strip().partition("\n")[0])
    if isinstance(error, OSError) and error.errno is not None:
        return disk_failure(error, str(error.filename or "a file"))
    if isinstance(error, MemoryError):
        return InvalidInput(f"there is not enough memory: {problem}; give a smaller memory budget, or do less at once")
    if arrow is not None and isinstance(error, arrow.ArrowException | OSError):
        return Damaged(f"there is data that Arrow cannot read: {problem}; --log-level debug shows where")
    if duckdb is not None and isinstance(error, duckdb.Error):
        return StorageError(f"DuckDB failed: {problem}; --log-level debug shows where")
    return None


def _usage(error: click.UsageError) -> str:
    command = f"; see {error.ctx.command_path} --help" if error.ctx is not None else ""
    return error.format_message().rstrip(".") + command


def silence_stdout() -> None:
    """After the reader went away: what is still buffered has nowhere to go, and nobody wants to hear of it."""
    nowhere = os.open(os.devnull, os.O_WRONLY)
    os.dup2(nowhere, sys.stdout.fileno())
