"""Cases: frames whose content is wrong, requests without answers, and SASL where there is none."""

from __future__ import annotations

import struct
from typing import Any

from coordwire import encode_request
from coordwire.conformance.broker.framing import (
    PROTOCOL,
    SIZE,
    correlation,
    exchanged,
    is_closed,
    received,
    versions_request,
)
from coordwire.conformance.broker.stage import Stage, case, table
from coordwire.conformance.cases import Lacking, code_name, message_of
from coordwire.messages import MetadataRequest, ProduceRequest
from coordwire.records import Record, encode_batch

__all__: list[str] = []


def framed(key: int, version: int, body: bytes) -> bytes:
    """A frame with a header of version 1 without a client id."""
    content = struct.pack(">hhih", key, version, 7, -1) + body
    return SIZE.pack(len(content)) + content


async def closes(stage: Stage, answer: str, data: bytes) -> None:
    await is_closed(await stage.stream(), data)
    await exchanged(stage, versions_request())


table(PROTOCOL, "", closes, [
    ("framing/size/5", "a frame of the size 0", "the connection is closed",
     "What has no header can't be answered.", SIZE.pack(0)),
    ("framing/body/1", "Metadata with 2,147,483,647 topics in a frame of 40 bytes",
     "the connection is closed",
     "A count is checked against the frame's size before anything is allocated.",
     framed(3, 1, struct.pack(">i", (1 << 31) - 1) + bytes(26))),
    ("framing/body/2", "Metadata with a topic's name of the size -5", "the connection is closed",
     "A text's size is -1 for null, or at least 0.", framed(3, 1, struct.pack(">ih", 1, -5))),
    ("framing/body/3", "Metadata with a topic's name that is longer than the frame",
     "the connection is closed",
     "A text ends in its frame.", framed(3, 1, struct.pack(">ih", 1, 32_000) + b"t")),
    ("framing/body/4", "Metadata with a null name in version 1", "the connection is closed",
     "A name is null only in versions that say so.", framed(3, 1, struct.pack(">ih", 1, -1))),
    ("framing/body/5", "Metadata 9 whose count doesn't end", "the connection is closed",
     "A number of variable length has five bytes at most.", framed(3, 9, b"\0" + b"\xff" * 12)),
    ("framing/body/6", "Metadata 9 with a tagged field that is longer than the frame",
     "the connection is closed",
     "A tagged field ends in its frame.", framed(3, 9, b"\0\1\0\0\0\1\0\xff\x01")),
    ("framing/api/3", "the API key -1", "the connection is closed",
     "A request of no API ends the connection.", framed(-1, 0, b"")),
    ("framing/api/4", "Metadata in version -1", "the connection is closed",
     "Versions begin at 0.", framed(3, -1, b"")),
    ("framing/api/5", "LeaderAndIsr, which clients don't send", "the connection is closed",
     "An API that is not among the broker's own ends the connection.", framed(4, 0, bytes(20))),
])  # fmt: skip


@case("framing/order/2", PROTOCOL, "a slow request and a quick one at once", "the slow one's answer first")
async def case_slow_first(stage: Stage) -> None:
    """An answer waits for those of the requests before it."""
    stream = await stage.stream()
    slow = encode_request(MetadataRequest(topics=None), version=1, correlation_id=1)
    stream.writer.write(slow + versions_request(correlation_id=2))
    stage.equal("correlation ids", [correlation(await received(stream)) for _ in range(2)], [1, 2])


@case(
    "framing/order/3", PROTOCOL, "Produce with acks of 0, then ApiVersions", "one answer", needs="Produce 9"
)
async def case_no_answer(stage: Stage) -> None:
    """A writer that wants no answer gets none."""
    await stage.needs("Produce", 9)
    data = encode_batch([Record(value=b"v")], base_offset=0)
    topics = [{"name": await stage.topic(), "partition_data": [{"index": 0, "records": data}]}]
    message = message_of(ProduceRequest, {"acks": 0, "timeout_ms": 1_000, "topic_data": topics})
    stream = await stage.stream()
    request = encode_request(message, version=9, correlation_id=1)
    stream.writer.write(request + versions_request(correlation_id=2))
    stage.equal("correlation id", correlation(await received(stream)), 2)


@case("framing/order/4", PROTOCOL, "ApiVersions, a request, ApiVersions", "three answers")
async def case_versions_again(stage: Stage) -> None:
    """A client may ask for versions at any time, and more than once."""
    stream = await stage.stream()
    middle = encode_request(MetadataRequest(topics=[]), version=1, correlation_id=2)
    for number, data in enumerate([versions_request(), middle, versions_request(correlation_id=3)]):
        stream.writer.write(data)
        expected = (7, 2, 3)[number]
        stage.equal("correlation id", correlation(await received(stream)), expected)


@case(
    "framing/split/2", PROTOCOL, "two requests in one write, cut in the middle of the second", "two answers"
)
async def case_cut(stage: Stage) -> None:
    """Pieces of bytes have nothing to do with frames."""
    stream = await stage.stream()
    data = versions_request(correlation_id=1) + versions_request(correlation_id=2)
    stream.writer.write(data[:-5])
    await stream.writer.drain()
    stage.equal("correlation id", correlation(await received(stream)), 1)
    stream.writer.write(data[-5:])
    stage.equal("correlation id", correlation(await received(stream)), 2)


async def refused_sasl(stage: Stage, answer: str, api: str, values: dict[str, Any]) -> None:
    if stage.settings.sasl is not None:
        raise Lacking("the connection has SASL")
    result = await stage.ask(api, **values)
    stage.equal(api, code_name(result.error_code), answer)


SASL = "KIP-43"
table(SASL, "SaslHandshake 1", refused_sasl, [
    ("sasl/none/1", "SaslHandshake where there is no SASL", "ILLEGAL_SASL_STATE",
     "A listener without SASL says so, and the connection goes on.", "SaslHandshake", {"mechanism": "PLAIN"}),
])  # fmt: skip
table(SASL, "SaslAuthenticate 0", refused_sasl, [
    ("sasl/none/2", "SaslAuthenticate where there is no SASL", "ILLEGAL_SASL_STATE",
     "Who has not begun with SaslHandshake can't go on.", "SaslAuthenticate", {"auth_bytes": b"\0u\0p"}),
])  # fmt: skip
