"""The settings of one run of Windrow, and where each of them came from.

An argument wins over a `WINDROW_*` variable, a variable over the TOML file, the file over the default. Options are
given one by one, so that each of them has an origin of its own:

    lake = "s3://metrics/lake"               WINDROW_LAKE=s3://metrics/lake
    [store_options]
    region = "eu-central-1"                  WINDROW_STORE_OPTIONS__REGION=eu-central-1
    [spark_options]
    spark.driver.memory = "4g"               WINDROW_SPARK_OPTIONS__SPARK__DRIVER__MEMORY=4g

Nothing here reads a file or the environment; the caller does and passes both in.
"""

from __future__ import annotations

import math
import re
import tomllib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, fields, replace
from difflib import get_close_matches
from typing import Any

from windrow import tricks
from windrow.errors import ConfigError

__all__ = ["CONFIG_VARIABLE", "LOG_LEVELS", "Config", "Resolved", "Setting", "masked", "resolve"]

CONFIG_VARIABLE = "WINDROW_CONFIG"
"""The variable that names the TOML file; it is no setting itself."""
LOG_LEVELS = ("debug", "info", "warning", "error")

_PREFIX = "WINDROW_"
_NO_SETTINGS = (CONFIG_VARIABLE, tricks.VARIABLE)
_DEFAULT = "default"


@dataclass(frozen=True, slots=True)
class Config:
    """The settings of one run."""

    lake: str = "./lake"
    """The folder or the bucket of the lake."""
    metastore: str | None = None
    """The database of the lake; None is the one in the lake's own folder."""
    spark_master: str = "local[*]"
    """Where Spark runs."""
    log_level: str = "warning"
    """The least grave log lines that are shown."""
    statistics: float = 0.15
    """Of the CPU that queries use, the share that may be spent on statistics; 0 collects none."""
    store_options: Mapping[str, str] = field(default_factory=dict)
    """Credentials, endpoint and region of the store."""
    spark_options: Mapping[str, str] = field(default_factory=dict)
    """Spark's own settings, by their full names."""


_OPTIONS = ("store_options", "spark_options")
_NAMES = tuple(each.name for each in fields(Config))
_PLAIN = tuple(name for name in _NAMES if name not in _OPTIONS)


@dataclass(frozen=True, slots=True)
class Setting:
    """One value and where it came from; an option's name is dotted: `store_options.region`."""

    name: str
    value: Any
    origin: str


@dataclass(frozen=True, slots=True)
class Resolved:
    """The settings of one run with their origins."""

    config: Config
    settings: tuple[Setting, ...]

    def shown(self) -> tuple[Setting, ...]:
        """Return the settings as they may be shown: passwords and keys are masked."""
        return tuple(Setting(each.name, masked(each.name, each.value), each.origin) for each in self.settings)


def resolve(
    arguments: Mapping[str, Any], environ: Mapping[str, str], toml_text: str = "", toml_name: str = "windrow.toml"
) -> Resolved:
    """Return the settings of an invocation, each checked; an argument that is None was not given."""
    defaults = Config()
    settings = {name: Setting(name, getattr(defaults, name), _DEFAULT) for name in _PLAIN}
    for given in (*_from_toml(toml_text, toml_name), *_from_environ(environ), *_from_arguments(arguments)):
        settings[given.name] = _checked(given)
    values: dict[str, Any] = {name: {} for name in _OPTIONS}
    for each in settings.values():
        name, _, option = each.name.partition(".")
        if option:
            values[name][option] = each.value
        else:
            values[name] = each.value
    return Resolved(Config(**values), tuple(sorted(settings.values(), key=_place)))


def _place(setting: Setting) -> tuple[int, str]:
    """Settings are listed as Config has them, options by name."""
    return _NAMES.index(setting.name.partition(".")[0]), setting.name


def _from_arguments(arguments: Mapping[str, Any]) -> Iterator[Setting]:
    for name, value in arguments.items():
        if value is not None:
            yield Setting(name, value, f"--{name.replace('_', '-')}")


def _from_environ(environ: Mapping[str, str]) -> Iterator[Setting]:
    for variable in sorted(environ):
        if variable.startswith(_PREFIX) and variable not in _NO_SETTINGS:
            yield Setting(_setting_of(variable), environ[variable], variable)


def _setting_of(variable: str) -> str:
    """Return the setting that a variable names; an option keeps its capitals when it is written with small letters."""
    name, *option = variable.removeprefix(_PREFIX).split("__")
    setting = name.lower()
    if setting in _OPTIONS and option:
        return ".".join([setting, *(part.lower() if part.isupper() else part for part in option)])
    if setting in _PLAIN and not option:
        return setting
    if setting in _OPTIONS:
        raise ConfigError(f"{variable}: options are given one by one; write {variable}__NAME=value")
    variables = [_PREFIX + each.upper() for each in _NAMES]
    raise _unknown(variable, "a variable of Windrow", [*variables, CONFIG_VARIABLE])


