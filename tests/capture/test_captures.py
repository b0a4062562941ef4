"""Real captures: the streams that another reassembler found in them, byte for byte."""

from __future__ import annotations

import io
import json
import struct
from hashlib import sha256
from pathlib import Path

import pytest

from coordwire.capture.flows import Chunk, Closed, Flow, Gap, Opened
from coordwire.capture.formats.pcap import read_packets
from coordwire.capture.formats.source import Packet
from coordwire.errors import UnreadableRange
from tests.capture.streams import read_streams

from . import build

DATA = Path(__file__).parent.parent / "data" / "captures"
STREAMS: dict[str, list[tuple[int, int, int, str]]] = json.loads((DATA / "streams.json").read_text())


def gather(capture: bytes) -> tuple[dict[Flow, bytes], int]:
    """The bytes of every flow, and how many bytes were missing."""
    flows: dict[Flow, bytes] = {}
    missing = 0
    for event in read_streams(io.BytesIO(capture)):
        if isinstance(event, Chunk):
            flows[event.flow] = flows.get(event.flow, b"") + event.data
        elif isinstance(event, Gap):
            missing += event.length
    return flows, missing


def frames(data: bytes) -> int:
    at = count = 0
    while at < len(data):
        at += 4 + struct.unpack_from(">i", data, at)[0]
        count += 1
    assert at == len(data)
    return count


@pytest.fixture(params=sorted(STREAMS))
def name(request: pytest.FixtureRequest) -> str:
    return str(request.param)


def test_streams(name: str) -> None:
    flows, missing = gather((DATA / name).read_bytes())
    results = [(f.destination.port, len(b), frames(b), sha256(b).hexdigest()) for f, b in flows.items()]
    assert results == [tuple(row) for row in STREAMS[name]]
    assert missing == 0


def test_events(name: str) -> None:
    events = list(read_streams(io.BytesIO((DATA / name).read_bytes())))
    opened = [event for event in events if isinstance(event, Opened)]
    closed = [closed for closed in events if isinstance(closed, Closed)]
    assert {entry.flow for entry in opened} == {entry.flow for entry in closed}
    assert len(closed) == len(opened)
    assert not [event for event in events if isinstance(event, Gap | UnreadableRange)]


def test_twice_each_and_in_another_wrapping(name: str) -> None:
    capture = (DATA / name).read_bytes()
    packets = [packet for packet in read_packets(io.BytesIO(capture)) if isinstance(packet, Packet)]
    whole = gather(capture)
    assert gather(build.pcap((p.time_ns, p.data) for p in packets for _ in range(2))) == whole
    assert gather(build.pcapng(p.data for p in packets)) == whole
    cooked = (bytes(14) + p.data[12:] for p in packets)
    assert gather(build.pcap(cooked, order=">", nano=True, link=113)) == whole


def test_any_cut_ends_well(name: str) -> None:
    capture = (DATA / name).read_bytes()
    whole, _ = gather(capture)
    for cut in range(24, len(capture), len(capture) // 40):
        flows, _ = gather(capture[:cut])
        assert all(whole[flow].startswith(data) for flow, data in flows.items())
