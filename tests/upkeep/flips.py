"""A lake in which one byte at a time is flipped: what then differs must be found, and put right or reported."""

from __future__ import annotations

import random
import shutil
from collections import Counter
from pathlib import Path

import pyarrow as pa
from deltalake import DeltaTable
from tests.proofs.worlds import compact, points, rows_of, visible

import windrow
from windrow.errors import WindrowError
from windrow.mirror import follow

FOLDERS = ("partition_id", "window_start")


class FlippedLake:
    """A small lake with ingests, a merge, a widened column, an expiry and a checkpoint, and a copy to go back to."""

    def __init__(self, folder: Path, monkeypatch) -> None:
        monkeypatch.setattr(follow, "CHECKPOINT_EVERY", 4)
        self.folder = folder / "lake"
        self.copy = folder / "copy"
        with windrow.connect(self.folder, cache=None) as lake:
            table = lake.create_table("events", sort="host|timestamp/V2", window="15m")
            table.ingest(points(0, 1, None, host="a"))
            table.ingest(points(2, 20, host="b"))
            compact(table, [split for split in visible(table) if split.time_min][:2])
            table.ingest(points(3, 40, host="c").append_column("more", pa.array([1, 2], pa.int32())))
            table.ingest(points(4, 41, host="d").append_column("more", pa.array([1, 2**40])))
            table.ingest(points(5, host="b"))
            self.version = table.version()
        shutil.copytree(self.folder, self.copy)
        self.answers = self.ask()

    def files(self, pattern: str) -> list[Path]:
        found = sorted(path for path in self.folder.glob(pattern) if path.is_file())
        assert found, pattern
        return found

    def restore(self) -> None:
        shutil.rmtree(self.folder)
        shutil.copytree(self.copy, self.folder)

    def ask(self):
        """What Windrow and what deltalake answer, the newest version and older ones; an error is an answer too."""
        return _answer(self._windrow), _answer(self._delta)

    def _windrow(self):
        with windrow.connect(self.folder, create=False, cache=None) as lake:
            table = lake.table("events")
            whole = rows_of([lake.sql("select * from events").to_arrow()])
            some = rows_of([lake.sql("select * from events where host >= 'b' and value < 1").to_arrow()])
            late = rows_of([lake.sql("select * from events where timestamp >= '2023-11-14 12:03:00'").to_arrow()])
            older = [rows_of([table.at(version=each).scan().to_arrow()]) for each in range(1, self.version)]
            names = sorted(column.name for column in lake.context.metastore.columns(table.record().table_id))
            return whole, some, late, older, names, table.settings()

    def _delta(self):
        found = []
        for version in (None, *range(self.version + 1)):
            delta = DeltaTable(self.folder / "events", version=version)
            found += [
                _rows(delta),
                sorted(delta.schema().to_arrow().names) if hasattr(delta.schema(), "to_arrow") else "",
            ]
        newest = DeltaTable(self.folder / "events")
        for condition in ([("host", ">=", "b")], [("host", "=", "a")]):
            found.append(_rows(newest, filters=condition))
        return found

    def rows_agree(self) -> bool:
        """Whether deltalake shows the rows of the table."""
        with windrow.connect(self.folder, create=False, cache=None) as lake:
            ours = rows_of([lake.sql("select * from events").to_arrow()])
        return ours == _rows(DeltaTable(self.folder / "events"))

    def check(self, *, repair: bool = False):
        """Return the result of a check, or the error of Windrow's in its place; any other error is a defect."""
        try:
            with windrow.connect(self.folder, create=False, cache=None) as lake:
                return lake.table("events").upkeep.check(data=True, repair=repair)
        except WindrowError as error:
            return error


def flip(path: Path, draw: random.Random) -> str:
    """Change one byte of a file, by one bit or wholly; return where and how."""
    content = bytearray(path.read_bytes())
    # Most bytes of a database are empty space; those that are not matter more.
    filled = [each for each, byte in enumerate(content) if byte]
    place = draw.choice(filled) if filled and draw.random() < 0.8 else draw.randrange(len(content))
    old = content[place]
    content[place] ^= draw.choice([1 << draw.randrange(8), draw.randrange(1, 256)])
    path.write_bytes(content)
    return f"{path.name} at {place}: {old:#x} became {content[place]:#x}"


def try_flips(lake: FlippedLake, pattern: str, seed: int, count: int) -> Counter:
    """Flip a byte `count` times; return how the flips came out. What goes wrong is raised with the flip."""
    draw, outcomes = random.Random(seed), Counter()
    for _ in range(count):
        lake.restore()
        # A database that was closed has no log beside it; what is flipped is all there is.
        what = flip(draw.choice(lake.files(pattern)), draw)
        try:
            outcomes[_outcome(lake)] += 1
        except Exception as error:
            raise AssertionError(f"seed {seed}, {what}: {type(error).__name__}: {error}") from error
    lake.restore()
    return outcomes


def _outcome(lake: FlippedLake) -> str:
    changed = lake.ask() != lake.answers
    looked = lake.check()
    found = isinstance(looked, WindrowError) or not looked.sound
    assert found or not changed, "it changes an answer and is not found"
    mended = lake.check(repair=True)
    if isinstance(mended, WindrowError) or not mended.sound:
        return "reported"
    assert lake.rows_agree(), "after the repair, deltalake shows other rows"
    again = lake.check()
    assert not isinstance(again, WindrowError), again
    assert again.sound, again.findings
    return "repaired" if found else "harmless"


def _rows(delta: DeltaTable, **options) -> Counter:
    found = delta.to_pyarrow_table(**options)
    return rows_of([found.drop_columns([name for name in FOLDERS if name in found.column_names])])


def _answer(ask):
    try:
        return ask()
    except Exception as error:
        return type(error).__name__
    except BaseException as error:
        # Rust's panics are no exceptions of Python's kind; deltalake may panic over a damaged checkpoint.
        if type(error).__name__ != "PanicException":
            raise
        return type(error).__name__
