"""`python -m tests.bench.recorded_traffic OUT.pcap [--megabytes N]` repeats the recordings in `tests/data`.

Strategy: the packets of what real clients and brokers said are copied as they are, recording after recording,
each time with other addresses and later times, so that all connections are new. Rules: recordings of
Ethernet, IPv4 packets; the same bytes for the same size.
"""

from __future__ import annotations

import argparse
import io
import lzma
import struct
from collections.abc import Iterator
from pathlib import Path

from coordwire.capture.formats.pcap import read_packets
from coordwire.capture.formats.source import Packet
from coordwire.capture.tcp.link import find_network

DATA = Path(__file__).parents[1] / "data"
FOLDERS = "groups", "stories", "captures", "outages"
ETHERNET = 1
START_NS = 1_790_000_000_000_000_000
PAUSE_NS = 1_000_000
_HEAD = struct.Struct("<4I")


def recordings() -> list[list[tuple[int, bytes, int]]]:
    """Of each recording its packets: times in ns after its first, bytes, and where the IPv4 header begins."""
    packet_lists = []
    for folder in FOLDERS:
        for path in sorted((DATA / folder).glob("*.pcap*")):
            data = path.read_bytes()
            stream = io.BytesIO(lzma.decompress(data) if path.suffix == ".xz" else data)
            packet_lists.append([
                (packet.time_ns, packet.data, network)
                for packet in read_packets(stream)
                if isinstance(packet, Packet) and packet.link == ETHERNET
                for network in [find_network(ETHERNET, packet.data)]
                if network > 0 and packet.data[network] >> 4 == 4
            ])  # fmt: skip
    return [
        [(time_ns - recording[0][0], data, network) for time_ns, data, network in recording]
        for recording in packet_lists
        if recording
    ]


def packets() -> Iterator[bytes]:
    """Endless packets as a pcap has them."""
    time_ns, number = START_NS, 0
    repeated = recordings()
    while True:
        for recording in repeated:
            number += 1
            for after_ns, data, network in recording:
                packet = bytearray(data)
                for end in (network + 12, network + 16):
                    packet[end + 1 : end + 3] = number.to_bytes(2, "big")
                seconds, nanoseconds = divmod(time_ns + after_ns, 1_000_000_000)
                yield _HEAD.pack(seconds, nanoseconds, len(packet), len(packet)) + packet
            time_ns += after_ns + PAUSE_NS


def make(path: Path, size: int) -> None:
    """Write a capture of at least `size` bytes."""
    with open(path, "wb") as file:
        file.write(struct.pack("<IHHiIII", 0xA1B23C4D, 2, 4, 0, 0, 1 << 18, ETHERNET))
        for packet in packets():
            if file.write(packet) and file.tell() >= size:
                return


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("out", type=Path)
    parser.add_argument("--megabytes", type=int, default=64)
    options = parser.parse_args()
    make(options.out, options.megabytes << 20)


if __name__ == "__main__":
    main()
