"""A capture's streams, from its bytes: the whole chain at once.

Strategy: where the native half runs, it walks over the packets that are ordinary (`PacketWalk`), and the
chain of generators reads the others; without it the chain reads all. Rules: as in
`coordwire.capture.tcp.reassembly`; the time of an event is never beyond what was read so far.
"""

from __future__ import annotations

__all__ = ["read_stream_lists"]

from collections.abc import Iterator

from coordwire._speedups import native
from coordwire.capture.flows import CaptureCounts, Chunk, Event
from coordwire.capture.formats.pcap import read_packets
from coordwire.capture.formats.source import Readable, Walks
from coordwire.capture.tcp.link import read_segments
from coordwire.capture.tcp.reassembly import FlowTable, HalfStream, reassemble


def read_stream_lists(
    stream: Readable, *, head: bytes = b"", counts: CaptureCounts | None = None
) -> Iterator[Event | list[Chunk]]:
    """The events of all TCP streams in a pcap or pcapng, in the order of the capture; chunks of which
    many were read at once are in a list.

    head: bytes that were read from the stream already (to tell its format); counts: kept while the events are
    drawn, with the resolution of the time stamps. Raises `Malformed` for what is not a capture.
    """
    counts = CaptureCounts() if counts is None else counts
    table = FlowTable(counts)
    walks = None if native is None else Walks(native.PacketWalk, table.halves, HalfStream, Chunk)
    packets = read_packets(stream, head=head, counts=counts, walks=walks)
    return reassemble(read_segments(packets, counts), table)
