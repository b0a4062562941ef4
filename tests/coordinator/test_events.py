"""A shard's events: each change once, when it is durable, and never one that was taken back."""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from coordwire.coordinator import GroupApis, GroupListener, Shard, TopicsImage
from coordwire.coordinator.apis import TOPIC_GUARDS
from coordwire.coordinator.log_entries import LogEntry, TransactionMarker
from coordwire.coordinator.model.classic_group import GroupState
from coordwire.coordinator.model.consumer_group import ConsumerGroupState
from coordwire.coordinator.model.streams_group import StreamsGroupState
from coordwire.coordinator.timeline import ShardTimeline
from coordwire.enums import ErrorCode
from coordwire.messages import (
    ConsumerGroupHeartbeatRequest,
    DeleteGroupsRequest,
    HeartbeatRequest,
    JoinGroupRequest,
    LeaveGroupRequest,
    OffsetCommitKey,
    ShareGroupHeartbeatRequest,
    StreamsGroupHeartbeatRequest,
    TxnOffsetCommitRequest,
)
from coordwire.messages.join_group import JoinGroupRequestProtocol
from coordwire.messages.leave_group import MemberIdentity
from coordwire.messages.streams_group_heartbeat import Subtopology, Topology
from coordwire.messages.txn_offset_commit import TxnOffsetCommitRequestPartition, TxnOffsetCommitRequestTopic
from coordwire.timeline.events import (
    GroupConverted,
    GroupDeleted,
    GroupEvent,
    MemberJoined,
    MemberLeft,
    OffsetCommitted,
    RebalanceBegan,
    RebalanceEnded,
    TransactionStep,
)
from tests.coordinator.histories import START, Replayer
from tests.coordinator.recorded_histories import HISTORIES, STREAMS, read_histories
from tests.coordinator.settings import settings
from tests.coordinator.test_shard import ORDERS, Bench, commit, stable_group
from tests.shares.kept_histories import GROUPS
from tests.timeline.script import subscription

MS = 1_000_000
MOST = 45
"""Histories of a file."""

REBALANCING = (GroupState.PREPARING_REBALANCE, GroupState.COMPLETING_REBALANCE)


class Witness(Bench):
    """A bench whose shard reports its events."""

    def __init__(self) -> None:
        super().__init__()
        self.timeline = ShardTimeline()
        self.shard = Shard(listener=self.timeline)
        self.apis = GroupApis(self.shard, TOPIC_GUARDS)
        self.shard.set_topics(TopicsImage([ORDERS]), now=self.now)
        self.shard.load([], now=self.now)

    def drain_events(self) -> list[GroupEvent]:
        return list(self.timeline.events())

    def beat(self, member_id: str, epoch: int, **fields: Any) -> Any:
        request = ConsumerGroupHeartbeatRequest(
            group_id="payments", member_id=member_id, member_epoch=epoch, **fields
        )
        return self.ask(request, 1)

    def come(self, member_id: str, **fields: Any) -> Any:
        return self.beat(
            member_id, 0, rebalance_timeout_ms=60_000, topic_partitions=[],
            subscribed_topic_names=["orders"], **fields,
        )  # fmt: skip


def kinds(events: list[GroupEvent]) -> list[str]:
    """The events in short."""
    return [_short(event) for event in events]


def _short(event: GroupEvent) -> str:
    match event:
        case MemberJoined():
            return f"joined {event.member_id}"
        case MemberLeft():
            return f"{event.how} {event.member_id}"
        case RebalanceBegan():
            return f"began {event.cause} {event.member_id}"
        case RebalanceEnded():
            return f"{event.outcome} {event.generation} {len(event.members)}"
        case GroupConverted():
            return f"{event.kind_before} > {event.kind}"
        case GroupDeleted():
            return "deleted"
        case OffsetCommitted():
            return f"offset {event.topic} {event.offset}"
    raise AssertionError(event)


def test_a_classic_group_tells_of_its_member_from_joining_to_its_session_s_end() -> None:
    bench = Witness()
    member_id = stable_group(bench)
    assert kinds(bench.drain_events()) == [
        f"joined {member_id}",
        f"began first_member {member_id}",
        "steady 1 1",
    ]
    bench.advance(3_000 + 10_000)
    bench.confirm()
    events = bench.drain_events()
    assert kinds(events) == [
        f"session_timeout {member_id}", f"began session_timeout {member_id}", "empty 2 0"
    ]  # fmt: skip
    assert {event.time_ns for event in events} == {13_000 * MS}


