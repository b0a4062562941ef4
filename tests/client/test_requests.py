"""A request with its look-ups and retries, without I/O: what is sent, in which order, and what ends it."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from coordwire.client import (
    AuthenticationRefused,
    BrokerUnreachable,
    ClientError,
    ClientSettings,
    RequestFailed,
    VersionUnavailable,
)
from coordwire.client.cluster import KnownCluster
from coordwire.client.requests import (
    Deliver,
    Delivered,
    Delivery,
    LastTry,
    NodeAnswer,
    Pause,
    Steps,
    perform,
    whole_answer,
)
from coordwire.codec import Message, Response
from coordwire.enums import ErrorCode
from coordwire.messages import (
    CreateTopicsRequest,
    CreateTopicsResponse,
    DescribeClusterRequest,
    DescribeClusterResponse,
    DescribeGroupsRequest,
    DescribeGroupsResponse,
    FindCoordinatorRequest,
    FindCoordinatorResponse,
    ListGroupsRequest,
    ListGroupsResponse,
    ListOffsetsRequest,
    ListOffsetsResponse,
    MetadataRequest,
    MetadataResponse,
    OffsetCommitRequest,
    OffsetCommitResponse,
)
from coordwire.messages.create_topics import CreatableTopicResult
from coordwire.messages.describe_cluster import DescribeClusterBroker
from coordwire.messages.describe_groups import DescribedGroup
from coordwire.messages.find_coordinator import Coordinator
from coordwire.messages.list_groups import ListedGroup
from coordwire.messages.list_offsets import (
    ListOffsetsPartition,
    ListOffsetsPartitionResponse,
    ListOffsetsTopic,
    ListOffsetsTopicResponse,
)
from coordwire.messages.metadata import (
    MetadataResponseBroker,
    MetadataResponsePartition,
    MetadataResponseTopic,
)
from coordwire.messages.offset_commit import OffsetCommitResponsePartition, OffsetCommitResponseTopic

NODES = {1: ("one", 9092), 2: ("two", 9092), 3: ("three", 9092)}
SETTINGS = ClientSettings(bootstrap=(("one", 9092),), retries=3, retry_backoff_ms=300)
Reaction = Callable[[Delivery], "Response | ClientError"]


class Driver:
    """Runs the steps of a request against a function, and keeps what was sent and how long it waited."""

    def __init__(self, react: Reaction) -> None:
        self.react = react
        self.sent: list[tuple[str | None, Message]] = []
        self.pauses: list[int] = []

    def run(self, steps: Steps) -> list[NodeAnswer]:
        try:
            step = next(steps)
            while True:
                if isinstance(step, Pause):
                    self.pauses.append(step.ms)
                    step = next(steps)
                    continue
                assert isinstance(step, Deliver)
                self.sent += [(each.address and each.address[0], each.message) for each in step.deliveries]
                step = steps.send([self._result(each) for each in step.deliveries])
        except StopIteration as end:
            answers: list[NodeAnswer] = end.value
            return answers

    def _result(self, delivery: Delivery) -> Delivered | ClientError:
        result = self.react(delivery)
        return result if isinstance(result, ClientError) else Delivered(result, 0)

    def names(self) -> list[tuple[str | None, str]]:
        return [(host, type(message).__name__) for host, message in self.sent]


class World:
    """A cluster as a function: its leaders and coordinators, which tests change."""

    def __init__(self) -> None:
        self.controller = 1
        self.leaders = {("t", 0): 1, ("t", 1): 2}
        self.coordinators = {"a": 2, "b": 3}
        self.down: set[str] = set()
        self.find_code = 0
        self.has_batched_find = True

    def __call__(self, delivery: Delivery) -> Response | ClientError:
        host, message = (delivery.address or NODES[1])[0], delivery.message
        if host in self.down:
            return BrokerUnreachable(f"{host}: Connection refused", sent=False)
        match message:
            case MetadataRequest():
                return self._metadata(message)
            case FindCoordinatorRequest():
                return self._find(message)
            case DescribeGroupsRequest():
                return DescribeGroupsResponse(groups=[self._group(name, host) for name in message.groups])
            case ListOffsetsRequest():
                return ListOffsetsResponse(topics=[self._offsets(topic, host) for topic in message.topics])
            case ListGroupsRequest():
                return ListGroupsResponse(groups=[ListedGroup(group_id=host)])
            case CreateTopicsRequest():
                code = 0 if host == NODES[self.controller][0] else ErrorCode.NOT_CONTROLLER
                return CreateTopicsResponse(topics=[CreatableTopicResult(name="t", error_code=int(code))])
        raise AssertionError(message)

    def _metadata(self, request: MetadataRequest) -> MetadataResponse:
        topics = []
        for asked in request.topics or ():
            found = {index: node for (name, index), node in self.leaders.items() if name == asked.name}
            topics.append(
                MetadataResponseTopic(
                    name=asked.name,
                    error_code=0 if found else 3,
                    partitions=[
                        MetadataResponsePartition(partition_index=index, leader_id=node)
                        for index, node in found.items()
                    ],
                )
            )
        brokers = [
            MetadataResponseBroker(node_id=node, host=host, port=port) for node, (host, port) in NODES.items()
        ]
        return MetadataResponse(brokers=brokers, controller_id=self.controller, topics=topics)

    def _find(self, request: FindCoordinatorRequest) -> Response | ClientError:
        if request.coordinator_keys and not self.has_batched_find:
            return VersionUnavailable("no version can carry the request")
        found = []
        for key in request.coordinator_keys or [request.key]:
            node = self.coordinators[key]
            host, port = NODES[node]
            found.append(Coordinator(key=key, node_id=node, host=host, port=port, error_code=self.find_code))
        if request.coordinator_keys:
            return FindCoordinatorResponse(coordinators=found)
        (each,) = found
        return FindCoordinatorResponse(
            node_id=each.node_id, host=each.host, port=each.port, error_code=each.error_code
        )

    def _group(self, name: str, host: str) -> DescribedGroup:
        code = 0 if NODES[self.coordinators[name]][0] == host else int(ErrorCode.NOT_COORDINATOR)
        return DescribedGroup(group_id=name, error_code=code)

    def _offsets(self, topic: ListOffsetsTopic, host: str) -> ListOffsetsTopicResponse:
        partitions = []
        for partition in topic.partitions:
            leader = self.leaders.get((topic.name, partition.partition_index))
            code = 3 if leader is None else 0 if NODES[leader][0] == host else 6
            partitions.append(
                ListOffsetsPartitionResponse(partition_index=partition.partition_index, error_code=code)
            )
        return ListOffsetsTopicResponse(name=topic.name, partitions=partitions)


def offsets(topic: str, *numbers: int) -> ListOffsetsRequest:
    partitions = [ListOffsetsPartition(partition_index=number) for number in numbers]
    return ListOffsetsRequest(topics=[ListOffsetsTopic(name=topic, partitions=partitions)])


def test_groups_are_looked_up_once_and_asked_for_at_their_coordinators() -> None:
    world, cluster = World(), KnownCluster()
    driver = Driver(world)
    request = DescribeGroupsRequest(groups=["a", "b"])
    answer: Any = whole_answer(driver.run(perform(request, cluster, SETTINGS)), None)
    assert [(group.group_id, group.error_code) for group in answer.groups] == [("a", 0), ("b", 0)]
    assert driver.names() == [
        (None, "FindCoordinatorRequest"),
        ("two", "DescribeGroupsRequest"), ("three", "DescribeGroupsRequest"),
    ]  # fmt: skip
    again = Driver(world)
    again.run(perform(request, cluster, SETTINGS))
    assert again.names() == driver.names()[1:]
    assert again.pauses == []


def test_an_older_broker_is_asked_for_coordinators_one_by_one() -> None:
    world = World()
    world.has_batched_find = False
    driver = Driver(world)
    driver.run(perform(DescribeGroupsRequest(groups=["a", "b"]), KnownCluster(), SETTINGS))
    assert [name for _, name in driver.names()].count("FindCoordinatorRequest") == 3
    finds = [message for _, message in driver.sent if isinstance(message, FindCoordinatorRequest)]
    assert [message.key for message in finds] == ["", "a", "b"]


def test_a_group_that_has_moved_is_looked_up_again_alone() -> None:
    world, cluster = World(), KnownCluster()
    Driver(world).run(perform(DescribeGroupsRequest(groups=["a", "b"]), cluster, SETTINGS))
    world.coordinators["a"] = 1
    driver, last_try = Driver(world), LastTry()
    request = DescribeGroupsRequest(groups=["a", "b"])
    answers = driver.run(perform(request, cluster, SETTINGS, last_try=last_try))
    assert driver.names() == [
        ("two", "DescribeGroupsRequest"), ("three", "DescribeGroupsRequest"),
        (None, "FindCoordinatorRequest"), ("one", "DescribeGroupsRequest"),
    ]  # fmt: skip
    assert driver.sent[-1][1] == DescribeGroupsRequest(groups=["a"])
    assert driver.pauses == [300]
    assert [answer.node_id for answer in answers] == [3, 1]
    assert last_try.reason == "node 2 answers NOT_COORDINATOR"
    exceeded = last_try.deadline_exceeded(request, 80)
    expected = "no answer to DescribeGroupsRequest within 80 ms; last: node 2 answers NOT_COORDINATOR"
    assert exceeded.reason == expected


def test_tries_are_bounded_and_the_last_answer_is_the_answer() -> None:
    world, cluster = World(), KnownCluster()
    Driver(world).run(perform(DescribeGroupsRequest(groups=["a"]), cluster, SETTINGS))

    def lying(delivery: Delivery) -> Response | ClientError:
        if isinstance(delivery.message, DescribeGroupsRequest):
            return DescribeGroupsResponse(groups=[DescribedGroup(group_id="a", error_code=16)])
        return world(delivery)

    driver = Driver(lying)
    (answer,) = driver.run(perform(DescribeGroupsRequest(groups=["a"]), cluster, SETTINGS))
    assert answer.answer == DescribeGroupsResponse(groups=[DescribedGroup(group_id="a", error_code=16)])
    assert driver.pauses == [300, 600, 1_000]
    assert [name for _, name in driver.names()].count("DescribeGroupsRequest") == 4


def test_a_coordinator_that_is_not_given_ends_in_its_error() -> None:
    world = World()
    world.find_code = int(ErrorCode.COORDINATOR_NOT_AVAILABLE)
    driver = Driver(world)
    with pytest.raises(
        RequestFailed, match=r"'a' is known: COORDINATOR_NOT_AVAILABLE: .*\(attempts: 4\)"
    ) as end:
        driver.run(perform(DescribeGroupsRequest(groups=["a"]), KnownCluster(), SETTINGS))
    assert end.value.code == ErrorCode.COORDINATOR_NOT_AVAILABLE
    assert driver.pauses == [300, 600, 1_000]
    world.find_code = int(ErrorCode.GROUP_AUTHORIZATION_FAILED)
    driver = Driver(world)
    with pytest.raises(RequestFailed, match="GROUP_AUTHORIZATION_FAILED"):
        driver.run(perform(DescribeGroupsRequest(groups=["a"]), KnownCluster(), SETTINGS))
    assert driver.pauses == []


def test_partitions_go_to_their_leaders_and_unknown_ones_to_any_broker() -> None:
    driver = Driver(World())
    answers = driver.run(perform(offsets("t", 0, 1, 9), KnownCluster(), SETTINGS))
    assert driver.names() == [
        (None, "MetadataRequest"), ("one", "ListOffsetsRequest"), ("two", "ListOffsetsRequest"),
        (None, "ListOffsetsRequest"),
    ]  # fmt: skip
    answer: Any = whole_answer(answers, None)
    (topic,) = answer.topics
    codes = {partition.partition_index: partition.error_code for partition in topic.partitions}
    assert codes == {0: 0, 1: 0, 9: 3}
    nothing = Driver(World())
    nothing.run(perform(offsets("none", 0), KnownCluster(), SETTINGS))
    assert nothing.names() == [(None, "MetadataRequest"), (None, "ListOffsetsRequest")]


def test_a_partition_without_a_leader_is_waited_for() -> None:
    world = World()
    world.leaders["t", 1] = -1
    driver = Driver(world)
    with pytest.raises(RequestFailed, match="partition t-1 has no leader"):
        driver.run(perform(offsets("t", 0, 1), KnownCluster(), SETTINGS))
    assert driver.pauses == [300, 600, 1_000]


def test_the_controller_is_looked_up_again_after_it_moved() -> None:
    world, cluster = World(), KnownCluster()
    Driver(world).run(perform(CreateTopicsRequest(), cluster, SETTINGS))
    world.controller = 3
    driver = Driver(world)
    driver.run(perform(CreateTopicsRequest(), cluster, SETTINGS))
    assert driver.names() == [
        ("one", "CreateTopicsRequest"), (None, "MetadataRequest"), ("three", "CreateTopicsRequest"),
    ]  # fmt: skip


def test_each_broker_is_asked_where_each_answers_for_itself() -> None:
    driver = Driver(World())
    answers = driver.run(perform(ListGroupsRequest(), KnownCluster(), SETTINGS))
    assert [answer.node_id for answer in answers] == [1, 2, 3]
    whole: Any = whole_answer(answers, None)
    assert [group.group_id for group in whole.groups] == ["one", "two", "three"]
    world = World()
    world.down = {"three"}
    with pytest.raises(BrokerUnreachable, match=r"three: Connection refused \(attempts: 4\)"):
        Driver(world).run(perform(ListGroupsRequest(), KnownCluster(), SETTINGS))


def test_a_node_of_the_callers_choice() -> None:
    driver = Driver(World())
    (answer,) = driver.run(perform(ListGroupsRequest(), KnownCluster(), SETTINGS, to=2))
    assert answer.node_id == 2
    with pytest.raises(RequestFailed, match=r"expected a node of the cluster \(1, 2, 3\), got 7"):
        Driver(World()).run(perform(ListGroupsRequest(), KnownCluster(), SETTINGS, to=7))
    driver = Driver(World())
    (answer,) = driver.run(perform(ListGroupsRequest(), KnownCluster(), SETTINGS, to="any"))
    assert driver.names() == [(None, "ListGroupsRequest")]


def test_what_may_have_changed_something_is_not_sent_again() -> None:
    world, cluster = World(), KnownCluster()
    request = OffsetCommitRequest(group_id="a")

    def cut(delivery: Delivery) -> Response | ClientError:
        if isinstance(delivery.message, OffsetCommitRequest):
            return BrokerUnreachable("two: the broker closed the connection", sent=True)
        return world(delivery)

    driver = Driver(cut)
    with pytest.raises(BrokerUnreachable, match="closed the connection"):
        driver.run(perform(request, cluster, SETTINGS))
    assert driver.pauses == []

    def cut_reading(delivery: Delivery) -> Response | ClientError:
        if isinstance(delivery.message, DescribeGroupsRequest) and len(driver.pauses) < 2:
            return BrokerUnreachable("two: the broker closed the connection", sent=True)
        return world(delivery)

    driver = Driver(cut_reading)
    driver.run(perform(DescribeGroupsRequest(groups=["a"]), cluster, SETTINGS))
    assert driver.pauses == [300, 600]


@pytest.mark.parametrize(("codes", "tries"), [([16, 16], 4), ([16, 0], 1), ([0, 0], 1)])
def test_a_commit_is_sent_again_only_where_nothing_of_it_was_done(codes: list[int], tries: int) -> None:
    world = World()

    def partly(delivery: Delivery) -> Response | ClientError:
        if not isinstance(delivery.message, OffsetCommitRequest):
            return world(delivery)
        partitions = [OffsetCommitResponsePartition(error_code=code) for code in codes]
        return OffsetCommitResponse(topics=[OffsetCommitResponseTopic(partitions=partitions)])

    driver = Driver(partly)
    driver.run(perform(OffsetCommitRequest(group_id="a"), KnownCluster(), SETTINGS))
    assert [name for _, name in driver.names()].count("OffsetCommitRequest") == tries


def test_errors_that_no_look_up_can_mend_end_at_once() -> None:
    driver = Driver(lambda delivery: AuthenticationRefused("one: the broker refuses the credentials"))
    with pytest.raises(AuthenticationRefused):
        driver.run(perform(DescribeGroupsRequest(groups=["a"]), KnownCluster(), SETTINGS))
    with pytest.raises(AuthenticationRefused):
        driver.run(perform(offsets("t", 0), KnownCluster(), SETTINGS))
    assert driver.pauses == []


def test_controllers_are_asked_by_describe_cluster() -> None:
    settings = ClientSettings(bootstrap=(("one", 9093),), is_controller=True)
    asked: list[Message] = []

    def controllers(delivery: Delivery) -> Response | ClientError:
        asked.append(delivery.message)
        if isinstance(delivery.message, DescribeClusterRequest):
            brokers = [DescribeClusterBroker(broker_id=7, host="seven", port=9093)]
            return DescribeClusterResponse(controller_id=7, brokers=brokers)
        assert delivery.address == ("seven", 9093)
        return CreateTopicsResponse()

    Driver(controllers).run(perform(CreateTopicsRequest(), KnownCluster(), settings))
    assert asked[0] == DescribeClusterRequest(endpoint_type=2)
