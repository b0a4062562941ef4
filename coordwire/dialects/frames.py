"""The types of dialects other than Kafka's: a call, and a received frame.

Strategy: types only; `grammar` has the calls of each dialect and the bytes of their frames.
"""

from __future__ import annotations

import struct
from dataclasses import dataclass, field
from typing import Generic, Literal, TypeAlias

from coordwire.codec import Message
from coordwire.codec.message import M_co
from coordwire.connection.dialect import Dialect, Direction, Side
from coordwire.errors import Deviation, OutOfRange
from coordwire.messages import RequestHeader, ResponseHeader, find_message

Header: TypeAlias = tuple[type[Message], int]
"""The class of what precedes a message, and its version."""

KnownBy = Literal["order", "type", "number"]

_SIZE = struct.Struct(">i")
_TYPE = struct.Struct(">h")


@dataclass(frozen=True, slots=True)
class Call:
    """One request of a dialect and its answer.

    asker: who sends it; "server" is the broker or coordinator. request, response: the names of the classes; a
    response of None: there is none. known_by: what links an answer to its request: the order of the requests,
    the type id that it repeats, or its correlation id. auto_commit: whether the answer has version 1 where
    the consumer registered with auto_commit, else 0. reconstructed: whether the type id is our own choice.
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

    def header(self, direction: Direction) -> Header | None:
        """What precedes the message, if anything does."""
        has_type = direction == "request" or self.answer_typed
        return (find_message("RequestTypeHeader"), 0) if has_type else None

    def message(self, direction: Direction) -> type[Message]:
        """The class of the request or of the response. Raises `KeyError` without a response."""
        name = self.request if direction == "request" else self.response
        if name is None:
            raise KeyError((self.name, direction))
        return find_message(name)

    def encode(
        self,
        message: Message,
        direction: Direction,
        *,
        version: int = 0,
        correlation_id: int = 0,
        client_id: str | None = None,
    ) -> bytes:
        """The frame of its request or response, size prefix and header included. correlation_id, client_id:
        those of a header that has them. Raises `EncodeError`."""
        head = self._head(direction, version, correlation_id, client_id)
        body = message.encode(version=version)
        size = len(head) + len(body)
        if size > 0x7FFF_FFFF:
            raise OutOfRange(f"a frame of {size} bytes is too long for its size prefix")
        return b"".join((_SIZE.pack(size), head, body))

    def _head(self, direction: Direction, version: int, correlation_id: int, client_id: str | None) -> bytes:
        return _TYPE.pack(self.type_id) if direction == "request" or self.answer_typed else b""


@dataclass(frozen=True, slots=True)
class ZooKeeperCall(Call):
    """One request of ZooKeeper and its answer, whose messages begin with the header's fields; its type is not
    before them. The version of an answer is 1 where a record is after the header."""

    def header(self, direction: Direction) -> Header | None:
        return None

    def _head(self, direction: Direction, version: int, correlation_id: int, client_id: str | None) -> bytes:
        return b""

    def versions(self, direction: Direction) -> range:
        """The versions that its request or response has."""
        return self.message(direction).versions


@dataclass(frozen=True, slots=True)
class HeadedCall(Call):
    """One request and its answer with the headers of Kafka 0.8: the request's version, correlation id and
    client id are on the wire, and the answer repeats the correlation id."""

    def header(self, direction: Direction) -> Header | None:
        if direction == "request":
            return find_message("RequestHeader"), 1
        return find_message("ResponseHeader"), 0

    def _head(self, direction: Direction, version: int, correlation_id: int, client_id: str | None) -> bytes:
        if direction == "response":
            return ResponseHeader(correlation_id=correlation_id).encode(version=0)
        return RequestHeader(
            request_api_key=self.type_id, request_api_version=version, correlation_id=correlation_id,
            client_id=client_id,
        ).encode(version=1)  # fmt: skip


def opposite(side: Side) -> Side:
    """The opposite side."""
    return "server" if side == "client" else "client"


@dataclass(slots=True, kw_only=True)
class DraftFrame(Generic[M_co]):
    """A received request or response of a dialect other than Kafka's; `size` counts its bytes after the
    prefix.

    version: of the message's layout; on the wire in the header of draft-2-in-0.8's requests alone.
    correlation_id: the header's, in draft-3 the message's own, elsewhere the request's place among its side's
    requests on this connection, from 0. header: what precedes the message, if anything does.
    """

    dialect: Dialect
    call: Call
    direction: Direction
    message: M_co
    version: int
    size: int
    correlation_id: int = -1
    deviations: list[Deviation] = field(default_factory=list)
    header: Message | None = None

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
        in_header: str | None = getattr(self.header, "client_id", None)
        return getattr(self.message, "client_id", None) if in_header is None else in_header
