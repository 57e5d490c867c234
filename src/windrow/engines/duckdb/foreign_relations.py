"""Files that a query names by path or address, as relations."""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Sequence
from urllib.parse import unquote

from windrow.cache import CacheKind, count_bypass
from windrow.engines.duckdb.relations import Relation
from windrow.errors import Damaged, Incompatible, NotFound
from windrow.planning.data_files import DataFile, open_sidecars
from windrow.planning.foreign_files import ForeignFiles
from windrow.planning.listed_files import KeptFiles
from windrow.planning.scan_plan import ScanPlan, plan_kept
from windrow.planning.virtual_schema import arrow_schema
from windrow.questions.naming import Question

__all__ = ["ForeignRelations"]

_BUDGET = 2**26


class ForeignRelations:
    """What paths, globs and addresses stand for; those that were asked for last are known already.

    Files are looked for every time. What is kept is what plans of the very same files are made from.
    """

    def __init__(self, files: ForeignFiles, *, budget: int = _BUDGET) -> None:
        self.files = files
        self._budget = budget
        self._lock = threading.Lock()
        self._known: OrderedDict[str, tuple[KeptFiles, Relation]] = OrderedDict()

    def __call__(self, pattern: str) -> Relation | None:
        """What a path, glob or address stands for; None leaves local files that are odd, or not there, to DuckDB.

        The columns are those of the first file; others may lack some, or have them in a narrower type. Folders that
        are named like `key=value` are columns to DuckDB, so files in them are its own affair.
        """
        try:
            found = self.files.find(pattern)
            if "://" not in pattern and any("=" in unquote(file.store.url) for file in found):
                count_bypass(self.files.context.cache, CacheKind.DATA_FILE_FOOTER, len(found))
                return None
            known = self._known.get(pattern)
            if known is None or known[0].files != found:
                known = self._made(pattern, found)
        except (NotFound, Damaged, Incompatible) as error:
            if "://" in pattern:
                raise
            if not isinstance(error, NotFound):
                count_bypass(self.files.context.cache, CacheKind.DATA_FILE_FOOTER, len(found))
            return None
        with self._lock:
            self._known[pattern] = known
            self._known.move_to_end(pattern)
            while len(self._known) > 1 and sum(kept.weight for kept, _ in self._known.values()) > self._budget:
                self._known.popitem(last=False)
        return known[1]

    def _made(self, pattern: str, found: Sequence[DataFile]) -> tuple[KeptFiles, Relation]:
        context, kept = self.files.context, KeptFiles(found)
        schema = arrow_schema(open_sidecars(context, found)[0])

        def plan(question: Question) -> ScanPlan:
            asked = question if context.prune else Question(question.columns, None)
            kept.open(context, kept.places)
            with kept.lock:
                return plan_kept(context, kept, kept.places, asked)

        def forget() -> None:
            with self._lock:
                self._known.pop(pattern, None)
            self.files.forget(pattern)

        return kept, Relation(schema, plan, forget=forget)
