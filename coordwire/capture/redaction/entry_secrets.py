"""The parts of an entry that are shown only on request: its secrets, and the bytes that no message
accounts for.

Strategy: a message that was read accounts for its bytes. It is shown without its secrets (secret_fields.py).
All other bytes are withheld, with their number: those of a refused frame, of an answer without its request,
of a token, of an unreadable range, and what was decoded of a frame before it was refused. Nothing is guessed
from such bytes, so that the judgement costs no more than a look at the entry.

Rules: bytes that no message accounts for are shown only where nothing that can carry a secret could have been
there. On a connection that speaks Kafka that is never known. Either side may send a
secret in any frame (a password in a CreateTopics, a token in an answer); one damaged byte changes the API or
the version of a frame, a size or a correlation id, and with it what the frames after it, and those of the
other direction, are taken for; a capture that begins in mid-stream or lacks packets lacks the frames that
would tell. So neither a refused frame nor its neighbours can vouch for it. Fewer than `LEAST` bytes are no
secret, zeros apart, and are shown. The dialects before Kafka 0.8 have no secrets, but what is refused in one
of them may be Kafka's; it is withheld too.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from typing import Any

from coordwire.capture.body_text import NO_TEXT, body_text
from coordwire.capture.entries import FrameEntry
from coordwire.capture.frame_decoding import UNDECODED
from coordwire.capture.redaction import secret_fields
from coordwire.capture.redaction.secret_fields import LEAST
from coordwire.codec.program import HAS_ZEROS
from coordwire.codec.walk import FieldSelection, fields_of
from coordwire.connection.dialect import KAFKA, Direction
from coordwire.errors import DecodeError, Deviation, UnreadableRange, counted
from coordwire.frames import PREFIX, is_unsupported_version, read_request, read_response
from coordwire.messages.keys import FACTS
from coordwire.versions import API_VERSIONS

_METADATA_NAME = secret_fields.METADATA_TOPIC.encode()
_METADATA_ID = secret_fields.METADATA_TOPIC_ID.bytes
_FIRST_PART, _SECOND_PART, _LAST_PART = (
    _METADATA_NAME[at : at + 6] for at in range(0, len(_METADATA_NAME), 6)
)
_HEAD = 128
"""Bytes of a Fetch in which its first topic is named."""

_ID = slice(16, 32)
"""Where an answer to a Fetch has the id of its first topic."""

_find_records = re.compile('"records":"[^"]').search
"""In an answer's text: records that are neither null nor empty. In a string the quotes are escaped."""

ERROR_CODE = 2
"""Bytes of an error code."""

_LEAVE_GROUP = 13
_ACLS = frozenset((29, 30, 31))
_LIKE_SECRETS = _ACLS | {_LEAVE_GROUP}
"""Requests as which another with a secret reads to its end, once its API has changed: LeaveGroup (the bytes
of a SaslAuthenticate as an empty group and a member), those of ACLs (configs as principals and hosts)."""

_GROUP = '{"groupId":"'
"""The beginning of a LeaveGroup's text."""

_PARTS_OF_ACLS = {"resource_type": 7, "pattern_type": 4, "operation": 15, "permission_type": 3}
"""The greatest number of each part of an ACL or of a filter of ACLs; the least that Kafka takes is 1."""

LONGEST_BODY = 4096
"""A longer body is not made into text to find zeros in it, since the text is kept."""

_ANY_TEXT = frozenset(("committed_metadata", "metadata"))
"""Texts that are their user's own, beside a committed offset; some have zeros."""


@dataclass(frozen=True, slots=True)
class Withheld:
    """The parts of an entry that are not shown.

    paths: the places of secrets in its message. body: nothing of the message is shown. raw: nor are the
    frame's bytes. tags: nor are the tagged fields of its header. client: nor is the client id.
    """

    paths: tuple[str, ...] = ()
    body: bool = False
    raw: bool = False
    tags: bool = False
    client: bool = False


NOTHING = Withheld()
"""`withheld` of a harmless frame; an equal one where a closer look found nothing."""

AMBIGUOUS = Withheld(body=True, raw=True, tags=True)
"""`withheld` of an answer to any of several requests, which may have secrets in other places."""


def may_differ(first: FrameEntry, second: FrameEntry) -> bool:
    """Whether secrets may be in other places in the answers to two requests."""
    keys = first.api_key, second.api_key
    if (first.api_version, keys[0]) == (second.api_version, keys[1]):
        return False
    return secret_fields.FETCH in keys or any(key in _keys() for key in keys)


def withheld(entry: FrameEntry) -> Withheld:
    """The parts of an entry that are not shown. They are found once, and kept in the entry."""
    hidden = entry.hidden
    if hidden is None:
        hidden = entry.hidden = NOTHING if is_harmless(entry) else _examine(entry)
    return hidden


