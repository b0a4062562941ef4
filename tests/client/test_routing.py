"""Where requests belong: as Kafka's own clients send them; how they are split and their answers merged."""

from __future__ import annotations

from collections import Counter, defaultdict
from typing import Any
from uuid import UUID

import pytest

from coordwire.client import RequestFailed
from coordwire.client.routing import (
    AnyBroker,
    Controller,
    CoordinatorOf,
    EveryBroker,
    LeaderOf,
    NamedNode,
    merged,
    modifies,
    restricted,
    targets,
)
from coordwire.codec.walk import fields_of
from coordwire.messages import (
    AddPartitionsToTxnRequest,
    AlterReplicaLogDirsRequest,
    CreateTopicsRequest,
    DeleteTopicsRequest,
    DescribeConfigsRequest,
    DescribeGroupsRequest,
    DescribeGroupsResponse,
    DescribeLogDirsRequest,
    DescribeProducersRequest,
    DescribeTransactionsRequest,
    FetchRequest,
    HeartbeatResponse,
    InitProducerIdRequest,
    ListGroupsRequest,
    ListGroupsResponse,
    ListOffsetsRequest,
    ListOffsetsResponse,
    MetadataRequest,
    OffsetFetchRequest,
    ProduceRequest,
    ReadShareGroupStateRequest,
    WriteTxnMarkersRequest,
    find_message,
)
from coordwire.messages.add_partitions_to_txn import AddPartitionsToTxnTransaction
from coordwire.messages.describe_configs import DescribeConfigsResource
from coordwire.messages.describe_groups import DescribedGroup
from coordwire.messages.describe_producers import TopicRequest
from coordwire.messages.fetch import FetchPartition, FetchTopic
from coordwire.messages.keys import FACTS
from coordwire.messages.list_groups import ListedGroup
from coordwire.messages.list_offsets import (
    ListOffsetsPartition,
    ListOffsetsPartitionResponse,
    ListOffsetsTopic,
    ListOffsetsTopicResponse,
)
from coordwire.messages.offset_fetch import OffsetFetchRequestGroup
from coordwire.messages.read_share_group_state import PartitionData, ReadStateData
from coordwire.messages.write_txn_markers import WritableTxnMarker, WritableTxnMarkerTopic
from tests.client.routes import read_record

ID = UUID(int=7)
OWN_NODE = {"AlterReplicaLogDirs"}
"""What only the caller knows where to send."""


# --- as Kafka's clients send them ---


def test_each_request_goes_where_kafkas_clients_sent_it() -> None:
    """All requests of every call of Admin, of producers and of consumers, at a broker of three nodes."""
    cluster, routes = read_record()
    routes = [route for route in routes if route.api not in OWN_NODE]
    different: list[str] = []
    nodes_by_api: defaultdict[str, set[int]] = defaultdict(set)
    kinds: defaultdict[str, set[str]] = defaultdict(set)
    for route in routes:
        nodes_by_api[route.api].add(route.node)
        for target in targets(route.message).values():
            kinds[route.api].add(type(target).__name__)
            node = cluster.node_of(target)
            if node is not None and node != route.node:
                different.append(f"{route.api}: {target} is at {node}, Kafka's client asked {route.node}")
            if isinstance(target, LeaderOf | CoordinatorOf):
                assert node is not None, (route.api, target)
    assert different == []
    for api, nodes in nodes_by_api.items():
        facts = FACTS[find_message(api, "request").api_key or 0]
        if facts.answered_by == "every broker":
            assert nodes == {1, 2, 3}, api
    counts = Counter(kind for api in kinds for kind in kinds[api])
    assert counts["Controller"] >= 7
    assert counts["CoordinatorOf"] >= 20
    assert counts["LeaderOf"] >= 6


def test_what_goes_to_any_broker_goes_to_several_in_kafkas_clients() -> None:
    """So that "any broker" is not claimed of what has its place."""
    _, routes = read_record()
    nodes: defaultdict[str, set[int]] = defaultdict(set)
    for route in (route for route in routes if route.api not in OWN_NODE):
        if all(isinstance(target, AnyBroker) for target in targets(route.message).values()):
            nodes[route.api].add(route.node)
    assert len(nodes) >= 15
    assert [api for api, asked in nodes.items() if len(asked) < 2] == []


# --- the declarations ---


