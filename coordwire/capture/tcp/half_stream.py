"""One direction of a TCP connection while it is reassembled: how far it is, and what is held after a gap.

Rules: sequence numbers are compared modulo 2**32; pieces that are held never overlap and stay in order; no
run of joined pieces is walked twice.
"""

from __future__ import annotations

__all__ = ["MASK", "HalfStream", "Piece", "distance", "hole_end", "piece_start"]

from bisect import bisect_left
from typing import NamedTuple

from coordwire.capture.flows import Flow

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
    them. weight: what they count. patience: packets for which an acknowledged hole has been waiting; middle:
    the beginning wasn't seen.
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
        "weight",
    )
    peer: HalfStream

    def __init__(self, flow: Flow, key: bytes, time_ns: int) -> None:
        self.flow = flow
        self.key = key
        self.last_ns = time_ns
        self.next = self.edge = self.isn = self.acknowledged = self.fin = -1
        self.offset = self.patience = self.weight = self.acknowledged_ns = self.last_packet = 0
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
