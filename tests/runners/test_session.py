"""Without a Java that Spark can run on, the error says what to install."""

from __future__ import annotations

import stat

import pytest

from windrow.errors import MissingDependency
from windrow.runners.session import check_java


@pytest.fixture
def java(tmp_path, monkeypatch):
    """A program called java that prints what it is told, found by JAVA_HOME."""
    monkeypatch.setenv("JAVA_HOME", str(tmp_path))

    def make(version_line):
        program = tmp_path / "bin" / "java"
        program.parent.mkdir(exist_ok=True)
        program.write_text(f"#!/bin/sh\necho '{version_line}' >&2\n")
        program.chmod(program.stat().st_mode | stat.S_IEXEC)

    return make


@pytest.mark.parametrize(
    ("line", "version"), [('openjdk version "17.0.15" 2025-04-15', 17), ('openjdk version "21" 2023', 21)]
)
def test_a_java_that_is_new_enough_is_taken(java, line, version):
    java(line)
    assert check_java() == version


@pytest.mark.parametrize("line", ['java version "1.8.0_402"', 'openjdk version "11.0.2"', "no java at all"])
def test_an_old_or_broken_java_is_refused_with_what_to_do(java, line):
    java(line)
    with pytest.raises(MissingDependency, match=r"Java 17 or newer.*Install"):
        check_java()


def test_a_missing_java_is_refused(tmp_path, monkeypatch):
    monkeypatch.delenv("JAVA_HOME", raising=False)
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(MissingDependency, match="none was found"):
        check_java()
