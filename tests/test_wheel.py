"""The wheel holds what a user needs: every module, compiled kernels, migrations, the type marker, settings of logs."""

from __future__ import annotations

import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]


@pytest.fixture(scope="module")
def wheel(tmp_path_factory):
    folder = tmp_path_factory.mktemp("wheel")
    command = [sys.executable, "-m", "hatchling", "build", "-t", "wheel", "-d", str(folder)]
    subprocess.run(command, cwd=ROOT, check=True, capture_output=True)
    (path,) = folder.glob("*.whl")
    return path


def test_the_wheel_holds_every_file_of_the_package(wheel):
    source = ROOT / "src"
    kept = (path for path in source.rglob("*") if path.is_file() and "__pycache__" not in path.parts)
    # the kernels that check every access are for tests
    expected = {str(path.relative_to(source)) for path in kept if not path.name.startswith("_checked.")}
    assert expected <= set(zipfile.ZipFile(wheel).namelist())
    assert {"windrow/py.typed", "windrow/kernels/_compiled.abi3.so"} <= expected


def test_one_wheel_is_for_all_versions_of_python_on_a_kind_of_machine(wheel):
    assert "-cp311-abi3-" in wheel.name
    assert not wheel.name.endswith("-any.whl")


def test_a_lake_can_be_made_from_the_installed_wheel(wheel, tmp_path):
    target = tmp_path / "site"
    install = [sys.executable, "-m", "pip", "install", "--quiet", "--no-deps", "--target", str(target), str(wheel)]
    subprocess.run(install, check=True, capture_output=True)
    code = f"""
import sys
sys.path.insert(0, {str(target)!r})
import windrow
assert windrow.__file__.startswith({str(target)!r}), windrow.__file__
with windrow.connect({str(tmp_path / "lake")!r}) as lake:
    lake.create_table("metrics", sort="host|timestamp/V2")
    print(lake.table("metrics").describe().version)
from windrow.kernels import compiled
assert len(compiled.digest()) == 64
"""
    answer = subprocess.run([sys.executable, "-c", code], check=True, capture_output=True, text=True, cwd=tmp_path)
    assert answer.stdout.strip() == "0"