def test_a_member_that_leaves_is_told_with_its_reason() -> None:
    bench = Witness()
    member_id = stable_group(bench)
    bench.drain_events()
    identity = MemberIdentity(member_id=member_id, reason="the shop is closed")
    bench.ask(LeaveGroupRequest(group_id="payments", members=[identity]), 5)
    leaving, *_ = events = bench.drain_events()
    assert kinds(events) == [f"left {member_id}", f"began member_left {member_id}", "empty 2 0"]
    assert isinstance(leaving, MemberLeft)
    assert leaving.reason == "the shop is closed"


def test_a_deleted_group_is_told_once_its_tombstones_are_durable() -> None:
    bench = Witness()
    bench.ask(commit(5), 8)
    bench.drain_events()
    bench.send(DeleteGroupsRequest(groups_names=["simple"]), 2)
    assert bench.drain_events() == []
    bench.confirm()
    assert kinds(bench.drain_events()) == ["offset orders -1", "deleted"]


def test_an_empty_classic_group_that_becomes_a_consumer_group_is_not_deleted() -> None:
    bench = Witness()
    member_id = stable_group(bench)
    bench.ask(LeaveGroupRequest(group_id="payments", members=[MemberIdentity(member_id=member_id)]), 5)
    bench.drain_events()
    bench.come("a")
    assert "deleted" not in kinds(bench.drain_events())


def test_a_consumer_group_tells_of_epochs_by_their_causes() -> None:
    bench = Witness()
    bench.come("a")
    assert kinds(bench.drain_events()) == ["joined a", "began first_member a", "steady 2 1"]
    bench.come("b")
    assert kinds(bench.drain_events()) == [
        "joined b",
        "began new_member b",
    ]  # the target comes a second after the last
    bench.advance(1_000)
    epoch = bench.beat("a", 2, topic_partitions=[]).member_epoch
    bench.beat("b", 2, topic_partitions=[])
    for member in "ab":
        epoch = max(epoch, bench.beat(member, epoch, topic_partitions=[]).member_epoch)
    events = bench.drain_events()
    assert kinds(events) == ["steady 3 2"]
    (ended,) = events
    assert isinstance(ended, RebalanceEnded)
    assert {part.topic for share in ended.assignments for part in share.partitions} == {"orders"}
    bench.beat("b", -1)
    bench.advance(2_000)
    bench.beat("a", epoch, topic_partitions=[])
    assert kinds(bench.drain_events()) == ["left b", "began member_left b", "steady 4 1"]
    bench.advance(2_000 + 45_000)
    bench.confirm()
    assert kinds(bench.drain_events()) == ["session_timeout a", "began session_timeout a", "empty 5 0"]


def test_a_share_group_tells_of_its_members_and_of_what_they_have() -> None:
    bench = Witness()

    def beat(member_id: str, epoch: int, topics: list[str] | None = None) -> list[GroupEvent]:
        request = ShareGroupHeartbeatRequest(
            group_id="readers", member_id=member_id, member_epoch=epoch, subscribed_topic_names=topics
        )
        bench.ask(request, 1)
        return bench.drain_events()

    joined, began, *_ = beat("a", 0, ["orders"])
    assert isinstance(joined, MemberJoined)
    assert (joined.kind, joined.member_id, joined.topics) == ("share", "a", ("orders",))
    assert isinstance(began, RebalanceBegan)
    assert (began.kind, began.cause) == ("share", "first_member")
    left = beat("a", -1)[0]
    assert isinstance(left, MemberLeft)
    assert (left.member_id, left.how) == ("a", "left")


def test_a_streams_group_tells_of_its_members_and_of_their_tasks() -> None:
    bench = Witness()
    parts = [Subtopology(subtopology_id="0", source_topics=["orders"])]
    request = StreamsGroupHeartbeatRequest(
        group_id="totals", member_id="a", process_id="p", rebalance_timeout_ms=60_000,
        topology=Topology(epoch=1, subtopologies=parts), active_tasks=[], standby_tasks=[], warmup_tasks=[],
    )  # fmt: skip
    bench.ask(request, 0)
    joined, began, *_ = bench.drain_events()
    assert isinstance(joined, MemberJoined)
    assert (joined.kind, joined.member_id) == ("streams", "a")
    assert isinstance(began, RebalanceBegan)
    assert (began.kind, began.cause) == ("streams", "first_member")


