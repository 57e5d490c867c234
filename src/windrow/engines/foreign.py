"""Files that a query names by path or address, as a relation."""

from __future__ import annotations

from urllib.parse import unquote

from windrow.engines.relations import Relation
from windrow.errors import Damaged, Incompatible, NotFound
from windrow.scan.files import open_sidecars
from windrow.scan.foreign import ForeignFiles
from windrow.scan.plan import plan_files
from windrow.scan.schema import arrow_schema

__all__ = ["foreign_relation"]


def foreign_relation(files: ForeignFiles, pattern: str) -> Relation | None:
    """What a path, glob or address stands for; None leaves local files that are odd, or not there, to DuckDB.

    The columns are those of the first file; others may lack some, or have them in a narrower type. Folders that are
    named like `key=value` are columns to DuckDB, so files in them are its own affair.
    """
    try:
        found = files.find(pattern)
        if "://" not in pattern and any("=" in unquote(file.store.url) for file in found):
            return None
        schema = arrow_schema(open_sidecars(files.context, found)[0])
    except (NotFound, Damaged, Incompatible):
        if "://" in pattern:
            raise
        return None
    return Relation(
        schema,
        lambda question: plan_files(files.context, found, predicate=question.predicate, columns=question.columns),
        forget=lambda: files.forget(pattern),
    )
