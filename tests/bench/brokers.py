"""`python -m tests.bench.brokers`: how long a broker for tests takes to start and to stop, what a connection
holds, and whether anything is left.

Figures are of this process after the imports: wall time, the median and the largest of each row; memory is
the growth of the resident set, with the clients in a process of their own.
"""

from __future__ import annotations

import argparse
import asyncio
import gc
import os
import platform
import subprocess
import sys
import threading
from statistics import median
from time import perf_counter, process_time

from coordwire.broker import Broker
from coordwire.broker.harness import Kafka
from coordwire.messages import MetadataRequest
from tests.broker.blocking_peer import BlockingPeer
from tests.broker.peer import Peer

_PAGE = os.sysconf("SC_PAGESIZE")

_CLIENTS = """
import socket, sys
host, port, count = sys.argv[1], int(sys.argv[2]), int(sys.argv[3])
kept = [socket.create_connection((host, port)) for _ in range(count)]
print(len(kept), flush=True)
sys.stdin.read()
"""


def row(name: str, seconds: list[float]) -> None:
    """One row of times in milliseconds."""
    print(
        f"| {name} | {median(seconds) * 1000:.2f} | {sorted(seconds)[len(seconds) * 95 // 100] * 1000:.2f}"
        f" | {max(seconds) * 1000:.2f} |"
    )


def threads(count: int, clients: int) -> None:
    """Starts and stops as the fixture makes them, with clients attached."""
    ups, downs = [], []
    for _ in range(count):
        kafka = Kafka(topics={"orders": 3})
        start = perf_counter()
        kafka.broker.start()
        ups.append(perf_counter() - start)
        peers = [BlockingPeer(kafka.bootstrap) for _ in range(clients)]
        for peer in peers:
            peer.ask(MetadataRequest(topics=None), 12)
        start = perf_counter()
        kafka.broker.stop()
        downs.append(perf_counter() - start)
        for peer in peers:
            peer.socket.close()
    row("up, on a thread", ups)
    row(f"down, with {clients} clients", downs)


async def coroutines(count: int, clients: int) -> None:
    """The same in one event loop."""
    ups, downs = [], []
    for _ in range(count):
        broker = Broker(topics={"orders": 3})
        start = perf_counter()
        await broker.start()
        ups.append(perf_counter() - start)
        peers = [await Peer(broker).__aenter__() for _ in range(clients)]
        for peer in peers:
            await peer.ask(MetadataRequest(topics=None), 12)
        start = perf_counter()
        await broker.stop()
        downs.append(perf_counter() - start)
        for peer in peers:
            await peer.__aexit__(None, None, None)
    row("up, in a loop", ups)
    row(f"down, with {clients} clients", downs)


def many(count: int) -> None:
    """So many brokers one after the other."""
    start, spent = perf_counter(), process_time()
    for _ in range(count):
        with Kafka(topics={"orders": 3}) as kafka, BlockingPeer(kafka.bootstrap) as peer:
            peer.ask(MetadataRequest(topics=None), 12)
    wall, spent = perf_counter() - start, process_time() - spent
    print(f"\n{count} brokers, each with a client: {wall:.2f} s, {spent:.2f} s of the processor")


def resident() -> int:
    """Bytes of this process in memory."""
    with open("/proc/self/statm") as stream:
        return int(stream.read().split()[1]) * _PAGE


def idle(count: int) -> None:
    """Connections that say nothing."""
    with Kafka() as kafka:
        host, _, port = kafka.bootstrap.rpartition(":")
        gc.collect()
        before = resident()
        process = subprocess.Popen(
            [sys.executable, "-c", _CLIENTS, host, port, str(count)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
        )
        assert process.stdout is not None
        process.stdout.readline()
        while len(kafka.broker.broker.links) < count:
            threading.Event().wait(0.01)
        used = resident() - before
        print(f"\n{count} idle connections: {used / 1e6:.1f} MB ({used / count / 1024:.1f} KB each)")
        process.communicate()


def left() -> tuple[int, int, int]:
    """Threads, open files, objects."""
    gc.collect()
    return threading.active_count(), len(os.listdir("/proc/self/fd")), len(gc.get_objects())


def leaks(count: int) -> None:
    """What is left after so many starts, of which each has a client that is attached at the end."""
    for _ in range(20):
        many_quietly()
    before = left()
    for number in range(1, count + 1):
        many_quietly()
        if number % max(count // 4, 1) == 0:
            now = left()
            growth = ", ".join(
                f"{one - other:+} {name}"
                for name, one, other in zip(("threads", "files", "objects"), now, before, strict=True)
            )
            print(f"after {number} starts: {growth}; resident {resident() / 1e6:.1f} MB", flush=True)


def many_quietly() -> None:
    kafka = Kafka(topics={"orders": 3})
    kafka.broker.start()
    peer = BlockingPeer(kafka.bootstrap)
    peer.ask(MetadataRequest(topics=None), 12)
    kafka.broker.stop()
    peer.socket.close()


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--starts", type=int, default=100)
    parser.add_argument("--clients", type=int, default=10)
    parser.add_argument("--brokers", type=int, default=500)
    parser.add_argument("--connections", type=int, default=1000)
    parser.add_argument("--leaks", type=int, default=200)
    options = parser.parse_args()
    print(f"{platform.python_implementation()} {platform.python_version()}, load {os.getloadavg()[0]:.1f}\n")
    print("| | median ms | 95 % ms | most ms |\n|---|---:|---:|---:|")
    threads(options.starts, options.clients)
    asyncio.run(coroutines(options.starts, options.clients))
    many(options.brokers)
    idle(options.connections)
    leaks(options.leaks)


if __name__ == "__main__":
    main()
