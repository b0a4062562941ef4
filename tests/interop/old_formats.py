"""Message sets and offsets of Kafka 0.8.2.2's own classes: what they write, and what they read of ours.

    python -m tests.interop.old_formats            write tests/data/old_formats/0.8.2.2.txt again

Strategy: `java/OldFormats.java` writes message sets of each codec and the offset manager's keys and values,
and reads those that we write. Rules: each line that it prints is data; `ours` is what it was given.
"""

from __future__ import annotations

import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

from coordwire.logs import LogRecord, encode_log_record
from coordwire.messages import LegacyOffsetCommitKey, LegacyOffsetCommitValue
from coordwire.records import Record, encode_batch
from tests.interop.broker import Java

RELEASE = "0.8.2.2"
KEPT = Path(__file__).parent.parent / "data" / "old_formats" / f"{RELEASE}.txt"
RECORDS = [
    Record(0, -1, b"key", b"first"), Record(1, -1, None, b"second"), Record(2, -1, b"deleted", None),
    Record(3, -1, b"", bytes(300)),
]  # fmt: skip
"""The messages of the message sets, of either side."""

_SOURCE = Path(__file__).parent / "java" / "OldFormats.java"


def ours() -> Iterator[str]:
    """Lines of our bytes."""
    for codec in ("none", "gzip", "snappy"):
        yield f"set {encode_batch(RECORDS, magic=0, codec=codec).hex()}"
    for number in range(4):
        record = LogRecord(
            log="consumer_offsets", type=0,
            key=LegacyOffsetCommitKey(group=f"group-{number}", topic="orders", partition=number),
            value=LegacyOffsetCommitValue(
                offset=number * 1_000_000_007, metadata=f"m{number}", commit_timestamp=1_400_000_000_000
            ),
            version=0,
        )  # fmt: skip
        key, value = encode_log_record(record)
        assert key is not None
        assert value is not None
        yield f"key {key.hex()}"
        yield f"value {value.hex()}"


def printed() -> list[str]:
    """What Kafka's classes print. Raises `Unavailable` or `BrokerError`."""
    java = Java(RELEASE, "zookeeper-consumer")
    data = "".join(f"{line}\n" for line in ours()).encode()
    with tempfile.TemporaryDirectory() as folder:
        output = java.pipe(data, str(_SOURCE), folder=Path(folder))
    return output.decode().splitlines()


if __name__ == "__main__":
    KEPT.write_text("".join(f"{line}\n" for line in printed()))
    sys.exit()
