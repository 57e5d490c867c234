"""`table.register` and `table.unregister`: existing Parquet files join a table as they are, and leave it.

metrics.register.plan("landing/*.parquet")
metrics.register.run("landing/*.parquet")
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

from windrow.context import Context
from windrow.ingest.register import Register, RegisterPlan, RegisterResult
from windrow.model.scope import DEFAULT_SOURCE
from windrow.model.shown import ShownByField
from windrow.model.split import SplitMetadata

__all__ = ["RegisterFiles", "UnregisterFiles", "UnregisterPlan"]

Paths = str | Path | Sequence[str | Path]


@dataclass(frozen=True, slots=True, repr=False)
class UnregisterPlan(ShownByField):
    """Which registered files would leave a table."""

    table: str
    files: tuple[str, ...]
    rows: int
    size_bytes: int


@dataclass(frozen=True, slots=True)
class RegisterFiles:
    """Lets existing Parquet files join one table: they are read, never merged, never written to or deleted."""

    context: Context
    name: str

    def plan(self, paths: Paths) -> RegisterPlan:
        """Say which files would join the table, or refuse them as `run` would; nothing is written."""
        return Register.of(self.context, self.name).plan(_texts(paths))

    def run(
        self,
        paths: Paths,
        *,
        source: str = DEFAULT_SOURCE,
        on_file: Callable[[SplitMetadata], None] | None = None,
    ) -> RegisterResult:
        """Let files join the table, as one commit.

        `paths` are files, folders, globs or URLs outside of the lake. Files that are in the table already are passed
        by. `on_file` is called with each file.
        """
        return Register.of(self.context, self.name, source).run(_texts(paths), on_file)


@dataclass(frozen=True, slots=True)
class UnregisterFiles:
    """Takes registered files out of one table; the files stay as they are, or gone."""

    context: Context
    name: str

    def plan(self, paths: Paths) -> UnregisterPlan:
        """Say which files would leave the table, or refuse as `run` would; nothing is written."""
        leaving = Register.of(self.context, self.name).leaving(_texts(paths))
        return UnregisterPlan(
            self.name,
            tuple(split.key for split in leaving),
            sum(split.row_count for split in leaving),
            sum(split.size_bytes for split in leaving),
        )

    def run(self, paths: Paths) -> RegisterResult:
        """Take files out of the table by path, folder or URL, as one commit."""
        return Register.of(self.context, self.name).remove(_texts(paths))


def _texts(paths: Paths) -> list[str]:
    return [str(path) for path in ([paths] if isinstance(paths, str | Path) else paths)]
