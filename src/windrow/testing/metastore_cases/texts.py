"""Text of every kind in every field that holds text: it comes back as it was, or is refused with a reason."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pyarrow as pa
import pytest

from windrow.errors import InvalidInput
from windrow.metastore import Checkpoint, Metastore
from windrow.model.split import SidecarLocation
from windrow.testing.metastore_cases.samples import (
    TABLE,
    FakeClock,
    OpenAgain,
    a_split,
    a_table,
    add,
    begin,
    everything,
    scope,
    zone,
)

__all__ = ["HOSTILE_TEXTS", "IMPOSSIBLE_TEXTS", "TextCases"]

HOSTILE_TEXTS = (
    "'; DROP TABLE windrow_splits; --",
    '"quoted"',
    "back\\slash \\N \\.",
    "100% %s %(name)s :name ? $1 {}",
    "tab\tnewline\nreturn\r\x01\x1b\x7f",
    "größe 日本語 🌾 e\u0301 é",
    "\u202eright to left\u2066",
    "\ufeff\u200b\u00a0",
    "\U0010ffff\ue000",
    " ",
    "NULL",
    "x" * 5000,
)
"""Text that databases and formats stumble over."""

IMPOSSIBLE_TEXTS = ("a\0b", "\ud800", "a\udfffb")
"""Text that not every database can hold."""

Write = Callable[[Metastore, str], object]


def _split_with(**fields: Any) -> Write:
    def write(metastore: Metastore, text: str) -> object:
        texts = {name: make(text) for name, make in fields.items()}
        return metastore.publish("c1", add=[a_split("s1", "c1", **texts)])

    return write


FIELDS: dict[str, Write] = {
    "key of a split": _split_with(key=str),
    "etag of a split": _split_with(etag=str),
    "key of a sidecar": _split_with(sidecar=lambda text: SidecarLocation(text, 0, 1)),
    "bounds": _split_with(zones=lambda text: (zone(text, text, 0, text), zone(1, 2), zone(None, None, 10))),
    "replaced ids": _split_with(replaces=lambda text: (text, "plain")),
    "source of a scope": _split_with(scope=lambda text: scope(source_id=text)),
    "source of a checkpoint": lambda metastore, text: metastore.publish("c1", checkpoint=Checkpoint(text, "1")),
    "position": lambda metastore, text: metastore.publish("c1", checkpoint=Checkpoint("kafka", text)),
    "summary": lambda metastore, text: metastore.publish("c1", summary={text: [text]}),
    "owner of a pin": lambda metastore, text: metastore.pin(TABLE, 0, pin_id="p", owner=text, seconds=60),
}


class TextCases:
    """The metastore does not read the texts it keeps."""

    @pytest.mark.parametrize("text", HOSTILE_TEXTS)
    def test_text_comes_back_as_it_was(self, metastore: Metastore, open_again: OpenAgain, text: str) -> None:
        a_table(metastore)
        metastore.reserve_columns(TABLE, pa.schema([(text, pa.string())]))
        split = a_split(
            "s1",
            "c1",
            key=text,
            etag=text,
            sidecar=SidecarLocation(text, 1, 2),
            zones=(zone(text, text, 0, text), zone(1, 2), zone(None, None, 10)),
            scope=scope(source_id=text),
            replaces=(text, "plain"),
        )
        add(metastore, "c1", split, checkpoint=Checkpoint(text, text), columns=[text], summary={text: [text]})
        pin = metastore.pin(TABLE, 1, pin_id="p", owner=text, seconds=60)
        client = open_again()
        assert list(client.splits(TABLE, 1)) == [[split]]
        assert client.checkpoint(TABLE, text) == text
        assert [column.name for column in client.columns(TABLE)] == [text]
        assert client.commit("c1").summary == {text: [text]}
        assert client.pins(TABLE) == [pin]

    @pytest.mark.parametrize("name", ["'; --", "a b", "größe", "🌾", "x" * 64, "%s", ":id", "\\N", '"'])
    def test_ids_are_any_printable_text(self, metastore: Metastore, open_again: OpenAgain, name: str) -> None:
        a_table(metastore, "metrics", name)
        begin(metastore, name, table_id=name)
        split = a_split(name, name, scope=scope(name))
        metastore.publish(name, add=[split])
        pin = metastore.pin(name, 1, pin_id=name, owner="me", seconds=60)
        assert list(open_again().splits(name, pin)) == [[split]]
        begin(metastore, f"{name[:62]}-2", table_id=name)
        assert metastore.publish(f"{name[:62]}-2", replace=[name]).removed == 1

    @pytest.mark.usefixtures("settable_clock")
    @pytest.mark.parametrize("text", IMPOSSIBLE_TEXTS)
    @pytest.mark.parametrize("field", FIELDS)
    def test_text_that_cannot_be_held_is_refused(self, metastore: Metastore, field: str, text: str) -> None:
        a_table(metastore)
        begin(metastore, "c1")
        before = everything(metastore)
        try:
            FIELDS[field](metastore, text)
        except InvalidInput:
            assert everything(metastore) == before
        else:
            assert everything(metastore) != before

    def test_a_column_name_that_cannot_be_held_is_refused(self, metastore: Metastore) -> None:
        a_table(metastore)
        schema = pa.schema([("a\0b", pa.int8())])
        try:
            metastore.reserve_columns(TABLE, schema)
        except InvalidInput:
            assert metastore.reserve_columns(TABLE, pa.schema([("plain", pa.int8())]))["plain"].field_id == 1
        else:
            add(metastore, "c1", columns=schema.names)
            assert [column.name for column in metastore.columns(TABLE)] == schema.names

    def test_many_splits_with_text_that_cannot_be_held_are_refused(
        self, metastore: Metastore, settable_clock: FakeClock
    ) -> None:
        a_table(metastore)
        begin(metastore, "c1")
        before = everything(metastore)
        splits = [a_split(f"s{number}", "c1") for number in range(200)]
        with pytest.raises(InvalidInput, match="Unicode"):
            metastore.publish("c1", add=[*splits, a_split("last", "c1", key="\ud800")])
        assert everything(metastore) == before
        settable_clock.advance(1)
        assert metastore.publish("c1", add=splits).added == 200

    @pytest.mark.parametrize("field", ["size_bytes", "row_count", "created_at", "generation"])
    def test_numbers_that_cannot_be_held_are_refused(self, metastore: Metastore, field: str) -> None:
        a_table(metastore)
        begin(metastore, "c1")
        before = everything(metastore)
        with pytest.raises(InvalidInput):
            metastore.publish("c1", add=[a_split("s1", "c1", **{field: 2**63})])
        assert everything(metastore) == before