def _examine(entry: FrameEntry) -> Withheld:
    """`withheld` of an entry that may not be harmless."""
    client = entry.client_id is not None and not _is_trusted(entry.request or entry)
    header, is_refused = entry.header, entry.error is not None
    tags = header is not None and any(len(tag) >= LEAST for tag in (header.tags or {}).values())
    if is_refused and not client and not tags and _is_short(entry):
        return Withheld()  # whether or not a message accounts for it
    accounted = is_fully_decoded(entry)
    paths = tuple(_paths(entry)) if accounted else ()
    if not accounted or (paths and is_refused):
        raw = not _is_short(entry)
        return Withheld((), raw and entry.message is not None, raw, raw, client)
    return Withheld(paths, False, bool(paths) or tags or client, tags, client)


def size_withheld(entry: FrameEntry | UnreadableRange) -> str:
    """How many bytes of an entry are withheld, and why."""
    size = entry.length if isinstance(entry, UnreadableRange) else entry.size
    return f"{counted(size, 'byte', ',')} withheld, which may hold a secret"


def is_harmless(entry: FrameEntry) -> bool:
    """Whether a frame that is like any other (its body's text is known) holds no secret, whatever it says:
    its API has none, and it isn't of the metadata log. A LeaveGroup has to name its group."""
    key, request = entry.api_key, entry.request
    if key in _keys() or not _has_plain_text(entry):
        return False
    if request is None:
        return key not in _LIKE_SECRETS or (key == _LEAVE_GROUP and _names_group(entry))
    if not _has_plain_text(request) and not _is_trusted(request):
        return False
    if key != secret_fields.FETCH or _find_records((entry.text or NO_TEXT)[0] or "") is None:
        return True
    return not (_names_metadata(entry.body) or _names_metadata(request.body))


def has_nothing_to_redact(entry: FrameEntry) -> bool:
    """Whether nothing of an entry is withheld."""
    return withheld(entry) == NOTHING


def shown_text(entry: FrameEntry, *, show_secrets: bool) -> str | None:
    """The text of a plain frame's body; None of any other frame. A frame is plain if its body's text is known
    and nothing of it is withheld, as `look` in `_speedups/capture/plain_lines.c` says of most frames."""
    text, _ = entry.text or body_text(entry)
    return text if text is not None and (show_secrets or has_nothing_to_redact(entry)) else None


@cache
def is_always_harmless(key: int | None, direction: Direction) -> bool:
    """Whether `is_harmless` holds for every frame of an API and direction whose text, and that of its
    request, is known and has no zeros. Asked for APIs that have texts, of which there are few."""
    if direction == "response":
        return key not in _keys() and key != secret_fields.FETCH
    return key not in _keys() and key not in _LIKE_SECRETS


def _names_group(entry: FrameEntry) -> bool:
    """Whether the text of a LeaveGroup begins with a group, as `_is_plausible` has it."""
    text = body_text(entry)[0]
    return text is not None and text.startswith(_GROUP) and not text.startswith('"', len(_GROUP))


def _has_plain_text(entry: FrameEntry) -> bool:
    """Whether its body's text is known and has no zeros."""
    text, flags = entry.text or body_text(entry)
    return text is not None and not flags & HAS_ZEROS


def _names_metadata(body: bytes) -> bool:
    """Whether the metadata log's name or id may be in a message, or at its beginning, where a fetch of it has
    them, a name or id that was damaged."""
    if _METADATA_NAME in body or _METADATA_ID in body or secret_fields.is_metadata_id(body[_ID]):
        return True
    head = body[:_HEAD]
    return _FIRST_PART in head or _SECOND_PART in head or _LAST_PART in head


def is_fully_decoded(entry: FrameEntry) -> bool:
    """Whether a message accounts for the bytes of a frame: it was read to its end, perhaps with deviations
    that a strict reading refuses, and what of it no field holds is shorter than a secret. A message that has
    secrets must be as it should be; texts of others have no zero, as bytes have that are read as a text.
    For most APIs the text of its body shows both, where it is known or nothing is decoded yet."""
    if entry.hidden is AMBIGUOUS:
        return False
    has_text = entry.text is not None or type(entry) in UNDECODED
    is_told = has_text and len(entry.body) <= LONGEST_BODY and texts_account_for(entry.api_key)
    if is_told and _has_plain_text(entry):
        return True
    if entry.message is None:
        return False
    deviations = entry.deviations if entry.error is None else _tolerated(entry)
    if deviations is None or (deviations and not _are_stray_bytes(deviations)):
        return False
    if entry.dialect != KAFKA or texts_account_for(entry.api_key):
        return not _has_zero(entry.message)
    if entry.api_key in _keys():
        return not deviations
    is_like = entry.direction == "request"
    return not _has_zero(entry.message) and (not is_like or _is_plausible(entry.message))


@cache
def texts_account_for(key: int | None) -> bool:
    """Whether texts without zeros account for the bytes of an API's frames that are read whole."""
    return key not in _keys() and key not in _LIKE_SECRETS


def _are_stray_bytes(deviations: list[Deviation]) -> bool:
    """Whether a frame deviates in nothing but bytes too many, and in too few for a secret: what is odd in
    another way, such as a boolean of 111, may be another message's."""
    return (
        all(deviation.unread for deviation in deviations)
        and sum(deviation.unread for deviation in deviations) < LEAST
    )