def test_nothing_is_told_before_it_is_durable() -> None:
    bench = Witness()
    bench.send(commit(5), 8)
    assert not bench.drain_events()
    bench.confirm()
    assert kinds(bench.drain_events()) == ["offset orders 5"]


@pytest.mark.parametrize("joins", [True, False], ids=["classic", "consumer"])
def test_what_a_failed_append_takes_back_is_never_told(joins: bool) -> None:
    bench = Witness()
    if joins:
        protocol = JoinGroupRequestProtocol(name="range", metadata=subscription("orders"))
        request: Any = JoinGroupRequest(
            group_id="payments", session_timeout_ms=10_000, rebalance_timeout_ms=60_000,
            protocol_type="consumer", protocols=[protocol],
        )  # fmt: skip
        bench.send(request, 3)
    else:
        request = ConsumerGroupHeartbeatRequest(
            group_id="payments", member_id="a", rebalance_timeout_ms=60_000, topic_partitions=[],
            subscribed_topic_names=["orders"],
        )  # fmt: skip
        bench.send(request, 1)
    bench.shard.failed(bench.appends.pop().number, int(ErrorCode.NOT_ENOUGH_REPLICAS), now=bench.now)
    bench.take()
    bench.advance(100_000)
    assert not bench.drain_events()
    assert not bench.shard.groups


def test_a_steady_heartbeat_makes_no_event() -> None:
    bench = Witness()
    member_id = stable_group(bench)
    bench.drain_events()
    for _ in range(3):
        bench.ask(HeartbeatRequest(group_id="payments", generation_id=1, member_id=member_id), 3)
    assert not bench.drain_events()


def test_a_listener_overrides_all_that_a_shard_reports() -> None:
    """A method that `GroupListener` has and `ShardTimeline` doesn't would be a report that is lost."""
    reports = {name for name, value in vars(GroupListener).items() if callable(value) and name[0] != "_"}
    assert len(reports) == 15
    assert reports <= vars(ShardTimeline).keys()


def test_a_shard_that_nobody_listens_to_answers_the_same() -> None:
    alone, witness = Bench(), Witness()
    assert stable_group(alone) == stable_group(witness)
    assert alone.shard.groups.keys() == witness.shard.groups.keys()
    assert alone.shard.deadlines() == witness.shard.deadlines()


def test_what_was_loaded_is_not_told_again_and_goes_on() -> None:
    bench = Witness()
    bench.come("a")
    bench.drain_events()
    log = list(bench.log)
    bench.shard.unload(now=bench.now)
    bench.shard.load(log, now=bench.now)
    assert not bench.drain_events()
    bench.beat("a", -1)
    assert kinds(bench.drain_events()) == ["left a", "began member_left a", "empty 3 0"]


def test_a_rebalance_that_was_loaded_goes_on() -> None:
    bench = Witness()
    bench.come("a")
    bench.come("b")
    bench.drain_events()
    log = list(bench.log)
    bench.shard.unload(now=bench.now)
    assert kinds(bench.drain_events()) == ["unfinished 3 0"]
    bench.shard.load(log, now=bench.now)
    (began,) = bench.drain_events()
    assert isinstance(began, RebalanceBegan)
    assert (began.cause, began.detail) == (
        "unknown", "it was under way when the coordinator loaded the group"
    )  # fmt: skip


@pytest.mark.parametrize("committed", [True, False])
def test_a_transaction_tells_of_its_commits_and_of_its_end(committed: bool) -> None:
    bench = Witness()
    member_id = stable_group(bench)
    bench.drain_events()
    bench.ask(in_transaction(member_id), 3)
    (event,) = bench.drain_events()
    assert isinstance(event, OffsetCommitted)
    assert (event.member_id, event.generation, event.transactional_id) == (member_id, 1, "shop")
    bench.shard.complete_transaction(9, 3, committed=committed, now=bench.now)
    bench.take()
    assert not bench.drain_events()  # the marker is not durable
    bench.confirm()
    (step,) = bench.drain_events()
    assert isinstance(step, TransactionStep)
    assert (step.group, step.transactional_id, step.step) == (
        "payments", "shop", "commit" if committed else "abort"
    )  # fmt: skip
    assert (step.producer_id, step.producer_epoch, step.error_code) == (9, 3, 0)
    end_transaction(bench)
    assert not bench.drain_events()  # there was no other


