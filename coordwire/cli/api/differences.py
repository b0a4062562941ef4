"""The differences between two versions of an API: its fields, lengths, headers, and the words on it.

Rules: a struct that comes or goes is reported once, with the number of its fields.
"""

from __future__ import annotations

from typing import Any

from coordwire.cli.api.fields import Row, rows
from coordwire.codec import Message
from coordwire.messages.keys import ApiFacts
from coordwire.versions import header_version


def differences(cls: type[Message], old: int, new: int) -> list[dict[str, Any]]:
    """The changes of a message from one version to another: {"change", "path", "type", …}."""
    before = {row.path: row for row in rows(cls, old)}
    after = {row.path: row for row in rows(cls, new)}
    order = [row.path for row in rows(cls) if row.path in before or row.path in after]
    changes_found: list[dict[str, Any]] = []
    for path in dict.fromkeys(order):
        was, now = before.get(path), after.get(path)
        if was is None or now is None:
            change, row, side = ("added", now, before) if was is None else ("removed", was, after)
            assert row is not None
            if path.rpartition(".")[0] in side or "." not in path:  # else its struct was reported already
                changes_found.append(_change(change, row, after if was is None else before))
            continue
        if (was.null is None) != (now.null is None):
            changes_found.append(_change("nullable" if was.null is None else "not nullable", now, after))
        if was.field.tag != now.field.tag:
            changes_found.append(_change("tag", now, after) | {"from": was.field.tag, "to": now.field.tag})
    return changes_found


def _change(change: str, row: Row, side: dict[str, Row]) -> dict[str, Any]:
    entry: dict[str, Any] = {"change": change, "path": row.path, "type": row.type, "doc": row.doc}
    if row.null is not None and change != "nullable":
        entry["nullable"] = True
    if change in ("added", "removed"):
        entry["default"] = row.default
        if row.field.ignorable:
            entry["ignorable"] = True
    if row.field.tag is not None:
        entry["tag"] = row.field.tag
    if field_count := sum(path.startswith(f"{row.path}.") for path in side):
        entry["fields"] = field_count
    return entry


def encoding(cls: type[Message], old: int, new: int) -> str | None:
    """The change of all lengths of a message."""
    was, now = old in cls.flexible_versions, new in cls.flexible_versions
    if was == now:
        return None
    return "compact lengths and tagged fields" if now else "fixed lengths, no tagged fields"


def header(cls: type[Message], old: int, new: int) -> tuple[int, int] | None:
    """The versions of the header before a message, where they differ."""
    if cls.api_key is None:
        return None
    was, now = (header_version(cls.api_key, version, cls.direction) for version in (old, new))
    return None if was == now else (was, now)


def changes(facts: ApiFacts, old: int, new: int) -> dict[int, str]:
    """What was said of the versions after the older one, up to the newer."""
    low, high = min(old, new), max(old, new)
    return {version: text for version, text in sorted(facts.changes.items()) if low < version <= high}
