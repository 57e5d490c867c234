"""CPU of a tree of processes."""

from __future__ import annotations

import subprocess
import sys
import time

from benchmarks.measure import TreeClock

BUSY = "import time\nwhile time.process_time() < 0.5: pass\n"


def test_a_child_counts_while_it_runs_and_after_it_was_waited_for():
    clock = TreeClock()
    child = subprocess.Popen([sys.executable, "-c", f"{BUSY}print(flush=True)\ninput()"], stdin=-1, stdout=-1)
    child.stdout.readline()
    running = clock()
    child.communicate(b"\n")
    assert 0.4 <= running <= clock() < running + 0.4


def test_a_child_that_ended_unwaited_for_takes_nothing_back():
    keeper = f"""
import os, signal, sys, time
signal.signal(signal.SIGCHLD, signal.SIG_IGN)
child = os.fork()
if not child:
    {BUSY.replace(chr(10), chr(10) + "    ")}
    time.sleep(60)
print(child, flush=True)
input()
os.kill(child, signal.SIGKILL)
time.sleep(0.2)
print(flush=True)
input()
"""
    clock = TreeClock()
    process = subprocess.Popen([sys.executable, "-c", keeper], stdin=-1, stdout=-1)
    process.stdout.readline()
    while (before := clock()) < 0.4:
        time.sleep(0.05)
    process.stdin.write(b"\n")
    process.stdin.flush()
    process.stdout.readline()
    assert before <= clock() < before + 0.4
    process.communicate(b"\n")