def test_a_transaction_that_was_loaded_has_no_name() -> None:
    bench = Witness()
    member_id = stable_group(bench)
    bench.ask(in_transaction(member_id), 3)
    log = [
        LogEntry(offset=n, record=record, producer_id=9 if isinstance(record.key, OffsetCommitKey) else -1)
        for n, record in enumerate(bench.log)
    ]
    for entries, expected in ((log, [("", "commit")]), ([*log, end_of(log)], [])):
        bench.shard.unload(now=bench.now)
        bench.shard.load(entries, now=bench.now)
        bench.drain_events()
        end_transaction(bench)
        steps = [step for step in bench.drain_events() if isinstance(step, TransactionStep)]
        assert [(step.transactional_id, step.step) for step in steps] == expected


def in_transaction(member_id: str) -> TxnOffsetCommitRequest:
    partition = TxnOffsetCommitRequestPartition(partition_index=0, committed_offset=7, committed_metadata="")
    return TxnOffsetCommitRequest(
        transactional_id="shop", group_id="payments", producer_id=9, producer_epoch=3, member_id=member_id,
        generation_id_or_member_epoch=1,
        topics=[TxnOffsetCommitRequestTopic(name="orders", partitions=[partition])],
    )  # fmt: skip


def end_transaction(bench: Bench) -> None:
    bench.shard.complete_transaction(9, 3, committed=True, now=bench.now)
    bench.take()
    bench.confirm()


def end_of(log: list[LogEntry]) -> LogEntry:
    return LogEntry(offset=len(log), record=TransactionMarker(True), producer_id=9)


# --- random histories, with failed and slow appends ---


class WitnessedReplayer(Replayer):
    """Knows who is in, by events only."""

    def __init__(self, seed: int) -> None:
        super().__init__(settings(seed))
        self.timeline = ShardTimeline()
        self.shard = Shard(now=START, config=self.config, listener=self.timeline)
        self.apis = GroupApis(self.shard, TOPIC_GUARDS)
        self.shard.load([], now=self.now)
        self.members: dict[str, set[str]] = {}
        self.steady: dict[str, bool] = {}
        self.away: dict[tuple[str, str | None], str] = {}
        """Static members that left for now: they are in until another takes their place."""

    def take(self) -> None:
        for event in self.timeline.events():
            members = self.members.setdefault(event.group, set())
            if isinstance(event, MemberJoined):
                members.discard(self.away.pop((event.group, event.instance_id), ""))
                assert event.member_id not in members, event
                members.add(event.member_id)
            elif isinstance(event, MemberLeft) and event.how == "left_for_now":
                self.away[event.group, event.instance_id] = event.member_id
            elif isinstance(event, MemberLeft):
                assert event.member_id in members, event
                members.discard(event.member_id)
            elif isinstance(event, RebalanceBegan):
                assert self.steady.get(event.group, True), event
                self.steady[event.group] = False
            elif isinstance(event, RebalanceEnded):
                assert not self.steady[event.group], event
                self.steady[event.group] = True

    def known(self) -> dict[str, set[str]]:
        """Who is in, as the shard has it; a group that no record has made yet may still be lost."""
        new = self.shard._state.groups.is_new
        known_members = {
            name: set(group.members) for name, group in self.shard.groups.items() if not new(name)
        }
        return {name: members for name, members in known_members.items() if members}


def _settled(group: Any) -> bool:
    return group.state in (GroupState.STABLE, ConsumerGroupState.STABLE, StreamsGroupState.STABLE)


def _runs(path: Path) -> Iterator[tuple[int, list[str]]]:
    for seed, steps, _ in itertools.islice(read_histories(path), MOST):
        yield seed, [step for _, step in steps]


@pytest.mark.parametrize("path", [HISTORIES, STREAMS, GROUPS], ids=lambda path: path.name)
def test_events_of_random_histories_add_up_to_the_state(path: Path) -> None:
    for seed, steps in _runs(path):
        replayer = WitnessedReplayer(seed)
        for step in steps:
            replayer.run(step)
            command = step.split(" ", 1)[0]
            if command == "load":
                replayer.steady.clear()  # what is under way begins again
            replayer.take()
            if command in ("load", "unload"):
                # What was not durable is gone, and who was in goes on without an event.
                replayer.members = replayer.known()
            if not replayer._is_held and not replayer._pending:
                events_of_groups = {name: members for name, members in replayer.members.items() if members}
                assert events_of_groups == replayer.known(), (seed, step)
                for name, group in replayer.shard.groups.items():
                    if _settled(group):
                        assert replayer.steady.get(name, True), (seed, step, name)
                    if group.state in REBALANCING and name in events_of_groups:
                        assert not replayer.steady.get(name), (seed, step, name)
