"""Dead letter queues of share groups (KIP-1191), as a broker of Kafka 4.4.0 fills them.

What it answered to such requests, its records in the queue and those in `__share_group_state` are expected.
"""

from __future__ import annotations

from typing import Any

import pytest

from coordwire.coordinator.share_partition import (
    AcknowledgementBatch,
    DeadLetters,
    RecordState,
    SharePartition,
    SharePartitionConfig,
    StateBatch,
    StateWrite,
)
from coordwire.logs import decode_log_record
from coordwire.messages import (
    CreateTopicsRequest,
    DescribeConfigsRequest,
    IncrementalAlterConfigsRequest,
    ShareUpdateValue,
)
from coordwire.messages.create_topics import CreatableTopic, CreatableTopicConfig
from coordwire.messages.describe_configs import DescribeConfigsResource
from coordwire.messages.incremental_alter_configs import AlterableConfig, AlterConfigsResource
from tests.broker.core import Core
from tests.broker.test_share_groups import ACCEPT, GROUP_RESOURCE, REJECT, RELEASE, Share
from tests.growth import assert_linear

_REJECTED, _EXCEEDED = "Offset rejected by client.", "Offset delivery count exceeded the threshold."
_QUEUE = "errors.deadletterqueue.topic.name"


class Group(Share):
    """A share group of two deliveries, with a queue."""

    def __init__(self, records: int, *, partitions: int = 2, **config: Any) -> None:
        super().__init__(records, config, delivery_count_limit="2", record_lock_duration_ms="15000")
        self.make("dlq.g", partitions=partitions)
        self.set(_QUEUE, "dlq.g")
        self.join("a")

    def make(self, name: str, enabled: str = "true", *, partitions: int = 1) -> None:
        """A topic for dead letters, which may be switched on."""
        switch = CreatableTopicConfig(name="errors.deadletterqueue.group.enable", value=enabled)
        topic = CreatableTopic(name=name, num_partitions=partitions, replication_factor=1, configs=[switch])
        self.core.ask(CreateTopicsRequest(topics=[topic]), 7)

    def set(self, name: str, value: str) -> None:
        resource = AlterConfigsResource(
            resource_type=GROUP_RESOURCE, resource_name="g", configs=[AlterableConfig(name=name, value=value)]
        )
        answer = self.core.ask(IncrementalAlterConfigsRequest(resources=[resource]), 1)
        assert answer.responses[0].error_code == 0

    def records(self, topic: str) -> list[Any]:
        partitions = self.core.cluster.topics[topic].partitions
        return [record for partition in partitions for batch in partition.log.batches() for record in batch]

    def letters(self) -> list[tuple[int, int, str]]:
        """Offset, deliveries and cause of each."""
        found = []
        for record in self.records("dlq.g"):
            headers = {name.removeprefix("__dlq.errors."): text.decode() for name, text in record.headers}
            assert (headers["topic"], headers["partition"], headers["group"]) == ("orders", "0", "g")
            found.append((int(headers["offset"]), int(headers["delivery.count"]), headers["message"]))
        return found

    def states(self) -> list[list[tuple[int, int, int, int]]]:
        """First and last offsets, state and deliveries of each write of the share partition's state."""
        values = [
            decode_log_record("share_group_state", record.key, record.value).value
            for record in self.records("__share_group_state")
        ]
        return [
            [
                (batch.first_offset, batch.last_offset, batch.delivery_state, batch.delivery_count)
                for batch in value.state_batches
            ]
            for value in values
            if isinstance(value, ShareUpdateValue)
        ]


def test_what_is_rejected_delivered_too_often_or_not_answered_in_time() -> None:
    group = Group(6)
    assert group.acquired("a") == [(0, 5, 1)]
    assert group.acquired("a", (0, 0, [REJECT]), (1, 1, [ACCEPT]), (2, 5, [RELEASE])) == [(2, 5, 2)]
    assert group.letters() == [(0, 1, _REJECTED)]
    assert group.acquired("a", (2, 3, [RELEASE])) == []
    assert group.letters()[1:] == [(2, 2, _EXCEEDED), (3, 2, _EXCEEDED)]
    group.core.pass_time(15_000)
    assert group.letters()[3:] == [(4, 2, _EXCEEDED), (5, 2, _EXCEEDED)]
    archiving, archived = RecordState.ARCHIVING, RecordState.ARCHIVED
    assert group.states()[:5] == [
        [(0, 0, archiving, 1), (1, 1, RecordState.ACKNOWLEDGED, 1), (2, 5, RecordState.AVAILABLE, 1)],
        [(0, 0, archived, 1)],
        [(2, 3, archiving, 2)],
        [(2, 2, archived, 2)],
        [(3, 3, archived, 2)],
    ]
    assert group.lag() == 0
    assert [(record.key, record.value) for record in group.records("dlq.g")] == [(None, None)] * 5


def test_a_copy_has_key_and_value() -> None:
    group = Group(3, partitions=1)
    group.set("errors.deadletterqueue.copy.record.enable", "true")
    group.acquired("a")
    group.acquired("a", (0, 2, [REJECT]))
    assert [record.value for record in group.records("dlq.g")] == [b"0", b"1", b"2"]


@pytest.mark.parametrize(
    ("queue", "enabled", "is_written"),
    [("dlq.none", None, False), ("other", "true", False), ("dlq.h", "false", False), ("dlq.h", "true", True)],
)
def test_records_are_archived_whatever_their_letters(
    queue: str, enabled: str | None, is_written: bool
) -> None:
    """There may be no such topic, or its name or settings don't fit."""
    group = Group(2)
    if enabled is not None:
        group.make(queue, enabled)
    group.set(_QUEUE, queue)
    group.acquired("a")
    group.acquired("a", (0, 1, [REJECT]))
    assert group.letters() == []
    assert (enabled is not None and len(group.records(queue)) == 2) is is_written
    archiving, archived = RecordState.ARCHIVING, RecordState.ARCHIVED
    assert group.states() == [[(0, 1, archiving, 1)], [(0, 1, archived, 1)]]
    assert group.lag() == 0


