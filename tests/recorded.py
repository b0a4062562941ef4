"""Real traffic that the tests keep: captures, and the frames of tests/data/wire, which has every API in
every version, from real brokers, both ways."""

from __future__ import annotations

import functools
import json
import lzma
from dataclasses import dataclass
from pathlib import Path
from typing import Any, BinaryIO, cast

from coordwire.capture.entries import FrameEntry
from coordwire.codec import Message
from coordwire.frames import PREFIX, decode_request, decode_response
from coordwire.messages import find_message
from coordwire.versions import header_version

DATA = Path(__file__).parent / "data"
CAPTURES = sorted((DATA / "captures").glob("*.pcap"))
RECORDINGS = sorted(
    path
    for folder in ("captured_logs", "groups", "outages", "stories")
    for path in (DATA / folder).glob("*.pcap.xz")
)
"""Longer captures, of groups."""


@dataclass(frozen=True, slots=True)
class RecordedFrame:
    """What passed on the wire.

    data: with its size prefix; kind: what the answer was; json: the body as Apache Kafka's classes read it,
    and judge: those of which release; equal: whether they write the same bytes again.
    """

    release: str
    api_key: int
    version: int
    direction: str
    kind: str
    data: bytes
    json: dict[str, Any]
    judge: str
    equal: bool

    @property
    def cell(self) -> tuple[int, int, str]:
        return self.api_key, self.version, self.direction

    @property
    def message_class(self) -> type[Message]:
        return find_message(self.api_key, self.direction)

    @property
    def body(self) -> bytes:
        """The message's bytes."""
        return body_of(self.data, *self.cell)


def body_of(data: bytes, api_key: int, version: int, direction: str) -> bytes:
    """A frame without its size and its header. Raises `DecodeError`."""
    request = direction == "request"
    header = (
        decode_request(data) if request else decode_response(data, api_key=api_key, version=version)
    ).header
    return data[PREFIX + len(header.encode(version=header_version(api_key, version, direction))) :]


def message_of(entry: FrameEntry) -> tuple[type[Message], int, bytes]:
    """A captured message's class, version and bytes, of a frame that was decoded."""
    assert entry.api_key is not None
    assert entry.api_version is not None
    assert entry.body_version is not None
    assert entry.header is not None
    header = entry.header.encode(version=header_version(entry.api_key, entry.api_version, entry.direction))
    return find_message(entry.api_key, entry.direction), entry.body_version, entry.body[len(header) :]


def open_capture(path: Path) -> BinaryIO:
    """Its bytes, unpacked."""
    return cast("BinaryIO", lzma.open(path) if path.suffix == ".xz" else path.open("rb"))


@functools.cache
def recorded_frames() -> tuple[RecordedFrame, ...]:
    """All of them, by API, version, direction and kind."""
    with lzma.open(DATA / "wire" / "frames.jsonl.xz", "rt") as lines:
        return tuple(map(_frame, map(json.loads, lines)))


def _frame(row: dict[str, Any]) -> RecordedFrame:
    return RecordedFrame(
        release=row["release"],
        api_key=row["api_key"],
        version=row["version"],
        direction=row["direction"],
        kind=row["kind"],
        data=bytes.fromhex(row["hex"]),
        json=row["json"],
        judge=row["judge"],
        equal=row["equal"],
    )


@functools.cache
def coverage() -> dict[str, Any]:
    """cells.json: which release speaks what, and whose frames are kept of each cell."""
    result: dict[str, Any] = json.loads((DATA / "wire" / "cells.json").read_text())
    return result
