"""The code blocks of the documentation, and a folder in which they run.

A block is fenced under the name of its language, or indented, which is shell. `<!-- not run: why -->` stands above a
block that needs what tests do not have. Text is no code: drawings, and what commands print.
"""

from __future__ import annotations

import os
import re
import shlex
import shutil
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, NamedTuple

import pyarrow as pa
import pyarrow.parquet as pq

import windrow
from windrow.cli.main import run
from windrow.config import resolve

ROOT = Path(__file__).parents[1]
OTLP = ROOT / "tests" / "data" / "otlp" / "metrics.json"
LANGUAGES = ("python", "shell", "toml", "text")
_NOT_RUN = re.compile(r"<!-- not run: (.+) -->")
_OF_A_SHELL = re.compile(r"[|<>*]")
_SORT = "metric_name|service|host|timestamp&region/V2"


class Block(NamedTuple):
    """One block, and where it stands."""

    page: str
    line: int
    language: str
    text: str
    not_run: str | None

    @property
    def is_code(self) -> bool:
        """Whether it is something that can run."""
        return self.language != "text"


def blocks_of(page: Path) -> Iterator[Block]:
    """All blocks of a page, in their order."""
    lines, place, mark = page.read_text().split("\n"), 0, None
    name = str(page.relative_to(ROOT))
    while place < len(lines):
        line, first = lines[place], place
        if line.startswith("```"):
            end = next(at for at in range(place + 1, len(lines)) if lines[at].startswith("```"))
            yield Block(name, first + 1, line[3:].strip(), "\n".join(lines[first + 1 : end]), mark)
            place = end
        elif line.startswith("    ") and not (lines[place - 1] if place else "").strip():
            while place + 1 < len(lines) and lines[place + 1].startswith("    "):
                place += 1
            yield Block(name, first + 1, "shell", "\n".join(each[4:] for each in lines[first : place + 1]), mark)
        found = _NOT_RUN.fullmatch(lines[place])
        mark = found and found[1]
        place += 1


def rows(count: int = 60) -> pa.Table:
    """Points of two metrics and a few hosts, one each ten seconds."""
    start = int(datetime(2026, 11, 15, 10, tzinfo=UTC).timestamp()) * 1_000_000
    at = range(count)
    return pa.table(
        {
            "metric_name": [("cpu.usage", "cpu")[row % 2] for row in at],
            "service": [("checkout", "search")[row % 2] for row in at],
            "env": ["prod"] * count,
            "host": [("h1", "web-1", "web-2")[row % 3] for row in at],
            "region": ["eu"] * count,
            "timestamp": pa.array([start + row * 10_000_000 for row in at], pa.timestamp("us", "UTC")),
            "value": [float(row) for row in at],
        }
    )


@dataclass
class World:
    """A working folder with a lake, files to bring in, and the names that blocks take for granted."""

    folder: Path
    names: dict[str, Any]

    @classmethod
    def of(cls, folder: Path, *, spark: Any = None, with_table: bool = True) -> World:
        """Make the folder; a page that creates its table itself finds none."""
        for name in ("raw/0.parquet", "raw/monday.parquet", "landing/a.parquet"):
            (folder / name).parent.mkdir(exist_ok=True)
            pq.write_table(rows(), folder / name)
        (folder / "collector").mkdir()
        shutil.copy(OTLP, folder / "collector")
        (folder / "question.sql").write_text("select count(*) from metrics")
        names: dict[str, Any] = {"windrow": windrow, "pa": pa, "pq": pq, "df": rows()}
        if with_table:
            lake = names["lake"] = windrow.connect(folder / "lake")
            table = names["metrics"] = lake.create_table("metrics", sort=_SORT, window="15m")
            for _ in range(2):
                table.ingest(rows())
        if spark is not None:
            names |= {"spark": spark, "df": spark.createDataFrame(rows().to_pandas())}
        return cls(folder, names)

    def run(self, block: Block) -> None:
        """Run a block; what fails raises."""
        if block.language == "python":
            # The line numbers of errors are those of the page.
            exec(compile("\n" * block.line + self._placed(block.text), block.page, "exec"), self.names)
        elif block.language == "toml":
            resolve({}, {}, block.text, block.page)
        else:
            for line in block.text.splitlines():
                self._command(line)

    def _placed(self, text: str) -> str:
        """The Java of a running session stays in the folder in which it was started, and needs whole paths."""
        if "spark" not in self.names:
            return text
        return text.replace('"./lake"', f'"{self.folder}/lake"').replace('"raw/"', f'"{self.folder}/raw/"')

    def _command(self, line: str) -> None:
        words = shlex.split(line, comments=True)
        if not words or words[0] == "make":
            return
        if _OF_A_SHELL.search(line.partition(" #")[0]):
            environment = {**os.environ, "PATH": f"{self._program()}:{os.environ['PATH']}"}
            script = f"set -o pipefail; {line}"
            done = subprocess.run(
                ["bash", "-c", script], cwd=self.folder, env=environment, capture_output=True, text=True, check=False
            )
            # Who reads the first lines alone closes the pipe.
            assert done.returncode in ((0, 141) if "| head" in line else (0,)), f"{line}: {done.stderr}"
            return
        assert words[0] == "windrow", line
        assert run(words[1:]) == 0, line

    def _program(self) -> Path:
        """A folder with `windrow` in it, whatever is installed."""
        folder = self.folder / "bin"
        program = folder / "windrow"
        if not program.exists():
            folder.mkdir()
            program.write_text(f"#!{sys.executable}\nfrom windrow.cli.main import main\n\nmain()\n")
            program.chmod(0o755)
        return folder

    def close(self) -> None:
        """Close the lake that blocks have worked on."""
        lake = self.names.get("lake")
        if lake is not None:
            lake.close()
