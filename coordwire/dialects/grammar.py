"""Dialects: what was spoken before Kafka 0.8's requests, and what its drafts would have spoken.

    kafka       Kafka 0.8 and later: `coordwire.frames`, not this module
    kafka-0.7   Produce, Fetch, MultiFetch, MultiProduce, Offsets; replies in the order of their requests
    draft-1     the first coordinator draft: Consult, Register; the coordinator sends Ping, Stop and Start
    draft-2     the detailed design: ClusterMetadata, RegisterConsumer; Ping, StopFetcher, StartFetcher
    draft-3     the new consumer's draft: Ping, Metadata, JoinGroup, all of them sent by the consumer

Strategy: one `Call` a row: who asks, what answers, and by what an answer is known. A `Grammar` is a dialect's
rows with the type ids of one conversation: it writes frames, and reads a body once it is known what it is.

Rules: no document gives the drafts' type ids. Ours are reconstructed (`Call.reconstructed`): 1001 and up,
2001 and up, 3001 and up, far from Kafka's api keys and from any error code; the caller may set others.
Offsets of errors count from behind the size prefix. Source: Kafka's wiki and implementation pages.
"""

from __future__ import annotations

import struct
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from enum import StrEnum
from typing import Literal

from coordwire.codec import Message
from coordwire.codec.interpreter.decoder import Mark, Reader
from coordwire.errors import DecodeError, Deviation, EncodeError, OutOfRange
from coordwire.messages import find_message

__all__ = ["CALLS", "Call", "Dialect", "Direction", "DraftFrame", "Grammar", "Side", "other"]

Side = Literal["client", "server"]
Direction = Literal["request", "response"]
KnownBy = Literal["order", "type", "number"]

_SIZE = struct.Struct(">i")
_TYPE = struct.Struct(">h")


class Dialect(StrEnum):
    """Which conversation a connection speaks."""

    KAFKA = "kafka"
    KAFKA_07 = "kafka-0.7"
    DRAFT_1 = "draft-1"
    DRAFT_2 = "draft-2"
    DRAFT_3 = "draft-3"


@dataclass(frozen=True, slots=True)
class Call:
    """One request of a dialect and its answer.

    asker: who sends it; "server" is the broker or coordinator. request, response: the classes' names; a
    response of None: nobody answers. known_by: what tells to which request an answer belongs: the order of
    the requests, the type id that it repeats, or its correlation id.
    auto_commit: whether the answer has version 1 where the consumer registered with auto_commit, else 0.
    reconstructed: whether the type id is of our own making.
    """

    name: str
    type_id: int
    asker: Side
    request: str
    response: str | None
    known_by: KnownBy = "order"
    auto_commit: bool = False
    reconstructed: bool = True

    @property
    def answer_typed(self) -> bool:
        """Whether the answer begins with the request's type id."""
        return self.known_by == "type"

    def message(self, direction: Direction) -> type[Message]:
        """The class of the request or of the response. Raises `KeyError` where nobody answers."""
        name = self.request if direction == "request" else self.response
        if name is None:
            raise KeyError((self.name, direction))
        return find_message(name)

    def encode(self, message: Message, direction: Direction, *, version: int = 0) -> bytes:
        """The frame of its request or response, size prefix and type id included. Raises `EncodeError`."""
        head = _TYPE.pack(self.type_id) if direction == "request" or self.answer_typed else b""
        body = message.encode(version=version)
        size = len(head) + len(body)
        if size > 0x7FFF_FFFF:
            raise OutOfRange(f"a frame of {size} bytes is beyond its size prefix")
        return b"".join((_SIZE.pack(size), head, body))


def _calls(prefix: str, *rows: tuple[str, int, Side, str | None, KnownBy, bool]) -> tuple[Call, ...]:
    return tuple(
        Call(
            name, type_id, asker, f"{prefix}{name}Request", prefix + answer if answer else None, known_by,
            auto_commit, reconstructed=type_id > 1000,
        )
        for name, type_id, asker, answer, known_by, auto_commit in rows
    )  # fmt: skip


