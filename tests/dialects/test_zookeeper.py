"""ZooKeeper's nodes with the documents' own examples, topic_count, and who owns what."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from coordwire import DecodeError, EncodeError
from coordwire.dialects.zookeeper import (
    Broker,
    ClusterId,
    Coordinator,
    Node,
    Offset,
    OldBroker,
    Owner,
    PartitionState,
    Registration,
    StaticTopics,
    Topic,
    TopicCount,
    WildcardTopics,
    parse_node,
    parse_topic_count,
    range_assignment,
    thread_ids,
)

EXAMPLES: list[tuple[str, str, Node]] = [
    (
        Broker.path(3),
        '{"jmx_port":10055,"timestamp":"1453380999577","host":"192.168.48.153","version":1,"port":9092}',
        Broker(jmx_port=10055, timestamp=1453380999577, host="192.168.48.153", version=1, port=9092),
    ),
    (
        Broker.path(0),
        '{"jmx_port":-1,"timestamp":"1","endpoints":["PLAINTEXT://h:9092"],"host":"h","version":3,"port":9092,'
        '"rack":"r1"}',
        Broker(
            jmx_port=-1,
            timestamp=1,
            endpoints=["PLAINTEXT://h:9092"],
            host="h",
            version=3,
            port=9092,
            other_fields={"rack": "r1"},
        ),
    ),
    (
        OldBroker.path(0),
        '{"host":"host:port","topics":{"topic1":["partition1","partitionN"]}}',
        OldBroker(host="host:port", topics={"topic1": ["partition1", "partitionN"]}),
    ),
    (
        Topic.path("topic1"),
        '{"version":1,"partitions":{"2":[5,4],"1":[4,3],"0":[3,5]}}',
        Topic(version=1, partitions={2: [5, 4], 1: [4, 3], 0: [3, 5]}),
    ),
    (
        PartitionState.path("topic1", 0),
        '{"controller_epoch":1775,"leader":3,"version":1,"leader_epoch":145,"isr":[3,5]}',
        PartitionState(controller_epoch=1775, leader=3, version=1, leader_epoch=145, isr=[3, 5]),
    ),
    (
        Registration.path("payments", "host:uuid"),
        '{"version":1,"subscription":{"orders":2},"pattern":"static","timestamp":"1453380999577"}',
        Registration(subscription={"orders": 2}, timestamp=1453380999577),
    ),
    (Owner.path("payments", "orders", 0), "till-3-0", Owner("till-3-0")),
    (Owner.path("payments", "orders", "1-0", old=True), "till-3-0", Owner("till-3-0")),
    (Offset.path("payments", "orders", 0), "42", Offset(42)),
    (Coordinator.path(), "3", Coordinator(3)),
    (
        ClusterId.path(),
        '{"version":"1","id":"vPeOCWypqUOSepEvx0cbo"}',
        ClusterId(id="vPeOCWypqUOSepEvx0cbo"),
    ),
    (ClusterId.path(), "vPeOCWypqUOSepEvx0cbo", ClusterId(version=None, id="vPeOCWypqUOSepEvx0cbo")),
]


@pytest.mark.parametrize(("path", "text", "node"), EXAMPLES)
def test_the_documents_examples(path: str, text: str, node: Node) -> None:
    assert parse_node(path, text) == node
    assert parse_node(path, text.encode()) == node
    assert node.build() == text.encode()


def test_the_paths_are_the_documents() -> None:
    assert Broker.path(0) == "/brokers/ids/0"
    assert PartitionState.path("t", 1) == "/brokers/topics/t/partitions/1/state"
    assert Registration.path("g", "c") == "/consumers/g/ids/c"
    assert Owner.path("g", "t", 1) == "/consumers/g/owners/t/1"
    assert Owner.path("g", "t", "0-1", old=True) == "/consumers/g/owner/t/0-1"
    assert Offset.path("g", "t", "0-1") == "/consumers/g/offsets/t/0-1"
    for group in ("a", "a-b", "a-1", "a_b", "a.b"):  # each group has nodes of its own
        assert Registration.path(group, "c-1") == f"/consumers/{group}/ids/c-1"
        assert Owner.path(group, "t-u", 1) == f"/consumers/{group}/owners/t-u/1"
        assert Offset.path(group, "t-u", 1) == f"/consumers/{group}/offsets/t-u/1"
    assert (Coordinator.path(), ClusterId.path()) == ("/consumers/coordinator", "/cluster/id")
    with pytest.raises(KeyError):
        parse_node("/controller", "{}")
    with pytest.raises(EncodeError, match="can't be in a path"):
        Topic.path("a/b")


@pytest.mark.parametrize(
    ("path", "text", "offset", "where", "reason"),
    [
        ("/brokers/ids/0", "{", 1, "", "isn't JSON"),
        ("/brokers/ids/0", b"\xff", 0, "", "isn't UTF-8"),
        ("/brokers/ids/0", "[]", 0, "", "is not a JSON object"),
        ("/brokers/ids/0", '{"version":1,"host":"h"}', 0, "port", "missing"),
        (
            "/brokers/ids/0",
            '{"version":1,"host":"h","port":"x"}',
            0,
            "port",
            "expected a number, got a string",
        ),
        ("/brokers/ids/0", '{"version":1,"port":1e3}', 0, "port", "expected a number, got a fraction"),
        ("/brokers/ids/0", '{"version":1,"port":NaN}', 0, "", "NaN is not a JSON number"),
        ("/brokers/ids/0", '{"version":true,"port":1}', 0, "version", "got a boolean"),
        ("/brokers/ids/0", '{"version":1,"version":2,"port":1}', 0, "version", "occurs twice"),
        ("/brokers/topics/t", '{"version":1,"partitions":{"0":[1,null]}}', 0, "partitions.0[1]", "got null"),
        (
            "/brokers/topics/t",
            '{"version":1,"partitions":{"x":[1]}}',
            0,
            "partitions.x",
            "a partition",
        ),
        (
            "/brokers/topics/t",
            '{"version":1,"partitions":{"01":[1]}}',
            0,
            "partitions.01",
            "a partition",
        ),
        ("/brokers/topics/t", '{"version":1,"partitions":[]}', 0, "partitions", "got a list"),
        ("/brokers/topics/t", '{"version":1}', 0, "partitions", "missing"),
        ("/brokers/topics/t", '{"version":99999999999,"partitions":{}}', 0, "version", "is beyond"),
        ("/consumers/g/ids/c", '{"version":1,"subscription":{"t":0}}', 0, "subscription.t", "0 is beyond"),
        ("/consumers/g/offsets/t/0", "4x", 0, "", "is not a number"),
        ("/consumers/g/offsets/t/0", "9223372036854775808", 0, "", "is beyond"),
        ("/consumers/g/owners/t/0", "", 0, "", "is empty"),
        ("/consumers/coordinator", "", 0, "", "is not a number"),
        ("/cluster/id", "twenty-three-characters", 0, "id", "1 to 22 characters"),
        ("/cluster/id", '{"version":"1","id":"a b"}', 0, "id", "1 to 22 characters"),
        ("/cluster/id", '{"version":"1","id":"a.b"}', 0, "id", "1 to 22 characters"),
        ("/cluster/id", '{"version":"1","id":""}', 0, "id", "1 to 22 characters"),
    ],
)
def test_what_is_wrong_is_said(path: str, text: str | bytes, offset: int, where: str, reason: str) -> None:
    with pytest.raises(DecodeError) as error_info:
        parse_node(path, text)
    assert reason in error_info.value.reason
    assert (error_info.value.position, error_info.value.path) == (offset, where)


@pytest.mark.parametrize("cluster_id", ["a", "_", "-", "Z9", "aZ09_-" + "x" * 16])
def test_a_cluster_id_has_1_to_22_characters(cluster_id: str) -> None:
    node = json.dumps({"version": "1", "id": cluster_id}, separators=(",", ":"))
    for text in (cluster_id, node):
        assert parse_node("/cluster/id", text).build() == text.encode()


PATHS = [path for path, _, _ in EXAMPLES]


@given(st.sampled_from(PATHS), st.binary(max_size=30) | st.text(max_size=30).map(str.encode))
def test_strangers_texts_raise_nothing_but_ours(path: str, data: bytes) -> None:
    try:
        node = parse_node(path, data)
    except DecodeError:
        return
    assert parse_node(path, node.build()) == node


_VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=3), inner, max_size=3),
    max_leaves=5,
)


@given(st.sampled_from([e for e in EXAMPLES if e[1][0] == "{"]), st.data())
def test_changed_nodes_raise_nothing_but_ours(example: tuple[str, str, Node], data: st.DataObject) -> None:
    path, text, _ = example
    form = json.loads(text)
    key = data.draw(st.sampled_from(sorted(form)))
    form[key] = data.draw(_VALUES)
    try:
        node = parse_node(path, json.dumps(form))
    except DecodeError:
        return
    try:
        again = node.build()
    except EncodeError:  # a lone surrogate
        return
    assert parse_node(path, again) == node


def test_a_value_that_cannot_be_written() -> None:
    with pytest.raises(EncodeError, match=r"isr\[0\]: expected a number"):
        PartitionState(isr=["x"]).build()  # type: ignore[list-item]
    with pytest.raises(EncodeError, match=r"other_fields\.port"):
        Broker(port=1, other_fields={"port": 2}).build()
    with pytest.raises(EncodeError, match="cluster id"):
        ClusterId(id="").build()
    with pytest.raises(EncodeError, match="UTF-8"):
        Owner("\ud800").build()


# --- topic_count ---


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ('{"orders":2,"refunds":1}', StaticTopics({"orders": 2, "refunds": 1})),
        ("*2*order.*", WildcardTopics("order.*", 2)),
        ("!1!internal|test*!", WildcardTopics("internal|test*!", 1, blacklist=True)),
        ("*3*", WildcardTopics("", 3)),
    ],
)
def test_topic_count(text: str, value: TopicCount) -> None:
    assert parse_topic_count(text) == value
    assert parse_topic_count(text.encode()) == value
    assert value.build() == text


@pytest.mark.parametrize(
    ("text", "offset", "path", "reason"),
    [
        ("", 0, "", "is empty"),
        ("orders", 0, "", "isn't JSON"),
        ("*x*orders", 1, "", r"a wildcard is *streams*regex"),
        ("*2!orders", 1, "", r"a wildcard is *streams*regex"),
        ("*0*orders", 0, "streams", "0 is beyond 1"),
        ('{"orders":"2"}', 0, "orders", "expected a number, got a string"),
        ('{"orders":-1}', 0, "orders", "-1 is beyond"),
    ],
)
def test_a_topic_count_that_is_none(text: str, offset: int, path: str, reason: str) -> None:
    with pytest.raises(DecodeError) as error_info:
        parse_topic_count(text)
    assert reason in error_info.value.reason
    assert (error_info.value.position, error_info.value.path) == (offset, path)


def test_a_registration_as_topic_count() -> None:
    assert Registration(subscription={"t": 2}).topic_count == StaticTopics({"t": 2})
    black = Registration(subscription={"a.*": 2}, pattern="black_list")
    assert black.topic_count == WildcardTopics("a.*", 2, blacklist=True)
    with pytest.raises(DecodeError, match="2 expressions"):
        _ = Registration(subscription={"a": 1, "b": 1}, pattern="white_list").topic_count


# --- who owns what ---


def test_the_first_threads_get_one_more() -> None:
    threads = thread_ids("C1", 2) + thread_ids("C2", 2)
    assert threads == ["C1-0", "C1-1", "C2-0", "C2-1"]
    owned = range_assignment([4, 3, 2, 1, 0], threads)
    assert owned == {"C1-0": [0, 1], "C1-1": [2], "C2-0": [3], "C2-1": [4]}
    assert range_assignment([1, 0], ["b", "a", "c"]) == {"a": [0], "b": [1], "c": []}
    with pytest.raises(ValueError, match="at least one thread"):
        range_assignment([0], [])
    with pytest.raises(ValueError, match="twice"):
        range_assignment([0], ["a", "a"])


@given(st.sets(st.integers(0, 500)), st.sets(st.text(min_size=1, max_size=3), min_size=1))
def test_each_partition_has_one_owner(partitions: set[int], threads: set[str]) -> None:
    owned = range_assignment(partitions, list(threads))
    assert [one for thread in sorted(owned) for one in owned[thread]] == sorted(partitions)
    sizes = [len(owned[thread]) for thread in sorted(owned)]
    assert sizes == sorted(sizes, reverse=True)
    assert sizes[0] - sizes[-1] <= 1


def test_a_registration_in_the_oldest_form_is_its_topics() -> None:
    """`topic1,...topicN`: one stream of each; what else a text may be is refused."""
    node = parse_node("/consumers/g/ids/c", b"topic1,my.topic-2,topic_3")
    assert node == Registration(
        version=None, subscription={"topic1": 1, "my.topic-2": 1, "topic_3": 1}, pattern=None
    )
    assert isinstance(node, Registration)
    assert node.topic_count == StaticTopics({"topic1": 1, "my.topic-2": 1, "topic_3": 1})
    assert node.build() == b"topic1,my.topic-2,topic_3"
    for text in ("", ",", "a,", ",a", "a,,b", "a,a", "a b", "[]", '"a"', "a/b", "é", "a" * 250):
        with pytest.raises(DecodeError):
            Registration.parse(text)
    wrong: list[dict[str, Any]] = [
        {"subscription": {}}, {"subscription": {"a": 2}}, {"subscription": {"a,b": 1}},
        {"subscription": {"a": 1}, "timestamp": 1}, {"subscription": {"a": 1}, "pattern": "static"},
        {"subscription": {"a": 1}, "other_fields": {"x": 1}},
    ]  # fmt: skip
    for fields in wrong:
        with pytest.raises(EncodeError):
            Registration(**{"version": None, "pattern": None} | fields).build()
