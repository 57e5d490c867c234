"""What every store has to do that has files on this machine: the part of `StoreTests` about local files.

A remote store is held to having none.
"""

from __future__ import annotations

import os

import pytest

from windrow.errors import Damaged, InvalidInput, NotFound, Replaced, StorageError
from windrow.storage.protocol import ByteRange, Identity, LocalFiles, Store

__all__ = ["LocalFilesTests"]

_DIGITS = b"0123456789"


class LocalFilesTests:
    """The conformance suite of `windrow.storage.LocalFiles`."""

    @pytest.fixture
    def local(self, store: Store) -> LocalFiles:
        """The local files of a store, with one object in it."""
        if store.local is None:
            pytest.skip("the store has no files on this machine")
        store.put("a/digits", _DIGITS)
        return store.local

    def test_what_a_store_can_do_stays_the_same(self, store: Store) -> None:
        before = store.root, store.is_remote
        store.put("a/digits", _DIGITS)
        assert (store.root, store.is_remote) == before
        assert (store.local is None) == store.is_remote
        assert store.is_remote or store.root is not None

    def test_an_open_file_reads_what_the_store_reads(self, store: Store, local: LocalFiles) -> None:
        opened = local.open("a/digits")
        assert [opened.read_at(0, 10), opened.read_at(3, 4), opened.read_at(9, 1)] == [_DIGITS, b"3456", b"9"]
        assert opened.read_at(3, 4) == store.get_ranges("a/digits", [ByteRange(3, 4)])[0]
        opened.announce(0, 10)
        assert opened.is_at_hand(0) in {True, False}
        opened.check()

    @pytest.mark.parametrize("beyond", [(10, 1), (9, 2), (0, 11), (2**40, 5)])
    def test_an_open_file_gives_no_short_bytes(self, local: LocalFiles, beyond: tuple[int, int]) -> None:
        with pytest.raises(StorageError, match="digits"):
            local.open("a/digits").read_at(*beyond)

    def test_an_open_file_stays_the_same_file(self, store: Store, local: LocalFiles) -> None:
        opened = local.open("a/digits")
        store.put("a/digits", b"other bytes")
        assert opened.read_at(0, 10) == _DIGITS
        store.delete("a/digits")
        assert opened.read_at(0, 10) == _DIGITS

    def test_what_is_missing_is_not_opened(self, local: LocalFiles) -> None:
        for key in ("no/such/key", "a", "a/digits/below"):
            with pytest.raises(NotFound, match=key):
                local.open(key)

    def test_only_the_expected_file_is_opened(self, store: Store, local: LocalFiles) -> None:
        head = store.head("a/digits")
        for expect in (None, Identity(10), head.identity):
            assert local.open("a/digits", expect=expect).read_at(0, 1) == b"0"
        for size in (9, 11):
            with pytest.raises(Damaged, match="digits"):
                local.open("a/digits", expect=Identity(size))
        store.put("a/digits", bytes(10))
        with pytest.raises(Replaced, match="digits"):
            local.open("a/digits", expect=head.identity)

    def test_a_file_that_was_written_to_is_noticed(self, store: Store, local: LocalFiles) -> None:
        opened = local.open("a/digits", expect=store.head("a/digits").identity)
        assert store.root is not None
        with (store.root / "a/digits").open("ab") as file:
            file.write(b"x")
        with pytest.raises(Replaced, match="digits"):
            opened.check()

    def test_many_files_are_read_at_once_in_their_order(self, store: Store, local: LocalFiles) -> None:
        store.put("b", b"abcdef")
        wanted = [("b", 6, ByteRange(0, 6)), ("a/digits", 10, ByteRange(3, 4)), ("b", 6, ByteRange(5, 1))]
        assert list(local.read_each(wanted)) == [b"abcdef", b"3456", b"f"]
        assert list(local.read_each([])) == []

    def test_files_that_are_not_as_expected_have_no_bytes(self, local: LocalFiles) -> None:
        digits = ByteRange(0, 1)
        odd = [("no/such/key", 10, digits), ("a/digits", 9, digits), ("a", 10, digits)]
        odd.append(("a/digits", 10, ByteRange(8, 5)))
        assert list(local.read_each(odd)) == [None] * len(odd)

    def test_a_path_leads_to_the_object_where_there_is_one(self, local: LocalFiles) -> None:
        path = local.path("a/digits")
        assert path is None or path.read_bytes() == _DIGITS

    def test_hidden_files_are_found_and_removed(self, store: Store, local: LocalFiles) -> None:
        assert list(local.unfinished("a")) == []
        assert store.root is not None
        hidden = store.root / "a" / f".windrow-{os.getpid()}-99-digits.tmp"
        hidden.write_bytes(b"0123")
        [found] = local.unfinished("a")
        assert (found.path, found.key) == (hidden, "a/digits")
        assert list(local.unfinished("b")) == []
        assert local.remove_unfinished(found)
        assert not local.remove_unfinished(found)
        assert not hidden.exists()

    @pytest.mark.parametrize("key", ["", "/etc/passwd", "../secret", "a//b", "a\0b"])
    def test_hostile_keys_of_files_are_refused(self, local: LocalFiles, key: str) -> None:
        with pytest.raises(InvalidInput, match="storage key"):
            local.open(key)
        with pytest.raises(InvalidInput, match="storage key"):
            local.read_each([(key, 1, ByteRange(0, 1))])
