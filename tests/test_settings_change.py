"""Settings in signatures: an editor completes them, and they are those of `TableSettings`, with its defaults."""

from __future__ import annotations

import inspect
from dataclasses import MISSING, fields

import pytest

import windrow
import windrow.lake
from windrow.errors import InvalidInput
from windrow.model.settings import PolicySettings, TableSettings
from windrow.settings_change import ChangeSettings, NewSettings, SettingChange

SORT = "metric_name|host|timestamp/V2"
CREATE = inspect.signature(windrow.Lake.create_table).parameters


def default_of(field):
    """The default of a setting, where it has one."""
    if field.default_factory is not MISSING:
        return field.default_factory()
    return inspect.Parameter.empty if field.default is MISSING else field.default


@pytest.fixture
def table(tmp_path):
    with windrow.connect(tmp_path / "lake") as lake:
        yield lake.create_table("metrics", sort=SORT)


class TestSignatures:
    def test_create_table_has_every_setting_with_its_default(self):
        settings = {name: each.default for name, each in CREATE.items() if name not in ("self", "name")}
        # The default policy is made when none is given: what describes it is not loaded with a lake.
        assert settings == {field.name: default_of(field) for field in fields(TableSettings)} | {"policy": None}
        assert TableSettings.of(sort=SORT).policy == PolicySettings()

    def test_a_change_takes_what_create_table_takes(self):
        taken = {name: each.__forward_arg__ for name, each in NewSettings.__annotations__.items()}
        assert list(taken) == [field.name for field in fields(TableSettings)]
        taken["policy"] += " | None"
        assert taken.items() <= {name: each.annotation for name, each in CREATE.items()}.items()

    @pytest.mark.parametrize("verb", [ChangeSettings.plan, ChangeSettings.run])
    def test_editors_complete_the_settings_of_a_change(self, verb):
        parameters = inspect.signature(verb).parameters
        assert {name: each.annotation for name, each in parameters.items()} == {
            "self": inspect.Parameter.empty,
            "settings": "Unpack[NewSettings]",
        }
        assert parameters["settings"].kind is inspect.Parameter.VAR_KEYWORD

    def test_all_are_given_by_name(self):
        named = [each for name, each in CREATE.items() if name not in ("self", "name")]
        assert all(each.kind is inspect.Parameter.KEYWORD_ONLY for each in named)


class TestChanges:
    def test_a_plan_says_what_differs_and_changes_nothing(self, table):
        plan = table.change.plan(window="1h", retention="30d", mirror=True, policy={"merge_factor": 12})
        assert plan.changes == (
            SettingChange("window", 900, 3600),
            SettingChange("retention", None, 30 * 86400),
            SettingChange("policy.merge_factor", 16, 12),
        )
        assert table.settings() == TableSettings.of(sort=SORT)

    def test_a_run_changes_what_the_plan_says(self, table):
        plan = table.change.plan(window="1h", tags=["host"])
        assert table.change.run(window="1h", tags=["host"]) == plan
        assert (table.settings().window, table.settings().tags) == (3600, ("host",))

    @pytest.mark.parametrize("verb", ["plan", "run"])
    def test_a_name_that_is_no_setting_is_refused_with_the_nearest(self, table, verb):
        with pytest.raises(InvalidInput, match="retentoin is not a setting of a table; did you mean retention"):
            getattr(table.change, verb)(retentoin="30d")

    def test_none_is_a_value(self, table):
        table.change.run(retention="30d")
        table.change.run(retention=None)
        assert table.settings().retention is None

    @pytest.mark.parametrize("verb", ["plan", "run"])
    def test_a_change_that_cannot_be_is_refused_by_both(self, table, verb):
        with pytest.raises(InvalidInput, match="divide an hour"):
            getattr(table.change, verb)(window="7m")
        with pytest.raises(InvalidInput, match="living table"):
            getattr(table.change, verb)(timestamp="host")
