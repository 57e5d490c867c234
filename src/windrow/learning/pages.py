"""Chunks of a column learnt from their pages, in as little work as their encodings allow.

Where a dictionary has all values of a chunk, it is hashed in the place of the rows: each of its entries that a page
uses. Codes are looked at until all entries were used, which for few entries is soon, and at the rows of the sample.
Other values are decoded by our own kernels. What these do not read is left to pyarrow.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import NamedTuple

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from windrow.errors import Damaged
from windrow.learning.arrow_values import WIDEST_DECIMAL, decimal_array, fixed_array, text_array, word_of
from windrow.learning.scanned_files import FlatColumn, ScannedFile
from windrow.parquet import chunk as c
from windrow.parquet.chunk import Encoding
from windrow.parquet.page_grammar import DICTIONARY_PAGE
from windrow.parquet.page_reader import Chunks, Records, Unpacked, scan_pages, unpack, unreadable
from windrow.parquet.schema import PhysicalType
from windrow.statistics.collector import RowGroupValues
from windrow.statistics.values import is_bytes

__all__ = ["Pages", "Rows", "open_pages", "samples_of", "values_of"]

Longs = npt.NDArray[np.int64]
Truths = npt.NDArray[np.bool_]
_CODED, _PLAIN = 0, 1
_FORM, _VALUES, _VALUES_END, _COUNT, _ENTRY, _ENTRIES = 0, 3, 4, 5, 8, 9
_MORE = 3.0
"""In rows of any order all entries are met among entries times logarithm of them, and so many entries more."""


class Rows(NamedTuple):
    """All rows of a column in a row group."""

    row_group: int
    rows: pa.Array


@dataclass(frozen=True, eq=False)
class Pages:
    """The chunks of a column in some row groups, and their pages."""

    scanned: ScannedFile
    column: FlatColumn
    row_groups: Sequence[int]
    records: npt.NDArray[np.void]
    data: bytes
    chunks: Chunks
    pages: Records
    in_dictionary: Truths
    """By chunk, whether all data pages refer to a dictionary."""
    readable: Truths
    """By chunk, whether its pages are read here."""

    def take(self, places: Sequence[int], pages: Truths) -> tuple[Chunks, Records]:
        """Some chunks with some of their pages, numbered anew."""
        numbers = np.full(len(self.row_groups), -1)
        numbers[list(places)] = np.arange(len(places))
        chosen = self.pages[pages & (numbers[self.pages["chunk"]] >= 0)].copy()
        chosen["chunk"] = numbers[chosen["chunk"]]
        rows = np.bincount(
            chosen["chunk"], np.where(chosen["kind"] == DICTIONARY_PAGE, 0, chosen["num_values"]), len(places)
        ).astype(np.int64)
        at = list(places)
        every = self.chunks
        chunks = Chunks(
            every.starts[at],
            every.ends[at],
            rows,
            every.codecs[at],
            every.nullable[at],
            every.fixed[at],
            np.zeros(len(at), np.int64),
            rows,
            [every.names[place] for place in at],
        )
        return chunks, chosen


def open_pages(scanned: ScannedFile, column: FlatColumn, row_groups: Sequence[int]) -> Pages:
    """Read chunks of a column, and list their pages."""
    records = scanned.chunks(column)[list(row_groups)]
    starts, sizes = c.chunk_starts(records), records["total_compressed_size"]
    pieces = [scanned.data.read(*place) for place in zip(starts.tolist(), sizes.tolist(), strict=True)]
    ends, count = np.cumsum(sizes), len(pieces)
    values = records["num_values"].astype(np.int64)
    is_text = column.leaf.element.physical_type is PhysicalType.BYTE_ARRAY
    chunks = Chunks(
        starts=(ends - sizes).astype(np.int64),
        ends=ends.astype(np.int64),
        values=values,
        codecs=records["codec"].astype(np.int64),
        nullable=np.full(count, column.is_nullable),
        fixed=np.full(count, not is_text),
        first=np.zeros(count, np.int64),
        last=values,
        names=[f"{scanned.file.uri}: column {column.name} in row group {each}" for each in row_groups],
    )
    data = b"".join(pieces)
    pages = scan_pages(np.frombuffer(data, np.uint8), chunks)
    is_data = pages["kind"] != DICTIONARY_PAGE
    coded = np.isin(pages["encoding"], (Encoding.PLAIN_DICTIONARY, Encoding.RLE_DICTIONARY))
    in_dictionary, readable = np.ones(count, bool), np.ones(count, bool)
    in_dictionary[pages["chunk"][is_data & ~coded]] = False
    readable[unreadable(pages, chunks)] = False
    rows = np.array([scanned.layout.row_groups[each] for each in row_groups], np.int64)
    readable &= values == rows
    # Nobody needs pages to learn of nulls alone, and a dictionary may be missing there.
    readable &= np.bincount(pages["chunk"][is_data], minlength=count) > 0
    return Pages(scanned, column, row_groups, records, data, chunks, pages, in_dictionary, readable)


def values_of(pages: Pages, places: Sequence[int]) -> Iterator[Rows | RowGroupValues]:
    """Yield the values of some of the chunks, which are readable; those that are not yielded are for others."""
    if not places:
        return
    is_text = not pages.chunks.fixed[0]
    is_known = is_bytes(pages.column.type) if is_text else _size(pages.column) > 0
    if not is_known:
        return
    in_dictionary = [place for place in places if pages.in_dictionary[place] or is_text]
    if in_dictionary:
        yield from _of_entries(pages, in_dictionary)
    for place in places:
        if place not in in_dictionary:
            yield _decoded(pages, place)


def _decimal_width(column: FlatColumn) -> int | None:
    """The bytes of decimals that are written with the high one first."""
    element = column.leaf.element
    width = element.type_length or 0
    is_decimal = pa.types.is_decimal128(column.type) and element.physical_type is PhysicalType.FIXED_LEN_BYTE_ARRAY
    return width if is_decimal and 0 < width <= WIDEST_DECIMAL else None


def _size(column: FlatColumn) -> int:
    """The bytes of a value of fixed width; 0 where such values are not read here."""
    word = word_of(column)
    return (_decimal_width(column) or 0) if word is None else np.dtype(word).itemsize


def _decoded(pages: Pages, place: int) -> Rows:
    """All rows of a chunk of fixed width."""
    chunks, chosen = pages.take([place], np.ones(len(pages.pages), bool))
    unpacked = unpack(memoryview(pages.data), chosen, chunks)
    width = _decimal_width(pages.column)
    if width is not None:
        found = unpacked.decimals(width)
        return Rows(pages.row_groups[place], fixed_array(pages.column, found.values, found.valid))
    found = unpacked.fixed(word_of(pages.column))
    return Rows(pages.row_groups[place], fixed_array(pages.column, found.values, found.valid))


# ---- by entries


def _of_entries(pages: Pages, places: Sequence[int]) -> Iterator[RowGroupValues]:
    """The values of chunks by the entries that stand for them: of some pages, and of all where these leave some."""
    some = _chosen_pages(pages, places)
    rest = []
    for values in _by_entries(pages, places, some, is_last=False):
        if isinstance(values, int):
            rest.append(values)
        else:
            yield values
    if rest:
        for values in _by_entries(pages, rest, np.ones(len(pages.pages), bool), is_last=True):
            assert isinstance(values, RowGroupValues)  # noqa: S101 (all pages were looked at)
            yield values


def _chosen_pages(pages: Pages, places: Sequence[int]) -> Truths:
    """The first pages, as many as should use all entries; all of a chunk that is not in its dictionary alone."""
    table, owner = pages.pages, pages.pages["chunk"]
    is_data = table["kind"] != DICTIONARY_PAGE
    counts = np.where(is_data, table["num_values"], 0)
    chosen: Truths = ~is_data
    entries = np.bincount(owner, np.where(is_data, 0, table["num_values"]), len(pages.row_groups))
    counts_nulls = ((pages.records["flags"] & c.HAS_NULL_COUNT) == 0) & pages.column.is_nullable
    for place in places:
        mine = np.flatnonzero((owner == place) & is_data)
        needed = entries[place] * (np.log(max(entries[place], 1.0)) + _MORE)
        is_all = not pages.in_dictionary[place] or counts_nulls[place]
        some = int(np.searchsorted(np.cumsum(counts[mine]), needed)) + 1
        chosen[mine if is_all else mine[:some]] = True
    return chosen


def samples_of(pages: Pages, places: Sequence[int]) -> Iterator[tuple[int, pa.Array]]:
    """Yield the values at the rows of the sample, by row group, of chunks whose values are in dictionaries."""
    table, owner = pages.pages, pages.pages["chunk"]
    is_data = table["kind"] != DICTIONARY_PAGE
    chosen: Truths = ~is_data
    for place in places:
        mine = np.flatnonzero((owner == place) & is_data)
        _, rows = pages.scanned.collector.sampled_rows(pages.row_groups[place])
        holds = np.unique(np.searchsorted(np.cumsum(table["num_values"][mine]), rows, "right"))
        chosen[mine[holds] if holds.size else mine[:1]] = True
    chunks, records = pages.take(places, chosen)
    entries = _Entries.of(pages.column, unpack(memoryview(pages.data), records, chunks), records)
    for place, sampled in zip(places, entries.sampled(pages, places, chosen), strict=True):
        yield pages.row_groups[place], sampled


def _by_entries(
    pages: Pages, places: Sequence[int], chosen: Truths, *, is_last: bool
) -> Iterator[RowGroupValues | int]:
    """The values of each chunk; its place where pages that were not chosen may use entries that these do not."""
    from windrow.kernels.places import mark_entries

    chunks, records = pages.take(places, chosen)
    unpacked = unpack(memoryview(pages.data), records, chunks)
    entries = _Entries.of(pages.column, unpacked, records)
    missing, owners = entries.counts(len(places)), entries.owners
    used = np.zeros(entries.in_dictionaries, np.uint8)
    _check(mark_entries(unpacked.words, entries.table.reshape(-1), owners, used, missing), unpacked)
    whole = [is_last or bool(chosen[pages.pages["chunk"] == place].all()) for place in places]
    # All pages are here, so the rows of the sample are too.
    sampled = entries.sampled(pages, places, chosen) if all(whole) else [None] * len(places)
    for number, place in enumerate(places):
        if missing[number] and not whole[number]:
            yield place
            continue
        own = entries.of_chunk(number, used, is_all_used=missing[number] == 0)
        nulls = _null_count(pages, place, unpacked, entries.table[owners == number])
        yield RowGroupValues(pages.row_groups[place], own, nulls, sampled[number])


def _sampled_rows(pages: Pages, places: Sequence[int], chosen: Truths) -> tuple[Longs, list[int]]:
    """The rows of the sample, counted over the chosen pages of all chunks; and where those of each chunk begin."""
    table, base = pages.pages, 0
    found, cuts = [np.empty(0, np.int64)], [0]
    for place in places:
        mine = np.flatnonzero((table["chunk"] == place) & (table["kind"] != DICTIONARY_PAGE))
        counts = table["num_values"][mine].astype(np.int64)
        is_there = chosen[mine]
        ends = np.cumsum(counts)
        # Rows before a page that were not chosen do not count.
        before = np.cumsum(np.where(is_there, 0, counts))
        _, rows = pages.scanned.collector.sampled_rows(pages.row_groups[place])
        found.append(base + rows - before[np.searchsorted(ends, rows, "right")])
        cuts.append(cuts[-1] + rows.size)
        base += int(counts[is_there].sum())
    return np.concatenate(found), cuts


def _null_count(pages: Pages, place: int, unpacked: Unpacked, table: Longs) -> int:
    """The nulls of a chunk: as its footer has them, else as they are counted in all of its pages."""
    from windrow.kernels.pages import count_set

    record = pages.records[place]
    if not pages.column.is_nullable:
        return 0
    if record["flags"] & c.HAS_NULL_COUNT:
        return int(record["null_count"])
    counts = np.zeros(len(table), np.int64)
    _check(count_set(unpacked.words, np.ascontiguousarray(table).reshape(-1), counts), unpacked)
    return int(table[:, _COUNT].sum() - counts.sum())


class _Entries(NamedTuple):
    """The entries of the dictionaries of chunks, and behind them the values of their pages in PLAIN."""

    values: pa.Array
    table: Longs
    """Of pages, which name their entries."""
    dictionaries: Longs
    """By dictionary, its chunk, its first entry and its number of entries."""
    plain: Longs
    """By page in PLAIN, the same."""
    in_dictionaries: int
    owners: Longs
    """The chunk of each data page."""
    unpacked: Unpacked

    @classmethod
    def of(cls, column: FlatColumn, unpacked: Unpacked, records: Records) -> _Entries:
        """The entries of chunks, of which these pages were decompressed."""
        from windrow.kernels.pages import count_set

        is_data = records["kind"] != DICTIONARY_PAGE
        owners = records["chunk"][is_data & (records["num_values"] > 0)].astype(np.int64)
        dictionaries = records["chunk"][~is_data]

        table, stretches = unpacked.table.copy(), unpacked.dictionaries
        counts = stretches[:, 2]
        firsts = np.cumsum(counts) - counts
        total = int(counts.sum())
        plain = np.flatnonzero(table[:, _FORM] == _PLAIN)
        if plain.size:
            is_set = np.zeros(plain.size, np.int64)
            _check(count_set(unpacked.words, np.ascontiguousarray(table[plain]).reshape(-1), is_set), unpacked)
            table[plain, _ENTRIES], table[plain, _ENTRY] = is_set, total + np.cumsum(is_set) - is_set
            own = np.stack([table[plain, _VALUES], table[plain, _VALUES_END], is_set], axis=1)
            stretches = np.concatenate([stretches, own])
        return cls(
            _array(column, unpacked, stretches),
            table,
            np.stack([dictionaries, firsts, counts], axis=1),
            np.stack([owners[plain], table[plain, _ENTRY], table[plain, _ENTRIES]], axis=1),
            total,
            owners,
            unpacked,
        )

    def sampled(self, pages: Pages, places: Sequence[int], chosen: Truths) -> list[pa.Array]:
        """The values at the rows of the sample, of each chunk; the pages that hold them are among the chosen ones."""
        from windrow.kernels.places import entries_at, ordinals_at

        rows, cuts = _sampled_rows(pages, places, chosen)
        words, flat = self.unpacked.words, self.table.reshape(-1)
        page_of, ordinals, at = (np.empty(rows.size, np.int64) for _ in range(3))
        _check(ordinals_at(words, flat, rows, page_of, ordinals), self.unpacked)
        _check(entries_at(words, flat, page_of, ordinals, at), self.unpacked)
        values = self.values.take(pa.array(at, mask=at < 0))
        return [values.slice(first, end - first) for first, end in pairwise(cuts)]

    def counts(self, chunks: int) -> Longs:
        """How many entries the dictionary of each chunk has."""
        counts = np.zeros(chunks, np.int64)
        counts[self.dictionaries[:, 0]] = self.dictionaries[:, 2]
        return counts

    def of_chunk(self, number: int, used: npt.NDArray[np.uint8], *, is_all_used: bool) -> pa.Array:
        """The entries that a chunk uses."""
        parts = []
        for _, first, count in self.dictionaries[self.dictionaries[:, 0] == number].tolist():
            own = self.values.slice(first, count)
            parts.append(own if is_all_used else own.filter(pa.array(used[first : first + count] > 0)))
        mine = self.plain[self.plain[:, 0] == number]
        if len(mine):
            first = int(mine[0, 1])
            parts.append(self.values.slice(first, int(mine[:, 2].sum())))
        return parts[0] if len(parts) == 1 else pa.concat_arrays(parts or [self.values[:0]])


def _array(column: FlatColumn, unpacked: Unpacked, stretches: Longs) -> pa.Array:
    """The entries of stretches of decompressed bytes."""
    from windrow.kernels.pages import index_texts

    data = unpacked.words.view(np.uint8)
    starts, ends, counts = np.ascontiguousarray(stretches.T)
    total = int(counts.sum())
    if column.leaf.element.physical_type is PhysicalType.BYTE_ARRAY:
        # Each text has a length of four bytes: no room is made for what cannot be there.
        if (counts * 4 > ends - starts).any():
            raise _damaged(unpacked)
        offsets, lengths = np.empty(total, np.int64), np.empty(total, np.int64)
        _check(index_texts(unpacked.words, starts, ends, counts, offsets, lengths), unpacked)
        return text_array(column, data, offsets, lengths)
    width, word, size = _decimal_width(column), word_of(column), _size(column)
    if (ends - starts != counts * size).any():
        raise _damaged(unpacked)
    raw = data[: total * size]
    if width is not None:
        return decimal_array(column, raw, width)
    return fixed_array(column, raw.view(word if word is not None else np.uint64))


def _check(trouble: int, unpacked: Unpacked) -> None:
    if trouble >= 0:
        raise _damaged(unpacked)


def _damaged(unpacked: Unpacked) -> Damaged:
    owners = [*unpacked.owners, *unpacked.dictionary_owners]
    return Damaged(
        f"{owners[0] if owners else 'a chunk'}: a page cannot be decoded; the file is damaged, write it again"
    )
