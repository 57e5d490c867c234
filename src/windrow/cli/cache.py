"""`windrow cache`: what is cached of remote and foreign files on the local disk, and how to be rid of it."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from typing import Any

import click

from windrow.cli.invocation import Invocation
from windrow.cli.options import Group, pass_invocation
from windrow.cli.text import table as text_table
from windrow.model.units import format_bytes

__all__ = ["cache"]

_folder = click.option(
    "--folder", metavar="PATH", help="Where the cache is.  [default: windrow in the user's cache folder]"
)


@click.group(cls=Group)
def cache() -> None:
    """Look at what is cached on this machine of remote and foreign files."""


@cache.command()
@_folder
@click.option("--prometheus", is_flag=True, help="Print the counters as text that Prometheus reads.")
@pass_invocation
def stats(invocation: Invocation, folder: str | None, *, prometheus: bool) -> None:
    """Show what is cached, by kind, and how often it was of use.

    Lakes that are closed add their counts here; those of an open one are in `lake.cache.stats()`.
    """
    from windrow.cache import CacheRow, CacheSettings, DiskCache, prometheus_text
    from windrow.cache.default import cache_folder
    from windrow.cache.ledger import Ledger
    from windrow.cache.metrics import GAUGES, summed

    disk = DiskCache(folder or cache_folder(os.environ), CacheSettings().disk_bytes)
    contents, counted = disk.contents(), Ledger(disk.folder).rows()
    if prometheus:
        held = [CacheRow(disk.metrics.name, row.kind, values=row.values, bytes=row.bytes) for row in contents]
        text = prometheus_text(summed([*counted, *held]))
        invocation.output.answer({"prometheus": text}, text.rstrip)
        return
    kinds = [asdict(row) for row in contents]
    counters = [{name: value for name, value in asdict(row).items() if name not in GAUGES} for row in counted]
    result = {"folder": str(disk.folder), "budget": disk.budget, "bytes": disk.weight, "kinds": kinds}
    invocation.output.answer(result | {"counters": counters}, lambda: _text(result, counters))


def _text(result: Mapping[str, Any], counters: Sequence[Mapping[str, Any]]) -> str:
    head = f"{result['folder']}: {format_bytes(result['bytes'])} of {format_bytes(result['budget'])}"
    tables = [text_table(result["kinds"], ["kind", "values", "bytes"])]
    if counters:
        tables.append(text_table(counters, [name for name in counters[0] if not name.endswith("_bytes")]))
    return "\n\n".join([head, *tables])


@cache.command()
@_folder
@click.option("--dry-run", is_flag=True, help="Say what would be removed, remove nothing.")
@pass_invocation
def clear(invocation: Invocation, folder: str | None, *, dry_run: bool) -> None:
    """Remove everything that is cached; queries that run meanwhile read it again."""
    from windrow.cache import CacheSettings, DiskCache
    from windrow.cache.default import cache_folder
    from windrow.cache.ledger import Ledger

    disk = DiskCache(folder or cache_folder(os.environ), CacheSettings().disk_bytes)
    values, size = disk.size(), disk.weight
    if not dry_run:
        disk.invalidate_all()
        Ledger(disk.folder).clear()
    result = {"folder": str(disk.folder), "values": values, "bytes": size, "dry_run": dry_run}
    verb = "would remove" if dry_run else "removed"
    invocation.output.answer(result, lambda: f"{verb} {values:,} values, {format_bytes(size)}, from {disk.folder}")
