"""Captures that go on in another file: answers whose requests are in the one before.

Strategy: a request waits, by its connection's ends and its correlation id, until its answer is seen; an
answer without a request in its own capture is read as that of the request that waits. Rules: entries stay as
they are otherwise, and in their order; what waits is bounded in number, the oldest is dropped first, and in
memory (`coordwire.capture.pending_requests`).
"""

from __future__ import annotations

import struct
from collections import OrderedDict
from collections.abc import Iterable, Iterator
from typing import overload

from coordwire.capture.entries import ConnectionEnd, Entry, FrameEntry
from coordwire.capture.frame_decoding import read_answer
from coordwire.capture.pending_requests import AwaitedRequest, PendingRequests
from coordwire.connection.dialect import KAFKA
from coordwire.errors import UnreadableRange
from coordwire.frames import PREFIX

__all__ = ["rejoined"]

MOST_WAITING = 10_000
Key = tuple[str, int]
_SIZE_ID = struct.Struct(">ii")


class _Requests:
    """The requests that wait, by flow and correlation id; of two under one, the later."""

    def __init__(self) -> None:
        self._waiting = PendingRequests()
        self._known: OrderedDict[Key, AwaitedRequest] = OrderedDict()

    def get(self, key: Key) -> FrameEntry | None:
        asked = self._known.get(key)
        return None if asked is None else asked.entry

    def pop(self, key: Key) -> FrameEntry | None:
        asked = self._known.pop(key, None)
        if asked is None:
            return None
        self._waiting.remove(asked)
        return asked.entry

    def add(self, key: Key, entry: FrameEntry) -> None:
        self.pop(key)
        asked = self._known[key] = AwaitedRequest(entry, lambda _: self._known.pop(key, None))
        self._waiting.add(asked)
        if len(self._known) > MOST_WAITING:
            self.pop(next(iter(self._known)))


@overload
def rejoined(entries: Iterable[Entry], *, strict: bool = False) -> Iterator[Entry]: ...


@overload
def rejoined(
    entries: Iterable[Entry | ConnectionEnd], *, strict: bool = False
) -> Iterator[Entry | ConnectionEnd]: ...


def rejoined(
    entries: Iterable[Entry | ConnectionEnd], *, strict: bool = False
) -> Iterator[Entry | ConnectionEnd]:
    """The entries of captures that follow one another, with answers matched across their ends.

    strict: as for `Capture`. An answer from an `UnreadableRange` has the number 0.
    """
    waiting = _Requests()
    for entry in entries:
        if isinstance(entry, UnreadableRange):
            yield from _answers_in(entry, waiting, strict)
            continue
        if (
            isinstance(entry, FrameEntry)
            and entry.flow
            and entry.correlation_id is not None
            and entry.dialect == KAFKA
        ):
            _match(entry, entry.correlation_id, waiting, strict)
        yield entry


def _match(entry: FrameEntry, correlation_id: int, waiting: _Requests, strict: bool) -> None:
    if entry.direction == "response":
        asked = waiting.pop((_reverse(entry.flow), correlation_id))
        if entry.request is None and asked is not None:
            read_answer(entry, asked, strict=strict)
    elif entry.api_key is not None and entry.api_version is not None:
        waiting.add((entry.flow, correlation_id), entry)


def _answers_in(unreadable: UnreadableRange, waiting: _Requests, strict: bool) -> Iterator[Entry]:
    """The answers with which an unreadable range begins, and the rest of it: only their requests show that
    there are frames."""
    data, at, flow = unreadable.data, 0, _reverse(unreadable.flow)
    while at + _SIZE_ID.size <= len(data):
        size, correlation_id = _SIZE_ID.unpack_from(data, at)
        end = at + PREFIX + size
        asked = waiting.get((flow, correlation_id))
        if asked is None or size < PREFIX or end > len(data):
            break
        entry = FrameEntry(
            capture=unreadable.file, number=0, flow=unreadable.flow, time_ns=unreadable.time_ns,
            direction="response", body=data[at + PREFIX : end], correlation_id=correlation_id,
        )  # fmt: skip
        if unreadable.packet == unreadable.first_packet:  # in which of several it lies isn't known
            entry.packet = entry.first_packet = unreadable.packet
        read_answer(entry, asked, strict=strict)
        if entry.error is not None:
            break
        waiting.pop((flow, correlation_id))
        yield entry
        at = end
    if at < unreadable.length:
        yield unreadable._replace(
            position=unreadable.position + at, length=unreadable.length - at, data=data[at:]
        )


def _reverse(flow: str) -> str:
    source, _, target = flow.partition(" > ")
    return f"{target} > {source}"
