"""Entries as JSON, one object a line.

Strategy: the body is `coordwire.to_json`'s, the keys around it give its place and its faults. Rules: the
order of the keys is fixed; lines are ASCII, so that no terminal or locale changes them; a frame of which
anything was refused or odd, or that we would write otherwise, carries its bytes in `raw`, so that nothing is
lost.
"""

from __future__ import annotations

import json
from binascii import b2a_base64
from collections.abc import Callable
from functools import cache
from typing import Any, Literal, NamedTuple

from coordwire.capture.answer_errors import AnswerError, answer_errors
from coordwire.capture.body_text import body_text
from coordwire.capture.entries import Entry, FrameEntry
from coordwire.capture.flows import TcpConnection, format_time
from coordwire.capture.redaction.entry_secrets import NOTHING, Withheld, size_withheld, withheld
from coordwire.capture.redaction.secret_fields import redact
from coordwire.codec.program import OTHERWISE
from coordwire.codec.walk import layout_of
from coordwire.connection.dialect import KAFKA
from coordwire.errors import EncodeError, UnreadableRange
from coordwire.messages.headers import RequestHeader
from coordwire.versions import header_version

encode = json.JSONEncoder(separators=(",", ":"), check_circular=False).encode
"""JSON as in the lines: compact, ASCII."""

OpenBytes = Callable[[FrameEntry, bool], dict[str, Any]]
"""Opens a frame's opaque bytes; the argument is whether to show secrets."""


def line(entry: Entry, digits: int, *, show_secrets: bool, opened: OpenBytes | None = None) -> str:
    """One entry as a line. digits: decimals of a second that the capture's times have; opened: decodes
    a frame's opaque bytes, if that is wanted."""
    if isinstance(entry, UnreadableRange):
        return encode(_unreadable(entry, digits, show_secrets)) + "\n"
    hidden = NOTHING if show_secrets else withheld(entry)
    body = None if hidden.paths or hidden.body else body_text(entry)[0]
    head, tail = _parts(entry, digits, show_secrets, hidden, body)
    if opened is not None and not hidden.body and (embedded := opened(entry, show_secrets)):
        tail["embedded"] = embedded
    if body is None:
        return encode(head | tail) + "\n"
    return f'{encode(head)[:-1]},"body":{body},{encode(tail)[1:]}\n'


def _unreadable(entry: UnreadableRange, digits: int, show_secrets: bool) -> dict[str, Any]:
    form: dict[str, Any] = {
        "capture": text(entry.file), "frame": None, **_packets(entry), "flow": entry.flow,
        "time": _time(entry, digits), "direction": None, "apiKey": None, "api": None, "apiVersion": None,
        "correlationId": None, "clientId": None, "size": entry.length, "body": None,
        "error": {"reason": entry.reason, "position": entry.position, "path": ""},
    }  # fmt: skip
    if entry.data and show_secrets:
        form["raw"] = entry.data.hex()
    elif entry.data:
        form |= {"redacted": ["raw"], "withheld": size_withheld(entry)}
    return form


def entry_form(entry: Entry, digits: int, *, show_secrets: bool) -> dict[str, Any]:
    """An entry's line as a dict, before it is written."""
    if isinstance(entry, UnreadableRange):
        return _unreadable(entry, digits, show_secrets)
    return frame_form(entry, digits, show_secrets=show_secrets)


def frame_form(entry: FrameEntry, digits: int, *, show_secrets: bool) -> dict[str, Any]:
    """A frame's line as a dict, before it is written."""
    hidden = NOTHING if show_secrets else withheld(entry)
    head, tail = _parts(entry, digits, show_secrets, hidden, None)
    return head | tail


class FrameContent(NamedTuple):
    """What a frame's line says of its content.

    body: its JSON form, if that is asked for; error: why it was refused; raw: whether its bytes belong to the
    line: "shown", "withheld" or None; redacted: the paths of what isn't shown.
    """

    body: Any
    error: dict[str, Any] | None
    header_tags: dict[str, str | None] | None
    raw: Literal["shown", "withheld"] | None
    redacted: list[str]
    deviations: list[dict[str, Any]] | None


def frame_content(
    entry: FrameEntry, hidden: Withheld, *, show_secrets: bool, with_body: bool = True
) -> FrameContent:
    """What is said of a frame's content. hidden: what isn't shown of it; with_body: whether the JSON form is
    made, which is to be left out only where it exists and has nothing to hide."""
    version, error, header = entry.body_version, entry.error, entry.header
    body = None
    trouble = (
        None if error is None else {"reason": error.reason, "position": error.position, "path": error.path}
    )
    if with_body and entry.message is not None and version is not None and not hidden.body:
        from coordwire.capture import partial_messages  # which plain frames do without
        from coordwire.jsonform import to_json

        if error is not None:
            body = partial_messages.body(entry.message, version, error.path)
        else:
            try:
                body = to_json(entry.message, version=version)
            except EncodeError as refusal:
                trouble = {"reason": f"no JSON form: {refusal.reason}", "position": 0, "path": refusal.path}
    header_tags = None
    if header is not None and header.tags:
        header_tags = {
            str(tag): None if hidden.tags else b2a_base64(data, newline=False).decode()
            for tag, data in header.tags.items()
        }
    redacted = list(hidden.paths)
    if hidden.body and entry.message is not None:
        redacted = ["body"]
    elif body is not None:
        redact(body, redacted)
    if hidden.client:
        redacted.append("client_id")
    if hidden.tags and header is not None and header.tags:
        redacted += [f"header_tags[{tag}]" for tag in header.tags]
    raw: Literal["shown", "withheld"] | None = None
    if trouble is not None or entry.deviations or entry.message is None or _written_otherwise(entry):
        is_withheld = hidden.raw or (not show_secrets and trouble is not None and error is None)
        raw = "withheld" if is_withheld else "shown"
        if is_withheld:
            redacted.append("raw")
    deviations = [
        {"reason": deviation.reason, "position": deviation.position, "path": deviation.path}
        for deviation in entry.deviations
    ]
    return FrameContent(body, trouble, header_tags, raw, redacted, deviations or None)


