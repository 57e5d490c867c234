"""The plan of a scan: a funnel of steps from a version of a table to the bytes that answer a question.

    version -> windows -> splits -> row groups -> granules -> ranges

Each step takes what the one before left, keeps what may hold a row that matches, and counts. Nothing here reads data:
listings come from the metastore, everything else from sidecars, and where they know no more, from page indexes.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from functools import cached_property, partial
from itertools import pairwise

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from windrow.model.predicate import Predicate
from windrow.model.rows import Rows
from windrow.model.sources import SourceKind
from windrow.model.units import format_bytes, format_units
from windrow.parquet.footer import ParquetFooter
from windrow.parquet.placement import VirtualSchema
from windrow.planning.address_space import Part, Piece
from windrow.planning.data_files import DataFile, open_sidecars
from windrow.planning.listed_files import ListedFiles
from windrow.planning.page_indexes import page_indexes
from windrow.planning.scan_context import ScanContext
from windrow.planning.synopses import LearntColumn, StatisticsUse, learnt_column, others_of, summed_uses, uses_of
from windrow.planning.units import Unit, bundled
from windrow.planning.virtual_file import VirtualFile, lay_out
from windrow.planning.virtual_schema import column_names, merged_schema, positions_in, schema_of
from windrow.pruning.zones import Zones
from windrow.questions.naming import Question
from windrow.sidecar import Sidecar
from windrow.sidecar.granule_bounds import PageIndexes
from windrow.sidecar.pruning import Granules, SidecarPruner, Step

__all__ = ["ScanPlan", "learnt_columns", "plan_files", "plan_listed", "summed"]

_FEW_GRANULES = 8
"""Sets of columns of which it is known where they can be cut."""
_LEAST_ROWS = 2**17
"""A thread that reads rows of a row group whose pages are not aligned gets about as many or more."""


@dataclass(frozen=True, eq=False)
class ScanPlan:
    """Which parts of which files are read, as virtual files, and what each step of planning left.

    There is one virtual file, unless files declare a column in ways that one schema cannot hold, or are of several
    schema epochs.
    """

    virtual: Sequence[VirtualFile]
    steps: Rows[Step]
    answer: Sequence[pa.Scalar] | None = None
    """The aggregates of the question, where metadata is certain of them: nothing is read then."""
    answered_by: str = "metadata has"
    """Who has such an answer."""
    source: SourceKind | None = None
    """How the rows would arrive, where that was chosen."""
    statistics: Sequence[StatisticsUse] = ()
    """Where bounds of the columns of conditions came from, if that was counted."""

    def __repr__(self) -> str:
        width = max((len(each.step) for each in self.steps), default=0)
        steps = [f"  {each.step:<{width}}  {_counted(each)}" for each in self.steps]
        source = [] if self.source is None else [f"  source: {self.source}"]
        head = f"ScanPlan: at most {self.rows:,} rows, {format_bytes(self.bytes)} to read"
        return "\n".join([head, *steps, *source])

    @cached_property
    def rows(self) -> int:
        """Rows that will be looked at."""
        return sum(each.rows for each in self.virtual)

    @cached_property
    def bytes(self) -> int:
        """Bytes of files that a reader of all columns of the plan needs."""
        return sum(int(each.chunks[:, 1].sum()) for each in self.virtual)


@dataclass(frozen=True, slots=True)
class _Counted:
    """What planning counts as it goes."""

    steps: list[Step]
    uses: list[StatisticsUse] = field(default_factory=list)
    explain: bool = False
    """Whether it is counted which statistics there were."""


def _counted(step: Step) -> str:
    return f"{format_units(step.kept, step.units)} of {format_units(step.asked, step.units)}"


def plan_files(
    context: ScanContext,
    files: Sequence[DataFile],
    *,
    predicate: Predicate | None = None,
    columns: Sequence[str] | None = None,
    steps: Iterable[Step] = (),
    share: tuple[int, int] = (0, 1),
    explain: bool = False,
) -> ScanPlan:
    """Plan a scan of some files; `columns` None is all of them, `steps` are those that led to the files.

    `share` is a number and a count: of as many readers as that, each reads other pieces of what has to be read. With
    `explain` it is counted too which statistics there were.
    """
    counted = _Counted(list(steps), explain=explain)
    units = bundled(open_sidecars(context, files))
    pruner = None if predicate is None or not context.prune else SidecarPruner(predicate)
    kept = [_row_groups(context, unit, pruner, files, counted) for unit in units]
    matching = _matching(context, files, units, kept, pruner, columns, counted.steps)
    # Readers that share the pieces must all come to the same ones, whatever is in the memory of their machines.
    pieces = _spread(context, files, matching, columns, by_rows=share == (0, 1))
    parts = _shared(pieces, *share)
    virtual = [lay_out(files, *each) for each in _grouped(parts, columns)]
    return _planned(virtual, sum(file.identity.size for file in files), counted)


def plan_listed(
    context: ScanContext,
    listed: ListedFiles,
    places: NDArray[np.int64],
    question: Question,
    *,
    steps: Iterable[Step] = (),
    zones: Zones | None = None,
    explain: bool = False,
) -> ScanPlan:
    """Plan a scan of some of the files of a list, as `plan_files` would plan it; `zones` are what chose them."""
    counted, columns = _Counted(list(steps), explain=explain), question.columns
    pruner = None if question.predicate is None else SidecarPruner(question.predicate)
    among = np.zeros(len(listed.files), bool)
    among[places] = True
    units = [unit for unit in listed.units(context, places) if among[unit.files].any()]
    is_told = zones is not None and pruner is not None and zones.tells(pruner.columns, places)
    masks = [
        _row_groups(
            context,
            unit,
            pruner,
            listed.files,
            counted,
            among=unit.filled & among[unit.files],
            is_told=is_told and unit.is_lone,
        )
        for unit in units
    ]
    matching = _matching(context, listed.files, units, masks, pruner, columns, counted.steps)
    parts = _spread(context, listed.files, matching, columns, by_rows=True)
    virtual = _listed_virtual(listed, units, parts, columns)
    if virtual is None:
        virtual = [lay_out(listed.files, *each) for each in _grouped(parts, columns)]
    return _planned(virtual, sum([listed.files[place].identity.size for place in places.tolist()]), counted)


def _listed_virtual(
    listed: ListedFiles, units: Sequence[Unit], parts: Sequence[Part], columns: tuple[str, ...] | None
) -> list[VirtualFile] | None:
    """One virtual file of like files, by what is cached of them: a schema, and the address space of row groups."""
    if len(parts) != 1:
        return None
    unit = next(unit for unit in units if unit.sidecar is parts[0].sidecar)
    space = listed.space(unit, columns)
    if space is None:
        return None
    # What is cached are whole row groups and single granules; other runs are many.
    is_cached = all(piece.is_whole or piece.stop == piece.first + 1 for piece in parts[0].pieces)
    virtual = space.virtual(parts[0], listed.row_groups) if is_cached else None
    return [virtual or lay_out(listed.files, space.schema, parts)]


def _matching(
    context: ScanContext,
    files: Sequence[DataFile],
    units: Sequence[Unit],
    kept: Sequence[NDArray[np.bool_]],
    pruner: SidecarPruner | None,
    columns: Sequence[str] | None,
    steps: list[Step],
) -> list[Part]:
    """What is read of each unit."""
    found = [
        _part(unit, mask, pruner, partial(page_indexes, context.cache, files, unit), columns, steps)
        for unit, mask in zip(units, kept, strict=True)
    ]
    return [part for part in found if part.pieces]


def _planned(virtual: Sequence[VirtualFile], size: int, counted: _Counted) -> ScanPlan:
    needed = sum(int(each.chunks[:, 1].sum()) for each in virtual)
    steps = [*counted.steps, Step("columns and pages", "bytes", size, needed)]
    uses = summed_uses(counted.uses) if counted.uses else ()
    return ScanPlan(virtual, Rows(Step, tuple(summed(steps))), statistics=uses)


def _row_groups(
    context: ScanContext,
    unit: Unit,
    pruner: SidecarPruner | None,
    files: Sequence[DataFile],
    counted: _Counted,
    *,
    among: NDArray[np.bool_] | None = None,
    is_told: bool = False,
) -> NDArray[np.bool_]:
    """The row groups that statistics, null counts, synopses and bloom filters leave; empty ones are never read.

    `among` are those that are asked about, if not all; `is_told` where statistics know no more than what chose them.
    """
    steps = counted.steps
    filled = unit.filled if among is None else among
    kept = filled.copy() if pruner is None or is_told else pruner.prune(unit.sidecar, among=among) & filled
    asked = len(kept) if among is None else int(among.sum())
    steps.append(Step("statistics and nulls", "row groups", asked, int(kept.sum())))
    if pruner is None or not (filled if counted.explain else kept).any():
        return kept
    kept = _by_synopses(context, unit, pruner, files, counted, kept, filled)
    if not kept.any():
        return kept
    asked = int(kept.sum())
    for owner in np.unique(unit.owners[kept]).tolist() if _has_filters(unit, pruner, files) else ():
        mine = slice(*np.searchsorted(unit.owners, [owner, owner + 1]).tolist())
        file = files[int(unit.files[mine.start])]
        kept[mine] &= pruner.prune(unit.singles[owner], file.read)
    steps.append(Step("bloom filters", "row groups", asked, int(kept.sum())))
    return kept


def learnt_columns(
    context: ScanContext,
    unit: Unit,
    files: Sequence[DataFile],
    names: Iterable[str],
    wanted: NDArray[np.bool_],
) -> dict[str, LearntColumn]:
    """What queries learnt of columns in some row groups, where the sidecar does not know all."""
    learnt: dict[str, LearntColumn] = {}
    for name in names:
        column = unit.learnt.get_or_make(name, partial(learnt_column, unit, name))
        if column is not None and context.statistics is not None:
            column.load(context.statistics, files, wanted)
            learnt[name] = column
    return learnt


def _by_synopses(
    context: ScanContext,
    unit: Unit,
    pruner: SidecarPruner,
    files: Sequence[DataFile],
    counted: _Counted,
    kept: NDArray[np.bool_],
    filled: NDArray[np.bool_],
) -> NDArray[np.bool_]:
    """The row groups that are left by what queries learnt, where the sidecar does not know all."""
    learnt = learnt_columns(context, unit, files, pruner.columns, filled if counted.explain else kept)
    if counted.explain:
        counted.uses.extend(uses_of(unit, pruner.columns, filled))
    others = others_of(learnt) if learnt else None
    if others is None or not kept.any():
        return kept
    left = pruner.prune_more(unit.sidecar, kept, others)
    counted.steps.append(Step("synopses", "row groups", int(kept.sum()), int(left.sum())))
    return left


def _has_filters(unit: Unit, pruner: SidecarPruner, files: Sequence[DataFile]) -> bool:
    """Whether columns of which single values are asked for have bloom filters that are worth asking."""
    return unit.filters.get_or_make(pruner.point_columns, lambda: _looks_for_filters(unit, pruner, files))


def _looks_for_filters(unit: Unit, pruner: SidecarPruner, files: Sequence[DataFile]) -> bool:
    if not pruner.point_columns:
        return False
    if len(unit.singles[0].bloom_columns) and not unit.singles[0].header.bloom_external:
        return True
    # Filters that are in the Parquet file are worth their reads only where these are cheap.
    if files[int(unit.files[0])].store.is_remote:
        return False
    if len(unit.singles[0].bloom_columns):
        return True
    positions = [at for name in pruner.point_columns for at in unit.sidecar.column_positions(name)]
    records = [unit.sidecar.extensions.pages(position) for position in positions]
    return any(found is not None and bool((found[0]["bloom_offset"] > 0).any()) for found in records)


def _part(
    unit: Unit,
    kept: NDArray[np.bool_],
    pruner: SidecarPruner | None,
    pages: Callable[[], PageIndexes],
    columns: Sequence[str] | None,
    steps: list[Step],
) -> Part:
    """What is left of each row group: all of it, or runs of granules."""
    cut = np.zeros(len(kept), bool) if pruner is None else _cuttable(unit, kept & unit.cut, columns)
    whole = np.flatnonzero(kept & ~cut)
    found = zip(unit.files[whole].tolist(), whole.tolist(), unit.groups[whole].tolist(), strict=True)
    pieces = [Piece(*place) for place in found]
    if pruner is None or not cut.any():
        return Part(unit.sidecar, pieces)
    by_keys = _with_rows(pruner.prune_granules(unit.sidecar, cut))
    by_pages = _with_rows(pruner.prune_pages(unit.sidecar, by_keys, pages()))
    counts = unit.sidecar.extensions.granule_counts
    steps.append(Step("granule keys", "granules", int(counts[cut].sum()), _count(by_keys, counts)))
    steps.append(Step("page index", "granules", _count(by_keys, counts), _count(by_pages, counts)))
    for granules in by_pages:
        at = granules.row_group
        piece = Piece(int(unit.files[at]), at, int(unit.groups[at]))
        if granules.left in {None, int(counts[at])}:
            pieces.append(piece)
        else:
            pieces += [Piece(piece.file, at, piece.group, first, stop) for first, stop in _apart(granules.ranges)]
    return Part(unit.sidecar, pieces)


def _with_rows(found: Sequence[Granules]) -> list[Granules]:
    """The row groups of which something is left."""
    return [each for each in found if each.left != 0]


def _count(found: Sequence[Granules], counts: NDArray[np.int64]) -> int:
    """How many granules are left; all of a row group that stays whole."""
    return sum([int(counts[each.row_group]) if each.left is None else each.left for each in found])


def _apart(ranges: Sequence[tuple[int, int]]) -> list[tuple[int, int]]:
    """Few granules one by one, so that what is kept of one is of use whichever others a question needs."""
    if sum(stop - first for first, stop in ranges) > _FEW_GRANULES:
        return list(ranges)
    return [(at, at + 1) for first, stop in ranges for at in range(first, stop)]


def _cuttable(unit: Unit, cut: NDArray[np.bool_], columns: Sequence[str] | None) -> NDArray[np.bool_]:
    """Of some row groups those that the columns can be cut in; what was found is known when it is asked again."""
    key = None if columns is None else tuple(columns)
    known = unit.cuts.get_or_make(key, lambda: np.full(len(cut), -1, np.int8))
    for at in np.flatnonzero(cut & (known < 0)).tolist():
        known[at] = _can_be_cut(unit.sidecar, at, columns)
    cuttable: NDArray[np.bool_] = cut & (known == 1)
    return cuttable


def _can_be_cut(sidecar: Sidecar, unit: int, columns: Sequence[str] | None) -> bool:
    """Whether the columns have their pages in the granule index; those of nested ones may be cut elsewhere."""
    granules = sidecar.extensions.granules(unit)
    if granules is None or len(granules.rows) < 2:
        return False
    leaves = schema_of(sidecar).leaves
    wanted = [leaf.index for leaf in leaves if columns is None or leaf.path[0] in columns]
    # Of a file that has none of the columns another one is read, whichever it is, for its number of rows.
    return bool(wanted) and bool((granules.page_sizes[wanted] > 0).all())


def _spread(
    context: ScanContext,
    files: Sequence[DataFile],
    parts: Sequence[Part],
    columns: Sequence[str] | None,
    *,
    by_rows: bool,
) -> list[Part]:
    """Cut every piece into so many that all threads have one, where that can be done.

    Without `by_rows` what the files say of themselves decides alone, and not what is in memory.
    """
    wanted = -(-context.threads // max(sum([len(part.pieces) for part in parts]), 1))
    if wanted < 2:
        return list(parts)

    def cut(sidecar: Sidecar, piece: Piece) -> list[Piece]:
        if _can_be_cut(sidecar, piece.unit, columns):
            return _by_granules(sidecar, piece, wanted)
        if not by_rows or piece.stop is not None or sidecar.row_counts[piece.unit] < 2 * _LEAST_ROWS:
            return [piece]
        # Small questions load nothing of this.
        from windrow.planning.row_cuts import cut_by_rows

        return cut_by_rows(context.cache, files[piece.file], sidecar, piece, columns, wanted, least_rows=_LEAST_ROWS)

    return [Part(part.sidecar, [each for piece in part.pieces for each in cut(part.sidecar, piece)]) for part in parts]


def _by_granules(sidecar: Sidecar, piece: Piece, wanted: int) -> list[Piece]:
    granules = sidecar.extensions.granules(piece.unit)
    assert granules is not None  # noqa: S101 (else it could not be cut)
    stop = len(granules.rows) if piece.stop is None else piece.stop
    edges = np.unique(np.linspace(piece.first, stop, wanted + 1).astype(int)).tolist()
    if len(edges) < 3:
        return [piece]
    return [Piece(piece.file, piece.unit, piece.group, first, last) for first, last in pairwise(edges)]


def _shared(parts: Sequence[Part], number: int, count: int) -> list[Part]:
    """What one of several readers gets of each part: pieces that follow each other."""
    if count == 1:
        return list(parts)
    cuts = [(len(part.pieces) * number // count, len(part.pieces) * (number + 1) // count) for part in parts]
    shares = [Part(part.sidecar, part.pieces[first:stop]) for part, (first, stop) in zip(parts, cuts, strict=True)]
    return [part for part in shares if part.pieces]


def _grouped(parts: Sequence[Part], columns: Sequence[str] | None) -> list[tuple[VirtualSchema, list[Part]]]:
    """Parts that one schema can hold, together; most often that is all of them."""
    grouped: list[tuple[list[ParquetFooter], list[Part]]] = []
    for part in parts:
        footer = schema_of(part.sidecar)
        home = next((each for each in grouped if _fits([*each[0], footer], columns)), None)
        if home is None:
            grouped.append(([footer], [part]))
        else:
            home[0].append(footer)
            home[1].append(part)
    return [(_schema(footers, columns), members) for footers, members in grouped]


def _fits(footers: Sequence[ParquetFooter], columns: Sequence[str] | None) -> bool:
    schema = _schema(footers, columns)
    return all(positions_in(footer, schema) is not None for footer in footers)


def _schema(footers: Sequence[ParquetFooter], columns: Sequence[str] | None) -> VirtualSchema:
    known = dict.fromkeys(name for footer in footers for name in column_names(footer))
    wanted = list(known) if columns is None else [name for name in columns if name in known]
    # A file without any column would have no rows.
    return merged_schema(footers, wanted or list(known)[:1])


def summed(steps: Iterable[Step]) -> Iterable[Step]:
    """Steps of the same name, which were taken for several units, as one."""
    by_name: dict[tuple[str, str], tuple[int, int]] = {}
    for step in steps:
        asked, kept = by_name.get((step.step, step.units), (0, 0))
        by_name[step.step, step.units] = asked + step.asked, kept + step.kept
    return [Step(step, units, asked, kept) for (step, units), (asked, kept) in by_name.items()]
