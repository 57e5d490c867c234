"""The suite for stores finds what is wrong: for each defect, the test that names it fails."""

import pytest

pytest_plugins = ["pytester"]

STORE = """
import dataclasses
import posixpath
import pytest
import time
from itertools import islice
from urllib.parse import unquote
from obstore.store import MemoryStore
from windrow.errors import AlreadyExists, NotFound
from windrow.storage.kinds import MEMORY
from windrow.storage.remote import ObstoreStore
from windrow.testing import StoreTests

class Defective(ObstoreStore):
{defect}

class TestDefective(StoreTests):
    @pytest.fixture
    def store(self):
        return Defective(MemoryStore(), "memory://", MEMORY)
"""

DEFECTS = {
    "test_keys_are_listed_in_their_order": """
    def list(self, prefix="", *, after=None):
        return reversed(list(super().list(prefix, after=after)))
""",
    "test_a_prefix_is_a_folder": """
    def list(self, prefix="", *, after=None):
        return (info for info in super().list(after=after) if info.key.startswith(prefix))
""",
    "test_a_listing_starts_after_a_key": """
    def list(self, prefix="", *, after=None):
        return (info for info in super().list(prefix) if info.key >= (after or ""))
""",
    "test_a_listing_of_many_pages_is_complete_and_lazy": """
    def list(self, prefix="", *, after=None):
        return islice(super().list(prefix, after=after), 1000)
""",
    "test_put_if_absent_writes_once": """
    def put_if_absent(self, key, data):
        return self.put(key, data)
""",
    "test_put_if_absent_has_one_winner": """
    def put_if_absent(self, key, data):
        try:
            self.head(key)
        except NotFound:
            time.sleep(0.001)
            return self.put(key, data)
        raise AlreadyExists(key)
""",
    "test_delete_may_be_repeated": """
    def delete(self, key):
        self.head(key)
        super().delete(key)
""",
    "test_a_range_beyond_the_object_fails": """
    def get_ranges(self, key, ranges):
        data = self.get(key)
        return [data[each.start : each.end] for each in ranges]
""",
    "test_ranges_come_in_the_order_they_were_asked_for": """
    def get_ranges(self, key, ranges):
        return super().get_ranges(key, sorted(ranges, key=lambda each: each.start))
""",
    "test_a_suffix_is_the_end_or_the_whole_object": """
    def get_suffix(self, key, length):
        info = self.head(key)
        return self.get(key)[info.size - length :], info
""",
    "test_the_etag_changes_with_the_object": """
    def put(self, key, data):
        return dataclasses.replace(super().put(key, data), etag="1")
""",
    "test_readers_see_whole_versions_while_an_object_is_replaced": """
    def put(self, key, data):
        super().put(key, data[: len(data) // 2])
        time.sleep(0.001)
        return super().put(key, data)
""",
    "test_odd_keys_name_one_object_each": """
    def put(self, key, data):
        return super().put(unquote(key), data)
""",
    "test_a_hostile_key_is_refused_by_every_verb": """
    def head(self, key):
        return super().head(posixpath.normpath(key).lstrip("/"))
""",
}


@pytest.mark.parametrize("test", DEFECTS)
def test_a_defect_is_found(pytester, test):
    pytester.makepyfile(STORE.format(defect=DEFECTS[test]))
    result = pytester.runpytest_inprocess("-q", "-p", "no:cacheprovider", "-k", test)
    assert result.ret == pytest.ExitCode.TESTS_FAILED
    assert result.parseoutcomes()["failed"] >= 1


def test_a_sound_store_passes(pytester):
    pytester.makepyfile(STORE.format(defect="    pass"))
    result = pytester.runpytest_inprocess("-q", "-p", "no:cacheprovider")
    assert result.ret == pytest.ExitCode.OK
