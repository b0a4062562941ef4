"""`coordwire call`: its short verbs, and answers as tables that fit a screen."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Iterator

import pytest

from coordwire.broker import Broker, BrokerConfig, Server, ServerCall
from coordwire.broker.thread import BrokerThread
from coordwire.capture.printable import shown
from coordwire.cli.__main__ import main
from coordwire.cli.call import VERB_NAMES, verbs
from coordwire.cli.call.answer_tables import Table, is_list, lines, tables
from coordwire.client import connect_sync
from coordwire.enums import AclResourceType
from coordwire.messages import (
    ConsumerGroupDescribeResponse,
    DescribeAclsRequest,
    DescribeAclsResponse,
    DescribeConfigsResponse,
    ListGroupsResponse,
    MetadataResponse,
    OffsetCommitRequest,
    OffsetFetchResponse,
    ProduceRequest,
)
from coordwire.messages.consumer_group_describe import DescribedGroup, Member
from coordwire.messages.describe_configs import DescribeConfigsResourceResult, DescribeConfigsResult
from coordwire.messages.metadata import MetadataResponsePartition, MetadataResponseTopic
from coordwire.messages.offset_commit import OffsetCommitRequestPartition, OffsetCommitRequestTopic
from coordwire.messages.produce import PartitionProduceData, TopicProduceData
from coordwire.records import Record, encode_batch

LONG = "a-long-name-of-a-group-" * 5


def commit(group_id: str, offsets: dict[int, int]) -> OffsetCommitRequest:
    partitions = [
        OffsetCommitRequestPartition(partition_index=index, committed_offset=offset)
        for index, offset in offsets.items()
    ]
    topics = [OffsetCommitRequestTopic(name="orders", partitions=partitions)]
    return OffsetCommitRequest(group_id=group_id, topics=topics)


@pytest.fixture(scope="module")
def broker() -> Iterator[BrokerThread]:
    batch = encode_batch([Record(value=b"paid")] * 5, base_offset=0)
    part = PartitionProduceData(index=1, records=batch)
    with Broker.in_thread(topics={"orders": 6, "tills": 2}, nodes=3) as three_nodes:
        with connect_sync(three_nodes.bootstrap) as client:
            topic = TopicProduceData(name="orders", partition_data=[part])
            client.request(ProduceRequest(acks=-1, timeout_ms=1000, topic_data=[topic]), version=9)
            client.request(commit("payments", {0: 0, 1: 2}), version=8)
            client.request(commit(LONG, {1: 5}), version=8)
        yield three_nodes


def call(capsys: pytest.CaptureFixture[str], *words: str) -> tuple[int, list[list[str]], str]:
    """Exit status, the words of each line of standard output, and standard error."""
    status = main(["call", *words])
    captured = capsys.readouterr()
    return status, [line.split() for line in captured.out.splitlines()], captured.err


def test_topics(broker: BrokerThread, capsys: pytest.CaptureFixture[str]) -> None:
    status, output, errors = call(capsys, broker.bootstrap, "topics", "orders", "tills")
    assert (status, output, errors) == (0, [["name", "partitions"], ["orders", "6"], ["tills", "2"]], "")
    status, output, errors = call(capsys, broker.bootstrap, "topics", "nope")
    assert (status, output[1]) == (1, ["UNKNOWN_TOPIC_OR_PARTITION", "nope"])
    _, output, _ = call(capsys, broker.bootstrap, "topics")
    assert ["__consumer_offsets", "true", "50"] in output


def test_brokers(broker: BrokerThread, capsys: pytest.CaptureFixture[str]) -> None:
    _, output, _ = call(capsys, broker.bootstrap, "brokers")
    rows = [[f"{node}", host, f"{port}"] for node, (host, port) in enumerate(broker.addresses, 1)]
    assert output == [["node", "id", "host", "port"], *rows]


def test_groups(broker: BrokerThread, capsys: pytest.CaptureFixture[str]) -> None:
    _, output, _ = call(capsys, broker.bootstrap, "groups")
    assert ["payments", "Empty", "classic"] in output
    assert [LONG] in output
    assert call(capsys, broker.bootstrap, "ListGroups")[1][1:] == output  # a list is a table by itself
    assert call(capsys, broker.bootstrap, "ListGroups", "--format", "tree")[1][0][:2] == ["←", "ListGroups"]


def test_configs(broker: BrokerThread, capsys: pytest.CaptureFixture[str]) -> None:
    _, output, _ = call(capsys, broker.bootstrap, "configs", "orders", "broker:1")
    assert ["orders", "cleanup.policy", "delete", "DEFAULT_CONFIG"] in output
    assert any(line[:1] == ["1"] for line in output)
    status = main(["call", broker.bootstrap, "configs"])
    assert (status, "expected the names of topics" in capsys.readouterr().err) == (2, True)


def test_lag(broker: BrokerThread, capsys: pytest.CaptureFixture[str]) -> None:
    status, output, _ = call(capsys, broker.bootstrap, "lag", "payments")
    head = ["group", "topic", "partition", "committed", "end", "lag"]
    rows = [["payments", "orders", "0", "0", "0", "0"], ["payments", "orders", "1", "2", "5", "3"]]
    assert (status, output) == (0, [head, *rows])
    _, output, _ = call(capsys, broker.bootstrap, "lag")
    assert rows[1] in output
    assert [LONG] in output
    main(["call", broker.bootstrap, "lag", LONG, "--format", "json"])
    assert json.loads(capsys.readouterr().out) == {
        "group": LONG, "topic": "orders", "partition": 1, "committed": 5, "end": 5, "lag": 0,
    }  # fmt: skip


def test_lag_looks_first_and_makes_nothing(capsys: pytest.CaptureFixture[str]) -> None:
    with Broker.in_thread() as empty:
        assert main(["call", empty.bootstrap, "lag", "g"]) == 2
        assert "makes the topic __consumer_offsets" in capsys.readouterr().err
        assert call(capsys, empty.bootstrap, "lag") == (0, [], "coordwire: no groups\n")
        assert call(capsys, empty.bootstrap, "groups") == (0, [], "coordwire: no groups\n")
        assert call(capsys, empty.bootstrap, "topics") == (0, [], "coordwire: no topics\n")
        assert empty.call(lambda broker: broker.cluster.topics) == {}


@pytest.mark.parametrize("release", ["2.0", "2.4", "2.8"])
def test_verbs_at_older_brokers(release: str, capsys: pytest.CaptureFixture[str]) -> None:
    """OffsetFetch has one group a request before 3.0, Metadata ids that are refused in 2.8 and 3.0."""
    with Broker.in_thread(config=BrokerConfig(as_of=release), topics={"orders": 2}) as old:
        with connect_sync(old.bootstrap) as client:
            client.request(commit("payments", {0: 0, 1: 2}))
            client.request(commit("refunds", {1: 0}))
        rows = [
            ["payments", "orders", "0", "0"],
            ["payments", "orders", "1", "2"],
            ["refunds", "orders", "1", "0"],
        ]
        status, output, errors = call(capsys, old.bootstrap, "lag")
        assert (status, output[1:], errors) == (0, [[*row, "0", "0"] for row in rows], "")
        assert call(capsys, old.bootstrap, "lag", "nobody") == (0, [], "coordwire: no committed offsets\n")
        assert call(capsys, old.bootstrap, "topics", "orders")[1][1:] == [["orders", "2"]]
        assert len(call(capsys, old.bootstrap, "groups")[1]) == 3
        assert call(capsys, old.bootstrap, "brokers")[1][1][0] == "1"
        status, _, errors = call(capsys, old.bootstrap, "topics", "topics.topic_id=AAAAAAAAAAAAAAAAAAAABw")
        assert (status, "topics by their ids from 12 on" in errors) == (2, True)


def test_what_a_broker_of_kafka_1_lacks_is_left_out(capsys: pytest.CaptureFixture[str]) -> None:
    """DescribeAcls 0 has no pattern types; one that is asked for is not left out."""
    asked: list[DescribeAclsRequest] = []

    def describe_acls(request: DescribeAclsRequest, server_call: ServerCall) -> DescribeAclsResponse:
        asked.append(request)
        return DescribeAclsResponse()

    async def main_task() -> tuple[int, int]:
        server = Server({DescribeAclsRequest: describe_acls}, versions={DescribeAclsRequest: range(1)})
        async with server:
            words = ["call", server.bootstrap, "DescribeAcls"]
            bare = await asyncio.to_thread(main, words)
            return bare, await asyncio.to_thread(main, [*words, "pattern_type_filter=prefixed"])

    assert asyncio.run(main_task()) == (0, 2)
    (request,) = asked
    assert (request.resource_type_filter, request.principal_filter) == (AclResourceType.ANY, None)
    assert "pattern_type_filter" in capsys.readouterr().err


def test_a_verb_says_what_it_takes(broker: BrokerThread, capsys: pytest.CaptureFixture[str]) -> None:
    assert set(VERB_NAMES) == {*verbs.VERBS, verbs.LAG}
    for words, reason in (
        (["groups", "payments"], "groups: expected no names, got 'payments'"),
        (["lag", "group=payments"], "lag: expected names of groups, got a field"),
        (["topics", "--json", "@-"], "topics: --json is for APIs"),
        (["topic"], "no API is called 'topic'; did you mean topics"),
    ):
        assert main(["call", broker.bootstrap, *words]) == 2
        assert reason in capsys.readouterr().err


# --- tables ---


def test_texts_do_not_reach_the_terminal_as_they_are(capsys: pytest.CaptureFixture[str]) -> None:
    """Of lists, and of groups whose lag is shown."""
    evil = "\x1b]0;pwn\x07"
    member = Member(member_id=evil, subscribed_topic_names=["orders", evil])
    answer = ConsumerGroupDescribeResponse(groups=[DescribedGroup(group_id=evil, members=[member])])
    found = [cell for _, table in tables(answer, 1, ()) for row in table.rows for cell in row]
    assert f"orders,{shown(evil)}" in found
    with Broker.in_thread(topics=["orders"]) as broker:
        with connect_sync(broker.bootstrap) as client:
            client.request(commit(evil, {0: 0}), version=8)
        _, (_, (group, *_)), _ = call(capsys, broker.bootstrap, "lag")
    assert [group] == shown(evil).split()
    assert all(text.isprintable() for text in (*found, group))


def test_nested_lists_are_followed_or_counted() -> None:
    partitions = [MetadataResponsePartition(partition_index=index, leader_id=1) for index in range(2)]
    topics = [
        MetadataResponseTopic(name="orders", partitions=partitions), MetadataResponseTopic(name="\x1b[2J"),
    ]  # fmt: skip
    answer = MetadataResponse(topics=topics)
    (counted,) = (table for _, table in tables(answer, 12, (), "topics"))
    assert counted.rows == [["orders", "2"], ["\\x1b[2J", "0"]]
    (_, brokers), (path, followed) = tables(answer, 12, ())
    assert (brokers.rows, path, followed.names) == (
        [], "topics.partitions", ["name", "partition_index", "leader_id"],
    )  # fmt: skip
    assert followed.rows == [["orders", "0", "1"], ["orders", "1", "1"], ["\\x1b[2J", "-", "-"]]
    assert [is_list(cls, 8) for cls in (MetadataResponse, OffsetFetchResponse)] == [False, False]
    assert is_list(ListGroupsResponse, 4)


def test_secrets_are_not_shown() -> None:
    configs = [DescribeConfigsResourceResult(name="sasl.jaas.config", value="hush")]
    answer = DescribeConfigsResponse(results=[DescribeConfigsResult(resource_name="1", configs=configs)])
    (table,) = (table for _, table in tables(answer, 4, {"results[0].configs[0].value"}))
    assert ("hush" in f"{table}", "(hidden)" in f"{table}") == (False, True)


@pytest.mark.parametrize("room", [40, 80, 100, 140])
def test_no_word_is_broken_and_nothing_is_wider(room: int) -> None:
    names = ["group_id", "topic", "committed_offset", "a_note_of_several_words", "end"]
    rows = [
        ["payments", "orders", "17", "it was moved by hand", "9223372036854775807"],
        ["g" * 60, "orders", "1", "-", "2"],
        ["tills", "o" * 150, "1", "so it is", "2"],
    ]
    printed = ["".join(text for text, _ in line) for line in lines(Table(names, rows, {2, 4}), room)]
    words = [word for row in rows for cell in row for word in cell.split()]
    for word in words:
        assert any(word in line.split() for line in printed), word
    assert [line for line in printed if len(line) > room and len(line.split()) > 1] == []
    assert [line for line in printed if len(line) > room and line.startswith(" ")] == []


def test_numbers_align() -> None:
    table = Table(["name", "lag"], [["a", "5"], ["bbb", "1234"]], {1})
    assert ["".join(text for text, _ in line) for line in lines(table, 80)] == [
        "name   lag", "a        5", "bbb   1234",
    ]  # fmt: skip
