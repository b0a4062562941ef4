"""`LinkSide`: one socket of a tapped connection, which gives frames and takes bytes.

Strategy: an asyncio protocol whose bytes become whole frames, which its link takes one by one, in turns with
all other sides of the tap. Rules: a side reads only while its link can take its frames and, for a large
frame, while there is memory; what the other side has not read stops it. A large frame that its link passes by
its first bytes goes on in the pieces in which it comes, and needs no memory. A frame's size is checked
against the budget before anything is kept for it. When the socket ends, the frames that came before pass
first.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from enum import Enum
from typing import Protocol, cast

from coordwire.broker.connections.connection_memory import ConnectionMemory
from coordwire.broker.connections.turns import REQUEST, Turns
from coordwire.codec.message import Buffer
from coordwire.connection.receive_buffer import ReceiveBuffer
from coordwire.errors import DecodeError

UNSENT = 1 << 18
"""The most bytes that a socket may have to send while the other one is read."""

_GATHERED = 1 << 16
"""Bytes that are written at once."""

_TLS_WRITE = 1 << 18
"""The most bytes given to TLS at once: it encrypts all of them before it counts what is unsent."""

_LARGE = 1 << 16
"""The bytes of a frame from which on it may go on in pieces."""

_HEAD = 1 << 12
"""The first bytes of such a frame, which say whether it does."""

PATIENCE = 5.0
"""Seconds in which a peer must take what was written before the connection ends."""


class _State(Enum):
    """What a side waits for. OPEN: bytes. QUEUED: its turn. RUNNING: nothing. BLOCKED: its link or the other
    socket. STARVED: memory for a large frame. CLOSED: its end."""

    OPEN, QUEUED, RUNNING, BLOCKED, STARVED, CLOSED = range(6)


class LinkSideHub(Protocol):
    """The common part of all sides of a tap."""

    @property
    def turns(self) -> Turns: ...

    @property
    def memory(self) -> ConnectionMemory: ...

    @property
    def read_buffer(self) -> memoryview: ...

    def call_later(self, seconds: float, action: Callable[[], None]) -> asyncio.TimerHandle:
        """Run something later."""


class SidedLink(Protocol):
    """Where a side's frames go."""

    def connected(self, side: LinkSide) -> bool:
        """The side's socket is there; whether it may stay."""

    def can_take(self, side: LinkSide) -> bool:
        """Whether the link can take the side's next frame now; if not, `LinkSide.go_on` is called later."""

    def take(self, side: LinkSide, wire: bytes) -> None:
        """A frame, by its bytes, size prefix included."""

    def passes(self, side: LinkSide, head: bytes) -> bool:
        """Whether a large frame passes as it comes, by its first bytes; `take_piece` gets all of it then."""

    def take_piece(self, side: LinkSide, piece: bytes, *, is_last: bool) -> None:
        """The next bytes of a frame that passes."""

    def drained(self, side: LinkSide) -> None:
        """The side's peer has read what was written."""

    def turn_ended(self) -> None:
        """The frames of a turn have passed."""

    def peer_ended(self, side: LinkSide) -> None:
        """The side's peer sends nothing more; `ended` follows once its frames have passed."""

    def ended(self, side: LinkSide, remainder: bytes) -> None:
        """The side's peer has closed; nothing follows these bytes."""

    def failed(self, side: LinkSide, reason: str) -> None:
        """The side's bytes cannot be split into frames, or its peer holds memory that others wait for."""