def _from_toml(text: str, origin: str) -> Iterator[Setting]:
    try:
        parsed = tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        raise ConfigError(f"{origin}: this is not TOML: {error}; correct the file") from error
    for name, value in parsed.items():
        if name not in _NAMES:
            raise _unknown(name, f"a setting, in {origin}", list(_NAMES))
        if name in _PLAIN:
            yield Setting(name, value, origin)
        elif isinstance(value, dict):
            yield from _flattened(name, value, origin)
        else:
            raise _wrong(Setting(name, value, origin), "a table of options")


def _flattened(name: str, value: Any, origin: str) -> Iterator[Setting]:
    """TOML reads a dotted key as tables in tables; the option is the whole of it."""
    if not isinstance(value, dict):
        yield Setting(name, value, origin)
        return
    for part, inner in value.items():
        yield from _flattened(f"{name}.{part}", inner, origin)


def _checked(given: Setting) -> Setting:
    """Return the setting with the value as the run uses it."""
    value = _option_text(given) if "." in given.name else given.value
    if given.name == "statistics":
        return replace(given, value=_share(given))
    if not isinstance(value, str):
        raise _wrong(given, "text")
    if given.name == "log_level":
        value = value.lower()
        if value not in LOG_LEVELS:
            raise ConfigError(f"log_level, from {given.origin}: {value!r} is none of {', '.join(LOG_LEVELS)}")
    if not value and given.name in ("lake", "spark_master"):
        raise ConfigError(f"{given.name}, from {given.origin}: it is empty; give a value or leave it out")
    # An empty metastore takes back what a weaker origin named.
    return Setting(given.name, None if given.name == "metastore" and not value else value, given.origin)


def _share(given: Setting) -> float:
    value = given.value
    try:
        share = math.nan if isinstance(value, bool) else float(value)
    except (TypeError, ValueError):
        share = math.nan
    if not 0 <= share < math.inf:
        raise ConfigError(f"statistics, from {given.origin}: {value!r} is no share; give a number such as 0.15, or 0")
    return share


def _option_text(given: Setting) -> Any:
    """Options are text to whom they are for; TOML may write them as what they are."""
    value = given.value
    if isinstance(value, bool):
        return str(value).lower()
    return str(value) if isinstance(value, int | float) else value


def _wrong(given: Setting, expected: str) -> ConfigError:
    # The value itself may be a secret.
    kind = type(given.value).__name__
    return ConfigError(f"{given.name}, from {given.origin}: expected {expected}, found a value of type {kind}")


def _unknown(name: str, kind: str, names: list[str]) -> ConfigError:
    near = get_close_matches(name, names, 1)
    hint = f"did you mean {near[0]}?" if near else f"known: {', '.join(names)}"
    return ConfigError(f"{name} is not {kind}; {hint}")


_WORDS = r"secret|pass|token|credential|bearer|authorization|signature"
_SECRET_NAME = re.compile(rf"{_WORDS}|key(?!\w*[_.]?id$)", re.IGNORECASE)
_URL_PASSWORD = re.compile(r"(://[^:/?]*):.*@")
# A parameter of a URL, a word of a connection string, an option of a Java machine.
_PARAMETER = re.compile(rf"((?:^|[?&;\s])[\w.-]*(?:{_WORDS}|key|sig)[\w.-]*=)[^&;\s]*", re.IGNORECASE)
_HEADER = re.compile(r"(authorization\s*[:=]\s*).+", re.IGNORECASE)
_SCHEME = re.compile(r"\b(bearer|basic)\s+[\w.~+/=-]+", re.IGNORECASE)
_MASK = "***"
_SHAPES = (
    (_URL_PASSWORD, rf"\1:{_MASK}@"),
    (_PARAMETER, rf"\1{_MASK}"),
    (_HEADER, rf"\1{_MASK}"),
    (_SCHEME, rf"\1 {_MASK}"),
)


def masked(name: str, value: Any) -> Any:
    """Return a value as it may be shown: a secret by its name is hidden whole, one by its shape where it stands.

    >>> masked("metastore", "postgresql://reader:hunter2@db/lake")
    'postgresql://reader:***@db/lake'
    >>> masked("store_options.header", "Authorization: Bearer hunter2")
    'Authorization: ***'
    """
    if not isinstance(value, str) or not value:
        return value
    if _SECRET_NAME.search(name.partition(".")[2]):
        return _MASK
    for shape, shown in _SHAPES:
        value = shape.sub(shown, value)
    return value
