"""The seed corpus: real frames from the captures that the tests keep, and bytes that once broke something."""

from __future__ import annotations

import gzip
import json
import struct
from collections.abc import Iterator
from pathlib import Path

from coordwire.capture.entries import FrameEntry
from coordwire.capture.reader import Capture
from coordwire.codec import Message
from coordwire.messages import find_message

ROOT = Path(__file__).parent
CAPTURES = sorted((ROOT.parent / "tests" / "data" / "captures").glob("*.pcap"))
CORPUS = ROOT / "corpus"


def bodies(longest: int = 2000) -> list[bytes]:
    """One frame of each API, version and direction, without its size prefix; then the corpus."""
    result: dict[tuple[object, ...], bytes] = {}
    for path in CAPTURES:
        with path.open("rb") as stream:
            for entry in Capture(stream, path.name).entries():
                if isinstance(entry, FrameEntry) and entry.size <= longest:
                    result.setdefault((entry.direction, entry.api_key, entry.api_version), entry.body)
    kept = [bytes.fromhex(path.read_text()) for path in sorted(CORPUS.glob("*.hex"))]
    return [*result.values(), *kept]


def framed() -> list[bytes]:
    """The same with their size prefixes."""
    return [struct.pack(">i", len(body)) + body for body in bodies()]


def vectors() -> Iterator[tuple[type[Message], int, bytes]]:
    """Messages of every class and version, as Apache Kafka's own classes wrote them."""
    with gzip.open(ROOT.parent / "tests" / "data" / "vectors" / "vectors.jsonl.gz", "rt") as lines:
        for vector in map(json.loads, lines):
            exchanged = vector["direction"] in ("request", "response")
            cls = (
                find_message(vector["api_key"], vector["direction"])
                if exchanged
                else find_message(vector["api"])
            )
            yield cls, vector["version"], bytes.fromhex(vector["hex"])
