"""A metastore whose every commit is followed by the mirror of its table."""

from __future__ import annotations

import logging
from collections.abc import Callable
from typing import Any

from sqlalchemy import Connection, Row

from windrow.metastore import Published, SqlMetastore
from windrow.mirror.follow import Mirror
from windrow.storage import Store

__all__ = ["MirroredMetastore"]

_log = logging.getLogger(__name__)


class MirroredMetastore(SqlMetastore):
    """The metastore of a lake. What is published is published, whatever becomes of the mirror: it catches up later."""

    def __init__(self, url: str, store: Store, **parts: Any) -> None:
        super().__init__(url, **parts)
        self.mirror = Mirror(self, store)

    def publish_once(self, commit_id: str, apply: Callable[[Connection, Row[Any]], Published]) -> Published:
        """Publish a commit, by whichever verb it came; then let the mirror follow."""
        published = super().publish_once(commit_id, apply)
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
