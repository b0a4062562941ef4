"""The recorded captures, made traffic, and what an entry says, for tests that read in two ways."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import fields
from pathlib import Path

from coordwire.capture.entries import FrameEntry
from coordwire.capture.formats.pcap import as_pcap
from coordwire.frames import encode_request, encode_response
from coordwire.messages import HeartbeatRequest, HeartbeatResponse

HIDDEN = ("error", "request", "text")
"""Fields of an entry that are compared by what they say, or that are made when they are asked for."""

CAPTURES = sorted((Path(__file__).parents[1] / "data" / "captures").glob("*.pcap"))


def said(entry: FrameEntry) -> tuple[object, ...]:
    """All that an entry says; of its error the words, as two errors are never equal."""
    error = entry.error
    shown = None if error is None else (type(error), str(error), error.position, error.path)
    asked = None if entry.request is None else said(entry.request)
    values = [getattr(entry, one.name) for one in fields(entry) if one.name not in HIDDEN]
    return shown, asked, *values


def traffic_rows(frames: int) -> Iterator[tuple[int, int, bool, bytes]]:
    """Three connections with heartbeats, of which the answers come two requests later."""
    for number in range(frames):
        asked = HeartbeatRequest(group_id="g" * (number % 90), generation_id=1, member_id="m")
        yield number, number % 3, False, encode_request(asked, version=4, correlation_id=number)
        if number > 5:
            answer = encode_response(HeartbeatResponse(), version=4, correlation_id=number - 6)
            yield number, number % 3, True, answer


def traffic(frames: int) -> bytes:
    return as_pcap(traffic_rows(frames))
