"""Experiments from the command line."""

from __future__ import annotations


def test_a_table_is_tried_and_left_alone(call, metrics, here):
    before = call("inspect", "commits", metrics, "--json").json
    out = call("tune", metrics, "--plot", "tune.svg").out
    assert "sorting saves" in out
    assert "fan-in, tried:" in out
    assert "advice:" in out
    assert (here / "tune.svg").read_text().startswith("<svg")
    assert call("inspect", "commits", metrics, "--json").json == before


def test_bad_input_is_refused(call, metrics):
    assert call("tune", "nothing").code == 3
    assert call("tune", metrics, "--rows", "1").code == 2
    answer = call("tune", metrics, "--plot", "no/such/folder.svg")
    assert (answer.code, "name another file" in answer.err) == (2, True)
