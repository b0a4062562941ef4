"""A shard under any requests, right or wrong, with failed and slow appends: all invariants hold after each.

Strategy: a Hypothesis state machine keeps what the answers taught it, so that most requests fit the state,
and draws a share of ids, generations and epochs that do not."""

from __future__ import annotations

import itertools
import struct
from dataclasses import dataclass, field
from typing import Any
from uuid import UUID

import pytest
from hypothesis import HealthCheck, Phase, settings
from hypothesis import strategies as st
from hypothesis.stateful import (
    RuleBasedStateMachine,
    initialize,
    precondition,
    rule,
    run_state_machine_as_test,
)

from coordwire.codec import Message
from coordwire.coordinator import (
    Answer,
    Append,
    ConsumerGroupConfig,
    CoordinatorConfig,
    RequestContext,
    TopicImage,
    TopicsImage,
)
from coordwire.enums import ErrorCode
from coordwire.messages import (
    ConsumerGroupHeartbeatRequest,
    ConsumerGroupHeartbeatResponse,
    HeartbeatRequest,
    JoinGroupRequest,
    JoinGroupResponse,
    LeaveGroupRequest,
    OffsetCommitRequest,
    OffsetFetchRequest,
    SyncGroupRequest,
    TxnOffsetCommitRequest,
)
from coordwire.messages.consumer_group_heartbeat import ConsumerGroupHeartbeatRequestTopicPartitions
from coordwire.messages.join_group import JoinGroupRequestProtocol
from coordwire.messages.leave_group import MemberIdentity
from coordwire.messages.offset_commit import OffsetCommitRequestPartition, OffsetCommitRequestTopic
from coordwire.messages.offset_fetch import OffsetFetchRequestGroup, OffsetFetchRequestTopics
from coordwire.messages.sync_group import SyncGroupRequestAssignment
from coordwire.messages.txn_offset_commit import TxnOffsetCommitRequestPartition, TxnOffsetCommitRequestTopic
from tests.coordinator.invariants import CHECKERS, WatchedShard

_TOPICS = ["audit", "orders"]
_PROTOCOLS = ["range", "sticky"]
_PICK = st.integers(0, 5)
_WRONG = st.sampled_from([0, 0, 0, 0, 0, 0, 1, -1, 3])
"""What is added to a generation or an epoch."""

_FAILURES = st.sampled_from(
    [ErrorCode.NOT_ENOUGH_REPLICAS, ErrorCode.REQUEST_TIMED_OUT, ErrorCode.MESSAGE_TOO_LARGE]
)


@dataclass(slots=True)
class _Member:
    """What a client knows of itself."""

    group_id: str
    member_id: str
    instance_id: str | None
    epoch: int = 0
    leads: bool = False
    followers: list[str] = field(default_factory=list)
    protocol: str | None = None
    owned: dict[UUID, list[int]] = field(default_factory=dict)


