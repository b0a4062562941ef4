"""The dialects other than Kafka's: type ids, conversations over two connections, and what must not raise."""

from __future__ import annotations

import struct
from importlib import import_module

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from coordwire import Connection, CoordwireError, EncodeError, Role
from coordwire.connection.dialect import Dialect
from coordwire.connection.events import (
    ConnectionClosed,
    ConnectionFailed,
    Event,
    FrameRefused,
    RequestReceived,
    ResponseReceived,
)
from coordwire.dialects.connection import ConnectionDialect
from coordwire.dialects.grammar import CALLS, Grammar
from coordwire.messages import (
    Draft1ConsultRequest,
    Draft1ConsultResponse,
    Draft1PingRequest,
    Draft1PingResponse,
    Draft1RegisterRequest,
    Draft1StartRequest,
    Draft1StartResponse,
    Draft2ClusterMetadataRequest,
    Draft2PingRequest,
    Draft2PingResponse,
    Draft2RegisterConsumerRequest,
    Draft2RegisterConsumerResponse,
    Draft2StartFetcherResponse,
    Draft2StopFetcherRequest,
    Draft2StopFetcherResponse,
    Draft3PingRequest,
    Draft3PingResponse,
    HeartbeatRequest,
    Kafka07FetchRequest,
    Kafka07MessageSetSend,
    Kafka07OffsetsRequest,
    Kafka07OffsetsResponse,
    Kafka07ProduceRequest,
    find_message,
)
from coordwire.messages.draft_1 import Draft1PartitionOffset
from coordwire.messages.draft_2 import Draft2PartitionOffset
from coordwire.messages.keys import FACTS
from tests.conversations import CONVERSATIONS, spoken

DRAFTS = [dialect for dialect in Dialect if dialect is not Dialect.KAFKA]


def pair(dialect: str, *, strict: bool = False, **options: object) -> tuple[Connection, Connection]:
    spoken_dialect = ConnectionDialect(dialect, **options)  # type: ignore[arg-type]
    return (
        Connection(Role.CLIENT, dialect=spoken_dialect, strict=strict),
        Connection(Role.SERVER, dialect=spoken_dialect, strict=strict),
    )


def feed(connection: Connection, data: bytes) -> Event:
    connection.receive_data(data)
    (event,) = connection.events()
    return event


def asked(connection: Connection, data: bytes) -> RequestReceived:
    event = feed(connection, data)
    assert isinstance(event, RequestReceived)
    return event


@pytest.mark.parametrize("name", CONVERSATIONS)
@pytest.mark.parametrize("step", [0, 1, 5])
def test_a_conversation(name: str, step: int) -> None:
    dialect, lines = CONVERSATIONS[name]
    assert len(spoken(dialect, lines, step=step)) == len(lines)


# --- the registry ---


@pytest.mark.parametrize("dialect", DRAFTS)
def test_the_registry_is_sound(dialect: Dialect) -> None:
    calls = CALLS[dialect]
    assert len({call.type_id for call in calls}) == len(calls)
    for call in calls:
        assert call.reconstructed is (dialect not in (Dialect.KAFKA_07, Dialect.ZOOKEEPER))
        assert not (call.reconstructed and call.type_id in FACTS)
        assert call.message("request").direction == "request"
        if call.response is not None:
            cls = call.message("response")
            assert cls.direction == "response"
            two = call.auto_commit or call.name == "RegisterConsumer"
            if dialect is not Dialect.ZOOKEEPER:
                assert list(cls.versions) == ([0, 1] if two else [0])


def test_every_message_of_the_drafts_is_in_the_registry() -> None:
    from coordwire import messages

    spoken_of = {name for calls in CALLS.values() for call in calls for name in (call.request, call.response)}
    for name in messages.__all__:
        if name.startswith("ZooKeeper") and name.endswith(("Operation", "Result", "Header")):
            continue  # in a multi
        if name.startswith(("Draft", "Kafka07", "ZooKeeper")):
            assert name in spoken_of
            assert find_message(name).api_key is None


