"""Recorded traffic: from a capture's bytes to the streams inside it.

Strategy: a chain of generators, each drawing on the one below it. `source` (a window on the input) <
`pcap`, `pcapng` (packets) < `link` (TCP segments) < `tcp` (streams) < `streams` (all of it at once);
`hexdump` reads text, `sniff` tells the formats apart, `model` holds what they yield. `reader` makes entries
of it all, `jsonlines` writes them, with `partial` (a message refused half-way) and `secrets` (what isn't
shown).

Rules: the input is read once, forwards, and may be a pipe. Nothing is left out silently: what can't be read
is an `Unreadable` with its position in the file, what is missing from a stream a `Lost` with its offset.
Only a file that is no capture at all raises, and only `coordwire.errors.DecodeError`.

What a reader may hold, for one capture; what doesn't fit is given up and reported:

    waiting.BUDGET        64 MB   requests that wait, decoded; beyond: without message, then forgotten
    exchange.LATEST       10,000  requests that wait, of a connection
    undecided.WINDOW      256 KB  of a connection that may be Kafka's; PIECES: 16,384 chunks
    undecided.UNDECIDED   64 MB   of all such connections
    connections.BEGUN     256 MB  of frames that aren't whole, or one frame's budget (100 MB) if that is more
    connections.EARLY     64 MB   of answers whose request may come late; EARLY_BYTES: 8 MB of a connection
    tcp.HELD              64 MB   of segments after holes; WINDOW: 8 MB, SEGMENTS: 4,096 of a flow
    tcp.FLOWS             32,768  connections
    pcap, pcapng          16 MB   of a packet or block, and half as much again while searching
    hexdump               1 frame of a dump, and two of its lines
    rotated.MOST_WAITING  10,000  requests, and another `waiting.BUDGET`

Fragments of IP packets aren't put together, so none are held.
"""

from typing import TYPE_CHECKING

from coordwire.lazy import exports

if TYPE_CHECKING:
    from coordwire.capture.detect import InputFormat
    from coordwire.capture.entries import Entry, FrameEntry, Stretch
    from coordwire.capture.reader import Capture
    from coordwire.capture.rotated import rejoined

_LAZY = {
    "Capture": "reader",
    "Entry": "entries",
    "FrameEntry": "entries",
    "InputFormat": "detect",
    "Stretch": "entries",
    "rejoined": "rotated",
}

__all__ = [
    "Capture",
    "Entry",
    "FrameEntry",
    "InputFormat",
    "Stretch",
    "rejoined",
]

__getattr__, __dir__ = exports(__name__, __all__, _LAZY)
