"""`python -m tests.bench.tap`: what a tap costs beside a direct connection, with broker and tap in processes
of their own.

Strategy: a round does the same over a direct connection and over one through the tap, in turns, so that what
slows the machine slows both; a row has the medians of the rounds, and the median of the rounds' differences
or ratios. Memory is the growth of the tap's resident set.
"""

from __future__ import annotations

import argparse
import os
import platform
import re
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from statistics import median
from time import perf_counter, sleep
from uuid import UUID

from coordwire import implementation
from coordwire.messages import FetchRequest, HeartbeatRequest, MetadataRequest, ProduceRequest
from coordwire.messages.fetch import FetchPartition, FetchTopic
from coordwire.messages.metadata import MetadataRequestTopic
from coordwire.messages.produce import PartitionProduceData, TopicProduceData
from coordwire.records import Record, encode_batch
from tests.broker.blocking_peer import BlockingPeer
from tests.broker.served import Served

MEGA = 1 << 20
NO_ID = UUID(int=0)
_PAGE = os.sysconf("SC_PAGESIZE")


@contextmanager
def tapped(upstream: str) -> Iterator[tuple[str, int]]:
    """A tap before a broker: its bootstrap servers and its process."""
    command = [sys.executable, "-m", "coordwire", "tap", "--to", upstream, "--listen", "127.0.0.1:0"]
    process = subprocess.Popen([*command, "--no-output"], stderr=subprocess.PIPE, text=True)
    assert process.stderr is not None
    try:
        match = re.search(r"connect to (\S+) for", process.stderr.readline())
        assert match is not None
        yield match[1], process.pid
    finally:
        process.send_signal(signal.SIGINT)
        process.communicate(timeout=30)


def resident(process: int) -> int:
    """Bytes of a process in memory."""
    return int(Path(f"/proc/{process}/statm").read_text().split()[1]) * _PAGE


def seconds(call: Callable[[], object], count: int) -> float:
    """The median time of a call."""
    times = []
    for _ in range(count):
        start = perf_counter()
        call()
        times.append(perf_counter() - start)
    return median(times)


def fetch_of(name: str = "", topic_id: UUID = NO_ID) -> FetchRequest:
    """A request for 1 MB of a topic, by its name or its id."""
    partition = FetchPartition(partition=0, fetch_offset=0, partition_max_bytes=MEGA)
    topic = FetchTopic(topic=name, topic_id=topic_id, partitions=[partition])
    return FetchRequest(max_wait_ms=0, max_bytes=MEGA, topics=[topic])


def works(bootstrap: str) -> dict[str, tuple[Callable[[], object], int]]:
    """What is measured over one connection, and how often in a round."""
    peer = BlockingPeer(bootstrap)
    batch = encode_batch([Record(value=os.urandom(1_000_000))], base_offset=0)
    part = PartitionProduceData(index=0, records=batch)
    produce = ProduceRequest(
        acks=1, timeout_ms=9_000, topic_data=[TopicProduceData(name="large", partition_data=[part])]
    )
    fetch = fetch_of("large")
    known = peer.ask(MetadataRequest(topics=[MetadataRequestTopic(name="large")]), 12).topics[0]
    fetch_by_id = fetch_of(topic_id=known.topic_id)
    assert peer.ask(produce, 9).responses[0].partition_responses[0].error_code == 0
    assert len(peer.ask(fetch, 12).responses[0].partitions[0].records or b"") > 1_000_000
    return {
        "heartbeat": (lambda: peer.ask(HeartbeatRequest(group_id="g", member_id="m"), 4), 200),
        "produce 1 MB": (lambda: peer.ask(produce, 9), 10),
        "fetch 1 MB": (lambda: peer.ask(fetch, 12), 10),
        "fetch 1 MB, version 17, which may name brokers": (lambda: peer.ask(fetch_by_id, 17), 10),
    }


def connections(bootstrap: str, count: int) -> float:
    """The seconds in which so many clients connect and get metadata, one after the other, and stay."""
    start = perf_counter()
    peers = [BlockingPeer(bootstrap) for _ in range(count)]
    for peer in peers:
        peer.ask(MetadataRequest(topics=[]), 12)
    spent = perf_counter() - start
    for peer in peers:
        peer.socket.close()
    return spent


def grown_by_a_slow_reader(bootstrap: str, process: int, count: int) -> int:
    """The bytes by which a process grows while a client asks for so many MB and reads none of them."""
    peer = BlockingPeer(bootstrap)
    peer.ask(MetadataRequest(topics=[]), 12)
    before = resident(process)
    for _ in range(count):
        peer.socket.sendall(peer.connection.send(fetch_of("large"), version=12))
    highest = 0
    for _ in range(50):
        sleep(0.02)
        highest = max(highest, resident(process))
    peer.socket.close()
    return highest - before


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m tests.bench.tap", description=__doc__)
    parser.add_argument("--rounds", type=int, default=20)
    parser.add_argument("--connections", type=int, default=1_000)
    options = parser.parse_args()
    print(f"Python {platform.python_version()}, {implementation}; {options.rounds} rounds\n")
    with Served(None, {"large": 1}) as served, tapped(served.bootstrap) as (bootstrap, process):
        direct, through = works(served.bootstrap), works(bootstrap)
        print("| | direct | through the tap | |\n|---|---|---|---|")
        for name, (call, count) in direct.items():
            pairs = [(seconds(call, count), seconds(through[name][0], count)) for _ in range(options.rounds)]
            first, second = median(a for a, _ in pairs), median(b for _, b in pairs)
            if name == "heartbeat":
                more = median(b - a for a, b in pairs)
                print(f"| {name} | {first * 1e6:.0f} µs | {second * 1e6:.0f} µs | {more * 1e6:+.0f} µs |")
            else:
                ratio = median(a / b for a, b in pairs)
                print(f"| {name} | {1 / first:.0f} MB/s | {1 / second:.0f} MB/s | {ratio:.2f} × |")
        before = resident(process)
        plain, tap = (connections(place, options.connections) for place in (served.bootstrap, bootstrap))
        grown = (resident(process) - before) / options.connections / 1024
        print(f"| {options.connections:,} connections | {plain:.2f} s | {tap:.2f} s | {grown:.1f} KB each |")
        unread = grown_by_a_slow_reader(bootstrap, process, 100) / MEGA
        print(f"| 100 MB that a client asks for and does not read | | | {unread:+.1f} MB |")


if __name__ == "__main__":
    main()
