"""The events of a capture's streams, one by one."""

from __future__ import annotations

from collections.abc import Iterator

from coordwire.capture.flows import CaptureCounts, Event
from coordwire.capture.formats.source import Readable
from coordwire.capture.reader import read_stream_lists


def read_streams(stream: Readable, *, counts: CaptureCounts | None = None) -> Iterator[Event]:
    """What `read_stream_lists` gives, without lists."""
    for event in read_stream_lists(stream, counts=counts):
        if isinstance(event, list):
            yield from event
        else:
            yield event
