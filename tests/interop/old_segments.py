"""`python -m tests.interop.old_segments OUT`: segments of magic 0 and 1 by a broker, with its tool's texts.

Strategy: Apache Kafka 3.9 with ZooKeeper and the inter-broker protocol of 2.8 is the newest that still writes
the message formats of 0.9 and 0.10; java/OldTraffic.java fills topics of both. OUT/data then holds their logs
and, beside each, what `kafka-dump-log` prints about it. Exit status 1 if a JVM fails, 2 if the jars can't be
had.
"""

from __future__ import annotations

import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

from coordwire.messages import MetadataRequest
from tests.interop.broker import WAIT, BrokerError, Java, ask, free_port
from tests.interop.broker_segments import keep, split
from tests.interop.maven import PREVIOUS, Unavailable

TRAFFIC = Path(__file__).parent / "java" / "OldTraffic.java"
_SETTINGS = {
    "inter.broker.protocol.version": "2.8",
    "log.message.format.version": "2.8",
    "log.cleaner.backoff.ms": 200,
}
TOPICS = ("magic-", "append-time-", "compacted-")


def make(out: Path) -> None:
    """Fill a folder that has no `data`. Raises `Unavailable`, `BrokerError`, `OSError`."""
    java = Java(PREVIOUS)
    with tempfile.TemporaryDirectory() as work:
        logs = Path(work) / "logs"
        with zookeeper_broker(java, Path(work), _SETTINGS | {"log.dirs": logs}) as port:
            java.run(str(TRAFFIC), f"127.0.0.1:{port}", wait=3 * WAIT)
        keep(logs, out / "data")
    data = out / "data"
    for path in data.iterdir():
        if path.is_dir() and not path.name.startswith(TOPICS):
            shutil.rmtree(path)
    results = sorted(path.relative_to(data) for path in data.glob("*-*/*.log"))
    result = java.run(
        "kafka.tools.DumpLogSegments", "--print-data-log", "--deep-iteration",
        "--files", ",".join(map(str, results)), folder=data,
    )  # fmt: skip
    split(result, data, ".txt")


@contextmanager
def zookeeper_broker(java: Java, work: Path, settings: Mapping[str, object]) -> Iterator[int]:
    """The port of a broker that runs for the block, beside its ZooKeeper; of any release that has one.

    settings: lines of server.properties, `log.dirs` among them. Raises `BrokerError`.
    """
    zookeeper, port = free_port(), free_port()
    keeper = {"dataDir": work / "zookeeper", "clientPort": zookeeper, "admin.enableServer": "false"}
    lines = {
        "broker.id": 1, "zookeeper.connect": f"127.0.0.1:{zookeeper}", "host.name": "127.0.0.1", "port": port,
        "listeners": f"PLAINTEXT://127.0.0.1:{port}", "log.cleaner.dedupe.buffer.size": 8 << 20, **settings,
    }  # fmt: skip
    started: list[subprocess.Popen[bytes]] = []
    mains = {"org.apache.zookeeper.server.quorum.QuorumPeerMain": keeper, "kafka.Kafka": lines}
    said = work / "said.txt"
    try:
        for number, (main_class, its) in enumerate(mains.items()):
            properties = work / f"{number}.properties"
            properties.write_text("".join(f"{name}={value}\n" for name, value in its.items()))
            started.append(java.start(main_class, str(properties), output=said))
        deadline = time.monotonic() + WAIT
        while True:
            try:
                ask(port, MetadataRequest(), version=0)
                break
            except OSError:
                if time.monotonic() > deadline:
                    raise BrokerError(f"the broker didn't come up: {said.read_text()[-2000:]}") from None
                time.sleep(0.25)
        yield port
    finally:
        for jvm in reversed(started):
            jvm.terminate()
            try:
                jvm.wait(WAIT)
            except subprocess.TimeoutExpired:
                jvm.kill()
                jvm.wait()


def main(arguments: list[str]) -> int:
    if len(arguments) != 1:
        print("usage: python -m tests.interop.old_segments OUT", file=sys.stderr)
        return 2
    try:
        make(Path(arguments[0]))
    except (Unavailable, OSError) as error:
        print(error, file=sys.stderr)
        return 2
    except BrokerError as error:
        print(error, file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
