"""The share coordinators of a cluster: a shard for each partition of `__share_group_state`.

Strategy: a request about several partitions is split among their shards, and the answers are put together. As
all nodes are in one process, group coordinators and share partitions ask here, not over the network. Rules: a
shard is made from its log when it is first needed; states of partitions without writes are written again,
and what no state needs any more is deleted, every five minutes.
"""

from __future__ import annotations

import dataclasses
import logging
from collections.abc import Callable, Iterator
from typing import Any
from uuid import UUID

from coordwire.broker.cluster.facts import ClusterFacts
from coordwire.broker.cluster.replication import Replication
from coordwire.broker.cluster.topics import ClusterPartition, ClusterTopic
from coordwire.broker.log.validation import RefusedRecords
from coordwire.codec import Message
from coordwire.codec.primitives import uuid_text
from coordwire.coordinator import Append
from coordwire.coordinator.releases import rules_of
from coordwire.coordinator.share_state import ShareStateConfig, ShareStateShard
from coordwire.coordinator.share_state.requests import OPERATIONS
from coordwire.enums import ErrorCode
from coordwire.errors import CoordwireError
from coordwire.logs import LogRecord, decode_log_record

_log = logging.getLogger("coordwire.broker")

_TIMER = "share-states"
_INTERVAL_MS = 300_000


class _Slot:
    """A shard, and the answers that it gave, by ticket."""

    __slots__ = ("answers", "partition", "shard")

    def __init__(self, shard: ShareStateShard, partition: ClusterPartition) -> None:
        self.shard = shard
        self.partition = partition
        self.answers: dict[int, Message] = {}


class ShareStateCoordinators:
    """The shards that have been needed so far. state_topic: makes or finds their topic."""

    def __init__(
        self, facts: ClusterFacts, replication: Replication, state_topic: Callable[[], ClusterTopic]
    ) -> None:
        self._facts = facts
        self._replication = replication
        self._topic = state_topic
        self._slots: dict[int, _Slot] = {}

    # --- which shard ---

    def partition_of(self, group_id: str, topic_id: UUID, partition: int) -> int:
        """The number of the partition that a share partition's state is in."""
        return self._topic().partition_for(f"{group_id}:{uuid_text(topic_id)}:{partition}")

    def coordinator_of(self, key: str) -> int:
        """The id of the node that coordinates "group:topic id:partition"."""
        topic = self._topic()
        return topic.partitions[topic.partition_for(key)].leader

    def _slot(self, index: int) -> _Slot:
        slot = self._slots.get(index)
        if slot is None:
            facts = self._facts
            partition = self._topic().partitions[index]
            config = ShareStateConfig(release=facts.config.coordinator.release)
            shard = ShareStateShard(now=facts.clock(), config=config)
            shard.set_topics(facts.image())
            try:
                shard.load(_records(partition), end_offset=partition.log.end_offset)
            except CoordwireError as error:
                _log.error("%s-%d cannot be loaded: %s", partition.topic, index, error)
            slot = self._slots[index] = _Slot(shard, partition)
            self._keep_time()
        return slot

    # --- requests ---

    def ask(self, request: Any, node: int | None = None) -> Message:
        """The answer to a request. node: where it came to; None for the cluster's own, which goes to the
        right one."""
        operation = OPERATIONS[type(request)]
        parts: dict[int, dict[UUID, list[Any]]] = {}
        for topic in request.topics:
            for partition in topic.partitions:
                index = self.partition_of(request.group_id, topic.topic_id, partition.partition)
                parts.setdefault(index, {}).setdefault(topic.topic_id, []).append(partition)
        if node is None and len(parts) == 1:
            return self._submit(next(iter(parts)), request)
        data = type(request.topics[0]) if request.topics else None
        results: dict[UUID, list[Any]] = {}
        for index, topics in parts.items():
            assert data is not None
            states = [data(topic_id=topic_id, partitions=part) for topic_id, part in topics.items()]
            if node is not None and self._topic().partitions[index].leader != node:
                code = int(ErrorCode.NOT_COORDINATOR)
                rules = rules_of(self._facts.config.coordinator.release)
                for topic_id, part in topics.items():
                    results.setdefault(topic_id, []).extend(
                        operation.partition_result(
                            partition=partition.partition,
                            error_code=code,
                            error_message=operation.failure(code, rules),
                        )
                        for partition in part
                    )
                continue
            answer: Any = self._submit(index, dataclasses.replace(request, topics=states))
            for result in answer.results:
                results.setdefault(result.topic_id, []).extend(result.partitions)
        return operation.response(
            results=[
                operation.result(topic_id=topic_id, partitions=part) for topic_id, part in results.items()
            ]
        )

    def _submit(self, index: int, request: Message) -> Message:
        slot = self._slot(index)
        ticket = slot.shard.handle(request, now=self._facts.clock())
        self._pump(slot)
        return slot.answers.pop(ticket)  # appends are confirmed at once

    def _pump(self, slot: _Slot) -> None:
        """Carry out the effects of a shard: append, answer."""
        shard = slot.shard
        for effect in shard.effects():
            if not isinstance(effect, Append):
                slot.answers[effect.ticket] = effect.response
                continue
            if code := self._replication.append(slot.partition, effect):
                shard.failed(effect.number, code)
            else:
                shard.appended(effect.number)

    # --- time, topics ---

    def _keep_time(self) -> None:
        timers = self._facts.timers
        if not timers.is_set(_TIMER):
            timers.set(_TIMER, self._facts.clock() + _INTERVAL_MS, self._clean)

    def _clean(self) -> None:
        """Write cold states again, and delete the records that none needs."""
        for slot in self._slots.values():
            slot.shard.advance(self._facts.clock())
            slot.shard.snapshot_cold_partitions()
            self._pump(slot)
            before = slot.shard.redundant_before
            if before is not None:
                try:
                    slot.partition.log.delete_before(before)
                except RefusedRecords as refusal:
                    _log.warning("%s-%d: %s", slot.partition.topic, slot.partition.index, refusal)
        self._keep_time()

    def set_topics(self) -> None:
        """Give the shards the cluster's topics, which have changed."""
        if self._slots:
            image = self._facts.image()
            for slot in self._slots.values():
                slot.shard.set_topics(image)
                self._pump(slot)

    def unload(self, index: int) -> None:
        """Another node leads this partition: the log is read again."""
        self._slots.pop(index, None)

    def close(self) -> None:
        """Drop all shards."""
        self._slots.clear()


def _records(partition: ClusterPartition) -> Iterator[tuple[int, LogRecord]]:
    for batch in partition.log.batches():
        if not batch.is_control:
            for record in batch:
                yield (
                    record.offset,
                    decode_log_record("share_group_state", record.key, record.value, strict=False),
                )
