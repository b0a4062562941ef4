"""The error codes that a response carries, by Kafka's names, and which of them are routine.

Strategy: a response may carry a code for each topic, partition or member; each code is reported once, with
the place where it is first and how often it is there. Rules: a code of 0 is none; a code that Kafka doesn't
name is "UNKNOWN_" and its number; the codes of other dialects, whose meaning no document gives, too.
"""

from __future__ import annotations

from typing import NamedTuple

from coordwire.capture.entries import FrameEntry
from coordwire.codec.entities import entity_places, entity_values
from coordwire.enums import enum_of
from coordwire.versions import ApiKey

__all__ = ["ROUTINE", "AnswerError", "answer_errors", "is_routine"]

ROUTINE = frozenset({(ApiKey.JOIN_GROUP, 79), (ApiKey.API_VERSIONS, 35)})
"""API and code of answers that belong to the protocol's normal course and that clients act on by themselves:
MEMBER_ID_REQUIRED gives a new member its id (KIP-394), and UNSUPPORTED_VERSION of ApiVersions gives a newer
client the broker's versions (KIP-511)."""


class AnswerError(NamedTuple):
    """An error code of a response.

    name: Kafka's; path: of the first field that holds it; times: how many do.
    """

    code: int
    name: str
    path: str
    times: int


def answer_errors(entry: FrameEntry) -> list[AnswerError]:
    """The error codes other than 0 that a response carries, each once, in the order of the message."""
    message = entry.message
    if entry.direction != "response" or not any(entity_values(message, "error_code")):
        return []
    found: dict[int, AnswerError] = {}
    for path, owner, code in entity_places(message, "error_code"):
        if not code:
            continue
        before = found.get(code)
        if before is not None:
            found[code] = before._replace(times=before.times + 1)
        else:
            field = path.rpartition(".")[2].partition("[")[0]
            codes = enum_of(type(owner).__name__, field)
            name = codes(code).name if codes else f"UNKNOWN_{code}"
            found[code] = AnswerError(code, name, path, 1)
    return list(found.values())


def is_routine(entry: FrameEntry, code: int) -> bool:
    """Whether an error code of a response belongs to the protocol's normal course."""
    return (entry.api_key, code) in ROUTINE
