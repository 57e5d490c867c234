"""A table of nanoseconds answers every time function, exactly, and leaves out what cannot match."""

from datetime import UTC, date, datetime, timedelta

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import windrow

NOW = datetime.now(UTC).replace(microsecond=0)
DAY = NOW.replace(hour=0, minute=0, second=0)
COUNT = 96
"""A point for each quarter of an hour; most lie some nanoseconds before it, so that rounding would move them."""


def nanoseconds(moment, more=0):
    return int(moment.timestamp()) * 10**9 + more


TIMES = [nanoseconds(NOW - timedelta(minutes=15 * n), -(n % 4)) for n in range(COUNT)]


@pytest.fixture(scope="module", params=["UTC", None], ids=["instants", "local"])
def lake(request, tmp_path_factory):
    folder = tmp_path_factory.mktemp("nanoseconds")
    with windrow.connect(folder / "lake") as opened:
        table = opened.create_table("fine", sort="host|ts/V2", timestamp="ts", timestamp_precision="ns", window="1h")
        plain = opened.create_table("plain", sort="host|ts/V2", timestamp="ts", window="1h")
        times = pa.array(TIMES, pa.timestamp("ns", request.param))
        rows = pa.table({"host": ["a", "b"] * (COUNT // 2), "ts": times, "n": range(COUNT)})
        table.ingest(rows)
        plain.ingest(rows)
        pq.write_table(rows, folder / "raw.parquet")
        yield opened


def counted(lake, condition, *parameters):
    return lake.sql(f"select count(*) as n from fine where {condition}", parameters or None).to_dict()[0]["n"]


def matching(test):
    return sum(map(test, TIMES))


HOUR = NOW - timedelta(hours=1, minutes=15)
AT = nanoseconds(HOUR)
CONDITIONS = {
    "ts > now() - interval 9 day": lambda _: True,
    "ts > now() + interval 1 hour": lambda _: False,
    f"ts > timestamptz '{HOUR}'": lambda t: t > AT,
    f"ts >= timestamptz '{HOUR}'": lambda t: t >= AT,
    f"ts <= timestamptz '{HOUR}'": lambda t: t <= AT,
    f"ts < timestamp '{HOUR:%Y-%m-%d %H:%M:%S}'": lambda t: t < AT,
    f"ts = timestamptz '{HOUR}'": lambda t: t == AT,
    f"timestamptz '{HOUR}' <> ts": lambda t: t != AT,
    f"ts between timestamptz '{HOUR}' and now()": lambda t: t >= AT,
    f"not ts between timestamptz '{HOUR}' and now()": lambda t: t < AT,
    f"ts in (timestamptz '{HOUR}', null)": lambda t: t == AT,
    f"ts >= date '{DAY:%Y-%m-%d}'": lambda t: t >= nanoseconds(DAY),
    f"ts > '{HOUR:%Y-%m-%d %H:%M:%S}.000000001'": lambda t: t > AT + 1,
    "ts < timestamptz '9999-12-31'": lambda _: True,
    "ts < '9999-12-31'": lambda _: True,
    "ts > date '0500-01-01'": lambda _: True,
    "ts > timestamptz 'infinity'": lambda _: False,
    "ts > null": lambda _: False,
    "ts is not null": lambda _: True,
    "ts < ts": lambda _: False,
    f"ts::timestamptz >= timestamptz '{HOUR}'": lambda t: t >= AT,
    f"ts + interval 1 hour > timestamptz '{HOUR + timedelta(hours=1)}'": lambda t: t // 1000 > AT // 1000,
    f"date_trunc('hour', ts) = date_trunc('hour', timestamptz '{HOUR}')": lambda t: (
        t // 3600_000000000 == AT // 3600_000000000
    ),
    "(select max(ts) from fine) = ts": lambda t: t == max(TIMES),
}


# Names of tests are the same in every process, whatever the time.
@pytest.mark.parametrize("condition", CONDITIONS, ids=range(len(CONDITIONS)))
def test_conditions_are_exact(lake, condition):
    assert counted(lake, condition) == matching(CONDITIONS[condition])
    if "select" not in condition:
        found = lake.table("fine").scan(where=condition).to_arrow()
        assert found.num_rows == matching(CONDITIONS[condition])


@pytest.mark.parametrize(
    "value",
    [HOUR, HOUR.astimezone(UTC), HOUR.replace(tzinfo=None), HOUR.isoformat(sep=" "), date(9999, 1, 1)],
    ids=["aware", "UTC", "naive", "text", "date"],
)
def test_parameters_are_compared(lake, value):
    expected = 0 if isinstance(value, date) and value.year == 9999 else matching(lambda t: t > AT)
    assert counted(lake, "ts > ?", value) == expected
    found = lake.sql("select count(*) as n from fine where ts > $at and ts <= now()", {"at": value}).to_dict()
    assert found[0]["n"] == expected


FUNCTIONS = [
    "date_trunc('hour', ts)",
    "time_bucket(interval 1 hour, ts)",
    "extract(minute from ts)",
    "date_part('second', ts)",
    "ts + interval 1 hour",
    "ts - interval 1 day",
    "ts - timestamptz '2020-01-01'",
    "max(ts) - min(ts)",
    "date_diff('hour', min(ts), timestamptz '2020-01-01')",
    "ts::date",
    "ts::timestamptz",
    "year(ts)",
    "dayname(ts)",
    "last_day(ts)",
    "epoch(ts)",
    "epoch_ms(ts)",
    "strftime(ts, '%Y-%m-%d %H:%M:%S.%f')",
    "strftime(date_trunc('day', ts), '%d')",
    "ts at time zone 'Europe/Berlin'",
    "coalesce(ts, timestamptz '2020-01-01')",
    "case when n > 5 then ts else timestamptz '2020-01-01' end",
    "count(distinct date_trunc('hour', ts))",
    "date_trunc('hour', max(ts))",
    "max(ts) > timestamptz '2020-01-01'",
]


@pytest.mark.parametrize("function", FUNCTIONS)
def test_functions_are_those_of_the_microsecond_before(lake, function):
    group = "group by host" if "max(" in function or "min(" in function else ""
    asked = "select {} as x from {} {} order by x"
    found, expected = (lake.sql(asked.format(function, table, group)).to_arrow() for table in ("fine", "plain"))
    assert found["x"].to_pylist() == expected["x"].to_pylist()


def test_digits_come_out_where_the_column_is_handed_on(lake):
    found = lake.sql(
        "select ts, max(ts) over () as top from fine where ts > now() - interval 9 day order by ts"
    ).to_arrow()
    assert found["ts"].cast(pa.int64()).to_pylist() == sorted(TIMES)
    assert found["top"].cast(pa.int64()).unique().to_pylist() == [max(TIMES)]
    grouped = lake.sql(
        "select ts, count(*) from fine where date_trunc('day', ts) > '2020-01-01' group by ts"
    ).to_arrow()
    assert sorted(grouped["ts"].cast(pa.int64()).to_pylist()) == sorted(TIMES)
    assert lake.sql("select * from fine where ts > now() - interval 9 day").to_arrow().num_rows == COUNT


QUERIES = [
    "with x as (select ts, n from {0}) select date_trunc('hour', ts) as h, count(*) from x where ts < now() group by 1",
    "select h, count(*) from (select date_trunc('hour', ts) as h from {0}) where h > now() - interval 9 day group by h",
    "select ts from (select date_trunc('hour', ts) as ts from {0}) where ts > now() - interval 9 day",
    "select date_trunc('hour', ts), n from {0} union all select now() - now() + timestamptz '2020-01-01', 1",
    "select a.n from {0} a join {0} b on a.ts = b.ts and a.ts < now() + interval 1 hour",
    "select a.n from {0} a join plain b on a.ts::timestamptz = b.ts::timestamptz",
    "select n, sum(n) over (order by ts range between interval 1 hour preceding and current row) as s from {0}",
    "select n from {0} where ts > (select max(ts) - interval 2 hour from {0})",
    "select time_bucket(interval 1 hour, ts) as h, max(n) from {0} group by 1 having max(ts) < now() + interval 1 day",
    "select n from {0} qualify row_number() over (partition by date_trunc('hour', ts) order by ts) = 1",
]


@pytest.mark.parametrize("query", QUERIES)
def test_whole_queries_are_those_of_microseconds(lake, query):
    found, expected = (
        sorted(map(repr, lake.sql(query.format(table)).to_arrow().to_pylist())) for table in ("fine", "plain")
    )
    assert found == expected


def test_a_column_without_a_name_keeps_that_of_its_text(lake):
    asked = "select date_trunc('hour', ts), max(n) from {} group by 1"
    assert (
        lake.sql(asked.format("fine")).to_arrow().column_names
        == lake.sql(asked.format("plain")).to_arrow().column_names
    )


def test_files_of_nanoseconds_are_asked_alike(lake):
    path = lake.context.store.root.parent / "raw.parquet"
    assert len(lake.sql(f"select * from '{path}' where ts > now() - interval 9 day and year(ts) > 2000")) == COUNT


@pytest.mark.parametrize(
    "condition",
    [
        "ts > now() - interval 1 hour",
        "ts >= now() - interval 1 hour and ts < now()",
        "date_trunc('hour', ts) >= now() - interval 1 hour",
        "ts::timestamptz > now() - interval 1 hour",
        "time_bucket(interval 1 minute, ts) > now() - interval 1 hour",
    ],
)
def test_what_cannot_match_is_left_out(lake, condition):
    # A sum is never answered from metadata, wherever the hour begins.
    explained = lake.explain(f"select sum(n) from fine where {condition}").to_dict()
    windows = next(step for step in explained["tables"][0]["steps"] if step["units"] == "windows")
    assert windows["kept"] <= 4 < windows["asked"]
