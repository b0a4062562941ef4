"""The interface of a protocol other than Kafka's.

Strategy: `Connection` takes such a protocol as an object, and asks it for the endpoint of its side, so that
this package knows none of them. `coordwire.dialects` has those that there are.
"""

from __future__ import annotations

from enum import StrEnum
from typing import TYPE_CHECKING, Literal, Protocol

from coordwire.codec import Message

if TYPE_CHECKING:  # captures take names from here, and need no connection
    from coordwire.connection.endpoint import Endpoint

KAFKA = "kafka"
"""The name of Kafka's own protocol, where others have theirs."""

Direction = Literal["request", "response"]
Side = Literal["client", "server"]


class Dialect(StrEnum):
    """The protocol of a connection."""

    KAFKA = KAFKA
    KAFKA_07 = "kafka-0.7"
    DRAFT_1 = "draft-1"
    DRAFT_2 = "draft-2"
    DRAFT_2_IN_08 = "draft-2-in-0.8"
    DRAFT_3 = "draft-3"
    ZOOKEEPER = "zookeeper"


class AnyDialect(Protocol):
    """A protocol that a connection uses instead of Kafka's."""

    def endpoint(self, side: Side, *, client_id: str | None = None, strict: bool) -> Endpoint:
        """A new connection's endpoint. client_id: what a client's requests carry, where they carry one."""


class DialectCall(Protocol):
    """A request of a dialect, and its answer. type_id: what the wire calls it; response: the name of the
    answer's class, None without an answer."""

    @property
    def name(self) -> str: ...
    @property
    def type_id(self) -> int: ...
    @property
    def response(self) -> str | None: ...

    def header(self, direction: Direction) -> tuple[type[Message], int] | None:
        """The class of what precedes the message, and its version, if anything does."""

    def message(self, direction: Direction) -> type[Message]:
        """The class of the request or of the response. Raises `KeyError` without a response."""

    def encode(
        self,
        message: Message,
        direction: Direction,
        *,
        version: int = 0,
        correlation_id: int = 0,
        client_id: str | None = None,
    ) -> bytes:
        """The frame of its request or response, size prefix included. correlation_id, client_id: those of a
        header that has them. Raises `EncodeError`."""
