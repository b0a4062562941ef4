"""Dialects: the protocol before Kafka 0.8, and those that Kafka's coordinator drafts describe.

    kafka       Kafka 0.8 and later: `coordwire.frames`, not this module
    kafka-0.7   Produce, Fetch, MultiFetch, MultiProduce, Offsets; replies in the order of their requests
    draft-1     the first coordinator draft: Consult, Register; the coordinator sends Ping, Stop and Start
    draft-2     the detailed design: ClusterMetadata, RegisterConsumer, CommitOffset; the coordinator sends
                Ping, StopFetcher and StartFetcher
    draft-2-in-0.8  the same messages after the headers of Kafka 0.8, as section 13 of that design plans it
    draft-3     the new consumer's draft: Ping, Metadata, JoinGroup, all of them sent by the consumer
    zookeeper   ZooKeeper's client protocol, in which the consumers of Kafka 0.7 and 0.8 coordinate

Strategy: one `Call` for each request: who sends it, what answers it, and how the answer is recognised. A
`Grammar` is the calls of a dialect with the type ids of one conversation: it encodes frames, and decodes a
body once it is known which message it is.

Rules: no document gives the drafts' type ids. Ours are reconstructed (`Call.reconstructed`): 1001 and up,
2001 and up, 3001 and up, far from Kafka's api keys and from any error code; the caller may set others.
ZooKeeper's are its own (`ZooDefs.OpCode`), an event's is its xid. Positions of errors count from the byte
after the size prefix. Source: Kafka's wiki and implementation pages, and Apache ZooKeeper.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from coordwire.codec import Message
from coordwire.codec.interpreter.decoder import Mark, Reader
from coordwire.connection.dialect import Dialect, Direction, Side
from coordwire.dialects.frames import Call, DraftFrame, HeadedCall, KnownBy, ZooKeeperCall
from coordwire.errors import DecodeError, Deviation, EncodeError, counted
from coordwire.messages import find_message


def _calls(prefix: str, *rows: tuple[str, int, Side, str | None, KnownBy, bool]) -> tuple[Call, ...]:
    return tuple(
        Call(
            name, type_id, asker, f"{prefix}{name}Request", prefix + answer if answer else None, known_by,
            auto_commit, reconstructed=type_id > 1000,
        )
        for name, type_id, asker, answer, known_by, auto_commit in rows
    )  # fmt: skip


def _operations(*rows: tuple[str, int]) -> tuple[Call, ...]:
    return tuple(
        ZooKeeperCall(
            name, number, "client", f"ZooKeeper{name}Request", f"ZooKeeper{name}Response", "number",
            reconstructed=False,
        )
        for name, number in rows
    )  # fmt: skip


def _headed(calls: tuple[Call, ...]) -> tuple[Call, ...]:
    """Calls with the headers of Kafka 0.8."""
    return tuple(
        HeadedCall(
            call.name, call.type_id, call.asker, call.request, call.response, "number", call.auto_commit,
            call.reconstructed,
        )
        for call in calls
    )  # fmt: skip


CREATE_SESSION, NOTIFICATION = -10, -1
"""The type ids of ZooKeeper's calls that the wire gives none: connecting, and its events."""

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
        ("CommitOffset", 2006, "client", "CommitOffsetResponse", "order", False),
    ),
    Dialect.DRAFT_3: _calls(
        "Draft3",
        ("Ping", 3001, "client", "PingResponse", "number", False),
        ("Metadata", 3002, "client", "MetadataResponse", "number", False),
        ("JoinGroup", 3003, "client", "JoinGroupResponse", "number", False),
    ),
    Dialect.ZOOKEEPER: (
        *_operations(
            ("CreateSession", CREATE_SESSION), ("CloseSession", -11), ("Create", 1), ("Delete", 2),
            ("Exists", 3), ("GetData", 4), ("SetData", 5), ("GetAcl", 6), ("SetAcl", 7), ("GetChildren", 8),
            ("Sync", 9), ("Ping", 11), ("GetChildren2", 12), ("Check", 13), ("Multi", 14), ("Create2", 15),
            ("Reconfig", 16), ("CheckWatches", 17), ("RemoveWatches", 18), ("CreateContainer", 19),
            ("CreateTtl", 21), ("MultiRead", 22), ("Auth", 100), ("SetWatches", 101), ("Sasl", 102),
            ("GetEphemerals", 103), ("GetAllChildrenNumber", 104), ("SetWatches2", 105), ("AddWatch", 106),
            ("WhoAmI", 107),
        ),
        ZooKeeperCall(
            "WatcherEvent", NOTIFICATION, "server", "ZooKeeperWatcherEvent", None, reconstructed=False
        ),
    ),
}  # fmt: skip
CALLS[Dialect.DRAFT_2_IN_08] = _headed(CALLS[Dialect.DRAFT_2])
"""The calls of each dialect, with the type ids that apply unless the caller sets others."""


