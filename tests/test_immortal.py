"""What is abandoned is never destroyed, with or without the trick."""

from __future__ import annotations

import gc
import subprocess
import sys

import pytest

from windrow.immortal import abandon
from windrow.tricks import Trick, without


class Thing:
    def __init__(self, ended):
        self.ended = ended

    def __del__(self):
        self.ended.append(True)


def test_an_object_stays_while_the_process_works():
    ended = []
    with without(Trick.IMMORTAL_OBJECTS):
        abandon(Thing(ended))
    abandon(Thing(ended))
    gc.collect()
    assert not ended


ENDING = """
import sys
from windrow.immortal import abandon
class Thing:
    def __del__(self):
        print("destroyed")
abandon(Thing())
"""


@pytest.mark.parametrize(("off", "said"), [("", ""), ("immortal-objects", "destroyed\n")])
def test_the_trick_reaches_beyond_the_end_of_the_interpreter(monkeypatch, off, said):
    monkeypatch.setenv("WINDROW_WITHOUT_TRICKS", off)
    assert subprocess.run([sys.executable, "-c", ENDING], capture_output=True, text=True, check=True).stdout == said
