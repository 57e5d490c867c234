"""From a URL to a store."""

from __future__ import annotations

import math
import os
from collections.abc import Mapping
from datetime import timedelta
from itertools import count
from pathlib import Path
from typing import Any
from urllib.parse import SplitResult, unquote, urlsplit
from weakref import WeakValueDictionary

from windrow.errors import ConfigError, InvalidInput, NotFound
from windrow.storage.kinds import AZURE, GCS, HTTP, MEMORY, S3, S3_EXPRESS, Kind
from windrow.storage.local import LocalStore
from windrow.storage.protocol import Store

__all__ = ["address_of", "open_store", "options_for"]

_KINDS = {
    "abfs": AZURE,
    "abfss": AZURE,
    "az": AZURE,
    "gs": GCS,
    "http": HTTP,
    "https": HTTP,
    "memory": MEMORY,
    "s3": S3,
    "s3a": S3,
}

# The options that configure the HTTP client; obstore wants them apart from those of the store.
_CLIENT_OPTIONS = frozenset(
    {
        "allow_http",
        "allow_invalid_certificates",
        "connect_timeout",
        "default_content_type",
        "http1_only",
        "http2_keep_alive_interval",
        "http2_keep_alive_timeout",
        "http2_keep_alive_while_idle",
        "http2_only",
        "pool_idle_timeout",
        "pool_max_idle_per_host",
        "proxy_ca_certificate",
        "proxy_excludes",
        "proxy_url",
        "randomize_addresses",
        "read_timeout",
        "root_certificate",
        "timeout",
        "user_agent",
    }
)

# A large object takes longer than obstore's 30 seconds for a whole request; a silent connection is given up sooner.
_CLIENT_DEFAULTS = {"timeout": "300s", "read_timeout": "60s"}


_PROCESS = "process"
_open_here: WeakValueDictionary[str, Store] = WeakValueDictionary()
_numbers = count()


def address_of(store: Store) -> str:
    """Give an open store a URL by which `open_store` finds it in this process, for as long as somebody holds it.

    So that any store, one that watches or disturbs calls too, serves work that opens its store by a URL.
    """
    url = f"{_PROCESS}://{next(_numbers)}"
    _open_here[url] = store
    return url


def open_store(url: str, *, options: Mapping[str, str] | None = None) -> Store:
    """Open the store that a URL names.

    - a plain path or `file://`: a local folder, with durable writes
    - `s3://bucket/folder` (also `s3a://`), `gs://bucket/folder`, `az://container/folder`,
      `abfss://container@account.dfs.core.windows.net/folder` (also `abfs://`)
    - `http://` and `https://`: read by key only
    - `memory://`: a new empty store in this process
    - `process://`: what `address_of` gave for a store that is open in this process

    Credentials, endpoint and region come from the usual variables (`AWS_*`, `GOOGLE_*`, `AZURE_*`) and from `options`,
    which win: `endpoint`, `region`, `access_key_id` and so on for S3, likewise for the others as obstore names them,
    and for each remote store the options of the HTTP client (`allow_http`, `timeout`, ...), `max_retries` and
    `retry_timeout` in seconds. A plain-text endpoint must be allowed by `allow_http`.
    """
    if not url or "\0" in url:
        raise InvalidInput(f"store URL {url!r}: it names no place; give a path or a URL")
    given = options or {}
    if "://" not in url and not url.startswith("file:"):
        return _open_path(url, given)
    parts = urlsplit(url)
    if parts.scheme == _PROCESS:
        return _opened_here(url)
    if parts.scheme == "file":
        return _open_file(url, parts, given)
    if parts.scheme not in _KINDS:
        schemes = ", ".join(f"{name}://" for name in ("file", *_KINDS))
        raise InvalidInput(f"store URL with scheme {parts.scheme!r}: no such kind of store; use a path or {schemes}")
    return _open_remote(url, parts, given)


def options_for(url: str, options: Mapping[str, str] | None) -> dict[str, str]:
    """Those of a lake's options that a store of this address takes.

    One set of options serves a lake and the files outside of it that its users name: a local folder has none, a web
    server takes those of the HTTP client, and a bucket all but those that are named after another provider.
    """
    kind = _KINDS.get(urlsplit(url).scheme) if "://" in url else None
    if kind is None or kind is MEMORY:
        return {}
    others = tuple({each.variables for each in _KINDS.values()} - {kind.variables, ""})
    fitting = {name: value for name, value in (options or {}).items() if not name.lower().startswith(others)}
    return fitting if kind is not HTTP else {name: fitting[name] for name in fitting if _is_for_client(name)}