class ShardMachine(RuleBasedStateMachine):
    def __init__(self) -> None:
        super().__init__()
        self.ids = itertools.count(1)
        self.now = 1_000
        self.recreated = 0
        self.partitions = {"audit": 2, "orders": 3}
        config = CoordinatorConfig(
            group_max_size=4, consumer_group_max_size=4, offsets_retention_ms=50_000,
            consumer=ConsumerGroupConfig(assignment_interval_ms=1_000),
        )  # fmt: skip
        self.shard = WatchedShard(CHECKERS, now=self.now, config=config)
        self.classic: list[_Member] = []
        self.consumers: list[_Member] = []
        self.requests: dict[int, Message] = {}
        self.is_held = False
        self.waiting: list[int] = []

    @initialize()
    def begin(self) -> None:
        self.shard.load([], now=self.now)
        self.give_topics()

    def give_topics(self) -> None:
        images = [
            TopicImage(
                UUID(int=number + 1 + 100 * self.recreated * (name == "audit")), name, self.partitions[name]
            )
            for number, name in enumerate(_TOPICS)
            if self.partitions[name]
        ]
        self.shard.set_topics(TopicsImage(images), now=self.now)
        self.settle()

    # --- the driver ---

    def send(self, request: Message, version: int) -> None:
        context = RequestContext(
            client_id="till", client_host="/10.0.0.1", new_id=lambda: str(UUID(int=next(self.ids), version=4))
        )
        ticket = self.shard.handle(request, version=version, now=self.now, context=context)
        self.requests[ticket] = request
        self.settle()

    def settle(self) -> None:
        for effect in self.shard.effects():
            if isinstance(effect, Append):
                self.waiting.append(effect.number)
                if not self.is_held:
                    self.confirm()
            elif isinstance(effect, Answer):
                self.learn(self.requests.pop(effect.ticket), effect.response)

    def confirm(self) -> None:
        number = self.waiting.pop(0)
        self.shard.appended(number, now=self.now)
        self.settle()

    def learn(self, request: Any, response: Any) -> None:
        if isinstance(response, JoinGroupResponse) and response.member_id:
            self.classic = [other for other in self.classic if other.member_id != response.member_id][-7:]
            self.classic.append(
                _Member(
                    request.group_id, response.member_id, request.group_instance_id, response.generation_id,
                    response.leader == response.member_id, [member.member_id for member in response.members],
                    response.protocol_name,
                )
            )  # fmt: skip
        elif isinstance(response, ConsumerGroupHeartbeatResponse) and not response.error_code:
            for member in self.consumers:
                if member.member_id == response.member_id:
                    member.epoch = response.member_epoch
                    if response.assignment is not None:
                        topics = response.assignment.topic_partitions
                        member.owned = {topic.topic_id: topic.partitions for topic in topics}

    # --- classic members ---

    @rule(
        group=st.sampled_from("gh"), known=_PICK, new=st.booleans(), version=st.integers(0, 9),
        static=st.integers(0, 6), topics=st.integers(0, 3), patience=st.sampled_from([6_000, 20_000]),
    )  # fmt: skip
    def join(
        self, group: str, known: int, new: bool, version: int, static: int, topics: int, patience: int
    ) -> None:
        names = [name for bit, name in enumerate(_TOPICS) if topics >> bit & 1]
        data = b"".join(struct.pack(">h", len(name)) + name.encode() for name in names)
        metadata = struct.pack(">hi", 0, len(names)) + data + b"\xff\xff\xff\xff"
        request = JoinGroupRequest(
            group_id=group, session_timeout_ms=10_000, protocol_type="consumer",
            protocols=[JoinGroupRequestProtocol(name=name, metadata=metadata) for name in _PROTOCOLS],
        )  # fmt: skip
        if version >= 1:
            request.rebalance_timeout_ms = patience
        if self.classic and not new:
            member = self.classic[known % len(self.classic)]
            request.group_id, request.member_id = member.group_id, member.member_id
            if version >= 5:
                request.group_instance_id = member.instance_id
                if member.instance_id is not None and static == 0:
                    request.member_id = ""
        elif version >= 5 and static > 3:
            request.group_instance_id = f"i-{group}-{static}"
        self.send(request, version)

    @precondition(lambda self: self.classic)
    @rule(known=_PICK, wrong=_WRONG, version=st.integers(0, 5))
    def sync(self, known: int, wrong: int, version: int) -> None:
        leaders = [name for name in self.classic if name.leads] or self.classic
        member = (leaders if known % 2 else self.classic)[known % len(leaders if known % 2 else self.classic)]
        request = SyncGroupRequest(
            group_id=member.group_id, generation_id=member.epoch + wrong, member_id=member.member_id
        )
        if member.leads:
            request.assignments = [
                SyncGroupRequestAssignment(member_id=name, assignment=name.encode())
                for name in member.followers
            ]
        if version >= 3:
            request.group_instance_id = member.instance_id
        if version >= 5:
            request.protocol_type, request.protocol_name = "consumer", member.protocol
        self.send(request, version)

    @precondition(lambda self: self.classic)
    @rule(known=_PICK, wrong=_WRONG)
    def heartbeat(self, known: int, wrong: int) -> None:
        member = self.classic[known % len(self.classic)]
        request = HeartbeatRequest(
            group_id=member.group_id, generation_id=member.epoch + wrong, member_id=member.member_id,
            group_instance_id=member.instance_id,
        )  # fmt: skip
        self.send(request, 4)

    @precondition(lambda self: self.classic)
    @rule(known=_PICK)
    def leave(self, known: int) -> None:
        member = self.classic[known % len(self.classic)]
        identity = MemberIdentity(member_id=member.member_id, group_instance_id=member.instance_id)
        self.send(LeaveGroupRequest(group_id=member.group_id, members=[identity]), 4)

    # --- KIP-848 members ---

    @rule(
        known=_PICK, kind=st.sampled_from(["join", "beat", "beat", "beat", "said", "leave", "gone"]),
        wrong=_WRONG, topics=st.integers(1, 3), keep=st.booleans(),
    )  # fmt: skip
    def consumer_heartbeat(self, known: int, kind: str, wrong: int, topics: int, keep: bool) -> None:
        if len(self.consumers) <= known:
            number = len(self.consumers)
            self.consumers.append(
                _Member("c", f"member-{number}", f"s-{number}" if number % 3 == 2 else None)
            )
            kind = "join"
        member = self.consumers[known % len(self.consumers)]
        request = ConsumerGroupHeartbeatRequest(
            group_id=member.group_id, member_id=member.member_id, instance_id=member.instance_id,
            member_epoch=max(member.epoch + wrong, 0),
        )  # fmt: skip
        names = [name for bit, name in enumerate(_TOPICS) if topics >> bit & 1]
        if kind == "join" or request.member_epoch == 0:
            request.member_epoch, request.rebalance_timeout_ms = 0, 5_000
            request.subscribed_topic_names, request.topic_partitions = names, []
        elif kind == "said":
            request.topic_partitions = [
                ConsumerGroupHeartbeatRequestTopicPartitions(topic_id=topic, partitions=partitions)
                for topic, partitions in member.owned.items()
            ]
            if not keep:
                request.rebalance_timeout_ms, request.subscribed_topic_names = 5_000, names
        elif kind in ("leave", "gone"):
            request.member_epoch = -2 if member.instance_id is not None and kind == "leave" else -1
        self.send(request, 1)

    # --- offsets ---

    @rule(known=_PICK, wrong=_WRONG, index=st.integers(0, 3), offset=st.integers(0, 99), own=st.booleans())
    def commit(self, known: int, wrong: int, index: int, offset: int, own: bool) -> None:
        members = [*self.classic, *self.consumers]
        partition = OffsetCommitRequestPartition(
            partition_index=index, committed_offset=offset, committed_metadata=""
        )
        topic = OffsetCommitRequestTopic(name="orders", partitions=[partition])
        request = OffsetCommitRequest(group_id="only-offsets", topics=[topic])
        if members and own:
            member = members[known % len(members)]
            request.group_id, request.member_id = member.group_id, member.member_id
            request.generation_id_or_member_epoch = member.epoch + wrong
            request.group_instance_id = member.instance_id
        self.send(request, 9)

    @rule(producer=st.integers(1, 2), index=st.integers(0, 2), offset=st.integers(100, 199))
    def commit_in_transaction(self, producer: int, index: int, offset: int) -> None:
        partition = TxnOffsetCommitRequestPartition(
            partition_index=index, committed_offset=offset, committed_metadata=""
        )
        request = TxnOffsetCommitRequest(
            transactional_id=f"tx-{producer}", group_id="only-offsets", producer_id=producer,
            producer_epoch=0, topics=[TxnOffsetCommitRequestTopic(name="orders", partitions=[partition])],
        )  # fmt: skip
        self.send(request, 3)

    @rule(producer=st.integers(1, 2), committed=st.booleans())
    def end_transaction(self, producer: int, committed: bool) -> None:
        self.shard.complete_transaction(producer, 0, committed=committed, coordinator_epoch=0, now=self.now)
        self.settle()

    @rule(stable=st.booleans())
    def fetch(self, stable: bool) -> None:
        topics = [OffsetFetchRequestTopics(name="orders", partition_indexes=[0, 1, 2])]
        group = OffsetFetchRequestGroup(group_id="only-offsets", topics=topics)
        self.send(OffsetFetchRequest(groups=[group], require_stable=stable), 8)

    # --- time, the log, the cluster ---

    @rule(by=st.sampled_from([1, 500, 3_000, 3_000, 8_000, 60_000]))
    def wait(self, by: int) -> None:
        self.now += by
        self.shard.advance(self.now)
        self.settle()

    @rule()
    def hold_the_log(self) -> None:
        self.is_held = True

    @precondition(lambda self: self.is_held)
    @rule()
    def release_the_log(self) -> None:
        self.is_held = False
        while self.waiting:
            self.confirm()

    @precondition(lambda self: self.waiting)
    @rule(error=_FAILURES)
    def fail_an_append(self, error: ErrorCode) -> None:
        number, self.waiting = self.waiting[0], []
        self.shard.failed(number, int(error), now=self.now)
        self.settle()

    @rule(partitions=st.integers(0, 4))
    def change_topics(self, partitions: int) -> None:
        if partitions < self.partitions["audit"]:
            self.recreated += 1  # a topic never shrinks, so this is another one
        self.partitions["audit"] = partitions
        self.give_topics()

    @rule()
    def reload(self) -> None:
        self.waiting.clear()
        self.shard.unload(now=self.now)
        self.settle()
        self.shard.load(self.shard.log, now=self.now)
        self.settle()


def check(examples: int, steps: int) -> None:
    run_state_machine_as_test(
        ShardMachine,
        settings=settings(
            max_examples=examples, stateful_step_count=steps, deadline=None, database=None,
            suppress_health_check=list(HealthCheck), print_blob=True, phases=[Phase.reuse, Phase.generate],
        ),
    )  # fmt: skip


def test_invariants_hold_under_any_requests() -> None:
    check(20, 40)


@pytest.mark.long
def test_invariants_hold_under_many_more_requests() -> None:
    check(600, 80)
