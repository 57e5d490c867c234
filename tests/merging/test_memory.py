"""A merge keeps to its budget, however much goes in."""

import json
import subprocess
import sys

import pytest

SCRIPT = """
import hashlib, json, sys
from pathlib import Path
import numpy as np, pyarrow as pa, pyarrow.parquet as pq
from windrow.merging.inputs import open_inputs
from windrow.merging.merge import Merge, MergeOptions
from windrow.model.sort_schema import SortSchema
from windrow.storage import open_store

folder, inputs, rows, budget = sys.argv[1], int(sys.argv[2]), int(sys.argv[3]), int(sys.argv[4])
schema = SortSchema.parse("host|timestamp+/V2")
names = pa.array([f"host-{n:05d}" for n in range(20_000)])


def write(number, rows):
    rng = np.random.default_rng(number)
    host = np.sort(rng.integers(0, 20_000, rows)).astype(np.int32)
    starts = np.searchsorted(host, np.arange(20_001))
    times = np.arange(rows) - np.repeat(starts[:-1], np.diff(starts)) + 10 * number
    with pq.ParquetWriter(f"{folder}/in-{number}.parquet", SHAPE, compression="zstd") as writer:
        for low in range(0, rows, 131_072):
            part = slice(low, low + 131_072)
            hosts = pa.DictionaryArray.from_arrays(pa.array(host[part]), names).cast(pa.string())
            values = pa.array(rng.normal(size=len(hosts)).round(2))
            writer.write_table(pa.table([hosts, pa.array(times[part]).cast(pa.timestamp("ms")), values], schema=SHAPE))


SHAPE = pa.schema([("host", pa.string()), ("timestamp", pa.timestamp("ms")), ("value", pa.float64())])


def merge(keys, options):
    merged = Merge.of(open_inputs(open_store(folder), keys), schema, options)
    digests = []
    for output in merged.run():
        digests.append(hashlib.sha256(output.finish({})).hexdigest())
        output.close()
    return digests


def peak():
    lines = Path("/proc/self/status").read_text().splitlines()
    return next(int(line.split()[1]) * 1024 for line in lines if line.startswith("VmHWM"))


write(inputs, 1000)
merge([f"in-{inputs}.parquet"], MergeOptions())
for number in range(inputs):
    write(number, rows)
keys = [f"in-{number}.parquet" for number in range(inputs)]


def measured(budget):
    pa.default_memory_pool().release_unused()
    Path("/proc/self/clear_refs").write_text("5")
    before = peak()
    digests = merge(keys, MergeOptions(memory_budget=budget, outputs=4))
    return peak() - before, digests


(used, bounded), (unbounded, all_at_once) = measured(budget), measured(1 << 40)
print(json.dumps({"used": used, "unbounded": unbounded, "same": bounded == all_at_once}))
"""


def measured(folder, inputs, rows, budget):
    command = [sys.executable, "-c", SCRIPT, str(folder), str(inputs), str(rows), str(budget)]
    done = subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True)
    return json.loads(done.stdout.splitlines()[-1])


def test_a_small_budget_is_kept_and_changes_no_byte(tmp_path):
    found = measured(tmp_path, 4, 800_000, 48 << 20)
    assert found["used"] < 96 << 20 < found["unbounded"]
    assert found["same"]


@pytest.mark.long
def test_sixteen_inputs_of_four_million_rows_stay_within_512_mebibytes(tmp_path):
    found = measured(tmp_path, 16, 4_000_000, 512 << 20)
    assert found["used"] < 512 << 20
    assert found["same"]
