"""What must not be shown unless it is asked for: passwords, tokens, keys.

Strategy: a table of field paths by message; a secret's place is a path like those of errors
("topics[0].configs[2].value"). Configs are secret where their name says so, or where the broker does. Bytes
that nobody could read may hold anything: they are withheld wherever they might come from such a message. The
metadata log's records are looked into.

Rules: better one field too many than one too few; a field that is null or empty hides nothing and is left
alone, so that it can be encoded again.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any
from uuid import UUID

from coordwire.capture.entries import FrameEntry
from coordwire.errors import CoordwireError, DecodeError
from coordwire.frames import read_response
from coordwire.layout import Message
from coordwire.layout.message import Buffer
from coordwire.logs import TOPICS, open_log_record
from coordwire.messages.keys import FACTS
from coordwire.messages.record_types import RECORD_TYPES, Log
from coordwire.records import batches

FIELDS: dict[str, tuple[str, ...]] = {
    "SaslAuthenticateRequest": ("auth_bytes",),
    "SaslAuthenticateResponse": ("auth_bytes",),
    "AlterUserScramCredentialsRequest": ("upsertions[].salt", "upsertions[].salted_password"),
    "CreateDelegationTokenResponse": ("hmac",),
    "RenewDelegationTokenRequest": ("hmac",),
    "ExpireDelegationTokenRequest": ("hmac",),
    "DescribeDelegationTokenResponse": ("tokens[].hmac",),
    "EnvelopeRequest": ("request_data",),
    "EnvelopeResponse": ("response_data",),
    "CreateTopicsRequest": ("topics[].configs[].value",),
    "CreateTopicsResponse": ("topics[].configs[].value",),
    "DescribeConfigsResponse": ("results[].configs[].value", "results[].configs[].synonyms[].value"),
    "AlterConfigsRequest": ("resources[].configs[].value",),
    "IncrementalAlterConfigsRequest": ("resources[].configs[].value",),
    "UserScramCredentialRecord": ("salt", "stored_key", "server_key"),
    "ConfigRecord": ("value",),
    "FetchSnapshotResponse": ("topics[].partitions[].unaligned_records",),
}
"""Where secrets stand. A field called `value` is one only beside a name that says so."""

FETCH = 1
METADATA_TOPIC = TOPICS["metadata"]
METADATA_TOPIC_ID = UUID(int=1)
"""Kafka's fixed id of it (KIP-631)."""

NAMES = re.compile(
    r"passw|passphrase|secret|jaas|credential|token.*key|(private|access|api|master)[._-]?key"
    r"|keystore\.(key|certificate)|truststore\.certificate",
    re.IGNORECASE,
)
"""Configs whose values are secret; with Kafka's own of type PASSWORD among them."""

_STEPS = {name: [path.replace("[]", ".[]").split(".") for path in paths] for name, paths in FIELDS.items()}
_SCRAM = (b"r=", b"v=", b"e=", b"n,", b"p=", b"y,")
_LATER = 8  # a version this far beyond the newest isn't a version
_KEYS = {
    key for key, facts in FACTS.items() for side in ("Request", "Response") if facts.name + side in FIELDS
}


def find(message: Message | None) -> list[str]:
    """The paths of a message's secrets."""
    name = type(message).__name__
    if name == "FetchResponse":
        return _metadata_records(message)
    paths = _STEPS.get(name)
    if paths is None:
        return []
    return [place for steps in paths for place in _places(message, steps, "", False)]


def may_hide(log: Log, record_type: int | None) -> bool:
    """Whether the bytes of such a record that couldn't be read may hold a secret: only the metadata log has
    any, in the types that are known for it and, for all we know, in those that aren't known."""
    if log != "metadata":
        return False
    names = None if record_type is None else RECORD_TYPES[log].get(record_type)
    return names is None or names.value in FIELDS


def _is_metadata(topic: Any) -> bool:
    """Whether a topic of a Fetch is the metadata log."""
    return bool(topic.topic == METADATA_TOPIC or topic.topic_id == METADATA_TOPIC_ID)


def _fetches_metadata(entry: FrameEntry) -> bool:
    """Whether the metadata log is among what a Fetch asks for or answers, as far as it was read."""
    if entry.request is not None and entry.request.released:  # nobody knows any more
        return True
    asked = getattr(entry.request and entry.request.message, "topics", None) or ()
    told = getattr(entry.message, "responses", None) or ()
    return any(map(_is_metadata, (*asked, *told)))


def _metadata_records(message: Any) -> list[str]:
    """The paths of the record sets of the metadata log that hold a secret, or that nobody can read."""
    return [
        f"responses[{number}].partitions[{index}].records"
        for number, topic in enumerate(message.responses)
        if _is_metadata(topic)
        for index, partition in enumerate(topic.partitions)
        if partition.records and _holds_secret(partition.records)
    ]


def _holds_secret(records: Buffer) -> bool:
    """Whether a record set of the metadata log holds a secret; if it can't be read whole, it may."""
    try:
        found = batches(records)
        for batch in found:
            for record in () if batch.is_control else batch:
                opened = open_log_record(METADATA_TOPIC, record)
                if opened is None or not isinstance(opened.value, Message) or find(opened.value):
                    return True
    except CoordwireError:
        return True
    return bool(found.remainder)


def _places(value: Any, steps: list[str], path: str, named: bool) -> Iterator[str]:
    step, *rest = steps
    if step == "[]":
        for index, element in enumerate(value or ()):
            yield from _places(element, rest, f"{path}[{index}]", named)
        return
    named = named or _says_secret(value)
    inside = getattr(value, step)
    here = f"{path}.{step}" if path else step
    if rest:
        yield from _places(inside, rest, here, named)
    elif inside and (named or step != "value"):
        yield here


def _says_secret(value: Any) -> bool:
    """Whether a config's name, or the broker, calls its value a secret."""
    name = getattr(value, "name", None)
    return bool(getattr(value, "is_sensitive", False)) or (isinstance(name, str) and bool(NAMES.search(name)))


def withheld(entry: FrameEntry) -> bool:
    """Whether the bytes of an entry that couldn't be read whole must not be shown."""
    if entry.token:
        return True
    if entry.api_key is None:
        return entry.direction == "request" or _reads_as_secret(entry.body)
    if entry.call is not None:  # before Kafka 0.8 nobody had a secret
        return False
    facts = FACTS.get(entry.api_key)
    if facts is None or entry.api_version is None:  # no Kafka's request: a token, perhaps
        return True
    if entry.api_key == FETCH and entry.direction == "response" and _fetches_metadata(entry):
        return True
    return entry.api_key in _KEYS or not 0 <= entry.api_version <= facts.last + _LATER


def _reads_as_secret(body: bytes) -> bool:
    """Whether an answer to nobody knows what could be one that holds secrets."""
    if body.startswith(_SCRAM):
        return True
    for key in _KEYS:
        facts = FACTS[key]
        for version in range(facts.first, facts.last + 1):
            try:
                frame = read_response(body, key, version)
            except DecodeError:
                continue
            if find(frame.message):
                return True
    return False
