"""The search of a connection that is not known yet: each place once, each claim when it is whole."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from coordwire.capture import client_search, framing
from coordwire.capture.client_search import PIECE, PIECES, WINDOW, Backlog, Finder
from coordwire.capture.flows import Chunk, Flow, Gap, NetworkAddress
from coordwire.capture.framing import SPARE, TRIES
from coordwire.limits import limits

CLIENT, BROKER = NetworkAddress("10.0.0.1", 53412), NetworkAddress("10.0.0.2", 9092)
FLOW = Flow(CLIENT, BROKER)
HEAD = 4


@pytest.fixture(autouse=True)
def any_size() -> Iterator[None]:
    """Places are asked about whose first byte is a letter's."""
    with limits(frame=(1 << 31) - 1):
        yield


class Talk:
    """Takes a letter for the beginning of a frame as long as its number says, and a capital for a true one.

    asked: the places that it was asked about; tried: the (at, end) that it was to decode.
    """

    head = HEAD

    def __init__(self) -> None:
        self.asked: list[int] = []
        self.tried: list[tuple[int, int]] = []

    def claims(self, buffer: bytearray, at: int) -> int:
        self.asked.append(at)
        letter = bytes(buffer[at : at + 1])
        return at + int(buffer[at + 1 : at + 4]) if letter.isalpha() else -1

    def sender(self, buffer: bytearray, at: int, end: int) -> str | None:
        self.tried.append((at, end))
        return f"sender {chr(buffer[at])}" if bytes(buffer[at : at + 1]).isupper() else None


def finder() -> tuple[Any, Talk]:
    conversation = Talk()
    return Finder((conversation,)), conversation  # type: ignore[arg-type]


def feed(search: Any, data: bytes) -> str | None:
    search.buffer += data
    match = search.search()
    return None if match is None else match[1]


def test_each_place_is_asked_about_once() -> None:
    search, conversation = finder()
    assert feed(search, b"...") is None
    assert conversation.asked == []
    assert feed(search, b".") is None
    assert conversation.asked == [0]
    assert feed(search, b"") is None
    assert feed(search, b".....") is None
    assert conversation.asked == [0, 1, 2, 3, 4, 5]
    assert conversation.tried == []


def test_only_places_are_asked_about_where_a_size_can_be() -> None:
    search, conversation = finder()
    with limits(frame=ord("b") << 24 | 1):
        assert feed(search, b"a000b000c000d000") is None
    assert [place for place in conversation.asked if place % 4 == 0] == [0, 4]


def test_a_frame_that_is_whole_is_tried_at_once() -> None:
    search, conversation = finder()
    assert feed(search, b".a006..B007...") == "sender B"
    assert conversation.tried == [(1, 7), (7, 14)]
    assert conversation.asked == list(range(8))


def test_a_frame_that_has_begun_is_tried_when_it_is_whole() -> None:
    search, conversation = finder()
    assert feed(search, b"a012") is None
    assert feed(search, b".......") is None
    assert conversation.tried == []
    assert feed(search, b".") is None
    assert conversation.tried == [(0, 12)]
    assert feed(search, b"....") is None
    assert conversation.tried == [(0, 12)]


def test_frames_that_become_whole_together_are_tried_in_their_order() -> None:
    search, conversation = finder()
    feed(search, b"a040b020c030D024")
    assert conversation.tried == []
    assert feed(search, b"." * 24) == "sender D"
    assert conversation.tried == [(0, 40), (4, 24), (8, 38), (12, 36)]


def test_the_first_true_frame_shows_who_sends() -> None:
    search, conversation = finder()
    feed(search, b"a020B012C010")
    assert feed(search, b"." * 12) == "sender B"
    assert conversation.tried == [(0, 20), (4, 16)]


def test_lost_bytes_end_what_was_begun() -> None:
    search, conversation = finder()
    feed(search, b"..a010..")
    search.lose()
    assert search.buffer == b""
    assert feed(search, b"b004" + b"." * 20) is None
    assert conversation.tried == [(0, 4)]
    assert conversation.asked == [*range(5), *range(21)]


def test_so_many_beginnings_are_remembered(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(client_search, "PLACES", 2)
    search, conversation = finder()
    feed(search, b"a020b020c020d004")
    assert conversation.tried == [(12, 16)]
    feed(search, b"." * 20)
    assert conversation.tried == [(12, 16), (0, 20), (4, 24)]
    feed(search, b"e020" * 3)
    feed(search, b"." * 20)
    assert conversation.tried[3:] == [(36, 56), (40, 60)]


@pytest.mark.parametrize("spare", [0, 1000])
def test_what_is_tried_is_bounded_by_what_was_searched(monkeypatch: pytest.MonkeyPatch, spare: int) -> None:
    monkeypatch.setattr(framing, "SPARE", spare)
    search, conversation = finder()
    feed(search, b"a010......" * 100)
    expected, remaining = [], spare
    for at in range(1000 - HEAD + 1):
        remaining += TRIES
        if at % 10 == 0 and remaining >= 10:
            remaining -= 10
            expected.append((at, at + 10))
    assert conversation.tried == expected
    assert SPARE > 1000


# --- what is held


def backlog() -> Backlog:
    return Backlog((Talk(),))  # type: ignore[arg-type]


def chunk(data: bytes, flow: Flow = FLOW) -> Chunk:
    return Chunk(flow, 0, 0, data)


def test_what_is_held_is_counted() -> None:
    holds = backlog()
    assert (holds.size, holds.cost, holds.events) == (0, 0, [])
    lost = Gap(FLOW, 0, 8, 5, "lost")
    chunks = [chunk(b"abcdef"), chunk(b"gh"), chunk(b"xyz", FLOW.reverse)]
    finders = [holds.add(event) for event in chunks]
    assert finders[0] is finders[1] is not finders[2]
    assert [bytes(finder.buffer) for finder in finders] == [b"abcdefgh", b"abcdefgh", b"xyz"]
    assert (holds.head(CLIENT), holds.head(BROKER), holds.head(NetworkAddress("", 1))) == (
        b"abcdefgh",
        b"xyz",
        b"",
    )
    assert (holds.size, holds.cost) == (11, 3 * PIECE + 22)
    assert holds.add(lost) is finders[0]
    assert (holds.head(CLIENT), holds.head(BROKER)) == (b"", b"xyz")
    assert (holds.size, holds.cost) == (11, 4 * PIECE + 22)
    assert holds.events == [*chunks, lost]
    holds.finders[CLIENT].buffer += b"a004"
    assert holds.finders[CLIENT].search() is None


def test_what_is_held_is_bounded_in_bytes() -> None:
    holds = backlog()
    holds.add(chunk(bytes(WINDOW)))
    assert not holds.is_full
    holds.add(chunk(b"."))
    assert holds.is_full


def test_what_is_held_is_bounded_in_pieces() -> None:
    holds = backlog()
    for _ in range(PIECES):
        holds.add(chunk(b""))
    assert not holds.is_full
    holds.add(chunk(b""))
    assert holds.is_full
