"""Compaction scopes as rows: six parts behind one short key, since every split names its scope."""

from __future__ import annotations

from typing import Any

from sqlalchemy import Connection, Select, insert, select

from windrow.bounded import BoundedCache
from windrow.metastore.schema import scopes
from windrow.metastore.stored import damaged
from windrow.model.scope import CompactionScope

__all__ = ["ScopeKeys", "Scopes", "keys_of_scope"]

_MOST_SCOPES = 100_000


class ScopeKeys:
    """From scopes to keys. Rows are never deleted, so a key that was read stays true."""

    def __init__(self) -> None:
        self._keys: BoundedCache[CompactionScope, int] = BoundedCache("keys of scopes", _MOST_SCOPES)

    def of(self, connection: Connection, table_key: int, wanted: set[CompactionScope]) -> dict[CompactionScope, int]:
        """Return the keys of scopes; one made here is not remembered, since the transaction may yet fail."""
        keys = {}
        for scope in wanted:
            key = self._keys.get(scope)
            if key is None:
                key = connection.execute(keys_of_scope(table_key, scope)).scalar_one_or_none()
                if key is not None:
                    self._keys.put(scope, key)
            keys[scope] = _add(connection, table_key, scope) if key is None else key
        return keys


class Scopes:
    """From keys to scopes, remembered."""

    def __init__(self) -> None:
        self._scopes: BoundedCache[int, CompactionScope] = BoundedCache("scopes", _MOST_SCOPES)

    def of(self, connection: Connection, key: int, table_id: str) -> CompactionScope:
        """Return the scope of a key that a split names."""
        scope = self._scopes.get(key)
        if scope is None:
            row = connection.execute(select(scopes).where(scopes.c.scope_key == key)).one_or_none()
            if row is None:
                raise damaged("windrow_splits", key, "scope_key", "there is no such scope")
            scope = CompactionScope(
                index_uid=table_id,
                source_id=row.source_id,
                partition_id=row.partition_id,
                doc_mapping_uid=row.doc_mapping_uid,
                sort_schema=row.sort_schema,
                window_duration=row.window_duration,
            )
            self._scopes.put(key, scope)
        return scope


def keys_of_scope(table_key: int, scope: CompactionScope) -> Select[int]:
    """Return the query for the key of a scope."""
    conditions = [scopes.c[name] == value for name, value in _parts(table_key, scope).items()]
    return select(scopes.c.scope_key).where(*conditions)


def _add(connection: Connection, table_key: int, scope: CompactionScope) -> int:
    statement = insert(scopes).values(_parts(table_key, scope)).returning(scopes.c.scope_key)
    return int(connection.execute(statement).scalar_one())


def _parts(table_key: int, scope: CompactionScope) -> dict[str, Any]:
    parts = scope.to_dict()
    del parts["index_uid"]
    return {"table_key": table_key, **parts}
