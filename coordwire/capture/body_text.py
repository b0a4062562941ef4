"""A frame's body in JSON, straight from its bytes, where nothing about the frame is out of the ordinary.

Strategy: the native engine writes the text (`coordwire.codec.program`); it is made once and kept in the
entry. Rules: there is a text only of whole Kafka frames without deviations; it is that of
`coordwire.to_json`, which is the oracle and serves wherever there is none: in Python, for other dialects,
unknown tagged fields, and what was refused. A look-up costs as little as can be, since each frame has one.
"""

from __future__ import annotations

import struct
from collections.abc import Callable
from typing import TYPE_CHECKING, TypeAlias

from coordwire._speedups import native
from coordwire.capture.entries import FrameEntry
from coordwire.capture.frame_decoding import LazyEntry
from coordwire.codec.program import HAS_CODES, HAS_ZEROS, layout_transcriber
from coordwire.codec.walk import layout_of
from coordwire.connection.dialect import KAFKA
from coordwire.messages import find_message
from coordwire.messages.headers import RequestHeader, ResponseHeader
from coordwire.versions import LASTING_CLIENT_KEYS, header_version

if TYPE_CHECKING:
    from coordwire._speedups import _native

BodyText: TypeAlias = tuple[str | None, int]
"""The text of a message's JSON form, None if there is none; and what was found in its bytes (`HAS_CODES`,
`OTHERWISE`, `HAS_ZEROS`)."""

NO_TEXT: BodyText = (None, 0)

_Key: TypeAlias = tuple[str, int | None, int | None, int | None]
_Transcribe: TypeAlias = "Callable[[bytes, _native.Transcriber | None], BodyText | None]"

_set_client = FrameEntry.__dict__["client_id"].__set__
known_client = FrameEntry.__dict__["client_id"].__get__
"""The client id of an entry whose text is known, or that is decoded; faster than a lazy entry's attribute."""
_LENGTH = struct.Struct(">h").unpack_from
_CLIENT = 8
"""Where a request's header has the client id, in all versions of the header that have one."""

_Known: TypeAlias = "tuple[_Transcribe, _native.Transcriber | None, bool]"
_KNOWN: dict[_Key, _Known] = {}
"""By direction, api key, version and the body's version: of each that was seen, what writes its text, the
transcriber of its header, and whether that has a client id."""


def body_text(entry: FrameEntry) -> BodyText:
    """The text of an entry's message; `NO_TEXT` where `coordwire.to_json` must serve.

    A lazy entry isn't decoded for it: bytes that have a text are those of a whole message.
    """
    text = entry.text
    if text is None:
        text = NO_TEXT
        lazy = isinstance(entry, LazyEntry)
        if lazy or (
            entry.error is None
            and entry.message is not None
            and not entry.deviations
            and entry.dialect == KAFKA
        ):
            key = entry.direction, entry.api_key, entry.api_version, entry.body_version
            transcribe, header, is_named = _KNOWN.get(key) or _remember_transcribers(key)
            text = transcribe(entry.body, header) or NO_TEXT
            if lazy and text is not NO_TEXT:
                _set_client(entry, _client_of(entry, is_named))
        entry.text = text
    return text


def is_refused(entry: FrameEntry) -> bool:
    """Whether a frame was refused; it is decoded only where it has no text."""
    return (entry.text or body_text(entry))[0] is None and entry.error is not None


def _client_of(entry: FrameEntry, is_named: bool) -> str | None:
    """The client id that a sound frame has: its request's, or that in its own header, if that has one."""
    request = entry.request
    if request is not None:
        try:
            known: str | None = known_client(request)
        except AttributeError:
            return request.client_id
        return known
    if not is_named:  # the conversation may know it
        return known_client(entry) if entry.api_key in LASTING_CLIENT_KEYS else None
    body = entry.body
    size = _LENGTH(body, _CLIENT)[0]
    return None if size < 0 else body[_CLIENT + 2 : _CLIENT + 2 + size].decode()


def _remember_transcribers(key: _Key) -> _Known:
    """Make and remember what writes the text of an API in a version. There are as many as the schemas have,
    and the versions of ApiVersions that clients may send."""
    transcribers = find_transcribers(*key)
    if transcribers is None:
        known: _Known = _no_text, None, False
    else:
        message, header, is_named = transcribers
        known = message.transcribe, header, is_named
    _KNOWN[key] = known
    return known


def find_transcribers(
    direction: str, api_key: int | None, version: int | None, body_version: int | None
) -> tuple[_native.Transcriber, _native.Transcriber, bool] | None:
    """The transcribers of a message and of its header, and whether the client id is read there; None where
    there is no text."""
    if native is None or api_key is None or version is None or body_version is None:
        return None
    try:
        cls = find_message(api_key, direction)
    except KeyError:
        return None
    if version not in cls.versions or body_version not in cls.versions:
        return None
    head = RequestHeader if direction == "request" else ResponseHeader
    kind = header_version(api_key, version, direction)
    header = layout_transcriber(layout_of(head, kind))
    message = layout_transcriber(layout_of(cls, body_version))
    if header is None or message is None:
        return None
    return message, header, direction == "request" and kind > 0 and api_key not in LASTING_CLIENT_KEYS


def _no_text(body: bytes, header: _native.Transcriber | None) -> BodyText | None:
    """No text."""
    return None


def has_no_codes(entry: FrameEntry) -> bool:
    """Whether it is known, without its message, that no error code in it is other than 0. It is not known of
    texts with zeros, by which an answer may be taken for bytes that no message accounts for."""
    text, flags = body_text(entry)
    return text is not None and not flags & (HAS_CODES | HAS_ZEROS)
