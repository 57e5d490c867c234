from __future__ import annotations

import contextlib
import os
import random
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from windrow.errors import Damaged, Incompatible
from windrow.kernels import rules as r
from windrow.kernels.compiled import VARIABLE
from windrow.kernels.runs import take_fixed
from windrow.kernels.thrift import MAX_DEPTH, walk
from windrow.parquet.bloom import read_bloom
from windrow.parquet.footer import parse_footer, read_footer
from windrow.parquet.page_headers import read_page_header
from windrow.parquet.page_index import parse_column_index, parse_offset_index

DATA = Path(__file__).parents[1] / "data"
TELLING = [0x00, 0x0C, 0x15, 0x18, 0x19, 0x1C, 0x7F, 0x80, 0xF5, 0xF9, 0xFC, 0xFF]


def one_number_grammar() -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """A struct whose field 1 goes to the second word of its record, the one record of the one table."""
    grammar = np.zeros((2, r.RULES, r.RULE_SIZE), np.int64)
    grammar[:, 1:, r.NEXT] = r.STRUCT_SIZE
    grammar[0, 0] = 0, 0, 0, -1, 1, 0
    grammar[1, 0, r.TABLE] = -1
    grammar[0, 1, :5] = r.INT64, 1, 1, r.STRUCT_SIZE, 1 << r.I64
    return grammar.reshape(-1), np.array([0, 2, 1, 0]), np.zeros(2, np.int64)


def test_the_arena_holds_what_the_bytes_say():
    grammar, tables, arena = one_number_grammar()
    data = np.frombuffer(b"\x16\x54\x00", np.uint8)
    end, *_ = walk(data, 0, grammar, tables, arena)
    assert end == 3
    assert arena.tolist() == [1, 42]
    assert tables[r.USED] == 1


def test_trouble_is_returned_with_its_place():
    grammar, tables, arena = one_number_grammar()
    data = np.frombuffer(b"\x16\x54\x16", np.uint8)
    code, struct, field, last = walk(data, 0, grammar, tables, arena)
    assert (code, struct, field, last) == (-r.TRUNCATED, 0, 2, 0)


@pytest.mark.parametrize("depth", [MAX_DEPTH - 1, MAX_DEPTH, 10 * MAX_DEPTH])
def test_nesting_is_followed_as_far_as_the_stack_goes(depth):
    grammar, tables, arena = one_number_grammar()
    data = np.frombuffer(b"\x2c" + b"\x1c" * (depth - 1) + bytes(depth + 1), np.uint8)
    end, *_ = walk(data, 0, grammar, tables, arena)
    assert end == (data.size if depth < MAX_DEPTH else -r.DEEP)


def samples() -> list[tuple]:
    """Readers that walk, each with good bytes."""
    found = []
    for path in sorted(DATA.glob("**/*.parquet")):
        data = path.read_bytes()
        with contextlib.suppress(Damaged):
            footer = read_footer(data, name=path.name)
            chunk = footer.chunks[0, 0]
            found += [
                (parse_footer, footer.metadata),
                (read_page_header, data[chunk["data_page_offset"] :][:100]),
                (parse_offset_index, data[chunk["offset_index_offset"] :][: chunk["offset_index_length"]]),
                (parse_column_index, data[chunk["column_index_offset"] :][: chunk["column_index_length"]]),
                (read_bloom, data[chunk["bloom_offset"] :][: chunk["bloom_length"]]),
            ]
    return [(reader, data) for reader, data in found if 0 < len(data) < 4000]


def damaged(data: bytes, chance: random.Random) -> bytes:
    """The bytes cut, replaced, or changed in a few places."""
    out = bytearray(data)
    if chance.random() < 0.2:
        del out[chance.randrange(len(out)) :]
    elif chance.random() < 0.1:
        out = bytearray(chance.randbytes(chance.randrange(300)))
    for _ in range(chance.choice([1, 1, 2, 5, 20]) if out else 0):
        byte = chance.choice(TELLING) if chance.random() < 0.7 else chance.randrange(256)
        out[chance.randrange(len(out))] = byte
    return bytes(out)


def attack(seed: int, count: int) -> int:
    """Read damaged bytes many times; how many were refused. Anything else than reading and refusing is raised."""
    chance, good, refused = random.Random(seed), samples(), 0
    for _ in range(count):
        reader, data = chance.choice(good)
        try:
            reader(damaged(data, chance), name="file")
        except (Damaged, Incompatible):
            refused += 1
    return refused


def test_damaged_bytes_are_read_or_refused():
    assert 0 < attack(1, 4000) < 4000


def test_no_damage_leads_out_of_bounds():
    # kernels that check every access
    env = {**os.environ, VARIABLE: "checked"}
    done = subprocess.run([sys.executable, __file__], env=env, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert done.stdout == "checked\n"


def attack_with_checks() -> None:
    values = np.zeros(3, np.uint64)
    try:
        take_fixed(np.array([3], np.int32), values, values)
    except IndexError:
        attack(2, 4000)
        print("checked")


if __name__ == "__main__":
    attack_with_checks()
