"""Where a setting comes from, who wins, and what is refused."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from windrow.config import Config, masked, resolve
from windrow.errors import ConfigError

CASES = json.loads((Path(__file__).parent / "cases" / "config.json").read_text())


def resolved(case):
    return resolve(case.get("arguments", {}), case.get("environ", {}), case.get("toml", ""))


@pytest.mark.parametrize("case", CASES["resolved"], ids=lambda case: case["case"])
def test_every_value_has_one_origin(case):
    settings = {setting.name: [setting.value, setting.origin] for setting in resolved(case).settings}
    assert {name: settings[name] for name in case["expected"]} == case["expected"]


@pytest.mark.parametrize("case", CASES["resolved"], ids=lambda case: case["case"])
def test_the_run_uses_what_the_settings_say(case):
    result = resolved(case)
    for setting in result.settings:
        name, _, option = setting.name.partition(".")
        value = getattr(result.config, name)
        assert (value[option] if option else value) == setting.value


@pytest.mark.parametrize("case", CASES["refused"], ids=lambda case: case["case"])
def test_what_cannot_be_meant_is_refused(case):
    with pytest.raises(ConfigError) as refused:
        resolved(case)
    assert str(refused.value).startswith(case["message"])
    assert "hunter2" not in str(refused.value)


def test_the_origin_is_the_name_of_the_file():
    (lake, *_) = resolve({}, {}, "lake = 'x'", "/etc/windrow.toml").settings
    assert lake.origin == "/etc/windrow.toml"


def test_without_anything_the_settings_are_the_defaults():
    assert resolve({}, {}).config == Config()


@pytest.mark.parametrize(("name", "value", "shown"), CASES["shown"])
def test_secrets_are_masked(name, value, shown):
    assert masked(name, value) == shown


def test_settings_are_shown_masked_and_used_whole():
    result = resolve({"metastore": "postgresql://me:hunter2@db/lake"}, {"WINDROW_STORE_OPTIONS__TOKEN": "hunter2"})
    assert "hunter2" not in str(result.shown())
    assert result.config.store_options == {"token": "hunter2"}
    assert "hunter2" in (result.config.metastore or "")
