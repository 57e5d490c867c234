"""What Java says goes to the log that was named, and what matters of it into the error."""

from __future__ import annotations

import signal
import subprocess
import sys

import pytest

from windrow.runners.java_log import interrupt_held_back, start_with_log
from windrow.tricks import Trick, without

CODE = """
from pathlib import Path
from windrow.errors import ConfigError
from windrow.runners.session import spark_session
try:
    spark_session({master!r}, options={options!r}, log=Path("spark.log"))
except ConfigError as error:
    print(error)
"""


@pytest.mark.spark
@pytest.mark.xdist_group("spark")
@pytest.mark.parametrize(
    ("master", "options", "problem"),
    [
        ("local[1]", {"spark.driver.memory": "banana"}, "Invalid maximum heap size: -Xmxbanana"),
        ("somewhere", {}, "Master must either be yarn or start with spark, k8s, or local"),
    ],
)
def test_a_spark_that_does_not_start_says_why(tmp_path, master, options, problem):
    code = CODE.format(master=master, options=options)
    answer = subprocess.run([sys.executable, "-c", code], cwd=tmp_path, capture_output=True, text=True, check=True)
    assert answer.stderr == ""
    assert answer.stdout.startswith("Spark did not start: ")
    assert problem in answer.stdout
    assert f"check the master {master!r}" in answer.stdout
    assert problem in (tmp_path / "spark.log").read_text()


def test_an_interrupt_waits_until_java_can_be_stopped():
    done, before = [], signal.getsignal(signal.SIGINT)

    def start():
        with interrupt_held_back():
            signal.raise_signal(signal.SIGINT)
            done.append("started")
        done.append("never")

    with pytest.raises(KeyboardInterrupt):
        start()
    assert done == ["started"]
    assert signal.getsignal(signal.SIGINT) is before


@pytest.mark.parametrize("why", ["the trick is off", "Java runs already", "Spark has no such name"])
def test_otherwise_spark_starts_as_it_does_by_itself(tmp_path, monkeypatch, why):
    from pyspark import SparkContext, java_gateway

    if why == "Java runs already":
        monkeypatch.setattr(SparkContext, "_gateway", object())
    elif why == "Spark has no such name":
        monkeypatch.delattr(java_gateway, "launch_gateway")
    else:
        monkeypatch.setattr(SparkContext, "_gateway", None)
    with without(*[Trick.JAVA_LOG] * (why == "the trick is off")):
        start_with_log({}, tmp_path / "spark.log")
    assert not (tmp_path / "spark.log").exists()
