"""Hostile bytes: whatever is wrong with a file, it is refused with the field and the byte, in little memory."""

from __future__ import annotations

import json
import re
import tracemalloc
import zlib
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from windrow import errors
from windrow.errors import Damaged, Incompatible, NotFound
from windrow.sidecar import layout
from windrow.sidecar.inspect import describe
from windrow.sidecar.reader import Sidecar

HERE = Path(__file__).parent
GOLDEN = HERE.parent / "data" / "golden" / "pm"
REFUSALS = json.loads((HERE / "refusals.json").read_text())
FILES = sorted(GOLDEN.glob("*.pm"))


def with_crc(data: bytearray) -> bytes:
    """The same bytes with the CRC that they should have, as someone would write them who wants to be believed."""
    crc = zlib.crc32(data[8:-8])
    return bytes(data[:-8] + layout.U32.pack(crc) + data[-4:])


def patched(data: bytes, offset: int, change: bytes) -> bytes:
    return with_crc(bytearray(data[:offset] + change + data[offset + len(change) :]))


def footer_offset(data: bytes) -> int:
    return len(data) - 4 - int.from_bytes(data[-4:], "little")


def look_at_everything(data: bytes, *, verify: bool = True) -> dict[str, Any]:
    """Touch every byte that any reader would."""
    sidecar = Sidecar.of(data, verify=verify)
    return {key: value for key, value in describe(sidecar).items() if key != "committed_size"}


@pytest.mark.parametrize("refusal", REFUSALS, ids=lambda refusal: refusal["case"])
def test_a_crafted_file_is_refused_by_name(refusal: dict[str, Any]) -> None:
    data = (GOLDEN / f"{refusal['file']}.pm").read_bytes()
    start = {"header": 0, "footer": footer_offset(data), "trailer": len(data) - 4}[refusal["at"][0]]
    crafted = patched(data, start + refusal["at"][1], bytes.fromhex(refusal["hex"]))
    with pytest.raises(getattr(errors, refusal["error"]), match=refusal["says"]) as caught:
        look_at_everything(crafted)
    assert re.search(r"byte \d+", str(caught.value))


def test_a_sorting_column_is_the_position_of_a_column(make: SimpleNamespace) -> None:
    case = json.loads((GOLDEN / "a_simple_3col_2rg.json").read_text())["create"]
    data = make.create({**case, "sorting_columns": [1, 0]})
    assert Sidecar.of(data).sorting == (1, 0)
    second = layout.HEADER_SIZE + 3 * layout.DESCRIPTOR_SIZE + 4
    with pytest.raises(Damaged, match="SORTING_COLUMNS at byte 128: 3 is no column of 3"):
        look_at_everything(patched(data, second, layout.U32.pack(3)))


@pytest.mark.parametrize("place", ["header", "footer"])
def test_unknown_optional_features_are_passed_over(place: str) -> None:
    data = (GOLDEN / "b3_bloom_squash_seq_scratch.pm").read_bytes()
    offset = 8 if place == "header" else footer_offset(data) + 32
    marked = patched(data, offset + 3, b"\x40")
    assert Sidecar.of(marked).seq_txn == 77
    assert Sidecar.of(marked).squash_tracker == 1234


def test_an_unknown_optional_feature_may_bring_bytes_before_the_crc() -> None:
    data = (GOLDEN / "a_simple_3col_2rg.pm").read_bytes()
    start = footer_offset(data)
    flags = layout.U64.pack(1 << 7)
    longer = data[: start + 32] + flags + data[start + 40 : -8] + b"payload!" + data[-8:-4] + layout.U32.pack(60)
    sized = with_crc(bytearray(layout.U64.pack(len(longer)) + longer[8:]))
    assert Sidecar.of(sized).row_counts.tolist() == [1000, 500]


