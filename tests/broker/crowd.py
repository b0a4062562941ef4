"""`python -m tests.broker.crowd [COUNT]`: many connections, some in bad faith, and one that is served.

Strategy: the broker and the crowd (`crowd_peers.py`, from several loopback addresses) are processes of their
own. Beside the crowd there are clients that ask for megabytes and never read, and peers that announce a large
frame and send it byte by byte. Meanwhile one client produces and asks where the log ends. Rules: the memory
of the broker's process is bounded by what it may hold for each connection; what the good client was
acknowledged is there; the crowd is answered before and after; the broker says nothing on stderr.
"""

from __future__ import annotations

import argparse
import resource
import socket
import subprocess
import sys
import time
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path

from coordwire import Connection
from coordwire.messages import FetchRequest, ListOffsetsRequest, ProduceRequest
from coordwire.messages.fetch import FetchPartition, FetchTopic
from coordwire.messages.list_offsets import ListOffsetsPartition, ListOffsetsTopic
from coordwire.messages.produce import PartitionProduceData, TopicProduceData
from coordwire.records import Record, encode_batch
from tests.broker.blocking_peer import BlockingPeer
from tests.broker.served import Served

DEAF, SLOW = 20, 100
_ASKED = 200
"""Fetches that each client that never reads sends."""
_FETCHED = 1 << 20
_ANNOUNCED = 90 << 20
_BATCHES = 200
_TOPIC = "orders"


@dataclass(frozen=True, slots=True)
class Figures:
    """Bytes of the broker's memory: alone, with the crowd, with all. seconds: until the crowd was there, and
    of the good client's requests, the longest."""

    count: int
    alone: int
    crowded: int
    attacked: int
    joined_seconds: float
    longest_seconds: float

    def __str__(self) -> str:
        mega = 1 << 20
        return (
            f"{self.count} connections in {self.joined_seconds:.1f} s: {self.alone / mega:.0f} MB alone,"
            f" {self.crowded / mega:.0f} MB with them, {self.attacked / mega:.0f} MB with {DEAF} clients that"
            f" never read and {SLOW} slow ones; {2 * _BATCHES} requests of a good client, the longest took"
            f" {self.longest_seconds * 1000:.0f} ms"
        )


def _memory(process: int) -> int:
    text = Path(f"/proc/{process}/status").read_text()
    return next(int(line.split()[1]) for line in text.splitlines() if line.startswith("VmRSS")) * 1024


def allow(count: int) -> bool:
    """Let this process and its children have so many files; whether they may."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    expected = count + 500
    if soft < expected <= hard or hard == resource.RLIM_INFINITY:
        resource.setrlimit(resource.RLIMIT_NOFILE, (max(soft, expected), hard))
    return hard == resource.RLIM_INFINITY or hard >= expected


def run(count: int) -> Figures:
    """Raises `AssertionError`."""
    with ExitStack() as ended:
        served = ended.enter_context(Served(None, {_TOPIC: 1}))
        good = ended.enter_context(BlockingPeer(served.bootstrap))
        batch = encode_batch([Record(timestamp=0, value=bytes(16_000))], base_offset=0)
        for _ in range(2 * _FETCHED // len(batch)):
            _produce(good, batch)
        alone = _memory(served.process_id)
        start = time.monotonic()
        command = [sys.executable, "-m", "tests.broker.crowd_peers", str(served.port), str(count)]
        crowd = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        ended.callback(crowd.wait)
        ended.callback(crowd.kill)
        assert crowd.stdin is not None
        assert crowd.stdout is not None
        assert crowd.stdout.readline() == f"there {count}\n"
        joined = time.monotonic() - start
        crowded = _memory(served.process_id)
        deaf = [ended.enter_context(_deaf(served.port)) for _ in range(DEAF)]
        slow = [ended.enter_context(_slow(served.port)) for _ in range(SLOW)]
        before = _end(good)
        longest, most = 0.0, 0
        for _ in range(_BATCHES):
            for peer in slow:
                peer.send(b"\0")
            at = time.monotonic()
            _produce(good, batch)
            end = _end(good)
            longest = max(longest, (time.monotonic() - at) / 2)
            most = max(most, _memory(served.process_id))
        assert end == before + _BATCHES, f"the log ends at {end}, expected {before + _BATCHES}"
        crowd.stdin.write("again\n")
        crowd.stdin.flush()
        assert crowd.stdout.readline() == f"again {(count + 9) // 10}\n"
        for peer in deaf:  # they are connected still
            peer.send(b"\0")
        return Figures(count, alone, crowded, most, joined, longest)


def _produce(good: BlockingPeer, batch: bytes) -> None:
    data = TopicProduceData(name=_TOPIC, partition_data=[PartitionProduceData(index=0, records=batch)])
    answer = good.ask(ProduceRequest(acks=-1, timeout_ms=1000, topic_data=[data]), 9)
    assert answer.responses[0].partition_responses[0].error_code == 0


def _end(good: BlockingPeer) -> int:
    part = ListOffsetsPartition(partition_index=0, timestamp=-1)
    request = ListOffsetsRequest(replica_id=-1, topics=[ListOffsetsTopic(name=_TOPIC, partitions=[part])])
    offset: int = good.ask(request, 7).topics[0].partitions[0].offset
    return offset


def _deaf(port: int) -> socket.socket:
    """A client that asks for much, and never reads."""
    connected = socket.create_connection(("127.0.0.1", port))
    part = FetchPartition(partition=0, fetch_offset=0, partition_max_bytes=_FETCHED)
    request = FetchRequest(
        max_wait_ms=0, min_bytes=1, max_bytes=_FETCHED, session_epoch=-1,
        topics=[FetchTopic(topic=_TOPIC, partitions=[part])],
    )  # fmt: skip
    client = Connection("client", client_id="deaf")
    connected.sendall(b"".join(client.send(request, version=12) for _ in range(_ASKED)))
    return connected


def _slow(port: int) -> socket.socket:
    """A client that announces a frame which it never completes."""
    connected = socket.create_connection(("127.0.0.1", port))
    connected.sendall(_ANNOUNCED.to_bytes(4))
    return connected


def main() -> None:
    parser = argparse.ArgumentParser(
        prog="python -m tests.broker.crowd", description=(__doc__ or "").split("\n\n")[0]
    )
    parser.add_argument("count", type=int, nargs="?", default=10_000, help="connections (10000)")
    count = parser.parse_args().count
    if not allow(count):
        sys.exit(f"{count} connections are more files than this process may open")
    print(run(count))


if __name__ == "__main__":
    main()