def test_type_ids_are_the_callers_to_set() -> None:
    client, server = pair("draft-2", type_ids={"ClusterMetadata": 7, "Ping": 8})
    data = client.send(Draft2ClusterMetadataRequest())
    assert data == bytes.fromhex("00000002 0007")
    event = asked(server, data)
    assert (event.frame.api_key, event.frame.api_name) == (7, "ClusterMetadata")
    ping = server.send(Draft2PingRequest(consumer_id="c"))
    assert ping == bytes.fromhex("00000009 0008 000163 00000000")
    assert asked(client, ping).request == Draft2PingRequest(consumer_id="c")
    assert not Grammar("draft-2", {"Ping": 8}).by_id[8].reconstructed


def test_headers_of_0_8_byte_by_byte() -> None:
    dialect = ConnectionDialect("draft-2-in-0.8")
    client, server = Connection(Role.CLIENT, client_id="till", dialect=dialect), pair("draft-2-in-0.8")[1]
    registration = Draft2RegisterConsumerRequest(group_id="g", consumer_id="c", session_timeout_ms=6)
    data = client.send(registration)
    header = "07d2 0000 00000000 0004 74696c6c"
    body = "0001 67 0001 63 0000 00 0000 00000006"
    assert data == bytes.fromhex(f"0000001d {header} {body}")
    event = asked(server, data)
    assert (event.frame.correlation_id, event.frame.client_id, event.frame.api_version) == (0, "till", 0)
    assert event.request == registration
    data = client.send(Draft2ClusterMetadataRequest(group_id="g"), version=1)
    assert data == bytes.fromhex("00000011 07d1 0001 00000001 0004 74696c6c 0001 67".replace(" ", ""))
    assert asked(server, data).frame.api_version == 1
    # Either side numbers its requests, and an answer is that of its number, whatever the order.
    pings = [server.send(Draft2PingRequest(consumer_id="c")) for _ in range(2)]
    assert [ping[8:12].hex() for ping in pings] == ["00000000", "00000001"]
    first, second = (asked(client, ping) for ping in pings)
    for number, ping in ((1, second), (0, first)):
        answer = client.send(Draft2PingResponse(consumer_id="c"), request=ping)
        assert answer[4:8] == struct.pack(">i", number)
        response = feed(server, answer)
        assert isinstance(response, ResponseReceived)
        assert response.frame.correlation_id == number


@pytest.mark.parametrize(
    ("data", "complaint"),
    [
        ("07d3", "a header needs 4 bytes, 2 given"),
        ("07d2 0001 00000000 ffff", "RegisterConsumer has no version 1"),
        ("07d3 0000 00000000 ffff", "type id 2003 is unknown, and no request waits for the answer 131268608"),
        ("0000 0007 0000", "type id 0 is unknown, and no request waits for the answer 7"),
    ],
)
def test_frames_of_0_8_that_nobody_sends(data: str, complaint: str) -> None:
    body = bytes.fromhex(data)
    event = feed(pair("draft-2-in-0.8")[1], struct.pack(">i", len(body)) + body)
    assert isinstance(event, FrameRefused)
    assert event.error.reason == complaint


@pytest.mark.parametrize(
    ("dialect", "type_ids", "complaint"),
    [
        ("draft-1", {"Hello": 1}, "draft-1 has no Hello"),
        ("draft-1", {"Ping": 1004}, "two requests"),
        ("draft-1", {"Ping": 40000}, "int16"),
        ("kafka", {"Ping": 1}, "a dialect other than Kafka's"),
        ("draft-9", None, "draft-9"),
    ],
)
def test_type_ids_that_cannot_be(dialect: str, type_ids: dict[str, int] | None, complaint: str) -> None:
    with pytest.raises(ValueError, match=complaint):
        Connection(Role.CLIENT, dialect=ConnectionDialect(dialect, type_ids=type_ids))


# --- who says what, and when ---


