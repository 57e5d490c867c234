"""The wheel holds what a user needs: every module, compiled kernels, migrations, the type marker, settings of logs."""

from __future__ import annotations

import zipfile
from pathlib import Path

ROOT = Path(__file__).parents[2]


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
