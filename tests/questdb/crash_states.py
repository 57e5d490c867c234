"""What a file system may hold after a crash: a recorder of changes, and every state that they allow.

Bytes that were written since the last sync of their file reach the disk in pieces of 512 bytes, any of them, in any
order. Names that were made, changed or removed since the last sync of their folder reach it or do not. The length of
a file may grow before its bytes arrive.
"""

from __future__ import annotations

import itertools
import random
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NamedTuple

from windrow.storage.file_changes import Files

SECTOR = 512
FOLDER = -1
Tree = dict[str, bytes | None]
"""Files by path, with their bytes; None is a folder."""


class Op(NamedTuple):
    """One call."""

    kind: str
    path: str
    value: Any = None
    data: bytes = b""


class Recorder(Files):
    """Notes every change before it is made; without `force` nothing is forced to the disk, which is only slow."""

    def __init__(self, root: Path, *, force: bool = False) -> None:
        self.root, self.ops, self.force = root, list[Op](), force

    def _note(self, kind: str, path: Path, value: Any = None, data: bytes = b"") -> None:
        self.ops.append(Op(kind, str(path.relative_to(self.root)), value, bytes(data)))

    def create(self, path: Path, data: bytes) -> None:
        self._note("create", path, None, data)
        super().create(path, data)

    def write_at(self, path: Path, offset: int, data: bytes) -> None:
        self._note("write", path, offset, data)
        super().write_at(path, offset, data)

    def truncate(self, path: Path, size: int) -> None:
        self._note("truncate", path, size)
        super().truncate(path, size)

    def sync(self, path: Path) -> None:
        self._note("sync", path)
        if self.force:
            super().sync(path)

    def make_folder(self, path: Path) -> None:
        self._note("make_folder", path)
        super().make_folder(path)

    def sync_folder(self, path: Path) -> None:
        self._note("sync_folder", path)
        if self.force:
            super().sync_folder(path)

    def rename(self, path: Path, target: Path) -> None:
        self._note("rename", path, str(target.relative_to(self.root)))
        super().rename(path, target)

    def remove(self, path: Path) -> None:
        self._note("remove", path)
        super().remove(path)

    def remove_folder(self, path: Path) -> None:
        self._note("remove_folder", path)
        super().remove_folder(path)


class Piece(NamedTuple):
    """Bytes that may or may not have arrived; `data` None cuts the file off at `offset`."""

    inode: int
    offset: int
    data: bytes | None


class Name(NamedTuple):
    """A name that may or may not have changed: `inode` None removes it."""

    path: str
    inode: int | None
    after: str | None = None
    """The name that goes away with it: a rename."""


@dataclass
class Disk:
    """What is on the disk for sure, what the program sees, and what is on its way."""

    names: dict[str, int] = field(default_factory=dict)
    seen: dict[str, int] = field(default_factory=dict)
    contents: dict[int, bytes] = field(default_factory=dict)
    pieces: list[Piece] = field(default_factory=list)
    pending: list[Name] = field(default_factory=list)

    @classmethod
    def of(cls, tree: Tree) -> Disk:
        disk = cls()
        for number, (path, data) in enumerate(tree.items()):
            disk.names[path] = FOLDER if data is None else number
            if data is not None:
                disk.contents[number] = data
        disk.seen = dict(disk.names)
        return disk

    def apply(self, op: Op) -> None:
        getattr(self, f"_{op.kind}")(op)

    def _create(self, op: Op) -> None:
        inode = self.seen.get(op.path)
        if inode is None:
            inode = max([*self.contents, 0]) + 1
            self.contents[inode] = b""
            self.seen[op.path] = inode
            self.pending.append(Name(op.path, inode))
        else:
            self.pieces.append(Piece(inode, 0, None))
        self._split(inode, 0, op.data)

    def _write(self, op: Op) -> None:
        self._split(self.seen[op.path], op.value, op.data)

    def _truncate(self, op: Op) -> None:
        self.pieces.append(Piece(self.seen[op.path], op.value, None))

    def _split(self, inode: int, offset: int, data: bytes) -> None:
        start = 0
        while start < len(data):
            stop = start + SECTOR - (offset + start) % SECTOR
            self.pieces.append(Piece(inode, offset + start, data[start:stop]))
            start = stop

    def _sync(self, op: Op) -> None:
        inode = self.seen[op.path]
        own = [piece for piece in self.pieces if piece.inode == inode]
        self.contents[inode] = written(self.contents[inode], own)
        self.pieces = [piece for piece in self.pieces if piece.inode != inode]

    def _make_folder(self, op: Op) -> None:
        self.seen[op.path] = FOLDER
        self.pending.append(Name(op.path, FOLDER))

    def _sync_folder(self, op: Op) -> None:
        own = [name for name in self.pending if parent(name.path) == op.path]
        self.names = renamed(self.names, own)
        self.pending = [name for name in self.pending if name not in own]

    def _rename(self, op: Op) -> None:
        inode = self.seen.pop(op.path)
        self.seen[op.value] = inode
        self.pending.append(Name(op.value, inode, after=op.path))

    def _remove(self, op: Op) -> None:
        del self.seen[op.path]
        self.pending.append(Name(op.path, None))

    _remove_folder = _remove

    def states(self, limit: int, seed: int) -> Iterator[Tree]:
        """What a crash may leave now: all choices of what arrived, or `limit` of them."""
        by_bytes = list(choices(self.pieces, limit, seed))
        by_names = list(choices(self.pending, limit, seed + 1))
        pairs: Any = itertools.product(by_bytes, by_names)
        if len(by_bytes) * len(by_names) > limit:
            ends = ([], self.pieces), ([], self.pending)
            pairs = [
                *itertools.product(by_bytes, ends[1]),
                *itertools.product(ends[0], by_names),
                *(zip(by_bytes, random.Random(seed).choices(by_names, k=len(by_bytes)), strict=True)),
            ]
        for pieces, names in pairs:
            for grown in (False, True) if len(pieces) < len(self.pieces) else (False,):
                yield self._tree(pieces, names, grown=grown)

    def _tree(self, pieces: Sequence[Piece], names: Sequence[Name], *, grown: bool) -> Tree:
        contents = dict(self.contents)
        for inode in {piece.inode for piece in self.pieces}:
            contents[inode] = written(contents[inode], [piece for piece in pieces if piece.inode == inode])
            if grown:
                full = len(written(self.contents[inode], [piece for piece in self.pieces if piece.inode == inode]))
                contents[inode] = contents[inode].ljust(full, b"\0")
        chosen = renamed(self.names, names)
        tree = {path: None if inode == FOLDER else contents[inode] for path, inode in chosen.items()}
        return {path: data for path, data in tree.items() if all(str(each) in tree for each in above(path))}


