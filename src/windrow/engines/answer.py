"""The answer to a query: rows as Arrow, and on from there to pandas, Polars, dictionaries, or a person's eyes."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from windrow.engines.direct.rows import DirectRows
from windrow.extras import require

if TYPE_CHECKING:
    import polars as pl
    import pyarrow as pa

__all__ = ["Answer"]

_MOST_ROWS, _MOST_WIDTH, _MOST_CELL = 20, 160, 40
"""So much is shown of an answer; all of it is there."""


@dataclass(slots=True, repr=False, eq=False)
class Answer:
    """The answer to a query, held as Arrow. It shows itself as a table, of which the first rows are printed."""

    _held: pa.Table | DirectRows
    _table: pa.Table | None = field(init=False, default=None)

    @property
    def _rows(self) -> DirectRows | None:
        return self._held if isinstance(self._held, DirectRows) else None

    @property
    def table(self) -> pa.Table:
        """The rows as an Arrow table."""
        if not isinstance(self._held, DirectRows):
            return self._held
        if self._table is None:
            # Two threads that come at once make equal ones.
            self._table = self._held.to_arrow()
        return self._table

    @property
    def is_plain(self) -> bool:
        """Whether the rows are there as Python values, and not as Arrow."""
        return self._rows is not None

    @property
    def names(self) -> list[str]:
        """The names of the columns."""
        return list(self._rows.names if self._rows is not None else self.table.column_names)

    def fetchall(self) -> list[tuple[Any, ...]]:
        """Return one tuple of plain Python values for each row."""
        if self._rows is not None:
            return list(self._rows.rows)
        columns = [column.to_pylist() for column in self.table.columns]
        return list(zip(*columns, strict=True)) if columns else []

    def to_arrow(self) -> pa.Table:
        """Return the answer as an Arrow table."""
        return self.table

    def to_pandas(self) -> Any:
        """Return the answer as a pandas DataFrame."""
        require("pandas")
        return self.table.to_pandas()

    def to_polars(self) -> pl.DataFrame:
        """Return the answer as a Polars DataFrame."""
        require("polars")
        import polars as pl

        frame = pl.from_arrow(self.table)
        return frame if isinstance(frame, pl.DataFrame) else frame.to_frame()

    def to_dict(self) -> list[dict[str, Any]]:
        """Return one dictionary for each row."""
        names = self.names
        return [dict(zip(names, row, strict=True)) for row in self.fetchall()]

    def __arrow_c_stream__(self, requested_schema: object | None = None) -> object:
        return self.table.__arrow_c_stream__(requested_schema)

    def __len__(self) -> int:
        return len(self._rows.rows) if self._rows is not None else int(self.table.num_rows)

    def __repr__(self) -> str:
        columns = [_Shown.of(field, self.table[place]) for place, field in enumerate(self.table.schema)]
        columns, left_out = _fitting(columns)
        lines = [" ".join(cells) for cells in zip(*(column.lines for column in columns), strict=True)]
        return "\n".join([*(line.rstrip() for line in lines), *self._rest(left_out)])

    def _repr_html_(self) -> str:
        import html

        shown = self.table.slice(0, _MOST_ROWS).to_pylist()
        names = self.table.column_names
        head = "".join(f"<th>{html.escape(name)}</th>" for name in names)
        rows = (
            "<tr>" + "".join(f"<td>{html.escape(_cell(row[name]))}</td>" for name in names) + "</tr>" for row in shown
        )
        rest = "".join(f"<p>{html.escape(line)}</p>" for line in self._rest(0))
        return f"<table><thead><tr>{head}</tr></thead><tbody>{''.join(rows)}</tbody></table>{rest}"

    def _rest(self, left_out: int) -> list[str]:
        """What is said of rows and columns that are not shown."""
        count = len(self)
        rows = f"{count:,} row{'' if count == 1 else 's'}"
        parts = [f"{rows}, the first {_MOST_ROWS} are shown" if count > _MOST_ROWS else rows]
        if left_out:
            parts.append(f"{left_out} more column{'' if left_out == 1 else 's'}")
        return [f"({'; '.join(parts)})"]


@dataclass(frozen=True, slots=True)
class _Shown:
    """A column as it is printed: name, rule and cells, all of one width."""

    lines: list[str]

    @classmethod
    def of(cls, field: pa.Field, values: pa.ChunkedArray) -> _Shown:
        cells = [_cell(value) for value in values.slice(0, _MOST_ROWS).to_pylist()]
        width = max([len(_cell(field.name)), *map(len, cells)])
        import pyarrow as pa

        kind = field.type
        is_number = pa.types.is_integer(kind) or pa.types.is_floating(kind) or pa.types.is_decimal(kind)
        align = str.rjust if is_number else str.ljust
        return cls([align(_cell(field.name), width), "-" * width, *(align(cell, width) for cell in cells)])

    @property
    def width(self) -> int:
        return len(self.lines[1]) + 1


def _fitting(columns: list[_Shown]) -> tuple[list[_Shown], int]:
    """The columns that fit on a line, the first one always, and how many do not."""
    width, count = 0, 0
    for column in columns:
        width += column.width
        if count and width > _MOST_WIDTH:
            break
        count += 1
    return columns[:count], len(columns) - count


def _cell(value: Any) -> str:
    text = "" if value is None else str(value)
    plain = "".join(char if char.isprintable() else " " for char in text)
    return plain if len(plain) <= _MOST_CELL else plain[: _MOST_CELL - 1] + "…"
