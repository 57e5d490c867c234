"""A sidecar that is missing, stale or damaged costs a warning and the time to make it again, never a wrong answer."""

from __future__ import annotations

import io
import logging
from collections.abc import Callable
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from windrow.errors import Damaged, NotFound
from windrow.model.predicate import Comparison, Op
from windrow.sidecar import Sidecar
from windrow.sidecar.build import build_sidecar
from windrow.sidecar.pruning import prune
from windrow.sidecar.sound import sound_sidecar


def parquet(first: int, rows: int = 30) -> bytes:
    buffer = io.BytesIO()
    pq.write_table(pa.table({"n": range(first, first + rows)}), buffer, row_group_size=10)
    return buffer.getvalue()


def built(data: bytes, etag: str | None = None) -> bytes:
    return build_sidecar(lambda start, length: data[start : start + length], len(data), name="p", etag=etag)


FILE = parquet(0)
SOUND = built(FILE, "one")


def future(data: bytes) -> bytes:
    changed = bytearray(data)
    changed[8 + 5] |= 1
    return bytes(changed)


def missing() -> Sidecar:
    raise NotFound("_p.pm: no such sidecar")


def ask(load: Callable[[], Sidecar], data: bytes = FILE, etag: str | None = "one") -> list[bool]:
    sidecar = sound_sidecar(load, lambda start, length: data[start : start + length], len(data), name="p", etag=etag)
    return prune(sidecar, Comparison("n", Op.GREATER_OR_EQUAL, 20)).tolist()


def test_a_sound_one_is_used_as_it_is(caplog: pytest.LogCaptureFixture) -> None:
    sidecar = Sidecar.of(SOUND)
    assert sound_sidecar(lambda: sidecar, missing, len(FILE), name="p", etag="one") is sidecar
    assert caplog.records == []


@pytest.mark.parametrize(
    ("load", "why"),
    [
        pytest.param(missing, "no such sidecar", id="missing"),
        pytest.param(lambda: Sidecar.of(SOUND[:-30]), "bytes are committed", id="cut off"),
        pytest.param(lambda: Sidecar.of(SOUND[:300] + b"\xff" + SOUND[301:]), "CHECKSUM", id="a changed byte"),
        pytest.param(lambda: Sidecar.of(future(SOUND)), "unknown required features", id="from the future"),
        pytest.param(lambda: Sidecar.of(built(parquet(0, 1000))), "describes another file", id="of another size"),
        pytest.param(lambda: Sidecar.of(built(FILE, "two")), "describes another file", id="of another etag"),
        pytest.param(
            lambda: Sidecar.of(SOUND, parquet_size=len(FILE) + 1), "no footer describes", id="of no such snapshot"
        ),
    ],
)
def test_any_other_is_made_again_with_a_warning(
    load: Callable[[], Sidecar], why: str, caplog: pytest.LogCaptureFixture
) -> None:
    with caplog.at_level(logging.WARNING, "windrow"):
        assert ask(load) == [False, False, True]
    (record,) = caplog.records
    assert why in record.getMessage()
    assert record.getMessage().endswith("it was made again from p for this read")


def test_a_file_that_does_not_help_either_is_said() -> None:
    with pytest.raises(Damaged, match=r"CHECKSUM.*cannot be made again from the Parquet file either: p: "):
        ask(lambda: Sidecar.of(SOUND[:300] + b"\xff" + SOUND[301:]), FILE[:-10])


def test_the_command_says_what_it_did(tmp_path: Path) -> None:
    from click.testing import CliRunner

    from windrow.cli.main import cli

    (tmp_path / "p.parquet").write_bytes(FILE)
    (tmp_path / "_p.pm").write_bytes(SOUND[:-30])
    asked = ["pm", "prune", str(tmp_path / "_p.pm"), "--where", "n >= 20"]
    alone = CliRunner().invoke(cli, asked)
    assert alone.exit_code != 0
    helped = CliRunner().invoke(cli, [*asked, "--parquet", str(tmp_path / "p.parquet")])
    assert helped.exit_code == 0
    assert "row groups that can match: 2" in helped.stdout
    assert "it was made again" in helped.stderr
