"""The numbers that a thrift grammar and the kernel that walks by it share.

They live apart from the kernel so that a grammar can be built without loading the compiler.
"""

from __future__ import annotations

# A grammar is a flat array: for each struct RULES rules of RULE_SIZE numbers. Rule 0 describes the struct itself,
# rule n its field with the id n, and the last all other fields: they are passed over. The last struct is that of all
# structs which are passed over. A struct is named by the position of its rule 0, a table by the position of its first
# number.
FIELDS = 32
RULES = FIELDS + 1
RULE_SIZE = 6
STRUCT_SIZE = RULES * RULE_SIZE

# The numbers of a field's rule: what to do with the value, where it goes in the record (-1 for nowhere; in 64-bit
# words for INT64, BYTES and ROWS, else in 32-bit words), which bit of the record's flags tells of it, which struct
# the value is, and which thrift types it can have, a bit for each.
ACTION, SLOT, FLAG, NEXT, FITS = range(5)
SKIP, INT32, INT64, BOOL, NEGATED, BYTES, MASK, STRUCT, ROWS = range(9)

# The numbers of a struct's rule 0: the flags that must be set at its end, the 32-bit word of the flags in the record,
# the table of its records (-1 if it is passed over), the 64-bit word that takes the record's own position (-1 for
# none), the fewest bytes that it can have, and whether it is no struct at all but the bare element of a list, which
# rule 1 describes.
REQUIRED, FLAGS_SLOT, TABLE, PLACE_SLOT, SMALLEST, BARE = range(6)

# The numbers of a table: its first record and the size of one (both in 64-bit words of the arena), how many there can
# be, and how many there are.
START, WIDTH, CAPACITY, USED = range(4)
TABLE_SIZE = 4

# Thrift compact types.
TRUE, FALSE, I8, I16, I32, I64, DOUBLE, BINARY, LIST, SET, MAP, RECORD, UUID = range(1, 14)

# What can be wrong.
TRUNCATED, OVERLONG, RANGE, KIND, LENGTH, DEEP, MISSING, REPEATED, FULL = range(1, 10)
