"""Real frames: construct = compiled Python = native = interpreter, both ways, byte for byte."""

from __future__ import annotations

import functools
from pathlib import Path

import pytest

from coordwire.capture.entries import FrameEntry
from coordwire.capture.reader import Capture
from coordwire.codec import Message
from coordwire.codec.interpreter.decoder import Reader
from coordwire.codec.interpreter.encoder import Writer
from coordwire.errors import DecodeError
from coordwire.frames import encode_request, encode_response, read_request, read_response
from coordwire.messages import find_message
from coordwire.messages.headers import RequestHeader
from coordwire.versions import header_version
from schemas._generate.walk import modules
from schemas.vocabulary import Message as Declaration
from tests.compiled import compiled_decoder, compiled_encoder
from tests.conformance.engines import native_decode, native_encode

DATA = Path(__file__).parent.parent / "data" / "captures"
CAPTURES = sorted(path.name for path in DATA.glob("*.pcap"))


@functools.cache
def declarations() -> dict[str, Declaration]:
    return {row.name: row.message for module in modules() for row in module.messages if row.message}


@functools.cache
def frames(name: str) -> list[FrameEntry]:
    with (DATA / name).open("rb") as stream:
        entries = list(Capture(stream, name, strict=True).entries())
    return [entry for entry in entries if isinstance(entry, FrameEntry)]


def body_of(entry: FrameEntry) -> tuple[type[Message], bytes, int]:
    """The message's class, its bytes and their version."""
    assert entry.api_key is not None
    assert entry.api_version is not None
    assert entry.body_version is not None
    assert entry.header is not None
    kind = header_version(entry.api_key, entry.api_version, entry.direction)
    cls = find_message(entry.api_key, entry.direction)
    return cls, entry.body[len(entry.header.encode(version=kind)) :], entry.body_version


@pytest.mark.parametrize("name", CAPTURES)
def test_all_engines_agree_on_every_frame(name: str) -> None:
    for entry in frames(name):
        if entry.error is not None:
            continue
        cls, wire, version = body_of(entry)
        message = cls.decode(wire, version=version)
        assert message == entry.message
        assert Reader(wire, 0, version).message(cls) == message
        fast, end = compiled_decoder(cls, version)(wire, 0, 10**6, 10**9)
        assert (fast, end) == (message, len(wire))
        assert native_decode(cls, version, wire) == message
        data = message.encode(version=version)
        assert compiled_encoder(cls, version)(message) == data
        assert native_encode(cls, version, message) == data
        assert Writer(version).message(message) == data
        declaration = declarations()[cls.__name__]
        assert declaration.build(declaration.parse(wire, version=version), version=version) == data
        assert declaration.parse(data, version=version) == declaration.parse(wire, version=version)


@pytest.mark.parametrize("name", CAPTURES)
def test_whole_frames_come_back(name: str) -> None:
    for entry in frames(name):
        if entry.error is not None:
            continue
        _, wire, version = body_of(entry)
        assert entry.message is not None
        assert entry.correlation_id is not None
        assert entry.api_version is not None
        if entry.message.encode(version=version) != wire:
            continue  # a broker that writes tagged fields at their default
        if isinstance(entry.header, RequestHeader):
            raw = encode_request(
                entry.message,
                version=version,
                correlation_id=entry.correlation_id,
                client_id=entry.header.client_id,
                header_tags=entry.header.tags,
            )
        else:
            raw = encode_response(entry.message, version=version, correlation_id=entry.correlation_id)
        assert raw[4:] == entry.body


def read(entry: FrameEntry, cut: int) -> object:
    """Decode the first bytes of a frame."""
    if entry.direction == "request":
        return read_request(entry.body[:cut])
    assert entry.api_key is not None
    assert entry.api_version is not None
    return read_response(entry.body[:cut], entry.api_key, entry.api_version)


@pytest.mark.parametrize("name", CAPTURES)
def test_every_prefix_of_a_sample_is_refused(name: str) -> None:
    seen: set[tuple[object, ...]] = set()
    for entry in frames(name):
        kind = (entry.direction, entry.api_key, entry.api_version)
        if kind in seen or entry.error is not None or entry.size > 600:
            continue
        seen.add(kind)
        for cut in range(entry.size):
            with pytest.raises(DecodeError) as error_info:
                read(entry, cut)
            assert 0 <= error_info.value.position <= cut
            assert error_info.value.reason
    assert seen


def test_the_sample_has_what_is_irregular_too() -> None:
    reasons = {e.error.reason for name in CAPTURES for e in frames(name) if e.error is not None}
    assert any(
        "elements of at least" in reason for reason in reasons
    )  # an ApiVersions refusal of its own kind
    assert any("trailing bytes" in reason for reason in reasons)  # librdkafka's Metadata
