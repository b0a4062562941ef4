"""Real frames: construct = compiled Python = native = interpreter, both ways, byte for byte."""

from __future__ import annotations

import functools

import pytest

from coordwire.capture.entries import FrameEntry
from coordwire.capture.reader import Capture
from coordwire.errors import DecodeError
from coordwire.frames import encode_request, encode_response, read_request, read_response
from coordwire.messages.headers import RequestHeader
from tests.conformance.engines import check_bytes
from tests.recorded import CAPTURES, DATA, RECORDINGS, message_of, open_capture

SHORT = [path.name for path in CAPTURES]
PATHS = {path.name: path for path in (*CAPTURES, *RECORDINGS)}

OTHERS = {
    "drafts": "the seed documents' designs, simulated",
    "engines": "damaged",
    "secrets": "damaged",
    "zookeeper": "ZooKeeper's protocol",
}
"""Folders whose captures are no conversation between a client of Kafka and a broker."""

every_capture = pytest.mark.parametrize(
    "name", [*SHORT, *(pytest.param(path.name, marks=pytest.mark.slow) for path in RECORDINGS)]
)


@functools.cache
def frames(name: str) -> list[FrameEntry]:
    with open_capture(PATHS[name]) as stream:
        entries = list(Capture(stream, name, strict=True).entries())
    return [entry for entry in entries if isinstance(entry, FrameEntry)]


def test_no_capture_is_left_out() -> None:
    captures = {path for path in DATA.rglob("*.pcap*") if path.relative_to(DATA).parts[0] not in OTHERS}
    assert captures == set(PATHS.values())
    assert all(any((DATA / folder).rglob("*.pcap*")) for folder in OTHERS)


@every_capture
def test_all_engines_agree_on_every_frame(name: str) -> None:
    for entry in frames(name):
        if entry.error is None:
            cls, version, wire = message_of(entry)
            assert check_bytes(cls, version, wire) == entry.message


@every_capture
def test_whole_frames_come_back(name: str) -> None:
    for entry in frames(name):
        if entry.error is not None:
            continue
        _, version, wire = message_of(entry)
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


@pytest.mark.parametrize("name", SHORT)
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
    reasons = {e.error.reason for name in SHORT for e in frames(name) if e.error is not None}
    assert any(
        "elements of at least" in reason for reason in reasons
    )  # an ApiVersions refusal of its own kind
    assert any("trailing bytes" in reason for reason in reasons)  # librdkafka's Metadata
