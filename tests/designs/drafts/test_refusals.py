"""Messages out of their state, and ids that are not known: each is refused and noted, and does no harm."""

from __future__ import annotations

from typing import Any

import pytest

from coordwire.codec import Message
from coordwire.connection import Connection
from coordwire.connection.events import ResponseReceived
from coordwire.designs.drafts.draft_1_broker import FirstDraftBroker
from coordwire.designs.drafts.draft_2_broker import DetailedDesignBroker
from coordwire.designs.drafts.draft_3_broker import NewConsumerBroker
from coordwire.designs.drafts.draft_settings import BrokerSettings, DraftError
from coordwire.designs.drafts.machine import MachineHost, SendBytes
from coordwire.dialects.connection import ConnectionDialect
from coordwire.messages.draft_1 import (
    Draft1ConsultRequest,
    Draft1PingRequest,
    Draft1StartRequest,
    Draft1StopRequest,
)
from coordwire.messages.draft_2 import (
    Draft2ClusterMetadataRequest,
    Draft2PingRequest,
    Draft2RegisterConsumerRequest,
    Draft2StartFetcherRequest,
    Draft2StopFetcherRequest,
)
from coordwire.messages.draft_3 import Draft3MetadataRequest, Draft3PingResponse
from tests.designs.drafts.worlds import DIALECTS, World

REQUESTS: list[tuple[int, Message]] = [
    (1, Draft1PingRequest()), (1, Draft1StopRequest()), (1, Draft1StartRequest()),
    (2, Draft2PingRequest(consumer_id="a")), (2, Draft2StopFetcherRequest(consumer_id="a")),
    (2, Draft2StartFetcherRequest(consumer_id="a")),
]  # fmt: skip


@pytest.mark.parametrize(("draft", "request_"), REQUESTS, ids=lambda value: type(value).__name__)
def test_a_consumer_that_is_not_registered_closes_the_connection(draft: int, request_: Message) -> None:
    """A coordinator's request, over the connection over which the consumer asks for the coordinator."""
    world = World(draft)
    world.join("a")
    for _ in range(10):
        world.run(1)
        brokers = [world.nodes[f"broker-{number}"] for number in (1, 2)]
        asked = [node for node in brokers if node.host.connections]
        if asked:
            break
    (broker,) = asked
    (number,) = broker.host.connections
    broker.machine.send(number, request_)
    world.drain(broker.name)
    world.run(10)
    (note,) = world.noted("UnexpectedMessage")
    assert (note.name, note.what.text) == ("a", type(request_).__name__)
    world.run(5_000)
    assert world.owned() == "aaaa"


def test_a_second_registration_over_one_connection_is_a_duplicate() -> None:
    world = World(2, consumers="a")
    machine = world.nodes["a"].machine
    machine.send(machine._connection, machine.registration())
    world.drain("a")
    world.run(100)
    assert len(world.sent(Draft2RegisterConsumerRequest)) == 2
    (refusal,) = [note for note in world.noted("RegistrationRefused") if note.name == "broker-1"]
    assert refusal.what.text == f"g/a: {DraftError.DUPLICATE_CONSUMER.name}"
    world.run(5_000)
    assert world.owned() == "aaaa"


def test_a_ping_of_an_id_that_nobody_has_is_answered_with_the_error() -> None:
    world = World(3, consumers="a")
    world.nodes["a"].machine.consumer_id = "nobody"
    world.history.clear()
    world.run(2_100)
    errors = [message.what.error_code for message in world.sent(Draft3PingResponse, to="a")]
    assert errors[0] == DraftError.UNKNOWN_CONSUMER
    world.run(10_000)
    assert world.owned() == "aaaa"


def test_a_broker_of_draft_3_that_is_not_the_coordinator_says_so() -> None:
    world = World(3, consumers="a")
    consumer: Any = world.nodes["a"].machine
    world.cut_zookeeper("broker-1")
    world.run(20_000)
    world.heal_zookeeper("broker-1")
    world.run(20_000)
    errors = [message.what.error_code for message in world.sent(Draft3PingResponse, to="a")]
    assert DraftError.NOT_COORDINATOR in errors
    assert consumer.fetching
    assert world.owned() == "aaaa"


@pytest.mark.parametrize("draft", [1, 2, 3])
def test_a_broker_answers_before_its_session_is_there(draft: int) -> None:
    """A process listens while it still connects to ZooKeeper."""
    world = World(draft, brokers=0)
    world.known = World(draft, brokers=1).known
    settings = BrokerSettings(broker_id=1, address=world.known[1])
    kinds: dict[int, Any] = {1: FirstDraftBroker, 2: DetailedDesignBroker, 3: NewConsumerBroker}
    host = MachineHost(kinds[draft](settings), DIALECTS[draft])
    number, client = host.accept(), Connection("client", dialect=ConnectionDialect(DIALECTS[draft]))
    requests: dict[int, Message] = {
        1: Draft1ConsultRequest(), 2: Draft2ClusterMetadataRequest(),
        3: Draft3MetadataRequest(client_id="a", topics=["t"], group_ids=["g"]),
    }  # fmt: skip
    host.receive(number, client.send(requests[draft]))
    (answer,) = [send_bytes for send_bytes in host.actions() if isinstance(send_bytes, SendBytes)]
    client.receive_data(answer.data)
    (event,) = client.events()
    assert isinstance(event, ResponseReceived)
    response: Any = event.response
    assert (response.coordinator_ids[0] if draft == 3 else response.coordinator_id) == -1
    host.closed(number)
