"""What a hostile broker can make a replay wait for, and keep."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from coordwire.client import ClientSettings, addresses, streams
from coordwire.messages import (
    HeartbeatRequest,
    HeartbeatResponse,
    JoinGroupRequest,
    JoinGroupResponse,
    MetadataRequest,
    MetadataResponse,
    ProduceRequest,
    ProduceResponse,
)
from coordwire.messages.metadata import MetadataResponseBroker
from coordwire.messages.produce import PartitionProduceData, TopicProduceData
from coordwire.replay import identifiers
from coordwire.replay import replay as replay_module
from coordwire.replay.identifiers import Identifiers
from coordwire.replay.replay import MOST_FAILURES
from tests.client.test_deadlines import _deaf
from tests.client.test_opening import peer
from tests.replay.recorded import Exchange, answering, entries, outcome


@pytest.fixture
def deaf(monkeypatch: pytest.MonkeyPatch) -> Iterator[ClientSettings]:
    """A broker that does not read."""
    monkeypatch.setattr(streams, "PATIENCE", 0.05)
    with peer(_deaf) as address:
        yield ClientSettings(bootstrap=addresses(address))


def _produce(acks: int) -> ProduceRequest:
    part = PartitionProduceData(index=0, records=bytes(8 << 20))
    return ProduceRequest(acks=acks, topic_data=[TopicProduceData(name="t", partition_data=[part])])


@pytest.mark.parametrize("acks", [0, 1])
def test_a_broker_that_does_not_read_gets_no_more(deaf: ClientSettings, acks: int) -> None:
    response = ProduceResponse() if acks else None
    replay, results = outcome(entries([Exchange(_produce(acks), response, 9)] * 4), deaf, 0.2)
    reasons = {str(result.error) for result in results}
    assert reasons == {"a request was not read within 0.2 s"}
    assert len({id(result.error) for result in results}) == len(results) == replay.totals.failed
    assert replay.totals.sent <= 2


def test_a_connection_without_an_answer_is_waited_for_once() -> None:
    beats = [Exchange(HeartbeatRequest(group_id="g"), HeartbeatResponse(), late=True)] * 100
    with answering(lambda request: None):
        replay, results = outcome(entries(beats), timeout_s=0.4)
    assert {str(result.error) for result in results} == {"no answer within 0.4 s"}
    assert (replay.totals.sent, replay.totals.failed) == (100, 100)


def test_a_broker_that_never_answers_is_given_up() -> None:
    beats = [
        Exchange(HeartbeatRequest(group_id="g"), HeartbeatResponse(), connection=number)
        for number in range(100)
    ]
    with answering(lambda request: None):
        replay, results = outcome(entries(beats), timeout_s=0.3)
    assert replay.totals.sent == MOST_FAILURES
    assert "given up after 3 connections in a row" in str(results[-1].error)
    counts = iter(range(1_000))
    with answering(lambda request: HeartbeatResponse() if next(counts) % 3 == 2 else None):
        replay, results = outcome(entries(beats[:9]), timeout_s=0.1)  # never three in a row
    assert (replay.totals.sent, replay.totals.compared) == (9, 3)


def test_what_waits_is_bounded_in_bytes(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(replay_module, "MOST_WAITING_BYTES", 10_000)
    request, response = MetadataRequest(topics=[]), MetadataResponse(cluster_id="c")
    late = [Exchange(request, response, 9, late=True)] * 20
    with answering(lambda request: MetadataResponse(cluster_id="x" * 1_000)):
        replay, results = outcome(entries(late))
    assert replay.totals.sent == 20
    assert 5 <= replay.totals.compared == len(results) <= 10
    assert replay.totals.skipped == {"answered too late in the capture": 20 - len(results)}
    assert replay._waiting_bytes == 0


def test_only_the_nodes_of_the_capture_are_kept() -> None:
    def metadata(*nodes: int) -> MetadataResponse:
        brokers = [MetadataResponseBroker(node_id=node, host=f"h{node}", port=9) for node in nodes]
        return MetadataResponse(brokers=brokers)

    with answering(lambda request: metadata(*range(1_000))):
        replay, _ = outcome(entries([Exchange(MetadataRequest(topics=[]), metadata(3, 5, 2_000), 9)]))
    assert replay._nodes == {3: ("h3", 9), 5: ("h5", 9)}


def test_ids_that_are_learned_are_bounded_in_characters(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(identifiers, "MOST_CHARACTERS", 1_000)
    learned = Identifiers()
    for number in range(100):
        captured, now = JoinGroupResponse(member_id=f"m{number}"), JoinGroupResponse(member_id="x" * 90)
        learned.learn(JoinGroupRequest(group_id="g"), captured, now, 9)
    assert learned.current("member_id", None, "m0") == "m0"
    assert learned.current("member_id", None, "m99") == "x" * 90
    assert learned._characters <= 1_000
