"""What is withheld of a frame is found once, and where a look suffices as a closer one finds it."""

from __future__ import annotations

import io
import random
from collections.abc import Iterator
from dataclasses import replace
from itertools import product
from pathlib import Path
from typing import Any
from uuid import UUID

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from coordwire._speedups import native
from coordwire.capture.body_text import body_text
from coordwire.capture.entries import FrameEntry
from coordwire.capture.formats.pcap import as_pcap
from coordwire.capture.plain_lines import PlainFrames, PlainJsonLines
from coordwire.capture.reader import Capture
from coordwire.capture.redaction import entry_secrets
from coordwire.capture.redaction.entry_secrets import (
    NOTHING,
    Withheld,
    has_nothing_to_redact,
    is_always_harmless,
    withheld,
)
from coordwire.capture.redaction.secret_fields import METADATA_TOPIC_ID, unknown_tags
from coordwire.codec import Message
from coordwire.codec.walk import elements, fields_of
from coordwire.frames import encode_request, encode_response
from coordwire.messages import (
    FetchRequest,
    FetchResponse,
    HeartbeatRequest,
    HeartbeatResponse,
    SaslAuthenticateRequest,
    SaslAuthenticateResponse,
)
from coordwire.messages.fetch import FetchableTopicResponse, FetchTopic, PartitionData
from coordwire.testing import strategies
from tests.capture.samples import CAPTURES, traffic_rows
from tests.capture.test_lazy import broken
from tests.capture.test_walks import damaged
from tests.conformance.engines import MESSAGES

needs_native = pytest.mark.skipif(native is None, reason="the native engine isn't built, or Python is forced")


def frames(data: bytes, *, strict: bool = False, lazy: bool = True) -> list[FrameEntry]:
    capture = Capture(io.BytesIO(data), "x", strict=strict, lazy=lazy)
    return [entry for entry in capture.entries() if isinstance(entry, FrameEntry)]


def closely(entry: FrameEntry) -> Withheld:
    """`withheld` without a look at the text, and without what the look at a short frame saves."""
    client = entry.client_id is not None and not entry_secrets._is_trusted(entry.request or entry)
    accounted = entry_secrets.is_fully_decoded(entry)
    paths = tuple(entry_secrets._paths(entry)) if accounted else ()
    if not accounted or (paths and entry.error is not None):
        raw = not entry_secrets._is_short(entry)
        return Withheld((), raw and entry.message is not None, raw, raw, client)
    tags = entry.header is not None and any(len(tag) >= 4 for tag in (entry.header.tags or {}).values())
    return Withheld(paths, False, bool(paths) or tags or client, tags, client)


def check(data: bytes, *, strict: bool = False, lazy: bool = True) -> set[Withheld]:
    """Compare the verdicts on frames with those of a closer look, and with what is plain."""
    entries, examined, judged_frames = (frames(data, strict=strict, lazy=lazy) for _ in range(3))
    flags = PlainFrames(show_secrets=False).flags(judged_frames)
    verdicts = set()
    for entry, closer, judged_entry, flag in zip(entries, examined, judged_frames, flags, strict=True):
        verdict = withheld(entry)
        assert verdict == closely(closer) == withheld(judged_entry)
        assert flag == (body_text(closer)[0] is not None and verdict == NOTHING)
        assert has_nothing_to_redact(entry) == (verdict == NOTHING)
        verdicts.add(verdict)
    return verdicts


@pytest.mark.parametrize("path", CAPTURES, ids=lambda path: path.stem)
def test_verdicts_on_captures(path: Path) -> None:
    data = path.read_bytes()
    chance = random.Random(path.stem)
    check(data)
    check(data, lazy=False)
    for _ in range(3):
        check(damaged(data, chance), strict=chance.random() < 0.3)


@pytest.mark.parametrize("seed", range(10))
def test_verdicts_on_broken_frames(seed: int) -> None:
    chance = random.Random(seed)
    check(as_pcap((n, c, back, broken(chance, data)) for n, c, back, data in traffic_rows(40)))


DAMAGED = "__clusxer_mexadata", "_xcluster_mexadata", "_xclusxer_metadata"
"""Names of the metadata log of which each has one of the parts that are looked for."""

NAMES = "t", "__cluster_metadata", *DAMAGED
IDS = UUID(int=0x0123456789ABCDEF << 64), METADATA_TOPIC_ID, *(UUID(int=n << 80) for n in (3, 4, 5))
RECORDS = b"not records" * 20


@pytest.mark.parametrize("filler", [0, 0x01010101])
@pytest.mark.parametrize("version", [4, 12, 13, 16])
def test_answers_to_a_fetch(version: int, filler: int) -> None:
    """Of the metadata log and of others, with records and without. Its name and id may be damaged where a
    fetch of it has them, which is in the first topic."""

    def topic(at: int) -> dict[str, Any]:
        return {"topic": NAMES[at]} if version < 13 else {"topic_id": IDS[at]}

    def answered(at: int, records: bytes | None) -> FetchableTopicResponse:
        part = PartitionData(high_watermark=-1, last_stable_offset=-1, log_start_offset=-1, records=records)
        return FetchableTopicResponse(partitions=[part], **topic(at))

    requested: list[list[int]] = [[], [0], [1], [0, 1]]
    first = product(range(len(NAMES)), (None, b"", RECORDS))
    second: list[list[tuple[int, bytes]]] = [[], [(0, RECORDS)], [(1, RECORDS)], [(1, b"")]]
    cases = [(ats, [answer, *more]) for ats, answer, more in product(requested, first, second)]
    rows = []
    for number, (ats, topics) in enumerate([*cases, ([1], [])]):
        request = FetchRequest(max_wait_ms=filler, topics=[FetchTopic(**topic(at)) for at in ats])
        response = FetchResponse(
            throttle_time_ms=filler,
            session_id=0 if version < 7 else filler,
            responses=[answered(at, records) for at, records in topics],
        )
        asking = encode_request(request, version=version, correlation_id=filler + number)
        answer = encode_response(response, version=version, correlation_id=filler + number)
        rows += [(2 * number, 0, False, asking), (2 * number + 1, 0, True, answer)]
    data = as_pcap(rows)
    check(data)
    verdicts = map(withheld, frames(data)[1::2])
    for (ats, topics), verdict in zip(cases, verdicts, strict=False):
        assert bool(verdict.paths) == any(records for at, records in topics if at or 1 in ats)


