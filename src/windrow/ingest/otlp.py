"""OpenTelemetry metrics files, OTLP as JSON or protobuf, as Arrow tables with a row for each value.

| column | type | what it holds |
|---|---|---|
| `metric_name` | string | the metric's name, with a suffix for a part of a histogram or summary |
| `metric_type` | uint8 | 0 gauge, 1 sum, 2 histogram, 3 exponential histogram, 4 summary |
| `unit`, `description` | string | as the metric has them; null when empty |
| `temporality` | string | of sums and histograms: `delta` or `cumulative` |
| `is_monotonic` | bool | of sums |
| `upper_bound` | string | of a bucket: the end of it, `+Inf` for the last |
| `quantile` | string | of a summary's value: which quantile it is |
| `timestamp`, `start_timestamp` | timestamp[ns, UTC] | null when absent or 0; a table stores them in its own unit |
| `value` | float64 | integers and counts beyond 2**53 are rounded to the nearest float |
| one for each common attribute | string | under its bare name |
| `attributes` | map<string, string> | the attributes that have no column; null when there are none |

Attributes of the resource, of the scope and of the point are put together; of the same name, the point's wins over the
scope's, the scope's over the resource's. The scope's own name and version are the attributes `otel.scope.name` and
`otel.scope.version`. Values that are not strings are written as JSON, bytes as base64.

An attribute becomes a column unless fewer than `rare` of the rows have it, its name is empty or is, but for upper and
lower case, that of another column. One that was promoted before stays a column, however rare.

`windrow.ingest.otlp_points` describes how histograms and summaries become rows. Exemplars, the metadata of metrics and
schema addresses are left out, and so are points that say that they have no recorded value, or have none.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator

from windrow.ingest.otlp_json import json_metrics, json_requests
from windrow.ingest.otlp_points import Metric, naming
from windrow.ingest.otlp_protobuf import protobuf_metrics, requests
from windrow.ingest.otlp_table import PointTable

__all__ = ["points_of"]

_STARTS_LIKE_JSON = re.compile(rb"(\xef\xbb\xbf)?[ \t\r\n]*([{\[]|\Z)")

Files = Iterable[tuple[str, bytes]]
"""Files by name and content."""


def points_of(files: Files) -> PointTable:
    """Return the points of files, counted and not yet laid out: that takes to know which attributes become columns."""
    points = PointTable()
    for name, data in files:
        with naming(name):
            for metric in _metrics(data):
                points.add(metric)
    return points


def _metrics(data: bytes) -> Iterator[Metric]:
    """Yield the metrics of a file; its bytes show what they are encoded in. An empty file holds none."""
    frames = requests(data)
    if frames is None and _STARTS_LIKE_JSON.match(data):
        for request in json_requests(data):
            yield from json_metrics(request)
    else:
        for frame in [data] if frames is None else frames:
            yield from protobuf_metrics(frame)
