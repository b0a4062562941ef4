"""A frame of captured traffic as a timeline sees it: is it about a group, where was it, what does it refuse.

Rules: only facts of one frame, or of an answer and its request; other modules apply them to groups.
"""

from __future__ import annotations

from collections.abc import Iterable
from functools import lru_cache
from typing import Any

from coordwire._speedups.rows import row_maker
from coordwire.capture.entries import FrameEntry
from coordwire.capture.frame_decoding import LazyEntry
from coordwire.capture.redaction.entry_secrets import is_fully_decoded, texts_account_for
from coordwire.enums import ErrorCode
from coordwire.timeline.events import ErrorMet, Kind, Unanswered
from coordwire.timeline.evidence import Seen
from coordwire.versions import ApiKey, api_name

__all__ = [
    "ABOUT_A_GROUP",
    "CLASSIC",
    "COMMITS",
    "JOINING",
    "MODERN",
    "Asked",
    "errors_of",
    "host_of",
    "message_of",
    "place_of",
    "unanswered",
    "was_read",
]

CLASSIC = frozenset(map(int, (ApiKey.JOIN_GROUP, ApiKey.SYNC_GROUP, ApiKey.HEARTBEAT, ApiKey.LEAVE_GROUP)))
MODERN: dict[int, Kind] = {
    ApiKey.CONSUMER_GROUP_HEARTBEAT: "consumer",
    ApiKey.SHARE_GROUP_HEARTBEAT: "share",
    ApiKey.STREAMS_GROUP_HEARTBEAT: "streams",
}
COMMITS = frozenset(map(int, (ApiKey.OFFSET_COMMIT, ApiKey.TXN_OFFSET_COMMIT)))
ABOUT_A_GROUP = frozenset(map(int, (*CLASSIC, *MODERN, *COMMITS)))
JOINING = CLASSIC - {ApiKey.HEARTBEAT}

Asked = tuple[str, int, str | None, str | None]
"""A request about a group: the group, the API, the member's and the client's id."""

_MEMBER_ID_REQUIRED = int(ErrorCode.MEMBER_ID_REQUIRED)
_LEAVE = int(ApiKey.LEAVE_GROUP)
_ABOUT_TOPICS = frozenset(map(int, (
    ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, ErrorCode.UNKNOWN_TOPIC_ID, ErrorCode.INVALID_TOPIC_EXCEPTION,
    ErrorCode.TOPIC_AUTHORIZATION_FAILED, ErrorCode.OFFSET_METADATA_TOO_LARGE,
)))  # fmt: skip
"""Why single topics of a commit are refused; other codes are the same for all of it."""
_error_met = row_maker(ErrorMet)


def place_of(entry: FrameEntry) -> Seen:
    """Where and when a frame was seen."""
    return tuple.__new__(Seen, (entry.time_ns, entry.capture, entry.number, entry.packet))


def host_of(entry: FrameEntry) -> str | None:
    """The client's address, by its request's flow."""
    return _client_of(entry.flow)


@lru_cache(4096)
def _client_of(flow: str) -> str | None:
    return flow.partition(" > ")[0] or None


def unanswered(place: Seen, request: Asked, *, unreadable: bool = False) -> Unanswered:
    """A request that no answer was seen to, or none that can be read."""
    group, key, member_id, client_id = request
    return Unanswered(
        group=group, **place._asdict(), api=api_name(key) or str(key), member_id=member_id,
        client_id=client_id, unreadable=unreadable,
    )  # fmt: skip


def errors_of(entry: FrameEntry, request: Any, message: Any, place: Seen) -> Iterable[ErrorMet]:
    """The error codes of an answer about a group."""
    code = getattr(message, "error_code", 0)
    member_id = request.member_id or None
    errors: list[tuple[int, str | None, str | None, int | None, str | None]] = []
    if code and code != _MEMBER_ID_REQUIRED:
        errors.append((code, member_id, None, None, getattr(message, "error_message", None)))
    if entry.api_key == _LEAVE:
        errors += [
            (member.error_code, member.member_id or None, None, None, None)
            for member in message.members
            if member.error_code
        ]
    if entry.api_key in COMMITS:
        errors += [(code, member_id, *subject, None) for code, subject in _refused_commits(message).items()]
    if not errors:
        return ()
    head = request.group_id, *place, None, entry.api_name or ""
    return [
        _error_met(*head, code, member_id, entry.client_id, topic, partition, text)
        for code, member_id, topic, partition, text in errors
    ]


def _refused_commits(message: Any) -> dict[int, tuple[str | None, int | None]]:
    """The error codes of an answer to a commit; those about topics with the topic, if it is one, and the
    partition."""
    subjects: dict[int, tuple[str | None, int | None]] = {}
    for topic in message.topics:
        name = topic.name or None  # later versions have ids
        for partition in topic.partitions:
            code, index = partition.error_code, partition.partition_index
            if code and code not in subjects:
                subjects[code] = (name, index) if code in _ABOUT_TOPICS else (None, None)
            elif code and subjects[code] != (name, index):
                subjects[code] = (name if subjects[code][0] == name else None), None
    return subjects


def message_of(entry: FrameEntry) -> Any:
    """The message of a frame that was read whole; None of any other, whose names may be a secret."""
    if isinstance(entry, LazyEntry) and entry.decode() and texts_account_for(entry.api_key):
        return entry.message
    if entry.error is not None or not is_fully_decoded(entry):
        return None
    return entry.message


def was_read(request_entry: FrameEntry) -> bool:
    """Whether a request was read to its end."""
    return request_entry.error is None and request_entry.message is not None
