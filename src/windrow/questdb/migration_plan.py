"""What a migration would do: a step for every Parquet partition of a QuestDB table, or for every file of a folder.

Planning reads `_txn`, the sidecars, and the last eight bytes of each Parquet file. It opens nothing in cold storage.
"""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Iterator
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

from windrow.errors import Damaged, Incompatible, InvalidInput, NotFound, StorageError, WindrowError
from windrow.model.units import format_bytes, format_count
from windrow.parquet.footer import TAIL_SIZE, footer_length
from windrow.questdb.folders import DATA, SIDECAR, partition_folder
from windrow.questdb.inspection import read_meta
from windrow.questdb.migration import Action, Step, committed_bytes
from windrow.questdb.registry import is_table_folder, table_folders
from windrow.questdb.txn import Partition, read_txn
from windrow.sidecar import Sidecar
from windrow.sidecar.rewrite import Sections, rewrite

__all__ = ["MigrationPlan", "Wish", "plan_migration", "tables_at"]

TXN = "_txn"
_SHOWN = 10


@dataclass(frozen=True, slots=True)
class Wish:
    """What a migration is to do beyond sidecars that are missing or bad."""

    regenerate: bool = False
    """Write every sidecar again from its Parquet file."""
    rewrite: Sections | None = None
    """Write sound sidecars anew with these sections and without older footers; None leaves them."""


@dataclass(frozen=True, slots=True, repr=False)
class MigrationPlan:
    """What a run would do now."""

    path: str
    kind: str
    """What the path is: a table, tables, files."""
    steps: tuple[Step, ...]

    @property
    def work(self) -> tuple[Step, ...]:
        """The steps that write a sidecar."""
        return tuple(step for step in self.steps if step.action.is_work)

    def of(self, action: Action) -> tuple[Step, ...]:
        """The steps of one action."""
        return tuple(step for step in self.steps if step.action == action)

    def to_dict(self) -> dict[str, Any]:
        """Return plain values."""
        counts = Counter(step.action for step in self.steps)
        return {
            "path": self.path,
            "kind": self.kind,
            "counts": {action.value: counts[action] for action in Action},
            "parquet_bytes": sum(step.parquet_bytes for step in self.work),
            "steps": [asdict(step) for step in self.steps],
        }

    def __repr__(self) -> str:
        counts = Counter(step.action for step in self.steps)
        head = ", ".join(f"{counts[action]} {action}" for action in Action if counts[action]) or "nothing"
        size = format_bytes(sum(step.parquet_bytes for step in self.work))
        shown = [step for step in self.steps if step.action != Action.NONE][:_SHOWN]
        lines = [f"  {step.action:<10}  {step.parquet}: {step.why}" for step in shown]
        files = format_count(len(self.steps), "Parquet file")
        return "\n".join([f"MigrationPlan of {self.path}: {files}, {size} to read: {head}", *lines])


def plan_migration(path: str | os.PathLike[str], wish: Wish | None = None) -> MigrationPlan:
    """What is to be done for a QuestDB table, for all tables below a folder, or for plain Parquet files."""
    root, wish = _local(path), wish or Wish()
    if (root / "windrow.db").is_file():
        raise InvalidInput(f"{root}: a lake of Windrow writes its own sidecars; `windrow check --repair` mends them")
    tables = tables_at(root)
    if tables:
        steps = [step for table in tables for step in _steps_of_table(table, wish)]
        return MigrationPlan(str(root), "table" if tables == [root] else "tables", tuple(steps))
    return MigrationPlan(str(root), "files", tuple(_step_of_file(file, wish) for file in _parquet_files(root)))


def tables_at(root: Path) -> list[Path]:
    """The folders of QuestDB tables at a path: itself, those in it, or those in its `db`."""
    if is_table_folder(root):
        return [root]
    for database in (root, root / "db"):
        tables = sorted(table_folders(database).values()) if database.is_dir() else []
        if tables:
            return tables
    return []


def _local(path: str | os.PathLike[str]) -> Path:
    text = os.fspath(path)
    if "://" in text:
        raise InvalidInput(f"{text}: a migration works in place, on local files; give a folder of this machine")
    root = Path(text)
    if not root.exists():
        raise NotFound(f"{root}: no such file or folder")
    return root


def _parquet_files(root: Path) -> Iterator[Path]:
    if root.is_file():
        yield root
        return
    for path in sorted(root.rglob("*.parquet")):
        hidden = any(part.startswith(("_", ".")) for part in path.relative_to(root).parts)
        if not hidden and path.is_file():
            yield path


