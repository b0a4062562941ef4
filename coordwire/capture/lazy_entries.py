"""Frames that are decoded at the first question for their content, as many readers need that of few frames.

Strategy: a lazy entry has what its first bytes and its request name (API, version, correlation id). The first
question for anything else decodes all of it, and makes it a `FrameEntry` like any other. Rules: its
attributes are those of an eager entry, in whatever order they are read; the conversation decides which frames
can't be lazy. `coordwire.capture.body_text`, which checks a frame at less cost, may set attributes before.
"""

from __future__ import annotations

__all__ = ["LATE", "LazyEntry", "StrictLazyEntry", "lazy_entry"]

from typing import Any

from coordwire.capture.entries import FrameEntry
from coordwire.capture.flows import TcpConnection
from coordwire.capture.frame_decoding import read_answer, read_asked
from coordwire.connection.dialect import KAFKA, Direction

LATE = ("client_id", "header", "message", "error", "deviations")
"""What is decoded."""


class LazyEntry(FrameEntry):
    """A frame that isn't decoded yet."""

    __slots__ = ()

    def decode(self) -> None:
        """Decode it; it is a plain `FrameEntry` from here on."""
        self.__class__ = FrameEntry  # type: ignore[assignment]
        _fill_in(self, strict=False)

    def __repr__(self) -> str:
        self.decode()
        return repr(self)

    def __eq__(self, other: object) -> bool:
        self.decode()
        return self == other

    __hash__ = None  # type: ignore[assignment]

    def __reduce_ex__(self, protocol: Any) -> Any:
        self.decode()
        return self.__reduce_ex__(protocol)

    def reduced(self) -> FrameEntry:
        self.decode()
        return self.reduced()


class StrictLazyEntry(LazyEntry):
    """A lazy entry of a strict reader, which tolerates no deviation."""

    __slots__ = ()

    def decode(self) -> None:
        self.__class__ = FrameEntry  # type: ignore[assignment]
        _fill_in(self, strict=True)


class _Late:
    """An attribute that is there once the entry is decoded, or set before."""

    def __init__(self, name: str) -> None:
        self._name = name
        slot = FrameEntry.__dict__[name]
        self._get, self.__set = slot.__get__, slot.__set__

    def __get__(self, entry: LazyEntry, cls: type) -> Any:
        try:
            return self._get(entry)
        except AttributeError:
            return self._find(entry)

    def __set__(self, entry: LazyEntry, value: object) -> None:
        self.__set(entry, value)

    def _find(self, entry: LazyEntry) -> Any:
        if self._name == "client_id" and entry.request is not None:
            return entry.request.client_id
        entry.decode()
        return getattr(entry, self._name)


for _name in LATE:
    setattr(LazyEntry, _name, _Late(_name))


def _fill_in(entry: FrameEntry, *, strict: bool) -> None:
    entry.client_id = entry.header = entry.message = entry.error = None
    entry.deviations = []
    if entry.request is not None:
        read_answer(entry, entry.request, strict=strict)
    else:
        read_asked(entry, strict=strict)


_new = FrameEntry.__new__


def lazy_entry(
    capture: str, number: int, flow: str, time_ns: int | None, direction: Direction, body: bytes,
    head: tuple[int | None, int | None, int | None], request: FrameEntry | None, packet: int | None,
    connection: TcpConnection | None, strict: bool,
) -> FrameEntry:  # fmt: skip
    """The entry of a frame of this API, version and correlation id.

    request: a response's; None for a request, which has at least 8 bytes. Not for an ApiVersions response,
    whose body may be of another version.
    """
    entry: FrameEntry = _new(StrictLazyEntry if strict else LazyEntry)
    entry.capture = capture
    entry.number = number
    entry.flow = flow
    entry.time_ns = time_ns
    entry.direction = direction
    entry.body = body
    entry.api_key, version, entry.correlation_id = head
    entry.api_version = entry.body_version = version
    entry.request = request
    entry.token = False
    entry.mechanism = None
    entry.dialect = KAFKA
    entry.call = None
    entry.released = 0
    entry.packet = entry.first_packet = packet
    entry.connection = connection
    entry.text = None
    return entry
