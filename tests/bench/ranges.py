"""`python -m tests.bench.ranges` counts what reading a part of a segment asks of an object store.

Strategy: a segment with an index as a broker keeps it, and one without, in a store in memory that counts
what is read as an object store's requests would be; read are the last hundredth of the offsets, and the
headers of all batches. Rules: the bytes are random, so that nothing in them looks like a batch; the counts
do not depend on the machine.
"""

from __future__ import annotations

import random
import struct
from typing import Any
from unittest import mock

import fsspec

from coordwire.records import Record, batches, encode_batch
from coordwire.tables.options import Options
from coordwire.tables.readers import object_ranges
from coordwire.tables.readers.sources import SOURCES, plan, read
from coordwire.tables.stores import Store, store_of

LOG, INDEX = f"{0:020}.log", f"{0:020}.index"
RECORDS = 4
"""In a batch."""

CASES = (("1 MB", 256, 1 << 20, True), ("16 KB", 2048, 16 << 10, False))
"""Of a batch: its size in words; then how many there are, the bytes of one, and whether there is an index."""


def segment_of(count: int, size: int) -> bytes:
    """So many batches of about so many bytes each."""
    source = random.Random(7)
    values = [source.randbytes(size // RECORDS) for _ in range(RECORDS)]
    batch = bytearray(encode_batch([Record(timestamp=1, value=value) for value in values]))
    parts = []
    for number in range(count):
        batch[:8] = (number * RECORDS).to_bytes(8, "big")
        parts.append(bytes(batch))
    return b"".join(parts)


def index_of(data: bytes) -> bytes:
    """The index that a broker keeps beside them: an entry a batch, as each has more than 4 KB."""
    return b"".join(
        struct.pack(">ii", batch.last_offset, batch.position) for batch in list(batches(data))[1:]
    )


def cost(source: str, options: Options) -> tuple[int, int, int]:
    """Rows, bytes and requests."""
    definition = SOURCES[source]
    columns = ["log_offset", "value"] if source == "kafka-segment" else ["base_offset"]
    results: list[int] = []
    read_at = Store.read

    def counted(store: Store, file: Any, path: str, size: int, at: int) -> bytes:
        results.append(size)
        return read_at(store, file, path, size, at)

    with mock.patch.object(Store, "read", counted), mock.patch.object(object_ranges, "store_of", _put_store):
        groups = plan(definition, options)
        rows = sum(batch.num_rows for group in groups for batch in read(definition, group, options, columns))
    return rows, sum(results), len(results)


def _put_store(uri: str) -> tuple[Store, str]:
    """The store in memory, as one whose files are put whole: such are asked for several ranges at once."""
    store, path = store_of(uri)
    store.puts = True
    return store, path


def main() -> None:
    system = fsspec.filesystem("memory")
    for name, count, size, indexed in CASES:
        data = segment_of(count, size)
        folder = f"/of-{size}/orders-0"
        system.pipe(f"{folder}/{LOG}", data)
        if indexed:
            system.pipe(f"{folder}/{INDEX}", index_of(data))
        path = (f"memory://of-{size}",)
        first = count * RECORDS - count * RECORDS // 100
        for what, source, options in (
            ("the last 1 % by startingOffset", "kafka-segment", Options(path, starting_offset=first)),
            ("the headers", "kafka-segment-batches", Options(path)),
        ):
            rows, spent, requests = cost(source, options)
            print(
                f"{len(data) / (1 << 20):.0f} MB in batches of {name}, {'with' if indexed else 'without'} an "
                f"index: {what} ({rows} rows) takes {100 * spent / len(data):.1f} % of the bytes in "
                f"{requests} requests"
            )


if __name__ == "__main__":
    main()
