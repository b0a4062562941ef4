"""Segments made for the tests."""

from __future__ import annotations

import random
from pathlib import Path

from coordwire.records import Record, encode_batch
from coordwire.records.compression import Codec

CODECS: tuple[Codec, ...] = ("none", "gzip", "lz4", "snappy", "zstd")
START = 1_700_000_000_000


def segment(rng: random.Random, batches: int, base: int = 0) -> bytes:
    """Batches of all codecs with records of all kinds; one of them holds a whole batch as a value."""
    data = b""
    offset = base
    for number in range(batches):
        records = [
            Record(
                offset=offset + index,
                timestamp=START + 1000 * (offset + index),
                key=rng.choice([None, b"", b"key-%d" % index]),
                value=rng.choice([None, b"", rng.randbytes(rng.randrange(80))]),
                headers=(("trace", rng.choice([None, b"x"])),) * rng.randrange(3),
            )
            for index in range(rng.randrange(1, 12))
        ]
        if number == batches // 2:
            records[0].value = encode_batch([Record(value=b"inner")] * 3, base_offset=offset + 10_000)
        codec: Codec = "none" if number == batches // 2 else rng.choice(CODECS)
        data += encode_batch(records, codec=codec, base_offset=offset)
        offset += len(records)
    return data


def partition(folder: Path, topic: str, number: int, *segments: bytes) -> Path:
    """A broker's folder of one partition, its segments named by their first offsets."""
    place = folder / f"{topic}-{number}"
    place.mkdir(parents=True)
    for data in segments:
        (place / f"{int.from_bytes(data[:8], 'big'):020}.log").write_bytes(data)
    return place
