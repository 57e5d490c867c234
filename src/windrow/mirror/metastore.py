"""A metastore whose every commit is followed by the mirror of its table."""

from __future__ import annotations

import logging
from collections.abc import Collection, Mapping, Sequence
from typing import Any

import pyarrow as pa

from windrow.metastore import Checkpoint, Published, SqlMetastore
from windrow.mirror.follow import Mirror
from windrow.model.epochs import OldValues
from windrow.model.split import SplitMetadata
from windrow.storage import Store

__all__ = ["MirroredMetastore"]

_log = logging.getLogger(__name__)


class MirroredMetastore(SqlMetastore):
    """The metastore of a lake. What is published is published, whatever becomes of the mirror: it catches up later."""

    def __init__(self, url: str, store: Store, *, store_options: Mapping[str, str] | None = None, **parts: Any) -> None:
        super().__init__(url, **parts)
        self.mirror = Mirror(self, store, store_options or {})

    def publish(
        self,
        commit_id: str,
        *,
        attempt: int = 1,
        add: Sequence[SplitMetadata] = (),
        replace: Collection[str] = (),
        checkpoint: Checkpoint | None = None,
        columns: Collection[str] = (),
        attributes: Collection[str] = (),
        summary: Mapping[str, Any] | None = None,
    ) -> Published:
        """Make a commit visible as one new version, or nothing; then let the mirror follow."""
        published = super().publish(
            commit_id,
            attempt=attempt,
            add=add,
            replace=replace,
            checkpoint=checkpoint,
            columns=columns,
            attributes=attributes,
            summary=summary,
        )
        self._follow(commit_id)
        return published

    def change_type(
        self,
        commit_id: str,
        *,
        attempt: int = 1,
        column: str,
        kind: pa.DataType,
        rule: OldValues,
        epoch: int,
        version: int | None = None,
        summary: Mapping[str, Any] | None = None,
    ) -> Published:
        """Give a column another type, as one new version; then let the mirror follow."""
        published = super().change_type(
            commit_id,
            attempt=attempt,
            column=column,
            kind=kind,
            rule=rule,
            epoch=epoch,
            version=version,
            summary=summary,
        )
        self._follow(commit_id)
        return published

    def _follow(self, commit_id: str) -> None:
        try:
            table_id = self.commit(commit_id).table_id
            table = next(each for each in self.tables() if each.table_id == table_id)
            if table.settings.mirror:
                self.mirror.follow(table)
        except Exception as error:  # the commit is published: nothing may make it look as if it had failed
            _log.warning("commit %s is published; its Delta mirror is behind and catches up: %s", commit_id, error)
