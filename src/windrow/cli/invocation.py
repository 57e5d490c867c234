"""One call of the command line: its settings from arguments, variables and the TOML file, and how it answers."""

from __future__ import annotations

import logging
import os
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from windrow.cli.output import JsonOutput, Output, TextOutput
from windrow.config import CONFIG_VARIABLE, Config, Resolved, resolve
from windrow.errors import ConfigError

if TYPE_CHECKING:
    from windrow.identity.binding import Accept
    from windrow.lake import Lake

__all__ = ["Invocation"]

_FILE = "windrow.toml"
_SECONDS_AT_CLOSE = 0.5
"""What a command may wait for statistics that its queries have paid for."""
_SETTINGS = ("lake", "metastore", "log_level")


@dataclass(frozen=True, slots=True)
class Invocation:
    """What every command works with."""

    resolved: Resolved
    output: Output

    @property
    def config(self) -> Config:
        """The settings."""
        return self.resolved.config

    @property
    def is_json(self) -> bool:
        """Whether a program reads the answer."""
        return isinstance(self.output, JsonOutput)

    @classmethod
    def of(cls, given: Mapping[str, Any]) -> Invocation:
        """Build from the global options that were given."""
        name, text = _toml(given.get("config"))
        arguments = {setting: given.get(setting) for setting in _SETTINGS}
        resolved = resolve(arguments, os.environ, text, name)
        _set_up_logging(resolved.config.log_level)
        return cls(resolved, JsonOutput() if given.get("json") else TextOutput())

    @contextmanager
    def lake(self, *, create: bool = False, accept: Accept | None = None, sandbox: bool = False) -> Iterator[Lake]:
        """Open the lake for one command; one that is not there is made only by what creates something."""
        from windrow.lake import connect
        from windrow.model.learning_settings import LearningSettings

        config = self.config
        options = config.store_options
        with connect(
            config.lake,
            metastore=config.metastore,
            create=create,
            accept=accept,
            store_options=options,
            sandbox=sandbox,
            statistics=LearningSettings(config.statistics, seconds_at_close=_SECONDS_AT_CLOSE),
        ) as lake:
            yield lake


def _toml(argument: str | None) -> tuple[str, str]:
    """Return the name and the text of the TOML file: the one that is named, else the one in the working folder."""
    name = argument if argument is not None else os.environ.get(CONFIG_VARIABLE)
    if name is None:
        name = _FILE if Path(_FILE).exists() else ""
    if not name:
        return _FILE, ""
    try:
        return name, Path(name).read_text(encoding="utf-8")
    except OSError as error:
        raise ConfigError(f"{name}: the settings cannot be read: {error.strerror}; name another file") from error
    except UnicodeDecodeError as error:
        raise ConfigError(f"{name}: this is not TOML: it is not UTF-8 text; correct the file") from error


def _set_up_logging(level: str) -> None:
    """Log lines of Windrow go to stderr; other libraries keep their warnings."""
    handler = logging.StreamHandler(sys.stderr)
    handler.setFormatter(logging.Formatter("%(levelname)s %(name)s: %(message)s"))
    logger = logging.getLogger("windrow")
    logger.handlers[:] = [handler]
    logger.setLevel(level.upper())
    for talker in ("", "py4j.clientserver"):
        logging.getLogger(talker).addFilter(_not_from_py4j)


def _not_from_py4j(record: logging.LogRecord) -> bool:
    """Spark's bridge logs a stack for every Ctrl-C, on the root logger even; the command says it in a word."""
    return "py4j" not in record.pathname
