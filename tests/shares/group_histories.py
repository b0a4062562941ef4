"""Random histories of share groups beside groups of other kinds, and the answers of share coordinators."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from coordwire.codec import Message
from coordwire.messages import (
    AlterShareGroupOffsetsRequest,
    DeleteShareGroupOffsetsRequest,
    DeleteShareGroupStateResponse,
    DescribeShareGroupOffsetsRequest,
    InitializeShareGroupStateResponse,
    ReadShareGroupStateSummaryResponse,
    ShareGroupDescribeRequest,
    ShareGroupHeartbeatRequest,
    ShareGroupHeartbeatResponse,
)
from coordwire.messages import delete_share_group_state as deletion
from coordwire.messages import initialize_share_group_state as initialization
from coordwire.messages import read_share_group_state_summary as summary
from coordwire.messages.alter_share_group_offsets import (
    AlterShareGroupOffsetsRequestPartition,
    AlterShareGroupOffsetsRequestTopic,
)
from coordwire.messages.delete_share_group_offsets import DeleteShareGroupOffsetsRequestTopic
from coordwire.messages.describe_share_group_offsets import (
    DescribeShareGroupOffsetsRequestGroup,
    DescribeShareGroupOffsetsRequestTopic,
)
from tests.coordinator.coverage import Coverage
from tests.coordinator.generator import Generator
from tests.coordinator.oracle import RELEASE

_GROUPS = ["g", "g", "g", "h", "s"]
_ERRORS = ["NOT_COORDINATOR", "COORDINATOR_NOT_AVAILABLE", "FENCED_STATE_EPOCH", "UNKNOWN_TOPIC_OR_PARTITION"]


@dataclass(slots=True)
class _ShareClient:
    """What a share consumer was told."""

    group: str
    member_id: str
    epoch: int
    previous: int


class ShareGenerator(Generator):
    """A history of share groups, and of others that have the same ids in turn."""

    def __init__(self, seed: int, coverage: Coverage | None = None, release: str = RELEASE) -> None:
        super().__init__(seed, coverage, release)
        self._shares: list[_ShareClient] = []
        self._share_beats: dict[int, ShareGroupHeartbeatRequest] = {}
        own = {self._advance, self._fail, self._hold, self._release, self._reload, self._change_topics}
        self._kinds = [
            (kind, weight * (1 if kind in own else 0.12)) for kind, weight in self._kinds
        ] + [
            (self._join_share, 14), (self._beat_share, 22), (self._leave_share, 2.5),
            (self._describe_share, 2),
            (self._alter, 2.5), (self._delete_share_offsets, 1.5), (self._describe_offsets, 2),
            (self._answer, 16), (self._configure_share, 0.5), (self._delete_groups, 1.5), (self._list, 0.7),
        ]  # fmt: skip

    def _step(self, step: str) -> None:
        if not step.startswith("advance") and self.replayer.is_due():
            # What is due at once comes before the next request in ours, and with the next tick in Kafka's.
            super()._step(f"advance {self.replayer.now}")
        super()._step(step)

    def _change_topics(self) -> None:
        # Kafka's two writes after a deletion of topics fail one by one; ours takes back both.
        if self.replayer.failure is None:
            super()._change_topics()

    def _learn(self, ticket: int, data: bytes) -> None:
        super()._learn(ticket, data)
        request = self._share_beats.pop(ticket, None)
        if request is None:
            return
        response = ShareGroupHeartbeatResponse.decode(data, version=1)
        known = [
            client
            for client in self._shares
            if (client.group, client.member_id) != (request.group_id, request.member_id)
        ]
        if not response.error_code and response.member_epoch > 0:
            before = next((client for client in self._shares if client not in known), None)
            previous = 0 if before is None else before.epoch
            known.append(_ShareClient(request.group_id, request.member_id, response.member_epoch, previous))
            self._shares = known[-8:]
        elif request.member_epoch < 0:
            self._shares = known

    def _share_client(self) -> _ShareClient | None:
        return self.random.choice(self._shares) if self._shares else None

    def _heartbeat_share(self, request: ShareGroupHeartbeatRequest) -> None:
        self._share_beats[self._ticket + 1] = request
        self._send(request, 1)

    def _names(self) -> list[str]:
        names = self.random.sample(self.topic_names, self.random.randint(1, min(3, len(self.topic_names))))
        if self._chance(0.05):
            names.append("nowhere")
        if self._chance(0.03):
            names.append(names[0])
        return names

    # --- members ---

    def _join_share(self) -> None:
        client = self._share_client()
        group = self.random.choice(_GROUPS)
        member_id = f"m{self.random.randint(1, self.most_members)}"
        if client is not None and self._chance(0.3):
            group, member_id = client.group, client.member_id
        request = ShareGroupHeartbeatRequest(
            group_id=group,
            member_id=member_id,
            member_epoch=0,
            rack_id=self.random.choices([None, "r1", ""], [8, 2, 0.2])[0],
            subscribed_topic_names=self._names() if self._chance(0.97) else self.random.choice([None, []]),
        )
        self._spoil_share(request)
        self._heartbeat_share(request)

    def _spoil_share(self, request: ShareGroupHeartbeatRequest) -> None:
        if self._chance(0.03):
            request.group_id = self.random.choice(["", " ", "unknown"])
        if self._chance(0.02):
            request.member_id = self.random.choice(["", "m" * 40, "nobody"])
        if self._chance(0.02):
            request.member_epoch = self.random.choice([-2, -3, 99])

    def _beat_share(self) -> None:
        client = self._share_client()
        if client is None:
            self._join_share()
            return
        request = ShareGroupHeartbeatRequest(
            group_id=client.group,
            member_id=client.member_id,
            member_epoch=self.random.choices(
                [client.epoch, client.previous, client.epoch - 1, client.epoch + 1], [12, 1, 0.5, 0.3]
            )[0],
            subscribed_topic_names=None if self._chance(0.85) else self._names(),
        )
        if self._chance(0.03):
            request.rack_id = "r2"
        self._spoil_share(request)
        self._heartbeat_share(request)

    def _leave_share(self) -> None:
        client = self._share_client()
        if client is not None:
            self._heartbeat_share(
                ShareGroupHeartbeatRequest(group_id=client.group, member_id=client.member_id, member_epoch=-1)
            )

    def _describe_share(self) -> None:
        groups = self.random.sample([*dict.fromkeys(_GROUPS), "unknown", ""], 2)
        self._send(ShareGroupDescribeRequest(group_ids=groups), 1)

    def _configure_share(self) -> None:
        group = self.random.choice(_GROUPS)
        pairs = []
        if self._chance(0.8):
            pairs = [
                f"share.session.timeout.ms={self.random.choice([45_000, 60_000])}",
                f"share.heartbeat.interval.ms={self.random.choice([5_000, 10_000])}",
                f"share.assignment.interval.ms={self.random.choice([0, 1_000, 10_000])}",
                "consumer.session.timeout.ms=45000",
                "consumer.heartbeat.interval.ms=5000",
                f"consumer.assignment.interval.ms={self.replayer.config.consumer.assignment_interval_ms}",
            ]
        self._step(" ".join(["config", group, *pairs]))

    # --- offsets ---

    def _alter(self) -> None:
        topics = [
            AlterShareGroupOffsetsRequestTopic(
                topic_name=name,
                partitions=[
                    AlterShareGroupOffsetsRequestPartition(
                        partition_index=index, start_offset=self.random.choice([0, 5, 100])
                    )
                    for index in self.random.sample(range(5), self.random.randint(1, 3))
                ],
            )
            for name in dict.fromkeys(self._names())
        ]
        if self._chance(0.05):
            topics = []
        group = self.random.choices([*_GROUPS, ""], [5] * len(_GROUPS) + [0.5])[0]
        self._send(AlterShareGroupOffsetsRequest(group_id=group, topics=topics), 0)

    def _delete_share_offsets(self) -> None:
        topics = [DeleteShareGroupOffsetsRequestTopic(topic_name=name) for name in self._names()]
        group = self.random.choices([*_GROUPS, ""], [5] * len(_GROUPS) + [0.5])[0]
        self._send(DeleteShareGroupOffsetsRequest(group_id=group, topics=topics), 0)

    def _describe_offsets(self) -> None:
        groups = []
        for _ in range(self.random.choice([1, 1, 2])):
            topics: list[DescribeShareGroupOffsetsRequestTopic] | None = None
            if self._chance(0.5):
                topics = [
                    DescribeShareGroupOffsetsRequestTopic(
                        topic_name=name, partitions=self.random.sample(range(4), self.random.randint(1, 3))
                    )
                    for name in dict.fromkeys(self._names())
                ]
            if self._chance(0.05):
                topics = []
            groups.append(
                DescribeShareGroupOffsetsRequestGroup(group_id=self.random.choice(_GROUPS), topics=topics)
            )
        self._send(DescribeShareGroupOffsetsRequest(groups=groups), self.random.choice([0, 1]))

    # --- share coordinators ---

    def _answer(self) -> None:
        """A share coordinator answers: all, or with errors, or not at all."""
        if not self.replayer.state_requests:
            self._step(f"advance {self.replayer.now}")
            return
        number = self.random.choice(list(self.replayer.state_requests))
        if self._chance(0.08):
            self._step(f"persisted {number} {self.random.choice(_ERRORS)}")
            return
        request: Any = self.replayer.state_requests[number]
        fails = 0.3 if self._chance(0.15) else 0.0
        response, version = self._response(request, fails)
        words = [f"persisted {number} {response.encode(version=version).hex()}"]
        if isinstance(response, ReadShareGroupStateSummaryResponse):
            for topic in response.results:
                image = self.replayer.topics_by_id().get(topic.topic_id)
                for partition in topic.partitions:
                    error = "NONE" if self._chance(0.9) else self.random.choice(_ERRORS)
                    end = self.random.randint(50, 200)
                    if image is not None:
                        words.append(f"{image.name}:{partition.partition}:{error}:{end}")
        self._step(" ".join(words))

    def _response(self, request: Any, fails: float) -> tuple[Message, int]:
        def error() -> int:
            return int(self._chance(fails) and self.random.choice([16, 124, 3]))

        if request.api_key == 83:
            return InitializeShareGroupStateResponse(
                results=[
                    initialization.InitializeStateResult(
                        topic_id=topic.topic_id,
                        partitions=[
                            initialization.PartitionResult(
                                partition=partition.partition, error_code=error(), error_message=None
                            )
                            for partition in topic.partitions
                        ],
                    )
                    for topic in request.topics
                ]
            ), 0
        if request.api_key == 86:
            return DeleteShareGroupStateResponse(
                results=[
                    deletion.DeleteStateResult(
                        topic_id=topic.topic_id,
                        partitions=[
                            deletion.PartitionResult(
                                partition=partition.partition, error_code=error(), error_message=None
                            )
                            for partition in topic.partitions
                        ],
                    )
                    for topic in request.topics
                ]
            ), 0
        return ReadShareGroupStateSummaryResponse(
            results=[
                summary.ReadStateSummaryResult(
                    topic_id=topic.topic_id,
                    partitions=[
                        summary.PartitionResult(
                            partition=partition.partition, error_code=error(), error_message=None,
                            state_epoch=1, leader_epoch=self.random.randint(0, 2),
                            start_offset=self.random.choice([-1, 0, 10, 40]),
                            delivery_complete_count=self.random.choice([-1, 0, 5]),
                        )
                        for partition in topic.partitions
                    ],
                )
                for topic in request.topics
            ]
        ), 1  # fmt: skip


def share_history(
    seed: int, count: int = 200, coverage: Coverage | None = None, release: str = RELEASE
) -> ShareGenerator:
    """A history of about this many steps, with what our shard made of it."""
    generator = ShareGenerator(seed, coverage, release)
    generator.grow(count)
    return generator
