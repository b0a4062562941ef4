"""Coordinators' records as JSON, one object a line.

Strategy: the fields that are read most come first and flat (group, topic, partition, offset, members, …); key
and value follow whole, in Apache Kafka's own JSON form, and the contents of their opaque bytes. Rules: the
order of the keys is fixed; lines are ASCII; bytes that are not a message are hex, unless they may hold a
secret.
"""

from __future__ import annotations

import sys
from typing import Any

from coordwire.capture.flows import format_time
from coordwire.capture.jsonlines import encode, text
from coordwire.capture.redaction import secret_fields
from coordwire.capture.redaction.secret_fields import redact
from coordwire.cli.embedded_json import embedded
from coordwire.codec import Message
from coordwire.embedded import Embedded, open_embedded
from coordwire.errors import UnreadableRange
from coordwire.jsonform import to_json
from coordwire.timeline.from_log.coordinator_log import CoordinatorRecord, LogItem, Marker

MS = 1_000_000


class OffsetsJsonFormat:
    """Writes the lines to standard output."""

    def __init__(self, *, show_secrets: bool) -> None:
        self._show_secrets = show_secrets

    def write(self, item: LogItem, *, pending: bool = False) -> None:
        form = {
            "entry": "", "file": text(item.file), "log": item.log, "logPartition": item.log_partition,
        }  # fmt: skip
        match item:
            case CoordinatorRecord():
                form |= self._record(item, pending)
            case Marker():
                form |= _marker(item)
            case UnreadableRange():
                form |= _unread(item)
        sys.stdout.write(encode(form) + "\n")

    def finish(self) -> None:
        """Do nothing: every item is written at once."""

    def _record(self, record: CoordinatorRecord, pending: bool) -> dict[str, Any]:
        value = record.value
        form: dict[str, Any] = {
            "entry": "record", "logOffset": record.log_offset, "logTime": _time(record.timestamp_ms),
            "kind": record.kind, "type": record.type, "version": record.version, "group": record.group,
            "topic": record.topic, "partition": record.partition, "memberId": record.member_id,
        }  # fmt: skip
        if record.kind in ("OffsetCommit", "LegacyOffsetCommit") and isinstance(value, Message):
            form |= _commit(value)
        elif record.kind == "GroupMetadata" and isinstance(value, Message):
            form |= _group(value)
        form["tombstone"] = record.tombstone
        form["transaction"] = None
        if record.transactional:
            form["transaction"] = {
                "producerId": record.producer_id, "producerEpoch": record.producer_epoch, "pending": pending,
            }  # fmt: skip
        form["key"] = to_json(record.key, version=0) if isinstance(record.key, Message) else None
        form["value"] = None
        hidden: list[str] = []
        if isinstance(value, Message):
            assert record.version is not None
            form["value"] = to_json(value, version=record.version)
            hidden = [] if self._show_secrets else secret_fields.find(value)
            redact(form["value"], hidden)
            if contents := embedded(value, show_secrets=self._show_secrets):
                form["embedded"] = contents
        hidden = [f"value.{path}" for path in hidden]
        for name, part in (("keyRaw", record.key), ("valueRaw", record.value)):
            if isinstance(part, bytes):
                withheld = not self._show_secrets and secret_fields.may_hide(record.log, record.type)
                form[name] = None if withheld else part.hex()
                hidden += [name] if withheld else []
        form["unknown"] = record.unknown
        form["error"] = None if record.refusal is None else record.refusal._asdict()
        if hidden:
            form["redacted"] = hidden
        return form


def _commit(value: Any) -> dict[str, Any]:
    return {
        "offset": value.offset,
        "leaderEpoch": getattr(value, "leader_epoch", -1),
        "metadata": value.metadata,
        "commitTime": _time(value.commit_timestamp),
        "expireTime": _time(getattr(value, "expire_timestamp", -1)),
    }


def _group(value: Any) -> dict[str, Any]:
    """A classic group; what is not a consumer's in a member's bytes is null."""
    opened = open_embedded(value)
    return {
        "protocolType": value.protocol_type,
        "generation": value.generation,
        "protocol": value.protocol,
        "leader": value.leader,
        "stateTime": _time(value.current_state_timestamp),
        "members": [
            {
                "memberId": member.member_id, "groupInstanceId": member.group_instance_id,
                "clientId": member.client_id, "clientHost": member.client_host,
                "topics": _topics(opened.get(f"members[{index}].subscription"), "topics"),
                "assignment": _topics(opened.get(f"members[{index}].assignment"), "assigned_partitions"),
            }
            for index, member in enumerate(value.members)
        ],
    }  # fmt: skip


def _topics(opened: Embedded | None, name: str) -> list[Any] | None:
    """A consumer's topics, or its partitions by topic."""
    topics = None if opened is None else getattr(opened.message, name, None)
    if topics is None:
        return None
    return [
        topic if isinstance(topic, str) else {"topic": topic.topic, "partitions": topic.partitions}
        for topic in topics
    ]


def _marker(marker: Marker) -> dict[str, Any]:
    return {
        "entry": "marker", "logOffset": marker.log_offset, "logTime": _time(marker.timestamp_ms),
        "kind": marker.kind, "producerId": marker.producer_id, "producerEpoch": marker.producer_epoch,
        "coordinatorEpoch": marker.coordinator_epoch,
        "decided": [
            {
                "logOffset": record.log_offset, "group": record.group, "topic": record.topic,
                "partition": record.partition, "offset": getattr(record.value, "offset", None),
            }
            for record in marker.decided
        ],
    }  # fmt: skip


def _unread(unread: UnreadableRange) -> dict[str, Any]:
    return {
        "entry": "unread", "position": unread.position, "length": unread.length,
        "error": {"reason": unread.reason, "position": unread.position, "path": ""},
    }  # fmt: skip


def _time(timestamp_ms: int) -> str | None:
    return None if timestamp_ms < 0 else format_time(timestamp_ms * MS, 3)
