"""Zones that are read when they are asked for are like the tuple of them."""

import copy
import pickle

import pytest

from windrow.model.zones import StoredZones
from windrow.testing.metastore_cases.samples import a_split, zone

ZONES = (zone("a", "m", 0, "[am]"), zone(-1, 2**64 - 1), zone(float("-inf"), float("inf"), 3), zone(None, None, 10))


@pytest.fixture
def stored():
    return StoredZones(StoredZones.text_of(ZONES))


def test_stored_zones_equal_the_tuple_of_them(stored):
    assert stored == ZONES
    assert stored == ZONES
    assert stored == StoredZones(StoredZones.text_of(stored))
    assert hash(stored) == hash(ZONES)
    assert repr(stored) == repr(ZONES)


def test_stored_zones_differ_from_others(stored):
    assert stored != ZONES[:3]
    assert stored != StoredZones(StoredZones.text_of(ZONES[1:]))
    assert stored != list(ZONES)


def test_stored_zones_are_a_sequence(stored):
    assert len(stored) == 4
    assert (stored[0], stored[-1], stored[1:3]) == (ZONES[0], ZONES[-1], ZONES[1:3])
    assert list(stored) == list(ZONES)
    with pytest.raises(IndexError):
        stored[4]


def test_stored_zones_travel(stored):
    assert pickle.loads(pickle.dumps(stored)) == ZONES
    assert copy.deepcopy(stored) == ZONES


def test_splits_that_differ_by_how_their_zones_are_held_are_equal(stored):
    assert a_split("s", "c", zones=stored) == a_split("s", "c", zones=ZONES)
    assert len({a_split("s", "c", zones=stored), a_split("s", "c", zones=ZONES)}) == 1
