"""What members of streams groups do in a random history: mostly what KIP-1071 asks for, some wrong.

The members of a group bring one topology, now and then another or an older one. The internal topics that an
answer asks for are mostly created, as a broker does it; some get too many partitions, or go away.
"""

from __future__ import annotations

import base64
import copy
import random
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any
from uuid import UUID

from coordwire.codec import Message
from coordwire.coordinator.releases import ReleaseRules
from coordwire.messages import (
    OffsetCommitRequest,
    OffsetFetchRequest,
    StreamsGroupDescribeRequest,
    StreamsGroupHeartbeatRequest,
    StreamsGroupHeartbeatResponse,
)
from coordwire.messages.offset_commit import OffsetCommitRequestPartition, OffsetCommitRequestTopic
from coordwire.messages.offset_fetch import OffsetFetchRequestGroup
from coordwire.messages.streams_group_heartbeat import (
    CopartitionGroup,
    KeyValue,
    StreamsGroupHeartbeatRequestEndpoint,
    StreamsGroupHeartbeatRequestTaskIds,
    Subtopology,
    TaskOffset,
    TopicInfo,
    Topology,
)
from tests.coordinator.histories import Outcome, Replayer

_GROUPS = ["s", "t", "g"]
_GROUP_WEIGHTS = [6, 4, 1]
_PARTS = ["0", "1", "2", "10", "AaAa", "BBBB"]
"""Some of them have the same hash in Java."""
_INSTANCES = ["till-1", "till-2", "till-3"]
_PROCESSES = ["p-1", "p-2", "p-3", "p-4", "p-5"]
_NOT_A_TOPIC = "no topic!"

Tasks = dict[str, list[int]]


@dataclass(slots=True)
class _Streams:
    """What a member knows of itself. reported: the active tasks that it has not yet given up."""

    group: str
    member_id: str
    process_id: str
    epoch: int = 0
    previous: int = 0
    instance_id: str | None = None
    endpoint_epoch: int = 0
    active: Tasks = field(default_factory=dict)
    standby: Tasks = field(default_factory=dict)
    reported: Tasks = field(default_factory=dict)
    reported_standby: Tasks = field(default_factory=dict)