def test_a_missing_queue_is_made_where_brokers_make_them() -> None:
    group = Group(2, num_partitions=3, creates_dead_letter_queues=True)
    for offset, queue in enumerate(("dlq.new", "plain")):
        group.set(_QUEUE, queue)
        group.acquired("a")
        group.acquired("a", (offset, offset, [REJECT]))
    topics = group.core.cluster.topics
    assert "plain" not in topics
    assert len(topics["dlq.new"].partitions) == 3
    assert topics["dlq.new"].settings.own == {
        "errors.deadletterqueue.group.enable": "true", "message.timestamp.type": "CreateTime",
    }  # fmt: skip
    assert len(group.records("dlq.new")) == 1


@pytest.mark.parametrize("queue", ["not a topic", "dlq_g"])
def test_a_queue_that_cannot_be_made_is_given_up(queue: str) -> None:
    """A name that no topic can have, or the one of another in metrics."""
    group = Group(1, creates_dead_letter_queues=True, dead_letter_queue_prefix="")
    group.set(_QUEUE, queue)
    group.acquired("a")
    group.acquired("a", (0, 0, [REJECT]))
    assert queue not in group.core.cluster.topics
    assert group.lag() == 0


def test_any_name_will_do_without_a_prefix() -> None:
    group = Group(1, dead_letter_queue_prefix="")
    group.make("plain")
    group.set(_QUEUE, "plain")
    group.acquired("a")
    group.acquired("a", (0, 0, [REJECT]))
    assert len(group.records("plain")) == 1


def test_brokers_describe_how_queues_are_made() -> None:
    asked = DescribeConfigsResource(resource_type=4, resource_name="1", configuration_keys=None)
    for release, expected in (("4.4", ["false", "dlq."]), ("4.3", [])):
        answer = Core(as_of=release).ask(DescribeConfigsRequest(resources=[asked]), 4)
        configs = [config for config in answer.results[0].configs if "deadletter" in config.name]
        assert [config.value for config in configs] == expected


def test_without_a_queue_records_are_archived_at_once() -> None:
    group = Group(1)
    group.set(_QUEUE, "")
    group.acquired("a")
    group.acquired("a", (0, 0, [REJECT]))
    assert group.states() == [[(0, 0, RecordState.ARCHIVED, 1)]]


def loaded(*batches: StateBatch) -> SharePartition:
    config = SharePartitionConfig(delivery_count_limit=2, has_dead_letters=True, resumes_archiving=True)
    partition = SharePartition(config, now=0)
    partition.load(0, 1, batches)
    return partition


def test_what_a_crash_left_is_sent_again() -> None:
    """The cause is told by the deliveries, as Kafka does."""
    archiving = int(RecordState.ARCHIVING)
    partition = loaded(StateBatch(0, 1, 1, archiving), StateBatch(2, 2, 2, archiving), StateBatch(3, 3, 1, 0))
    first, second = partition.effects()
    assert isinstance(first, DeadLetters)
    assert isinstance(second, DeadLetters)
    assert (first.first_offset, first.last_offset, first.is_rejected) == (0, 1, True)
    assert (second.first_offset, second.is_rejected) == (2, False)
    for letters in (second, first):
        partition.archived(letters.number)
        (write,) = partition.effects()
        assert isinstance(write, StateWrite)
        assert [batch.delivery_state for batch in write.batches] == [RecordState.ARCHIVED]
        partition.written(write.number)
    assert (partition.start_offset, partition.delivery_complete_count) == (3, 0)
    partition.archived(first.number)
    assert not list(partition.effects())


def test_the_log_may_begin_later_meanwhile() -> None:
    partition = loaded(StateBatch(0, 9, 1, int(RecordState.ARCHIVING)), StateBatch(10, 10, 1, 0))
    (letters,) = partition.effects()
    assert isinstance(letters, DeadLetters)
    partition.move_start(5)
    partition.archived(letters.number)
    assert partition.delivery_complete_count == 5
    (write,) = partition.effects()
    assert isinstance(write, StateWrite)
    partition.written(write.number)
    assert partition.start_offset == 10


def test_a_record_on_its_way_is_not_acknowledged_again() -> None:
    partition = loaded()
    partition.acquire("m", [(0, 3)], fetch_offset=0, max_records=4, batch_size=500)
    partition.acknowledge("m", [AcknowledgementBatch(0, 3, [REJECT])])
    (write,) = partition.effects()
    assert isinstance(write, StateWrite)
    partition.written(write.number)
    _, letters = partition.effects()
    assert isinstance(letters, DeadLetters)
    partition.acknowledge("m", [AcknowledgementBatch(0, 0, [ACCEPT])])
    (refused,) = partition.effects()
    assert refused.error_code  # type: ignore[union-attr]
    assert partition.acquire("m", [(0, 3)], fetch_offset=0, max_records=4, batch_size=500) == []


@pytest.mark.growth
def test_work_is_linear_in_records() -> None:
    def group_of(count: int) -> Group:
        group = Group(count, partitions=1)
        group.acquired("a", max_records=count)
        return group

    def reject_each(group: Group) -> None:
        count = len(group.records("orders"))
        group.acquired("a", (0, count - 1, [REJECT] * count))
        assert len(group.letters()) == count

    assert_linear(group_of, reject_each, 100)
