"""Whatever bytes a client and a broker send, in whatever pieces: a tap raises nothing and keeps nothing, the
pieces make no difference, and without rules what the broker gets is what the client sent.

A rule may hold requests until those before them are answered. Whether an answer comes before its request was
sent on is then a matter of time, so that with rules a piece ends where a broker's frame does."""

from __future__ import annotations

import logging
from itertools import pairwise

from hypothesis import given
from hypothesis import strategies as st

from coordwire.broker.harness import Traffic
from coordwire.frames import encode_request, encode_response
from coordwire.messages import (
    ApiVersionsRequest,
    ApiVersionsResponse,
    FetchRequest,
    FetchResponse,
    HeartbeatRequest,
    HeartbeatResponse,
    MetadataRequest,
    MetadataResponse,
    ProduceRequest,
    SaslHandshakeRequest,
    SaslHandshakeResponse,
)
from coordwire.messages.metadata import MetadataResponseBroker
from fuzz._run import main
from fuzz.seeds import framed
from tests.tap.still import StillTap

_NAMED = MetadataResponse(brokers=[MetadataResponseBroker(node_id=1, host="h", port=9)])
REQUESTS = [
    *framed(),
    *(encode_request(ProduceRequest(acks=acks), version=9, correlation_id=8) for acks in (0, 1)),
    encode_request(HeartbeatRequest(group_id="g"), version=4, correlation_id=1),
    encode_request(MetadataRequest(), version=12, correlation_id=2),
    encode_request(FetchRequest(session_id=7, session_epoch=1), version=12, correlation_id=3),
    encode_request(SaslHandshakeRequest(), version=0, correlation_id=4),
    encode_request(ApiVersionsRequest(), version=3, correlation_id=5),
    b"\0\0\0\x03abc",
]
RESPONSES = [
    encode_response(HeartbeatResponse(), version=4, correlation_id=1),
    encode_response(_NAMED, version=12, correlation_id=2),
    encode_response(FetchResponse(session_id=7), version=12, correlation_id=3),
    encode_response(SaslHandshakeResponse(), version=0, correlation_id=4),
    encode_response(ApiVersionsResponse(), version=3, correlation_id=5),
    b"\0\0\0\0",
]
RULES = [
    "* times=all probability=0.5 error=NOT_COORDINATOR",
    "Heartbeat times=all after error=27",
    "Metadata half",
    "Fetch lose",
    "Produce after disconnect",
]


class _Kept(logging.Handler):
    """The errors that a tap logs."""

    def __init__(self) -> None:
        super().__init__(logging.ERROR)
        self.records: list[str] = []

    def emit(self, record: logging.LogRecord) -> None:
        self.records.append(record.getMessage())


def _streams(frames: list[bytes]) -> st.SearchStrategy[bytes]:
    """Frames and noise, one after the other, perhaps changed in one place."""
    parts = st.lists(st.one_of(st.sampled_from(frames), st.binary(max_size=30)), max_size=6).map(b"".join)
    change = st.tuples(st.floats(0, 1), st.binary(max_size=4), st.integers(0, 4))

    def changed(data: bytes, where: tuple[float, bytes, int] | None) -> bytes:
        if where is None:
            return data
        at = int(where[0] * len(data))
        return data[:at] + where[1] + data[at + where[2] :]

    return st.builds(changed, parts, st.none() | change)


def _frame_ends(data: bytes) -> set[int]:
    """The positions after each frame, as far as sizes are plausible."""
    ends, at = set(), 0
    while at + 4 <= len(data) and (size := int.from_bytes(data[at : at + 4], "big", signed=True)) >= 0:
        at += 4 + size
        ends.add(at)
    return ends


def passed(sent: bytes, answered: bytes, rules: list[str], size: int) -> tuple[bytes, bytes, int]:
    """What a client and a broker get, and the connections that were refused; in pieces of a size."""
    tap = StillTap(traffic=Traffic(), max_frame=1 << 16)
    for rule in rules:
        tap.faults.add(rule)
    link, client, broker = tap.linked()
    for lane, data in ((link.client, sent), (link.broker, answered)):
        cuts = set(range(0, len(data), size)) | {len(data)}
        if rules and lane is link.broker:
            cuts |= {end for end in _frame_ends(data) if 0 < end < len(data)}
        for start, end in pairwise(sorted(cuts)):
            if client.closed:
                break
            tap.in_context(lane.data_received, data[start:end])
            tap.run()
    written = bytes(client.written), bytes(broker.written), tap.counts.refused
    link.abort()
    assert tap.memory.used == 0
    assert tap.connections == 0
    return written


@given(
    _streams(REQUESTS), _streams(RESPONSES), st.lists(st.sampled_from(RULES), max_size=2), st.integers(1, 40)
)
def fuzz(sent: bytes, answered: bytes, rules: list[str], size: int) -> None:
    kept, logger = _Kept(), logging.getLogger("coordwire.tap")
    logger.addHandler(kept)
    try:
        whole = passed(sent, answered, rules, max(1, len(sent), len(answered)))
        assert passed(sent, answered, rules, size) == whole
    finally:
        logger.removeHandler(kept)
    assert kept.records == []
    if not rules:
        assert sent.startswith(whole[1])


if __name__ == "__main__":
    main(fuzz)
