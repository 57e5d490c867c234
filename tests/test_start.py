"""A fresh process: which modules it loads for a small question, and where it may start."""

from __future__ import annotations

import os
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pyarrow as pa
import pytest

import windrow

HEAVY = {
    *("numpy", "pyarrow", "pandas", "polars", "fsspec", "obstore", "zstandard", "cffi", "re2", "google", "psycopg"),
    *("sqlalchemy", "alembic", "sqlglot", "pyspark", "deltalake", "opentelemetry", "rich", "prompt_toolkit"),
}
NEVER_TO_READ = HEAVY - {"numpy", "pyarrow", "fsspec", "zstandard", "cffi", "re2", "google", "sqlalchemy", "sqlglot"}
COUNT = "select host, count(*) as n from metrics where timestamp >= '2026-01-01' group by host order by host"
SHOW = "import sys; print(*sorted({name.partition('.')[0] for name in sys.modules}), file=sys.stderr)"


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    place = tmp_path_factory.mktemp("start") / "lake"
    times = [datetime(2026, 1, 1, tzinfo=UTC) + timedelta(minutes=n) for n in range(60)]
    with windrow.connect(place) as lake:
        table = lake.create_table("metrics", sort="host|timestamp/V2", window="15m")
        table.ingest(pa.table({"host": [f"h{n % 3}" for n in range(60)], "timestamp": times, "load": range(60)}))
    return place


def run(code, *arguments, **environment):
    """What a process prints, and the libraries that it has loaded at its end."""
    done = subprocess.run(
        [sys.executable, "-c", f"{code}\n{SHOW}", *map(str, arguments)],
        capture_output=True,
        text=True,
        check=False,
        env={**os.environ, **environment},
    )
    assert done.returncode == 0, done.stderr
    return done.stdout, set(done.stderr.splitlines()[-1].split())


def asking(query, get="fetchall()"):
    return f"import sys, windrow\nwith windrow.connect(sys.argv[1]) as lake: print(lake.sql({query!r}).{get})"


COMMAND = "import sys\nfrom windrow.cli.main import run\nassert run(sys.argv[1:]) == 0"


def test_a_small_question_loads_duckdb_and_no_other_library(folder):
    answer, loaded = run(asking(COUNT), folder)
    assert answer == "[('h0', 20), ('h1', 20), ('h2', 20)]\n"
    assert loaded & HEAVY == set()
    assert "duckdb" in loaded


def test_arrow_is_loaded_when_it_is_wanted(folder):
    answer, loaded = run(asking(COUNT, "table.num_rows"), folder)
    assert answer == "3\n"
    assert loaded & HEAVY <= {"numpy", "pyarrow"}


def test_the_engine_loads_what_reading_takes(folder):
    query = "select count(*) as n from metrics a join metrics b using (host, timestamp)"
    answer, loaded = run(asking(query), folder)
    assert answer == "[(60,)]\n"
    assert loaded & NEVER_TO_READ == set()


def test_questions_after_the_first_have_the_same_answers(folder):
    code = (
        "import sys, windrow\nwith windrow.connect(sys.argv[1]) as lake:\n"
        f" for _ in range(7): print(lake.sql({COUNT!r}).to_dict())"
    )
    answer, loaded = run(code, folder)
    assert len(set(answer.splitlines())) == 1 < answer.count("\n")
    assert "sqlglot" in loaded


@pytest.mark.parametrize(
    ("arguments", "printed"),
    [
        (["--help"], "Usage"),
        (["sql", COUNT], "h2      20"),
        (["sql", "--format", "json", COUNT], '{"host": "h2", "n": 20}'),
    ],
)
def test_a_command_loads_no_library_that_it_does_not_need(folder, arguments, printed):
    text, loaded = run(COMMAND, *([] if arguments == ["--help"] else ["--lake", folder]), *arguments)
    assert printed.split() == [] or all(word in text for word in printed.split())
    assert loaded & HEAVY == set()


def test_the_package_alone_loads_nothing():
    _, loaded = run("import windrow")
    assert loaded & (HEAVY | {"duckdb", "sqlite3", "json", "email"}) == set()


def test_wrong_lakes_are_refused_as_ever(tmp_path):
    code = (
        "import sys, windrow\ntry: windrow.connect(sys.argv[1], create=False)\n"
        "except windrow.NotFound as error: print(error)"
    )
    assert "there is no lake" in run(code, tmp_path / "nothing")[0]


def test_errors_of_a_query_are_those_of_the_engine(folder):
    code = (
        "import sys, windrow\nwith windrow.connect(sys.argv[1]) as lake:\n"
        " try: lake.sql('select hots from metrics')\n except windrow.InvalidInput as error: print(error)"
    )
    assert "host" in run(code, folder)[0]


def test_a_closed_lake_says_so(folder):
    code = (
        "import sys, windrow\nlake = windrow.connect(sys.argv[1])\nlake.close()\n"
        "try: lake.sql('select 1')\nexcept windrow.Closed as error: print(error)"
    )
    assert "was closed" in run(code, folder)[0]


def test_many_processes_start_at_once(folder):
    with ThreadPoolExecutor(4) as pool:
        answers = set(pool.map(lambda _: run(asking(COUNT), folder)[0], range(4)))
    assert answers == {"[('h0', 20), ('h1', 20), ('h2', 20)]\n"}


@pytest.mark.parametrize("query", [COUNT, f"select * from ({COUNT})"])
def test_a_process_without_a_home_writes_nothing_into_the_package(folder, query):
    package = Path(windrow.__file__).parent
    before = set(package.rglob("*"))
    environment = {"PATH": os.environ["PATH"], "PYTHONDONTWRITEBYTECODE": "1", "PYTHONPATH": os.pathsep.join(sys.path)}
    done = subprocess.run(
        [sys.executable, "-c", asking(query), str(folder)], capture_output=True, text=True, check=False, env=environment
    )
    assert done.stdout == "[('h0', 20), ('h1', 20), ('h2', 20)]\n", done.stderr
    assert set(package.rglob("*")) == before
