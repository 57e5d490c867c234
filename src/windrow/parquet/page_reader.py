"""Pages of flat columns of many files: listed in one pass over their headers, decompressed, and laid out for decoding.

    pages = scan_pages(source, chunks)                          # every page of every chunk
    unpacked = unpack(source, pages, chunks)                    # the wanted pages of one column
    unpacked.fixed(np.uint64) or unpacked.coded()               # one value for each row, or runs of texts

What is read are pages of both versions in PLAIN and dictionary encoding under the codecs of `windrow.parquet.codecs`;
`unreadable` tells which chunks hold anything else.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, fields, replace
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from windrow.errors import Damaged
from windrow.kernels import rules as r
from windrow.model.numbers import from_arrow
from windrow.parquet.chunk import Encoding
from windrow.parquet.codecs import READABLE, Codec, decompressor
from windrow.parquet.decimals import decimals_of_bytes
from windrow.parquet.page_grammar import DATA_PAGE, DATA_PAGE_V2, DICTIONARY_PAGE, PAGE, PAGE_GRAMMAR, PROTECTED, STORED
from windrow.parquet.zstd import zstd_decompressor

__all__ = [
    "Chunks",
    "Coded",
    "CodedRows",
    "Fixed",
    "Unpacked",
    "are_sound",
    "scan_pages",
    "unpack",
    "unreadable",
    "verify_pages",
]

Records = npt.NDArray[np.void]
Longs = npt.NDArray[np.int64]
Words = npt.NDArray[np.uint64]

LARGEST_PAGE = 1 << 31
MANY_RUNS = 0.6
"""With more runs than this share of the rows, a code for each row is handled faster."""
_FORM, _LEVELS, _LEVELS_END, _VALUES, _VALUES_END, _COUNT, _FIRST, _LAST, _ENTRY, _ENTRIES = range(10)
_CODED, _PLAIN, _NULLS, _DELTA, _SPLIT = range(5)
_FORMS = {
    int(Encoding.PLAIN): _PLAIN,
    int(Encoding.PLAIN_DICTIONARY): _CODED,
    int(Encoding.RLE_DICTIONARY): _CODED,
    int(Encoding.DELTA_BINARY_PACKED): _DELTA,
    int(Encoding.BYTE_STREAM_SPLIT): _SPLIT,
}
_FIXED_ENCODINGS = (Encoding.DELTA_BINARY_PACKED, Encoding.BYTE_STREAM_SPLIT)


@dataclass(frozen=True, eq=False)
class Chunks:
    """Chunks of one or several columns, and the rows of each that are wanted; one without bytes is null in all rows."""

    starts: Longs
    ends: Longs
    values: Longs
    codecs: Longs
    nullable: npt.NDArray[np.bool_]
    fixed: npt.NDArray[np.bool_]
    """Whether values are of fixed width; else they are texts."""
    first: Longs
    last: Longs
    names: Sequence[str]
    """What errors call them."""

    def __getitem__(self, part: slice) -> Chunks:
        return Chunks(**{each.name: getattr(self, each.name)[part] for each in fields(self)})


@dataclass(frozen=True, eq=False)
class Fixed:
    """A column of fixed width: a value for each row, and which rows are set; None when all are."""

    values: npt.NDArray[Any]
    valid: npt.NDArray[np.uint8] | None


@dataclass(frozen=True, eq=False)
class Coded:
    """A column of texts: runs of codes, and the texts in their order. The code of null is -1."""

    codes: npt.NDArray[np.int32]
    ends: Longs
    texts: pa.LargeBinaryArray


@dataclass(frozen=True, eq=False)
class CodedRows:
    """A column of texts that hardly repeat: a code for each row, and the texts in their order. That of null is -1."""

    codes: npt.NDArray[np.int32]
    texts: pa.LargeBinaryArray


def scan_pages(source: npt.NDArray[np.uint8], chunks: Chunks) -> Records:
    """The headers of all pages of the chunks, chunk by chunk."""
    from windrow.kernels import pages

    room = int((2 + (chunks.ends - chunks.starts) // 256).sum()) + 16
    layout = np.zeros(r.TABLE_SIZE, np.int64)
    while True:
        layout[r.WIDTH], layout[r.CAPACITY] = pages.HEADER_WIDTH, room
        records = np.zeros(room * pages.HEADER_WIDTH, np.int64)
        grammar = PAGE_GRAMMAR.compiled
        count, chunk = pages.scan_pages(source, chunks.starts, chunks.ends, chunks.values, grammar, layout, records)
        if count != -r.FULL:
            break
        room *= 4
    if count < 0:
        raise Damaged(
            f"{chunks.names[chunk]}: a page header cannot be read, or its page ends behind the chunk; write it again"
        )
    return records[: count * pages.HEADER_WIDTH].view(PAGE)


def unreadable(pages: Records, chunks: Chunks) -> Longs:
    """Which chunks hold pages that are not read here."""
    kind, encoding, owner = pages["kind"], pages["encoding"], pages["chunk"]
    of_dictionary = np.isin(encoding, (Encoding.PLAIN, Encoding.PLAIN_DICTIONARY))
    of_data = np.isin(encoding, list(_FORMS)) & (chunks.fixed[owner] | ~np.isin(encoding, _FIXED_ENCODINGS))
    readable = np.where(kind == DICTIONARY_PAGE, of_dictionary, of_data)
    readable &= np.isin(kind, (DATA_PAGE, DICTIONARY_PAGE, DATA_PAGE_V2))
    readable &= (kind != DATA_PAGE) | ~chunks.nullable[owner] | (pages["level_encoding"] == Encoding.RLE)
    readable &= np.isin(chunks.codecs, READABLE)[owner]
    return np.unique(owner[~readable])


def verify_pages(source: memoryview, pages: Records, chunks: Chunks) -> None:
    """Refuse pages whose bytes have another CRC-32 than their headers state; one that states none is not looked at."""
    from windrow.kernels.checksums import first_mismatch

    stated = np.where(pages["flags"] & PROTECTED, pages["crc"] & 0xFFFFFFFF, -1)
    bodies, sizes = (np.ascontiguousarray(pages[name]) for name in ("body", "compressed"))
    wrong = first_mismatch(np.frombuffer(source, np.uint8), bodies, sizes, stated)
    if wrong >= 0:
        raise Damaged(
            f"{chunks.names[int(pages['chunk'][wrong])]}: a page is not what was written, its checksum differs; "
            "restore the file or take it out of the table"
        )


def are_sound(data: bytes, starts: Longs, ends: Longs, whole: npt.NDArray[np.bool_]) -> bool:
    """Whether runs of pages are what was written, as far as their headers state checksums.

    Each begins with a header; one that is not `whole` may end within a page, which is not looked at.
    """
    from windrow.kernels import pages

    layout = np.zeros(r.TABLE_SIZE, np.int64)
    layout[r.WIDTH], layout[r.CAPACITY] = pages.HEADER_WIDTH, 1
    records = np.zeros(pages.HEADER_WIDTH, np.int64)
    source, grammar = np.frombuffer(data, np.uint8), PAGE_GRAMMAR.compiled
    return pages.damaged_run(source, starts, ends, whole, grammar, layout, records) < 0


@dataclass(frozen=True, eq=False)
class Unpacked:
    """The decompressed bytes of a column's wanted pages, and where in them everything is."""

    words: npt.NDArray[np.uint64]
    table: Longs
    """One row for each data page, as `windrow.kernels.pages` reads them."""
    dictionaries: Longs
    """First byte, last byte and number of entries of each dictionary, one a row."""
    owners: Sequence[str]
    """What errors call the chunk of each data page."""
    dictionary_owners: Sequence[str]
    """What errors call the chunk of each dictionary."""
    rows: int

    def fixed(self, dtype: Any) -> Fixed:
        """The column as values of a width."""
        from windrow.kernels.fixed import decode_fixed

        entries = self.entries(dtype)
        out, valid = np.empty(self.rows, dtype), np.ones(self.rows, np.uint8)
        self._check(decode_fixed(self.words, self.table.reshape(-1), entries, out, valid), self.owners)
        return Fixed(out, None if valid.all() else valid)

    def entries(self, dtype: Any) -> npt.NDArray[Any]:
        """The values of all dictionaries, of a width; their bytes are the first of all."""
        sizes = self.dictionaries[:, 1] - self.dictionaries[:, 0]
        self._refuse(sizes != self.dictionaries[:, 2] * np.dtype(dtype).itemsize, self.dictionary_owners)
        return self.words.view(np.uint8)[: int(sizes.sum())].view(dtype)

    @property
    def page_rows(self) -> Longs:
        """The wanted rows of each page."""
        return self.table[:, _LAST] - self.table[:, _FIRST]

    def decimals(self, width: int) -> Fixed:
        """The column as decimals of 16 bytes, from numbers of a width with the high byte first.

        Each page is decoded into the places of its values among those of all dictionaries and plain pages.
        """
        from windrow.kernels.fixed import decode_fixed

        plain = np.flatnonzero(self.table[:, _FORM] == _PLAIN)
        pages = self.table[plain][:, [_VALUES, _VALUES_END]]
        sizes = self.dictionaries[:, 1] - self.dictionaries[:, 0]
        self._refuse(sizes != self.dictionaries[:, 2] * width, self.dictionary_owners)
        self._refuse((pages[:, 1] - pages[:, 0]) % width != 0, [self.owners[page] for page in plain.tolist()])
        data, stretches = self.words.view(np.uint8), np.concatenate([self.dictionaries[:, :2], pages])
        raw = np.concatenate([np.zeros(width, np.uint8), *(data[start:end] for start, end in stretches.tolist())])
        numbers = decimals_of_bytes(raw.reshape(-1, width))
        counts = (pages[:, 1] - pages[:, 0]) // width
        places: npt.NDArray[Any] = np.arange(1, len(numbers), dtype=np.uint32)
        entries = places[: int(self.dictionaries[:, 2].sum())]
        words = np.concatenate(
            [data, places[len(entries) :].view(np.uint8), np.zeros(24 + 4 * (len(places) % 2), np.uint8)]
        )
        words = words[: len(words) // 8 * 8].view(np.uint64)
        table = self.table.copy()
        table[plain, _VALUES_END] = len(data) + 4 * np.cumsum(counts)
        table[plain, _VALUES] = table[plain, _VALUES_END] - 4 * counts
        out: npt.NDArray[Any] = np.empty(self.rows, np.uint32)
        valid = np.ones(self.rows, np.uint8)
        self._check(decode_fixed(words, table.reshape(-1), entries, out, valid), self.owners)
        return Fixed(numbers[np.where(valid, out, 0)], None if valid.all() else valid)

    def coded(self) -> Coded | CodedRows:
        """The column as runs of texts; as rows when hardly two in a row are the same."""
        from windrow.kernels.pages import decode_codes
        from windrow.kernels.texts import unify_texts

        table, stretches, owners = self._plain_entries()
        offsets, lengths = self._index(stretches, owners)
        numbers, firsts = unify_texts(self.words, offsets, lengths)
        texts, ranks = _ranked(self.words, offsets[firsts], lengths[firsts])
        if self._scattered():
            return self._by_row(ranks[numbers], texts)
        codes, ends = np.empty(self.rows, np.int32), np.empty(self.rows, np.int64)
        runs, wrong = decode_codes(self.words, table.reshape(-1), ranks[numbers], codes, ends)
        self._check(wrong, self.owners)
        return Coded(codes[:runs], ends[:runs], texts)

    def _scattered(self) -> bool:
        """Whether most codes stand one by one, by the bytes that they take."""
        if np.isin(self.table[:, _FORM], (_CODED, _NULLS)).all():
            values, end = self.table[:, _VALUES], self.table[:, _VALUES_END]
            widths = np.where(end > values, self.words.view(np.uint8)[np.minimum(values, self.words.nbytes - 1)], 32)
            return bool(((end - values - 1) * 8 / np.maximum(widths, 1)).sum() > self.table[:, _COUNT].sum() / 2)
        return False

    def _by_row(self, entries: npt.NDArray[np.int32], texts: pa.LargeBinaryArray) -> Coded | CodedRows:
        from windrow.kernels.pages import decode_rows, join_rows

        codes = np.empty(self.rows, np.int32)
        self._check(decode_rows(self.words, self.table.reshape(-1), entries, codes), self.owners)
        runs = int(np.count_nonzero(codes[1:] != codes[:-1])) + 1 if codes.size else 0
        if runs > MANY_RUNS * self.rows:
            return CodedRows(codes, texts)
        out, ends = np.empty(runs, np.int32), np.empty(runs, np.int64)
        join_rows(codes, out, ends)
        return Coded(out, ends, texts)

    def _plain_entries(self) -> tuple[Longs, Longs, Sequence[str]]:
        """The table, and the stretches of texts and whose they are; a page in PLAIN is a dictionary of its own."""
        from windrow.kernels.pages import count_set

        plain = np.flatnonzero(self.table[:, _FORM] == _PLAIN)
        if not plain.size:
            return self.table, self.dictionaries, self.dictionary_owners
        owners = [self.owners[page] for page in plain.tolist()]
        counts = np.zeros(plain.size, np.int64)
        self._check(count_set(self.words, self.table[plain].reshape(-1), counts), owners)
        table = self.table.copy()
        table[plain, _ENTRIES] = counts
        table[plain, _ENTRY] = int(self.dictionaries[:, 2].sum()) + np.cumsum(counts) - counts
        own = np.stack([table[plain, _VALUES], table[plain, _VALUES_END], counts], axis=1)
        return table, np.concatenate([self.dictionaries, own]), [*self.dictionary_owners, *owners]

    def _index(self, stretches: Longs, owners: Sequence[str]) -> tuple[Longs, Longs]:
        """Where the texts of all stretches are, and how long."""
        from windrow.kernels.pages import index_texts

        # each text has a length of four bytes, so that nothing is made room for which cannot be there
        self._refuse(stretches[:, 2] * 4 > stretches[:, 1] - stretches[:, 0], owners)
        total = int(stretches[:, 2].sum())
        offsets, lengths = np.empty(total, np.int64), np.empty(total, np.int64)
        starts, ends, counts = np.ascontiguousarray(stretches.T)
        self._check(index_texts(self.words, starts, ends, counts, offsets, lengths), owners)
        return offsets, lengths

    def _refuse(self, wrong: npt.NDArray[np.bool_], owners: Sequence[str]) -> None:
        self._check(int(np.argmax(wrong)) if wrong.any() else -1, owners)

    @staticmethod
    def _check(wrong: int, owners: Sequence[str]) -> None:
        if wrong >= 0:
            raise Damaged(f"{owners[wrong]}: a page cannot be decoded; the file is damaged, write it again")


def _ranked(
    words: npt.NDArray[np.uint64], offsets: Longs, lengths: Longs
) -> tuple[pa.LargeBinaryArray, npt.NDArray[np.int32]]:
    """Distinct texts in their order, and the place of each in it."""
    from windrow.kernels.texts import copy_texts

    data, ends = np.empty(int(lengths.sum()), np.uint8), np.zeros(lengths.size + 1, np.int64)
    copy_texts(words.view(np.uint8), offsets, lengths, 0, data, ends[1:])
    texts = pa.Array.from_buffers(pa.large_binary(), lengths.size, [None, pa.py_buffer(ends), pa.py_buffer(data)])
    order = pc.sort_indices(texts)
    ranks = np.empty(lengths.size, np.int32)
    ranks[from_arrow(order, np.uint64)] = np.arange(lengths.size, dtype=np.int32)
    return texts.take(order), ranks


def unpack(source: memoryview, pages: Records, chunks: Chunks) -> Unpacked:
    """Decompress the wanted pages of one column; `pages` are those of `chunks`, numbered from its first."""
    wanted, table = _wanted(pages, chunks)
    dictionary = pages["kind"] == DICTIONARY_PAGE
    dictionary &= np.isin(pages["chunk"], pages["chunk"][wanted])
    order = np.concatenate([np.flatnonzero(dictionary), np.flatnonzero(wanted)])
    chosen = pages[order]
    verify_pages(source, chosen, chunks)
    words, offsets = _inflate(source, chosen, chunks)
    count = int(dictionary.sum())
    dictionaries = np.stack([offsets[:count], offsets[1 : count + 1], chosen["num_values"][:count]], axis=1)
    _place(table, words, offsets[count:], chosen[count:], chunks)
    _name_entries(table, chosen[count:], chosen["chunk"][:count], dictionaries, chunks)
    owners = [chunks.names[owner] for owner in chosen["chunk"][:count].tolist()]
    return _with_null_chunks(Unpacked(words, table, dictionaries, (), owners, 0), chosen["chunk"][count:], chunks)


def _wanted(pages: Records, chunks: Chunks) -> tuple[npt.NDArray[np.bool_], Longs]:
    """Which data pages hold wanted rows, and the table of these with the rows in it."""
    is_data = pages["kind"] != DICTIONARY_PAGE
    counts = np.where(is_data, pages["num_values"], 0)
    row = np.cumsum(counts) - counts
    firsts = np.searchsorted(pages["chunk"], np.arange(chunks.starts.size))
    row -= row[np.minimum(firsts, row.size - 1)][pages["chunk"]] if row.size else row
    first = np.clip(chunks.first[pages["chunk"]] - row, 0, counts)
    last = np.clip(chunks.last[pages["chunk"]] - row, 0, counts)
    wanted = is_data & (last > first)
    table = np.zeros((int(wanted.sum()), 10), np.int64)
    table[:, _COUNT], table[:, _FIRST], table[:, _LAST] = counts[wanted], first[wanted], last[wanted]
    return wanted, table


def _inflate(source: memoryview, pages: Records, chunks: Chunks) -> tuple[npt.NDArray[np.uint64], Longs]:
    """The decompressed pages behind each other, and where each begins; last where the last ends."""
    levels = np.where(pages["kind"] == DATA_PAGE_V2, pages["definition_length"] + pages["repetition_length"], 0)
    wrong = (levels > np.minimum(pages["compressed"], pages["uncompressed"])) | (pages["uncompressed"] >= LARGEST_PAGE)
    wrong |= (pages["definition_length"] < 0) | (pages["repetition_length"] < 0)
    if wrong.any():
        name = chunks.names[int(pages["chunk"][np.argmax(wrong)])]
        raise Damaged(f"{name}: the sizes of a page contradict each other; write the file again")
    codecs = np.where(pages["flags"] & STORED, Codec.UNCOMPRESSED, chunks.codecs[pages["chunk"]])
    offsets = np.concatenate([[0], np.cumsum(pages["uncompressed"])])
    words = _room(int(offsets[-1]) // 8 + 3, chunks.names)
    compressed = set(codecs.tolist()) - {Codec.UNCOMPRESSED}
    if compressed <= {Codec.ZSTD} or compressed <= {Codec.SNAPPY}:
        is_snappy = Codec.SNAPPY in compressed
        _inflate_all(source, pages, levels, codecs == Codec.UNCOMPRESSED, words, chunks, is_snappy=is_snappy)
    else:
        room, at = words.view(np.uint8), 0
        for part in _inflate_each(source, pages, levels, codecs, chunks):
            room[at : at + len(part)] = np.frombuffer(part, np.uint8)
            at += len(part)
    return words, offsets


def _room(size: int, names: Sequence[str]) -> Words:
    """Words for pages, the last of them 0: a value of any width is cut out of two."""
    try:
        words = np.empty(size, np.uint64)
    except MemoryError as error:
        raise Damaged(
            f"{names[0]}: this column claims to have {8 * size} bytes in what is read at once; "
            "write it again, or give the merge more memory"
        ) from error
    words[-3:] = 0
    return words


def _inflate_all(
    source: memoryview,
    pages: Records,
    levels: Longs,
    stored: npt.NDArray[np.bool_],
    words: Words,
    chunks: Chunks,
    *,
    is_snappy: bool,
) -> None:
    """Decompress all pages by one call; those that are not stored as they are have the same codec."""
    from windrow.kernels.frames import inflate
    from windrow.kernels.snappy import inflate_snappy

    body, compressed, whole = (np.ascontiguousarray(pages[name]) for name in ("body", "compressed", "uncompressed"))
    places = body, np.ascontiguousarray(levels, np.int64), compressed, whole, stored
    data, room = np.frombuffer(source, np.uint8), words.view(np.uint8)
    wrong = inflate_snappy(data, places, room) if is_snappy else inflate(zstd_decompressor(), data, places, room)
    if wrong >= 0:
        name = chunks.names[int(pages["chunk"][wrong])]
        raise Damaged(f"{name}: a page cannot be decompressed; the file is damaged, write it again")


def _inflate_each(
    source: memoryview, pages: Records, levels: Longs, codecs: Longs, chunks: Chunks
) -> Iterator[bytes | memoryview]:
    """Decompress pages one by one, as Arrow's codecs do it."""
    items = zip(
        pages["body"].tolist(),
        levels.tolist(),
        pages["compressed"].tolist(),
        pages["uncompressed"].tolist(),
        codecs.tolist(),
        pages["chunk"].tolist(),
        strict=True,
    )
    by_codec = {codec: decompressor(codec) for codec in set(codecs.tolist())}
    for body, level, compressed, size, codec, chunk in items:
        yield source[body : body + level]
        if size > level:
            yield _decompressed(by_codec[codec], source[body + level : body + compressed], size - level, chunks, chunk)


def _decompressed(
    decompress: Callable[[Any, int], Any], data: memoryview, size: int, chunks: Chunks, chunk: int
) -> Any:
    try:
        part = decompress(data, size)
    except (Damaged, OSError, pa.ArrowException) as error:
        raise Damaged(f"{chunks.names[chunk]}: a page cannot be decompressed: {error}") from error
    if len(part) != size:
        raise Damaged(f"{chunks.names[chunk]}: a page has {len(part)} bytes, not {size}; write the file again")
    return part


def _place(table: Longs, words: npt.NDArray[np.uint64], offsets: Longs, pages: Records, chunks: Chunks) -> None:
    """Say where levels and values of each data page are."""
    data = words.view(np.uint8)
    start, end = offsets[:-1], offsets[1:]
    nullable = chunks.nullable[pages["chunk"]]
    prefixed = nullable & (pages["kind"] == DATA_PAGE)
    table[:, _LEVELS] = start + np.where(prefixed, 4, pages["repetition_length"])
    bytes_ = data[np.minimum(start[:, None] + np.arange(4), data.size - 1)].astype(np.int64)
    stated = bytes_ @ (1 << np.arange(0, 32, 8))
    length = np.where(prefixed, stated, np.where(nullable, pages["definition_length"], 0))
    table[:, _LEVELS_END] = table[:, _LEVELS] + length
    table[:, _VALUES], table[:, _VALUES_END] = table[:, _LEVELS_END], end
    wrong = np.flatnonzero((table[:, _VALUES] > end) | (nullable & (length == 0)))
    if wrong.size:
        raise Damaged(
            f"{chunks.names[pages['chunk'][wrong[0]]]}: the levels of a page are not inside of it; write it again"
        )


def _name_entries(table: Longs, pages: Records, owners: Longs, dictionaries: Longs, chunks: Chunks) -> None:
    """Say how the values of each data page are written, and where the entries of its dictionary begin."""
    table[:, _FORM] = [_FORMS[encoding] for encoding in pages["encoding"].tolist()]
    coded = table[:, _FORM] == _CODED
    if not coded.any():
        return
    firsts = np.cumsum(dictionaries[:, 2]) - dictionaries[:, 2]
    place = np.searchsorted(owners, pages["chunk"])
    nearest = np.minimum(place, max(owners.size - 1, 0))
    lost = coded & (owners[nearest] != pages["chunk"]) if owners.size else coded
    if lost.any():
        name = chunks.names[int(pages["chunk"][np.argmax(lost)])]
        raise Damaged(f"{name}: a page refers to a dictionary that its chunk lacks; write the file again")
    table[:, _ENTRY], table[:, _ENTRIES] = firsts[nearest], np.where(coded, dictionaries[nearest, 2], 0)


def _with_null_chunks(unpacked: Unpacked, owners: Longs, chunks: Chunks) -> Unpacked:
    """Give every chunk that has no bytes a page of nulls, in its place among the others."""
    missing = np.flatnonzero((chunks.starts == chunks.ends) & (chunks.last > chunks.first))
    table = unpacked.table
    if missing.size:
        nulls = np.zeros((missing.size, 10), np.int64)
        nulls[:, _FORM], nulls[:, _LAST] = _NULLS, (chunks.last - chunks.first)[missing]
        order = np.argsort(np.concatenate([owners, missing]), kind="stable")
        table, owners = np.concatenate([table, nulls])[order], np.concatenate([owners, missing])[order]
    counts = np.bincount(owners, table[:, _LAST] - table[:, _FIRST], chunks.starts.size).astype(np.int64)
    wrong = np.flatnonzero(counts != chunks.last - chunks.first)
    if wrong.size:
        raise Damaged(
            f"{chunks.names[wrong[0]]}: its pages hold {counts[wrong[0]]} of the requested rows; write it again"
        )
    rows = int(counts.sum())
    return replace(unpacked, table=table, owners=[chunks.names[owner] for owner in owners.tolist()], rows=rows)
