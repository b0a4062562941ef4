"""The parts of a message that are shown only on request: passwords, tokens, keys.

Strategy: the schemas mark the fields, and a generated table has their paths by message; a secret's place is a
path like those of errors ("topics[0].configs[2].value"). A config is secret unless Kafka's own of that name
is none (open_configs.py), and if the broker says so. The metadata log's records are looked into.

Rules: better one field too many than one too few: a config that isn't known is a secret, and so is a tagged
field that isn't known, in a message that holds secrets. A field that is null or empty hides nothing and is
left alone, so that it can be encoded again. A value that is removed from a JSON form becomes null; its path
is listed in `redacted` by the caller, so that `encode` refuses the line.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator
from functools import cache
from itertools import takewhile
from operator import eq, ne
from typing import Any
from uuid import UUID

from coordwire.capture.redaction.open_configs import is_open_config
from coordwire.codec import Message
from coordwire.codec.message import Buffer
from coordwire.codec.walk import elements, fields_of
from coordwire.errors import CoordwireError
from coordwire.limits import limits
from coordwire.messages.record_types import RECORD_TYPES, TOPICS, Log
from coordwire.messages.secret_paths import SECRET_PATHS

FIELDS = SECRET_PATHS
"""Where secrets are, by message, as the schemas mark them. A field called `value` is one only beside a name
that isn't known to be that of an open config."""

LEAST = 4
"""Fewer bytes than that aren't a secret, nor a piece of one that helps."""

WIDE = frozenset(("int32", "uint32", "int64", "float64"))
"""Numbers beside a secret, whose bytes aren't shown: they are a piece of it where its length was damaged."""

_LEVELS = frozenset(("OFF", "FATAL", "ERROR", "WARN", "INFO", "DEBUG", "TRACE"))

FETCH = 1
METADATA_TOPIC = TOPICS["metadata"]
METADATA_TOPIC_ID = UUID(int=1)
"""Kafka's fixed id of it (KIP-631)."""

MOST_DAMAGED = 3
"""So many bytes of its name or its id may be others."""

_STEPS = {name: [path.replace("[]", ".[]").split(".") for path in paths] for name, paths in FIELDS.items()}
MOST_RECORDS = 16 << 20
"""Bytes of records that are looked into, on top of four times those that hold them."""


def find(message: Message | None) -> list[str]:
    """The paths of a message's secrets."""
    name = type(message).__name__
    if name == "FetchResponse":
        return _metadata_records(message)
    paths = _STEPS.get(name)
    if paths is None:
        return []
    places = [place for steps in paths for place in _places(message, steps, "", False)]
    if name == "SaslAuthenticateResponse" and _has_stray_text(message):
        places.append("error_message")
    return [*places, *unknown_tags(message)]


def _has_stray_text(answer: Any) -> bool:
    """Whether an answer has the text of an error without an error: its bytes are read as one, since some
    before them are missing."""
    return bool(answer.error_message) and not answer.error_code


def may_hide(log: Log, record_type: int | None) -> bool:
    """Whether the bytes of such a record that couldn't be read may hold a secret: only the metadata log has
    any, in the types that are known for it and, for all we know, in those that aren't known."""
    if log != "metadata":
        return False
    names = None if record_type is None else RECORD_TYPES[log].get(record_type)
    return names is None or names.value in FIELDS


def is_metadata(topic: Any) -> bool:
    """Whether a topic of a Fetch is the metadata log, or may be since its name or its id was damaged."""
    number = topic.topic_id
    return is_metadata_name(topic.topic) or bool(number.int and is_metadata_id(number.bytes))


def is_metadata_id(number: bytes) -> bool:
    """Whether a topic's id is that of the metadata log, but for some bytes."""
    return len(number) - number.count(0) <= MOST_DAMAGED


def is_metadata_name(name: str) -> bool:
    """Whether a topic's name is that of the metadata log, but for some characters: others in their place, or
    more or fewer in one place."""
    size, expected = len(name), len(METADATA_TOPIC)
    if abs(size - expected) > MOST_DAMAGED:
        return False
    if size == expected:
        return bool(sum(map(ne, name, METADATA_TOPIC)) <= MOST_DAMAGED)
    head, tail = _common(name, METADATA_TOPIC), _common(name[::-1], METADATA_TOPIC[::-1])
    return head + tail >= min(size, expected)


def _common(first: str, second: str) -> int:
    """How many characters they begin with in common."""
    return sum(takewhile(bool, map(eq, first, second)))


def _metadata_records(message: Any) -> list[str]:
    """The paths of the record sets of the metadata log that hold a secret, or that are unreadable."""
    return [
        f"responses[{number}].partitions[{index}].records"
        for number, topic in enumerate(message.responses)
        if is_metadata(topic)
        for index, partition in enumerate(topic.partitions)
        if partition.records and records_hide(partition.records)
    ]


