"""Formats detected by their first bytes."""

from __future__ import annotations

import struct
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from coordwire.capture.flows import Chunk
from coordwire.capture.input_format import sniff
from tests.capture.streams import read_streams

from . import build

CAPTURE = Path(__file__).parent.parent / "data" / "captures" / "confluent__rdmock__group-range.pcap"
HEARTBEAT = bytes.fromhex("0000001a 000c0000 00000001 0002 6d65 0005 67726f7570 00000001 00016d")


def sized(body: bytes) -> bytes:
    return struct.pack(">i", len(body)) + body


def batch(base: int = 0, count: int = 1) -> bytes:
    head = struct.pack(">iBIhiqqqhii", 0, 2, 0, 0, count - 1, 0, 0, -1, -1, -1, count)
    return struct.pack(">qi", base, len(head) + 20) + head + bytes(20)


@pytest.mark.parametrize(
    ("head", "name"),
    [
        (b"", "empty"),
        (build.pcap([]), "pcap"),
        (build.pcap([], order=">", nano=True), "pcap"),
        (build.pcapng([]), "pcapng"),
        (HEARTBEAT.hex().encode(), "hex"),
        (b"# a comment\n00 01", "hex"),
        (HEARTBEAT, "frames"),
        (HEARTBEAT * 3, "frames"),
        (HEARTBEAT * 3 + HEARTBEAT[:20], "frames"),
        (sized(b"\0\0\0\1" + bytes(6)) * 2, "frames"),
        (batch(), "segment"),
        (batch(1 << 40, 7) * 2, "segment"),
        (batch()[:61], "segment"),
        (
            bytes.fromhex("00000000000000000000001ee862ef840000000000026b300000000e76c3a47264652d302d373773"),
            "segment",
        ),
        (b'{"frame": 1}\n', None),
        (b"hello", None),
        (b"\0", None),
        (bytes(4096), None),
        (b"\x1f\x8b\x08\x00" + bytes(60), None),
        (b"\xff" * 100, None),
    ],
)
def test_formats(head: bytes, name: str | None) -> None:
    assert sniff(head) == name


def test_real_streams_are_frames() -> None:
    flows: dict[object, bytes] = {}
    with CAPTURE.open("rb") as capture:
        for event in read_streams(capture):
            if isinstance(event, Chunk):
                flows[event.flow] = flows.get(event.flow, b"") + event.data
    assert len(flows) > 20
    assert {sniff(data) for data in flows.values()} == {"frames"}


@given(st.binary(max_size=200))
def test_any_head(head: bytes) -> None:
    assert (sniff(head) == "empty") == (not head)
