"""`windrow questdb`: tables of QuestDB, or in its layout, without a server."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from windrow.cli.answers import output_options, write_answer
from windrow.cli.exit_codes import ExitCode
from windrow.cli.invocation import Invocation
from windrow.cli.options import Group, pass_invocation
from windrow.cli.progress import stepping
from windrow.cli.sql_output import chosen_format
from windrow.cli.text import fields
from windrow.cli.text import table as text_table
from windrow.model.units import format_count

if TYPE_CHECKING:
    from windrow.questdb.inspection import TableState

__all__ = ["one_table", "questdb", "tables_named"]

_PARTITION = ("folder", "format", "rows", "parquet_bytes", "row_groups", "footers", "unused_bytes", "problem")
_TABLE = ("table", "unit", "version", "rows", "partitions", "parquet_partitions", "parquet_bytes", "unused_bytes")


@click.group(cls=Group)
def questdb() -> None:
    """Work with tables of QuestDB, or in its layout, without a server.

    PATH is the folder of a table, of a database, or of a server. TABLE chooses one where there are many.
    """


@questdb.command()
@click.argument("path", metavar="PATH")
@click.argument("name", metavar="[TABLE]", required=False)
@pass_invocation
def inspect(invocation: Invocation, path: str, name: str | None) -> None:
    """Show tables; of one, its partitions: committed sizes, chains of footers, unused bytes."""
    from windrow.questdb.inspection import inspect_table

    states = [inspect_table(folder) for folder in tables_named(path, name)]
    if len(states) == 1:
        invocation.output.answer(states[0].to_dict(), lambda: _table_text(states[0]))
    else:
        rows = [state.summary() for state in states]
        invocation.output.answer(rows, lambda: text_table(rows, _TABLE))


def _table_text(state: TableState) -> str:
    plain = state.to_dict()
    partitions = plain.pop("partitions")
    shown_ones = text_table(partitions, _PARTITION) if partitions else "no partitions"
    return f"{fields(plain)}\n\n{shown_ones}"


@questdb.command()
@click.argument("path", metavar="PATH")
@click.argument("name", metavar="[TABLE]", required=False)
@click.option("--data", is_flag=True, help="Decode every row too, and verify page checksums.")
@pass_invocation
def check(invocation: Invocation, path: str, name: str | None, *, data: bool) -> None:
    """Check that _txn, _meta, sidecars and Parquet files agree; exit with 6 when something is wrong."""
    from windrow.questdb.checking import check_table

    folders = tables_named(path, name)
    results = []
    with stepping(f"checking {path}", len(folders), "tables") as advance:
        for folder in folders:
            results.append(check_table(folder, data=data).to_dict())
            advance()
    sound = all(each["sound"] for each in results)
    answer: dict[str, Any] = results[0] if len(results) == 1 else {"sound": sound, "tables": results}
    invocation.output.answer(answer, lambda: "\n\n".join(map(_check_text, results)))
    if not sound:
        raise click.exceptions.Exit(ExitCode.DAMAGED)


def _check_text(result: dict[str, Any]) -> str:
    head = f"table {result['table']} is {'sound' if result['sound'] else 'not sound'}"
    plain = {name: value for name, value in result.items() if name not in ("sound", "table", "missing_sidecars")}
    missing = len(result["missing_sidecars"])
    hint = f"\n\n{format_count(missing, 'partition')} without a sidecar; windrow migrate writes them" if missing else ""
    return f"{head}\n\n{fields(plain)}{hint}"


@questdb.command()
@click.argument("path", metavar="PATH")
@click.argument("name", metavar="[TABLE]", required=False)
@click.option("--where", metavar="CONDITION", help="Such as: symbol = 'BTC-USD' and price > 5")
@click.option("--columns", metavar="NAMES", help="Only these, with commas between them.")
@output_options
@click.option("--skip-native", is_flag=True, help="Leave native partitions out; without this they are an error.")
@click.option("--recover", is_flag=True, help="Read partitions that a killed QuestDB left with a wrong size.")
@pass_invocation
def scan(
    invocation: Invocation,
    /,
    path: str,
    name: str | None,
    *,
    form: str | None,
    output: str | None,
    skip_native: bool,
    recover: bool,
    **chosen: Any,
) -> None:
    """Write the rows of one table, all of one commit, also while QuestDB writes to it."""
    from windrow.databases import open_table

    kind = chosen_format(invocation, form, output)
    table = open_table(one_table(path, name), native="skip" if skip_native else "refuse", recover=recover)
    names = None if chosen["columns"] is None else [each.strip() for each in chosen["columns"].split(",")]
    write_answer(invocation, table.scan(chosen["where"], names).to_reader(), kind, output)


def tables_named(path: str, name: str | None) -> list[Path]:
    """The folders of the tables at a path, or of the one that is named."""
    from windrow.databases import open_database
    from windrow.errors import NotFound
    from windrow.questdb.migration_plan import tables_at

    if name is not None:
        return [open_database(path).table(name).folder]
    folders = tables_at(Path(path))
    if not folders:
        raise NotFound(f"{path}: there is no table of QuestDB; give its folder, that of a database, or of a server")
    return folders


def one_table(path: str, name: str | None) -> Path:
    """The folder of the one table at a path."""
    from windrow.questdb.registry import table_name

    folders = tables_named(path, name)
    if len(folders) > 1:
        names = ", ".join(sorted(table_name(folder) for folder in folders))
        raise click.UsageError(f"{path} has {len(folders)} tables; name one of {names}")
    return folders[0]
