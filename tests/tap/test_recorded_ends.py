"""How connections end in recorded traffic: by a FIN or an RST of the side that ended them."""

from __future__ import annotations

import io
import socket
import struct
import time

import pytest

from coordwire.broker.harness import Kafka
from coordwire.broker.harness.traffic import Traffic
from coordwire.capture import Capture
from coordwire.capture.entries import ConnectionEnd
from coordwire.capture.formats.pcap import as_pcap
from coordwire.messages import HeartbeatRequest
from tests.tap.still import StillTap
from tests.tap.test_recorded_secrets import requested


def ends(data: bytes) -> list[tuple[str, str]]:
    """Who sent a FIN or an RST, in their order."""
    entries = Capture(io.BytesIO(data), "saved").entries_and_ends()
    return [(entry.sender, entry.kind) for entry in entries if isinstance(entry, ConnectionEnd)]


@pytest.mark.parametrize(
    ("first", "error", "told"),
    [
        ("client", None, [("client", "fin"), ("broker", "fin")]),
        ("client", ConnectionResetError(), [("client", "rst")]),
        ("broker", None, [("broker", "fin"), ("client", "fin")]),
        ("", None, []),  # the tap stops
    ],
)
def test_a_tap_records_who_ended_a_connection(
    first: str, error: Exception | None, told: list[tuple[str, str]]
) -> None:
    traffic = Traffic()
    tap = StillTap(traffic=traffic)
    link, _, _ = tap.linked()
    _, beat = requested(HeartbeatRequest(group_id="g", member_id="m"), 4)
    tap.in_context(link.client.data_received, beat)
    tap.run()
    if first:
        (link.client if first == "client" else link.broker).connection_lost(error)
    tap.run()
    link.abort()
    assert ends(as_pcap(traffic._pieces)) == told


@pytest.mark.parametrize("resets", [False, True])
def test_a_broker_s_capture_has_the_end_of_a_client(resets: bool) -> None:
    with Kafka() as kafka:
        host, _, port = kafka.bootstrap.partition(":")
        with socket.create_connection((host, int(port))) as client:
            client.sendall(requested(HeartbeatRequest(group_id="g", member_id="m"), 4)[1])
            assert client.recv(4096)
            if resets:
                client.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        wanted = [("client", "rst")] if resets else [("client", "fin"), ("broker", "fin")]
        deadline = time.monotonic() + 10
        while not ends(kafka.traffic.pcap()) and time.monotonic() < deadline:
            time.sleep(0.01)
        assert ends(kafka.traffic.pcap()) == wanted
