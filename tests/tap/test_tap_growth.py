"""What a tap does for n frames, n bytes, n brokers and n rules, for n, 2n and 4n; without a clock."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from coordwire.broker.harness.traffic import Traffic
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
    SaslAuthenticateRequest,
)
from coordwire.messages.api_versions import ApiVersion
from coordwire.messages.fetch import (
    FetchableTopicResponse,
    FetchPartition,
    FetchTopic,
    ForgottenTopic,
    PartitionData,
)
from coordwire.messages.metadata import MetadataResponseBroker, MetadataResponseTopic
from coordwire.messages.produce import PartitionProduceData, TopicProduceData
from coordwire.tap import Script
from tests.growth import assert_linear
from tests.tap.still import StillTap

Work = tuple[StillTap, list[bytes], list[bytes]]
"""A tap, and what its client and its broker send, one after the other, in pieces."""

BEAT = encode_request(HeartbeatRequest(group_id="g", member_id="m"), version=4, correlation_id=1)
BEATEN = encode_response(HeartbeatResponse(), version=4, correlation_id=1)


def passed(work: Work) -> None:
    tap, sent, answered = work
    link, client, broker = tap.linked()
    for number in range(max(len(sent), len(answered))):
        for side, pieces in ((link.client, sent), (link.broker, answered)):
            if number < len(pieces):
                side.data_received(pieces[number])
                tap.run()
    assert len(broker.written) + len(client.written) > 0
    assert not tap.counts.refused
    link.abort()


def frames_in_one_piece(n: int) -> Work:
    return StillTap(), [BEAT * n], [BEATEN * n]


def frames_with_a_recording(n: int) -> Work:
    return StillTap(traffic=Traffic()), [BEAT * n], [BEATEN * n]


def frames_with_a_script(n: int) -> Work:
    script = Script(request=lambda exchange: None, response=lambda exchange: None)
    return StillTap(script=script), [BEAT] * n, [BEATEN] * n


def frames_that_a_rule_takes(n: int) -> Work:
    tap = StillTap()
    tap.faults.add("Heartbeat group=g times=all after error=NOT_COORDINATOR")
    return tap, [BEAT] * n, [BEATEN] * n


def a_large_frame_in_pieces(n: int) -> Work:
    message = SaslAuthenticateRequest(auth_bytes=bytes(64 * n))
    large = encode_request(message, version=2, correlation_id=1)
    return StillTap(traffic=Traffic()), [large[at : at + 100] for at in range(0, len(large), 100)], []


def a_large_frame_that_passes(n: int) -> Work:
    records = PartitionProduceData(index=0, records=bytes(1_000 * n))
    request = ProduceRequest(acks=1, topic_data=[TopicProduceData(name="t", partition_data=[records])])
    large = encode_request(request, version=9, correlation_id=1)
    return StillTap(traffic=Traffic()), [large[at : at + 1_000] for at in range(0, len(large), 1_000)], []


def brokers_that_are_named(n: int) -> Work:
    brokers = [MetadataResponseBroker(node_id=n, host="h", port=1 + n % 20) for n in range(n)]
    topics = [MetadataResponseTopic(name=f"t{number}") for number in range(n)]
    wire = encode_response(MetadataResponse(brokers=brokers, topics=topics), version=12, correlation_id=1)
    return StillTap(), [encode_request(MetadataRequest(), version=12, correlation_id=1)], [wire]


def versions_that_are_lowered(n: int) -> Work:
    keys = [ApiVersion(api_key=number % 90, min_version=0, max_version=99) for number in range(n)]
    wire = encode_response(ApiVersionsResponse(api_keys=keys), version=3, correlation_id=1)
    return StillTap(), [encode_request(ApiVersionsRequest(), version=3, correlation_id=1)], [wire]


def partitions_of_a_session(n: int) -> Work:
    """n partitions in one session, and n requests that change one each."""

    def fetch(epoch: int, partitions: list[int], forgotten: list[int]) -> bytes:
        request = FetchRequest(
            session_id=7 if epoch else 0,
            session_epoch=epoch,
            topics=[
                FetchTopic(topic="t", partitions=[FetchPartition(partition=index) for index in partitions])
            ],
            forgotten_topics_data=[ForgottenTopic(topic="t", partitions=forgotten)],
        )
        return encode_request(request, version=12, correlation_id=1)

    answer = encode_response(FetchResponse(session_id=7), version=12, correlation_id=1)
    sent = [fetch(0, list(range(n)), [])]
    sent += [fetch(1, [index], [index + 1]) for index in range(n)]
    return StillTap(), sent, [answer] * (n + 1)


def partitions_of_a_produce_that_a_rule_refuses(n: int) -> Work:
    tap = StillTap()
    tap.faults.add("Produce topic=t error=NOT_LEADER_OR_FOLLOWER")
    parts = [PartitionProduceData(index=index, records=b"") for index in range(n)]
    request = ProduceRequest(acks=1, topic_data=[TopicProduceData(name="t", partition_data=parts)])
    return tap, [encode_request(request, version=9, correlation_id=1)], []


def partitions_that_a_rule_refuses(n: int) -> Work:
    tap = StillTap()
    tap.faults.add("Fetch topic=t error=NOT_LEADER_OR_FOLLOWER")
    parts = [FetchPartition(partition=index) for index in range(n)]
    request = FetchRequest(topics=[FetchTopic(topic="t", partitions=parts)])
    data = [PartitionData(partition_index=index, records=b"") for index in range(n)]
    answer = FetchResponse(responses=[FetchableTopicResponse(topic="t", partitions=data)])
    return (
        tap,
        [encode_request(request, version=12, correlation_id=1)],
        [encode_response(answer, version=12, correlation_id=1)],
    )


CASES: list[tuple[Callable[[int], Work], int]] = [
    (frames_in_one_piece, 300),
    (frames_with_a_recording, 300),
    (frames_with_a_script, 100),
    (frames_that_a_rule_takes, 60),
    (a_large_frame_in_pieces, 500),
    (a_large_frame_that_passes, 100),
    (brokers_that_are_named, 500),
    (versions_that_are_lowered, 500),
    (partitions_of_a_session, 60),
    (partitions_that_a_rule_refuses, 100),
    (partitions_of_a_produce_that_a_rule_refuses, 100),
]


@pytest.mark.parametrize("case", CASES, ids=lambda case: case[0].__name__)
def test_work_grows_as_the_input(case: tuple[Callable[[int], Work], int]) -> None:
    make, n = case
    assert_linear(make, passed, n)