def _parts(
    entry: FrameEntry, digits: int, show_secrets: bool, hidden: Withheld, text_of_body: str | None
) -> tuple[dict[str, Any], dict[str, Any]]:
    """What a frame's line has before its body, and the rest; with the body, unless its text is known."""
    key, version = entry.api_key, entry.body_version
    content = frame_content(entry, hidden, show_secrets=show_secrets, with_body=text_of_body is None)
    form: dict[str, Any] = {
        "capture": text(entry.capture), "frame": entry.number, **_packets(entry), "flow": entry.flow,
        "time": _time(entry, digits), "direction": entry.direction,
    }  # fmt: skip
    if entry.request is not None:
        form["request"] = entry.request.number
        if entry.request.packet is not None:
            form["requestPacket"] = entry.request.packet
    form |= {"apiKey": key, "api": entry.api_name, "apiVersion": entry.api_version}
    if entry.dialect != KAFKA:
        form["dialect"] = str(entry.dialect)
    if version != entry.api_version:
        form["bodyVersion"] = version
    form["correlationId"] = entry.correlation_id
    form["clientId"] = None if hidden.client else entry.client_id
    if entry.client_is_unknown:
        form["clientIsUnknown"] = True
    elif isinstance(entry.header, RequestHeader) and entry.header.client_id != entry.client_id:
        form["clientIsInherited"] = True
    if content.header_tags is not None:
        form["headerTags"] = content.header_tags
    if entry.token:
        form["token"] = True
    form["size"] = len(entry.body)
    if (latency := entry.latency_ns) is not None:
        form["latencyMs"] = round(latency / 1e6, 6)
    tail: dict[str, Any] = {} if text_of_body is not None else {"body": content.body}
    tail["error"] = content.error
    if not hidden.body and (errors := answer_errors(entry)):
        tail["errors"] = [error_form(answer_error) for answer_error in errors]
    if content.raw == "shown":
        tail["raw"] = entry.body.hex()
    elif content.raw is not None:
        tail["withheld"] = size_withheld(entry)
    if content.redacted:
        tail["redacted"] = content.redacted
    if content.deviations is not None:
        tail["deviations"] = content.deviations
    return form, tail


def _packets(entry: Entry) -> dict[str, Any]:
    """Where Wireshark has it: the packets of its last and its first byte, and the connection."""
    form: dict[str, Any] = {}
    if entry.packet is not None:
        form = {"packet": entry.packet, "firstPacket": entry.first_packet}
    if isinstance(entry, UnreadableRange):
        if entry.tcp_stream is not None:
            form["connection"] = entry.tcp_stream
    elif entry.connection is not None:
        form |= _connection(entry.connection)
    return form


def _connection(connection: TcpConnection) -> dict[str, Any]:
    return {
        "connection": connection.stream,
        "client": str(connection.client),
        "broker": str(connection.broker),
    }


def error_form(error: AnswerError) -> dict[str, Any]:
    """An error code of an answer, as a line has it."""
    form = {"errorCode": error.code, "error": error.name, "path": error.path}
    return form if error.times == 1 else form | {"times": error.times}


def _written_otherwise(entry: FrameEntry) -> bool:
    """Whether a sound frame isn't written as we would: tagged fields may be there at their defaults."""
    header, message, version = entry.header, entry.message, entry.body_version
    if entry.dialect != KAFKA:
        return False
    written, flags = body_text(entry)
    if written is not None:
        return bool(flags & OTHERWISE)
    assert header is not None
    assert message is not None
    assert version is not None
    cls: Any = type(message)
    if not _has_tagged(cls, version):
        return False
    assert entry.api_key is not None
    assert entry.api_version is not None
    kind = header_version(entry.api_key, entry.api_version, entry.direction)
    return len(header.encode(version=kind)) + len(message.encode(version=version)) != entry.size


@cache
def _has_tagged(cls: Any, version: int) -> bool:
    layout = layout_of(cls, version)
    structs: list[Any] = [field.struct for field in layout.inline if field.struct is not None]
    return bool(layout.tagged) or any(_has_tagged(struct, version) for struct in structs)


def _time(entry: Entry, digits: int) -> str | None:
    return None if entry.time_ns is None else format_time(entry.time_ns, digits)


def text(name: str) -> str:
    """A file's name; what isn't UTF-8 in it as in Python's own messages."""
    return name if name.isascii() else name.encode("utf-8", "backslashreplace").decode()
