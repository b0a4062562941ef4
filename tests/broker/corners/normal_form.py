"""An answer as values of JSON, without what differs from run to run and from broker to broker.

Rules: fields with their default are left out. Ids that a broker makes are numbered in the order in which a
case meets them; times, ports, folders, sizes of disks and the cluster's id are replaced by words.
"""

from __future__ import annotations

import json
import re
from base64 import urlsafe_b64encode
from typing import Any
from uuid import UUID

from coordwire.codec import Message
from coordwire.enums import ErrorCode
from coordwire.errors import DecodeError
from coordwire.records import batches

_WORDS = {
    "port": "a port", "cluster_id": "the cluster", "log_dir": "a folder", "total_bytes": "bytes",
    "usable_bytes": "bytes", "session_id": "a session", "finalized_features_epoch": "an epoch",
    "host": "a host", "host_name": "a host", "client_host": "a host", "push_interval_ms": "an interval",
    "subscription_id": "a subscription", "high_watermark_of_quorum": "an offset",
}  # fmt: skip
_TIMES = re.compile(r"timestamp|_time_ms$|_time$|session_lifetime")
_NOT_TIMES = frozenset({"throttle_time_ms", "timestamp_type"})
_ID = re.compile(r"[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}")
_MADE_ID = re.compile(r"[A-Za-z0-9_-]{22}")
"""An id that a broker makes for a member of KIP-848."""

_CLUSTER = re.compile(r'(?<=cluster id ")[A-Za-z0-9_-]{22}(?=")')
_DIRECTORY = re.compile(r"(?<=directoryId=)[A-Za-z0-9_-]{22}")
_LARGE = re.compile(r"-?\d{12,}")
_IN_ORDER = frozenset({"AclCreationResult", "DeleteAclsFilterResult", "DescribeTopicPartitionsResponseTopic"})
"""Structs whose place in an array counts. The order of the others depends on a broker's hash tables."""


class Ids:
    """What the ids of one case are called. topics: names by id."""

    def __init__(self) -> None:
        self.topics: dict[UUID, str] = {}
        self._seen: dict[str, dict[Any, str]] = {}

    def number(self, kind: str, value: Any) -> str:
        known = self._seen.setdefault(kind, {})
        return known.setdefault(value, f"{kind} {len(known) + 1}")

    def uuid(self, value: UUID) -> str:
        name = self.topics.get(value)
        return f"id of {name}" if name is not None else self.number("id", value)

    def text(self, value: str) -> str:
        for topic_id, name in self.topics.items():
            form = urlsafe_b64encode(topic_id.bytes).rstrip(b"=").decode()
            value = value.replace(form, f"<id of {name}>")
        return _ID.sub(lambda match: f"<{self.number('id', match.group())}>", value)


def normal_form(message: Any, version: int, ids: Ids) -> dict[str, Any]:
    """The fields of a message, or of a struct in one, that are not as they are by default."""
    cls: Any = type(message)
    fresh: Any = cls()
    form: dict[str, Any] = {}
    for field in cls._layout_.fields:
        value = getattr(message, field.name)
        if not field.exists(version) or value == getattr(fresh, field.name):
            continue
        if field.struct is not None:
            form[field.name] = _inside(field, value, version, ids)
        elif field.array and value is not None:
            form[field.name] = [_value(field, element, ids) for element in value]
        else:
            form[field.name] = _value(field, value, ids)
    return form


def _inside(field: Any, value: Any, version: int, ids: Ids) -> Any:
    if value is None or not field.array:
        return None if value is None else normal_form(value, version, ids)
    forms = [normal_form(element, version, ids) for element in value]
    return forms if field.struct.__name__ in _IN_ORDER else sorted(forms, key=_order)


def _order(form: dict[str, Any]) -> str:
    return json.dumps(form, sort_keys=True)


def _value(field: Any, value: Any, ids: Ids) -> Any:
    name = field.name
    if isinstance(value, UUID):
        return ids.uuid(value) if value.int else 0
    if field.type == "records":
        return _records(value)
    if isinstance(value, bytes | bytearray | memoryview):
        return bytes(value).decode("latin-1")
    if isinstance(value, str):
        if name == "member_id" and _MADE_ID.fullmatch(value):
            return ids.number("id", value)
        if name.endswith("error_message"):
            value = _DIRECTORY.sub("a directory", value)
            value = _CLUSTER.sub("the cluster", _LARGE.sub("a time", value))
        return _WORDS.get(name) or ids.text(value)
    if field.entity == "error_code":
        return ErrorCode(value).name
    if field.entity == "producer_id" and value >= 0:
        return ids.number("producer", value)
    if name in _WORDS and value not in (0, -1):
        return _WORDS[name]
    if _TIMES.search(name) and name not in _NOT_TIMES and isinstance(value, int) and value > 1 << 40:
        return "a time"
    return value


def _records(value: Any) -> Any:
    if not value:
        return value if value is None else ""
    try:
        return [
            [record.offset, (record.value or b"").decode("latin-1")]
            for batch in batches(bytes(value))
            for record in batch
        ]
    except DecodeError as error:
        return f"{type(error).__name__}"


def kind_of(message: Message) -> str:
    return type(message).__name__.removesuffix("Response")
