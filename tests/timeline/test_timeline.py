"""Timelines as a whole: real captures, commits and lag, transactions, coordinators, the drafts."""

from __future__ import annotations

import lzma
import pickle
from io import BytesIO
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from coordwire.capture.body_text import NO_TEXT
from coordwire.capture.reader import Capture
from coordwire.capture.redaction import entry_secrets
from coordwire.dialects import ConnectionDialect
from coordwire.frames import encode_request
from coordwire.messages import (
    AddOffsetsToTxnRequest,
    AddOffsetsToTxnResponse,
    EndTxnRequest,
    EndTxnResponse,
    FetchRequest,
    FetchResponse,
    FindCoordinatorRequest,
    FindCoordinatorResponse,
    ListOffsetsRequest,
    ListOffsetsResponse,
    OffsetCommitRequest,
    OffsetCommitResponse,
    OffsetFetchRequest,
    OffsetFetchResponse,
    TxnOffsetCommitRequest,
    TxnOffsetCommitResponse,
    find_message,
)
from coordwire.messages.fetch import FetchableTopicResponse, PartitionData
from coordwire.messages.list_offsets import (
    ListOffsetsPartition,
    ListOffsetsPartitionResponse,
    ListOffsetsTopic,
    ListOffsetsTopicResponse,
)
from coordwire.messages.offset_commit import OffsetCommitRequestPartition, OffsetCommitRequestTopic
from coordwire.messages.offset_fetch import (
    OffsetFetchResponseGroup,
    OffsetFetchResponsePartitions,
    OffsetFetchResponseTopics,
)
from coordwire.messages.txn_offset_commit import TxnOffsetCommitRequestPartition, TxnOffsetCommitRequestTopic
from coordwire.testing import strategies
from coordwire.timeline.events import (
    CoordinatorFound,
    ErrorMet,
    GroupEvent,
    LagMeasured,
    MemberJoined,
    MemberLeft,
    OffsetCommitted,
    RebalanceBegan,
    RebalanceEnded,
    TopicPartition,
    TransactionStep,
)
from coordwire.timeline.evidence import Seen
from coordwire.timeline.from_wire.cluster_timeline import ClusterTimeline
from coordwire.timeline.from_wire.timeline import timeline
from coordwire.timeline.totals import stories
from tests.capture.test_drafts import recorded
from tests.conversations import CONVERSATIONS, spoken
from tests.timeline.script import Script, only

CAPTURES = Path(__file__).parent.parent / "data" / "captures"
GROUPS = Path(__file__).parent.parent / "data" / "groups"


def capture_events(name: str) -> list[GroupEvent]:
    with (CAPTURES / name).open("rb") as stream:
        return list(timeline(Capture(stream, name).entries()))


# --- real captures ---


def test_a_group_of_kafka_python_on_tansu() -> None:
    events = capture_events("kpy__tansu__group-range.pcap")
    (story,) = stories(events).values()
    assert (story.group, story.kind) == ("g-kpy-range", "classic")
    assert (story.joined, story.departed, story.members) == (3, 3, {})
    assert story.rebalances == len(only(events, RebalanceEnded))
    assert story.longest is not None
    assert story.coordinator is not None
    steady = [event for event in only(events, RebalanceEnded) if event.outcome == "steady"]
    for one in steady:
        partitions = [part for share in one.assignments for part in share.partitions]
        assert len(partitions) == len(set(partitions)) == 6
    assert pickle.loads(pickle.dumps(events)) == events


def test_a_group_of_librdkafka_on_its_mock() -> None:
    events = capture_events("confluent__rdmock__group-range.pcap")
    first = only(events, RebalanceEnded)[0]
    assert (first.outcome, first.cause, first.generation) == ("steady", "first_member", 2)
    assert {event.client_id for event in only(events, MemberJoined)} == {"ck-m1", "ck-m2-ü", "ck-m3"}
    assert [event.client_id for event in only(events, MemberLeft)] == ["ck-m2-ü", "ck-m1", "ck-m3"]
    assert stories(events)["g-range"].lag[TopicPartition("t-group", 2)] == 2


@pytest.mark.parametrize("path", sorted(CAPTURES.glob("*.pcap")), ids=lambda path: path.stem)
def test_every_capture_tells_something_in_order(path: Path) -> None:
    events = capture_events(path.name)
    assert len(only(events, RebalanceBegan)) == len(only(events, RebalanceEnded))
    for ended in only(events, RebalanceEnded):
        assert ended.length_ns >= 0
        assert ended.began_ns <= ended.ended_ns