@needs_native
def test_an_answer_without_records_is_not_decoded() -> None:
    """A look suffices, though zeros are where an answer has the metadata log's id."""
    rows = [
        (0, 0, False, encode_request(FetchRequest(), version=12, correlation_id=0)),
        (1, 0, True, encode_response(FetchResponse(), version=12, correlation_id=0)),
    ]
    request, response = frames(as_pcap(rows))
    kinds = type(request), type(response)
    assert PlainFrames(show_secrets=False).flags([request, response]) == [True, True]
    assert (type(request), type(response)) == kinds
    assert response.hidden is NOTHING
    assert is_always_harmless(FetchRequest.api_key, "request")
    assert not is_always_harmless(FetchRequest.api_key, "response")


@needs_native
def test_texts_with_zeros_are_looked_at_closely() -> None:
    """Of the frame itself, and of the request that it answers."""
    plain, zero = (
        encode_request(HeartbeatRequest(group_id=group), version=4, correlation_id=1, client_id="c")
        for group in ("g", "g\0")
    )
    answer = encode_response(HeartbeatResponse(), version=4, correlation_id=1)
    for request, flag in ((plain, True), (zero, False)):
        data = as_pcap([(0, 0, False, request), (1, 0, True, answer)])
        assert PlainFrames(show_secrets=False).flags(frames(data)) == [flag, flag]
        line = PlainJsonLines(show_secrets=False).line
        assert [line(entry, 6) is not None for entry in frames(data)] == [flag, flag]
        assert [withheld(entry).client for entry in frames(data)] == [not flag, not flag]


def judged(request: bytes, response: bytes, *, strict: bool = False) -> list[Withheld]:
    data = as_pcap([(0, 0, False, request), (1, 0, True, response)])
    check(data, strict=strict)
    return list(map(withheld, frames(data, strict=strict)))


def test_short_frames() -> None:
    """A refused frame that is too short for a secret is shown, but for the client of a request that may not
    be what was sent, and for tagged fields of its header."""
    request = encode_request(HeartbeatRequest(), version=4, correlation_id=1, client_id="client")
    short = b"\0\0\0\x06\0\0\0\x01\0\0"  # a correlation id, no tagged fields, part of the throttle time
    assert judged(request, short) == [NOTHING, NOTHING]
    damaged_request = request[:3] + bytes([request[3] + 4]) + request[4:] + b"more"
    assert judged(damaged_request, short)[1] == Withheld(client=True)
    tags = {0: bytes(4)}
    answer = encode_response(HeartbeatResponse(), version=4, correlation_id=1, header_tags=tags)
    stray = answer[:3] + bytes([answer[3] + 1]) + answer[4:] + b"\0"
    assert judged(request, stray, strict=True)[1] == Withheld(raw=True, tags=True)
    signed = encode_request(SaslAuthenticateRequest(auth_bytes=b"a"), version=2, correlation_id=1)
    token = encode_response(SaslAuthenticateResponse(auth_bytes=b"a"), version=2, correlation_id=1)
    assert judged(signed, token)[1] == Withheld(("auth_bytes",), raw=True)
    tagged = encode_response(HeartbeatResponse(tags={9: b"abcd"}), version=4, correlation_id=1)
    assert judged(request, tagged)[1] == Withheld(("tags[9]",), raw=True)


def tags_in(value: Any, path: str = "") -> Iterator[tuple[str, int]]:
    """The paths of all unknown tagged fields, and their sizes."""
    for tag, data in (value.tags or {}).items():
        yield f"{path}tags[{tag}]", len(data)
    for field in fields_of(value):
        if field.struct is not None:
            for place, element in elements(f"{path}{field.name}", field, getattr(value, field.name)):
                yield from tags_in(element, f"{place}.")


@settings(max_examples=150)
@given(st.data())
def test_unknown_tagged_fields_are_found(data: st.DataObject) -> None:
    cls: type[Message] = data.draw(st.sampled_from(MESSAGES))
    version = data.draw(st.sampled_from(list(cls.versions)))
    message = data.draw(strategies.messages(cls, version=version))
    for least in (0, 4):
        expected = [path for path, size in tags_in(message) if size >= least]
        assert list(unknown_tags(message, least=least)) == expected


def test_a_verdict_is_found_once(monkeypatch: pytest.MonkeyPatch) -> None:
    data = CAPTURES[0].read_bytes()
    entries = frames(data)
    verdicts = list(map(withheld, entries))
    for name in ("is_harmless", "_examine"):
        monkeypatch.setattr(entry_secrets, name, None)
    assert all(withheld(entry) is verdict for entry, verdict in zip(entries, verdicts, strict=True))
    assert list(map(has_nothing_to_redact, entries)) == [verdict == NOTHING for verdict in verdicts]
    monkeypatch.undo()
    for entry in entries:  # a copy that was changed is another frame
        assert replace(entry, number=0).hidden is entry.reduced().hidden is None
