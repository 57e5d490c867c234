"""Windrow alone: without extras, without Java, where nothing can be written, out of an archive, many at once."""

from __future__ import annotations

import ctypes
import shutil
from pathlib import Path

import pytest

from .conftest import ended

SMALL_LAKE = Path(__file__).with_name("small_lake.py")
PR_CAPBSET_DROP, CAP_DAC_OVERRIDE = 24, 1


def test_an_environment_without_extras_makes_a_lake_and_names_the_extras(light, tmp_path):
    assert "a small lake was made" in light.run(SMALL_LAKE, tmp_path / "lake", "--light", home=tmp_path)


def heed_permissions():
    """Let a process of the superuser, too, write only where it may."""
    assert ctypes.CDLL(None).prctl(PR_CAPBSET_DROP, CAP_DAC_OVERRIDE, 0, 0, 0) in (0, -1)


@pytest.fixture
def read_only(make_light):
    """An environment whose files cannot be changed, nor new ones made, not even those that Python compiles."""
    light = make_light("read_only")
    folders = [light.site, *(each for each in light.site.rglob("*") if each.is_dir() and not each.is_symlink())]
    for each in folders:
        each.chmod(0o555)
    yield light
    for each in folders:
        each.chmod(0o755)


WRITE = "import sys, pathlib; (pathlib.Path(sys.argv[1]) / 'written').touch()"


def test_nothing_is_written_beside_the_package_or_at_home(read_only, tmp_path):
    home = tmp_path / "home"
    home.mkdir(mode=0o555)
    for place in (home, read_only.site, read_only.site / "windrow"):
        process = read_only.start("-c", WRITE, place, preexec_fn=heed_permissions)
        assert "PermissionError" in process.communicate()[0]
    lakes = tmp_path / "with home", tmp_path / "without home"
    read_only.run(SMALL_LAKE, lakes[0], home=home, preexec_fn=heed_permissions)
    read_only.run(SMALL_LAKE, lakes[1], preexec_fn=heed_permissions)
    assert not list(home.iterdir())
    assert not list((read_only.site / "windrow").rglob("__pycache__"))


FROM_ARCHIVE = """
import sys
archive, programs, lake = sys.argv[1:]
sys.path[:0] = [archive, programs]
import small_lake, windrow
assert windrow.__file__.startswith(archive)
with windrow.connect(lake) as opened:
    metrics = opened.table("metrics")
    for number in (7, 8):
        metrics.ingest(small_lake.rows(number))
    assert metrics.compact.run().splits_out == 1
    assert opened.sql("select count(*) as points from metrics").to_dict() == [{"points": 24}]
    assert metrics.upkeep.check(data=True).sound
"""


def test_the_wheel_is_an_archive_from_which_python_imports(make_light, light, wheel, tmp_path):
    """Spark ships such archives to its workers; the packages that Windrow needs must be there already."""
    archive = shutil.copy(wheel, tmp_path / "windrow.zip")
    light.run(SMALL_LAKE, tmp_path / "lake", home=tmp_path)
    bare = make_light("bare", with_wheel=False)
    assert "ModuleNotFoundError" in bare.start("-c", "import windrow").communicate()[0]
    bare.run("-c", FROM_ARCHIVE, archive, SMALL_LAKE.parent, tmp_path / "lake")


AT_ONCE = """
import sys, windrow
import pyarrow as pa
lake, own = sys.argv[1:]
with windrow.connect(lake) as opened:
    try:
        metrics = opened.create_table("metrics", sort="host|timestamp/V2")
    except windrow.AlreadyExists:
        metrics = opened.table("metrics")
    times = pa.array(range(5), pa.timestamp("us", "UTC"))
    metrics.ingest(pa.table({"host": [own] * 5, "timestamp": times, "value": [1.0] * 5}))
    (answer,) = opened.sql("select count(*) as own from metrics where host = ?", params=[own]).to_dict()
    print(answer["own"])
"""


def test_processes_that_start_at_once_make_one_lake(make_light, tmp_path):
    """Nothing is compiled yet, there is no lake, and each wants to be the first."""
    fresh = make_light("fresh")
    started = [fresh.start("-c", AT_ONCE, tmp_path / "lake", number, home=tmp_path) for number in range(6)]
    assert [ended(each) for each in started] == ["5\n"] * 6
    count = "import sys, windrow; print(windrow.connect(sys.argv[1]).sql('select count(*) from metrics').to_dict())"
    assert "30" in fresh.run("-W", "ignore::ResourceWarning", "-c", count, tmp_path / "lake")
