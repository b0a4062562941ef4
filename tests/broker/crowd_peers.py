"""Connections that a process of its own holds; see `crowd.py`.

Usage: python -m tests.broker.crowd_peers PORT COUNT

Each asks for the metadata once; "there COUNT" is printed when all were answered. After a line on stdin every
tenth asks again, which is printed too; at the end of stdin all are closed.
"""

from __future__ import annotations

import socket
import sys

from coordwire import Connection
from coordwire.messages import MetadataRequest

SOURCES = 8
"""From so many loopback addresses."""


def answered(connected: socket.socket) -> None:
    """Read one whole answer."""
    remaining = 4
    for part in ("length", "body"):
        data = b""
        while len(data) < remaining:
            got = connected.recv(remaining - len(data))
            if not got:
                raise ConnectionError(f"closed within an answer's {part}")
            data += got
        remaining = int.from_bytes(data[:4])


def main(port: int, count: int) -> None:
    frame = Connection("client", client_id="crowd").send(MetadataRequest(topics=None), version=12)
    peers = []
    for number in range(count):
        peer = socket.socket()
        peer.bind((f"127.0.0.{2 + number % SOURCES}", 0))
        peer.connect(("127.0.0.1", port))
        peer.sendall(frame)
        peers.append(peer)
    for peer in peers:
        answered(peer)
    print("there", len(peers), flush=True)
    for _ in sys.stdin:
        again = peers[::10]
        for peer in again:
            peer.sendall(frame)
        for peer in again:
            answered(peer)
        print("again", len(again), flush=True)


if __name__ == "__main__":
    main(int(sys.argv[1]), int(sys.argv[2]))
