"""The wheel of this checkout, and an environment with what it needs and nothing more."""

from __future__ import annotations

import subprocess
import sys
import sysconfig
import zipfile
from dataclasses import dataclass
from email.parser import Parser
from importlib.metadata import Distribution, distribution
from pathlib import Path

import pytest
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

ROOT = Path(__file__).parents[2]


@pytest.fixture(scope="session")
def wheel(tmp_path_factory):
    folder = tmp_path_factory.mktemp("wheel")
    command = [sys.executable, "-m", "hatchling", "build", "-t", "wheel", "-d", str(folder)]
    subprocess.run(command, cwd=ROOT, check=True, capture_output=True)
    (path,) = folder.glob("*.whl")
    return path


@dataclass(frozen=True)
class Light:
    """An environment with the wheel and the packages that it needs without an extra."""

    folder: Path

    @property
    def site(self):
        paths = {"base": str(self.folder), "platbase": str(self.folder)}
        return Path(sysconfig.get_path("purelib", scheme="venv", vars=paths))

    def start(self, *arguments, home=None, **more):
        """Start Python in a process that knows nothing else of this machine."""
        environment = {"PATH": str(self.folder / "bin"), **({"HOME": str(home)} if home else {})}
        return subprocess.Popen(
            [str(self.folder / "bin/python"), "-W", "error", *map(str, arguments)],
            env=environment,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            cwd=self.folder,
            **more,
        )

    def run(self, *arguments, **more):
        """What Python prints, after it ended well."""
        return ended(self.start(*arguments, **more))


def ended(process):
    out = process.communicate()[0]
    assert process.returncode == 0, out
    return out


@pytest.fixture(scope="session")
def make_light(wheel, tmp_path_factory):
    """Makes environments. Packages are those of this environment, so that no network is needed."""

    def make(name, *, with_wheel=True):
        light = Light(tmp_path_factory.mktemp("environments") / name)
        subprocess.run([sys.executable, "-m", "venv", "--without-pip", str(light.folder)], check=True)
        if with_wheel:
            install = ["--python", str(light.folder / "bin/python"), "install", "--no-compile", "--no-deps", str(wheel)]
            subprocess.run([sys.executable, "-m", "pip", *install], check=True, capture_output=True)
        for each in needed(wheel):
            link(each, light.site)
        return light

    return make


@pytest.fixture(scope="session")
def light(make_light):
    return make_light("light")


def needed(wheel):
    """The packages that pip would install with the wheel: those it names, and those that they name."""
    archive = zipfile.ZipFile(wheel)
    (name,) = (each for each in archive.namelist() if each.endswith(".dist-info/METADATA"))
    waiting = Parser().parsestr(archive.read(name).decode()).get_all("Requires-Dist")
    found: dict[str, Distribution] = {}
    while waiting:
        requirement = Requirement(waiting.pop())
        own = canonicalize_name(requirement.name)
        if own in found or not (requirement.marker is None or requirement.marker.evaluate({"extra": ""})):
            continue
        assert not requirement.extras, f"{requirement}: follow its extras here"
        found[own] = distribution(own)
        waiting += found[own].requires or []
    return found.values()


def link(package, site):
    """Put a package into an environment, as a link to where it is."""
    for top in {file.parts[0] for file in package.files}:
        if top not in ("..", "__pycache__"):
            (site / top).symlink_to(Path(str(package.locate_file(top))))