@pytest.fixture(scope="module")
def kafkas() -> list[GroupEvent]:
    """What Apache Kafka's own coordinator and clients did, see tests/data/groups."""
    with lzma.open(GROUPS / "java__kafka-4.3.0__groups.pcap.xz") as stream:
        data = stream.read()
    return list(timeline(Capture(BytesIO(data), "kafka").entries()))


def told(events: list[GroupEvent], group: str) -> list[tuple[str, str]]:
    """The causes of a group's rebalances with the clients that were the cause."""
    clients = {entry.member_id: entry.client_id for entry in only(events, MemberJoined)}
    return [
        (event.cause, clients.get(event.member_id, ""))
        for event in only(events, RebalanceEnded)
        if event.group == group
    ]


def shares(events: list[GroupEvent], group: str, generation: int) -> list[list[str]]:
    """Who has what in a generation, in the order of the clients' names."""
    clients = {entry.member_id: entry.client_id for entry in only(events, MemberJoined)}
    ended = (event for event in only(events, RebalanceEnded) if event.group == group)
    assignment = next(rebalance.assignments for rebalance in ended if rebalance.generation == generation)
    assignment = sorted(assignment, key=lambda one: clients[one.member_id])
    return [[f"{part.topic}-{part.partition}" for part in one.partitions] for one in assignment]


def test_a_classic_group_of_kafkas_own(kafkas: list[GroupEvent]) -> None:
    assert told(kafkas, "classic") == [
        ("first_member", "a"), ("new_member", "b"), ("new_member", "d"), ("member_left", "b"),
        ("subscription_changed", "a"), ("session_timeout", "d"),
    ]  # fmt: skip
    ended = [event for event in only(kafkas, RebalanceEnded) if event.group == "classic"]
    assert [rebalance.outcome for rebalance in ended] == ["steady"] * 6
    assert [rebalance.generation for rebalance in ended] == [1, 2, 3, 4, 5, 6]
    assert [rebalance.inferred for rebalance in ended] == [False] * 5 + [True]
    assert all(0 < rebalance.length_ns < 1_000_000_000 for rebalance in ended)
    assert shares(kafkas, "classic", 4) == [["orders-2", "orders-3"], ["orders-0", "orders-1"]]
    departures = [event for event in only(kafkas, MemberLeft) if event.group == "classic"]
    assert [(entry.client_id, entry.how, entry.reason) for entry in departures] == [
        ("b", "left", "the consumer is being closed"),
        ("d", "session_timeout", None),
        ("a", "left", "the consumer is being closed"),
    ]


def test_a_cooperative_group_of_kafkas_own(kafkas: list[GroupEvent]) -> None:
    assert told(kafkas, "coop") == [
        ("first_member", "e"), ("new_member", "f"), ("partitions_revoked", "e"), ("member_left", "f"),
    ]  # fmt: skip
    assert shares(kafkas, "coop", 2) == [["orders-0", "orders-1"], []]
    assert shares(kafkas, "coop", 3) == [["orders-0", "orders-1"], ["orders-2", "orders-3"]]


def test_a_consumer_group_of_kafkas_own(kafkas: list[GroupEvent]) -> None:
    assert told(kafkas, "new") == [
        ("first_member", "g"), ("new_member", "h"), ("new_member", "s"), ("static_member_returned", "s2"),
        ("subscription_changed", "g"), ("member_left", "h"), ("member_left", "g"),
    ]  # fmt: skip
    ended = [event for event in only(kafkas, RebalanceEnded) if event.group == "new"]
    assert [rebalance.outcome for rebalance in ended] == ["steady"] * 6 + ["empty"]
    assert [rebalance.generation for rebalance in ended][:6] == [2, 3, 4, 4, 5, 6]
    assert shares(kafkas, "new", 6)[1] == ["orders-0", "orders-1", "orders-3"]
    hows = [(entry.client_id, entry.how) for entry in only(kafkas, MemberLeft) if entry.group == "new"]
    assert hows == [("s", "left_for_now"), ("h", "left"), ("s2", "left_for_now"), ("g", "left")]


def test_a_share_group_of_kafkas_own(kafkas: list[GroupEvent]) -> None:
    assert told(kafkas, "share")[:2] == [("first_member", "x"), ("new_member", "y")]
    story = stories(kafkas)["share"]
    assert (story.kind, story.joined, story.departed, story.members) == ("share", 2, 2, {})


