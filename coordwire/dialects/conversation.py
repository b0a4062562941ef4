"""One connection's conversation in a dialect other than Kafka's: either side may ask.

Strategy: as `conversation`, whose methods these are; `Matching` decides what a frame is. Rules: an answer
whose request wasn't seen is read where its type id says what it is; without a type id it stays bytes.
"""

from __future__ import annotations

import struct
from collections.abc import Callable

from coordwire.capture.conversation import LATEST
from coordwire.capture.entries import FrameEntry
from coordwire.capture.flows import TcpConnection
from coordwire.capture.frame_decoding import unquoted, unquoted_deviations
from coordwire.capture.framing import Effort, FrameBody, part_of
from coordwire.capture.pending_requests import AwaitedRequest, PendingRequests
from coordwire.codec import Message
from coordwire.connection.dialect import Direction, Side
from coordwire.dialects.frames import Call
from coordwire.dialects.grammar import Grammar
from coordwire.dialects.matching import Matching, PendingRequest, Reading
from coordwire.dialects.matchings import MATCHINGS
from coordwire.errors import DecodeError
from coordwire.frames import PREFIX
from coordwire.limits import current

_SIZE = struct.Struct(">i").unpack_from
_ERROR = struct.Struct(">h").unpack_from
HEAD = 6
"""Bytes of a size and a type id."""
MAX_ERROR = 100
"""An answer without a type id is looked for after a loss; one with an error code above this is none."""

_SIDES: tuple[Side, ...] = ("client", "server")


