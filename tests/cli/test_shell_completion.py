"""The user's shell completes commands, options, tables of the lake and files."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys

import pytest

WINDROW = "from windrow.cli.main import main; main()"


def completed(line, folder):
    """What a shell would offer behind a line: kind and text."""
    words = line.split(" ")
    asked = {"_WINDROW_COMPLETE": "bash_complete", "COMP_WORDS": line, "COMP_CWORD": str(len(words) - 1)}
    done = subprocess.run(
        [sys.executable, "-c", WINDROW],
        capture_output=True,
        text=True,
        env={**os.environ, **asked},
        cwd=folder,
        check=False,
    )
    assert (done.returncode, done.stderr) == (0, "")
    return done.stdout.split()


@pytest.mark.parametrize(
    ("line", "offered"),
    [
        ("windrow compa", ["plain,compact"]),
        ("windrow pm ", ["plain,build", "plain,check", "plain,inspect", "plain,prune"]),
        ("windrow compact --dry", ["plain,--dry-run"]),
        ("windrow pm check ", ["file,"]),
        ("windrow ingest metrics da", ["file,da"]),
        ("windrow --lake ", ["file,"]),
    ],
)
def test_commands_options_and_files_are_offered(line, offered, here):
    assert completed(line, here) == offered


@pytest.mark.parametrize("line", ["windrow compact ", "windrow inspect splits M", "windrow --lake lake describe me"])
def test_tables_of_the_lake_are_offered(line, here, metrics):
    assert completed(line, here) == [f"plain,{metrics}"]


def test_where_there_is_no_lake_no_table_is_offered(here):
    assert completed("windrow compact ", here) == []
    assert list(here.iterdir()) == []


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_the_script_of_a_shell_is_printed(call, shell):
    found = call("completion", shell)
    assert found.code == 0
    assert f"_WINDROW_COMPLETE={shell}_complete" in found.out
    assert call("completion", shell, "--json").json["shell"] == shell


@pytest.mark.skipif(shutil.which("bash") is None, reason="bash is not installed")
def test_bash_takes_the_script(call, here):
    script = call("completion", "bash").out
    (here / "completion.sh").write_text(script)
    asked = "source completion.sh; complete -p windrow"
    done = subprocess.run(["bash", "-c", asked], capture_output=True, text=True, check=True)
    assert "_windrow_completion windrow" in done.stdout