def test_lag_and_commits_of_kafkas_own(kafkas: list[GroupEvent]) -> None:
    result = stories(kafkas)
    assert result["new"].lag[TopicPartition("payments", 1)] == 0
    assert result["new"].commits == 8
    committed = [event for event in only(kafkas, OffsetCommitted) if event.group == "new"]
    assert {(one.topic, one.partition, one.offset) for one in committed} >= {
        ("orders", 0, 20), ("orders", 1, 20), ("payments", 0, 10), ("payments", 1, 10),
    }  # fmt: skip


# --- commits and lag ---


def commit(script: Script, offset: int, partition: int = 0) -> None:
    one = OffsetCommitRequestPartition(
        partition_index=partition, committed_offset=offset, committed_leader_epoch=3
    )
    request = OffsetCommitRequest(
        group_id="g", generation_id_or_member_epoch=4, member_id="a-id",
        topics=[OffsetCommitRequestTopic(name="t", partitions=[one])],
    )  # fmt: skip
    script.answer(script.ask(request, "a", version=8), OffsetCommitResponse())


def end(script: Script, offset: int) -> None:
    """The high watermark of t-0, as Fetch tells it."""
    data = PartitionData(partition_index=0, high_watermark=offset, records=b"")
    topic = FetchableTopicResponse(topic="t", partitions=[data])
    script.answer(script.ask(FetchRequest(), "a", version=12), FetchResponse(responses=[topic]))


def lags(script: Script) -> list[tuple[int, int, int]]:
    return [(event.committed, event.end_offset, event.lag) for event in only(script.events(), LagMeasured)]


def test_commits_and_lag_over_time() -> None:
    script = Script()
    end(script, 10)
    commit(script, 4)
    script.now = 2
    end(script, 30)
    script.now = 2.5
    end(script, 31)  # too soon after the last
    commit(script, 31)
    commit(script, 40)
    assert lags(script) == [(4, 10, 6), (4, 30, 26), (31, 31, 0), (40, 31, -9)]
    first = only(script.events(), OffsetCommitted)[0]
    assert (first.member_id, first.client_id, first.generation) == ("a-id", "a", 4)
    assert (first.topic, first.partition, first.offset, first.leader_epoch) == ("t", 0, 4, 3)


def test_a_commit_beyond_the_end() -> None:
    script = Script()
    end(script, 1_160)
    commit(script, 99_999_999)
    script.now = 0.5
    end(script, 1_160)  # the end is where it was, and the commit is beyond it
    end(script, 1_160)
    commit(script, 1_100)
    commit(script, 1_170)
    end(script, 1_180)
    results = [(event.lag, event.reason) for event in only(script.events(), LagMeasured)]
    assert results == [
        (-99_998_839, "end_seen_earlier"),
        (-99_998_839, "committed_beyond_end"),
        (60, None),
        (-10, "end_seen_earlier"),
        (10, None),
    ]
    story = stories(script.events())["g"]
    assert story.lag == {TopicPartition("t", 0): 10}


def test_the_end_that_was_asked_for_and_the_offset_that_was_fetched() -> None:
    script = Script()
    fetched = OffsetFetchResponseGroup(group_id="g", topics=[OffsetFetchResponseTopics(
        name="t", partitions=[OffsetFetchResponsePartitions(partition_index=0, committed_offset=4)]
    )])  # fmt: skip
    script.answer(script.ask(OffsetFetchRequest(), "a", version=8), OffsetFetchResponse(groups=[fetched]))
    for timestamp, offset in ((-2, 0), (-1, 9)):
        topic = ListOffsetsTopic(
            name="t", partitions=[ListOffsetsPartition(partition_index=0, timestamp=timestamp)]
        )
        response = ListOffsetsTopicResponse(
            name="t", partitions=[ListOffsetsPartitionResponse(partition_index=0, offset=offset)]
        )
        request = script.ask(ListOffsetsRequest(topics=[topic]), "a")
        script.answer(request, ListOffsetsResponse(topics=[response]))
    assert lags(script) == [(4, 9, 5)]


