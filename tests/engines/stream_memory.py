"""Reads a table as a stream in a process of its own, and says how much memory that took: run by test_scan_memory.py."""

import json
import re
import sys
from pathlib import Path

import pyarrow as pa

import windrow


def highest():
    """The most memory that this process ever had, in bytes."""
    return int(re.search(r"VmHWM:\s+(\d+)", Path("/proc/self/status").read_text())[1]) * 1024


def main(place):
    given = {name: place[name] for name in ("metastore", "store_options") if name in place}
    with windrow.connect(place["lake"], cache=None, **given) as lake:
        table = lake.table("points")
        # What is loaded by the first use is not counted.
        pa.table(table.scan("number = 7"))
        before, size, rows = highest(), 0, 0
        for batch in pa.RecordBatchReader.from_stream(table.scan(memory_budget=place["budget"])):
            size, rows = size + batch.nbytes, rows + batch.num_rows
        return {"grew": highest() - before, "bytes": size, "rows": rows}


print(json.dumps(main(json.loads(sys.argv[1]))))