def records_hide(records: Buffer) -> bool:
    """Whether a record set of the metadata log holds a secret; if it can't be read whole, it may."""
    from coordwire.logs import open_log_record  # few captures have records of the metadata log
    from coordwire.records import batches

    room = MOST_RECORDS + 4 * len(records)
    try:
        with limits(decompressed=MOST_RECORDS):
            scan = batches(records)
            for batch in scan:
                for record in batch:  # of a control batch too: its checksum says whether it is one
                    opened = None if batch.is_control else open_log_record(METADATA_TOPIC, record)
                    value = None if opened is None else opened.value
                    if find(value) if isinstance(value, Message) else not batch.is_control:
                        return True
                    room -= 32 + len(record.key or b"") + len(record.value or b"")
                    if room < 0:
                        return True
    except CoordwireError:
        return True
    return bool(scan.remainder)


def _places(value: Any, steps: list[str], path: str, named: bool) -> Iterator[str]:
    step, *remaining = steps
    if step == "[]":
        for index, element in enumerate(value or ()):
            yield from _places(element, remaining, f"{path}[{index}]", named)
        return
    named = named or is_secret_value(value)
    content = getattr(value, step)
    field_path = f"{path}.{step}" if path else step
    if remaining:
        yield from _places(content, remaining, field_path, named)
    elif content and _hides(value, step, content, named):
        yield field_path


def _hides(value: Any, step: str, content: Any, named: bool) -> bool:
    """Whether what a field holds that may be a secret is one."""
    if step == "value":
        return is_secret_config(content, named=named)
    if step == "passwd":
        return any(content)  # ZooKeeper's new sessions have zeros
    if step == "id":
        return value.scheme not in OPEN_SCHEMES
    return step != "operations" or not is_open_multi(content)


OPEN_SCHEMES = frozenset(("world", "auth", "ip"))
"""ZooKeeper's schemes whose ids hold no secret."""


def is_open_multi(operations: bytes) -> bool:
    """Whether a multi of ZooKeeper has no ACL with a secret, which is one of the scheme "digest"."""
    return b"digest" not in operations


def is_secret_value(value: Any) -> bool:
    """Whether a config's name, or the broker, calls its value a secret."""
    if not hasattr(value, "value"):
        return False
    name = getattr(value, "name", None)
    return bool(getattr(value, "is_sensitive", False)) or (isinstance(name, str) and is_secret_name(name))


def is_secret_name(name: str) -> bool:
    """Whether a config of this name is a secret, or may be: it isn't known to be none."""
    return not is_open_config(name)


def is_secret_config(value: str, *, named: bool) -> bool:
    """Whether a config's value is a secret. named: its name says so. The level of a logger, which is a config
    too, is none; a value that isn't a text may be another's, since its length was damaged."""
    if named:
        return value not in _LEVELS
    return not all(char.isprintable() or char.isspace() for char in value)


def unknown_tags(value: Any, path: str = "", *, least: int = 0) -> Iterator[str]:
    """The paths of tagged fields that aren't known, at any depth, and have at least so many bytes."""
    if not _finder_of_tags(value._layout_.cls)(value):
        return
    for tag, data in (value.tags or {}).items():
        if len(data) >= least:
            yield f"{path}tags[{tag}]"
    for field in fields_of(value):
        if field.struct is not None:
            for place, element in elements(f"{path}{field.name}", field, getattr(value, field.name)):
                yield from unknown_tags(element, f"{place}.", least=least)


@cache
def _finder_of_tags(cls: Any) -> Callable[[Any], Any]:
    """What finds whether a struct of a class has such tagged fields at any depth, which few have."""
    function: Callable[[Any], Any] = eval(f"lambda value: {_tags_in(cls, 'value')}")
    return function


def _tags_in(cls: Any, value: str) -> str:
    """The expression of what is true where the value of an expression, of a class, has any."""
    parts, element = [f"{value}.tags"], f"{value}_"
    for field in fields_of(cls):
        if field.struct is not None:
            content = f"{value}.{field.name}"
            elements = f"{content} or ()" if field.array else f"({content},) if {element} is not None"
            parts.append(f"any([{_tags_in(field.struct, element)} for {element} in {elements}])")
    return " or ".join(parts)


_UNDERSCORE = re.compile(r"_([a-z0-9])")


def redact(body: Any, paths: Iterable[str]) -> None:
    """Set the values at these paths to null."""
    for path in paths:
        *place, last = _json_steps(path)
        value = body
        for step in place:
            value = value[step]
        if last in value:
            value[last] = None


def _json_steps(path: str) -> list[Any]:
    """A path's steps in the JSON form, where unknown tagged fields have their numbers as text."""
    from coordwire.capture import partial_messages  # which most messages, without secrets, do without

    steps: list[Any] = []
    for step in partial_messages.steps(path):
        if step == "tags":
            steps.append("_tags")
        elif isinstance(step, int):
            steps.append(str(step) if steps[-1:] == ["_tags"] else step)
        else:
            steps.append(_UNDERSCORE.sub(lambda match: match[1].upper(), step))
    return steps
