"""Random histories: requests of every kind and version, right and wrong, time, failures, loads.

Strategy: a history grows while it runs on our own shard, so that requests can use the ids and generations
that were answered. What is answered by then makes most requests plausible; a share of each kind is wrong on
purpose.
"""

from __future__ import annotations

import base64
import random
import struct
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any
from uuid import UUID

from coordwire.codec import Message
from coordwire.messages import (
    DeleteGroupsRequest,
    DescribeGroupsRequest,
    HeartbeatRequest,
    JoinGroupRequest,
    JoinGroupResponse,
    LeaveGroupRequest,
    ListGroupsRequest,
    OffsetCommitRequest,
    OffsetDeleteRequest,
    OffsetFetchRequest,
    SyncGroupRequest,
)
from coordwire.messages.join_group import JoinGroupRequestProtocol
from coordwire.messages.leave_group import MemberIdentity
from coordwire.messages.offset_commit import OffsetCommitRequestPartition, OffsetCommitRequestTopic
from coordwire.messages.offset_delete import OffsetDeleteRequestPartition, OffsetDeleteRequestTopic
from coordwire.messages.offset_fetch import (
    OffsetFetchRequestGroup,
    OffsetFetchRequestTopic,
    OffsetFetchRequestTopics,
)
from coordwire.messages.sync_group import SyncGroupRequestAssignment
from tests.coordinator.consumer_operations import ConsumerOperations
from tests.coordinator.coverage import Coverage
from tests.coordinator.histories import Outcome, Replayer, request_step
from tests.coordinator.settings import settings

__all__ = ["Generator", "history"]

_GROUPS = ["g", "h", "offsets-only"]
_TOPICS = ["orders", "payments", "audit"]
_INSTANCES = ["till-1", "till-2", "till-3"]
_ERRORS = ["NOT_ENOUGH_REPLICAS", "NOT_LEADER_OR_FOLLOWER", "MESSAGE_TOO_LARGE", "REQUEST_TIMED_OUT"]
_DAY = 86_400_000


@dataclass(slots=True)
class _Client:
    """What a client was told."""

    group: str
    member_id: str
    instance_id: str | None
    generation: int
    leader: bool
    members: list[str]
    protocols: list[JoinGroupRequestProtocol]
    protocol: str | None