@pytest.mark.parametrize(("committed", "expected"), [(True, [(5, 9, 4)]), (False, [])])
def test_a_transactions_commits_hold_once_it_is_committed(
    committed: bool, expected: list[tuple[int, int, int]]
) -> None:
    script = Script()
    end(script, 9)
    ids = {"transactional_id": "x", "producer_id": 7, "producer_epoch": 1}
    script.answer(script.ask(AddOffsetsToTxnRequest(group_id="g", **ids), "p"), AddOffsetsToTxnResponse())  # type: ignore[arg-type]
    topic = TxnOffsetCommitRequestTopic(
        name="t", partitions=[TxnOffsetCommitRequestPartition(partition_index=0, committed_offset=5)]
    )
    request = TxnOffsetCommitRequest(group_id="g", group_instance_id=None, topics=[topic], **ids)  # type: ignore[arg-type]
    script.answer(script.ask(request, "p"), TxnOffsetCommitResponse())
    assert lags(script) == []
    script.answer(script.ask(EndTxnRequest(committed=committed, **ids), "p"), EndTxnResponse())  # type: ignore[arg-type]
    assert lags(script) == expected
    steps = only(script.events(), TransactionStep)
    assert [(step.group, step.step) for step in steps] == [
        ("g", "add_offsets"),
        ("g", "commit" if committed else "abort"),
    ]
    (told,) = only(script.events(), OffsetCommitted)
    assert told.transactional_id == "x"


def test_a_coordinator_and_another() -> None:
    script = Script()
    for node_id, error_code in ((1, 0), (1, 0), (-1, 15), (2, 0)):
        request = script.ask(FindCoordinatorRequest(key="g"), "a", version=3)
        reply = FindCoordinatorResponse(node_id=node_id, host="h", port=9092, error_code=error_code)
        script.answer(request, reply)
    assert [(event.node_id, event.moved) for event in only(script.events(), CoordinatorFound)] == [
        (1, False),
        (2, True),
    ]
    assert [event.error_code for event in only(script.events(), ErrorMet)] == [15]


# --- the drafts ---


@pytest.mark.parametrize("name", ["draft-1 with auto_commit", "draft-2 with auto_commit", "draft-3"])
def test_a_drafts_conversation_is_a_story(name: str) -> None:
    name_of_dialect, lines = CONVERSATIONS[name]
    data = recorded(spoken(name_of_dialect, lines))
    dialect = ConnectionDialect(name_of_dialect)
    entries = Capture(BytesIO(data), "draft", dialect=dialect).entries()
    events = list(timeline(entries, dialect=dialect))
    (story,) = stories(events).values()
    assert (story.group, story.kind, story.joined) == ("payments", "draft", 1)
    result = only(events, RebalanceEnded)
    last = "unfinished" if name.startswith("draft-1") else "steady"  # its last Start is refused
    assert [one.outcome for one in result] == ["steady", last]
    assert len(result[0].assignments[0].partitions) == 1
    assert {event.error_code for event in only(events, ErrorMet)} == ({9} if name == "draft-3" else {1})
    if name != "draft-3":
        committed = only(events, OffsetCommitted)
        assert {(one.topic, one.partition, one.offset) for one in committed} == {("orders/0", 1, 42)}


# --- whatever comes ---

NAMES = [
    "OffsetCommit", "OffsetFetch", "Fetch", "ListOffsets", "FindCoordinator", "TxnOffsetCommit", "JoinGroup",
    "SyncGroup", "Heartbeat", "LeaveGroup", "ConsumerGroupHeartbeat", "ShareGroupHeartbeat",
    "StreamsGroupHeartbeat", "Metadata", "CreateTopics", "InitProducerId", "AddPartitionsToTxn",
    "AddOffsetsToTxn", "EndTxn",
]  # fmt: skip


@given(st.data())
def test_messages_of_any_content_are_survived(data: st.DataObject) -> None:
    script = Script()
    for name in data.draw(st.lists(st.sampled_from(NAMES), max_size=4)):
        request_class, response_class = find_message(f"{name}Request"), find_message(f"{name}Response")
        version = data.draw(st.sampled_from(request_class.versions))
        request = script.ask(data.draw(strategies.messages(request_class, version=version)), "a", version)
        script.answer(request, data.draw(strategies.messages(response_class, version=version)))
    events = script.events()
    assert len(only(events, RebalanceBegan)) == len(only(events, RebalanceEnded))


def test_a_frame_that_may_hold_a_secret_is_a_place_with_its_text_and_without(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    request = ListOffsetsRequest(topics=[ListOffsetsTopic(name="zero\0")])
    data = encode_request(request, version=7, correlation_id=1, client_id="c")

    def last() -> Seen:
        story = ClusterTimeline()
        for entry in Capture(BytesIO(data), "x", input="frames").entries():
            assert not list(story.feed(entry))
        return story._last

    with_texts = last()
    monkeypatch.setattr(entry_secrets, "body_text", lambda _: NO_TEXT)
    assert last() == with_texts == Seen(None, "x", 1, None)
