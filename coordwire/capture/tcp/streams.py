"""A capture's streams, from its bytes: the whole chain at once.

Rules: as in `coordwire.capture.tcp.reassembly`; the time of an event is never beyond what was read so far.
"""

from __future__ import annotations

__all__ = ["read_streams"]

from collections.abc import Iterator

from coordwire.capture.formats.pcap import read_packets
from coordwire.capture.formats.source import Readable
from coordwire.capture.model import CaptureCounts, Event
from coordwire.capture.tcp.link import read_segments
from coordwire.capture.tcp.reassembly import reassemble


def read_streams(
    stream: Readable, *, head: bytes = b"", tally: CaptureCounts | None = None
) -> Iterator[Event]:
    """The events of all TCP streams in a pcap or pcapng, in the order of the capture.

    head: bytes that were read from the stream already (to tell its format); tally: counts, and the resolution
    of the time stamps, kept while the events are drawn. Raises `Malformed` for what is not a capture.
    """
    tally = CaptureCounts() if tally is None else tally
    packets = read_packets(stream, head=head, tally=tally)
    return reassemble(read_segments(packets, tally), tally)
