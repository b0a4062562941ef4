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
from coordwire.coordinator import ShardStatus
from coordwire.coordinator.releases import rules_of
from coordwire.messages import (
    ConsumerGroupHeartbeatRequest,
    HeartbeatRequest,
    JoinGroupRequest,
    JoinGroupResponse,
    LeaveGroupRequest,
    SyncGroupRequest,
)
from coordwire.messages.join_group import JoinGroupRequestProtocol
from coordwire.messages.leave_group import MemberIdentity
from coordwire.messages.sync_group import SyncGroupRequestAssignment
from tests.coordinator.consumer_operations import ConsumerOperations
from tests.coordinator.coverage import Coverage
from tests.coordinator.histories import Outcome, Replayer, request_step
from tests.coordinator.log_changes import Log, changed, load_step
from tests.coordinator.mutations import mutated
from tests.coordinator.offset_operations import OffsetOperations
from tests.coordinator.oracle import RELEASE
from tests.coordinator.settings import Way, has_streams, settings, way
from tests.coordinator.streams_operations import StreamsOperations
from tests.coordinator.transaction_operations import TransactionOperations

_GROUPS = ["g", "h", "offsets-only"]
_TOPICS = ["orders", "payments", "audit"]
_MORE_TOPICS = [
    *(
        "a",
        "aa",
        "o",
        "orders-2",
        "payments.eu",
        "payments.us",
        "pay",
        "Audit",
        "stock",
        "refunds",
        "returns",
    ),
    *("till_events", "x" * 60, "clicks", "views", "AaAa", "BBBB", "AaBB"),
]
"""Some of them have the same hash in Java."""
_INSTANCES = ["till-1", "till-2", "till-3"]
_ERRORS = ["NOT_ENOUGH_REPLICAS", "NOT_LEADER_OR_FOLLOWER", "MESSAGE_TOO_LARGE", "REQUEST_TIMED_OUT"]


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


