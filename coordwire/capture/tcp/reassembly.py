"""From TCP segments to streams: reassembly.

Strategy: a `HalfStream` for each direction knows the next sequence number and its offset in the stream. A
segment that comes exactly there is passed on at once; all others take the careful way: trimmed to what is
new (first seen wins), held sorted until the hole before them is filled. Sequence numbers are compared
modulo 2**32.

Rules:
- A connection begins with a SYN, or with the first bytes seen of it (then offset 0 is where the capture
  came in). A SYN with another number on the same ports, or bytes beyond any window (`AHEAD`, `BACK`),
  begin a new one. A single zero byte begins none: it is a keep-alive probe.
- A hole is given up as `Gap` when the other side has acknowledged it, and since then `PATIENCE` more packets
  of the connection and `PATIENCE_NS` have passed, or `MOST_PATIENCE` packets (the receiver had it, the
  capture hasn't; some captures are out of order by milliseconds); when more than the window's bytes or
  segments wait after it; when more than `HELD` waits in all flows and its own has waited longest; when its
  flow ends.
- Pieces that a `HalfStream` holds never overlap and stay in order; no run of joined pieces is walked twice.
- At a flow's end, bytes that the other side has acknowledged and the capture never saw are `Gap` too, unless
  the capture ends with the packet that acknowledges them: it may have been captured just before its data.
- FIN ends its own direction, when the stream has got there. So does RST: what the other side sent meanwhile
  was on the wire and still comes out.
- What a snap length cut off is `Gap` at once. Bytes before offset 0 are `UnreadableRange`.
- Connections beyond `FLOWS` are forgotten, longest silent first; late bytes then begin a new one.
- Connections are numbered as Wireshark's tcp.stream does (`Flow.stream`): by the first packet between two
  ends, whatever it holds, and again by a SYN that begins another connection on the same ports.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections import OrderedDict
from collections.abc import Generator, Iterable, Iterator
from typing import NamedTuple, overload

from coordwire._speedups.rows import row_maker
from coordwire.capture.flows import (
    CaptureCounts,
    Chunk,
    Closed,
    Ending,
    Event,
    Flow,
    Gap,
    Opened,
)
from coordwire.capture.tcp.link import ACK, FIN, RST, SYN, TcpSegment, endpoints, reverse_key
from coordwire.errors import UnreadableRange

MASK = 0xFFFFFFFF


class Piece(NamedTuple):
    """Bytes held from `start` to `end` of the stream; data is None for what a snap length cut off."""

    start: int
    end: int
    data: bytes | None
    time_ns: int
    packet: int


class HalfStream:
    """One direction.

    next: the next sequence number, or -1 while not started or when closed; edge: the same, kept when closed.
    offset: of that in the stream; waiting: pieces or a FIN are held after a hole. acknowledged: the highest
    that this side has acknowledged, or -1; acknowledged_ns: when it did first. fin: the FIN's offset, or -1;
    last_packet: the number of the packet with the FIN or RST. pieces: what is held, in its order, that don't
    overlap; joined: where a piece ends and the next begins, mapped to where that one ends, or the run of
    them. weight: what they count. patience: packets for which an acknowledged hole has been waiting, since
    waiting_ns; middle: the beginning wasn't seen.
    """

    __slots__ = (
        "acknowledged",
        "acknowledged_ns",
        "closed",
        "edge",
        "fin",
        "flow",
        "isn",
        "joined",
        "key",
        "last_ns",
        "last_packet",
        "middle",
        "next",
        "offset",
        "opened",
        "patience",
        "peer",
        "pieces",
        "started",
        "waiting",
        "waiting_ns",
        "weight",
    )
    peer: HalfStream

    def __init__(self, flow: Flow, key: bytes, time_ns: int) -> None:
        self.flow = flow
        self.key = key
        self.last_ns = time_ns
        self.next = self.edge = self.isn = self.acknowledged = self.fin = -1
        self.offset = self.patience = self.weight = self.acknowledged_ns = self.last_packet = 0
        self.waiting_ns = 0
        self.started = self.closed = self.waiting = self.middle = self.opened = False
        self.pieces: list[Piece] = []
        self.joined: dict[int, int] = {}

    def start(self, sequence: int) -> None:
        self.started = True
        self.next = self.edge = sequence

    def advance(self, end: int) -> None:
        self.next = self.edge = (self.edge + end - self.offset) & MASK
        self.offset = end
        self.patience = 0

    def insert(self, at: int, piece: Piece) -> None:
        """Hold a piece, at its place among the others."""
        pieces = self.pieces
        if at and pieces[at - 1].end == piece.start:
            self.joined[piece.start] = piece.end
        if at < len(pieces) and pieces[at].start == piece.end:
            self.joined[piece.end] = pieces[at].end
        pieces.insert(at, piece)

    def after(self, at: int) -> tuple[int, int]:
        """Where the run of joined pieces ends that the piece at this index is in, and the index after it. The
        way is remembered, so that no run is walked twice."""
        joined, end = self.joined, self.pieces[at].end
        way = []
        while end in joined:
            way.append(end)
            end = joined[end]
        for place in way:
            joined[place] = end
        return end, bisect_left(self.pieces, end, at, key=piece_start)

    def unseen(self) -> int:
        """How far beyond `offset` the other side has acknowledged."""
        return distance(self.peer.acknowledged, self.edge) if self.peer.acknowledged >= 0 else 0


def distance(sequence: int, since: int) -> int:
    """Signed, modulo 2**32."""
    return ((sequence - since + 0x80000000) & MASK) - 0x80000000


def piece_start(piece: Piece) -> int:
    return piece.start


def hole_end(half: HalfStream) -> int:
    return half.pieces[0].start if half.pieces else half.fin


WINDOW = 8 << 20  # bytes held after a hole, for one flow
SEGMENTS = 4096  # segments held after a hole
HELD = 64 << 20  # bytes held for all flows together
PIECE = 256  # what a held segment counts on top of its bytes
FLOWS = 32_768  # connections that are remembered
PATIENCE = 3  # packets for which an acknowledged hole may still be filled
PATIENCE_NS = 50_000_000  # and how long it may
MOST_PATIENCE = 1024  # packets for which it may, whatever their times
AHEAD = 1 << 28  # farther ahead than any window, and than a loss in a capture is likely to be
BACK = 16 << 20  # farther back than any retransmission

CUT = "cut off by the capture's snap length"
MISSED = "never captured, though the receiver acknowledged it"
FULL = "never captured, and too much data waits after it"
ENDED = "never captured before the flow ended"

_flow, _opened, _gap, _closed = row_maker(Flow), row_maker(Opened), row_maker(Gap), row_maker(Closed)


@overload
def reassemble(
    segments: Iterable[TcpSegment | UnreadableRange], table: FlowTable | None = None, *, ends: bool = True
) -> Iterator[Event]: ...
@overload
def reassemble(
    segments: Iterable[TcpSegment | UnreadableRange | list[Chunk]],
    table: FlowTable | None = None,
    *,
    ends: bool = True,
) -> Iterator[Event | list[Chunk]]: ...
def reassemble(
    segments: Iterable[TcpSegment | UnreadableRange | list[Chunk]],
    table: FlowTable | None = None,
    *,
    ends: bool = True,
) -> Iterator[Event | list[Chunk]]:
    """The streams of the segments, event by event in the order of the capture. Chunks that were made already
    are of connections in this table, and are passed on. ends: whether the input ends with the segments, and
    its flows with it; else the table goes on with the next ones."""
    table = FlowTable() if table is None else table
    find = table.halves.get
    for segment in segments:
        if type(segment) is list or type(segment) is UnreadableRange:
            yield segment
            continue
        assert isinstance(segment, TcpSegment)
        time_ns, _, key, sequence, acknowledged, flags, payload, length, packet = segment
        half = find(key)
        if (
            half is not None
            and sequence == half.next
            and flags & 0x17 == ACK
            and len(payload) == length
            and not half.waiting
            and not half.peer.waiting
        ):
            known = half.acknowledged
            if acknowledged != known and (known < 0 or (acknowledged - known) & MASK < 0x80000000):
                half.acknowledged = acknowledged
                half.acknowledged_ns = time_ns
            half.last_ns = time_ns
            if length:
                offset = half.offset
                half.offset = offset + length
                half.next = half.edge = (sequence + length) & MASK
                yield Chunk(half.flow, time_ns, offset, payload, packet)
        else:
            yield from table.receive(segment, half)
    if ends:
        yield from table.end()


class FlowTable:
    """All connections, by the key of either direction.

    window: bytes held after a hole of one flow; held: of all flows; flows: connections remembered.
    """

    def __init__(
        self,
        counts: CaptureCounts | None = None,
        *,
        window: int = WINDOW,
        budget: int = HELD,
        flows: int = FLOWS,
    ) -> None:
        self.halves: dict[bytes, HalfStream] = {}
        self._counts = CaptureCounts() if counts is None else counts
        self._window = window
        self._most_held = budget
        self._held_bytes = 0
        self._stalled: OrderedDict[HalfStream, None] = OrderedDict()
        self._flows = flows
        self._connections = 0
        self._streams = 0
        self._idle: OrderedDict[bytes, int] = (
            OrderedDict()
        )  # streams without data, by their first packet's key

    def receive(self, segment: TcpSegment, half: HalfStream | None) -> Iterator[Event]:
        """Any segment, the careful way."""
        time_ns, _, key, sequence, acknowledged, flags, payload, length, packet = segment
        if flags & SYN:
            if half is None or self._is_new(half, segment):
                half = yield from self._open(key, time_ns, half, flags)
            if not half.closed and (not half.opened or half.isn != sequence):
                yield from self._greet(half, segment)
            sequence = (sequence + 1) & MASK
        elif length and not flags & RST:
            probe = length == 1 and payload in (b"\0", b"")
            if half is None or self._is_foreign(half, sequence, probe):
                if probe:
                    self._note(key, half)
                    return
                half = yield from self._open(key, time_ns, half, flags)
            if not half.started and not half.closed and not probe:
                half.middle = True
                half.start(sequence)
        if half is None:
            self._note(key, half)
            return
        half.last_ns = time_ns
        if flags & (ACK | RST) == ACK:
            known = half.acknowledged
            if known < 0 or (acknowledged - known) & MASK < 0x80000000:
                half.acknowledged_ns = half.acknowledged_ns if acknowledged == known else time_ns
                half.acknowledged = acknowledged
        if half.closed:
            self._counts.repeated += bool(length)
        elif flags & RST:
            yield from self._reset(half, sequence, time_ns, packet)
        elif half.started:
            if length:
                yield from self._take(half, segment, sequence)
            if flags & FIN and half.fin < 0:
                fin = half.offset + distance((sequence + length) & MASK, half.edge)
                if half.offset <= fin <= half.offset + AHEAD:
                    half.fin = fin
                    half.last_packet = packet
                    half.waiting = fin > half.offset or half.waiting
            if half.fin >= 0:
                yield from self._settle(half, time_ns)
        for side in (half, half.peer):
            if side.waiting:
                yield from self._lose_patience(side, time_ns)

    def end(self) -> Iterator[Event]:
        """The input is at its end, and so is every flow."""
        for half in list(self.halves.values()):
            yield from self._close(half, "end", half.last_ns)
        self.halves.clear()

    # --- beginnings

    @staticmethod
    def _is_new(half: HalfStream, segment: TcpSegment) -> bool:
        """Whether a SYN begins another connection than the one known on its ports."""
        peer = half.peer
        if half.isn == segment.sequence:
            return False
        is_ours = peer.isn >= 0 and (peer.isn + 1) & MASK == segment.acknowledged
        if half.closed:
            return True
        if half.isn >= 0:  # a server that answers with SYN cookies may answer twice, with another number
            return not (segment.flags & ACK and is_ours) or bool(half.offset or half.pieces)
        if half.started:  # bytes that were captured before the SYN that they came after
            return not 0 <= distance(half.edge, segment.sequence + 1) - half.offset < BACK
        if segment.flags & ACK:
            return peer.isn >= 0 and not is_ours
        return peer.isn < 0 or peer.offset > 0  # if not: both sides open at once

    @staticmethod
    def _is_foreign(half: HalfStream, sequence: int, probe: bool) -> bool:
        """Whether bytes can't be of the connection known on their ports."""
        if not half.started:
            return half.closed
        ahead = distance(sequence, half.edge)
        if half.closed:
            return not probe and not -BACK <= ahead < 0
        return not -BACK <= ahead <= AHEAD

    def _open(
        self, key: bytes, time_ns: int, old: HalfStream | None, flags: int
    ) -> Generator[Event, None, HalfStream]:
        """A new connection, in place of an old one on the same ports."""
        if old is not None:
            yield from self._close(old, "reused", time_ns)
            yield from self._close(old.peer, "reused", time_ns)
        elif len(self.halves) >= 2 * self._flows:
            yield from self._forget()
        source, destination = endpoints(key)
        back, number = reverse_key(key), self._connections
        stream = self._stream(key, back, old, flags)
        half = HalfStream(_flow(source, destination, number, stream), key, time_ns)
        peer = HalfStream(_flow(destination, source, number, stream), back, time_ns)
        half.peer, peer.peer = peer, half
        self._connections += 1
        self.halves[back] = peer
        self.halves[key] = half  # last, as the keys are the same where a port talks to itself
        return half

    def _stream(self, key: bytes, reverse: bytes, old: HalfStream | None, flags: int) -> int:
        """The number of a connection that begins, perhaps in place of an old one. reverse: the key of its
        other direction."""
        former, back = self._idle.pop(key, None), self._idle.pop(reverse, None)
        if flags & SYN:  # after packets of its own direction it begins another
            known = back if old is None and former is None else None
        else:
            known = old.flow.stream if old is not None else back if former is None else former
        if known is None:
            known, self._streams = self._streams, self._streams + 1
        return known

    def _note(self, key: bytes, half: HalfStream | None) -> None:
        """Number a connection of which only packets without data were seen so far."""
        if half is None and key not in self._idle and reverse_key(key) not in self._idle:
            self._idle[key] = self._streams
            self._streams += 1
            if len(self._idle) > self._flows:
                self._idle.popitem(last=False)

    @staticmethod
    def _greet(half: HalfStream, segment: TcpSegment) -> Iterator[Event]:
        """Take in a SYN."""
        peer = half.peer
        if not half.started or half.isn >= 0:
            half.start((segment.sequence + 1) & MASK)
        half.isn = segment.sequence
        if not half.opened:
            half.opened = True
            server = half.flow.source if segment.flags & ACK else half.flow.destination
            yield _opened(half.flow, segment.time_ns, server)
        if segment.flags & ACK and not peer.started and not peer.closed:  # its own SYN wasn't captured
            peer.isn = (segment.acknowledged - 1) & MASK
            peer.start(segment.acknowledged)

    # --- bytes

    def _take(self, half: HalfStream, segment: TcpSegment, sequence: int) -> Iterator[Event]:
        """Take in a segment's bytes, the first of which has that sequence number."""
        time_ns, position, _, _, _, _, payload, length, packet = segment
        start = half.offset + distance(sequence, half.edge)
        end = start + length
        if start < 0 and half.middle and length > 1:
            reason = f"bytes of {half.flow} from before the first captured one"
            place = packet or None
            yield UnreadableRange(
                position, min(-start, len(payload)), reason, first_packet=place, packet=place,
                tcp_stream=half.flow.stream,
            )  # fmt: skip
        if end <= half.offset:
            self._counts.repeated += 1
            return
        if start < half.offset:
            payload = payload[half.offset - start :]
            start = half.offset
        if start == half.offset and not half.pieces:
            stop = start + len(payload)
            if payload:
                half.advance(stop)
                yield Chunk(half.flow, time_ns, start, payload, packet)
            if stop < end:
                half.advance(end)
                yield _gap(half.flow, time_ns, stop, end - stop, CUT)
        else:
            self._hold(half, start, payload, end, segment)
            yield from self._drain(half, time_ns)
            while len(half.pieces) > SEGMENTS or half.weight > self._window:
                yield from self._give_up(half, time_ns, FULL)
            while self._held_bytes > self._most_held:
                longest = next(iter(self._stalled))
                yield from self._give_up(longest, time_ns, FULL)
                if longest is not half:
                    yield from self._settle(longest, time_ns)
        half.waiting = bool(half.pieces) or half.fin > half.offset

    def _hold(self, half: HalfStream, start: int, data: bytes, end: int, segment: TcpSegment) -> None:
        """Keep what of `start` to `end` isn't held yet; what data doesn't cover was cut off."""
        pieces = half.pieces
        origin, covered = start, start + len(data)
        at = bisect_right(pieces, start, key=piece_start)
        if at and pieces[at - 1].end > start:
            start, at = half.after(at - 1)
        if start >= end:
            self._counts.repeated += 1
        while start < end:
            stop = end if at == len(pieces) else min(end, pieces[at].start)
            if start < covered:
                stop = min(stop, covered)
            if stop > start:
                piece = data[start - origin : stop - origin] if start < covered else None
                half.insert(at, Piece(start, stop, piece, segment.time_ns, segment.packet))
                at += 1
                self._weigh(half, PIECE + len(piece or b""))
                start = stop
            if at < len(pieces) and pieces[at].start <= start:
                start, at = half.after(at)

    def _drain(self, half: HalfStream, time_ns: int | None) -> Iterator[Event]:
        """Pass on what is held without a hole before it, at the time given or at its own."""
        pieces = half.pieces
        ready = 0
        while ready < len(pieces) and pieces[ready].start == half.offset:
            start, end, data, own_ns, packet = pieces[ready]
            ready += 1
            half.advance(end)
            half.joined.pop(start, None)
            self._weigh(half, -PIECE - len(data or b""))
            if data is None:
                yield _gap(half.flow, own_ns if time_ns is None else time_ns, start, end - start, CUT)
            else:
                yield Chunk(half.flow, own_ns if time_ns is None else time_ns, start, data, packet)
        if ready:
            del pieces[:ready]

    def _weigh(self, half: HalfStream, size: int) -> None:
        """Count what is held; which flows hold anything, in the order in which they began to."""
        if not half.weight:
            self._stalled[half] = None
        half.weight += size
        self._held_bytes += size
        if not half.weight:
            del self._stalled[half]

    # --- holes and ends

    def _give_up(self, half: HalfStream, time_ns: int, reason: str) -> Iterator[Event]:
        """Pass over the first hole."""
        start = half.offset
        end = hole_end(half)
        half.advance(end)
        own_ns = half.pieces[0].time_ns if half.pieces else time_ns
        yield _gap(half.flow, own_ns, start, end - start, reason)
        yield from self._drain(half, None)
        half.waiting = bool(half.pieces) or half.fin > half.offset

    def _lose_patience(self, half: HalfStream, time_ns: int) -> Iterator[Event]:
        """Give up holes that the other side has acknowledged, after a while."""
        if half.unseen() < hole_end(half) - half.offset:
            return
        if not half.patience:
            half.waiting_ns = time_ns
        half.patience += 1
        is_late = time_ns - half.waiting_ns >= PATIENCE_NS or half.patience > MOST_PATIENCE
        if half.patience > PATIENCE and is_late:
            while half.waiting and half.unseen() >= hole_end(half) - half.offset:
                yield from self._give_up(half, time_ns, MISSED)
            yield from self._settle(half, time_ns)

    def _settle(self, half: HalfStream, time_ns: int) -> Iterator[Event]:
        """Close a half that has come to its FIN."""
        if half.fin >= 0 and not half.waiting and not half.closed:
            yield from self._close(half, "fin", time_ns)

    def _reset(self, half: HalfStream, sequence: int, time_ns: int, packet: int) -> Iterator[Event]:
        if half.started:
            ahead = distance(sequence, half.edge)
            if not -BACK <= ahead <= BACK:
                return  # of another connection
            if half.fin < 0 and ahead > 0:
                half.fin = half.offset + ahead  # as far as the sender had come
                half.waiting = True
        half.started = True
        half.last_packet = packet
        yield from self._close(half, "rst", time_ns)

    def _close(self, half: HalfStream, ending: Ending, time_ns: int) -> Iterator[Event]:
        if half.closed:
            return
        while half.waiting:
            yield from self._give_up(half, time_ns, ENDED)
        if half.started and half.edge >= 0:
            unseen = half.unseen()
            # One byte more may be a FIN that wasn't captured.
            if ending != "fin" and 1 < unseen <= AHEAD and not (ending == "end" and self._may_come(half)):
                start = half.offset
                half.advance(start + unseen)
                yield _gap(half.flow, time_ns, start, unseen, MISSED)
            if ending == "fin":
                half.edge = (half.edge + 1) & MASK
        half.closed = True
        half.next = -1
        if half.started:
            yield _closed(half.flow, time_ns, ending, half.last_packet if ending in ("fin", "rst") else 0)

    @staticmethod
    def _may_come(half: HalfStream) -> bool:
        """Whether bytes that were acknowledged may come in a packet after the capture's end: the packet that
        acknowledges them is the connection's last, and captures are out of order by a few packets."""
        return max(half.last_ns, half.peer.last_ns) <= half.peer.acknowledged_ns

    def _forget(self) -> Iterator[Event]:
        """Make room: forget an eighth of the connections, the closed and the longest silent first."""
        pairs = {id(half): half for half in self.halves.values() if id(half.peer) >= id(half)}
        order = sorted(
            pairs.values(),
            key=lambda half: (not (half.closed and half.peer.closed), max(half.last_ns, half.peer.last_ns)),
        )
        for half in order[: max(1, self._flows // 8)]:
            for side in (half, half.peer):
                yield from self._close(side, "forgotten", side.last_ns)
                self.halves.pop(side.key, None)
