"""Every message of the detailed design, byte by byte as the document's grammars have it: a size, the type of
a request (which the answers to the coordinator's requests repeat), and the fields, each with a value of its
own."""

from __future__ import annotations

import pytest

from coordwire.codec import Message
from coordwire.dialects.grammar import Grammar
from coordwire.messages import (
    Draft2ClusterMetadataRequest,
    Draft2ClusterMetadataResponse,
    Draft2PingRequest,
    Draft2PingResponse,
    Draft2RegisterConsumerRequest,
    Draft2RegisterConsumerResponse,
    Draft2StartFetcherRequest,
    Draft2StartFetcherResponse,
    Draft2StopFetcherRequest,
    Draft2StopFetcherResponse,
)
from coordwire.messages import __all__ as names
from coordwire.messages.draft_2 import Draft2Broker, Draft2Ownership, Draft2PartitionOffset

TYPES = {"ClusterMetadata": 0x11, "RegisterConsumer": 0x22, "Ping": 0x33, "StopFetcher": 0x44,
         "StartFetcher": 0x55}  # fmt: skip
BROKERS = [
    Draft2Broker(id=0x01020304, host="h1", port=0x05060708),
    Draft2Broker(id=0x090A0B0C, host="x", port=0x0D0E0F10),
]
CLUSTER = "0002  01020304 0002 6831 05060708  090a0b0c 0001 78 0d0e0f10"
OFFSETS = [
    Draft2PartitionOffset(topic="t", partition="1-0", offset=0x0102030405060708),
    Draft2PartitionOffset(topic="u", partition="2-5", offset=9),
]
OFFSETS_TEXT = "0002  0001 74 0003 312d30 0102030405060708  0001 75 0003 322d35 0000000000000009"
LAYOUTS: dict[str, tuple[Message, int, str]] = {
    "cluster metadata request": (Draft2ClusterMetadataRequest(), 0, "0011"),
    "cluster metadata response": (
        Draft2ClusterMetadataResponse(error_code=0x0102, coordinator_id=0x03040506, brokers_info=BROKERS),
        0, f"0102 03040506 {CLUSTER}",
    ),
    "register consumer request": (
        Draft2RegisterConsumerRequest(
            group_id="g1", consumer_id="c", topic_count='{"t":2}', auto_commit=True,
            auto_offset_rest="largest", session_timeout_ms=0x01020304,
        ),
        0, "0022  0002 6731  0001 63  0007 7b2274223a327d  01  0007 6c617267657374  01020304",
    ),
    "register consumer request without auto commit": (
        Draft2RegisterConsumerRequest(group_id="g", consumer_id="c2", topic_count="*1*t",
                                      auto_offset_rest="smallest", session_timeout_ms=1),
        0, "0022  0001 67  0002 6332  0004 2a312a74  00  0008 736d616c6c657374  00000001",
    ),
    "register consumer response": (Draft2RegisterConsumerResponse(error_code=0x0102), 0, "0102"),
    "ping request": (
        Draft2PingRequest(consumer_id="c", num_retries=0x01020304), 0, "0033 0001 63 01020304"
    ),
    "ping response": (
        Draft2PingResponse(error_code=0x0102, consumer_id="c", offset_info=OFFSETS),
        1, f"0033 0102 0001 63 {OFFSETS_TEXT}",
    ),
    "ping response without auto commit": (
        Draft2PingResponse(error_code=0x0102, consumer_id="c"), 0, "0033 0102 0001 63"
    ),
    "stop fetcher request": (Draft2StopFetcherRequest(consumer_id="c"), 0, "0044 0001 63"),
    "stop fetcher response": (
        Draft2StopFetcherResponse(error_code=0x0102, consumer_id="c", offset_info=OFFSETS),
        1, f"0044 0102 0001 63 {OFFSETS_TEXT}",
    ),
    "stop fetcher response without auto commit": (
        Draft2StopFetcherResponse(error_code=0x0102, consumer_id="c"), 0, "0044 0102 0001 63"
    ),
    "start fetcher request": (
        Draft2StartFetcherRequest(
            consumer_id="c",
            ownership_info=[
                Draft2Ownership(consumer_thread_id="c-0", assigned_parts=OFFSETS),
                Draft2Ownership(consumer_thread_id="c-1", assigned_parts=OFFSETS[1:]),
                Draft2Ownership(consumer_thread_id="c-2"),
            ],
            brokers_info=BROKERS,
        ),
        0,
        f"0055 0001 63  0003  0003 632d30 {OFFSETS_TEXT}"
        f"  0003 632d31 0001 0001 75 0003 322d35 0000000000000009  0003 632d32 0000  {CLUSTER}",
    ),
    "start fetcher response": (
        Draft2StartFetcherResponse(error_code=0x0102, consumer_id="c"), 0, "0055 0102 0001 63"
    ),
}  # fmt: skip


WITHOUT_A_LAYOUT = {"Draft2CommitOffsetRequest", "Draft2CommitOffsetResponse"}
"""What the document only names."""


def test_every_message_is_laid_out_as_the_document_has_it() -> None:
    messages = {name for name in names if name.startswith("Draft2")}
    assert {type(message).__name__ for message, _, _ in LAYOUTS.values()} == messages - WITHOUT_A_LAYOUT
    grammar = Grammar("draft-2", TYPES)
    for name, (message, version, text) in LAYOUTS.items():
        body = bytes.fromhex(text)
        assert grammar.encode(message, version=version) == len(body).to_bytes(4, "big") + body, name
        call, direction = grammar.find(message)
        frame = grammar.decode(body, call, direction, version=version)
        assert (frame.message, frame.size) == (message, len(body)), name


def test_each_request_has_a_type_of_its_own() -> None:
    grammar, types = Grammar("draft-2"), {}
    for message, version, _ in LAYOUTS.values():
        call, direction = grammar.find(message)
        if direction == "request":
            types[call.name] = grammar.encode(message, version=version)[4:6]
    assert types.keys() == TYPES.keys()
    ids = {call.name: call.type_id.to_bytes(2, "big") for call in grammar.calls if call.name in types}
    assert types == ids
    assert len(set(types.values())) == len(types)


@pytest.mark.parametrize("name", TYPES)
def test_requests_are_told_apart_by_their_type(name: str) -> None:
    assert Grammar("draft-2", TYPES).by_id[TYPES[name]].request == f"Draft2{name}Request"
    types = [call.type_id for call in Grammar("draft-2").calls]
    assert types == [2001, 2002, 2003, 2004, 2005, 2006]