def test_each_side_says_what_is_its_own() -> None:
    client, server = pair("draft-2")
    with pytest.raises(EncodeError, match="is sent by the server, this is the client"):
        client.send(Draft2PingRequest())
    with pytest.raises(EncodeError, match="is sent by the client, this is the server"):
        server.send(Draft2ClusterMetadataRequest())
    with pytest.raises(EncodeError, match="HeartbeatRequest is not a message of draft-2"):
        client.send(HeartbeatRequest(), version=4)
    with pytest.raises(EncodeError, match="is a response: expected the request"):
        client.send(Draft2PingResponse(), version=0)
    event = asked(server, client.send(Draft2ClusterMetadataRequest()))
    with pytest.raises(EncodeError, match="doesn't answer"):
        server.send(Draft2RegisterConsumerResponse(), request=event)
    with pytest.raises(EncodeError, match="is a request: expected no request"):
        server.send(Draft2PingRequest(), request=event)
    with pytest.raises(EncodeError, match="expected a request in draft-1"):
        Connection(Role.SERVER, dialect=ConnectionDialect("draft-1")).send(
            Draft1ConsultResponse(), request=event
        )
    with pytest.raises(EncodeError, match="expected a request of Kafka's own protocol, got one of draft-2"):
        Connection(Role.SERVER).send(Draft1ConsultResponse(), request=event)


def test_requests_that_nobody_answers() -> None:
    client, server = pair("kafka-0.7")
    event = asked(server, client.send(Kafka07ProduceRequest(topic="t")))
    assert not event.expects_response
    client, server = pair("draft-1")
    event = asked(server, client.send(Draft1RegisterRequest(consumer_id="c")))
    assert not event.expects_response
    with pytest.raises(EncodeError, match="doesn't answer"):
        server.send(Draft1ConsultResponse(), request=event)


def test_replies_of_0_7_keep_the_order_of_their_requests() -> None:
    client, server = pair("kafka-0.7")
    first = asked(server, client.send(Kafka07FetchRequest(topic="t")))
    second = asked(server, client.send(Kafka07OffsetsRequest(topic="t")))
    with pytest.raises(EncodeError, match="another request waits"):
        server.send(Kafka07OffsetsResponse(), request=second)
    data = server.send(Kafka07MessageSetSend(messages=b"x"), request=first)
    data += server.send(Kafka07OffsetsResponse(offsets=[1]), request=second)
    client.receive_data(data)
    responses = [event.response for event in client.events() if isinstance(event, ResponseReceived)]
    assert responses == [Kafka07MessageSetSend(messages=b"x"), Kafka07OffsetsResponse(offsets=[1])]
    with pytest.raises(EncodeError, match="no answer"):
        server.send(Kafka07OffsetsResponse(), request=second)


def test_draft_2_answers_in_any_order() -> None:
    client, server = pair("draft-2", auto_commit=False)
    ping = asked(client, server.send(Draft2PingRequest(consumer_id="c")))
    stop = asked(client, server.send(Draft2StopFetcherRequest(consumer_id="c")))
    for answer, request in ((Draft2StopFetcherResponse(), stop), (Draft2PingResponse(), ping)):
        event = feed(server, client.send(answer, request=request))
        assert isinstance(event, ResponseReceived)
        assert (event.response, event.request.message) == (answer, request.request)


def test_draft_3_numbers_its_requests() -> None:
    client, server = pair("draft-3")
    numbered = Draft3PingRequest(correlation_id=1 << 40, consumer_id="c")
    first = asked(server, client.send(Draft3PingRequest(consumer_id="c")))
    second = asked(server, client.send(numbered))
    assert (first.frame.correlation_id, second.frame.correlation_id) == (0, 1 << 40)
    with pytest.raises(EncodeError, match="another request with the number 1099511627776 waits"):
        client.send(numbered)
    with pytest.raises(EncodeError, match="expected the request's, 1099511627776, got 3"):
        server.send(Draft3PingResponse(correlation_id=3), request=second)
    answer = feed(client, server.send(Draft3PingResponse(error_code=1), request=second))
    assert isinstance(answer, ResponseReceived)
    assert answer.request.message == numbered
    assert answer.response == Draft3PingResponse(correlation_id=1 << 40, error_code=1)
    refused = feed(client, struct.pack(">ihqh", 12, 0, 77, 0))
    assert isinstance(refused, FrameRefused)
    assert refused.error.reason == "no request waits for this answer"


# --- auto_commit ---


def registered(auto_commit: bool) -> tuple[Connection, Connection]:
    client, server = pair("draft-2")
    register = Draft2RegisterConsumerRequest(consumer_id="c", auto_commit=auto_commit)
    event = asked(server, client.send(register))
    feed(client, server.send(Draft2RegisterConsumerResponse(), request=event))
    return client, server


