"""Record histories of Kafka's own ZooKeeper consumer, and compare ours with each.

    python -m tests.interop.zookeeper_histories 1.1.1 --count 100 --first 5000 --out FOLDER
    python -m tests.interop.zookeeper_histories 0.8.2.2 --count 1000 --threads 40 --light

Strategy: java/zookeeper_consumer has the driver: Apache ZooKeeper, brokers and connectors in one JVM, random
actions by a seed, all nodes after each action once it is quiet. "--light": brokers and topics are nodes that
the driver writes, so that many histories run at once; there are no messages then. Rules: it is compiled
against 1.1.1, runs with either release, and listens on loopback alone. The exit status is 1 if a quiet point
differs.
"""

from __future__ import annotations

import argparse
import subprocess
import sys
import tempfile
from pathlib import Path

from tests.designs.drafts import zookeeper_histories
from tests.interop.broker import BrokerError, Java
from tests.interop.maven import jars

RELEASES = ("0.8.2.2", "1.1.1")
_SOURCES = Path(__file__).parent / "java" / "zookeeper_consumer"


def record(
    release: str,
    folder: Path,
    *,
    first: int,
    count: int,
    threads: int = 6,
    light: bool = False,
    wait: float = 600,
) -> None:
    """Write histories into a folder, a file for each seed. Raises `Unavailable` or `BrokerError`."""
    java = Java(release, "zookeeper-consumer", ["-Xmx3g", "-Xss256k"])
    with tempfile.TemporaryDirectory() as classes:
        command = [
            "javac", "-nowarn", "-d", classes, "-cp", f"{jars('1.1.1', 'zookeeper-consumer')}/*",
            *map(str, sorted(_SOURCES.glob("*.java"))),
        ]  # fmt: skip
        compiled = subprocess.run(command, capture_output=True, text=True, check=False)
        if compiled.returncode:
            raise BrokerError(compiled.stderr[-2000:])
        *flags, option, path = java.command()
        command = [
            *flags, f"-Dold={str(release == '0.8.2.2').lower()}", f"-Dlight={str(light).lower()}",
            option, f"{classes}:{path}", "driver.Driver", str(folder), str(first), str(count), str(threads),
        ]  # fmt: skip
        try:
            run = subprocess.run(command, capture_output=True, text=True, timeout=wait, check=False)
        except subprocess.TimeoutExpired:
            raise BrokerError(f"{count} histories took more than {wait} s") from None
        if run.returncode:
            raise BrokerError((run.stdout + run.stderr)[-2000:])


def main() -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("release", choices=RELEASES)
    parser.add_argument("--first", type=int, default=1, help="the first seed (1)")
    parser.add_argument("--count", type=int, default=20, help="how many histories (20)")
    parser.add_argument("--threads", type=int, default=6, help="histories at the same time (6)")
    parser.add_argument("--light", action="store_true", help="without brokers and messages")
    parser.add_argument("--out", type=Path, help="where the histories are kept")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as scratch:
        folder = options.out or Path(scratch)
        record(
            options.release, folder, first=options.first, count=options.count, threads=options.threads,
            light=options.light, wait=60 + 120 * options.count,
        )  # fmt: skip
        return zookeeper_histories.main([str(folder)])


if __name__ == "__main__":
    sys.exit(main())
