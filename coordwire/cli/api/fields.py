"""The descriptions of a message's fields: the field tables, with the words of the generated classes.

Strategy: tables give names, types and versions; the generated classes give the docs. Rules: nothing here is
printed; `api` does that.
"""

from __future__ import annotations

import builtins
import json
import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any
from uuid import UUID

from coordwire.codec import Field, Message, Struct
from coordwire.codec.class_docs import field_docs, own_doc
from coordwire.codec.fields import FOREVER
from coordwire.codec.walk import fields_of
from coordwire.enums import ErrorCode, OpenEnum, enum_of
from coordwire.messages.keys import ApiFacts

_VERSIONS_NOTE = re.compile(r"\s*\((v\d|null (?:from|up to) v)[^()]*\)$")
_RECORD_NOTE = re.compile(r"(Key|Value) of record type \d")


@dataclass(frozen=True, slots=True)
class Row:
    """One field of a message, at its place in the tree.

    path: names from the message down ("topics.partitions.offset"); depth: 0 for the message's own. type: as
    Kafka writes it ("[]string"; a struct by its class). first, last: the versions that have it, cut to the
    message's; null: those in which it may be null, or None. numbers: the enum of what it holds, if one does.
    """

    path: str
    depth: int
    field: Field
    type: str
    first: int
    last: int
    null: range | None
    doc: str
    numbers: builtins.type[OpenEnum] | None

    @property
    def name(self) -> str:
        return self.field.name

    @property
    def default(self) -> Any:
        """The value of an unset field, as JSON: bytes in hex, a struct with defaults as {}."""
        value = self.field.default
        if value is None:
            return None
        if self.field.array:
            return []
        if self.field.struct is not None:
            return {}
        if isinstance(value, UUID):
            return str(value)
        return value.hex() if isinstance(value, bytes) else value


_PLAIN: tuple[object, ...] = (0, "", [], {}, str(UUID(int=0)))


def default_note(default: object, nullable: bool) -> str | None:
    """A default in words; None where it is 0, false or empty, and could not be null instead."""
    return None if default in _PLAIN and not nullable else f"default {json.dumps(default)}"


def rows(cls: type[Message], version: int | None = None) -> list[Row]:
    """The fields of a message, structs' fields after them; in one version, or in all that there are."""
    first, last = cls.versions[0], cls.versions[-1]
    if version is not None:
        first = last = version
    return list(_rows(cls, "", 0, first, last))


def _rows(cls: Any, prefix: str, depth: int, first: int, last: int) -> Iterator[Row]:
    docs = field_docs(cls)
    for field in fields_of(cls):
        since, until = max(field.first, first), min(field.last, last)
        if since > until:
            continue
        null = range(max(field.null, since), min(field.null_until, until) + 1) or None
        path = f"{prefix}{field.name}"
        numbers = enum_of(cls.__name__, field.name)
        doc = _VERSIONS_NOTE.sub("", docs.get(field.name, ""))
        yield Row(path, depth, field, _type(field), since, until, null, doc, numbers)
        if field.struct is not None:
            yield from _rows(field.struct, f"{path}.", depth + 1, since, until)


def _type(field: Field) -> str:
    name = field.struct.__name__ if field.struct else field.type
    return f"[]{name}" if field.array else name


def versions(first: int, last: int, newest: int) -> str:
    """A range of versions: "3+" up to the newest, else "3-5" or "3"."""
    if last >= min(newest, FOREVER):
        return f"{first}+"
    return str(first) if first == last else f"{first}-{last}"


def possible_errors(facts: ApiFacts) -> list[ErrorCode]:
    """The codes that an API's response is known to carry, by number."""
    return sorted(ErrorCode[name] for name in facts.errors)


def entity_note(name: str, entity: str | None) -> str | None:
    """What a field of this name identifies, in words; None where its name, or its enum, says so."""
    if entity is None or entity == "error_code" or name.endswith(entity):
        return None
    return entity.replace("_", " ")


def class_doc(cls: type[Struct]) -> str:
    """A class's own docs in one line, without the note which record of a log it is."""
    parts = own_doc(cls).split("\n\n")
    return " ".join(" ".join(part for part in parts if not _RECORD_NOTE.match(part)).split())
