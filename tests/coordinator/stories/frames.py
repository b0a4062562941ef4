"""What frames show of a group: who was answered, who asked when, what could not be written."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import Any

from coordwire.capture.entries import Entry, FrameEntry
from coordwire.enums import ErrorCode
from coordwire.versions import ApiKey
from tests.coordinator.stories.events import MS

_ASK = (
    ApiKey.JOIN_GROUP, ApiKey.SYNC_GROUP, ApiKey.HEARTBEAT, ApiKey.CONSUMER_GROUP_HEARTBEAT,
    ApiKey.SHARE_GROUP_HEARTBEAT, ApiKey.STREAMS_GROUP_HEARTBEAT,
)  # fmt: skip


def answered(entries: Iterable[Entry]) -> set[str]:
    """Members that were answered as such: others nobody can know."""
    member_ids = set()
    for entry in entries:
        if not isinstance(entry, FrameEntry) or entry.request is None:
            continue
        message, request = entry.message, entry.request.message
        code = getattr(message, "error_code", -1)
        beaten = entry.api_key == ApiKey.HEARTBEAT and code == ErrorCode.REBALANCE_IN_PROGRESS
        if code and not beaten:
            continue
        for message_part in (message, request):
            member_id = getattr(message_part, "member_id", None)
            if member_id:
                member_ids.add(member_id)
    return member_ids


def failures(entries: Iterable[Entry]) -> Iterator[int]:
    """When an answer said that the log could not be written, in milliseconds."""
    for entry in entries:
        if isinstance(entry, FrameEntry) and ErrorCode.COORDINATOR_NOT_AVAILABLE in _codes(entry):
            yield (entry.time_ns or 0) // MS


def _codes(entry: FrameEntry) -> Iterator[int]:
    message: Any = entry.message
    yield getattr(message, "error_code", 0)
    if entry.api_key == ApiKey.OFFSET_COMMIT and entry.request is not None:
        yield from (partition.error_code for topic in message.topics for partition in topic.partitions)


def refused_leaving(
    entries: Iterable[Entry], is_modern: Callable[[int], bool]
) -> Iterator[tuple[str, tuple[int, bool]]]:
    """Whom a failed write refused to leave, when, and whether a group of KIP-848, by is_modern at that time:
    no timer ever takes it out then."""
    for entry in entries:
        if not isinstance(entry, FrameEntry) or entry.request is None:
            continue
        request: Any = entry.request.message
        if getattr(entry.message, "error_code", 0) != ErrorCode.COORDINATOR_NOT_AVAILABLE:
            continue
        if getattr(request, "member_epoch", 0) < 0:
            yield request.member_id, (entry.time_ns or 0, True)
        elif entry.api_key == ApiKey.LEAVE_GROUP:
            for item in (request, *request.members):
                yield getattr(item, "member_id", ""), (entry.time_ns or 0, is_modern(entry.time_ns or 0))


def failed_upgrades(entries: Iterable[Entry]) -> dict[str, int]:
    """Whose JoinGroups were answered for a conversion that failed, and when."""
    failed, joins = set(), {}
    for entry in entries:
        if not isinstance(entry, FrameEntry) or entry.request is None:
            continue
        request: Any = entry.request.message
        code = getattr(entry.message, "error_code", 0)
        if entry.api_key == ApiKey.CONSUMER_GROUP_HEARTBEAT and code == ErrorCode.UNKNOWN_SERVER_ERROR:
            failed.add(entry.time_ns)
        elif entry.api_key == ApiKey.JOIN_GROUP and code == ErrorCode.REBALANCE_IN_PROGRESS:
            joins[request.member_id] = entry.time_ns or 0
    return {name: time_ns for name, time_ns in joins.items() if time_ns in failed}


def request_times(entries: Iterable[Entry]) -> dict[str, list[int]]:
    """When each member sent such requests."""
    times: dict[str, list[int]] = {}
    for entry in entries:
        if isinstance(entry, FrameEntry) and entry.request is None and entry.api_key in _ASK:
            times.setdefault(getattr(entry.message, "member_id", ""), []).append(entry.time_ns or 0)
    return times


def subscribed(entries: Iterable[Entry]) -> Iterator[tuple[int, str]]:
    """When members of a consumer group said what they subscribe to, and who."""
    for entry in entries:
        if isinstance(entry, FrameEntry) and entry.request is None:
            message: Any = entry.message
            has_names = getattr(message, "subscribed_topic_names", None) is not None
            if has_names or entry.api_key == ApiKey.JOIN_GROUP:
                yield entry.time_ns or 0, message.member_id


def standby_given(entries: Iterable[Entry]) -> Iterator[int]:
    """When members of a streams group were given standby tasks."""
    for entry in entries:
        if not isinstance(entry, FrameEntry) or entry.request is None:
            continue
        if getattr(entry.message, "standby_tasks", None):
            yield entry.time_ns or 0


def synced(entries: Iterable[Entry]) -> dict[int | None, int]:
    """When the last member had its assignment, by generation."""
    counts: dict[int | None, int] = {}
    for entry in entries:
        if isinstance(entry, FrameEntry) and entry.api_key == ApiKey.SYNC_GROUP and entry.request is not None:
            request: Any = entry.request.message
            counts[request.generation_id] = entry.time_ns or 0
    return counts
