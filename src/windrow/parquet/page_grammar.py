"""Which fields of a page header are read, and the record they go to."""

from __future__ import annotations

import numpy as np

from windrow.parquet.grammar import Grammar, Struct, Table, integer, negated, struct

__all__ = ["DATA_PAGE", "DATA_PAGE_V2", "DICTIONARY_PAGE", "PAGE", "PAGE_GRAMMAR", "PROTECTED", "STORED"]

DATA_PAGE, INDEX_PAGE, DICTIONARY_PAGE, DATA_PAGE_V2 = range(4)

STORED = 1
"""Set in the flags of a page that is not compressed, whatever the codec of its chunk."""

PROTECTED = 2
"""Set in the flags of a page whose header states the CRC-32 of its bytes."""

PAGE: np.dtype[np.void] = np.dtype(
    [
        ("flags", "<u8"),
        ("kind", "<i8"),
        ("uncompressed", "<i8"),
        ("compressed", "<i8"),
        ("num_values", "<i8"),
        ("encoding", "<i8"),
        ("level_encoding", "<i8"),
        ("definition_length", "<i8"),
        ("repetition_length", "<i8"),
        ("body", "<i8"),
        ("chunk", "<i8"),
        ("crc", "<i8"),
    ]
)
"""One page. `body` is where the bytes behind its header begin, `chunk` the number of its chunk."""

_COUNTED = {1: integer("num_values"), 2: integer("encoding")}

PAGE_GRAMMAR = Grammar(
    "page header",
    (
        Struct(
            "PageHeader",
            "page",
            {
                1: integer("kind"),
                2: integer("uncompressed"),
                3: integer("compressed"),
                4: integer("crc", flag=PROTECTED),
                5: struct("data_page_header", "DataPageHeader"),
                7: struct("dictionary_page_header", "DictionaryPageHeader"),
                8: struct("data_page_header_v2", "DataPageHeaderV2"),
            },
            required=(1, 2, 3),
        ),
        Struct("DataPageHeader", "page", {**_COUNTED, 3: integer("level_encoding")}, required=(1, 2)),
        Struct("DictionaryPageHeader", "page", _COUNTED, required=(1, 2)),
        Struct(
            "DataPageHeaderV2",
            "page",
            {
                1: integer("num_values"),
                4: integer("encoding"),
                5: integer("definition_length"),
                6: integer("repetition_length"),
                7: negated("is_compressed", flag=STORED),
            },
            required=(1, 4),
        ),
    ),
    {"page": Table(PAGE, 16)},
)