class DraftConversation:
    """As `Conversation`. auto_commit: as for `ConnectionDialect`."""

    head = HEAD
    connection: TcpConnection | None = None
    matching: Matching

    def __init__(
        self,
        capture: str,
        number: Callable[[], int],
        grammar: Grammar,
        *,
        auto_commit: bool | None = None,
        strict: bool = False,
        waiting: PendingRequests | None = None,
    ) -> None:
        self.capture = capture
        self.number = number
        self.dialect = grammar.dialect
        self.waiting = PendingRequests() if waiting is None else waiting
        self.matching = MATCHINGS[grammar.dialect](grammar, auto_commit, strict, LATEST, self._remove)

    def request(self, body: FrameBody, flow: str) -> FrameEntry:
        """The entry of a frame from the client, whatever it is."""
        return self._entry(body, flow, "client")

    def response(self, body: FrameBody, flow: str) -> FrameEntry:
        """The entry of a frame from the server, whatever it is."""
        return self._entry(body, flow, "server")

    def lazy_request(self, body: FrameBody, flow: str) -> FrameEntry | None:
        """None: what a frame is shows when it is decoded."""
        return None

    def lazy_response(self, body: FrameBody, flow: str) -> FrameEntry | None:
        """As `lazy_request`."""
        return None

    def either(self, body: FrameBody) -> FrameEntry:
        """The entry of a frame whose sender is unknown: of either side that can have sent it."""
        call = self._call(body.data)
        if call is not None:
            for side in _SIDES:
                if any(
                    self._decodes(body.data, reading) for reading in self.matching.readings(body.data, side)
                ):
                    return self._entry(body, "", side)
            return self._entry(body, "", call.asker)
        return self._entry(body, "", "client" if self.matching.waiting["server"] else "server")

    def _entry(self, body: FrameBody, flow: str, sender: Side) -> FrameEntry:
        match = self.matching.match(body.data, sender)
        reading, frame, error = match.reading, match.frame, match.error
        unknown: Direction = "request" if sender == "client" else "response"
        entry = FrameEntry(
            capture=self.capture,
            number=self.number(),
            flow=flow,
            time_ns=body.time_ns,
            direction=reading.direction if reading else unknown,
            body=body.data,
            dialect=self.dialect,
            error=None if error is None else unquoted(error),
            packet=body.packet,
            first_packet=body.first_packet,
            connection=self.connection,
        )
        if frame is not None:
            entry.call, entry.message = frame.call, frame.message
            entry.deviations = unquoted_deviations(frame.deviations)
            entry.api_version = entry.body_version = frame.version
            entry.client_id = frame.client_id
        elif reading is not None:
            entry.call = reading.call
            entry.api_version = entry.body_version = reading.version
            entry.message = error.partial if error and isinstance(error.partial, Message) else None
        if entry.call is not None:
            entry.api_key = entry.call.type_id
        entry.correlation_id = self.matching.number_of(entry.message)
        if frame is not None and entry.correlation_id is None:
            entry.correlation_id = getattr(frame.header, "correlation_id", None)
        if match.pending is not None:
            if entry.direction == "request":
                self._wait(match.pending, entry)
            elif isinstance(match.pending.context, AwaitedRequest):
                entry.request = match.pending.context.entry
                match.pending.context = None  # each knows the other
        return entry

    def _wait(self, pending: PendingRequest, entry: FrameEntry) -> None:
        """Keep a request for its answer, if there will be one."""
        if pending.call.response is not None:
            pending.context = AwaitedRequest(entry, lambda _: self.matching.drop(pending))
            self.waiting.add(pending.context)

    def _remove(self, pending: PendingRequest) -> None:
        if isinstance(pending.context, AwaitedRequest):
            self.waiting.remove(pending.context)

    def resolve(self) -> DraftConversation:
        """As `Conversation.resolve`."""
        return self

    def close(self) -> None:
        """The connection is over: nothing waits any longer."""
        for queue in self.matching.waiting.values():
            for pending in queue:
                self._remove(pending)

    # --- where frames may begin, and whose they are ---

    def expects(self, body: bytes) -> bool:
        """Whether a frame from the server says something here and now."""
        return next(self.matching.readings(body, "server"), None) is not None

    def opens(self, head: bytes) -> bool | None:
        """As `Conversation.opens`."""
        call = self._call(head[PREFIX:])
        return 2 <= _SIZE(head)[0] <= current().frame and call is not None and call.asker == "client"

    def claims(self, buffer: bytearray, at: int) -> int:
        """Where a whole frame ends that shows who sent it, if one may begin here; else -1."""
        if not any(self._may_begin(buffer, at, side) for side in _SIDES):
            return -1
        return at + PREFIX + int(_SIZE(buffer, at)[0])

    def sender(self, buffer: bytearray, at: int, end: int) -> Side | None:
        """Who sent the frame that is there from `at` to `end`."""
        body = part_of(buffer, at + PREFIX, end)
        for side in _SIDES:
            readings = self._may_begin(buffer, at, side)
            if any(self._decodes(body, reading) for reading in readings):
                return side
        return None

    def fits_request(self, buffer: bytearray, at: int, effort: Effort | None = None) -> bool:
        return self._fits(buffer, at, "client", effort)

    def may_answer(self, buffer: bytearray, at: int, stop: int) -> bool:
        """As `Conversation.may_answer`."""
        return True

    def fits_response(self, buffer: bytearray, at: int, effort: Effort | None = None) -> bool:
        return self._fits(buffer, at, "server", effort)

    def _call(self, body: bytes | bytearray) -> Call | None:
        return self.matching.grammar.by_id.get(_ERROR(body)[0]) if len(body) >= 2 else None

    def _may_begin(self, buffer: bytearray, at: int, sender: Side) -> list[Reading]:
        """What a frame of this side may be that begins here, by its first bytes; nothing if none may."""
        if len(buffer) - at < HEAD:
            return []
        (size,) = _SIZE(buffer, at)
        if not 2 <= size <= current().frame:
            return []
        start = at + PREFIX
        readings = list(self.matching.readings(bytes(buffer[start : start + min(size, 10)]), sender))
        if not readings:
            return []
        if readings[0].direction == "response" and not self._plausible(buffer, start, readings[0]):
            return []
        return readings

    def _fits(self, buffer: bytearray, at: int, sender: Side, effort: Effort | None) -> bool:
        """Whether a frame of this side may begin here; if it is there to its end, it must decode."""
        readings = self._may_begin(buffer, at, sender)
        if not readings:
            return False
        (size,) = _SIZE(buffer, at)
        start = at + PREFIX
        if len(buffer) < start + size:
            return True
        if effort is not None and not effort.spend(size):
            return False
        body = part_of(buffer, start, start + size)
        fits = any(self._decodes(body, reading) for reading in readings)
        if fits and effort is not None:
            effort.succeeded(size)
        return fits

    def _plausible(self, buffer: bytearray, start: int, reading: Reading) -> bool:
        return reading.call.known_by != "order" or -1 <= _ERROR(buffer, start)[0] < MAX_ERROR

    def _decodes(self, body: bytes, reading: Reading) -> bool:
        try:
            self.matching.grammar.decode(body, reading.call, reading.direction, version=reading.version)
        except DecodeError:
            return False
        return True
