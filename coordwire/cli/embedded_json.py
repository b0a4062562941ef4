"""Opened bytes as JSON, for `--deep`: messages inside bytes, SASL's texts, records of the brokers' own logs.

Rules: opened bytes hide the same secrets as others: the value of a secret is null, and its path is in
`redacted`. Nothing raises: content that cannot be shown stays bytes in the body.
"""

from __future__ import annotations

import dataclasses
from typing import Any

from coordwire.capture.entries import FrameEntry
from coordwire.capture.redaction import secret_fields
from coordwire.capture.redaction.secret_fields import redact
from coordwire.codec import Message
from coordwire.dialects import Dialect
from coordwire.embedded import open_embedded
from coordwire.errors import DecodeError, EncodeError
from coordwire.jsonform import to_json
from coordwire.logs import LogRecord
from coordwire.sasl import SaslMessage, open_sasl, read_sasl

Form = dict[str, Any]


def embedded(message: Message, *, show_secrets: bool) -> dict[str, Form]:
    """The messages inside a message's bytes, by their paths."""
    return {
        path: {"type": type(content.message).__name__, "version": content.version}
        | ({} if content.deviation is None else {"deviation": dataclasses.asdict(content.deviation)})
        | _valued(content.message, min(content.version, content.message.versions[-1]), show_secrets)
        for path, content in open_embedded(message).items()
    }


def opened(entry: FrameEntry, *, show_secrets: bool) -> dict[str, Form]:
    """All that opens in a frame: `embedded`, and what SASL's bytes say."""
    forms = {} if entry.message is None else embedded(entry.message, show_secrets=show_secrets)
    if (operations := _operations(entry, show_secrets)) is not None:
        forms["operations"] = operations
    token = sasl(entry)
    if token is not None:
        path = "token" if entry.token else "auth_bytes"
        forms[path] = {"type": type(token).__name__, "value": _sasl_form(token) if show_secrets else None}
    return forms


def _operations(entry: FrameEntry, show_secrets: bool) -> Form | None:
    """The operations in a multi of ZooKeeper, or their results; None where there are none to read."""
    content = getattr(entry.message, "operations", None)
    if entry.dialect != Dialect.ZOOKEEPER or not isinstance(content, bytes) or entry.error is not None:
        return None
    from coordwire.dialects.zookeeper_multi import read_operations

    try:
        operations = read_operations(content, results=entry.direction == "response")
    except DecodeError:
        return None
    return {
        "type": "ZooKeeperOperations",
        "value": [
            {"operation": operation.name, "errorCode": operation.error_code}
            | ({} if operation.message is None else _valued(operation.message, 0, show_secrets))
            for operation in operations
        ],
    }


def sasl(entry: FrameEntry) -> SaslMessage | None:
    """What a frame's SASL bytes say, be they a SaslAuthenticate's or a bare token."""
    if entry.token:
        sender: Any = "client" if entry.direction == "request" else "server"
        return read_sasl(entry.body, sender, entry.mechanism)
    return None if entry.message is None else open_sasl(entry.message, entry.mechanism)


def log_record(record: LogRecord, *, show_secrets: bool) -> Form:
    """A record of the brokers' own logs: log, type, version, key and value; where there is anything to say
    embedded (by paths in the value), redacted, unknown. Bytes that aren't known are hex."""
    form: Form = {"log": record.log, "type": record.type, "version": record.version}
    hidden: list[str] = []
    for part in ("key", "value"):
        content = getattr(record, part)
        if isinstance(content, Message):
            version = 0 if part == "key" else record.version or 0
            valued = _valued(content, version, show_secrets)
            hidden += [f"{part}.{path}" for path in valued.pop("redacted", ())]
            form[part] = {"type": type(content).__name__} | valued
        elif content is not None and not show_secrets and _may_hide(record, part):
            form[part] = None
            hidden.append(part)
        else:
            form[part] = None if content is None else content.hex()
    if isinstance(record.value, Message) and (deeper := embedded(record.value, show_secrets=show_secrets)):
        form["embedded"] = deeper
    if hidden:
        form["redacted"] = hidden
    if record.unknown is not None:
        form["unknown"] = record.unknown
    return form


def _may_hide(record: LogRecord, part: str) -> bool:
    """Whether bytes that aren't understood may hold a secret."""
    return part == "value" and secret_fields.may_hide(record.log, record.type)


def _valued(message: Message, version: int, show_secrets: bool) -> Form:
    """`value`, and `redacted` where anything was; `unknown` is why no value is given."""
    try:
        form = to_json(message, version=version)
    except EncodeError as refusal:
        return {"value": None, "unknown": f"no JSON form: {refusal}"}
    hidden = [] if show_secrets else secret_fields.find(message)
    redact(form, hidden)
    return {"value": form} | ({"redacted": hidden} if hidden else {})


def _sasl_form(message: SaslMessage) -> Form:
    """Its fields, bytes as hex."""
    form: Form = {}
    for field in dataclasses.fields(message):
        value = getattr(message, field.name)
        if isinstance(value, bytes):
            value = value.hex()
        form[field.name] = dict(value) if isinstance(value, tuple) else value
    return form