# ---- partitions of a table


def _steps_of_table(table: Path, wish: Wish) -> Iterator[Step]:
    txn = read_txn(table / TXN)
    meta = read_meta(table, txn.structure_version)
    for partition in txn.partitions:
        if partition.is_parquet:
            yield _step_of_partition(table, partition_folder(table, meta, partition), partition, wish)


def _step_of_partition(table: Path, folder: Path, partition: Partition, wish: Wish) -> Step:
    def step(action: Action, why: str) -> Step:
        return Step(
            table=str(table),
            partition=folder.name,
            parquet=str(folder / DATA),
            sidecar=str(folder / SIDECAR),
            parquet_bytes=partition.parquet_size or 0,
            action=action,
            why=why,
            timestamp=partition.timestamp,
            name_txn=partition.name_txn,
            rows=partition.rows,
            sections=wish.rewrite or Sections.QUESTDB,
        )

    size = partition.parquet_size
    if size is None:
        return step(Action.REFUSE, "`_txn` holds no size of its Parquet file; convert the partition again")
    if partition.remote and not partition.parquet_generated:
        return _cold_step(step(Action.SKIP, "the Parquet file is in cold storage"), wish)
    return _judged(step(Action.NONE, ""), wish)


def _cold_step(skipped: Step, wish: Wish) -> Step:
    """A sidecar beside data that is elsewhere can be rewritten, and never made again."""
    if wish.rewrite is None or not Path(skipped.sidecar).is_file():
        return skipped
    try:
        return _rewritten(skipped, wish.rewrite)
    except WindrowError as error:
        return _as(skipped, Action.SKIP, f"the Parquet file is in cold storage, and its sidecar: {error}")


# ---- plain files


def _step_of_file(path: Path, wish: Wish) -> Step:
    sidecar = path.with_name(f"_{path.stem}.pm")
    sections = wish.rewrite or Sections.WINDROW
    step = Step("", path.name, str(path), str(sidecar), path.stat().st_size, Action.NONE, "", sections=sections)
    judged = _judged(step, wish)
    if judged.action in (Action.NONE, Action.REWRITE) and path.stat().st_mtime_ns > sidecar.stat().st_mtime_ns:
        # Others may write the file; a sidecar that is older says nothing about it.
        return _as(step, Action.REGENERATE, "the Parquet file is newer than its sidecar")
    return judged


# ---- what a sidecar is worth


def _judged(step: Step, wish: Wish) -> Step:
    """The same step with what is to be done and why."""
    try:
        length = _footer_length(step)
    except (Damaged, Incompatible, NotFound, StorageError) as error:
        return _as(step, Action.REFUSE, str(error))
    if not Path(step.sidecar).exists():
        return _as(step, Action.GENERATE, "no sidecar")
    if wish.regenerate:
        return _as(step, Action.REGENERATE, "requested")
    try:
        _check_describes(Sidecar.open(step.sidecar, parquet_size=step.parquet_bytes), step, length)
        return _as(step, Action.NONE, "sound") if wish.rewrite is None else _rewritten(step, wish.rewrite)
    except (Damaged, Incompatible, NotFound) as error:
        return _as(step, Action.REGENERATE, str(error))
    except StorageError as error:
        return _as(step, Action.REFUSE, str(error))


def _check_describes(sidecar: Sidecar, step: Step, footer_length: int) -> None:
    rows = int(sidecar.row_counts.sum())
    if sidecar.footer.parquet_footer_length + TAIL_SIZE != footer_length or step.rows not in (None, rows):
        raise Damaged(f"{step.sidecar}: it describes another Parquet file")


def _rewritten(step: Step, sections: Sections) -> Step:
    sidecar = Sidecar.open(step.sidecar, parquet_size=step.parquet_bytes)
    if rewrite(sidecar, sections) == Path(step.sidecar).read_bytes():
        return _as(step, Action.NONE, "sound")
    footers = sum(1 for _ in sidecar.snapshots())
    return _as(step, Action.REWRITE, f"{format_count(footers, 'footer')}, sections: {sections}")


def _footer_length(step: Step) -> int:
    """Bytes of the footer at the end of the committed ones, which are all there."""
    with committed_bytes(Path(step.parquet), step.parquet_bytes) as read:
        tail = min(TAIL_SIZE, step.parquet_bytes)
        return footer_length(read(step.parquet_bytes - tail, tail), step.parquet)


def _as(step: Step, action: Action, why: str) -> Step:
    return replace(step, action=action, why=why)
