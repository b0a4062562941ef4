"""Shares of a capture: together they are the whole, number by number, and none decodes what isn't its own."""

from __future__ import annotations

import io
import random
import struct
from collections import Counter
from collections.abc import Iterator
from dataclasses import fields
from pathlib import Path

import pytest

from coordwire.capture import conversation, frame_decoding, pending_requests
from coordwire.capture import share as share_module
from coordwire.capture.entries import Entry, FrameEntry
from coordwire.capture.formats.pcap import as_pcap
from coordwire.capture.reader import Capture
from coordwire.capture.share import Share
from coordwire.errors import UnreadableRange
from coordwire.frames import encode_request, encode_response
from coordwire.messages import (
    HeartbeatRequest,
    HeartbeatResponse,
    ProduceRequest,
    SaslAuthenticateRequest,
    SaslAuthenticateResponse,
    SaslHandshakeRequest,
    SaslHandshakeResponse,
)
from tests.capture.test_walks import damaged

HIDDEN = ("error", "request", "text")
"""Fields of an entry that are compared by what they say, or that are made when they are asked for."""

CAPTURES = sorted((Path(__file__).parents[1] / "data" / "captures").glob("*.pcap"))


@pytest.fixture(autouse=True)
def small_stripes(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(share_module, "STRIPE", 300)


def read(data: bytes, share: Share | None = None) -> list[Entry]:
    return list(Capture(io.BytesIO(data), "x", share=share).entries())


def said(entry: FrameEntry) -> tuple[object, ...]:
    """All that an entry says; of its error the words, as two errors are never equal."""
    error = entry.error
    shown = None if error is None else (type(error), str(error), error.position, error.path)
    asked = None if entry.request is None else said(entry.request)
    values = [getattr(entry, one.name) for one in fields(entry) if one.name not in HIDDEN]
    return shown, asked, *values


def split(entries: list[Entry]) -> tuple[list[tuple[object, ...]], list[UnreadableRange]]:
    frames = sorted((one for one in entries if isinstance(one, FrameEntry)), key=lambda one: one.number)
    return [said(one) for one in frames], [one for one in entries if isinstance(one, UnreadableRange)]


def check(data: bytes, counts: tuple[int, ...] = (1, 2, 3, 7)) -> None:
    expected = read(data)
    for count in counts:
        stories = count in (2, 7)
        owners = Share(0, count, stories=stories)
        dealt = [one for one in expected if isinstance(one, FrameEntry) and owners.takes(one.size)]
        shares = [read(data, Share(index, count, stories=stories)) for index in range(count)]
        assert split(shares[0])[0] == split([*dealt])[0]
        assert not any(split(one)[1] for one in shares[1:])
        assert split([one for share in shares for one in share]) == split(expected)


@pytest.mark.parametrize("path", CAPTURES, ids=lambda path: path.stem)
def test_shares_are_the_whole(path: Path) -> None:
    data = path.read_bytes()
    check(data, (1, 2, 3, 7) if len(data) < 60_000 else (3,))
    check(damaged(data, random.Random(path.name)), (2,))


@pytest.mark.parametrize("lazy", [False, True])
def test_answers_are_shared(lazy: bool) -> None:
    """Each answer of the APIs that were named is in the share or given to it, in order; and so are ranges."""
    keys = frozenset((3, 12, 18))
    whole = next(path for path in CAPTURES if "group-range" in path.name).read_bytes()
    for data in (whole, damaged(whole, random.Random(3))):
        expected = [
            said(one)
            for one in read(data)
            if isinstance(one, FrameEntry) and one.direction == "response" and one.api_key in keys
        ]
        assert len(expected) > 9
        ranges = []
        for index in range(3):
            share, answers = Share(index, 3, in_order=True), list[tuple[object, ...]]()
            share.share_answer, share.shared_keys = lambda entry, to=answers: to.append(said(entry)), keys
            for one in Capture(io.BytesIO(data), "x", share=share, lazy=lazy).entries():
                if isinstance(one, UnreadableRange):
                    ranges.append(one)
                elif one.direction == "response" and one.api_key in keys:
                    answers.append(said(one))
            assert answers == expected
        assert Counter(map(repr, ranges)) == Counter(map(repr, split(read(data))[1]))


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


def test_requests_beyond_the_budget(monkeypatch: pytest.MonkeyPatch) -> None:
    """They are measured, reduced and forgotten as in the whole, though most aren't decoded before."""
    monkeypatch.setattr(pending_requests, "BUDGET", 9_000)
    defaults = pending_requests.PendingRequests.__init__.__defaults__
    monkeypatch.setattr(pending_requests.PendingRequests.__init__, "__defaults__", (9_000,))
    data = traffic(120)
    entries = [one for one in read(data) if isinstance(one, FrameEntry)]
    assert any(one.request is not None and one.request.released for one in entries)
    check(data)
    assert defaults == (64 << 20,)


def test_tokens_mechanisms_and_requests_that_nobody_answers(monkeypatch: pytest.MonkeyPatch) -> None:
    """What a request says of the frames after it counts, whoever's it is."""
    monkeypatch.setattr(pending_requests.PendingRequests.__init__, "__defaults__", (5_000,))

    def rows(connection: int, version: int) -> Iterator[tuple[int, int, bool, bytes]]:
        asked = SaslHandshakeRequest(mechanism=f"SCRAM-SHA-{connection}")
        yield 1, connection, False, encode_request(asked, version=version, correlation_id=1)
        answer = SaslHandshakeResponse(mechanisms=["PLAIN"])
        yield 2, connection, True, encode_response(answer, version=version, correlation_id=1)
        for number in range(3):
            token = struct.pack(">i", 5) + b"token"
            wrapped = SaslAuthenticateRequest(auth_bytes=b"token")
            later = encode_request(wrapped, version=1, correlation_id=number)
            yield 3, connection, False, later if version else token
            later = encode_response(SaslAuthenticateResponse(), version=1, correlation_id=number)
            yield 4, connection, True, later if version else token
        for number in range(20):
            produce = ProduceRequest(acks=0, timeout_ms=number)
            yield 5, connection, False, encode_request(produce, version=9, correlation_id=number)
        yield from ((6, connection, back, data) for _, _, back, data in list(traffic_rows(30)))

    made = [*rows(1, 0), *rows(2, 1)]
    entries = [one for one in read(as_pcap(made)) if isinstance(one, FrameEntry)]
    assert sum(one.token for one in entries) == 6
    assert {one.mechanism for one in entries} == {None, "SCRAM-SHA-1", "SCRAM-SHA-2"}
    check(as_pcap(made))


def test_what_is_not_of_the_share_is_not_decoded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(share_module, "STRIPE", 20_000)
    data, decoded = traffic(900), [0]
    for module, name in (
        (conversation, "read_request"), (frame_decoding, "read_request"), (frame_decoding, "read_response"),
    ):  # fmt: skip
        real = getattr(module, name)

        def counted(*arguments: object, real=real, **named: object) -> object:  # type: ignore[no-untyped-def]
            decoded[0] += 1
            return real(*arguments, **named)

        monkeypatch.setattr(module, name, counted)
    total = len(read(data))
    assert decoded[0] == total
    for count in (2, 4):
        decoded[0] = 0
        sizes = [len(read(data, Share(index, count))) for index in range(count)]
        assert sum(sizes) == total
        assert max(sizes) < 1.2 * min(sizes)
        # Those too whose answer is in another share than they are.
        assert total <= decoded[0] < 1.3 * total


def test_hex_and_frames_have_shares_too() -> None:
    frames = [
        encode_request(HeartbeatRequest(group_id="g" * 90), version=4, correlation_id=n) for n in range(99)
    ]
    for data in (b"".join(frames), b"\n".join(frame.hex().encode() for frame in frames)):
        check(data)


def test_the_first_share_is_empty_where_stories_are_made() -> None:
    for count, expected in ((1, 100), (2, 0), (3, 0)):
        share = Share(0, count, stories=True)
        assert sum(share.takes(share_module.STRIPE - share_module.FRAME) for _ in range(100)) == expected


def test_frames_are_dealt_out_in_stripes(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(share_module, "STRIPE", 1_000)
    rng = random.Random(5)
    for count in (1, 2, 3, 7):
        sizes = [rng.choice((0, 1, 744, 1_744, 5_000, rng.randrange(3_000))) for _ in range(300)]
        for index in range(count):
            share, dealt = Share(index, count), 0
            for size in sizes:
                expected = dealt // 1_000 % count == index
                assert share.is_next == expected
                assert share.takes(size) == expected
                dealt += share_module.FRAME + size


@pytest.mark.parametrize(("index", "count"), [(-1, 2), (2, 2), (0, 0)])
def test_no_such_share(index: int, count: int) -> None:
    with pytest.raises(ValueError, match="expected a share from 0"):
        Share(index, count)
