"""The shell of `windrow sql`: statements and commands until the user has had enough."""

from __future__ import annotations

import os
import shlex
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from windrow.cli.completion import LakeCatalog, candidates
from windrow.cli.failures import report
from windrow.cli.sql_output import MOST_SHOWN, Format, explained, is_explain, shown, write
from windrow.cli.statements import is_complete, statements
from windrow.cli.text import table as text_table
from windrow.errors import InvalidInput, WindrowError

if TYPE_CHECKING:
    from prompt_toolkit import PromptSession
    from prompt_toolkit.history import History

    from windrow.lake import Lake
    from windrow.table import Table

__all__ = ["COMMANDS", "Shell", "history_file", "run_shell"]

COMMANDS = {
    ".help": "say what can be typed",
    ".tables": "list the tables",
    ".schema": "show the columns of a table, or of all: .schema metrics",
    ".explain": "say what a query would read, and why: .explain select ...",
    ".timer": "show how long a query took, or not: .timer on|off",
    ".mode": "write answers as a table, CSV or JSON: .mode table|csv|json",
    ".quit": "leave; Ctrl-D does so too",
}
_MODES = {str(mode): mode for mode in (Format.TABLE, Format.CSV, Format.JSON)}


class Shell:
    """What was set, and how a line is answered."""

    def __init__(self, lake: Lake, mode: Format = Format.TABLE) -> None:
        self._lake = lake
        self.mode = mode
        self.timer = True

    def answer(self, line: str) -> bool:
        """Do what was typed, whatever comes of it; False is: leave."""
        try:
            if line.strip().startswith("."):
                return self._command(line.strip())
            for statement in statements(line):
                self._query(statement)
        except BrokenPipeError:
            raise
        except (Exception, KeyboardInterrupt) as error:
            sys.stdout.flush()
            report(error, as_json=False)
        return True

    def _query(self, query: str) -> None:
        start = time.perf_counter()
        if self.mode is Format.TABLE and is_explain(query):
            click.echo(explained(self._lake, query)[1])
            return
        if self.mode is Format.TABLE:
            with self._lake.stream(query) as batches:
                answer = shown(batches, MOST_SHOWN)
            click.echo(answer.text(short=True))
            counted = answer.counted
        else:
            with self._lake.stream(query) as batches:
                rows = write(self.mode, batches, sys.stdout.buffer)
            sys.stdout.buffer.flush()
            counted = f"{rows:,} {'row' if rows == 1 else 'rows'}"
        took = f", {time.perf_counter() - start:.3f} s" if self.timer else ""
        click.secho(counted + took, dim=True, err=self.mode is not Format.TABLE)

    def _command(self, line: str) -> bool:
        name, _, rest = line.rstrip(";").partition(" ")
        match name.lower():
            case ".quit" | ".exit":
                return False
            case ".help":
                click.echo("Type SQL and end it with a semicolon, or one of these:\n")
                click.echo("\n".join(f"  {command:<9} {what}" for command, what in COMMANDS.items()))
            case ".tables":
                click.echo(text_table(self._lake.tables().to_dict(), ["name", "version", "window_seconds", "sort"]))
            case ".schema":
                self._schema(shlex.split(rest))
            case ".explain":
                self._explain(rest)
            case ".timer":
                self.timer = _chosen(name, rest, {"on": True, "off": False})
            case ".mode":
                self.mode = _chosen(name, rest, _MODES)
            case _:
                raise InvalidInput(f"{name} is no command; .help lists them")
        return True

    def _schema(self, names: list[str]) -> None:
        for typed in names or [row.name for row in self._lake.tables()]:
            name, opened = self._table(typed)
            click.echo(f"{name}  {opened.settings().sort}")
            click.echo(text_table(opened.inspect.columns().to_dict(), ["name", "type"]) + "\n")

    def _table(self, typed: str) -> tuple[str, Table]:
        """Names are unique whatever their case, in SQL and here."""
        spelled = next((row.name for row in self._lake.tables() if row.name.lower() == typed.lower()), typed)
        return spelled, self._lake.table(spelled)

    def _explain(self, query: str) -> None:
        if not query.strip():
            raise InvalidInput(".explain: what should be explained? Write the query behind it")
        for statement in statements(query):
            click.echo(explained(self._lake, statement)[1])


def _chosen(command: str, word: str, choices: dict[str, Any]) -> Any:
    if word.strip() not in choices:
        raise InvalidInput(f"{command}: {word.strip()!r} is none of {', '.join(choices)}")
    return choices[word.strip()]


def run_shell(lake: Lake, mode: Format) -> None:
    """Read and answer until the end, on the terminal that stdin and stdout are."""
    shell, session = Shell(lake, mode), _session(lake)
    count = len(lake.tables())
    click.echo(f"{lake.url}: {count} {'table' if count == 1 else 'tables'}; .help says what can be typed")
    for line in _lines(session):
        if not shell.answer(line):
            return


def _lines(session: PromptSession[str]) -> Iterator[str]:
    """Yield what is typed, until Ctrl-D; Ctrl-C begins anew."""
    while True:
        with suppress(KeyboardInterrupt):
            try:
                line = session.prompt("windrow> ")
            except EOFError:
                return
            yield line


def _session(lake: Lake) -> PromptSession[str]:
    from prompt_toolkit import PromptSession
    from prompt_toolkit.application import get_app
    from prompt_toolkit.filters import Condition
    from prompt_toolkit.lexers import PygmentsLexer
    from pygments.lexers.sql import SqlLexer

    return PromptSession(
        history=_history(history_file(os.environ, Path.home)),
        # A statement goes on over lines until its semicolon.
        multiline=Condition(lambda: not is_complete(get_app().current_buffer.text)),
        prompt_continuation=lambda width, *_: "...> ".rjust(width),
        completer=_completer(lake),
        complete_while_typing=False,
        complete_in_thread=True,
        lexer=PygmentsLexer(SqlLexer),
    )


def _completer(lake: Lake) -> Any:
    from prompt_toolkit.completion import Completer, Completion
    from prompt_toolkit.document import Document

    catalog = LakeCatalog(lake)

    class Completions(Completer):
        def get_completions(self, document: Document, _: object) -> Iterator[Completion]:
            # A lake that does not answer now is no reason to stop typing.
            with suppress(WindrowError):
                for each in candidates(document.text_before_cursor, catalog, COMMANDS):
                    yield Completion(each.text, -each.replaces, display_meta=each.kind)

    return Completions()


def history_file(environ: Any, home: Callable[[], Path]) -> Path:
    """Return where the history lies: in the folder for the state of programs."""
    given = environ.get("XDG_STATE_HOME", "")
    state = Path(given) if Path(given).is_absolute() else home() / ".local" / "state"
    return state / "windrow" / "history"


def _history(path: Path) -> History:
    from prompt_toolkit.history import FileHistory, InMemoryHistory

    try:
        # Queries are nobody else's business.
        path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
        path.touch(mode=0o600)
    except OSError:
        return InMemoryHistory()
    return FileHistory(str(path))
