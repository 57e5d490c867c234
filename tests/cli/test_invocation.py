"""Where the TOML file is looked for, and what is logged."""

from __future__ import annotations

import logging

import pytest

from windrow.cli.invocation import Invocation
from windrow.errors import ConfigError


def lake(**given):
    setting = Invocation.of(given).resolved.settings[0]
    return setting.value, setting.origin


def test_the_file_in_the_working_folder_is_read(here):
    (here / "windrow.toml").write_text("lake = 'here'")
    assert lake() == ("here", "windrow.toml")


def test_the_file_that_the_variable_names_is_read_instead(here, monkeypatch):
    (here / "windrow.toml").write_text("lake = 'here'")
    (here / "other.toml").write_text("lake = 'other'")
    monkeypatch.setenv("WINDROW_CONFIG", "other.toml")
    assert lake() == ("other", "other.toml")


def test_the_file_that_the_argument_names_wins(here, monkeypatch):
    (here / "mine.toml").write_text("lake = 'mine'")
    monkeypatch.setenv("WINDROW_CONFIG", "nowhere.toml")
    assert lake(config="mine.toml") == ("mine", "mine.toml")


def test_an_empty_variable_means_no_file(here, monkeypatch):
    (here / "windrow.toml").write_text("lake = 'here'")
    monkeypatch.setenv("WINDROW_CONFIG", "")
    assert lake() == ("./lake", "default")


def test_a_file_that_is_named_must_be_there(here):
    with pytest.raises(ConfigError, match=r"nowhere\.toml: the settings cannot be read: No such file"):
        Invocation.of({"config": "nowhere.toml"})


def test_a_file_that_is_not_text_is_refused(here):
    (here / "windrow.toml").write_bytes(b"\xff\xfe")
    with pytest.raises(ConfigError, match="not UTF-8"):
        Invocation.of({})


def test_log_lines_from_the_chosen_level_on_go_to_stderr(here, capsys):
    Invocation.of({"log_level": "info"})
    logging.getLogger("windrow.ingest").info("heard")
    logging.getLogger("windrow.ingest").debug("not heard")
    assert capsys.readouterr() == ("", "INFO windrow.ingest: heard\n")


def test_a_second_call_does_not_log_twice(here, capsys):
    Invocation.of({})
    Invocation.of({})
    logging.getLogger("windrow").warning("once")
    assert capsys.readouterr().err.count("once") == 1
