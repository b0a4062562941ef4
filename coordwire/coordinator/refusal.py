"""Error codes that a coordinator answers with, and the texts that it refuses.

Rules: a text that has nothing but Java's spaces names nothing. A member id made of a long client id, and a
message that quotes a long name, are longer than any version of a response or record can carry. Apache Kafka
finds that when it writes them, and answers UNKNOWN_SERVER_ERROR.
"""

from __future__ import annotations

from collections.abc import Mapping

from coordwire.coordinator.releases import ReleaseRules
from coordwire.enums import ErrorCode

_TRANSLATED: dict[int, ErrorCode] = {
    ErrorCode.NETWORK_EXCEPTION: ErrorCode.COORDINATOR_LOAD_IN_PROGRESS,
    ErrorCode.UNKNOWN_TOPIC_OR_PARTITION: ErrorCode.COORDINATOR_NOT_AVAILABLE,
    ErrorCode.NOT_ENOUGH_REPLICAS: ErrorCode.COORDINATOR_NOT_AVAILABLE,
    ErrorCode.REQUEST_TIMED_OUT: ErrorCode.COORDINATOR_NOT_AVAILABLE,
    ErrorCode.NOT_LEADER_OR_FOLLOWER: ErrorCode.NOT_COORDINATOR,
    ErrorCode.KAFKA_STORAGE_ERROR: ErrorCode.NOT_COORDINATOR,
    ErrorCode.MESSAGE_TOO_LARGE: ErrorCode.UNKNOWN_SERVER_ERROR,
    ErrorCode.RECORD_LIST_TOO_LARGE: ErrorCode.UNKNOWN_SERVER_ERROR,
    ErrorCode.INVALID_FETCH_SIZE: ErrorCode.UNKNOWN_SERVER_ERROR,
}
"""Errors of the log, and the errors for a client, which has to look for the coordinator, not for a topic."""


class OperationRefused(Exception):
    """An operation ends with an error code, and writes nothing. message: for responses with a text."""

    def __init__(self, code: int, message: str | None = None) -> None:
        super().__init__(code)
        self.code = code
        self.message = message


def contradiction() -> OperationRefused:
    """The refusal of records that contradict the state, or each other."""
    return OperationRefused(ErrorCode.UNKNOWN_SERVER_ERROR)


def translated(error: int) -> int:
    """The error code for a client after an operation failed with this one."""
    return int(_TRANSLATED.get(error, error))


def translated_for_fetch(error: int) -> int:
    """The same for OffsetFetch, whose clients look for another coordinator only after NOT_COORDINATOR."""
    code = translated(error)
    moved = code == ErrorCode.COORDINATOR_NOT_AVAILABLE and code != error
    return int(ErrorCode.NOT_COORDINATOR) if moved else code


_JAVA_SPACES = "".join(map(chr, range(33)))
VISIBLE = "!"
"""The first character after Java's spaces: a greater text does not begin with one of them."""


def is_blank(text: str) -> bool:
    """Whether a text has nothing but what Java counts as spaces."""
    return not text.strip(_JAVA_SPACES)


_MOST_BYTES = 32_767
_BYTES_A_CHARACTER = 4


def fits(text: str | None) -> bool:
    """Whether a response or a record can carry this text."""
    if text is None or len(text) * _BYTES_A_CHARACTER <= _MOST_BYTES:
        return True
    return len(text.encode("utf-8", "surrogatepass")) <= _MOST_BYTES


def writable_refusal(error: int, message: str | None) -> tuple[int, str | None]:
    """An error and a message that a response can carry; UNKNOWN_SERVER_ERROR alone if the message is too
    long."""
    return (int(error), message) if fits(message) else (int(ErrorCode.UNKNOWN_SERVER_ERROR), None)


_NEWER_FENCED_STATE = "The coordinator rejected the request because the state epoch did not match."
_TEXTS: Mapping[int, str] = {
    ErrorCode.UNKNOWN_SERVER_ERROR: (
        "The server experienced an unexpected error when processing the request."
    ),
    ErrorCode.FENCED_LEADER_EPOCH: "The leader epoch in the request is older than the epoch on the broker.",
    ErrorCode.UNKNOWN_TOPIC_OR_PARTITION: "This server does not host this topic-partition.",
    ErrorCode.TOPIC_AUTHORIZATION_FAILED: "Topic authorization failed.",
    ErrorCode.NOT_COORDINATOR: "This is not the correct coordinator.",
    ErrorCode.COORDINATOR_NOT_AVAILABLE: "The coordinator is not available.",
    ErrorCode.COORDINATOR_LOAD_IN_PROGRESS: "The coordinator is loading and hence can't process requests.",
    ErrorCode.INVALID_GROUP_ID: "The group id is invalid.",
    ErrorCode.NON_EMPTY_GROUP: "The group is not empty.",
    ErrorCode.GROUP_ID_NOT_FOUND: "The group id does not exist.",
    ErrorCode.FENCED_STATE_EPOCH: (
        "The share coordinator rejected the request because the share-group state epoch did not match."
    ),
    ErrorCode.REQUEST_TIMED_OUT: "The request timed out.",
}
"""As Apache Kafka words them."""


def error_text(code: int, rules: ReleaseRules | None = None) -> str | None:
    """The text of an error. rules: where it may be one of a share coordinator's."""
    if code == ErrorCode.FENCED_STATE_EPOCH and rules is not None and rules.fenced_states_are_of_coordinators:
        return _NEWER_FENCED_STATE
    return _TEXTS.get(code)
