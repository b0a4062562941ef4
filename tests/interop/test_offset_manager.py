"""Offsets in a running offset manager of Kafka 0.8.2.2: either side reads what the other has committed."""

from __future__ import annotations

import time
from collections.abc import Iterator

import pytest

from coordwire.messages import FindCoordinatorRequest, MetadataRequest
from coordwire.messages.metadata import MetadataRequestTopic
from tests.designs.drafts.test_zookeeper_offsets import KAFKA, PARTITIONS, Group
from tests.interop.conftest import give_up
from tests.interop.maven import Unavailable
from tests.interop.offset_manager import RunningOffsetManager

pytestmark = pytest.mark.maven


def create_topic(manager: RunningOffsetManager) -> None:
    """Ask for topic t until its partitions have leaders; an offset manager knows no other partitions."""
    request = MetadataRequest(topics=[MetadataRequestTopic(name="t")])
    for _ in range(600):
        (topic,) = manager.request(request).topics
        if not topic.error_code and all(partition.leader_id == 1 for partition in topic.partitions):
            assert len(topic.partitions) == len(PARTITIONS)
            return
        time.sleep(0.1)
    pytest.fail("topic t was not created")


@pytest.fixture(scope="module")
def manager() -> Iterator[RunningOffsetManager]:
    try:
        with RunningOffsetManager() as running:
            create_topic(running)
            yield running
    except Unavailable as error:
        give_up(error)


def test_a_group_finds_its_offset_manager(manager: RunningOffsetManager) -> None:
    assert manager.commit("first", "t", 0, 1) == 0  # now the topic of offsets is there
    answer = manager.request(FindCoordinatorRequest(key="g"))
    assert (answer.error_code, answer.node_id, answer.host) == (0, 1, "127.0.0.1")


def test_our_consumers_go_on_where_kafka_has_committed_and_kafka_reads_what_they_commit(
    manager: RunningOffsetManager,
) -> None:
    for partition in PARTITIONS:
        assert manager.commit("g", partition.topic, int(partition.partition), 100) == 0
    group = Group(1, manager=lambda request, now: manager.request(request))
    group.read = dict.fromkeys(PARTITIONS, 100)
    group.start("a", KAFKA)
    group.run(10_000)
    assert {offset for _, offset, *_ in group.began} == {100}
    group.stop("a", kill=False)
    for partition in PARTITIONS:
        committed = manager.fetch("g", partition.topic, int(partition.partition))
        assert committed == group.committed[partition] > 100
