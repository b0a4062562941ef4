"""Where the ZooKeeper consumer keeps its offsets: in ZooKeeper, with Kafka's offset manager, or in both.

Source: the implementation page ("Migrating offsets from ZooKeeper to Kafka"), the description of
ZookeeperConsumerConnector (commitOffsets, checkpointedZkOffsets, the offset manager's channel). Strategy:
steps of the consumer's procedures; what goes to the offset manager is an action with Kafka's own request,
whose answer the host brings. Rules: with dual.commit.enabled an offset goes to ZooKeeper once Kafka has
it, and the greater of both is where a consumer begins. The page rolls a migration back by the same four steps
with offsets.storage=zookeeper; so dual commits are to both, whichever is the storage. The releases write to
ZooKeeper alone then, and read it alone, so that their roll-back begins with dual commits to Kafka.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any, Literal

from coordwire.codec import Message
from coordwire.designs.drafts.actions import AskOffsetManager, DraftPartition
from coordwire.designs.drafts.machine import Machine, Steps, Wait
from coordwire.designs.drafts.zookeeper_operations import GetData, OperationOutcome
from coordwire.designs.drafts.zookeeper_steps import write_nodes
from coordwire.dialects.zookeeper import Offset
from coordwire.enums import ErrorCode
from coordwire.errors import DecodeError
from coordwire.messages import OffsetCommitRequest, OffsetFetchRequest
from coordwire.messages.offset_commit import OffsetCommitRequestPartition, OffsetCommitRequestTopic
from coordwire.messages.offset_fetch import OffsetFetchRequestTopic

INVALID_OFFSET = -1
"""Where a partition begins of which the group has committed nothing: auto.offset.reset decides."""


@dataclass(frozen=True, slots=True, kw_only=True)
class OffsetSettings:
    """Settings of Kafka 0.8.2, with its names and defaults, in milliseconds. literal: as the releases have it
    where the page says more."""

    offsets_storage: Literal["zookeeper", "kafka"] = "zookeeper"
    dual_commit_enabled: bool = False
    offsets_channel_backoff_ms: int = 1_000
    offsets_channel_socket_timeout_ms: int = 10_000
    offsets_commit_max_retries: int = 5
    literal: bool = False

    @property
    def uses_kafka(self) -> bool:
        return self.offsets_storage == "kafka" or (self.dual_commit_enabled and not self.literal)

    @property
    def uses_zookeeper(self) -> bool:
        return self.offsets_storage == "zookeeper" or self.dual_commit_enabled


class GroupOffsets:
    """The offsets of a consumer's group. committed: what this consumer has committed, wherever it should.
    client_id: of the requests to the offset manager."""

    def __init__(
        self, machine: Machine, group_id: str, settings: OffsetSettings, *, client_id: str = ""
    ) -> None:
        self.settings = settings
        self.committed: dict[DraftPartition, int] = {}
        self._machine = machine
        self._group_id = group_id
        self._client_id = client_id
        self._written: dict[DraftPartition, int] = {}  # checkpointedZkOffsets
        self._asks = 0
        self._answers: dict[int, Message | None] = {}
        self._waits: set[int] = set()

    def answered(self, number: int, response: Message | None) -> None:
        """The offset manager's answer; None: there will be none, as its channel is lost."""
        if number in self._waits:
            self._answers[number] = response

    def begin(self, offsets: Mapping[DraftPartition, int]) -> None:
        """These partitions are read from here on; what was read need not be written again."""
        self._written |= offsets

    def commit(self, offsets: Mapping[DraftPartition, int], *, retries: int = 0) -> Steps:
        """commitOffsets: those that are known, and in ZooKeeper those that have changed."""
        known = {partition: offset for partition, offset in offsets.items() if offset >= 0}
        if self.settings.uses_kafka and known:
            known = yield from self._commit_to_kafka(known, retries)
        if self.settings.uses_zookeeper:
            changed = {
                partition: offset
                for partition, offset in known.items()
                if self._written.get(partition) != offset
            }
            yield from write_nodes(
                {self._path(partition): Offset(offset).build() for partition, offset in changed.items()}
            )
            self._written |= changed
        self.committed |= known

    def fetch(self, partitions: Iterable[DraftPartition]) -> Steps:
        """fetchOffsets: where to begin, or `INVALID_OFFSET`. Asks the offset manager until it answers."""
        names = list(partitions)
        offsets = dict.fromkeys(names, INVALID_OFFSET)
        if not names:
            return offsets
        if self.settings.uses_kafka:
            offsets = yield from self._fetch_from_kafka(names)
        if self.settings.uses_zookeeper:
            outcomes = yield tuple(GetData(self._path(partition)) for partition in names)
            for partition, outcome in zip(names, outcomes, strict=True):
                offsets[partition] = max(offsets[partition], _offset(outcome))
        return offsets

    # --- the offset manager ---

    def _commit_to_kafka(self, offsets: Mapping[DraftPartition, int], retries: int) -> Steps:
        """Gives those that were stored."""
        topics: dict[str, OffsetCommitRequestTopic] = {}
        for (topic, number), offset in offsets.items():
            entry = topics.setdefault(topic, OffsetCommitRequestTopic(name=topic))
            entry.partitions.append(
                OffsetCommitRequestPartition(
                    partition_index=int(number), committed_offset=offset, committed_metadata=""
                )
            )
        request = OffsetCommitRequest(
            group_id=self._group_id, generation_id_or_member_epoch=-1, member_id="",
            topics=list(topics.values()),
        )  # fmt: skip
        while True:
            response = yield from self._ask(request)
            errors = {
                DraftPartition(topic.name, str(partition.partition_index)): partition.error_code
                for topic in getattr(response, "topics", ())
                for partition in topic.partitions
            }
            stored = {name: offset for name, offset in offsets.items() if errors.get(name) == ErrorCode.NONE}
            large = sum(code == ErrorCode.OFFSET_METADATA_TOO_LARGE for code in errors.values())
            if len(stored) + large == len(offsets) or retries <= 0:
                return stored
            retries -= 1
            yield from self._back_off()

    def _fetch_from_kafka(self, partitions: list[DraftPartition]) -> Steps:
        topics: dict[str, OffsetFetchRequestTopic] = {}
        for topic, number in partitions:
            entry = topics.setdefault(topic, OffsetFetchRequestTopic(name=topic))
            entry.partition_indexes.append(int(number))
        request = OffsetFetchRequest(group_id=self._group_id, topics=list(topics.values()))
        while True:
            response = yield from self._ask(request)
            answers: dict[DraftPartition, Any] = {
                DraftPartition(topic.name, str(partition.partition_index)): partition
                for topic in getattr(response, "topics", ())
                for partition in topic.partitions
            }
            refused = {partition.error_code for partition in answers.values()} & _LATER
            if answers.keys() >= set(partitions) and not refused:
                return {partition: answers[partition].committed_offset for partition in partitions}
            yield from self._back_off()

    def _ask(self, request: Message) -> Steps:
        """Send a request to the offset manager; gives the answer, None if none comes in time."""
        self._asks += 1
        number, machine = self._asks, self._machine
        self._waits.add(number)
        machine.do(AskOffsetManager(number, request, self._client_id))
        until = machine.now + self.settings.offsets_channel_socket_timeout_ms
        while number not in self._answers and machine.now < until:
            yield Wait(until)
        self._waits.discard(number)
        return self._answers.pop(number, None)

    def _back_off(self) -> Steps:
        until = self._machine.now + self.settings.offsets_channel_backoff_ms
        while self._machine.now < until:
            yield Wait(until)

    def _path(self, partition: DraftPartition) -> str:
        return Offset.path(self._group_id, *partition)


_LATER = {
    ErrorCode.NOT_COORDINATOR,
    ErrorCode.COORDINATOR_LOAD_IN_PROGRESS,
    ErrorCode.COORDINATOR_NOT_AVAILABLE,
}


def _offset(outcome: OperationOutcome) -> int:
    try:
        return Offset.parse(outcome.data).offset if outcome.ok else INVALID_OFFSET
    except DecodeError:
        return INVALID_OFFSET
