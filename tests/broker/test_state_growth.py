"""What a broker does where there is n of something that one request does not say, for n, 2n and 4n.

Rules: as in `test_request_growth`: only the work of handlers and of what waits for them, without a clock.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from coordwire.broker.cluster.disk_logs import open_cluster
from coordwire.broker.settings.broker_config import BrokerConfig
from coordwire.enums import ErrorCode
from coordwire.messages import (
    AddPartitionsToTxnRequest,
    AlterPartitionReassignmentsRequest,
    ConsumerGroupHeartbeatRequest,
    CreateTopicsRequest,
    DeleteRecordsRequest,
    DeleteTopicsRequest,
    EndTxnRequest,
    FetchRequest,
    IncrementalAlterConfigsRequest,
    InitProducerIdRequest,
    MetadataRequest,
    ProduceRequest,
    ShareAcknowledgeRequest,
    ShareFetchRequest,
    ShareGroupHeartbeatRequest,
    share_acknowledge,
)
from coordwire.messages.add_partitions_to_txn import AddPartitionsToTxnTopic
from coordwire.messages.alter_partition_reassignments import ReassignablePartition, ReassignableTopic
from coordwire.messages.create_topics import CreatableTopic
from coordwire.messages.delete_records import DeleteRecordsPartition, DeleteRecordsTopic
from coordwire.messages.fetch import FetchPartition, FetchTopic
from coordwire.messages.incremental_alter_configs import AlterableConfig, AlterConfigsResource
from coordwire.messages.metadata import MetadataRequestTopic
from coordwire.messages.produce import PartitionProduceData, TopicProduceData
from coordwire.messages.share_fetch import AcknowledgementBatch
from coordwire.messages.share_fetch import FetchPartition as SharedPartition
from coordwire.messages.share_fetch import FetchTopic as SharedTopic
from tests.broker.core import Core, asked_of, batch, records_of
from tests.growth import Counter, assert_increments, counting

SIZES = (12, 24, 48)

Run = Callable[[], object]
"""What is counted."""


@pytest.fixture(scope="module")
def counter() -> Iterator[Counter]:
    for case in CASES:
        case(2)()
    with counting() as counter:
        yield counter


def consumer(core: Core, number: int, **fields: Any) -> Any:
    request = ConsumerGroupHeartbeatRequest(
        group_id=f"g{number:04}", member_id="m", rebalance_timeout_ms=1_000, topic_partitions=[], **fields
    )
    return asked_of(core.cluster, request, 1)


def groups_of(n: int) -> Core:
    """n groups in many shards, which see the topics."""
    core = Core(topics={"orders": 3}, offsets_partitions=8)
    for number in range(n):
        consumer(core, number, subscribed_topic_names=["orders"])
    return core


def metadata_makes_many_topics(n: int) -> Run:
    core = groups_of(n)
    topics = [MetadataRequestTopic(name=f"t{number:04}") for number in range(n)]
    request = MetadataRequest(topics=topics, allow_auto_topic_creation=True)
    return lambda: asked_of(core.cluster, request, 9)


def metadata_names_a_topic_many_times(n: int) -> Run:
    core = Core(topics={"orders": n})
    return lambda: asked_of(
        core.cluster, MetadataRequest(topics=[MetadataRequestTopic(name="orders")] * n), 9
    )


def create_topics_makes_many(n: int) -> Run:
    core = groups_of(n)
    topics = [
        CreatableTopic(name=f"t{number:04}", num_partitions=1, replication_factor=1) for number in range(n)
    ]
    return lambda: asked_of(core.cluster, CreateTopicsRequest(topics=topics), 7)


def many_groups_are_configured(n: int) -> Run:
    core = groups_of(n)
    config = AlterableConfig(name="consumer.session.timeout.ms", config_operation=0, value="45000")
    resources = [
        AlterConfigsResource(resource_type=32, resource_name=f"g{number:04}", configs=[config])
        for number in range(n)
    ]
    return lambda: asked_of(core.cluster, IncrementalAlterConfigsRequest(resources=resources), 1)


def one_resource_is_configured_many_times(n: int) -> Run:
    core = Core()
    every = [AlterableConfig(name=f"n{number:04}", config_operation=0, value="1") for number in range(n)]
    resource = AlterConfigsResource(resource_type=4, resource_name="", configs=every)
    asked_of(core.cluster, IncrementalAlterConfigsRequest(resources=[resource]), 1)
    again = AlterConfigsResource(resource_type=4, resource_name="", configs=every[:1])
    return lambda: asked_of(core.cluster, IncrementalAlterConfigsRequest(resources=[again] * n), 1)


def a_list_setting_grows(n: int) -> Run:
    """n words, n times over."""
    core = Core(topics={"orders": 1})

    def altered() -> object:
        words = ",".join(f"{number:04}" for number in range(n))
        config = AlterableConfig(
            name="leader.replication.throttled.replicas", config_operation=2, value=words
        )
        resource = AlterConfigsResource(resource_type=2, resource_name="orders", configs=[config])
        return asked_of(core.cluster, IncrementalAlterConfigsRequest(resources=[resource]), 1)

    altered()
    return altered


def produced(core: Core, partitions: list[tuple[int, bytes]]) -> object:
    data = [PartitionProduceData(index=index, records=records) for index, records in partitions]
    request = ProduceRequest(acks=1, topic_data=[TopicProduceData(name="orders", partition_data=data)])
    return asked_of(core.cluster, request, 12)


def waiting(core: Core, partitions: list[int], min_bytes: int) -> None:
    asked = [FetchPartition(partition=index, partition_max_bytes=1 << 30) for index in partitions]
    request = FetchRequest(
        max_wait_ms=1 << 30, min_bytes=min_bytes, max_bytes=1 << 30,
        topics=[FetchTopic(topic="orders", partitions=asked)],
    )  # fmt: skip
    answers, _ = core.begin(request, 12)
    assert not answers


def many_partitions_are_written_that_a_fetch_waits_for(n: int) -> Run:
    core = Core(topics={"orders": n})
    waiting(core, list(range(n)), 1 << 30)
    return lambda: produced(core, [(index, batch(b"v")) for index in range(n)])


def a_partition_is_written_many_times_that_a_fetch_names_many_times(n: int) -> Run:
    core = Core(topics={"orders": n})
    waiting(core, [0] * n, 1 << 30)
    return lambda: produced(core, [(0, batch(b"v"))] * n)


def a_partition_is_written_that_many_fetches_wait_for(n: int) -> Run:
    core = Core(topics={"orders": 1})
    for _ in range(n):
        waiting(core, [0], 1)
    return lambda: produced(core, [(0, batch(b"v"))])


def in_transaction(n: int) -> tuple[Core, Any]:
    """A producer with 8 n partitions in its transaction."""
    core = Core(topics={"orders": 8 * n}, transactions_partitions=1)
    producer: Any = asked_of(
        core.cluster, InitProducerIdRequest(transactional_id="x", transaction_timeout_ms=60_000), 4
    )
    request = AddPartitionsToTxnRequest(
        v3_and_below_transactional_id="x", v3_and_below_producer_id=producer.producer_id,
        v3_and_below_producer_epoch=producer.producer_epoch,
        v3_and_below_topics=[AddPartitionsToTxnTopic(name="orders", partitions=list(range(8 * n)))],
    )  # fmt: skip
    asked_of(core.cluster, request, 3)
    return core, producer


def a_transaction_of_many_partitions_ends(n: int) -> Run:
    core, producer = in_transaction(n)
    request = EndTxnRequest(
        transactional_id="x",
        producer_id=producer.producer_id,
        producer_epoch=producer.producer_epoch,
        committed=True,
    )
    return lambda: asked_of(core.cluster, request, 3)


def the_first_record_is_read_before_many_aborted_transactions(n: int) -> Run:
    """For a reader of committed records, n times."""
    core = Core(topics={"orders": 1})
    log = core.cluster.topics["orders"].partitions[0].log
    for number in range(n):
        data = batch(b"v", producer_id=number, producer_epoch=0, base_sequence=0, transactional=True)
        log.append_own(data)
        log.end_transaction(number, 0, committed=False, coordinator_epoch=0, version=0, now=core.now)

    def read() -> None:
        for number in range(n):
            assert len(log.read(2 * number, 1, committed=True).aborted or []) == 1

    return read


# --- share groups ---


class Shared:
    """A share group "g" that reads a topic from its start. records: of each of its partitions."""

    def __init__(self, partitions: int, records: int) -> None:
        self.core = Core(topics={"orders": partitions}, share_state_partitions=2, share_sessions=10_000)
        self.topic_id = self.core.cluster.topics["orders"].id
        self.partitions = partitions
        self.configure()
        self.beat("m")
        self.core.pass_time(0)
        for _ in range(records):
            produced(self.core, [(index, batch(b"v")) for index in range(partitions)])

    def configure(self, group_id: str = "g") -> None:
        config = AlterableConfig(name="share.auto.offset.reset", config_operation=0, value="earliest")
        resource = AlterConfigsResource(resource_type=32, resource_name=group_id, configs=[config])
        asked_of(self.core.cluster, IncrementalAlterConfigsRequest(resources=[resource]), 1)

    def beat(self, member_id: str, group_id: str = "g") -> None:
        request = ShareGroupHeartbeatRequest(
            group_id=group_id, member_id=member_id, subscribed_topic_names=["orders"]
        )
        asked_of(self.core.cluster, request, 1)

    def request(self, epoch: int, member_id: str = "m", **fields: Any) -> ShareFetchRequest:
        places = [SharedPartition(partition_index=index) for index in range(self.partitions)]
        request = ShareFetchRequest(
            group_id="g", member_id=member_id, share_session_epoch=epoch, max_wait_ms=0, min_bytes=1,
            max_bytes=1 << 24, max_records=10_000, batch_size=1,
            topics=[SharedTopic(topic_id=self.topic_id, partitions=places)],
        )  # fmt: skip
        for name, value in fields.items():
            setattr(request, name, value)
        return request

    def fetch(self, epoch: int, member_id: str = "m", **fields: Any) -> Any:
        return asked_of(self.core.cluster, self.request(epoch, member_id, **fields), 2)

    def wait(self, member_id: str, min_bytes: int = 1) -> None:
        request = self.request(0, member_id, max_wait_ms=1 << 30, min_bytes=min_bytes)
        answers, _ = self.core.begin(request, 2)
        assert not answers


def acquired_of(answer: Any) -> int:
    """How many records an answer has."""
    return sum(
        run.last_offset - run.first_offset + 1
        for topic in answer.responses
        for partition in topic.partitions
        for run in partition.acquired_records
    )


def many_partitions_are_acquired(n: int) -> Run:
    shared = Shared(n, 1)
    return lambda: shared.fetch(0)


def many_batches_are_acquired(n: int) -> Run:
    shared = Shared(1, n)
    return lambda: shared.fetch(0)


def many_records_are_acknowledged(n: int) -> Run:
    """In a batch of each record, every other one of which is released."""
    shared = Shared(1, n)
    assert acquired_of(shared.fetch(0)) == n
    batches = [
        AcknowledgementBatch(first_offset=number, last_offset=number, acknowledge_types=[1 + number % 2])
        for number in range(n)
    ]
    place = SharedPartition(partition_index=0, acknowledgement_batches=batches)
    topics = [SharedTopic(topic_id=shared.topic_id, partitions=[place])]
    return lambda: shared.fetch(1, topics=topics)


def many_partitions_are_acknowledged(n: int) -> Run:
    shared = Shared(n, 1)
    assert acquired_of(shared.fetch(0)) == n
    batches = [share_acknowledge.AcknowledgementBatch(first_offset=0, last_offset=0, acknowledge_types=[1])]
    places = [
        share_acknowledge.AcknowledgePartition(partition_index=index, acknowledgement_batches=batches)
        for index in range(n)
    ]
    topics = [share_acknowledge.AcknowledgeTopic(topic_id=shared.topic_id, partitions=places)]
    request = ShareAcknowledgeRequest(group_id="g", member_id="m", share_session_epoch=1, topics=topics)
    return lambda: asked_of(shared.core.cluster, request, 2)


def many_partitions_are_released_as_a_session_ends(n: int) -> Run:
    shared = Shared(n, 1)
    assert acquired_of(shared.fetch(0)) == n
    return lambda: shared.fetch(-1, topics=[])


def many_partitions_are_released_that_a_share_fetch_waits_for(n: int) -> Run:
    shared = Shared(n, 1)
    assert acquired_of(shared.fetch(0)) == n
    shared.wait("other", min_bytes=1 << 30)
    return lambda: shared.fetch(-1, topics=[])


def many_locks_end(n: int) -> Run:
    shared = Shared(n, 1)
    assert acquired_of(shared.fetch(0)) == n
    return lambda: shared.core.pass_time(60_000)


def many_locks_of_a_partition_end(n: int) -> Run:
    shared = Shared(1, n)
    assert acquired_of(shared.fetch(0)) == n
    return lambda: shared.core.pass_time(60_000)


def many_partitions_are_written_that_a_share_fetch_waits_for(n: int) -> Run:
    shared = Shared(n, 0)
    shared.wait("m", min_bytes=1 << 30)
    return lambda: produced(shared.core, [(index, batch(b"v")) for index in range(n)])


def a_partition_is_written_that_many_share_fetches_wait_for(n: int) -> Run:
    shared = Shared(1, 0)
    for number in range(n):
        shared.wait(f"m{number}")
    return lambda: produced(shared.core, [(0, batch(b"v"))])


def many_share_groups_that_read_a_topic_are_configured(n: int) -> Run:
    shared = Shared(1, 1)
    names = [f"g{number:04}" for number in range(n)]
    for name in names:
        shared.configure(name)
        shared.beat("m", name)
        shared.core.pass_time(0)
        assert acquired_of(shared.fetch(0, group_id=name)) == 1
    config = AlterableConfig(name="share.record.lock.duration.ms", config_operation=0, value="20000")
    resources = [
        AlterConfigsResource(resource_type=32, resource_name=name, configs=[config]) for name in names
    ]
    return lambda: asked_of(shared.core.cluster, IncrementalAlterConfigsRequest(resources=resources), 1)


def many_topics_are_deleted_that_a_share_group_reads(n: int) -> Run:
    core = Core(topics={f"t{number:04}": 1 for number in range(n)}, share_state_partitions=2)
    names = list(core.cluster.topics)
    request = ShareGroupHeartbeatRequest(group_id="g", member_id="m", subscribed_topic_names=names)
    asked_of(core.cluster, request, 1)
    core.pass_time(0)
    topics = [
        SharedTopic(topic_id=core.cluster.topics[name].id, partitions=[SharedPartition(partition_index=0)])
        for name in names
    ]
    fetch = ShareFetchRequest(
        group_id="g", member_id="m", max_wait_ms=0, max_bytes=1, max_records=1, batch_size=1, topics=topics
    )
    assert asked_of(core.cluster, fetch, 2).error_code == 0  # type: ignore[attr-defined]
    return lambda: asked_of(core.cluster, DeleteTopicsRequest(topic_names=names), 5)


CASES: list[Callable[[int], Run]] = [
    metadata_makes_many_topics,
    metadata_names_a_topic_many_times,
    create_topics_makes_many,
    many_groups_are_configured,
    one_resource_is_configured_many_times,
    a_list_setting_grows,
    many_partitions_are_written_that_a_fetch_waits_for,
    a_partition_is_written_many_times_that_a_fetch_names_many_times,
    a_partition_is_written_that_many_fetches_wait_for,
    a_transaction_of_many_partitions_ends,
    the_first_record_is_read_before_many_aborted_transactions,
    many_partitions_are_acquired,
    many_batches_are_acquired,
    many_records_are_acknowledged,
    many_partitions_are_acknowledged,
    many_partitions_are_released_as_a_session_ends,
    many_partitions_are_released_that_a_share_fetch_waits_for,
    many_locks_end,
    many_locks_of_a_partition_end,
    many_partitions_are_written_that_a_share_fetch_waits_for,
    a_partition_is_written_that_many_share_fetches_wait_for,
    many_share_groups_that_read_a_topic_are_configured,
    many_topics_are_deleted_that_a_share_group_reads,
]


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.__name__)
def test_what_there_is_costs_no_more_than_its_number(case: Callable[[int], Run], counter: Counter) -> None:
    counts = []
    for size in SIZES:
        run = case(size)
        before = counter.count
        run()
        counts.append(counter.count - before)
    assert_increments(counts, noise=100)


# --- on disk ---


def records_deleted(n: int) -> Any:
    partitions = [DeleteRecordsPartition(partition_index=index, offset=1) for index in range(n)]
    return DeleteRecordsRequest(topics=[DeleteRecordsTopic(name="orders", partitions=partitions)]), 2


def partitions_reassigned(n: int) -> Any:
    partitions = [ReassignablePartition(partition_index=index, replicas=[1, 2]) for index in range(n)]
    return AlterPartitionReassignmentsRequest(
        topics=[ReassignableTopic(name="orders", partitions=partitions)]
    ), 0


def topics_deleted(n: int) -> Any:
    return DeleteTopicsRequest(topic_names=[f"t{number:04}" for number in range(n)]), 5


@pytest.mark.parametrize("make", [records_deleted, partitions_reassigned, topics_deleted])
def test_many_partitions_on_disk(make: Callable[[int], Any], counter: Counter, tmp_path: Path) -> None:
    counts = []
    for size in (2, *SIZES):
        cluster = open_cluster(
            tmp_path / str(size), clock=lambda: 1_700_000_000_000, config=BrokerConfig(), nodes=(1, 2)
        )
        cluster.create_topic("orders", size, assignments=[[1]] * size)
        for number in range(size):
            cluster.create_topic(f"t{number:04}", 1)
        data = [PartitionProduceData(index=index, records=batch(b"v")) for index in range(size)]
        topic = TopicProduceData(name="orders", partition_data=data)
        asked_of(cluster, ProduceRequest(acks=1, topic_data=[topic]), 12)
        request, version = make(size)
        before = counter.count
        asked_of(cluster, request, version)
        counts.append(counter.count - before)
        cluster.close()
    assert_increments(counts[1:], noise=300)


# --- what is named twice, as Kafka answers it ---


def test_what_a_request_names_twice() -> None:
    core = Core(topics={"orders": 2})
    for value in (b"a", b"b"):
        produced(core, [(0, batch(value))])
    asked = [FetchPartition(partition=0, partition_max_bytes=1, fetch_offset=number) for number in (0, 1)]
    request = FetchRequest(max_bytes=1 << 20, topics=[FetchTopic(topic="orders", partitions=asked)])
    fetched: Any = asked_of(core.cluster, request, 12)
    (partition,) = fetched.responses[0].partitions
    assert [offset for offset, _ in records_of(partition.records)] == [1]
    named = [MetadataRequestTopic(name="orders")] * 2
    described: Any = asked_of(core.cluster, MetadataRequest(topics=named), 9)
    assert [topic.name for topic in described.topics] == ["orders"]
    removed = [DeleteRecordsPartition(partition_index=0, offset=number) for number in (2, 1)]
    topic = DeleteRecordsTopic(name="orders", partitions=removed)
    deleted: Any = asked_of(core.cluster, DeleteRecordsRequest(topics=[topic]), 2)
    assert [partition.low_watermark for partition in deleted.topics[0].partitions] == [1]
    resource = AlterConfigsResource(resource_type=2, resource_name="orders", configs=[])
    altered: Any = asked_of(core.cluster, IncrementalAlterConfigsRequest(resources=[resource] * 2), 1)
    assert [response.error_code for response in altered.responses] == [ErrorCode.INVALID_REQUEST] * 2