class Generator(ConsumerOperations):
    """Makes one history: of classic groups, of consumer groups, or of groups that are either in turn."""

    def __init__(self, seed: int, coverage: Coverage | None = None) -> None:
        self._coverage = coverage
        self.random = random.Random(seed)
        self.replayer = Replayer(settings(seed))
        self.steps: list[str] = []
        self.outcomes: list[Outcome] = []
        self._clients: list[_Client] = []
        self._asked: dict[int, tuple[JoinGroupRequest, int]] = {}
        self._ticket = 0
        self._topics = 0
        self._loaded = True
        self._kinds: list[tuple[Callable[[], None], float]] = [
            (self._join, 30), (self._sync, 22), (self._heartbeat, 8), (self._leave, 6), (self._advance, 12),
            (self._commit, 10), (self._fetch, 5), (self._delete_offsets, 2), (self._describe, 2),
            (self._list, 1), (self._delete_groups, 2), (self._fail, 2), (self._hold, 1), (self._release, 2),
            (self._change_topics, 1), (self._reload, 1),
        ]  # fmt: skip
        self.mixed = seed % 3 != 0
        if self.mixed:
            self.begin_consumers()
            classic = 0.35 if seed % 3 == 1 else 0.12
            own = {self._advance, self._fail, self._hold, self._release, self._reload}
            self._kinds = [
                (kind, weight * (1 if kind in own else classic)) for kind, weight in self._kinds
            ] + self.consumer_kinds()

    def grow(self, count: int) -> None:
        self._change_topics()
        kinds, weights = zip(*self._kinds, strict=True)
        while len(self.steps) < count:
            (kind,) = self.random.choices(kinds, weights)
            kind()
        self._step("commit")

    def _step(self, step: str) -> None:
        self.steps.append(step)
        outcome = self.replayer.run(step)
        self.outcomes.append(outcome)
        if self._coverage is not None:
            self._coverage.add(self.replayer, outcome)
        for ticket, data in outcome.answers.items():
            self._learn(ticket, data)
            if self.mixed:
                self.learn_consumer(ticket, data)

    def _send(self, message: Message, version: int) -> int:
        self._ticket += 1
        if self.mixed:
            self.note_sent(self._ticket, message, version)
        if isinstance(message, JoinGroupRequest):
            self._asked[self._ticket] = message, version
        client = self.random.choice(["till", "till", "bar", "ü-1"])
        self._step(request_step(self._ticket, message, version, self.random.getrandbits(32), client))
        return self._ticket

    def _learn(self, ticket: int, data: bytes) -> None:
        if ticket not in self._asked:
            return
        request, version = self._asked[ticket]
        response = JoinGroupResponse.decode(data, version=version)
        if response.member_id:
            client = _Client(
                request.group_id, response.member_id, request.group_instance_id, response.generation_id,
                response.leader == response.member_id, [one.member_id for one in response.members],
                request.protocols, response.protocol_name,
            )  # fmt: skip
            self._clients = [one for one in self._clients if one.member_id != client.member_id][-12:]
            self._clients.append(client)

    def _chance(self, share: float) -> bool:
        return self.random.random() < share

    def _client(self) -> _Client | None:
        return self.random.choice(self._clients) if self._clients else None

    # --- classic groups ---

    def _subscription(self) -> bytes:
        if self._chance(0.1):
            return self.random.choice(
                [b"", b"\x00", b"\x00\x01\x00\x00\x00\x01", b"\x00\x00\x7f\xff\xff\xff"]
            )
        if self.mixed and self._chance(0.93):
            return self.full_subscription()
        topics = self.random.sample(_TOPICS, self.random.randint(0, 2))
        names = b"".join(struct.pack(">h", len(name)) + name.encode() for name in topics)
        return struct.pack(">hi", self.random.randint(0, 3), len(topics)) + names + b"\xff\xff\xff\xff"

    def _protocols(self) -> list[JoinGroupRequestProtocol]:
        names = self.random.sample(["range", "roundrobin", "sticky", "zebra"], self.random.randint(1, 4))
        if "range" not in names and not self._chance(0.1):
            names.append("range")
        if self._chance(0.02):
            names = []
        return [JoinGroupRequestProtocol(name=name, metadata=self._subscription()) for name in names]

    def _join(self) -> None:
        version = self.random.randint(0, 9)
        client = self._client() if self._chance(0.75) else None
        request = JoinGroupRequest(
            group_id=self.random.choices([*_GROUPS[:2], ""], [5, 5, 0.1])[0],
            session_timeout_ms=self.random.choices(
                [6_000, 10_000, 30_000, 5_999, 1_800_001], [9, 9, 9, 0.2, 0.2]
            )[0],
            protocol_type=self.random.choices(["consumer", "connect", ""], [12, 1, 0.1])[0],
            protocols=self._protocols(),
        )
        if version >= 1:
            request.rebalance_timeout_ms = self.random.choice([1_000, 10_000, 60_000])
        if client is not None:
            request.group_id, request.member_id = client.group, client.member_id
            if self._chance(0.6):
                request.protocols = client.protocols
            if version >= 5 and not self._chance(0.05):
                request.group_instance_id = client.instance_id
                if client.instance_id is not None and self._chance(0.3):
                    request.member_id = ""
        elif version >= 5 and self._chance(0.4):
            request.group_instance_id = self.random.choice(_INSTANCES)
        if self._chance(0.02):
            request.member_id = "nobody"
        if version >= 8 and self._chance(0.3):
            request.reason = "it wants to"
        self._send(request, version)

    def _sync(self) -> None:
        client = self._client()
        if client is None:
            return
        if self._chance(0.5):
            leaders = [one for one in self._clients if one.leader]
            client = self.random.choice(leaders) if leaders else client
        version = self.random.randint(0, 5)
        request = SyncGroupRequest(
            group_id=client.group, generation_id=client.generation, member_id=client.member_id
        )
        if client.leader:
            request.assignments = [
                SyncGroupRequestAssignment(
                    member_id=one, assignment=self.random.randbytes(self.random.randint(0, 4))
                )
                for one in client.members
                if not self._chance(0.1)
            ]
        if self.mixed and self._chance(0.9):
            request.assignments = self.plausible_assignments(client.members if client.leader else [])
        if version >= 3:
            request.group_instance_id = client.instance_id
        if version >= 5:
            request.protocol_type = self.random.choices(["consumer", "connect", None], [30, 1, 1])[0]
            request.protocol_name = client.protocol if not self._chance(0.05) else "other"
        self._spoil(request)
        self._send(request, version)

    def _spoil(self, request: Any) -> None:
        """Make a share of the requests wrong."""
        if self._chance(0.03):
            request.group_id = self.random.choice(["", "nowhere", *_GROUPS])
        if self._chance(0.03):
            request.member_id = self.random.choice(["", "nobody"])
        if self._chance(0.04):
            name = "generation_id" if hasattr(request, "generation_id") else "generation_id_or_member_epoch"
            setattr(request, name, self.random.choice([-1, 0, 1, 7]))

    def _heartbeat(self) -> None:
        client = self._client()
        if client is None:
            return
        version = self.random.randint(0, 4)
        request = HeartbeatRequest(
            group_id=client.group, generation_id=client.generation, member_id=client.member_id
        )
        if version >= 3:
            request.group_instance_id = client.instance_id
        self._spoil(request)
        self._send(request, version)

    def _leave(self) -> None:
        client = self._client()
        if client is None:
            return
        version = self.random.randint(0, 5)
        request = LeaveGroupRequest(group_id=client.group)
        if version < 3:
            request.member_id = client.member_id
        else:
            for _ in range(self.random.randint(0, 3)):
                one = self._client() or client
                identity = MemberIdentity(member_id=one.member_id, group_instance_id=one.instance_id)
                if one.instance_id is not None and self._chance(0.4):
                    identity.member_id = ""
                if self._chance(0.05):
                    identity.member_id = "nobody"
                if version >= 5:
                    identity.reason = "it is done"
                request.members.append(identity)
        if self._chance(0.03):
            request.group_id = self.random.choice(["", "nowhere"])
        self._send(request, version)

    # --- offsets ---

    def _partitions(self) -> list[int]:
        return self.random.sample(range(4), self.random.randint(1, 2))

    def _topic_id(self, name: str) -> UUID:
        for topic in self.replayer.topics.values():
            if topic.name == name:
                return topic.id
        return UUID(int=self.random.getrandbits(128))

    def _commit(self) -> None:
        version = self.random.randint(2, 10)
        client = self._client()
        request = OffsetCommitRequest(group_id=self.random.choice(_GROUPS))
        if client is not None and self._chance(0.7):
            request.group_id, request.member_id = client.group, client.member_id
            request.generation_id_or_member_epoch = client.generation
            if version >= 7:
                request.group_instance_id = client.instance_id
        if version <= 4 and self._chance(0.2):
            request.retention_time_ms = self.random.choice([1_000, _DAY])
        for name in self.random.sample([*_TOPICS, "missing"], self.random.randint(1, 2)):
            topic = OffsetCommitRequestTopic(name=name)
            if version >= 10:
                topic.name, topic.topic_id = "", self._topic_id(name)
            for index in self._partitions():
                partition = OffsetCommitRequestPartition(
                    partition_index=index,
                    committed_offset=self.random.randint(0, 100),
                    committed_metadata=self.random.choices(["", "ok", None, "much too long"], [5, 5, 1, 1])[
                        0
                    ],
                )
                if version >= 6:
                    partition.committed_leader_epoch = self.random.choice([-1, 0, 5])
                topic.partitions.append(partition)
            request.topics.append(topic)
        self._spoil(request)
        self._send(request, version)

    def _fetch(self) -> None:
        version = self.random.randint(1, 10)
        request = OffsetFetchRequest()
        everything = version >= 2 and self._chance(0.4)
        if version >= 7:
            request.require_stable = self._chance(0.5)
        if version < 8:
            request.group_id = self.random.choice([*_GROUPS, "nowhere"])
            request.topics = None if everything else [
                OffsetFetchRequestTopic(name=name, partition_indexes=self._partitions())
                for name in self.random.sample(_TOPICS, self.random.randint(1, 2))
            ]  # fmt: skip
        else:
            for group_id in self.random.sample([*_GROUPS, "nowhere"], self.random.randint(1, 2)):
                topics = []
                for name in self.random.sample([*_TOPICS, "missing"], self.random.randint(1, 2)):
                    topic = OffsetFetchRequestTopics(name=name, partition_indexes=self._partitions())
                    if version >= 10:
                        topic.name, topic.topic_id = "", self._topic_id(name)
                    topics.append(topic)
                request.groups.append(
                    OffsetFetchRequestGroup(group_id=group_id, topics=None if everything else topics)
                )
        self._send(request, version)

    def _delete_offsets(self) -> None:
        request = OffsetDeleteRequest(group_id=self.random.choice([*_GROUPS, "nowhere", ""]))
        for name in self.random.sample([*_TOPICS, "missing"], self.random.randint(1, 2)):
            partitions = [OffsetDeleteRequestPartition(partition_index=index) for index in self._partitions()]
            request.topics.append(OffsetDeleteRequestTopic(name=name, partitions=partitions))
        self._send(request, 0)

    # --- groups as a whole ---

    def _some_groups(self) -> list[str]:
        return self.random.sample([*_GROUPS, "nowhere"], self.random.randint(1, 3))

    def _describe(self) -> None:
        self._send(DescribeGroupsRequest(groups=self._some_groups()), self.random.randint(0, 6))

    def _list(self) -> None:
        version = self.random.randint(0, 5)
        request = ListGroupsRequest()
        if version >= 4 and self._chance(0.6):
            states = ["Empty", "stable", "PreparingRebalance", "Dead", "no-state"]
            request.states_filter = self.random.sample(states, 2)
        if version >= 5 and self._chance(0.6):
            request.types_filter = self.random.sample(["classic", "CONSUMER", "Classic"], 1)
        self._send(request, version)

    def _delete_groups(self) -> None:
        self._send(DeleteGroupsRequest(groups_names=self._some_groups()), self.random.randint(0, 2))

    # --- what happens around it ---

    def _advance(self) -> None:
        by = self.random.choices([0, 500, 1_000, 3_000, 6_000, 60_000, 1_800_000], [1, 4, 6, 8, 4, 1, 0.2])[0]
        self._step(f"advance {self.replayer.now + by + self.random.choice([0, 0, 1])}")

    def _fail(self) -> None:
        self._step(f"fail {self.random.choice(_ERRORS)}")

    def _hold(self) -> None:
        self._step("hold")

    def _release(self) -> None:
        self._step("commit")

    def _reload(self) -> None:
        self._step("unload" if self._loaded else "load")
        self._loaded = not self._loaded
        if not self._loaded and self._chance(0.7):
            self._reload()

    def _change_topics(self) -> None:
        known = self.replayer.topics
        changes = []
        for name in _TOPICS:
            topic_id = next((key for key, topic in known.items() if topic.name == name), None)
            if topic_id is None and (not known or self._chance(0.5)):
                self._topics += 1
                new_id = (
                    base64.urlsafe_b64encode(UUID(int=(self._topics << 64) + 7).bytes).decode().rstrip("=")
                )
                changes.append(f"+{new_id}:{self.random.randint(1, 4)}:{name}")
            elif topic_id is not None and self._chance(0.3):
                changes.append(f"-{topic_id}")
            elif topic_id is not None and self._chance(0.3):
                changes.append(f"+{topic_id}:{known[topic_id].partitions + 1}:{name}")
        if changes:
            self._step(" ".join(["topics", *changes]))


def history(seed: int, count: int = 200, coverage: Coverage | None = None) -> Generator:
    """A history of about this many steps, with what our shard made of it."""
    found = Generator(seed, coverage)
    found.grow(count)
    return found
