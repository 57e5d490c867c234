"""A trial from outside: answers of the database are cut off at a commit; every outcome that is reported is true."""

from __future__ import annotations

import random
from collections import Counter

import pyarrow as pa
import pytest
from sqlalchemy import make_url
from tests.trials.cutting_proxy import CuttingProxy

import windrow
from windrow.errors import CommitUnknown, Outcome, WindrowError

pytestmark = [pytest.mark.postgres, pytest.mark.xdist_group("postgres")]

AWAY = (0.0, 0.0, 0.0, 0.3, 20.0)
"""For so many seconds the database cannot be reached after a cut."""


def rows(number):
    return pa.table(
        {"host": ["a", "b"], "timestamp": pa.array([number, number], pa.timestamp("us", "UTC")), "id": [number] * 2}
    )


def through(url, proxy):
    """The address of the database by way of the proxy."""
    return make_url(url).set(host="127.0.0.1", port=proxy.port, query={}).render_as_string(hide_password=False)


def server_address(url):
    """Where the server listens: a socket of its folder, or a host and a port."""
    parsed = make_url(url)
    folder = parsed.query.get("host")
    return f"{folder}/.s.PGSQL.{parsed.port or 5432}" if folder else (parsed.host, parsed.port)


def reported(table, number):
    """What an ingest reports of its outcome."""
    try:
        table.ingest(rows(number))
    except CommitUnknown as error:
        return Outcome.UNKNOWN, error.commit_id
    except WindrowError as error:
        # An error that reports no outcome comes from before the commit: nothing may be there.
        return error.outcome or Outcome.NOT_COMMITTED, None
    return Outcome.COMMITTED, None


@pytest.mark.parametrize("commits", [12, pytest.param(200, marks=pytest.mark.long)])
def test_no_reported_outcome_is_false(tmp_path, postgres_url, commits):
    draw, false, outcomes = random.Random(commits), [], Counter()
    with (
        windrow.connect(tmp_path / "lake", metastore=postgres_url) as direct,
        CuttingProxy(server_address(postgres_url)) as proxy,
    ):
        plain = direct.create_table("events", sort="host|timestamp/V2")
        for number in range(commits):
            with windrow.connect(tmp_path / "lake", metastore=through(postgres_url, proxy)) as lake:
                table = lake.table("events")
                # Most cuts are at the transaction that makes the rows visible, the others anywhere.
                nth, of = (1, b"INSERT INTO windrow_splits") if draw.random() < 0.7 else (draw.randrange(1, 6), b"")
                proxy.cut(nth, of=of, after=draw.random() < 0.7, away=draw.choice(AWAY))
                outcome, commit_id = reported(table, number)
                proxy.heal()
                read_back = commit_id and lake.context.metastore.commit(commit_id).version is not None
            there = (
                plain.sql(f"select count(*) as n from events where id = {number}").to_arrow()["n"][0].as_py()
                if plain.version
                else 0
            )
            outcomes[outcome] += 1
            true = {Outcome.COMMITTED: there == 2, Outcome.NOT_COMMITTED: there == 0, Outcome.UNKNOWN: there in (0, 2)}
            if not true[outcome] or (commit_id and read_back != (there == 2)):
                false.append((number, outcome, there, read_back))
    print(f"\n{commits} commits, {proxy.cuts} cut: {dict(outcomes)}")
    assert false == []
    assert proxy.cuts >= commits // 2
    assert outcomes[Outcome.COMMITTED]
