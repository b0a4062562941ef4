"""A connection's protocol is found however its first bytes are cut into segments."""

from __future__ import annotations

import io
import struct
from itertools import pairwise

import pytest

from coordwire import encode_request
from coordwire.capture import Capture, FrameEntry
from coordwire.dialects import AlternativeDialect
from coordwire.errors import UnreadableRange
from coordwire.messages import HeartbeatRequest, ProduceRequest
from coordwire.messages.zookeeper_sessions import ZooKeeperCreateSessionRequest

from . import build

CONNECT = ZooKeeperCreateSessionRequest(time_out=6000, passwd=bytes(16)).encode(version=1)
OPENINGS = {
    "zookeeper": struct.pack(">i", len(CONNECT)) + CONNECT,
    "kafka": encode_request(HeartbeatRequest(group_id="g"), version=0, correlation_id=1, client_id="c"),
    # whose API key and version are the four zeros with which a connect request begins
    "kafka, produce": encode_request(ProduceRequest(acks=1), version=0, correlation_id=1, client_id="c" * 60),
}


def frames(opening: bytes, cuts: tuple[int, ...], **options: object) -> list[FrameEntry | UnreadableRange]:
    edges = [0, *cuts, len(opening)]
    parts = [opening[begin:end] for begin, end in pairwise(edges)]
    packets = [
        build.packet(seq=99, flags=build.SYN),
        build.packet(back=True, seq=499, ack=100, flags=build.SYN | build.ACK),
        *(build.packet(part, seq=100 + at, ack=500) for at, part in zip(edges, parts, strict=False)),
        build.packet(seq=100 + len(opening), ack=500, flags=build.FIN | build.ACK),
    ]
    capture = Capture(io.BytesIO(build.pcap(packets)), "cut", alternative=AlternativeDialect(), **options)  # type: ignore[arg-type]
    return [entry for entry in capture.entries() if isinstance(entry, FrameEntry | UnreadableRange)]


@pytest.mark.parametrize("ports", [(), (9092,)])
@pytest.mark.parametrize("name", OPENINGS)
def test_each_cut_of_an_opening(name: str, ports: tuple[int, ...]) -> None:
    opening = OPENINGS[name]
    ways = [(), *((at,) for at in range(1, len(opening))), tuple(range(1, len(opening)))]
    for cuts in ways:
        (entry,) = frames(opening, cuts, ports=ports)
        assert isinstance(entry, FrameEntry)
        assert (entry.dialect, entry.error) == (name.partition(",")[0], None), cuts
        assert entry.body == opening[4:]


@pytest.mark.parametrize("name", OPENINGS)
def test_an_opening_that_ends_is_reported_where_its_port_was_named(name: str) -> None:
    """Each byte is in a frame or a range, though the connection ends before its protocol is known."""
    opening = OPENINGS[name]
    for length in range(1, len(opening)):
        (entry,) = frames(opening[:length], (), ports=(9092,))
        assert isinstance(entry, UnreadableRange)
        assert entry.length == length
