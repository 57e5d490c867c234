"""Makes the rows of a batch those of the table: columns of its types, points that have what a point needs.

Rows that cannot be, because a needed value is null or a time is out of range, come back apart, as they came.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

import pyarrow as pa
import pyarrow.compute as pc

from windrow.errors import InvalidInput
from windrow.ingest.casts import converted
from windrow.ingest.coerce import coerced
from windrow.ingest.dead_letter import FILE, Rejected
from windrow.ingest.times import in_unit, range_of, uncountable
from windrow.model.widening import plain

__all__ = ["Fitted", "fitted"]

_SHOWN = 200
"""Characters of a row that an error shows."""


@dataclass(frozen=True, slots=True)
class Fitted:
    """The rows of a batch that fit the table, and those that do not."""

    rows: pa.Table
    rounded: int = 0
    """Rows of which a time lost digits."""
    rejected: tuple[Rejected, ...] = ()

    def require_all(self) -> pa.Table:
        """Return the rows, or refuse the batch with what is wrong and the first row of it."""
        if self.rejected:
            total = self.rows.num_rows + sum(each.rows.num_rows for each in self.rejected)
            problems = "; ".join(f"in {each.rows.num_rows} {each.reason}" for each in self.rejected)
            apart = sum(each.rows.num_rows for each in self.rejected)
            raise InvalidInput(
                f"{apart} of {total} rows of a batch cannot be rows of the table: {problems}. The first is "
                f"{_shown(self.rejected[0].rows)}. Put them right, or set them aside (dead_letter)"
            )
        return self.rows


def fitted(
    rows: pa.Table,
    types: Mapping[str, pa.DataType],
    required: Sequence[str],
    time: tuple[str, str | None] | None = None,
    casts: Mapping[str, pa.DataType] | None = None,
) -> Fitted:
    """Return the rows with the table's types; a column that cannot have its type is refused by name.

    `time` is the column of the points' times, and what it counts where it holds integers. `casts` are types that
    columns get first, by the caller's word.
    """
    came, cut = rows, []
    rows, problems = _converted(rows, types, casts or {})
    for place, name in enumerate(rows.column_names):
        kind = types[name]
        if not pa.types.is_timestamp(kind):
            continue
        column = rows[name].cast(rows[name].type.value_type) if pa.types.is_dictionary(rows[name].type) else rows[name]
        if pa.types.is_timestamp(column.type):
            times = in_unit(column, pa.timestamp(kind.unit, column.type.tz))
            rows = rows.set_column(place, name, times.values)
            cut += [] if times.cut is None else [times.cut]
            if times.outside is not None:
                problems.append((f"times of column {name!r} lie out of {range_of(kind)}", times.outside))
    problems += _problems_of_time(rows, time)
    rows = coerced(rows, types)
    lacking = [name for name in required if rows[name].null_count]
    problems += [(f"DM-1: column {name!r} is null", pc.is_null(rows[name])) for name in lacking]
    rounded = _any(cut)
    if not problems:
        return Fitted(rows, 0 if rounded is None else pc.sum(rounded).as_py() or 0)
    return _parted(came, rows, problems, rounded)


def _converted(
    rows: pa.Table, types: Mapping[str, pa.DataType], casts: Mapping[str, pa.DataType]
) -> tuple[pa.Table, list[tuple[str, pa.ChunkedArray]]]:
    """Return the rows with columns cast, and whole numbers as floats where the table has these; and what was lost."""
    columns, problems = list(rows.columns), []
    for place, name in enumerate(rows.column_names):
        kind = plain(columns[place].type)
        target = casts.get(name)
        is_whole = target is None and pa.types.is_integer(kind) and pa.types.is_floating(types[name])
        if target is None and not is_whole:
            continue
        try:
            changed = converted(columns[place], target or types[name], lossy=target is not None)
        except InvalidInput as error:
            raise InvalidInput(f"cast: column {name!r}: {error}") from error
        columns[place] = changed.values
        if changed.lost is not None:
            problem = f"column {name!r} is {kind} and cannot become {target}"
            if is_whole:
                advice = f'cast={{"{name}": "{types[name]}"}} takes the nearest'
                problem = f"column {name!r} is {kind} and not exact as {types[name]}; {advice}"
            problems.append((problem, changed.lost))
    return pa.table(columns, rows.column_names).replace_schema_metadata(rows.schema.metadata), problems


def _problems_of_time(rows: pa.Table, time: tuple[str, str | None] | None) -> Iterator[tuple[str, pa.ChunkedArray]]:
    """Yield the rows whose dates or integers are times out of range; timestamps are looked at by their unit."""
    if time is None or time[0] not in rows.column_names:
        return
    name, unit = time
    column = rows[name].cast(plain(rows[name].type))
    if not (pa.types.is_date(column.type) or (pa.types.is_integer(column.type) and unit)):
        return
    outside = uncountable(column, unit)
    if outside is not None:
        counted = f", counted in {unit!r}" if pa.types.is_integer(column.type) else ""
        yield f"times of column {name!r}{counted} cannot be counted in microseconds of 64 bits", outside


def _parted(
    came: pa.Table, rows: pa.Table, problems: Sequence[tuple[str, pa.ChunkedArray]], rounded: pa.ChunkedArray | None
) -> Fitted:
    """Part the rows that have a problem, each with its first one."""
    seen = pa.chunked_array([pa.repeat(pa.scalar(value=False), rows.num_rows)])
    file = (came.schema.metadata or {}).get(FILE)
    rejected = []
    for reason, mask in problems:
        apart = came.filter(pc.and_not(mask, seen))
        rejected.append(Rejected(reason, apart, None if file is None else file.decode()))
        seen = pc.or_(seen, mask)
    fit = pc.invert(seen)
    lost = 0 if rounded is None else pc.sum(pc.and_(rounded, fit)).as_py() or 0
    return Fitted(rows.filter(fit), lost, tuple(each for each in rejected if each.rows.num_rows))


def _any(masks: Sequence[pa.ChunkedArray]) -> pa.ChunkedArray | None:
    changedned = None
    for mask in masks:
        is_set = pc.fill_null(mask, fill_value=False)
        changedned = is_set if changedned is None else pc.or_(changedned, is_set)
    return changedned


def _shown(rows: pa.Table) -> str:
    cells = (
        f"{name}={rows[name].slice(0, 1).cast(pa.string())[0]}"
        for name in rows.column_names
        if _has_text(rows[name].type)
    )
    text = ", ".join(cells)
    return text if len(text) <= _SHOWN else f"{text[:_SHOWN]}..."


def _has_text(kind: pa.DataType) -> bool:
    return not (pa.types.is_nested(kind) or (pa.types.is_dictionary(kind) and pa.types.is_nested(kind.value_type)))