def test_the_registration_decides_whether_offsets_follow() -> None:
    offsets = [Draft2PartitionOffset(topic="t", partition="0-1", offset=5)]
    client, server = registered(True)
    ping = asked(client, server.send(Draft2PingRequest(consumer_id="c")))
    data = client.send(Draft2PingResponse(consumer_id="c", offset_info=offsets), request=ping)
    event = feed(server, data)
    assert isinstance(event, ResponseReceived)
    assert event.frame.api_version == 1
    assert event.response == Draft2PingResponse(consumer_id="c", offset_info=offsets)
    client, server = registered(False)
    ping = asked(client, server.send(Draft2PingRequest(consumer_id="c")))
    with pytest.raises(EncodeError, match="set, but not in version 0"):
        client.send(Draft2PingResponse(offset_info=offsets), request=ping)
    with pytest.raises(EncodeError, match="registered without auto_commit"):
        client.send(Draft2PingResponse(), request=ping, version=1)
    refused = feed(
        Connection(Role.SERVER, dialect=ConnectionDialect("draft-2", auto_commit=False), strict=True), data
    )
    assert isinstance(refused, FrameRefused)
    assert refused.error.reason == "23 trailing bytes".replace("23", str(len(data) - 4 - 7))


def test_without_a_registration_the_caller_or_the_bytes_decide() -> None:
    client, server = pair("draft-1")
    ping = asked(client, server.send(Draft1PingRequest()))
    with pytest.raises(EncodeError, match="no registration has decided"):
        client.send(Draft1PingResponse(), request=ping)
    empty = client.send(Draft1PingResponse(), request=ping, version=0)
    assert empty == bytes(4)
    event = feed(server, empty)
    assert isinstance(event, ResponseReceived)
    assert event.frame.api_version == 0
    client, server = pair("draft-1", auto_commit=True)
    ping = asked(client, server.send(Draft1PingRequest()))
    event = feed(server, client.send(Draft1PingResponse(), request=ping))
    assert isinstance(event, ResponseReceived)
    assert event.frame.api_version == 1


@pytest.mark.parametrize(("auto_commit", "layout"), [
    (False, "00000000"), (True, "00000012 0001 0001 74 0003 302d31 0000000000000005"),
])  # fmt: skip
def test_the_first_drafts_registration_decides_what_an_answer_to_a_ping_has(
    auto_commit: bool, layout: str
) -> None:
    """Without auto_commit nothing but the size; with it num_partition and so many of offset_info."""
    client, server = pair("draft-1")
    asked(server, client.send(Draft1RegisterRequest(consumer_id="c", auto_commit=auto_commit)))
    ping = asked(client, server.send(Draft1PingRequest()))
    offsets = [Draft1PartitionOffset(topic="t", partition="0-1", offset=5)]
    answer = Draft1PingResponse(offset_info=offsets if auto_commit else [])
    data = client.send(answer, request=ping)
    assert data == bytes.fromhex(layout)
    event = feed(server, data)
    assert isinstance(event, ResponseReceived)
    assert (event.response, event.frame.api_version) == (answer, int(auto_commit))


def test_a_ping_may_cross_an_answer_without_a_type_id() -> None:
    client, server = pair("draft-1", auto_commit=False)
    consult = asked(server, client.send(Draft1ConsultRequest()))
    ping = server.send(Draft1PingRequest(num_retries=2))
    answer = server.send(Draft1ConsultResponse(coordinator_id=1), request=consult)
    assert asked(client, ping).request == Draft1PingRequest(num_retries=2)
    event = feed(client, answer)
    assert isinstance(event, ResponseReceived)
    assert event.response == Draft1ConsultResponse(coordinator_id=1)


def test_an_unanswered_ping_does_not_take_the_next_answer() -> None:
    client, server = pair("draft-1", auto_commit=False)
    asked(client, server.send(Draft1PingRequest()))
    start = asked(client, server.send(Draft1StartRequest()))
    wire = Grammar("draft-1").encode(Draft1StartResponse(error_code=4))
    event = feed(server, wire)
    assert isinstance(event, ResponseReceived)
    assert event.response == Draft1StartResponse(error_code=4)
    assert event.request.message == start.request


