"""Lazy entries say what eager ones say, whatever is asked first, and decode nothing that isn't asked for."""

from __future__ import annotations

import copy
import io
import pickle
import random
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from coordwire.capture import frame_decoding, pending_requests
from coordwire.capture.body_text import body_text
from coordwire.capture.entries import Entry, FrameEntry
from coordwire.capture.formats.pcap import as_pcap
from coordwire.capture.frame_decoding import LATE, LazyEntry
from coordwire.capture.reader import Capture
from coordwire.capture.redaction.entry_secrets import is_fully_decoded, texts_account_for
from coordwire.capture.redaction.secret_fields import FIELDS
from coordwire.codec.fields import Field
from coordwire.codec.walk import fields_of
from coordwire.connection.dialect import Direction
from coordwire.frames import encode_request, encode_response
from coordwire.messages import (
    ProduceRequest,
    SaslAuthenticateRequest,
    SaslAuthenticateResponse,
    SaslHandshakeRequest,
    SaslHandshakeResponse,
)
from tests.capture.samples import CAPTURES, said, traffic, traffic_rows
from tests.capture.test_walks import damaged
from tests.conformance.engines import MESSAGES


def read(data: bytes, *, lazy: bool, strict: bool = False) -> list[Entry]:
    return list(Capture(io.BytesIO(data), "x", lazy=lazy, strict=strict).entries())


def is_empty(entry: FrameEntry) -> bool:
    """Whether an entry hasn't been decoded."""
    return isinstance(entry, LazyEntry)


def check(data: bytes, seed: object, *, strict: bool = False) -> int:
    """Ask the entries in any order, first for any of what is decoded late, or for the text; how many were
    lazy."""
    rng = random.Random(str(seed))
    eager, lazy = (read(data, lazy=way, strict=strict) for way in (False, True))
    pairs = list(zip(eager, lazy, strict=True))
    rng.shuffle(pairs)
    count = 0
    for one, other in pairs:
        if not isinstance(one, FrameEntry):
            assert one == other
            continue
        assert isinstance(other, FrameEntry)
        count += is_empty(other)
        first = rng.choice([*LATE, "text"])
        if first == "text":
            assert body_text(one) == body_text(other)
        else:
            getattr(other, first)
        assert body_text(one) == body_text(other)
        assert said(one) == said(other)
    return count


@pytest.mark.parametrize("path", CAPTURES, ids=lambda path: path.stem)
def test_a_text_and_a_message_account_for_the_same_frames(path: Path) -> None:
    data = path.read_bytes()
    rng = random.Random(path.stem)
    zeros = bytes(0 if byte > 64 and rng.random() < 0.002 else byte for byte in data[24:])
    judged = []
    for bytes_read in (data, data[:24] + zeros, *(damaged(data, rng) for _ in range(3))):
        by_text, by_message = (read(bytes_read, lazy=True) for _ in range(2))
        for one, other in zip(by_text, by_message, strict=True):
            if isinstance(one, LazyEntry) and isinstance(other, LazyEntry):
                is_plain = other.decode() and texts_account_for(other.api_key)
                judged.append(is_fully_decoded(one))
                assert judged[-1] == is_fully_decoded(other)
                assert judged[-1] or not is_plain, "what the decoder judges at once"
    assert True in judged


def filled(value: Any) -> Iterator[tuple[Any, Field]]:
    """Each text of a message and the struct that has it, after all got a value."""
    for field in fields_of(value):
        if field.struct is not None:
            inner = field.struct()
            setattr(value, field.name, [inner] if field.array else inner)
            yield from filled(inner)
        elif field.type == "string":
            setattr(value, field.name, [None, "a"] if field.array else "a")
            yield value, field


def test_no_message_accounts_for_a_text_with_a_zero() -> None:
    """Any text of any message, but for those that are their user's own and APIs that have secrets."""
    with_secrets = {name.removesuffix("Request").removesuffix("Response") for name in FIELDS}
    count = 0
    for cls in MESSAGES:
        name = cls.__name__.removesuffix("Request").removesuffix("Response")
        message = cls()
        direction: Direction = "request" if cls.direction == "request" else "response"
        entry = FrameEntry(
            capture="x", number=1, flow="", time_ns=0, direction=direction, body=b"",
            api_key=cls.api_key, message=message,
        )  # fmt: skip
        texts = [] if name in with_secrets else list(filled(message))
        is_whole = is_fully_decoded(entry)
        for owner, field in texts:
            text = getattr(owner, field.name)
            setattr(owner, field.name, [None, "a\0"] if field.array else "a\0")
            own = field.name in ("metadata", "committed_metadata")
            assert is_fully_decoded(entry) is (is_whole and own), (name, field.name)
            setattr(owner, field.name, text)
        count += len(texts)
    assert count > 300


