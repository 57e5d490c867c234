"""Where the rows of one read come from: chosen here, once, from a question, its plan and what is allowed.

An engine is handed a source and needs to know nothing else. The virtual file serves every plan; the others are faster
where they can be had:

    answer from metadata    counts and extremes that the metastore and sidecars are certain of
    decoded rows            the few rows of a small plan over files that are read again and again
    plain paths             large local files that are read as a whole, by the engine itself
    virtual file            everything else
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from typing import ClassVar, TypeAlias

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from windrow.cache import CacheKind, count_bypass
from windrow.errors import WindrowError
from windrow.model.sources import SourceKind
from windrow.planning.data_files import DataFile
from windrow.planning.scan_plan import ScanPlan
from windrow.questions.naming import Question
from windrow.reading.decoded_rows import Gathered, decoded_rows
from windrow.reading.plain_paths import files_of, plain_paths
from windrow.reading.read_context import ReadContext
from windrow.reading.virtual_reader import VirtualReader
from windrow.storage.ranges import check_identity

__all__ = [
    "EVERY_SOURCE",
    "DecodedRows",
    "MetadataAnswer",
    "PlainPaths",
    "Source",
    "VirtualFiles",
    "allowed_sources",
    "source_of",
]

EVERY_SOURCE = frozenset(SourceKind)


@dataclass(frozen=True, slots=True, eq=False)
class MetadataAnswer:
    """The values of aggregates; no row is read."""

    plan: ScanPlan
    values: Sequence[pa.Scalar]
    kind: ClassVar[SourceKind] = SourceKind.METADATA


@dataclass(frozen=True, slots=True, eq=False)
class DecodedRows:
    """Rows that were read before the engine begins; their files never change."""

    plan: ScanPlan
    rows: Gathered
    kind: ClassVar[SourceKind] = SourceKind.DECODED


@dataclass(frozen=True, slots=True, eq=False)
class PlainPaths:
    """Files on this machine that the engine reads by their paths."""

    plan: ScanPlan
    paths: Sequence[Sequence[str]]
    """Those of each virtual file of the plan."""
    files: Sequence[DataFile]
    kind: ClassVar[SourceKind] = SourceKind.PATHS

    @property
    def failure(self) -> WindrowError | None:
        """Why an engine failed that read these files: one of them is no longer what was planned with."""
        try:
            self.finish()
        except WindrowError as error:
            return error
        return None

    def finish(self) -> None:
        """Make sure that what was read is what was planned with: `Replaced` if a file changed in the meantime."""
        for file in self.files:
            check_identity(file.uri, file.identity, file.store.head(file.key))


@dataclass(frozen=True, slots=True, eq=False)
class VirtualFiles:
    """Virtual files, which the engine reads through readers of ours."""

    plan: ScanPlan
    context: ReadContext
    kind: ClassVar[SourceKind] = SourceKind.VIRTUAL

    def readers(self) -> list[VirtualReader]:
        """A reader of each file, for its caller to close."""
        return [VirtualReader(each, self.context) for each in self.plan.virtual]


Source: TypeAlias = MetadataAnswer | DecodedRows | PlainPaths | VirtualFiles


def allowed_sources(context: ReadContext, allowed: frozenset[SourceKind]) -> frozenset[SourceKind]:
    """The kinds of sources that a read may have: of those allowed the one that is forced, and the virtual file."""
    if context.forcing is None or context.forcing.kind is None:
        return allowed
    return allowed & {context.forcing.kind, SourceKind.VIRTUAL}


def source_of(
    question: Question,
    plan: ScanPlan,
    context: ReadContext,
    allowed: Collection[SourceKind],
    *,
    rows: NDArray[np.int64] | None = None,
) -> Source:
    """Choose the source of a question to one table: the first kind of those allowed that serves its plan.

    One that is forced is taken whether or not it is the fastest. `rows` are those of the plan that are enough.
    """
    forcing = context.forcing
    source = _chosen(question, plan, context, allowed, rows, anyway=forcing is not None and forcing.kind is not None)
    if forcing is not None:
        forcing.count(source.kind)
    return source


def _chosen(
    question: Question,
    plan: ScanPlan,
    context: ReadContext,
    allowed: Collection[SourceKind],
    rows: NDArray[np.int64] | None,
    *,
    anyway: bool,
) -> Source:
    if plan.answer is not None and SourceKind.METADATA in allowed:
        return MetadataAnswer(plan, plan.answer)
    if context.decoded is not None and SourceKind.DECODED in allowed and len(plan.virtual) == 1:
        found = decoded_rows(
            context.decoded,
            plan.virtual[0],
            question.predicate,
            threads=context.limits.workers,
            anyway=anyway,
            at=rows,
        )
        if found is not None:
            return DecodedRows(plan, found)
    if SourceKind.PATHS in allowed:
        paths = [some for each in plan.virtual if (some := plain_paths(each, anyway=anyway)) is not None]
        if paths and len(paths) == len(plan.virtual):
            count_bypass(context.cache, CacheKind.DATA_FILE_FOOTER, sum(map(len, paths)))
            return PlainPaths(plan, paths, [file for each in plan.virtual for file in files_of(each)])
    return VirtualFiles(plan, context)
