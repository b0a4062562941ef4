"""The entries of recorded traffic: one for each frame, and one for each range that couldn't be read.

Rules: entries come in the order of each frame's last byte; every byte of a Kafka flow is in exactly one of
them; positions in a frame count from after its size prefix, those of an `UnreadableRange` from the start of
its stream, or of the file where it has no flow.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Literal

from coordwire._display import RichDisplay
from coordwire.capture.flows import TcpConnection
from coordwire.codec import Message
from coordwire.connection.dialect import KAFKA, DialectCall, Direction
from coordwire.errors import DecodeError, Deviation, UnreadableRange, counted
from coordwire.messages.headers import RequestHeader, ResponseHeader
from coordwire.versions import api_name, omits_client

if TYPE_CHECKING:  # what is withheld is found from entries
    from coordwire.capture.redaction.entry_secrets import Withheld


@dataclass(slots=True, kw_only=True, repr=False)
class FrameEntry(RichDisplay):
    """A whole frame, decoded as far as it can be.

    capture: the input's name; number: of the frame in it, from 1; flow: which direction of which connection,
    "" where the input knows none; time_ns: of its last byte, None where the input knows no time.
    api_key and api_version: the request's, None for a response whose request was not seen, and for a bare
    SASL token (`token`). body: the bytes after the size prefix. message: what was decoded, whole if `error`
    is None, else as far as it went. request: for a response, the entry of its request.
    released: bytes of the body that weren't kept; they still count in `size`. Only a `request` has any, and
    then no body, header and message: too much waited for its answer (`coordwire.capture.pending_requests`).
    mechanism: of SASL's messages and tokens, the mechanism that a SaslHandshake before them named, if it was
    seen.
    dialect: what is spoken; in other dialects than Kafka's api_key is the type id, the version that of the
    message's layout, `call` the row that describes it, and no header exists.
    client_id: the client's, also where only an earlier request of the connection has it (request header v3);
    "" for a client that gave none there.
    text: what `coordwire.capture.body_text` has found, if it was asked; hidden: `withheld`, likewise.
    packet, first_packet: the packets that hold its last and its first byte, counted from 1 in the file as
    Wireshark does; connection: which; all None where the input has no packets.
    """

    capture: str
    number: int
    flow: str
    time_ns: int | None
    direction: Direction
    body: bytes
    api_key: int | None = None
    api_version: int | None = None
    body_version: int | None = None
    correlation_id: int | None = None
    client_id: str | None = None
    header: RequestHeader | ResponseHeader | None = None
    message: Message | None = None
    error: DecodeError | None = None
    deviations: list[Deviation] = field(default_factory=list)
    request: FrameEntry | None = None
    token: bool = False
    mechanism: str | None = None
    dialect: str = KAFKA
    call: DialectCall | None = None
    released: int = 0
    packet: int | None = None
    first_packet: int | None = None
    connection: TcpConnection | None = None
    text: tuple[str | None, int] | None = field(default=None, compare=False, repr=False)
    hidden: Withheld | None = field(default=None, init=False, compare=False, repr=False)

    def __repr__(self) -> str:
        """The frame without its content, in which a secret may be."""
        title = "SASL token" if self.token else f"{self.api_name or self.api_key} v{self.api_version}"
        error = self.error
        refusal = "" if error is None else f", refused at byte {error.position}: {error.reason}"
        return (
            f"<{type(self).__name__} #{self.number} of {self.capture!r}: {title} {self.direction}, "
            f"{counted(self.size, 'byte')}{refusal}>"
        )

    def reduced(self) -> FrameEntry:
        """A copy for the sake of its answer, without body, header and message. The client id of a frame that
        isn't as it should be may be something else, and goes too."""
        is_sound = self.error is None and not self.deviations
        return replace(
            self, body=b"", header=None, message=None, error=None, deviations=[], request=None,
            released=self.size, text=None, client_id=self.client_id if is_sound else None,
        )  # fmt: skip

    @property
    def api_name(self) -> str | None:
        """The name of its API, None if that is unknown."""
        if self.dialect != KAFKA:
            return self.call.name if self.call else None
        return None if self.api_key is None else api_name(self.api_key)

    @property
    def client_is_unknown(self) -> bool:
        """Whether the client's id came with an earlier request of the connection that is not in the input."""
        request = self.request or self
        return (
            request.client_id is None
            and self.dialect == KAFKA
            and omits_client(request.api_key, request.api_version)
        )

    @property
    def size(self) -> int:
        """Bytes after the size prefix."""
        return len(self.body) + self.released

    @property
    def latency_ns(self) -> int | None:
        """From the request's last byte to the response's, in nanoseconds."""
        if self.request is None or self.time_ns is None or self.request.time_ns is None:
            return None
        return self.time_ns - self.request.time_ns


@dataclass(frozen=True, slots=True, kw_only=True)
class ConnectionEnd:
    """A FIN or an RST of one side of a connection that was read.

    capture: the input's name; flow: the direction of the connection's requests, as in a `FrameEntry`; sender:
    who ended it; packet: the number of the packet in the file, None where it isn't known.
    """

    capture: str
    flow: str
    time_ns: int
    sender: Literal["client", "broker"]
    kind: Literal["fin", "rst"]
    packet: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class AnswerHeld:
    """An answer that is held back for a while, as its request may be read yet: its connection is in use.

    capture, flow, packet: as in a `ConnectionEnd`; time_ns: of its last byte.
    """

    capture: str
    flow: str
    time_ns: int
    packet: int | None = None


ConnectionSign = ConnectionEnd | AnswerHeld
"""What a reader learns of connections beside their entries."""

Entry = FrameEntry | UnreadableRange
"""A frame, or bytes that could not be read or that the capture lacks."""