class LinkSide(asyncio.BufferedProtocol):
    """One socket. held_bytes: bytes of memory that it is charged for."""

    def __init__(self, hub: LinkSideHub, link: SidedLink) -> None:
        self._hub = hub
        self._link = link
        self._buffer = ReceiveBuffer()
        self.transport: asyncio.Transport | None = None
        self._state = _State.OPEN
        self._ending: asyncio.TimerHandle | None = None
        self._reading = True
        self._is_tls = False
        self.is_full = False
        """Whether the peer has to take what was written before more comes."""
        self.was_reset = False
        """Whether the peer ended it by an RST."""
        self._granted = 0
        self._passing = 0
        """The bytes that are still to come of a frame that passes in pieces."""
        self._received = self._written = 0
        self._out: list[bytes] = []
        self._gathered = 0
        self.held_bytes = 0

    # --- the transport's side ---

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self.transport = connected = cast("asyncio.Transport", transport)
        connected.set_write_buffer_limits(high=UNSENT, low=UNSENT // 4)
        self._is_tls = connected.get_extra_info("sslcontext") is not None
        if not self._link.connected(self):
            self.abort()

    def get_buffer(self, sizehint: int) -> memoryview:
        buffer, size = self._hub.read_buffer, self._hub.memory.read_size
        return buffer if self._granted or size >= len(buffer) else buffer[:size]

    def buffer_updated(self, nbytes: int) -> None:
        self.data_received(self._hub.read_buffer[:nbytes])

    def data_received(self, data: Buffer) -> None:
        """Take the frames that came for one turn, unless earlier bytes wait for theirs. data: bytes that the
        caller may overwrite later."""
        if self._state is _State.CLOSED:
            return
        self._received += len(data)
        self._buffer.append(data)
        if self._state is not _State.OPEN:
            self._pause()
            self._account()
        elif self._hub.turns.may_work:
            self._hub.turns.count_work(self._work(self._hub.turns.share))
        else:
            self._queue()

    def eof_received(self) -> bool:
        self._end_of_stream()
        return not self._is_tls  # what was received may still have to pass

    def connection_lost(self, exc: Exception | None) -> None:
        self.transport = None
        self.is_full = False
        self.was_reset = isinstance(exc, ConnectionResetError)
        if self._ending is not None:
            self._ending.cancel()
        self._end_of_stream()

    def pause_writing(self) -> None:
        self.is_full = True
        self._account()

    def resume_writing(self) -> None:
        self.is_full = False
        self._hub.memory.take(self)
        self._account()
        self._link.drained(self)

    def _end_of_stream(self) -> None:
        if self._state is _State.CLOSED or self._buffer.ended:
            return
        self._buffer.append(b"")
        self._link.peer_ended(self)
        if self._state in (_State.OPEN, _State.STARVED):
            self._hub.memory.forget(self)
            self._queue()

    # --- frames ---

    def go_on(self) -> None:
        """Take further frames, if the link can take them."""
        if self._state is _State.BLOCKED and self._link.can_take(self):
            self._queue()

    def take_turn(self, share: int) -> int:
        return self._work(share) if self._state is _State.QUEUED else 0

    def _queue(self) -> None:
        self._state = _State.QUEUED
        self._hub.turns.add(self)
        self._account()

    def _work(self, share: int) -> int:
        """Give frames to the link until the share is used up, or the link cannot take more; the work."""
        self._state = _State.RUNNING
        spent = 0
        while True:
            if not self._link.can_take(self):
                self._state = _State.BLOCKED  # reading pauses once more comes, so that an end is noticed
                break
            try:
                size = self._take_piece() if self._passing else self._take_frame()
            except DecodeError as error:
                self._link.failed(self, f"{error}")
                break
            if not size:
                if self._buffer.ended:
                    self._link.ended(self, self._buffer.close())
                elif self._begin_to_pass():
                    continue
                else:
                    self._wait_for_data()
                break
            spent += REQUEST + size
            if self._state is not _State.RUNNING:  # the connection has ended
                break
            if spent >= share:
                self._queue()
                break
        self._link.turn_ended()
        self._account()
        return spent or REQUEST

    def _take_frame(self) -> int:
        """Give the link a frame, if one is whole; its bytes. Raises `DecodeError`."""
        wire = self._buffer.next_wire()
        if wire is None:
            return 0
        if self._granted:
            self._granted = 0
            self._hub.memory.finish(self)
        self._link.take(self, wire)
        return len(wire)

    def _take_piece(self) -> int:
        """Give the link what came of the frame that passes; its bytes."""
        piece = self._buffer.next_piece(self._passing)
        self._passing -= len(piece)
        if piece:
            self._link.take_piece(self, piece, is_last=not self._passing)
        return len(piece)

    @property
    def is_passing(self) -> bool:
        """Whether a frame has passed in part."""
        return self._passing > 0

    def _begin_to_pass(self) -> bool:
        """Ask the link whether the large frame that has begun passes; once, as it gets a grant otherwise."""
        if self._passing or self._granted or len(self._buffer) < _HEAD:
            return False
        size = self._buffer.announced
        if size > _LARGE and self._link.passes(self, self._buffer.head(_HEAD)):
            self._passing = size
        return self.is_passing

    def _wait_for_data(self) -> None:
        """Read on, unless a large frame has begun and there is no memory for it."""
        granted: int | None = self._granted
        if not granted and not self._passing:
            granted = self._hub.memory.admit(self, self._buffer.announced, len(self._buffer))
        if granted is None:
            self._state = _State.STARVED
            self._pause()
        else:
            self._granted = granted
            self._read_on()

    def _read_on(self) -> None:
        self._state = _State.OPEN
        if not self._reading and self.transport is not None:
            self._reading = True
            self.transport.resume_reading()

    def _pause(self) -> None:
        if self._reading and self.transport is not None and not self._buffer.ended:
            self._reading = False
            self.transport.pause_reading()

    # --- memory ---

    @property
    def progress(self) -> int:
        return self._received + self._written - self._unsent

    @property
    def _unsent(self) -> int:
        return 0 if self.transport is None else self.transport.get_write_buffer_size()

    def granted(self, size: int) -> None:
        self._granted = size
        self._read_on()

    def evict(self, reason: str) -> None:
        self._link.failed(self, reason)

    def _account(self) -> None:
        """Report the bytes that are held."""
        if self._state is _State.CLOSED:
            return
        memory, size = self._hub.memory, max(self._buffer.buffered, self._granted)
        if self.is_full:
            memory.hold(self, size + self._unsent)
            memory.leave(self)
        elif size != self.held_bytes:
            memory.hold(self, size)

    # --- writing ---

    def send(self, *pieces: bytes) -> None:
        """Send bytes, at the latest when `flush` is called."""
        self._out.extend(pieces)
        self._gathered += sum(map(len, pieces))
        if self._gathered > _GATHERED:
            self.flush()

    def flush(self) -> None:
        """Write what was gathered."""
        if not self._out:
            return
        out, self._out, self._gathered = self._out, [], 0
        transport = self.transport
        if transport is None or transport.is_closing():
            return
        data = out[0] if len(out) == 1 else b"".join(out)
        self._written += len(data)
        if self._is_tls and len(data) > _TLS_WRITE:
            view = memoryview(data)
            for at in range(0, len(data), _TLS_WRITE):
                transport.write(view[at : at + _TLS_WRITE])
        else:
            transport.write(data)

    # --- the end ---

    def close(self) -> None:
        """End after what was written, for which the peer has some time."""
        self.flush()
        self._forget()
        if self.transport is not None:
            self.transport.close()
            self._ending = self._hub.call_later(PATIENCE, self.abort)

    def abort(self) -> None:
        """End at once; what was not sent is lost."""
        self._forget()
        if self.transport is not None:
            self.transport.abort()

    def _forget(self) -> None:
        if self._state is not _State.CLOSED:
            self._state = _State.CLOSED
            self._buffer.close()
            self._hub.memory.forget(self)
