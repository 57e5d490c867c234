"""What Java writes as Spark starts goes to a file, and not to the terminal.

What it buys: no lines of Java between those of a command, and the reason in an error where Java does not start. Java is
started by `pyspark.java_gateway.launch_gateway`, which is given the file as stderr; whether there is a Java already is
read from `SparkContext._gateway`. Neither is public. Where one is missing, or with the trick off, Spark starts as it
does by itself: Java writes to the stderr of this process.
"""

from __future__ import annotations

import signal
import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

from windrow.tricks import Trick, is_on

__all__ = ["start_with_log"]

_MISSING = object()


def start_with_log(settings: Mapping[str, str], log: Path) -> None:
    """Start Java for the session that comes next, if there is none yet and its log can be chosen."""
    from pyspark import SparkConf, SparkContext, java_gateway

    launch = getattr(java_gateway, "launch_gateway", None)
    # A session that was stopped leaves its Java behind, and Spark takes that one again.
    if launch is None or getattr(SparkContext, "_gateway", _MISSING) is not None or not is_on(Trick.JAVA_LOG):
        return
    conf = SparkConf().setAll(list(settings.items()))
    with log.open("wb") as words, interrupt_held_back():
        gateway = launch(conf, {"stderr": words})
    SparkContext(conf=conf, gateway=gateway)


@contextmanager
def interrupt_held_back() -> Iterator[None]:
    """Let Ctrl-C wait for the end of the block: Java that is left half-started outlives this process."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    pressed: list[int] = []
    before = signal.signal(signal.SIGINT, lambda number, _: pressed.append(number))
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, before)
    if pressed:
        raise KeyboardInterrupt