def test_required_features_of_a_newer_footer_do_not_hide_an_older_one() -> None:
    data = (GOLDEN / "e_update_chain_3.step2.pm").read_bytes()
    future = patched(data, footer_offset(data) + 36, b"\x01")
    with pytest.raises(Incompatible):
        Sidecar.of(future)
    assert Sidecar.of(future, parquet_size=30608).row_group_count == 2


class TestChains:
    """Chains of footers that do not end, or end nowhere."""

    @pytest.mark.parametrize(
        ("previous", "says"),
        [
            (1116, "would not end"),
            (2000, "would not end"),
            (2**64 - 1, "would not end"),
            (1, "smallest"),
            (79, "smallest"),
            (500, "FOOTER_LENGTH at byte 496"),
        ],
    )
    def test_a_previous_size_that_leads_nowhere(self, previous: int, says: str) -> None:
        data = (GOLDEN / "e_update_chain_3.step2.pm").read_bytes()
        looped = patched(data, footer_offset(data) + 24, layout.U64.pack(previous))
        with pytest.raises(Damaged, match=says):
            Sidecar.of(looped, parquet_size=1)
        assert Sidecar.of(looped).row_group_count == 3

    def test_two_footers_that_point_at_each_other(self) -> None:
        data = bytearray((GOLDEN / "e_update_chain_3.step2.pm").read_bytes())
        data[600 + 24 : 600 + 32] = layout.U64.pack(1116)
        with pytest.raises(Damaged, match="would not end"):
            Sidecar.of(with_crc(data), parquet_size=1)

    def test_a_parquet_size_that_no_footer_has(self) -> None:
        with pytest.raises(NotFound, match="12345"):
            Sidecar.open(GOLDEN / "e_update_chain_3.step2.pm", parquet_size=12345)

    def test_a_chain_of_too_many_footers(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(layout, "LONGEST_CHAIN", 2)
        with pytest.raises(Damaged, match="more than 2 footers"):
            Sidecar.open(GOLDEN / "e_update_chain_3.step2.pm", parquet_size=12345)
        assert Sidecar.open(GOLDEN / "e_update_chain_3.step2.pm", parquet_size=30608).row_group_count == 2


def refused_or_same(data: bytes, accepted: Callable[[], list[dict[str, Any]]], *, verify: bool = True) -> bool:
    """Whether bytes are refused; if they are not, they must say what some whole file says."""
    try:
        found = look_at_everything(data, verify=verify)
    except (Damaged, Incompatible):
        return True
    assert found in accepted()
    return False


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.stem)
def test_every_truncation_is_refused(path: Path) -> None:
    data = path.read_bytes()
    for length in range(len(data)):
        with pytest.raises(Damaged):
            Sidecar.of(data[:length])


@pytest.fixture(scope="module")
def rich(make: SimpleNamespace) -> bytes:
    """A file of about 4 KB that has every section, three snapshots and a dead footer."""
    case = json.loads((GOLDEN / "b2_bloom_inlined_ool_interleaved.json").read_text())
    extra = {"squash_tracker": 5, "seq_txn": 6, "scratchpad": [{"code": 7, "hex": "0102"}], "designated_timestamp": 0}
    data = make.create({**case["create"], **extra, "sorting_columns": [0, 1]})
    group = case["create"]["row_groups"][0]
    for number, base in enumerate((0, 1, 1, 0)):
        header = Sidecar.of(data).header.committed_size
        anchor = [snapshot.footer.size for snapshot in Sidecar.of(data).snapshots()][min(base, number)]
        change = {
            "parse_anchor": anchor,
            "append_base": header,
            "replace": [{"index": 0, "row_group": group}],
            "add": [group],
            "parquet_footer_offset": 50_000 + number * 1_000,
            "parquet_footer_length": 777,
            "unused_bytes": number,
            "seq_txn": number,
            "scratchpad": None,
        }
        data = make.update(data, change)
    assert 3_500 < len(data) < 5_500
    return data


