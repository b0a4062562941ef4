"""Recorded traffic: from a capture's bytes to the streams inside it, and to entries, one a frame.

    formats/                pcap, pcapng and hex text, also compressed: the input to packets or frames
    tcp/                    packets to TCP segments, and these to the streams of each connection
    input_format.py         which format an input has
    flows.py                what a capture yields: flows, their bytes and gaps, times
    framing.py              a stream to whole frames, and back into step after a loss
    client_search.py        connections of which it is not known yet whether they speak Kafka; other protocols
    connections.py          the streams of a capture to entries; frame_walks.py: the native walk over ordinary
                            frames
    conversation.py         requests and their responses
    pending_requests.py     the requests that wait for their responses, within a budget
    entries.py              what a reader gets: a frame, or an unreadable range
    frame_decoding.py       frames to their entries' content; lazy entries: decoded at the first question
    reader.py               any input to entries
    rotation.py             the files of a rotated capture: as one stream, and requests answered in the next
    rotated_names.py        which files these are, and their order
    answer_errors.py        the error codes of a response, by name, and which are routine
    body_text.py            a frame's body in JSON, straight from its bytes
    partial_messages.py     a message that was refused half-way, in JSON
    jsonlines.py            entries as JSON lines; plain_lines.py: those of plain frames;
                            printable.py: texts that every output can carry
    redaction/              what must not be shown

Strategy: a chain of generators, each of which draws on the one before it. Rules: the input is read once,
forwards, and may be a pipe. Nothing is left out silently: unreadable bytes are an `UnreadableRange` with
its position in the file, bytes that a stream lacks are a `Gap` with its position. Only a file that is not a
capture at all raises, and only `coordwire.errors.DecodeError`.

The most that a reader holds of one capture; what doesn't fit is given up and reported:

    pending_requests.BUDGET  64 MB   requests that wait, decoded; beyond: without message, then forgotten
    conversation.LATEST   10,000  requests that wait, of a connection
    client_search.WINDOW  256 KB  of a connection that may be Kafka's; PIECES: 16,384 chunks
    client_search.UNDECIDED 64 MB   of all such connections
    connections.OPEN_FRAMES 256 MB  of frames that aren't whole; one frame's budget, 100 MB, if that is more
    connections.EARLY     64 MB   of responses whose request may come late; EARLY_BYTES: 8 MB of a connection
    reassembly.HELD       64 MB   of segments after gaps; WINDOW: 8 MB, SEGMENTS: 4,096 of a flow
    reassembly.FLOWS      32,768  connections, and as many without data
    compressed            128 MB  of a dictionary or window, as the file declares
    pcap, pcapng          16 MB   of a packet or block, and half as much again while searching
    hexdump               1 frame of a dump, and two of its lines
    rotation.MOST_WAITING 10,000  requests, and another `pending_requests.BUDGET`

Fragments of IP packets aren't put together, so none are held.
"""

from typing import TYPE_CHECKING

from coordwire._lazy import exports
from coordwire.errors import UnreadableRange

if TYPE_CHECKING:
    from coordwire.capture.entries import Entry, FrameEntry
    from coordwire.capture.input_format import InputFormat
    from coordwire.capture.reader import Capture
    from coordwire.capture.rotation import rejoined

_LAZY = {
    "Capture": "reader",
    "Entry": "entries",
    "FrameEntry": "entries",
    "InputFormat": "input_format",
    "rejoined": "rotation",
}

__all__ = [
    "Capture",
    "Entry",
    "FrameEntry",
    "InputFormat",
    "UnreadableRange",
    "rejoined",
]

__getattr__, __dir__ = exports(__name__, __all__, _LAZY)
