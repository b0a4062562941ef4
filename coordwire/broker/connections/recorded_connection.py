"""`RecordedConnection`: a connection's bytes as they are recorded, without secrets: captures are shared.

Strategy: bytes are recorded as they pass. Unless secrets are asked for, `BlankedFrames` keeps their lengths:
each frame becomes an entry, as a reader of the capture has it, and `entry_secrets` decides; the fields that
are not shown are overwritten in place, texts by asterisks and bytes by zeros, and so are large numbers beside
them, which are a piece of a secret where a length was damaged. Rules: the part of a frame waits until the
frame is whole, or the connection ends; where no message accounts for a frame's bytes, its size prefix is
kept, and the numbers of its header if these are known; what the others are overwritten by cannot be read as a
message. So sizes and positions stay.
"""

from __future__ import annotations

import struct
from collections.abc import Callable
from typing import Protocol, TypeAlias

from coordwire.capture.conversation import Conversation
from coordwire.capture.entries import FrameEntry
from coordwire.capture.framing import FrameBody
from coordwire.capture.pending_requests import PendingRequests
from coordwire.capture.printable import BOUND
from coordwire.capture.redaction.entry_secrets import Withheld, is_fully_decoded, withheld
from coordwire.capture.redaction.secret_fields import WIDE
from coordwire.connection.receive_buffer import ReceiveBuffer
from coordwire.errors import DecodeError
from coordwire.frames import PREFIX
from coordwire.messages.keys import FACTS
from coordwire.spans import Span, show_body

MOST_REQUESTS = 16 << 20
"""The bytes of requests that wait until their answers are recorded, all connections together."""


ConnectionRecorder: TypeAlias = "Callable[[tuple[str, int], tuple[str, int]], RecordedConnection]"


class Recording(Protocol):
    """A recording of the bytes of connections."""

    def opened(self, client: tuple[str, int], broker: tuple[str, int]) -> int:
        """A connection was made; its number."""

    def add(self, connection: int, data: bytes, *, to_client: bool) -> None:
        """Bytes went over a connection."""

    def ended(self, connection: int, *, to_client: bool, aborted: bool) -> None:
        """A connection is over. to_client: whether the broker ended it; aborted: by an RST."""


def recorder(traffic: Recording, *, show_secrets: bool) -> ConnectionRecorder:
    """What records connections by the addresses of their clients and brokers."""
    waiting = None if show_secrets else PendingRequests(MOST_REQUESTS)
    return lambda client, broker: RecordedConnection(traffic, client, broker, waiting)


class RecordedConnection:
    """A connection. waiting: where requests wait for their answers; None if secrets are recorded too."""

    __slots__ = ("_frames", "_number", "_traffic")

    def __init__(
        self,
        traffic: Recording,
        client: tuple[str, int],
        broker: tuple[str, int],
        waiting: PendingRequests | None,
    ) -> None:
        self._traffic = traffic
        self._number = traffic.opened(client, broker)
        self._frames = None if waiting is None else BlankedFrames(waiting)

    @property
    def needs_frames(self) -> bool:
        """Whether it records whole frames, not the pieces of one."""
        return self._frames is not None

    def add(self, data: bytes, *, to_client: bool) -> None:
        """Record the next bytes of a direction."""
        if self._frames is not None:
            data = self._frames.blank(data, to_client=to_client)
        if data:
            self._traffic.add(self._number, data, to_client=to_client)

    def close(self, *, by_broker: bool | None, aborted: bool = False) -> None:
        """Record the frames that the connection ends in, and its end; nothing follows. by_broker: None where
        only the recording ends; aborted: by an RST."""
        for to_client in (False, True):
            remainder = b"" if self._frames is None else self._frames.close(to_client=to_client)
            if remainder:
                self._traffic.add(self._number, remainder, to_client=to_client)
        if by_broker is not None:
            self._traffic.ended(self._number, to_client=by_broker, aborted=aborted)


_NUMBERS = struct.Struct(">hhi").unpack_from
_REQUEST_HEAD, _RESPONSE_HEAD = PREFIX + 8, PREFIX + 4
"""Bytes of a frame up to its correlation id."""

_FILLER = b"\xff"


class BlankedFrames:
    """One connection. waiting: where its requests wait, with those of others."""

    def __init__(self, waiting: PendingRequests) -> None:
        self._conversation = Conversation("", lambda: 0, waiting=waiting)
        self._buffers = ReceiveBuffer(), ReceiveBuffer()

    def blank(self, data: bytes, *, to_client: bool) -> bytes:
        """What is kept of bytes that come next in a direction, up to the end of the last whole frame; nothing
        after a size that no frame can have."""
        buffer = self._buffers[to_client]
        if buffer.ended:
            return _FILLER * len(data)
        buffer.append(data)
        blanked = []
        try:
            while (wire := buffer.next_wire()) is not None:
                blanked.append(self._frame(wire, to_client=to_client))
        except DecodeError:
            blanked.append(_FILLER * len(buffer.close()))
        return b"".join(blanked)

    def close(self, *, to_client: bool) -> bytes:
        """What is kept of the frame that a direction ends in. No request waits after that."""
        self._conversation.close()
        remainder = self._buffers[to_client].close()
        return remainder[:PREFIX] + _FILLER * (len(remainder) - PREFIX)

    def _frame(self, wire: bytes, *, to_client: bool) -> bytes:
        conversation, body = self._conversation, FrameBody(wire[PREFIX:], 0, None)
        if to_client:
            entry = conversation.lazy_response(body, "") or conversation.response(body, "")
        else:
            entry = conversation.lazy_request(body, "") or conversation.request(body, "")
        hidden = withheld(entry)
        if not hidden.raw:
            return wire
        if hidden.body or not is_fully_decoded(entry):
            head = _head(entry)
            return wire[:head] + _FILLER * (len(wire) - head)
        return _without(entry, hidden, wire)


def _head(entry: FrameEntry) -> int:
    """The bytes at the beginning of a frame that are kept, although nothing else of it is."""
    if entry.token:
        return PREFIX
    if entry.direction == "response":
        return PREFIX if entry.request is None else _RESPONSE_HEAD
    if len(entry.body) < _REQUEST_HEAD - PREFIX:
        return PREFIX
    key, version, correlation_id = _NUMBERS(entry.body)
    facts = FACTS.get(key)
    is_known = facts is not None and facts.first <= version <= facts.last and 0 <= correlation_id <= BOUND
    return _REQUEST_HEAD if is_known else PREFIX


def _without(entry: FrameEntry, hidden: Withheld, wire: bytes) -> bytes:
    """A frame that was read whole, without the fields that are not shown."""
    paths, blanked = frozenset(hidden.paths), bytearray(wire)

    def blank(span: Span) -> None:
        if span.sort == "value" and (
            span.path in paths
            or (hidden.tags and span.path.startswith("tags["))
            or (hidden.client and span.path == "client_id")
            or (paths and span.path != "correlation_id" and _is_wide(span))
        ):
            at = PREFIX + span.position
            blanked[at : at + span.length] = (b"*" if isinstance(span.value, str) else b"\0") * span.length

    answered = (entry.api_key, entry.api_version) if entry.direction == "response" else (None, None)
    show_body(blank, entry.body, *answered, strict=False)
    return bytes(blanked)


def _is_wide(span: Span) -> bool:
    """Whether a number may be four bytes of something else."""
    value = span.value
    return span.kind in WIDE and isinstance(value, int | float) and not -BOUND <= value <= BOUND
