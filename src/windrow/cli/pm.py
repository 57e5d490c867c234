"""`windrow pm`: the sidecar of a single Parquet file, built, looked at, checked and pruned by."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from windrow.cli.invocation import Invocation
from windrow.cli.options import Group, pass_invocation
from windrow.cli.text import fields
from windrow.cli.text import table as text_table
from windrow.errors import Damaged, NotFound, StorageError, WindrowError
from windrow.model.units import format_bytes

if TYPE_CHECKING:
    from windrow.sidecar import Sidecar
    from windrow.sidecar.convert import Read

__all__ = ["pm"]


@click.group(cls=Group)
def pm() -> None:
    """Work with the sidecar of a single Parquet file."""


@pm.command()
@click.argument("parquet", metavar="FILE.parquet")
@click.option("-o", "--output", metavar="FILE", help="Where to write it.  [default: _FILE.pm beside the file]")
@click.option("--no-extensions", is_flag=True, help="Leave out what Windrow adds: the bytes that QuestDB writes.")
@click.option("--external-blooms", is_flag=True, help="Leave bloom filters in the Parquet file and say where they are.")
@click.option("--dry-run", is_flag=True, help="Make the sidecar, write no file.")
@pass_invocation
def build(
    invocation: Invocation,
    parquet: str,
    output: str | None,
    *,
    no_extensions: bool,
    external_blooms: bool,
    dry_run: bool,
) -> None:
    """Write the sidecar of a Parquet file of any writer."""
    from windrow.sidecar.build import build_sidecar
    from windrow.sidecar.publish import publish_new

    path = Path(parquet)
    with _opened(path) as (read, size):
        data = build_sidecar(read, size, name=parquet, extensions=not no_extensions, external_blooms=external_blooms)
    target = Path(output) if output else path.with_name(f"_{path.stem}.pm")
    if not dry_run:
        publish_new(target, data)
    result = {"sidecar": str(target), "size_bytes": len(data), "parquet": parquet, "parquet_size": size}
    done = "would write" if dry_run else "wrote"
    invocation.output.answer(result | {"dry_run": dry_run}, lambda: f"{done} {target}, {format_bytes(len(data))}")


@pm.command()
@click.argument("sidecar", metavar="FILE.pm")
@pass_invocation
def inspect(invocation: Invocation, sidecar: str) -> None:
    """Show what a sidecar says; with --json every field of header, chunks and all footers in the chain."""
    from windrow.sidecar import Sidecar
    from windrow.sidecar.inspect import describe

    _check_is_file(Path(sidecar))
    description = describe(Sidecar.open(sidecar, verify=False))
    invocation.output.answer(description, lambda: _described(description))


@pm.command()
@click.argument("sidecar", metavar="FILE.pm")
@click.option("--parquet", metavar="FILE", help="Compare with this Parquet file too.")
@pass_invocation
def check(invocation: Invocation, sidecar: str, parquet: str | None) -> None:
    """Check CRC and structure of a sidecar, and that it agrees with its Parquet file."""
    from windrow.sidecar import Sidecar
    from windrow.sidecar.build import footer_of
    from windrow.sidecar.check import check_against, check_bytes

    path = Path(sidecar)
    _check_is_file(path)
    with _read_from(path):
        content = path.read_bytes()
    findings = check_bytes(content, name=sidecar)
    if parquet is not None and not findings:
        with _opened(Path(parquet)) as (read, size):
            findings = check_against(Sidecar.open(sidecar), footer_of(read, size, name=parquet), size)
    if findings:
        problems = "; ".join(f"{each.where}: {each.problem}" for each in findings[:5])
        raise Damaged(f"{sidecar}: {len(findings)} findings: {problems}")
    invocation.output.answer({"sidecar": sidecar, "findings": []}, lambda: f"{sidecar}: nothing is wrong with it")


@pm.command()
@click.argument("sidecar", metavar="FILE.pm")
@click.option("--where", required=True, metavar="CONDITION", help="Such as: metric = 'cpu' and value > 5")
@click.option(
    "--parquet",
    metavar="FILE",
    help="Its Parquet file, for bloom filters that are in it, and in case that the sidecar is stale or damaged.",
)
@pass_invocation
def prune(invocation: Invocation, sidecar: str, where: str, parquet: str | None) -> None:
    """Say which row groups can hold a row that matches."""
    from windrow.planning.sidecar_literals import fitted_to_sidecar
    from windrow.questions.where import parse_where
    from windrow.sidecar.pruning import SidecarPruner

    _check_is_file(Path(sidecar))
    with _sound(sidecar, parquet) as (opened, read):
        pruner = SidecarPruner(fitted_to_sidecar(parse_where(where), opened))
        matching = pruner.prune(opened, read)
        steps = pruner.explain(opened, read).to_dict()
    result = {"row_groups": len(matching), "kept": matching.nonzero()[0].tolist(), "steps": steps}
    numbers = ", ".join(str(each) for each in matching.nonzero()[0]) or "none"
    invocation.output.answer(
        result,
        lambda: f"{text_table(steps, ['step', 'units', 'asked', 'kept'])}\n\nrow groups that can match: {numbers}",
    )


@contextmanager
def _sound(sidecar: str, parquet: str | None) -> Iterator[tuple[Sidecar, Read | None]]:
    """Give a sidecar that can be relied on, and a way to read its Parquet file if that is named."""
    from windrow.sidecar import Sidecar
    from windrow.sidecar.sound import sound_sidecar

    if parquet is None:
        yield Sidecar.open(sidecar), None
        return
    with _opened(Path(parquet)) as (read, size):
        yield sound_sidecar(lambda: Sidecar.open(sidecar, parquet_size=size), read, size, name=parquet), read


def _described(description: dict[str, Any]) -> str:
    newest = description["snapshots"][0]
    head = {
        "committed size": format_bytes(description["committed_size"]),
        "features": description["features"] + newest["features"],
        "snapshots": len(description["snapshots"]),
        "describes a Parquet file of": format_bytes(newest["parquet_size"]),
        "row groups": len(newest["row_groups"]),
        "rows": f"{sum(group['num_rows'] for group in newest['row_groups']):,}",
    }
    columns = [
        {"name": each["name"], "stored as": _physical(each["physical_type"]), "type": each["type"], "id": each["id"]}
        for each in description["columns"]
    ]
    return (
        f"{fields(head)}\n\n{text_table(columns, ['name', 'stored as', 'type', 'id'])}\n\nEvery field is in `--json`."
    )


def _physical(code: int) -> str:
    from windrow.parquet.schema import PhysicalType

    return PhysicalType(code).name if code in list(PhysicalType) else str(code)


@contextmanager
def _opened(path: Path) -> Iterator[tuple[Read, int]]:
    """Give a way to read bytes of a file, and its size."""
    _check_is_file(path)
    with _read_from(path), path.open("rb") as file:

        def read(offset: int, length: int) -> bytes:
            file.seek(offset)
            return file.read(length)

        yield read, path.stat().st_size


@contextmanager
def _read_from(path: Path) -> Iterator[None]:
    """Name the file in what the system reports."""
    from windrow.storage.failures import disk_failure

    try:
        yield
    except WindrowError:
        raise
    except OSError as error:
        raise disk_failure(error, str(path)) from error


def _check_is_file(path: Path) -> None:
    if not path.exists():
        raise NotFound(f"there is no file {path}")
    if not path.is_file():
        raise StorageError(f"{path} is not a file")
