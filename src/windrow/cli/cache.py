"""`windrow cache`: what is kept of remote and foreign files on the local disk, and how to be rid of it."""

from __future__ import annotations

import os
from dataclasses import asdict

import click

from windrow.cli.invocation import Invocation
from windrow.cli.options import Group, pass_invocation
from windrow.cli.text import table as text_table

__all__ = ["cache"]

_folder = click.option(
    "--folder", metavar="PATH", help="Where the cache is.  [default: windrow in the user's cache folder]"
)


@click.group(cls=Group)
def cache() -> None:
    """Look at what is kept on this machine of remote and foreign files."""


@cache.command()
@_folder
@pass_invocation
def stats(invocation: Invocation, folder: str | None) -> None:
    """Show how many values of which kind are kept, and how many bytes they take."""
    from windrow.cache import CacheSettings, DiskCache
    from windrow.cache.default import cache_folder

    kept = DiskCache(folder or cache_folder(os.environ), CacheSettings().disk_bytes)
    rows = [asdict(row) for row in kept.contents()]
    result = {"folder": str(kept.folder), "budget": kept.budget, "bytes": kept.weight, "kinds": rows}
    head = f"{kept.folder}: {result['bytes']:,} of {kept.budget:,} bytes"
    invocation.output.answer(result, lambda: f"{head}\n\n{text_table(rows, ['kind', 'values', 'bytes'])}")


@cache.command()
@_folder
@click.option("--dry-run", is_flag=True, help="Say what would be removed, remove nothing.")
@pass_invocation
def clear(invocation: Invocation, folder: str | None, *, dry_run: bool) -> None:
    """Remove everything that is kept; queries that run meanwhile read it again."""
    from windrow.cache import CacheSettings, DiskCache
    from windrow.cache.default import cache_folder

    kept = DiskCache(folder or cache_folder(os.environ), CacheSettings().disk_bytes)
    values, size = kept.size(), kept.weight
    if not dry_run:
        kept.invalidate_all()
    result = {"folder": str(kept.folder), "values": values, "bytes": size, "dry_run": dry_run}
    verb = "would remove" if dry_run else "removed"
    invocation.output.answer(result, lambda: f"{verb} {values:,} values, {size:,} bytes, from {kept.folder}")