# --- untrusted bytes ---


def test_closing_gives_what_was_unanswered() -> None:
    _, server = pair("draft-2")
    server.send(Draft2PingRequest(consumer_id="c"))
    event = feed(server, b"")
    assert isinstance(event, ConnectionClosed)
    assert [sent.message for sent in event.unanswered] == [Draft2PingRequest(consumer_id="c")]
    assert event.unanswered[0].api_key == 2003


@pytest.mark.parametrize(
    ("dialect", "role", "body", "reason"),
    [
        ("draft-2", Role.SERVER, "", "a type id needs 2 bytes, 0 given"),
        ("draft-2", Role.SERVER, "1234", "type id 4660 is unknown, and no request waits for an answer"),
        ("draft-2", Role.SERVER, "07d3 0000 0000", "no Ping request waits for this answer"),
        ("draft-2", Role.SERVER, "07d2 0001", "string needs 1 byte, 0 left"),
        ("draft-3", Role.CLIENT, "00", "a response header needs 10 bytes, 1 given"),
        ("kafka-0.7", Role.CLIENT, "0000", "no request waits for this answer"),
        ("kafka-0.7", Role.SERVER, "0001 0000", "int32 needs 4 bytes, 0 left"),
    ],
)
def test_what_cannot_be_is_refused(dialect: str, role: Role, body: str, reason: str) -> None:
    data = bytes.fromhex(body)
    event = feed(Connection(role, dialect=ConnectionDialect(dialect)), struct.pack(">i", len(data)) + data)
    assert isinstance(event, FrameRefused)
    assert event.error.reason == reason
    assert event.body == data


def test_lenient_reports_deviations_and_strict_refuses() -> None:
    data = struct.pack(">ihhb", 5, 1003, 0, 0)
    event = asked(Connection(Role.CLIENT, dialect=ConnectionDialect("draft-1")), data)
    assert [deviation.reason for deviation in event.deviations] == ["1 trailing byte"]
    refused = feed(Connection(Role.CLIENT, dialect=ConnectionDialect("draft-1"), strict=True), data)
    assert isinstance(refused, FrameRefused)


@settings(max_examples=150, deadline=None)
@given(st.data())
def test_hostile_bytes_raise_nothing_but_ours(data: st.DataObject) -> None:
    dialect, lines = CONVERSATIONS[data.draw(st.sampled_from(sorted(CONVERSATIONS)))]
    said = spoken(dialect, lines)
    role = data.draw(st.sampled_from(list(Role)))
    connection = Connection(role, dialect=ConnectionDialect(dialect), strict=data.draw(st.booleans()))
    received: list[RequestReceived] = []
    for sender, message, wire in said:
        if sender == role.value:
            try:
                connection.send(message, request=received.pop(0) if received else None)
            except CoordwireError:
                continue
        body = bytearray(wire[4:])
        for _ in range(data.draw(st.integers(0, 2))):
            body[data.draw(st.integers(0, len(body))) :] = data.draw(st.binary(max_size=6))
        connection.receive_data(struct.pack(">i", len(body)) + body)
        for event in connection.events():
            assert not isinstance(event, ConnectionFailed)
            if isinstance(event, RequestReceived) and event.expects_response:
                received.append(event)


def test_messages_without_a_request_are_not_taken_for_answers() -> None:
    server = Connection(Role.SERVER, dialect=ConnectionDialect("draft-2"))
    wire = Grammar("draft-2").encode(Draft2StartFetcherResponse(consumer_id="c"))
    event = feed(server, wire)
    assert isinstance(event, FrameRefused)
    assert event.error.reason == "no StartFetcher request waits for this answer"


@pytest.mark.parametrize(
    ("name", "home_name"),
    [
        ("dialects", "dialects"),
        ("dialects.zookeeper_multi", "dialects.zookeeper_multi"),
        ("zookeeper", "dialects.zookeeper"),
    ],
)
def test_the_former_home_has_its_names(name: str, home_name: str) -> None:
    former, home = import_module(f"coordwire.designs.{name}"), import_module(f"coordwire.{home_name}")
    assert set(former.__all__) == set(home.__all__)
    assert all(getattr(former, one) is getattr(home, one) for one in former.__all__)
