"""A scan: some columns of the rows of one version of a table that meet a condition, for any engine.

scan = metrics.scan(where="metric_name = 'cpu' and timestamp >= now() - interval 1 hour", columns=["host", "value"])
scan.to_arrow(), scan.to_polars(), scan.to_duckdb(), scan.to_spark(spark), pa.RecordBatchReader.from_stream(scan)
"""

from __future__ import annotations

import weakref
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import duckdb
import pyarrow as pa

from windrow.engines.arrow import RowStream, count_rows, plan_of, scanning_cursor, virtual_files
from windrow.engines.duckdb.database import new_database
from windrow.engines.duckdb.filesystem import LentFiles
from windrow.engines.duckdb.interrupting import heeding_ctrl_c
from windrow.engines.duckdb.relations import Relation
from windrow.engines.selection import Selection, condition_text
from windrow.errors import InvalidInput
from windrow.extras import require
from windrow.model.predicate import Predicate
from windrow.planning.scan_plan import ScanPlan
from windrow.reading.read_context import ReadContext

if TYPE_CHECKING:
    import polars as pl
    from pyspark.sql import DataFrame, SparkSession

__all__ = ["Scan"]

_UTC = frozenset({"utc", "etc/utc", "gmt", "etc/gmt", "z", "zulu", "etc/zulu", "etc/uct", "uct", "universal"})
_files: weakref.WeakKeyDictionary[duckdb.DuckDBPyConnection, LentFiles] = weakref.WeakKeyDictionary()
"""What was given to connections of others; it goes when they go."""


@dataclass(frozen=True)
class Scan:
    """Rows of one version of a table. Nothing is read before an engine asks; each time it does, the same rows come.

    The condition is DuckDB's SQL in UTC, whoever reads the rows; `now()` in it is the moment when the scan was made.
    """

    selection: Selection
    context: ReadContext
    store_options: Mapping[str, str] = field(default_factory=dict, repr=False)
    """By which tasks on other machines open the store."""

    @classmethod
    def of(
        cls,
        name: str,
        relation: Relation,
        context: ReadContext,
        where: str | Predicate | None = None,
        columns: Iterable[str] | None = None,
        store_options: Mapping[str, str] | None = None,
        *,
        sandbox: bool = False,
    ) -> Scan:
        """Check a question to a relation: `where` is the text of a condition, or a predicate.

        In a sandbox a condition has functions that compute, and no others.
        """
        if isinstance(columns, str):
            raise InvalidInput(f"scan of {name!r}: columns={columns!r} is a text; give a list of names")
        if where is None:
            return cls(Selection.of(name, relation, None, columns), context, store_options or {})
        with scanning_cursor() as cursor:
            selection = Selection.of(name, relation, condition_text(where, cursor, sandbox=sandbox), columns)
            selection.check(cursor)
            return cls(selection, context, store_options or {})

    @property
    def schema(self) -> pa.Schema:
        """The columns, with the types that they have in the table."""
        return self.selection.schema

    def plan(self) -> ScanPlan:
        """Say what would be read, and how: the source, and how many windows, splits, row groups, granules and bytes."""
        return plan_of(self.selection, self.context)

    def count(self) -> int:
        """Count the rows; without a condition that is known from metadata."""
        return count_rows(self.selection, self.context)

    def to_arrow(self) -> pa.Table:
        """Return the rows as an Arrow table."""
        return self.to_reader().read_all()

    def to_reader(self) -> pa.RecordBatchReader:
        """Return the rows as a stream of batches: only those on their way are in memory."""
        return RowStream(self.selection, self.context).reader()

    def __arrow_c_stream__(self, requested_schema: object | None = None) -> object:
        return self.to_reader().__arrow_c_stream__(requested_schema)

    def to_pandas(self) -> Any:
        """Return the rows as a pandas DataFrame."""
        require("pandas")
        return self.to_arrow().to_pandas()

    def to_polars(self) -> pl.LazyFrame:
        """Return the rows as a LazyFrame; columns and conditions that Polars asks for are left to the plan."""
        require("polars")
        self.selection.refuse_wide("Polars")
        from windrow.engines.polars import lazy_frame

        return lazy_frame(self.selection, self.context)

    def to_duckdb(self, connection: duckdb.DuckDBPyConnection | None = None) -> duckdb.DuckDBPyRelation:
        """Return the rows as a relation of a connection, or of one of its own.

        What the relation needs, and the version, is held for as long as the connection is there.
        """
        self.selection.refuse_wide("DuckDB")
        if connection is None:
            connection = new_database(self.context.limits)
        with heeding_ctrl_c():
            return self._relation(connection)

    def _relation(self, connection: duckdb.DuckDBPyConnection) -> duckdb.DuckDBPyRelation:
        self._check_zone(connection)
        if connection not in _files:
            files = LentFiles()
            connection.register_filesystem(files)
            _files[connection] = files
        selection = self.selection
        hold = None if selection.relation.hold is None else selection.relation.hold()
        bound = virtual_files(selection, self.context)
        virtual = bound.source.plan.virtual
        paths = [[_files[connection].lend(each, self.context, hold)] for each in virtual]
        return connection.sql(selection.sql(connection, bound.relation, virtual, paths))

    def to_spark(self, spark: SparkSession) -> DataFrame:
        """Return the rows as a DataFrame, of Spark's own reader where that is exact, else of tasks that read by us.

        The version is held for as long as the DataFrame is there.
        """
        from windrow.engines.spark.data_frame import data_frame

        self.selection.refuse_wide("Spark")
        return data_frame(self.selection, spark, self.context, self.store_options)

    def _check_zone(self, connection: duckdb.DuckDBPyConnection) -> None:
        """Other zones would read times in the condition in another way than the plan did."""
        [(zone,)] = connection.execute("SELECT current_setting('TimeZone')").fetchall()
        if self.selection.where is not None and str(zone).lower() not in _UTC:
            raise InvalidInput(
                f"scan of {self.selection.name!r}: the connection's time zone is {zone}, and conditions of scans are "
                "in UTC; execute SET TimeZone = 'UTC' on it first, or scan without a condition and filter the relation"
            )

    def __repr__(self) -> str:
        where = f" where {self.selection.where}" if self.selection.where else ""
        return f"Scan({', '.join(self.selection.columns)} from {self.selection.name}{where})"
