"""Libraries that come with an extra of the package: a call that needs one names the extra."""

from __future__ import annotations

from importlib.util import find_spec

from windrow.errors import MissingDependency

__all__ = ["is_installed", "require"]

_EXTRAS = {
    "connect": ("Spark Connect", ("grpc", "grpc_status", "google.rpc")),
    "otlp": ("OTLP as protobuf", ("opentelemetry.proto",)),
    "pandas": ("pandas", ("pandas",)),
    "polars": ("Polars", ("polars",)),
    "postgres": ("a metastore in PostgreSQL", ("psycopg",)),
    "spark": ("Spark", ("pyspark", "pandas")),
}
"""By extra: what needs it, and the modules that it brings."""


def require(extra: str) -> None:
    """Refuse to go on without the libraries of an extra."""
    missing = _missing(extra)
    if missing:
        raise MissingDependency(
            f"{_EXTRAS[extra][0]} needs {', '.join(missing)}, which is not installed; "
            f"run: pip install 'windrow[{extra}]'"
        )


def is_installed(extra: str) -> bool:
    """Whether the libraries of an extra are there."""
    return not _missing(extra)


def _missing(extra: str) -> list[str]:
    return [name for name in _EXTRAS[extra][1] if not _is_there(name)]


def _is_there(name: str) -> bool:
    try:
        return find_spec(name) is not None
    except ModuleNotFoundError:  # the package around the module is not there either
        return False