@pytest.mark.parametrize("path", CAPTURES, ids=lambda path: path.stem)
def test_lazy_entries_of_captures(path: Path) -> None:
    data = path.read_bytes()
    check(data, path)
    if len(data) < 60_000:
        check(data, path, strict=True)
    check(damaged(data, random.Random(path.name)), path)


def broken(chance: random.Random, frame: bytes) -> bytes:
    """A frame with a byte of its message changed, its size and correlation id kept."""
    changed = bytearray(frame)
    if len(frame) > 12 and chance.random() < 0.3:
        changed[chance.randrange(12, len(frame))] = chance.randrange(256)
    return bytes(changed)


@settings(deadline=None, max_examples=60)
@given(seed=st.integers(0, 1 << 32), strict=st.booleans())
def test_lazy_entries_of_frames_that_are_refused(seed: int, strict: bool) -> None:
    chance = random.Random(seed)
    frames = [(n, c, back, broken(chance, data)) for n, c, back, data in traffic_rows(20)]
    check(as_pcap(frames), seed, strict=strict)


def test_requests_beyond_the_budget(monkeypatch: pytest.MonkeyPatch) -> None:
    """They are measured, reduced and forgotten as if they had been decoded."""
    monkeypatch.setattr(pending_requests.PendingRequests.__init__, "__defaults__", (9_000,))
    data = traffic(120)
    entries = [one for one in read(data, lazy=False) if isinstance(one, FrameEntry)]
    assert any(one.request is not None and one.request.released for one in entries)
    assert check(data, "budget")


def test_tokens_mechanisms_and_requests_that_nobody_answers(monkeypatch: pytest.MonkeyPatch) -> None:
    """What a request says of the frames after it counts, lazy or not."""

    def rows(connection: int, version: int) -> Iterator[tuple[int, int, bool, bytes]]:
        asked = SaslHandshakeRequest(mechanism=f"SCRAM-SHA-{connection}")
        yield 1, connection, False, encode_request(asked, version=version, correlation_id=1)
        answer = SaslHandshakeResponse(mechanisms=["PLAIN"])
        yield 2, connection, True, encode_response(answer, version=version, correlation_id=1)
        for number in range(3):
            content = b"token" * (1 if number == 0 else 4)  # also one shorter than what a request begins with
            token = len(content).to_bytes(4) + content
            wrapped = SaslAuthenticateRequest(auth_bytes=b"token")
            later = encode_request(wrapped, version=1, correlation_id=number)
            yield 3, connection, False, later if version else token
            later = encode_response(SaslAuthenticateResponse(), version=1, correlation_id=number)
            yield 4, connection, True, later if version else token
        for number in range(20):
            produce = ProduceRequest(acks=0, timeout_ms=number)
            yield 5, connection, False, encode_request(produce, version=9, correlation_id=number)
        yield from ((6, connection, back, data) for _, _, back, data in list(traffic_rows(30)))

    data = as_pcap([*rows(1, 0), *rows(2, 1)])
    entries = [one for one in read(data, lazy=True) if isinstance(one, FrameEntry)]
    assert sum(one.token for one in entries) == 6
    assert {one.mechanism for one in entries} == {None, "SCRAM-SHA-1", "SCRAM-SHA-2"}
    assert check(data, "tokens")
    monkeypatch.setattr(pending_requests.PendingRequests.__init__, "__defaults__", (5_000,))
    entries = [one for one in read(data, lazy=False) if isinstance(one, FrameEntry)]
    assert any(one.request is not None and one.request.released for one in entries)
    assert sum(one.token for one in entries) == 6
    assert {one.mechanism for one in entries} == {None, "SCRAM-SHA-1", "SCRAM-SHA-2"}
    check(data, "tokens")


def test_nothing_is_decoded_that_is_not_asked_for(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_: object, **__: object) -> object:
        raise AssertionError("decoded")

    entries = [one for one in read(traffic(300), lazy=True) if isinstance(one, FrameEntry)]
    for name in ("read_request", "read_response"):
        monkeypatch.setattr(frame_decoding, name, refuse)
    assert sum(map(is_empty, entries)) > len(entries) - 20
    for one in filter(is_empty, entries):
        assert one.size
        assert one.latency_ns is None or one.latency_ns >= 0
        body_text(one)


def test_what_is_asked_of_a_lazy_entry() -> None:
    entries = [one for one in read(traffic(20), lazy=True) if isinstance(one, FrameEntry)]
    lazy = [one for one in entries if is_empty(one)]
    with pytest.raises(AttributeError, match="object has no attribute 'massage'"):
        getattr(lazy[0], "massage")  # noqa: B009
    for one in lazy[:3]:
        for other in (copy.copy(one), pickle.loads(pickle.dumps(one)), copy.deepcopy(one)):
            assert other == one
    assert lazy[0].reduced().client_id == lazy[0].client_id
    assert "Heartbeat v4 request" in repr(lazy[1])
    assert lazy[3] == lazy[3]