class Generator(OffsetOperations, ConsumerOperations, StreamsOperations, TransactionOperations):
    """Makes one history: of classic groups, of consumer and streams groups, or of all in turn."""

    def __init__(self, seed: int, coverage: Coverage | None = None, release: str = RELEASE) -> None:
        self._coverage, self.release, self.rules = coverage, release, rules_of(release)
        self.random = random.Random(seed)
        self.way = way(seed)
        self.topic_names, self.most_partitions, self.most_members = list(_TOPICS), 4, 6
        if self.way is Way.WIDE:
            extra = self.random.randint(1, len(_MORE_TOPICS))
            self.topic_names += self.random.sample(_MORE_TOPICS, extra)
            self.most_partitions, self.most_members = self.random.choice([4, 14]), 11
        self.replayer = Replayer(settings(seed, release))
        self.steps: list[str] = []
        self.outcomes: list[Outcome] = []
        self._clients: list[_Client] = []
        self._joins: dict[int, tuple[JoinGroupRequest, int]] = {}
        self._ticket = 0
        self._topics = 0
        self._loaded = True
        self.changes_logs = True
        self._readable: Log | None = None
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
        self.has_streams = has_streams(seed)
        if self.has_streams:
            self.begin_streams()
            own = {self._advance, self._fail, self._hold, self._release, self._reload}
            self._kinds = [
                (kind, weight * (0.7 if kind in own else 0.22)) for kind, weight in self._kinds
            ] + self.streams_kinds()
        self.begin_transactions()
        self._kinds += self.transaction_kinds()
        if self.way is Way.HOSTILE:
            seldom = {self._delete_offsets, self._describe, self._list, self._delete_groups, self._fetch}
            self._kinds = [(kind, weight * (6 if kind in seldom else 1)) for kind, weight in self._kinds]

    def grow(self, count: int) -> None:
        self._change_topics()
        self.grow_to(count)
        self._step("commit")

    def grow_to(self, count: int) -> None:
        """More steps, until there are this many."""
        kinds, weights = zip(*self._kinds, strict=True)
        while len(self.steps) < count:
            (kind,) = self.random.choices(kinds, weights)
            kind()

    def any_step(self) -> None:
        """Anything but that the partition comes or goes."""
        kinds = [(kind, weight) for kind, weight in self._kinds if kind != self._reload]
        self.random.choices([kind for kind, _ in kinds], [weight for _, weight in kinds])[0]()

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
            if self.has_streams:
                self.learn_streams(ticket, data)
        if self.has_streams:
            self.learn_created(outcome)

    def _next_ticket(self) -> int:
        self._ticket += 1
        return self._ticket

    def _member(self) -> tuple[str, str, str | None, int] | None:
        """A client's group, member id, instance id and generation or epoch."""
        consumer = self._consumer() if self.mixed and self._chance(0.7) else None
        if consumer is not None:
            epoch = self.random.choice([consumer.epoch, consumer.epoch, consumer.previous])
            return consumer.group, consumer.member_id, consumer.instance_id, epoch
        return self._classic_member()

    def _classic_member(self) -> tuple[str, str, str | None, int] | None:
        client = self._client()
        if client is None:
            return None
        return client.group, client.member_id, client.instance_id, client.generation

    def _new_id(self) -> int:
        """The bits of a member id. Kafka counts on to one without hyphens, which must not take long."""
        bits = self.random.getrandbits(32)
        while (
            self.release != RELEASE and b"-" in base64.urlsafe_b64encode(UUID(int=bits, version=4).bytes)[:20]
        ):
            bits = self.random.getrandbits(32)
        return bits

    def _send(self, message: Message, version: int) -> int:
        if self.way is Way.HOSTILE and self._chance(0.12):
            message = mutated(self.random, message, version)
        _is_patient(message)
        self._ticket += 1
        if self.mixed:
            self.note_sent(self._ticket, message, version)
        if isinstance(message, JoinGroupRequest):
            self._joins[self._ticket] = message, version
        client = self.random.choices(["till", "bar", "ü-1", None], [100, 50, 50, 3])[0]
        if self.way is Way.HOSTILE and self._chance(0.01):
            client = self.random.choice(["", "\0", "c" * 32_740])
        self._step(request_step(self._ticket, message, version, self._new_id(), client))
        return self._ticket

    def _learn(self, ticket: int, data: bytes) -> None:
        if ticket not in self._joins:
            return
        request, version = self._joins[ticket]
        response = JoinGroupResponse.decode(data, version=version)
        if response.member_id:
            client = _Client(
                request.group_id, response.member_id, request.group_instance_id, response.generation_id,
                response.leader == response.member_id, [member.member_id for member in response.members],
                request.protocols, response.protocol_name,
            )  # fmt: skip
            self._clients = [member for member in self._clients if member.member_id != client.member_id][-12:]
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
        topics = self.random.sample(self.topic_names, self.random.randint(0, 2))
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
            leaders = [member for member in self._clients if member.leader]
            client = self.random.choice(leaders) if leaders else client
        version = self.random.randint(0, 5)
        request = SyncGroupRequest(
            group_id=client.group, generation_id=client.generation, member_id=client.member_id
        )
        if client.leader:
            request.assignments = [
                SyncGroupRequestAssignment(
                    member_id=member, assignment=self.random.randbytes(self.random.randint(0, 4))
                )
                for member in client.members
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
                leaver = self._client() or client
                identity = MemberIdentity(member_id=leaver.member_id, group_instance_id=leaver.instance_id)
                if leaver.instance_id is not None and self._chance(0.4):
                    identity.member_id = ""
                if self._chance(0.05):
                    identity.member_id = "nobody"
                if version >= 5:
                    identity.reason = "it is done"
                request.members.append(identity)
        if self._chance(0.03):
            request.group_id = self.random.choice(["", "nowhere"])
        self._send(request, version)

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
        """The partition goes, or comes: at once or slowly, with the log as it was or not quite."""
        if self._loaded:
            self._step("unload")
            self._loaded = False
            if self._chance(0.7):
                self._reload()
            return
        if self._chance(0.3):
            self._step("begin-load")
            for _ in range(self.random.randint(0, 5)):
                self.any_step()
            if self._chance(0.2):
                self._step("unload")
                return
        if self._readable is not None:
            self.load(load_step(self._readable))
        elif self.changes_logs and self._chance(0.15):
            self.load(load_step(changed(self.random, self.replayer.whole_log)[1]))
        else:
            self.load("load")

    def fail_over(self, step: str) -> None:
        """Give up the partition and load this log."""
        if self._loaded:
            self._step("unload")
        self.load(step)

    def load(self, step: str) -> None:
        """Load a log; after one that can't be loaded comes the one that was there before."""
        before = self._readable or self.replayer.whole_log
        self._step(step)
        self._loaded = self.replayer.shard.status is ShardStatus.ACTIVE
        self._readable = None if self._loaded else before

    def _new_topic_id(self) -> UUID:
        self._topics += 1
        wide = self.way is Way.WIDE
        return UUID(int=self.random.getrandbits(128) if wide else (self._topics << 64) + 7)

    def _change_topics(self) -> None:
        known = self.replayer.topics
        changes = []
        for name in self.topic_names:
            topic_id = next((key for key, topic in known.items() if topic.name == name), None)
            if topic_id is None and (not known or self._chance(0.5)):
                new_id = base64.urlsafe_b64encode(self._new_topic_id().bytes).decode().rstrip("=")
                changes.append(f"+{new_id}:{self.random.randint(1, self.most_partitions)}:{name}")
            elif topic_id is not None and self._chance(0.3):
                changes.append(f"-{topic_id}")
            elif topic_id is not None and self._chance(0.3):
                changes.append(f"+{topic_id}:{known[topic_id].partitions + 1}:{name}")
        if changes:
            self._step(" ".join(["topics", *changes]))


def _is_patient(message: Any) -> None:
    """Static members are awaited for some time: where a join phase waits for nothing else and takes no time,
    the oracle's clock does not go on."""
    if isinstance(message, JoinGroupRequest):
        static = message.group_instance_id is not None
    else:
        static = isinstance(message, ConsumerGroupHeartbeatRequest) and message.instance_id is not None
        static = static and message.rebalance_timeout_ms != -1
    if static and message.rebalance_timeout_ms <= 0:
        message.rebalance_timeout_ms = 1


def history(
    seed: int, count: int = 200, coverage: Coverage | None = None, release: str = RELEASE
) -> Generator:
    """A history of about this many steps, with what our shard made of it."""
    generator = Generator(seed, coverage, release)
    generator.grow(count)
    return generator
