"""Files that a query names by path or address, as relations."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from urllib.parse import unquote

import pyarrow as pa

from windrow.bounded import BoundedCache
from windrow.cache import CacheKind, count_bypass
from windrow.engines.duckdb.relations import Relation
from windrow.errors import Damaged, Incompatible, NotFound
from windrow.learning.log import ScannedRelation
from windrow.planning.data_files import DataFile, open_sidecars
from windrow.planning.foreign_files import ForeignFiles
from windrow.planning.guessed_statistics import guessed_columns
from windrow.planning.listed_files import ListedFiles
from windrow.planning.repeated_plans import RepeatedPlans
from windrow.planning.scan_plan import ScanPlan, plan_listed
from windrow.planning.virtual_schema import arrow_schema
from windrow.questions.naming import Question
from windrow.statistics.cached_statistics import CachedStatistics

__all__ = ["ForeignRelations"]

_BUDGET = 2**26


class ForeignRelations:
    """What paths, globs and addresses stand for; those that were named last are cached.

    Files are looked for every time. Cached is what plans of the very same files are made from.
    """

    def __init__(
        self,
        files: ForeignFiles,
        *,
        scanned: Callable[[], ScannedRelation | None] = lambda: None,
        budget: int = _BUDGET,
    ) -> None:
        """`scanned` gives where queries report what they read of some files."""
        self.files = files
        self._scanned = scanned
        self._relations: BoundedCache[str, tuple[ListedFiles, Relation]] = BoundedCache(
            "foreign files", budget=budget, least=1
        )

    def __call__(self, pattern: str) -> Relation | None:
        """What a path, glob or address stands for; None leaves local files that are odd, or not there, to DuckDB.

        The columns are those of the first file; others may lack some, or have them in a narrower type. Folders that
        are named like `key=value` are columns to DuckDB, so files in them are its own affair.
        """
        try:
            files = self.files.find(pattern)
            if "://" not in pattern and any("=" in unquote(file.store.url) for file in files):
                count_bypass(self.files.context.cache, CacheKind.DATA_FILE_FOOTER, len(files))
                return None
            cached = self._relations.get(pattern)
            if cached is None or cached[0].files != files:
                self._relations.drop(pattern)
                cached = self._made(pattern, files)
        except (NotFound, Damaged, Incompatible) as error:
            if "://" in pattern:
                raise
            if not isinstance(error, NotFound):
                count_bypass(self.files.context.cache, CacheKind.DATA_FILE_FOOTER, len(files))
            return None
        self._relations.put(pattern, cached, cached[0].weight)
        return cached[1]

    def _made(self, pattern: str, files: Sequence[DataFile]) -> tuple[ListedFiles, Relation]:
        context, listed = self.files.context, ListedFiles(files)
        repeated = RepeatedPlans(lambda: 0 if context.statistics is None else context.statistics.revision)
        schema = arrow_schema(open_sidecars(context, files)[0])

        def plan(question: Question) -> ScanPlan:
            return repeated.plan(question, partial(made, question))

        def made(question: Question, *, explain: bool = False) -> ScanPlan:
            wanted = question if context.prune else Question(question.columns, None)
            listed.open(context, listed.places)
            with listed.lock:
                return plan_listed(context, listed, listed.places, wanted, explain=explain)

        def forget() -> None:
            self._relations.drop(pattern)
            self.files.forget(pattern)

        explain, statistics, scanned = partial(made, explain=True), self._statistics(listed, schema), self._scanned()
        return listed, Relation(schema, plan, forget=forget, explain=explain, statistics=statistics, scanned=scanned)

    def _statistics(self, listed: ListedFiles, schema: pa.Schema) -> CachedStatistics | None:
        context, learnt = self.files.context, self.files.context.statistics
        if learnt is None:
            return None
        return CachedStatistics(
            learnt,
            lambda: listed.rows_by_file(context),
            partial(listed.shows_bounds, context),
            lambda columns: guessed_columns(context, [listed], columns, schema),
        )
