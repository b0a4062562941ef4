"""The seed corpus: real frames that the tests keep, of captures and of every API in every version,
and bytes that once broke something."""

from __future__ import annotations

import gzip
import json
import struct
from collections.abc import Iterator
from functools import cache
from pathlib import Path

from hypothesis import strategies as st

from coordwire.capture.entries import FrameEntry
from coordwire.capture.reader import Capture
from coordwire.codec import Message
from coordwire.frames import PREFIX
from coordwire.messages import find_message
from tests.recorded import CAPTURES, DATA, RECORDINGS, message_of, open_capture, recorded_frames

ROOT = Path(__file__).parent
CORPUS = ROOT / "corpus"
LONGEST = 2000
"""Bytes of a captured frame."""


@cache
def captured() -> list[FrameEntry]:
    """Of each API, version and direction in captures, the first frame that is not long."""
    results: dict[tuple[object, ...], FrameEntry] = {}
    for path in (*CAPTURES, *RECORDINGS):
        with open_capture(path) as stream:
            for entry in Capture(stream, path.name).entries():
                if isinstance(entry, FrameEntry) and entry.size <= LONGEST:
                    results.setdefault((entry.direction, entry.api_key, entry.api_version), entry)
    return list(results.values())


@cache
def bodies() -> list[bytes]:
    """Frames without their size prefixes: those of captures; one of each kind of answer that was recorded;
    the corpus."""
    recorded: dict[tuple[object, ...], bytes] = {}
    for frame in recorded_frames():
        recorded.setdefault((frame.cell, frame.kind), frame.data[PREFIX:])
    kept = [bytes.fromhex(path.read_text()) for path in sorted(CORPUS.glob("*.hex"))]
    return [*(entry.body for entry in captured()), *recorded.values(), *kept]


@cache
def real_messages() -> list[tuple[type[Message], int, bytes]]:
    """The messages alone of what was captured and recorded, each once."""
    messages = [message_of(entry) for entry in captured() if entry.error is None]
    messages += [(frame.message_class, frame.version, frame.body) for frame in recorded_frames()]
    return list(dict.fromkeys(messages))


@st.composite
def mutated(draw: st.DrawFn, data: bytes) -> bytes:
    """The bytes with up to eight of them replaced, dropped or added."""
    start = draw(st.integers(0, len(data)))
    stop = draw(st.integers(start, min(len(data), start + 8)))
    return data[:start] + draw(st.binary(max_size=8)) + data[stop:]


@st.composite
def mutated_messages(draw: st.DrawFn) -> tuple[type[Message], int, bytes]:
    """A real message's class and version, with its bytes or changed ones."""
    cls, version, body = draw(st.sampled_from(real_messages()))
    return cls, version, draw(st.one_of(mutated(body), mutated(body), st.just(body)))


def framed() -> list[bytes]:
    """The same with their size prefixes."""
    return [struct.pack(">i", len(body)) + body for body in bodies()]


def vectors() -> Iterator[tuple[type[Message], int, bytes]]:
    """Messages of every class and version, as Apache Kafka's own classes wrote them."""
    with gzip.open(DATA / "vectors" / "vectors.jsonl.gz", "rt") as lines:
        for vector in map(json.loads, lines):
            exchanged = vector["direction"] in ("request", "response")
            cls = (
                find_message(vector["api_key"], vector["direction"])
                if exchanged
                else find_message(vector["api"])
            )
            yield cls, vector["version"], bytes.fromhex(vector["hex"])
