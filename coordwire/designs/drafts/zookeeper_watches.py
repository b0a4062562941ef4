"""The watches of sessions on nodes; each watch fires once.

Strategy: two tables, as ZooKeeper has them: watches on a node's data and existence, and on its children. A
session watches a node's data once, however often it asks. Rules: a node's end fires both, as one event for a
session that has both; sessions come in the order in which they asked.
"""

from __future__ import annotations

from coordwire.designs.drafts.zookeeper_operations import EventKind

__all__ = ["Watches"]

_Table = dict[str, dict[int, None]]


class Watches:
    """The watches of all sessions."""

    def __init__(self) -> None:
        self._data: _Table = {}
        self._children: _Table = {}
        self._of_session: dict[int, set[tuple[bool, str]]] = {}

    def __eq__(self, value: object) -> bool:
        if not isinstance(value, Watches):
            return NotImplemented
        return self._data == value._data and self._children == value._children

    __hash__ = None  # type: ignore[assignment]

    def add_data(self, session: int, path: str) -> None:
        self._add(self._data, session, path)

    def add_children(self, session: int, path: str) -> None:
        self._add(self._children, session, path)

    def _add(self, table: _Table, session: int, path: str) -> None:
        table.setdefault(path, {})[session] = None
        self._of_session.setdefault(session, set()).add((table is self._children, path))

    def fire(self, kind: EventKind, path: str) -> list[int]:
        """The sessions that an event goes to, and whose watches are used up by it."""
        if kind is EventKind.CHILDREN_CHANGED:
            return list(self._take(self._children, path))
        sessions = self._take(self._data, path)
        if kind is EventKind.DELETED:
            sessions |= self._take(self._children, path)
        return list(sessions)

    def _take(self, table: _Table, path: str) -> dict[int, None]:
        sessions = table.pop(path, {})
        for session in sessions:
            self._of_session[session].discard((table is self._children, path))
        return sessions

    def remove_session(self, session: int) -> None:
        for children, path in self._of_session.pop(session, set()):
            table = self._children if children else self._data
            table[path].pop(session)
            if not table[path]:
                del table[path]