NUMBER_FIELDS = {Dialect.DRAFT_3: "correlation_id", Dialect.ZOOKEEPER: "xid"}
"""The field with the number by which an answer names its request, in the dialects that have one."""


def find_call(name: object, dialect: str | None = None, *, type_id: int | None = None) -> Call | None:
    """The call of this name, in upper or lower case, of one dialect or of any. type_id: its own, if not the
    reconstructed one."""
    for candidate, calls in CALLS.items():
        for call in calls:
            if dialect in (None, candidate) and isinstance(name, str) and name.lower() == call.name.lower():
                return call if type_id is None else replace(call, type_id=type_id)
    return None


class Grammar:
    """A dialect's calls with the type ids of one conversation.

    type_ids: by the call's name ("Ping"), those that differ from the defaults. Raises `ValueError` for a name
    that the dialect does not have, an id beyond int16, or an id given to two calls, and for any of ZooKeeper.

    number_field: the field with the number by which an answer names its request; None if there is none.

    >>> from coordwire.dialects import Grammar
    >>> grammar = Grammar("draft-3")
    >>> grammar
    <Grammar draft-3: 3 calls>
    """

    def __init__(self, dialect: Dialect | str, type_ids: Mapping[str, int] | None = None) -> None:
        self.dialect = Dialect(dialect)
        if self.dialect is Dialect.KAFKA:
            raise ValueError("expected a dialect other than Kafka's, which has fixed api keys")
        ids = dict(type_ids or {})
        if ids and self.dialect is Dialect.ZOOKEEPER:
            raise ValueError("the types of ZooKeeper's requests are fixed")
        self.number_field = NUMBER_FIELDS.get(self.dialect)
        self.calls = tuple(replace(call, type_id=ids.pop(call.name, call.type_id),
                                   reconstructed=call.reconstructed and call.name not in (type_ids or {}))
                           for call in CALLS[self.dialect])  # fmt: skip
        if ids:
            raise ValueError(f"{self.dialect} has no {', '.join(sorted(ids))}")
        self.by_id = {call.type_id: call for call in self.calls}
        if len(self.by_id) < len(self.calls):
            raise ValueError("expected a type id for each request, got one for two requests")
        for number in self.by_id:
            if not -0x8000 <= number < 0x8000:
                raise ValueError(f"expected a type id of int16, got {number}")
        self._by_message: dict[str, tuple[Call, Direction]] = {}
        for call in self.calls:
            self._by_message[call.request] = call, "request"
            if call.response is not None:
                self._by_message[call.response] = call, "response"

    def __repr__(self) -> str:
        return f"<Grammar {self.dialect}: {counted(len(self.calls), 'call')}>"

    def find(self, message: object) -> tuple[Call, Direction]:
        """The call that a message belongs to, and its direction.

        Raises `EncodeError` for a message of another dialect.
        """
        name = type(message).__name__
        call_and_direction = self._by_message.get(name)
        if call_and_direction is None or not isinstance(message, find_message(name)):
            raise EncodeError(f"{name} is not a message of {self.dialect}")
        return call_and_direction

    def encode(
        self, message: Message, *, version: int = 0, correlation_id: int = 0, client_id: str | None = None
    ) -> bytes:
        """A message's frame, size prefix and header included. Raises `EncodeError`."""
        call, direction = self.find(message)
        return call.encode(
            message, direction, version=version, correlation_id=correlation_id, client_id=client_id
        )

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
        """The frame of a body (the bytes after the size prefix) that is known to be this message.

        marks: collects the position of every part. Raises `DecodeError`, with the message as far as it was
        read in `partial`.
        """
        cls = call.message(direction)
        deviations: list[Deviation] = []
        at = 0
        header: Message | None = None
        if (kind := call.header(direction)) is not None:
            reader = Reader(body, 0, kind[1], marks=marks)
            try:
                header = reader.message(kind[0], to_end=False)
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
            size=len(body), deviations=deviations, header=header,
        )  # fmt: skip
