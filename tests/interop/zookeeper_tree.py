"""Random operations on a real Apache ZooKeeper, compared with `ZooKeeperTree`.

    python -m tests.interop.zookeeper_tree 3.9.3 --count 20 > recording.txt

Rules: server and clients run in one JVM, on loopback; a recording is printed, and the differences go to
standard error. The exit status is 1 if there is one.
"""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

from tests.designs.drafts.zookeeper_operations_oracle import differences, operation_count
from tests.interop.broker import Java

RELEASES = ("3.4.10", "3.9.3")
_SOURCE = Path(__file__).parent / "java" / "ZooKeeperTree.java"


def record(release: str, *, first: int, count: int, operations: int = 200, wait: float = 300) -> list[str]:
    """The lines of a recording. Raises `Unavailable` or `BrokerError`."""
    java = Java(release, "zookeeper")
    return java.run(str(_SOURCE), str(first), str(count), str(operations), wait=wait).splitlines()


def main() -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("release", help=f"of Apache ZooKeeper, such as {' or '.join(RELEASES)}")
    parser.add_argument("--first", type=int, default=1, help="the first seed (1)")
    parser.add_argument("--count", type=int, default=20, help="how many histories of 200 operations (20)")
    options = parser.parse_args()
    lines = record(options.release, first=options.first, count=options.count, wait=60 + 30 * options.count)
    print("\n".join(lines))
    texts = list(differences(lines))
    summary = f"{operation_count(lines)} operations, {len(texts)} differ"
    print("\n".join([*texts, summary]), file=sys.stderr)
    return int(bool(texts))


if __name__ == "__main__":
    sys.exit(main())