def _is_for_client(name: str) -> bool:
    return name.lower() in _CLIENT_OPTIONS | {"max_retries", "retry_timeout"}


def _opened_here(url: str) -> Store:
    store = _open_here.get(url)
    if store is None:
        raise NotFound(f"store URL {url!r}: no such store is open in this process; open it by its own address")
    return store


def _open_path(path: str, options: Mapping[str, str]) -> Store:
    _refuse(path, options)
    try:
        return LocalStore(Path(path).expanduser())
    except RuntimeError as error:  # what pathlib raises for a user without a home
        raise InvalidInput(f"store path {path!r}: {error}; write the path out") from error


def _open_file(url: str, parts: SplitResult, options: Mapping[str, str]) -> Store:
    _refuse(url, options)
    path = unquote(parts.path)
    if parts.netloc not in {"", "localhost"} or not path.startswith("/") or "\0" in path or parts.query:
        raise InvalidInput(f"store URL {url!r}: it names no folder of this machine; write file:///folder")
    return LocalStore(path)


def _open_remote(url: str, parts: SplitResult, options: Mapping[str, str]) -> Store:
    from windrow.storage.remote import ObstoreStore

    kind = _kind(parts)
    _check_address(parts, kind)
    if kind is MEMORY:
        _refuse(url, options)
        return ObstoreStore(_build(url, kind, {}), url, kind)
    arguments = _arguments(url, kind, options)
    if kind is HTTP:
        _refuse(url, arguments.pop("config"))
        arguments["client_options"].setdefault("allow_http", "true")  # http:// is a decision
    return ObstoreStore(_build(url, kind, arguments), url, kind)


def _kind(parts: SplitResult) -> Kind:
    kind = _KINDS[parts.scheme]
    # The names of S3's directory buckets end like this.
    return S3_EXPRESS if kind is S3 and parts.netloc.endswith("--x-s3") else kind


def _check_address(parts: SplitResult, kind: Kind) -> None:
    """Refuse what may be a secret, without repeating it; in Azure's addresses, a container stands before the `@`."""
    if parts.query or parts.fragment or ("@" in parts.netloc and kind is not AZURE):
        raise InvalidInput(
            f"store URL on host {parts.hostname}: it carries a password, a query or a fragment; give the plain address"
        )


def _refuse(url: str, options: Mapping[str, str]) -> None:
    if options:
        raise ConfigError(f"{url}: unknown option {min(options)!r}; leave it out, this kind of store has no such one")


def _arguments(url: str, kind: Kind, options: Mapping[str, str]) -> dict[str, Any]:
    """Sort options by who takes them: the store, its HTTP client, or its retries."""
    client = _CLIENT_DEFAULTS | _client_variables(kind)
    retry: dict[str, Any] = {}
    store = dict(kind.options)
    for name, value in options.items():
        plain = name.lower().removeprefix(kind.variables)
        if plain in _CLIENT_OPTIONS:
            client[plain] = value
        elif plain == "max_retries":
            retry[plain] = int(_number(url, name, value))
        elif plain == "retry_timeout":
            retry[plain] = timedelta(seconds=_number(url, name, value))
        else:
            # An option can be named twice, and then obstore refuses both; ours gives way.
            store.pop(plain, None)
            store[name.lower()] = value
    return {"config": store, "client_options": client, "retry_config": retry or None}


def _client_variables(kind: Kind) -> dict[str, str]:
    """The client's variables, which obstore reads only if it is given no client options at all."""
    names = {name: f"{kind.variables}{name}".upper() for name in _CLIENT_OPTIONS if kind.variables}
    return {name: os.environ[variable] for name, variable in names.items() if variable in os.environ}


def _number(url: str, name: str, value: str) -> float:
    try:
        number = float(value)
    except ValueError:
        number = math.nan
    if not 0 <= number < math.inf:
        raise ConfigError(f"{url}: option {name!r} is {value!r}; give a number from 0 on")
    return number


def _build(url: str, kind: Kind, arguments: Mapping[str, Any]) -> Any:
    import obstore.store
    from obstore.exceptions import BaseError

    builder = getattr(obstore.store, kind.builder)
    try:
        return builder.from_url(url, **arguments) if arguments else builder()
    except (BaseError, ValueError, TypeError) as error:
        problem = str(error).partition("\n")[0]
        raise ConfigError(f"{url}: {problem}; check the URL, the options and the variables") from error