class StreamsOperations:
    """A part of the generator."""

    random: random.Random
    topic_names: list[str]
    most_partitions: int
    most_members: int
    replayer: Replayer
    rules: ReleaseRules

    def begin_streams(self) -> None:
        self._streams: list[_Streams] = []
        self._streams_beats: dict[int, tuple[_Streams, int]] = {}
        self._topologies: dict[str, Topology] = {}
        self._wanted_topics: dict[str, int] = {}
        self._internal_topics: set[str] = set()

    def streams_kinds(self) -> list[tuple[Callable[[], None], float]]:
        return [
            (self._join_streams, 18), (self._beat_streams, 46), (self._change_streams, 5),
            (self._rejoin_streams, 5), (self._leave_streams, 6), (self._commit_streams, 5),
            (self._fetch_streams, 2), (self._describe_streams, 4), (self._create_internal_topics, 14),
            (self._change_internal_topics, 1.5), (self._configure_streams, 0.8), (self._topics_of_streams, 2),
        ]  # fmt: skip

    # --- what the rest of the generator has ---

    def _send(self, message: Message, version: int) -> int:
        raise NotImplementedError

    def _step(self, step: str) -> None:
        raise NotImplementedError

    def _change_topics(self) -> None:
        raise NotImplementedError

    def _new_topic_id(self) -> UUID:
        raise NotImplementedError

    def _odds(self, share: float) -> bool:
        return self.random.random() < share

    # --- what clients are answered ---

    def learn_streams(self, ticket: int, data: bytes) -> None:
        if ticket not in self._streams_beats:
            return
        member, version = self._streams_beats[ticket]
        response = StreamsGroupHeartbeatResponse.decode(data, version=version)
        if response.error_code:
            return
        if member.epoch != response.member_epoch:
            member.previous, member.epoch = member.epoch, response.member_epoch
        member.endpoint_epoch = response.endpoint_information_epoch
        if response.active_tasks is not None and response.standby_tasks is not None:
            member.active = {tasks.subtopology_id: list(tasks.partitions) for tasks in response.active_tasks}
            member.standby = {
                tasks.subtopology_id: list(tasks.partitions) for tasks in response.standby_tasks
            }
            for known, now in ((member.reported, member.active), (member.reported_standby, member.standby)):
                for part, partitions in now.items():
                    before = known.setdefault(part, [])
                    before += [partition for partition in partitions if partition not in before]
        streams = [stream for stream in self._streams if stream is not member]
        self._streams = [*streams[-self.most_members - 3 :], member]

    def learn_created(self, outcome: Outcome) -> None:
        for text in outcome.created.values():
            for topic in text.split(" "):
                name, partitions, *_ = topic.split(":")
                self._wanted_topics[bytes.fromhex(name).decode()] = int(partitions)

    # --- topologies ---

    def _topology(self, group: str) -> Topology:
        if group not in self._topologies or self._odds(0.02):
            self._topologies[group] = self._new_topology(group)
        topology = copy.deepcopy(self._topologies[group])
        if self._odds(0.06):
            topology.epoch = self.random.choice([0, topology.epoch - 1, topology.epoch + 1])
        return topology

    def _new_topology(self, group: str) -> Topology:
        count = self.random.choice([1, 1, 2, 2, 3, 4])
        parts = [Subtopology(subtopology_id=name) for name in self.random.sample(_PARTS, count)]
        for number, part in enumerate(parts):
            if number == 0 or self._odds(0.5):
                part.source_topics = self.random.sample(self.topic_names, self.random.choice([1, 1, 2]))
            if number and (not part.source_topics or self._odds(0.3)):
                writer = self.random.choice(parts[:number])
                topic = self._internal(group, f"{number}-repartition", self._odds(0.15))
                part.repartition_source_topics.append(topic)
                writer.repartition_sink_topics.append(topic.name)
            for store in range(self.random.choice([0, 1, 1, 2])):
                part.state_changelog_topics.append(
                    self._internal(group, f"{number}-{store}-changelog", False)
                )
            if self._odds(0.4):
                part.copartition_groups.append(
                    CopartitionGroup(
                        source_topics=list(range(len(part.source_topics))),
                        repartition_source_topics=list(range(len(part.repartition_source_topics))),
                    )
                )
        self.random.shuffle(parts)
        topology = Topology(epoch=self.random.choice([0, 1, 1, 2]), subtopologies=parts)
        if self._odds(0.12):
            self._spoil_topology(topology)
        return topology

    def _internal(self, group: str, suffix: str, fixed: bool) -> TopicInfo:
        topic = TopicInfo(name=f"{group}-{suffix}")
        if fixed:
            topic.partitions = self.random.choice([1, 2, 3, 3])
        if self._odds(0.2):
            topic.replication_factor = self.random.choice([1, 2])
        keys = self.random.sample(
            ["cleanup.policy", "retention.ms", "segment.bytes"], self.random.choice([0, 1, 2])
        )
        topic.topic_configs = [KeyValue(key=key, value=f"{len(key)}") for key in keys]
        return topic

    def _spoil_topology(self, topology: Topology) -> None:
        part = self.random.choice(topology.subtopologies)
        match self.random.randrange(14):
            case 0:
                topology.epoch = -1
            case 1:
                topology.subtopologies.append(copy.deepcopy(part))
            case 2:
                part.source_topics, part.repartition_source_topics = [], []
            case 3:
                part.copartition_groups.append(CopartitionGroup(source_topics=[7]))
            case 4:
                part.copartition_groups.append(CopartitionGroup(repartition_source_topics=[-1]))
            case 5:
                part.repartition_source_topics.append(TopicInfo(name="loop"))
                part.repartition_sink_topics.append("loop")
            case 6:
                part.repartition_source_topics.append(TopicInfo(name="nobody-writes"))
            case 7:
                part.state_changelog_topics.append(TopicInfo(name="fixed-changelog", partitions=2))
            case 8:
                part.source_topic_regex = [".*"]
            case 9:
                part.state_changelog_topics.append(TopicInfo(name=_NOT_A_TOPIC))
            case 10:
                part.state_changelog_topics += [TopicInfo(name="twice"), TopicInfo(name="twice")]
            case 11:
                part.repartition_source_topics.append(TopicInfo(name="negative", partitions=-2))
            case 12:
                part.source_topics += ["missing-b", "missing-a", "missing-d", "missing-c"]
            case 13:
                key = KeyValue(key="retention.ms", value="1")
                part.state_changelog_topics.append(TopicInfo(name="configs", topic_configs=[key, key]))

    # --- heartbeats ---

    def _member_of_streams(self) -> _Streams | None:
        return self.random.choice(self._streams) if self._streams else None

    def _streams_heartbeat(self, member: _Streams, request: StreamsGroupHeartbeatRequest) -> None:
        version = 0
        if self.rules.streams_members_report_more:
            version = self.random.randint(0, 1)
            self._report_more(member, request)
        self._spoil_streams(request)
        self._streams_beats[self._ticket + 1] = member, version  # type: ignore[attr-defined]
        self._send(request, version)

    def _report_more(self, member: _Streams, request: StreamsGroupHeartbeatRequest) -> None:
        """What members say since Kafka 4.4."""
        request.instance_id = member.instance_id
        owned = (member.active, member.standby)
        tasks = [(part, index) for own in owned for part in own for index in own[part]]
        if tasks and self._odds(0.3):
            request.task_offsets = [
                TaskOffset(subtopology_id=part, partition=index, offset=self.random.randint(0, 9))
                for part, index in self.random.sample(tasks, self.random.randint(0, len(tasks)))
            ]
        if self._odds(0.1):
            part, index = self.random.choice(tasks) if tasks else ("none", 9)
            request.task_end_offsets = [TaskOffset(subtopology_id=part, partition=index, offset=9)]
            if self._odds(0.1):
                request.task_end_offsets *= 2

    def _spoil_streams(self, request: StreamsGroupHeartbeatRequest) -> None:
        """Make a share of the requests wrong."""
        task = StreamsGroupHeartbeatRequestTaskIds(subtopology_id="0", partitions=[0])
        choices: list[tuple[float, str, list[Any]]] = [
            (0.01, "group_id", ["", " ", "nowhere", "offsets-only"]),
            (0.01, "member_id", ["", "nobody", "member-1"]),
            (0.02, "member_epoch", [0, 1, 2, 7, 99, -1, -2, -3]),
            (0.004, "instance_id", ["", "till-9"]),
            (0.01, "rack_id", ["", "r1", "r2"]),
            (0.006, "rebalance_timeout_ms", [-1, 1]),
            (0.004, "active_tasks", [None, [], [task, task]]),
            (0.004, "standby_tasks", [None, [], [task, task]]),
            (0.004, "warmup_tasks", [None, [], [task]]),
            (0.003, "topology", [None, Topology(epoch=1)]),
            (0.003, "task_offsets", [[TaskOffset(subtopology_id="0")]]),
            (0.003, "task_end_offsets", [[]]),
            (0.006, "client_tags", [[], [KeyValue(key="a"), KeyValue(key="a")]]),
        ]
        for share, name, values in choices:
            if self._odds(share):
                setattr(request, name, self.random.choice(values))
        request.shutdown_application = self._odds(0.01)

    def _describe_itself(self, request: StreamsGroupHeartbeatRequest) -> None:
        if self._odds(0.4):
            request.user_endpoint = StreamsGroupHeartbeatRequestEndpoint(
                host=self.random.choice(["h1", "h2"]), port=self.random.choice([80, 65_535])
            )
        if self._odds(0.3):
            keys = self.random.sample(["zone", "rack", "AaAa", "BBBB"], self.random.randint(0, 3))
            request.client_tags = [KeyValue(key=key, value=self.random.choice("ab")) for key in keys]
        if self._odds(0.2):
            request.rack_id = self.random.choice(["r1", "r2"])

    def _join_streams(self) -> None:
        if len(self._streams) >= self.most_members and self._odds(0.7):
            self._beat_streams()
            return
        (group,) = self.random.choices(_GROUPS, _GROUP_WEIGHTS)
        member = _Streams(group, f"member-{self.random.getrandbits(20):x}", self.random.choice(_PROCESSES))
        if self.rules.streams_members_report_more and self._odds(0.4):
            member.instance_id = self.random.choice(_INSTANCES)
        self._join_group(member)

    def _join_group(self, member: _Streams) -> None:
        request = StreamsGroupHeartbeatRequest(
            group_id=member.group, member_id=member.member_id, process_id=member.process_id,
            rebalance_timeout_ms=self.random.choice([1_000, 10_000, 60_000]),
            topology=self._topology(member.group), active_tasks=[], standby_tasks=[], warmup_tasks=[],
        )  # fmt: skip
        self._describe_itself(request)
        self._streams_heartbeat(member, request)

    def _rejoin_streams(self) -> None:
        member = self._member_of_streams()
        if member is None:
            return
        member.active, member.standby, member.reported, member.reported_standby = {}, {}, {}, {}
        self._join_group(member)

    def _regular_streams(self, member: _Streams) -> StreamsGroupHeartbeatRequest:
        return StreamsGroupHeartbeatRequest(
            group_id=member.group, member_id=member.member_id, member_epoch=member.epoch,
            endpoint_information_epoch=member.endpoint_epoch,
        )  # fmt: skip

    def _report_tasks(self, tasks: Tasks) -> list[StreamsGroupHeartbeatRequestTaskIds]:
        return [
            StreamsGroupHeartbeatRequestTaskIds(subtopology_id=part, partitions=list(partitions))
            for part, partitions in tasks.items()
            if partitions
        ]

    def _beat_streams(self) -> None:
        member = self._member_of_streams()
        if member is None:
            return
        request = self._regular_streams(member)
        if self._odds(0.65):  # it gives up what it was told to
            member.reported = {part: list(partitions) for part, partitions in member.active.items()}
            member.reported_standby = {part: list(partitions) for part, partitions in member.standby.items()}
        if self._odds(0.65):
            request.active_tasks = self._report_tasks(member.reported)
            request.standby_tasks = self._report_tasks(member.reported_standby)
            request.warmup_tasks = []
            if self._odds(0.01):
                request.active_tasks.append(
                    StreamsGroupHeartbeatRequestTaskIds(
                        subtopology_id=self.random.choice(["0", "none"]),
                        partitions=[self.random.choice([-1, 99])],
                    )
                )
        if self._odds(0.04):
            request.member_epoch = member.previous
        self._streams_heartbeat(member, request)

    def _change_streams(self) -> None:
        member = self._member_of_streams()
        if member is None:
            return
        request = self._regular_streams(member)
        self._describe_itself(request)
        if self._odds(0.3):
            request.process_id = member.process_id = self.random.choice(_PROCESSES)
        if self._odds(0.3):
            request.rebalance_timeout_ms = self.random.choice([1_000, 30_000])
        self._streams_heartbeat(member, request)

    def _leave_streams(self) -> None:
        member = self._member_of_streams()
        if member is None:
            return
        request = self._regular_streams(member)
        request.member_epoch = -1
        if member.instance_id is not None and self._odds(0.7):
            request.member_epoch = -2
        self._streams_heartbeat(member, request)
        if request.member_epoch == -2 and self._odds(0.7):
            self._return_streams(member)
        if self._odds(0.1):
            self._topologies.pop(member.group, None)

    def _return_streams(self, member: _Streams) -> None:
        """A static member comes back, mostly under another id."""
        member_id = f"member-{self.random.getrandbits(20):x}" if self._odds(0.9) else member.member_id
        self._join_group(_Streams(member.group, member_id, member.process_id, instance_id=member.instance_id))

    # --- topics ---

    def _put_topic(self, name: str, partitions: int) -> None:
        known = self.replayer.topics
        topic_id = next((key for key, topic in known.items() if topic.name == name), None)
        if topic_id is None:
            topic_id = base64.urlsafe_b64encode(self._new_topic_id().bytes).decode().rstrip("=")
        elif known[topic_id].partitions >= partitions:
            return
        self._internal_topics.add(name)
        self._step(f"topics +{topic_id}:{partitions}:{name}")

    def _create_internal_topics(self) -> None:
        """As a broker does it, one topic after the other."""
        expected, self._wanted_topics = self._wanted_topics, {}
        for name, partitions in expected.items():
            if 0 < partitions < 50 and not self._odds(0.05):
                self._put_topic(name, partitions + (1 if self._odds(0.03) else 0))
        if not expected:
            self._beat_streams()

    def _change_internal_topics(self) -> None:
        known = {topic.name: key for key, topic in self.replayer.topics.items()}
        names = sorted(self._internal_topics & known.keys())
        if not names:
            return
        name = self.random.choice(names)
        if self._odds(0.6):
            self._step(f"topics -{known[name]}")
        else:
            self._put_topic(name, self.replayer.topics[known[name]].partitions + 1)

    def _topics_of_streams(self) -> None:
        self._change_topics()

    # --- offsets and looks at the group ---

    def _commit_streams(self) -> None:
        member = self._member_of_streams()
        if member is None:
            return
        epoch = self.random.choice([member.epoch, member.epoch, member.previous, member.previous, 1, 99])
        request = OffsetCommitRequest(
            group_id=member.group, member_id=member.member_id, generation_id_or_member_epoch=epoch
        )
        for name in self.random.sample([*self.topic_names, *sorted(self._internal_topics)], 2):
            topic = OffsetCommitRequestTopic(name=name)
            for index in self.random.sample(range(self.most_partitions), self.random.randint(1, 2)):
                topic.partitions.append(
                    OffsetCommitRequestPartition(
                        partition_index=index, committed_offset=self.random.randint(0, 100)
                    )
                )
            request.topics.append(topic)
        self._send(request, self.random.choice([8, 9, 9, 9]))

    def _fetch_streams(self) -> None:
        member = self._member_of_streams()
        if member is None:
            return
        epoch = self.random.choice([member.epoch, member.epoch, member.previous, 99, -1])
        group = OffsetFetchRequestGroup(
            group_id=member.group, member_id=member.member_id, member_epoch=epoch, topics=None
        )
        if self._odds(0.2):
            group.member_id = None
        self._send(OffsetFetchRequest(groups=[group], require_stable=self._odds(0.5)), 9)

    def _describe_streams(self) -> None:
        groups = self.random.sample([*_GROUPS, "offsets-only", "nowhere", ""], self.random.randint(1, 3))
        request, version = StreamsGroupDescribeRequest(group_ids=groups), 0
        if self.rules.streams_members_report_more:
            version = self.random.randint(0, 1)
            request.include_topology_description = version == 1 and self._odds(0.5)
        self._send(request, version)

    def _configure_streams(self) -> None:
        pairs = []
        if self._odds(0.7):
            pairs = [
                f"streams.session.timeout.ms={self.random.choice([45_000, 50_000])}",
                f"streams.heartbeat.interval.ms={self.random.choice([5_000, 7_000])}",
                f"streams.assignment.interval.ms={self.random.choice([0, 2_000])}",
                f"streams.initial.rebalance.delay.ms={self.random.choice([0, 2_000])}",
                f"streams.num.standby.replicas={self.random.choice([0, 1, 2])}",
            ]
        self._step(" ".join(["config", self.random.choice(_GROUPS), *pairs]))