def test_every_flipped_bit_is_refused_or_shows_an_older_snapshot(rich: bytes) -> None:
    sizes = [snapshot.footer.size for snapshot in Sidecar.of(rich).snapshots()]
    older = [look_at_everything(layout.U64.pack(size) + rich[8:]) for size in sizes]
    data = bytearray(rich)
    outcomes = Counter[bool]()
    for position in range(len(data)):
        for bit in range(8):
            data[position] ^= 1 << bit
            refused = refused_or_same(bytes(data), lambda: older)
            assert refused or position < 8
            outcomes[refused] += 1
            data[position] ^= 1 << bit
    print(f"{outcomes.total()} flipped bits: {outcomes[True]} refused, {outcomes[False]} showed an older snapshot")


def mutate(data: bytes, changes: list[tuple[int, int]], cut: int, *, believable: bool) -> bytes:
    mutated = bytearray(data)
    for place, value in changes:
        mutated[place % len(mutated)] = value
    mutated = mutated[: max(len(mutated) - cut, 0)]
    return with_crc(mutated) if believable and len(mutated) > 8 else bytes(mutated)


MUTATIONS = given(
    path=st.sampled_from(FILES),
    changes=st.lists(st.tuples(st.integers(0, 2**16), st.integers(0, 255)), min_size=1, max_size=4),
    cut=st.sampled_from([0, 0, 0, 1, 8, 60]),
    believable=st.booleans(),
    verify=st.booleans(),
)


def survives(path: Path, changes: list[tuple[int, int]], cut: int, believable: bool, verify: bool) -> None:
    try:
        look_at_everything(mutate(path.read_bytes(), changes, cut, believable=believable), verify=verify)
    except (Damaged, Incompatible, NotFound):
        return


@settings(max_examples=300, deadline=None)
@MUTATIONS
def test_mutated_files_are_refused_or_read_but_never_crash(
    path: Path, changes: list[tuple[int, int]], cut: int, believable: bool, verify: bool
) -> None:
    survives(path, changes, cut, believable, verify)


@pytest.mark.long
@settings(max_examples=200_000, deadline=None)
@MUTATIONS
def test_two_hundred_thousand_mutations(
    path: Path, changes: list[tuple[int, int]], cut: int, believable: bool, verify: bool
) -> None:
    survives(path, changes, cut, believable, verify)


@settings(max_examples=200, deadline=None)
@given(st.binary(max_size=300))
def test_bytes_that_never_were_a_sidecar_are_refused(data: bytes) -> None:
    with pytest.raises((Damaged, Incompatible)):
        Sidecar.of(data)


def test_counts_that_promise_more_than_the_file_has_cost_no_memory() -> None:
    data = bytearray((GOLDEN / "a_simple_3col_2rg.pm").read_bytes())
    data[24:28] = layout.U32.pack(2**32 - 1)
    tracemalloc.start()
    with pytest.raises(Damaged):
        Sidecar.of(with_crc(data))
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert peak < 100_000


def test_row_groups_that_share_one_block_cannot_multiply_the_file(make: SimpleNamespace) -> None:
    case = json.loads((GOLDEN / "a_simple_3col_2rg.json").read_text())["create"]
    wide = {**case, "columns": case["columns"] * 40}
    wide["row_groups"] = [{"num_rows": 1, "chunks": case["row_groups"][0]["chunks"] * 40}]
    data = make.create(wide)
    start, entry = footer_offset(data), data[-12:-8]
    length = int.from_bytes(data[-4:], "little") + 4 * 999
    tail = data[start : start + 12] + layout.U32.pack(1_000) + data[start + 16 : start + 40] + entry * 1_000
    shared = data[:start] + tail + data[-8:-4] + layout.U32.pack(length)
    with pytest.raises(Damaged, match="1000 blocks"):
        Sidecar.of(with_crc(bytearray(layout.U64.pack(len(shared)) + shared[8:])))
