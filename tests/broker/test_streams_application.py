"""Kafka's own Streams client in a streams group, exact through kills, and `kafka-streams-groups`."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from coordwire.broker import BrokerConfig
from coordwire.broker.harness import Kafka
from coordwire.coordinator import CoordinatorConfig, StreamsGroupConfig
from tests.broker.streams_application import APPLICATION, WordCount
from tests.interop.broker import Java
from tests.interop.maven import Unavailable

pytestmark = [pytest.mark.maven, pytest.mark.suites]


@pytest.fixture
def application(tmp_path: Path) -> Iterator[WordCount]:
    streams = StreamsGroupConfig(
        session_timeout_ms=6_000,
        heartbeat_interval_ms=500,
        assignment_interval_ms=0,
        initial_rebalance_delay_ms=0,
        num_standby_replicas=1,
    )
    config = BrokerConfig(coordinator=CoordinatorConfig(streams=streams))
    with Kafka(topics={"lines": 4, "counts": 3}, config=config) as kafka:
        try:
            application = WordCount(kafka, tmp_path)
        except Unavailable as error:
            pytest.skip(str(error))
        with application:
            yield application


def test_words_are_counted_exactly_through_kills_and_scaling(application: WordCount) -> None:
    application.start("a")
    group = application.until_stable(1)
    (member,) = group.members
    assert sum(len(tasks.partitions) for tasks in member.assignment.active_tasks) == 8
    application.write(200)
    application.until_counted()

    application.start("b", threads=2)
    group = application.until_stable(3)
    standby = [len(tasks.partitions) for member in group.members for tasks in member.assignment.standby_tasks]
    assert sum(standby) == 4, "a standby of each task with state"
    application.write(200)
    application.until_counted()

    application.kill("a")
    application.write(200)
    application.until_stable(2)
    application.until_counted()

    application.start("c")
    application.start("d")
    application.write(300)
    application.until_stable(4)
    application.kill("b")
    application.write(300)
    application.until_counted()
    application.until_stable(2)

    application.stop("c")
    application.write(50)
    application.until_stable(1)
    application.until_counted()


def test_internal_topics_are_made_with_their_settings(application: WordCount) -> None:
    application.start("a")
    application.until_stable(1)
    topics = application.kafka.broker.call(
        lambda broker: {name: topic.settings.own for name, topic in broker.cluster.topics.items()}
    )
    changelog = topics[f"{APPLICATION}-words-changelog"]
    assert changelog["cleanup.policy"] == "compact"
    repartition = topics[f"{APPLICATION}-words-repartition"]
    assert repartition["cleanup.policy"] == "delete"


def test_the_tool_for_streams_groups_works(application: WordCount) -> None:
    application.start("a")
    application.write(20)
    application.until_stable(1)
    application.until_counted()
    tool = Java()

    def run(*arguments: str) -> str:
        name = "org.apache.kafka.tools.streams.StreamsGroupCommand"
        return tool.run(name, "--bootstrap-server", application.kafka.bootstrap, *arguments, wait=90)

    assert APPLICATION in run("--list")
    assert re.search(rf"{APPLICATION}\s+Stable", run("--list", "--state"))
    assert re.search(rf"{APPLICATION}\s.*Stable\s+1", run("--describe", "--group", APPLICATION, "--state"))
    members = run("--describe", "--group", APPLICATION, "--members", "--verbose")
    assert re.search(r"ACTIVE: 0:\[0,1,2,3\],?\s*1:\[0,1,2,3\]|ACTIVE:.*0:\[0,1,2,3\]", members), members
    offsets = run("--describe", "--group", APPLICATION, "--offsets")
    assert re.search(rf"{APPLICATION}\s+lines\s+0\s+\d+", offsets), offsets
    application.stop("a")
    application.until(lambda group: group.group_state == "Empty", "empty group")
    reset = run(
        "--reset-offsets", "--group", APPLICATION, "--input-topic", "lines", "--to-earliest", "--execute"
    )
    assert re.search(r"lines\s+0\s+0", reset), reset
    run("--delete", "--group", APPLICATION)
    assert APPLICATION not in run("--list").split()