def written(data: bytes, pieces: Sequence[Piece]) -> bytes:
    out = bytearray(data)
    for _, offset, piece in pieces:
        if piece is None:
            del out[offset:]
            continue
        if len(out) < offset:
            out += bytes(offset - len(out))
        out[offset : offset + len(piece)] = piece
    return bytes(out)


def renamed(names: dict[str, int], changes: Sequence[Name]) -> dict[str, int]:
    out = dict(names)
    for path, inode, after in changes:
        if after is not None:
            out.pop(after, None)
        if inode is None:
            out.pop(path, None)
        else:
            out[path] = inode
    return out


def parent(path: str) -> str:
    return str(Path(path).parent)


def above(path: str) -> list[Path]:
    return [each for each in Path(path).parents if str(each) != "."]


def choices(units: Sequence[Any], limit: int, seed: int) -> Iterator[list[Any]]:
    """All subsets; of many units their starts, their ends, single ones, all but one, and as many random ones."""
    count = len(units)
    if 2**count <= limit:
        for mask in range(2**count):
            yield [unit for place, unit in enumerate(units) if mask >> place & 1]
        return
    for cut in range(count + 1):
        yield list(units[:cut])
        yield list(units[cut:])
    for place in range(count):
        yield [units[place]]
        yield [unit for at, unit in enumerate(units) if at != place]
    rng = random.Random(seed)
    for _ in range(max(limit - 4 * count, 0)):
        mask = rng.getrandbits(count)
        yield [unit for place, unit in enumerate(units) if mask >> place & 1]


def crash_states(start: Tree, ops: Sequence[Op], limit: int) -> Iterator[tuple[int, Tree]]:
    """Every state after every prefix of the calls, each once: how many calls were made, and the state."""
    disk, seen = Disk.of(start), set()
    for made in range(len(ops) + 1):
        if made:
            disk.apply(ops[made - 1])
        for tree in disk.states(limit, made):
            # The last call has returned: what holds afterwards is asked for, whatever came before.
            key = hash(frozenset(tree.items())), made == len(ops)
            if key not in seen:
                seen.add(key)
                yield made, tree


def read_tree(root: Path) -> Tree:
    """All files and folders below a folder."""
    return {
        str(path.relative_to(root)): None if path.is_dir() else path.read_bytes() for path in sorted(root.rglob("*"))
    }


def write_tree(root: Path, tree: Tree) -> None:
    """Put a state on a real disk."""
    root.mkdir(parents=True)
    for path, data in sorted(tree.items()):
        if data is None:
            (root / path).mkdir(parents=True, exist_ok=True)
    for path, data in tree.items():
        if data is not None:
            (root / path).write_bytes(data)