@pytest.mark.parametrize("key", FACTS)
def test_what_a_schema_declares_is_in_the_request(key: int) -> None:
    facts, cls = FACTS[key], find_message(key, "request")
    if facts.partitions:
        layout: Any = cls
        for name in facts.partitions.split("."):
            (field,) = [field for field in fields_of(layout) if field.name == name.removesuffix("[]")]
            assert field.array is name.endswith("[]")
            layout = field.struct or layout
    if isinstance(facts.modifies, tuple):
        (switch,) = [field for field in fields_of(cls) if field.name == facts.modifies[0]]
        assert switch.type == "bool"
    assert (facts.answered_by == "coordinator") is (facts.coordinator is not None)
    if facts.answered_by == "broker of the replicas":
        return
    assert targets(cls()) is not None


def test_what_changes_something_is_declared() -> None:
    names = {facts.name for facts in FACTS.values() if facts.modifies}
    verbs = ("Alter", "Create", "Delete", "Expire", "Renew", "Add", "Remove", "Write", "Update", "Unregister")
    assert [f.name for f in FACTS.values() if f.name.startswith(verbs) and f.name not in names] == []
    readers = ("Describe", "List", "Find", "Api", "Sasl")
    assert [name for name in names if name.startswith(readers)] == []
    assert {"Produce", "OffsetCommit", "JoinGroup", "EndTxn", "ElectLeaders"} <= names
    assert modifies(CreateTopicsRequest())
    assert not modifies(CreateTopicsRequest(validate_only=True))
    assert modifies(MetadataRequest())
    assert not modifies(MetadataRequest(allow_auto_topic_creation=False))
    assert modifies(DeleteTopicsRequest())
    assert not modifies(ListGroupsRequest())


# --- targets ---


def partitions(*numbers: int) -> list[ListOffsetsPartition]:
    return [ListOffsetsPartition(partition_index=number) for number in numbers]


def test_leaders_by_name_and_by_id() -> None:
    request = ListOffsetsRequest(
        topics=[
            ListOffsetsTopic(name="a", partitions=partitions(4, 5)),
            ListOffsetsTopic(name="b", partitions=partitions(0)),
        ]
    )
    expected = {(0, 0): LeaderOf("a", 4), (0, 1): LeaderOf("a", 5), (1, 0): LeaderOf("b", 0)}
    assert targets(request) == expected
    fetch = FetchRequest(topics=[FetchTopic(topic_id=ID, partitions=[FetchPartition(partition=3)])])
    assert targets(fetch) == {(0, 0): LeaderOf(ID, 3)}
    numbers = DescribeProducersRequest(topics=[TopicRequest(name="a", partition_indexes=[2, 1])])
    assert targets(numbers) == {(0, 0): LeaderOf("a", 2), (0, 1): LeaderOf("a", 1)}
    markers = WriteTxnMarkersRequest(
        markers=[WritableTxnMarker(topics=[WritableTxnMarkerTopic(name="a", partition_indexes=[2])])]
    )
    assert targets(markers) == {(0, 0, 0): LeaderOf("a", 2)}
    assert targets(ProduceRequest()) == {(): AnyBroker()}


def test_coordinators_by_their_keys() -> None:
    assert targets(DescribeGroupsRequest(groups=["a", ""])) == {
        (0,): CoordinatorOf("group", "a"), (1,): CoordinatorOf("group", ""),
    }  # fmt: skip
    assert targets(OffsetFetchRequest(group_id="a")) == {(): CoordinatorOf("group", "a")}
    groups = OffsetFetchRequest(groups=[OffsetFetchRequestGroup(group_id="b")])
    assert targets(groups) == {(0,): CoordinatorOf("group", "b")}
    assert targets(InitProducerIdRequest(transactional_id="t")) == {(): CoordinatorOf("transaction", "t")}
    assert targets(InitProducerIdRequest(transactional_id=None)) == {(): AnyBroker()}
    assert targets(AddPartitionsToTxnRequest(v3_and_below_transactional_id="t")) == {
        (): CoordinatorOf("transaction", "t")
    }
    several = AddPartitionsToTxnRequest(transactions=[AddPartitionsToTxnTransaction(transactional_id="t")])
    assert targets(several) == {(0,): CoordinatorOf("transaction", "t")}
    state = ReadShareGroupStateRequest(
        group_id="g", topics=[ReadStateData(topic_id=ID, partitions=[PartitionData(partition=2)])]
    )
    assert targets(state) == {(0, 0): CoordinatorOf("share", "g:AAAAAAAAAAAAAAAAAAAABw:2")}