def _is_plausible(message: Any) -> bool:
    """Whether a message of `_LIKE_SECRETS` says what such a message must: its group, or what an ACL has; or
    its texts are shorter than a secret."""
    if sum(len((place.value or "").encode()) for place in _TEXTS.places(message)) < LEAST:
        return True
    if message.api_key == _LEAVE_GROUP:
        return bool(message.group_id or not message.member_id)
    acls = getattr(message, "creations", getattr(message, "filters", None))
    return all(map(_is_acl, [message] if acls is None else acls))


_TEXTS = FieldSelection(lambda field: field.type == "string" and field.name not in _ANY_TEXT)
"""Names and other texts of Kafka's."""


def _is_acl(acl: Any) -> bool:
    """Whether Kafka takes an ACL or a filter of ACLs: known numbers, a principal with its type."""
    for field in fields_of(acl):
        name, value = field.name.removesuffix("_filter"), getattr(acl, field.name)
        if name == "principal" and value and ":" not in value:
            return False
        most = _PARTS_OF_ACLS.get(name.replace("resource_pattern", "pattern"))
        if most is not None and not 1 <= value <= most:
            return False
    return True


def _tolerated(entry: FrameEntry) -> list[Deviation] | None:
    """What a refused frame deviates in, if it is one that only a strict reading refuses."""
    key, version = entry.api_key, entry.api_version
    if entry.dialect != KAFKA or key is None or version is None:
        return None
    try:
        if entry.direction == "request":
            return read_request(entry.body, strict=False).deviations
        return read_response(entry.body, key, version, strict=False).deviations
    except DecodeError:
        return None


def _has_zero(value: Any) -> bool:
    """Whether a text in a message has a zero."""
    return "\0" in _texts_of(value._layout_.cls)(value)


@cache
def _texts_of(cls: Any) -> Callable[[Any], str]:
    """What gives the texts of a message, or of a struct in one, as one text; a null has none of zeros."""
    fields: Any = _TEXTS.fields(cls)
    inner = {
        f"texts_of_{field.name}": _texts_of(field.struct) for field in fields if field.struct is not None
    }
    own = "".join(f"{{value.{field.name}}}" for field in fields if field.struct is None and not field.array)
    parts = [f'f"{own}"']
    for field in fields:
        value, texts = f"value.{field.name}", f"texts_of_{field.name}"
        if field.array:
            part = "part or ''" if field.struct is None else f"{texts}(part) if part is not None else ''"
            parts.append(f"''.join([{part} for part in {value} or ()])")
        elif field.struct is not None:
            parts.append(f"({texts}({value}) if {value} is not None else '')")
    function: Callable[[Any], str] = eval("lambda value: " + " + ".join(parts), inner)
    return function


def _has_secrets(entry: FrameEntry) -> bool:
    """Whether its API has secrets."""
    return entry.dialect == KAFKA and entry.api_key in _keys()


def _is_short(entry: FrameEntry) -> bool:
    """Whether a frame that no message accounts for has too few bytes for a secret, zeros apart. An answer
    whose request is known has its correlation id besides, and a refusal of ApiVersions its error code."""
    if entry.token:
        return False
    known = 0 if entry.request is None else PREFIX
    if known and entry.api_key == API_VERSIONS and is_unsupported_version(entry.body):
        known += ERROR_CODE
    return len(entry.body) - known - entry.body.count(0, known) < LEAST


def _is_trusted(request: FrameEntry) -> bool:
    """Whether what a request says is what was sent, as far as its bytes are known: a header whose length was
    changed has other bytes for a client id."""
    return bool(request.released) or is_fully_decoded(request)


def _paths(entry: FrameEntry) -> list[str]:
    """What isn't shown of a message that accounts for its bytes: secrets, and tagged fields that aren't
    known."""
    paths = _secrets(entry)
    has_text = (entry.text or NO_TEXT)[0] is not None  # which only a message without such tagged fields has
    if has_text or _has_secrets(entry):  # all such tagged fields are among them
        return paths
    return [*paths, *secret_fields.unknown_tags(entry.message, least=LEAST)]


def _secrets(entry: FrameEntry) -> list[str]:
    """The secrets in a message; an answer to who asked for the metadata log is taken for it."""
    paths = secret_fields.find(entry.message)
    if paths or type(entry.message).__name__ != "FetchResponse" or not _asks_for_metadata(entry):
        return paths
    answer: Any = entry.message
    return [
        f"responses[{number}].partitions[{index}].records"
        for number, topic in enumerate(answer.responses)
        for index, partition in enumerate(topic.partitions)
        if partition.records and secret_fields.records_hide(partition.records)
    ]


def _asks_for_metadata(entry: FrameEntry) -> bool:
    topics = getattr(entry.request and entry.request.message, "topics", None) or ()
    return any(map(secret_fields.is_metadata, topics))


@cache
def _keys() -> frozenset[int]:
    """The APIs of which either side holds secrets."""
    return frozenset(
        key
        for key, facts in FACTS.items()
        if any(facts.name + side in secret_fields.FIELDS for side in ("Request", "Response"))
    )
