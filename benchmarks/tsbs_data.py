"""Rows of TSBS, the Time Series Benchmark Suite, use case cpu-only, at any scale.

A host reports ten usages every ten seconds. Each usage is a random walk between 0 and 100 of which whole numbers are
reported; the tags of a host are drawn once. Files hold some minutes of all hosts, in the order of arrival.

    python -m benchmarks.tsbs_data FOLDER [--hosts 400] [--hours 24] [--seconds 300]
"""

from __future__ import annotations

import argparse
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

__all__ = ["START", "STEP", "TAGS", "USAGES", "Tsbs"]

START = int(datetime(2016, 1, 1, tzinfo=UTC).timestamp())
STEP = 10
"""Seconds between two reports of a host."""
REGIONS = {
    "us-east-1": "abce",
    "us-west-1": "ab",
    "us-west-2": "abc",
    "eu-west-1": "abc",
    "eu-central-1": "ab",
    "ap-southeast-1": "ab",
    "ap-southeast-2": "ab",
    "ap-northeast-1": "ac",
    "sa-east-1": "abc",
}
CHOICES = {
    "rack": [str(n) for n in range(100)],
    "os": ["Ubuntu16.10", "Ubuntu16.04LTS", "Ubuntu15.10"],
    "arch": ["x64", "x86"],
    "team": ["SF", "NYC", "LON", "CHI"],
    "service": [str(n) for n in range(20)],
    "service_version": ["0", "1"],
    "service_environment": ["production", "staging", "test"],
}
TAGS = ("hostname", "region", "datacenter", *CHOICES)
USAGES = tuple(
    f"usage_{each}"
    for each in ("user", "system", "idle", "nice", "iowait", "irq", "softirq", "steal", "guest", "guest_nice")
)


@dataclass(frozen=True)
class Tsbs:
    """A set of rows: so many hosts for so many hours."""

    hosts: int = 400
    hours: float = 24
    seed: int = 1

    @property
    def end(self) -> int:
        """The second behind the last report."""
        return START + round(self.hours * 3600)

    def tables(self, seconds: int = 300) -> Iterator[pa.Table]:
        """Give the rows in the order of arrival, so many seconds at a time."""
        random = np.random.default_rng(self.seed)
        tags = self._tags(random)
        level = random.uniform(0, 100, (len(USAGES), self.hosts))
        for begin in range(START, self.end, seconds):
            times = np.arange(begin, min(begin + seconds, self.end), STEP)
            values = np.empty((len(USAGES), len(times), self.hosts))
            for number in range(len(times)):
                values[:, number] = level
                level = np.clip(level + random.standard_normal(level.shape), 0, 100)
            yield _table(times, tags, np.floor(values))

    def write(self, folder: Path, seconds: int = 300) -> list[Path]:
        """Write a file for so many seconds each; return them in the order of arrival."""
        folder.mkdir(parents=True, exist_ok=True)
        paths = []
        for number, table in enumerate(self.tables(seconds)):
            paths.append(folder / f"cpu-{number:05d}.parquet")
            pq.write_table(table, paths[-1])
        return paths

    def _tags(self, random: np.random.Generator) -> dict[str, pa.Array]:
        regions = random.choice(list(REGIONS), self.hosts)
        centres = [f"{region}{random.choice(list(REGIONS[region]))}" for region in regions]
        drawn = {name: random.choice(values, self.hosts) for name, values in CHOICES.items()}
        names = [f"host_{number}" for number in range(self.hosts)]
        columns = {"hostname": names, "region": regions, "datacenter": centres, **drawn}
        return {name: pa.array(values, pa.string()) for name, values in columns.items()}


def _table(times: np.ndarray, tags: dict[str, pa.Array], values: np.ndarray) -> pa.Table:
    hosts = values.shape[2]
    rows = pa.array(np.tile(np.arange(hosts), len(times)))
    stamps = pa.array(np.repeat(times, hosts) * 1_000_000, pa.timestamp("us", "UTC"))
    usages = dict(zip(USAGES, values.reshape(len(USAGES), -1), strict=True))
    return pa.table({"timestamp": stamps, **{name: tag.take(rows) for name, tag in tags.items()}, **usages})


def main() -> None:
    """Write a set of files."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("folder", type=Path)
    parser.add_argument("--hosts", type=int, default=400)
    parser.add_argument("--hours", type=float, default=24)
    parser.add_argument("--seconds", type=int, default=300, help="of a file")
    given = parser.parse_args()
    Tsbs(given.hosts, given.hours).write(given.folder, given.seconds)


if __name__ == "__main__":
    main()