CALLS: dict[Dialect, tuple[Call, ...]] = {
    Dialect.KAFKA_07: _calls(
        "Kafka07",
        ("Produce", 0, "client", None, "order", False),
        ("Fetch", 1, "client", "MessageSetSend", "order", False),
        ("MultiFetch", 2, "client", "MultiMessageSetSend", "order", False),
        ("MultiProduce", 3, "client", None, "order", False),
        ("Offsets", 4, "client", "OffsetsResponse", "order", False),
    ),
    Dialect.DRAFT_1: _calls(
        "Draft1",
        ("Consult", 1001, "client", "ConsultResponse", "order", False),
        ("Register", 1002, "client", None, "order", False),
        ("Ping", 1003, "server", "PingResponse", "order", True),
        ("Stop", 1004, "server", None, "order", False),
        ("Start", 1005, "server", "StartResponse", "order", False),
    ),
    Dialect.DRAFT_2: _calls(
        "Draft2",
        ("ClusterMetadata", 2001, "client", "ClusterMetadataResponse", "order", False),
        ("RegisterConsumer", 2002, "client", "RegisterConsumerResponse", "order", False),
        ("Ping", 2003, "server", "PingResponse", "type", True),
        ("StopFetcher", 2004, "server", "StopFetcherResponse", "type", True),
        ("StartFetcher", 2005, "server", "StartFetcherResponse", "type", False),
    ),
    Dialect.DRAFT_3: _calls(
        "Draft3",
        ("Ping", 3001, "client", "PingResponse", "number", False),
        ("Metadata", 3002, "client", "MetadataResponse", "number", False),
        ("JoinGroup", 3003, "client", "JoinGroupResponse", "number", False),
    ),
}
"""The rows of each dialect, with the type ids that hold unless the caller sets others."""


def other(side: Side) -> Side:
    return "server" if side == "client" else "client"


@dataclass(slots=True, kw_only=True)
class DraftFrame:
    """A request or response of a dialect other than Kafka's, as it came; `size` counts its bytes behind the
    prefix.

    version: of the message's layout, nothing on the wire says it. correlation_id: draft-3's own; elsewhere
    the request's place among its side's requests on this connection, from 0.
    """

    dialect: Dialect
    call: Call
    direction: Direction
    message: Message
    version: int
    size: int
    correlation_id: int = -1
    deviations: list[Deviation] = field(default_factory=list)

    @property
    def api_key(self) -> int:
        """The type id."""
        return self.call.type_id

    @property
    def api_version(self) -> int:
        return self.version

    @property
    def api_name(self) -> str:
        return self.call.name

    @property
    def client_id(self) -> str | None:
        return getattr(self.message, "client_id", None)


class Grammar:
    """A dialect's calls with the type ids of one conversation.

    type_ids: by the call's name ("Ping"), those that differ from the defaults. Raises `ValueError` for a name
    that the dialect lacks, an id beyond int16, or one that stands for two calls.
    """

    def __init__(self, dialect: Dialect | str, type_ids: Mapping[str, int] | None = None) -> None:
        self.dialect = Dialect(dialect)
        if self.dialect is Dialect.KAFKA:
            raise ValueError("Kafka's own dialect has api keys, which nobody sets")
        ids = dict(type_ids or {})
        self.calls = tuple(replace(call, type_id=ids.pop(call.name, call.type_id),
                                   reconstructed=call.reconstructed and call.name not in (type_ids or {}))
                           for call in CALLS[self.dialect])  # fmt: skip
        if ids:
            raise ValueError(f"{self.dialect} has no {', '.join(sorted(ids))}")
        self.by_id = {call.type_id: call for call in self.calls}
        if len(self.by_id) < len(self.calls):
            raise ValueError("a type id stands for two requests")
        if not all(-0x8000 <= number < 0x8000 for number in self.by_id):
            raise ValueError("a type id is an int16")
        self._by_message: dict[str, tuple[Call, Direction]] = {}
        for call in self.calls:
            self._by_message[call.request] = call, "request"
            if call.response is not None:
                self._by_message[call.response] = call, "response"

    def find(self, message: object) -> tuple[Call, Direction]:
        """The call that a message belongs to, and as what. Raises `EncodeError` for a message of no call."""
        name = type(message).__name__
        found = self._by_message.get(name)
        if found is None or not isinstance(message, find_message(name)):
            raise EncodeError(f"{name} is no message of {self.dialect}")
        return found

    def encode(self, message: Message, *, version: int = 0) -> bytes:
        """A message's frame, size prefix and type id included. Raises `EncodeError`."""
        call, direction = self.find(message)
        return call.encode(message, direction, version=version)

    def decode(
        self,
        body: bytes,
        call: Call,
        direction: Direction,
        *,
        version: int = 0,
        strict: bool = True,
        marks: list[Mark] | None = None,
    ) -> DraftFrame:
        """What stands behind a size prefix, known to be this. `marks` collects where every part stands.

        Raises `DecodeError`, with the message as far as it was read in `partial`.
        """
        cls = call.message(direction)
        deviations: list[Deviation] = []
        at = 0
        if direction == "request" or call.answer_typed:
            header = find_message("RequestTypeHeader")
            reader = Reader(body, 0, 0, marks=marks)
            try:
                reader.message(header, whole=False)
            except DecodeError as error:
                error.partial = None
                raise
            at = reader.pos
        if marks is None:
            message = cls._decode_at(body, at, version, strict, deviations)
        else:
            message = Reader(
                body, at, version, strict=strict, deviations=deviations, marks=marks
            ).message(cls)  # fmt: skip
        return DraftFrame(
            dialect=self.dialect, call=call, direction=direction, message=message, version=version,
            size=len(body), deviations=deviations,
        )  # fmt: skip
