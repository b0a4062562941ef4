"""What of an entry must not be shown unless it is asked for: its secrets, and what may be one.

Strategy: a whole message is shown without its secrets (secret_fields.py). Of a frame that was refused, or
accepted in spite of what was wrong with it, it is not known whether a field holds what its name says; so one
of an API that has secrets is withheld from the end of its header on, and so is one that may be such a frame
by its bytes (misread.py), whatever API its header or its request names. Bytes that aren't part of any message
are withheld wherever they might hold a secret.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache
from typing import Any

from coordwire.capture.body_text import body_text, is_refused
from coordwire.capture.entries import FrameEntry
from coordwire.capture.redaction import secret_fields
from coordwire.capture.redaction.misread import answer_may_hide, is_itself, reads_as_secret
from coordwire.dialects.grammar import Dialect
from coordwire.errors import UnsupportedVersion
from coordwire.frames import is_unsupported_version
from coordwire.messages import find_message
from coordwire.messages.keys import FACTS
from coordwire.versions import API_VERSIONS

_METADATA_NAME = secret_fields.METADATA_TOPIC.encode()

LATER = 8
"""A version this far beyond the newest isn't a version."""


@dataclass(frozen=True, slots=True)
class Withheld:
    """What isn't shown of an entry.

    paths: the places of secrets in its message. body: nothing of the message is shown. raw: nor are the
    frame's bytes. tags: nor are the tagged fields of its header. client: nor is the client id.
    """

    paths: tuple[str, ...] = ()
    body: bool = False
    raw: bool = False
    tags: bool = False
    client: bool = False


NOTHING = Withheld()


def withheld(entry: FrameEntry) -> Withheld:
    """What isn't shown of an entry."""
    if is_harmless(entry):
        return NOTHING
    sound = entry.error is None and not entry.deviations and entry.message is not None
    paths = tuple(_paths(entry))
    bearing = entry.dialect is Dialect.KAFKA and entry.api_key in _keys()
    tags = bearing and entry.header is not None and bool(entry.header.tags)
    client = _hides_client(entry)
    if sound:
        hides = bool(paths) or tags or client
        return Withheld(paths, False, bool(paths) or tags, tags, client) if hides else NOTHING
    raw = bool(paths) or client or withheld_bytes(entry)
    body = (bearing or raw) and entry.message is not None
    return Withheld(paths, body, raw, raw, client)


def is_harmless(entry: FrameEntry) -> bool:
    """Whether a frame that is like any other (its body's text is known) holds no secret, whatever it says:
    its API has none, and it isn't of the metadata log."""
    key, request = entry.api_key, entry.request
    if key in _keys() or body_text(entry)[0] is None:
        return False
    if request is not None and is_refused(request) and _hides_client(entry):
        return False
    if key != secret_fields.FETCH or entry.direction == "request":
        return True
    return not (_names_metadata(entry.body) or (request and _names_metadata(request.body)))


def _names_metadata(body: bytes) -> bool:
    """Whether the metadata log's name or id may be in a message."""
    return _METADATA_NAME in body or secret_fields.METADATA_TOPIC_ID.bytes in body


def _hides_client(entry: FrameEntry) -> bool:
    """Whether a client id may have swallowed what follows it: its length was changed."""
    asked = entry.request or entry
    return asked.error is not None and entry.client_id is not None and not entry.client_id.isprintable()


def _paths(entry: FrameEntry) -> list[str]:
    """The secrets in a message; an answer to who asked for the metadata log is taken for it."""
    found = secret_fields.find(entry.message)
    if found or type(entry.message).__name__ != "FetchResponse" or not _asks_for_metadata(entry):
        return found
    answer: Any = entry.message
    return [
        f"responses[{number}].partitions[{index}].records"
        for number, topic in enumerate(answer.responses)
        for index, partition in enumerate(topic.partitions)
        if partition.records and secret_fields.records_hide(partition.records)
    ]


def withheld_bytes(entry: FrameEntry) -> bool:
    """Whether the bytes of an entry that wasn't read, or not as they are meant, must not be shown."""
    if entry.token:
        return True
    if entry.dialect is not Dialect.KAFKA:
        if entry.call is not None:  # before Kafka 0.8 there were no secrets
            return False
        return entry.direction == "request" or reads_as_secret(entry.body, "response")
    if entry.api_key is None:
        return entry.direction == "request" or answer_may_hide(entry.body)
    facts = FACTS.get(entry.api_key)
    if facts is None or entry.api_version is None:  # no Kafka's request: a token, perhaps
        return True
    if entry.api_key in _keys() or not 0 <= entry.api_version <= facts.last + LATER:
        return True
    if entry.api_key == secret_fields.FETCH and entry.direction == "response" and _holds_metadata(entry):
        return True
    if entry.message is None and not isinstance(entry.error, UnsupportedVersion):
        return True  # its header can't be read
    if entry.direction == "request" and not entry.flow and _may_be_answer(entry):
        return True
    if _is_itself(entry):
        return False
    version = entry.api_version if entry.direction == "request" else None
    return reads_as_secret(entry.body, entry.direction, version)


def _may_be_answer(entry: FrameEntry) -> bool:
    """Whether a frame of an unknown sender may be an answer with a secret. Small correlation ids
    begin as requests of the first API do."""
    return answer_may_hide(entry.body) if entry.api_key == 0 else reads_as_secret(entry.body, "response")


def _is_itself(entry: FrameEntry) -> bool:
    """Whether a frame is of the API that it is taken for, though it isn't as it should be."""
    assert entry.api_key is not None
    if entry.api_key == API_VERSIONS and entry.direction == "response" and is_unsupported_version(entry.body):
        return True  # a refusal says nothing else, and brokers write it in different ways
    cls = find_message(entry.api_key, entry.direction)
    version = entry.body_version
    return version is not None and version in cls.versions and is_itself(entry.body, cls, version)


def _holds_metadata(entry: FrameEntry) -> bool:
    """Whether the metadata log is among what a Fetch asks for or answers, as far as it was read."""
    if entry.request is not None and entry.request.released:  # what it asked for is unknown by now
        return True
    answers = getattr(entry.message, "responses", None) or ()
    return _asks_for_metadata(entry) or any(map(secret_fields.is_metadata, answers))


def _asks_for_metadata(entry: FrameEntry) -> bool:
    asked = getattr(entry.request and entry.request.message, "topics", None) or ()
    return any(map(secret_fields.is_metadata, asked))


@cache
def _keys() -> frozenset[int]:
    """The APIs of which either side holds secrets."""
    return frozenset(
        key
        for key, facts in FACTS.items()
        if any(facts.name + side in secret_fields.FIELDS for side in ("Request", "Response"))
    )
