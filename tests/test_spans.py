"""Spans cover every byte of a frame, whatever the bytes are."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from coordwire import encode_request, encode_response, explain
from coordwire.messages import HeartbeatResponse, JoinGroupRequest
from coordwire.messages.join_group import JoinGroupRequestProtocol
from coordwire.spans import Span, annotated, body_spans

RAW = encode_request(
    JoinGroupRequest(
        group_id="payments",
        protocols=[
            JoinGroupRequestProtocol(name="range", metadata=b"\0\1"),
            JoinGroupRequestProtocol(name=""),
        ],
        tags={4: b"tagged"},
    ),
    version=9,
    correlation_id=3,
    client_id="me",
)


def assert_cover(spans: list[Span], start: int, end: int) -> None:
    at = start
    for span in spans:
        assert span.position == at
        assert span.length > 0 or span.sort == "refused"
        at += span.length
    assert at == end


def test_a_frame_explained() -> None:
    spans = explain(RAW)
    assert_cover(spans, -4, len(RAW) - 4)
    said = {span.path: span.value for span in spans if span.sort == "value"}
    assert said["group_id"] == "payments"
    assert said["protocols[0].metadata"] == b"\0\1"
    assert said["tags[4]"] == b"tagged"
    assert {span.path: span.meaning for span in spans if span.meaning} == {"request_api_key": "JoinGroup"}
    assert spans[0] == Span(-4, 4, "size", len(RAW) - 4, "size", "int32")


def test_a_response_explained() -> None:
    raw = encode_response(HeartbeatResponse(error_code=27), version=4, correlation_id=3)
    assert {s.path: s.value for s in explain(raw, api_key=12, version=4)}["error_code"] == 27
    with pytest.raises(ValueError, match="both api_key and version"):
        explain(raw, api_key=12)


@given(st.binary(max_size=80), st.integers(0, len(RAW)))
def test_whatever_the_bytes_every_one_is_in_a_span(noise: bytes, cut: int) -> None:
    for body in (noise, RAW[4 : 4 + cut] + noise):
        spans = body_spans(body)
        assert_cover(spans, 0, len(body))
        shown = [line[10:33].replace(" ", "") for line in annotated(body, spans)]
        assert "".join(shown) == body.hex()


def test_a_refusal_is_the_last_span() -> None:
    *_, last = body_spans(RAW[4:40])
    assert last.sort == "refused"
    assert last.path == "protocols"
    assert "claimed" in str(last.value) or "needs" in str(last.value)
