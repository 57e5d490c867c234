"""A selection as a LazyFrame of Polars: what Polars asks for of columns and conditions is left to the plan."""

from __future__ import annotations

from collections.abc import Iterator

import polars as pl
from polars.io.plugins import register_io_source

from windrow.engines.arrow import RowStream
from windrow.engines.selection import Selection
from windrow.questions.literals import fitted
from windrow.questions.polars_conditions import polars_to_predicate
from windrow.reading.read_context import ReadContext

__all__ = ["lazy_frame"]


def lazy_frame(selection: Selection, context: ReadContext) -> pl.LazyFrame:
    """Return a frame that reads when it is collected, batch by batch; the version is held while it does."""

    def read(
        with_columns: list[str] | None, predicate: pl.Expr | None, n_rows: int | None, batch_size: int | None
    ) -> Iterator[pl.DataFrame]:
        del batch_size  # a wish only, and batches of ours are of a good size
        # Rows of no column at all could not be counted.
        columns = tuple(selection.columns if with_columns is None else with_columns)
        said = None if predicate is None else polars_to_predicate(predicate)
        pruned_by = None if said is None else fitted(said, selection.relation.plain_columns)
        left = n_rows
        for batch in RowStream(selection.narrowed(columns or selection.columns[:1], pruned_by), context):
            frame = pl.DataFrame(batch)
            frame = frame if predicate is None else frame.filter(predicate)
            frame = frame if left is None else frame.head(left)
            left = None if left is None else left - len(frame)
            yield frame if columns else frame.select([])
            if left == 0:
                return

    return register_io_source(read, schema=pl.DataFrame(selection.schema.empty_table()).schema)