def test_resources_of_brokers_have_their_node() -> None:
    request = DescribeConfigsRequest(
        resources=[
            DescribeConfigsResource(resource_type=4, resource_name="2"),
            DescribeConfigsResource(resource_type=8, resource_name="3"),
            DescribeConfigsResource(resource_type=4, resource_name=""),
            DescribeConfigsResource(resource_type=2, resource_name="2"),
        ]
    )
    assert targets(request) == {(0,): NamedNode(2), (1,): NamedNode(3), (2,): AnyBroker(), (3,): AnyBroker()}


def test_a_place_of_the_callers_choice() -> None:
    assert targets(DescribeLogDirsRequest()) == {(): EveryBroker()}
    assert targets(ListGroupsRequest(), "controller") == {(): Controller()}
    assert targets(DescribeGroupsRequest(groups=["a"]), "any") == {(): AnyBroker()}
    with pytest.raises(RequestFailed, match="names no partition"):
        targets(ListGroupsRequest(), "leader")
    with pytest.raises(RequestFailed, match="names no group"):
        targets(ListGroupsRequest(), "coordinator")
    with pytest.raises(RequestFailed, match="expected a node to send it to"):
        targets(AlterReplicaLogDirsRequest())
    with pytest.raises(RequestFailed, match="expected a request, got HeartbeatResponse"):
        targets(HeartbeatResponse())


# --- parts and answers ---


def test_parts_have_their_elements_in_order_and_leave_the_request_as_it_was() -> None:
    request = ListOffsetsRequest(
        isolation_level=1,
        topics=[
            ListOffsetsTopic(name="a", partitions=partitions(4, 5, 6)),
            ListOffsetsTopic(name="b", partitions=partitions(0)),
            ListOffsetsTopic(name="c", partitions=partitions(1)),
        ],
    )
    part = restricted(request, [(2, 0), (0, 2), (0, 0)])
    assert part == ListOffsetsRequest(
        isolation_level=1,
        topics=[
            ListOffsetsTopic(name="a", partitions=partitions(4, 6)),
            ListOffsetsTopic(name="c", partitions=partitions(1)),
        ],
    )
    assert restricted(request, [()]) is request
    assert len(request.topics[0].partitions) == 3
    groups = DescribeGroupsRequest(groups=["a", "b", "c"], include_authorized_operations=True)
    assert restricted(groups, [(1,)]) == DescribeGroupsRequest(
        groups=["b"], include_authorized_operations=True
    )
    transactions = DescribeTransactionsRequest(transactional_ids=["a", "b"])
    assert restricted(transactions, [(0,)]).transactional_ids == ["a"]


def offsets(topic: str, *numbers: int) -> ListOffsetsTopicResponse:
    return ListOffsetsTopicResponse(
        name=topic, partitions=[ListOffsetsPartitionResponse(partition_index=number) for number in numbers]
    )


def test_answers_become_one() -> None:
    first = ListOffsetsResponse(throttle_time_ms=3, topics=[offsets("a", 1), offsets("b", 0)])
    second = ListOffsetsResponse(throttle_time_ms=9, topics=[offsets("a", 2), offsets("c", 5)])
    third = ListOffsetsResponse(topics=[offsets("a", 3)])
    whole = ListOffsetsResponse(
        throttle_time_ms=9, topics=[offsets("a", 1, 2, 3), offsets("b", 0), offsets("c", 5)]
    )
    assert merged([first, second, third]) == whole
    assert first.topics[0] == offsets("a", 1)
    assert merged([first]) is first
    groups = [DescribeGroupsResponse(groups=[DescribedGroup(group_id=name)]) for name in "ab"]
    assert [group.group_id for group in merged(groups).groups] == ["a", "b"]
    with pytest.raises(ValueError, match="expected an answer"):
        merged([])


def test_equal_elements_of_two_brokers_stay_two() -> None:
    group = ListedGroup(group_id="a")
    answers = [ListGroupsResponse(groups=[group]), ListGroupsResponse(error_code=15, groups=[group])]
    whole = merged(answers, distinct=False)
    assert whole.groups == [group, group]
    assert whole.error_code == 15
    assert merged([ListGroupsResponse(groups=[group, group])] * 2).groups == [group, group]


def test_a_split_request_is_whole_again() -> None:
    """Parts for any division of the partitions hold each once."""
    request = ListOffsetsRequest(
        topics=[ListOffsetsTopic(name=f"t{t}", partitions=partitions(*range(t + 1))) for t in range(6)]
    )
    places = list(targets(request))
    for count in (1, 2, 5, len(places)):
        parts = [restricted(request, places[start::count]) for start in range(count)]
        found = Counter(target for part in parts for target in targets(part).values())
        assert found == Counter(targets(request).values())
