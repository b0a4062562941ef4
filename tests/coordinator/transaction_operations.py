"""Transactions in a random history: offsets committed by producers, and markers that end them, or seem to."""

from __future__ import annotations

import random
from collections.abc import Callable
from typing import Any
from uuid import UUID

from coordwire.codec import Message
from coordwire.coordinator.releases import ReleaseRules
from coordwire.messages import TxnOffsetCommitRequest
from coordwire.messages.txn_offset_commit import TxnOffsetCommitRequestPartition, TxnOffsetCommitRequestTopic
from tests.coordinator.histories import Replayer

_GROUPS = ["g", "h", "offsets-only"]
_PRODUCERS = [11, 12, 13]


class TransactionOperations:
    """A part of the generator."""

    random: random.Random
    topic_names: list[str]
    most_partitions: int
    mixed: bool
    replayer: Replayer
    rules: ReleaseRules

    def begin_transactions(self) -> None:
        self._producers: dict[int, int] = dict.fromkeys(_PRODUCERS, 0)
        self._open: list[int] = []

    def transaction_kinds(self) -> list[tuple[Callable[[], None], float]]:
        return [(self._commit_in_transaction, 7), (self._end_transaction, 4), (self._fetch, 2)]

    # --- what the rest of the generator has ---

    def _send(self, message: Message, version: int) -> int:
        raise NotImplementedError

    def _step(self, step: str) -> None:
        raise NotImplementedError

    def _next_ticket(self) -> int:
        raise NotImplementedError

    def _fetch(self) -> None:
        raise NotImplementedError

    def _member(self) -> tuple[str, str, str | None, int] | None:
        """A client's group, member id, instance id and generation or epoch."""
        raise NotImplementedError

    # --- what producers do ---

    def _commit_in_transaction(self) -> None:
        version = self.random.randint(0, 6 if self.rules.transactional_offsets_have_topic_ids else 5)
        producer = self.random.choice(_PRODUCERS)
        request = TxnOffsetCommitRequest(
            transactional_id="tx", group_id=self.random.choice(_GROUPS), producer_id=producer,
            producer_epoch=self._producers[producer],
        )  # fmt: skip
        member = self._member() if self.random.random() < 0.6 else None
        if member is not None:
            request.group_id, member_id, instance_id, generation = member
            if version >= 3:
                request.member_id, request.group_instance_id = member_id, instance_id
                request.generation_id_or_member_epoch = generation
        for name in self.random.sample([*self.topic_names, "missing"], self.random.randint(1, 2)):
            request.topics.append(self._offsets(name, version))
        if self.random.random() < 0.03:
            request.topics.append(self._offsets(request.topics[0].name, version))
        self._spoil_commit(request, version)
        self._open.append(request.producer_id)
        self._send(request, version)

    def _offsets(self, name: str, version: int) -> TxnOffsetCommitRequestTopic:
        topic = TxnOffsetCommitRequestTopic(name=name)
        if version >= 6:
            by_name = {image.name: image.id for image in self.replayer.topics.values()}
            topic.topic_id = by_name.get(name, UUID(int=99))
        for index in self.random.sample(range(self.most_partitions), self.random.randint(1, 2)):
            metadata = self.random.choices(["", "ok", None, "much too long"], [5, 5, 1, 1])[0]
            partition = TxnOffsetCommitRequestPartition(
                partition_index=index, committed_offset=self.random.randint(0, 100),
                committed_metadata=metadata,
            )  # fmt: skip
            if version >= 2:
                partition.committed_leader_epoch = self.random.choice([-1, 0, 5])
            topic.partitions.append(partition)
        return topic

    def _spoil_commit(self, request: Any, version: int) -> None:
        """Make a share of the requests wrong."""
        spoilt: list[tuple[float, str, list[Any]]] = [
            (0.02, "group_id", ["", "nowhere", "g", "h"]),
            (0.02, "producer_id", [-1, 99, 11]),
            (0.02, "producer_epoch", [-1, 7]),
        ]
        if version >= 3:
            spoilt += [
                (0.03, "member_id", ["", "nobody"]),
                (0.04, "generation_id_or_member_epoch", [-1, -1, 0, 1, 7, 99]),
                (0.02, "group_instance_id", [None, "till-1", "nobody"]),
            ]
        for share, name, values in spoilt:
            if self.random.random() < share:
                setattr(request, name, self.random.choice(values))

    def _end_transaction(self) -> None:
        if self._open and self.random.random() < 0.9:
            producer = self.random.choice(self._open)
        else:
            producer = self.random.choice([*_PRODUCERS, 77, -1])
        epoch = self._producers.get(producer, 0)
        if self.random.random() < 0.05:
            epoch = self.random.choice([-1, 0, 3])
        elif producer in self._producers and self.random.random() < 0.2:
            epoch = self._producers[producer] = epoch + 1  # a new incarnation ends what the old one left
        ending = self.random.choice(["COMMIT", "COMMIT", "ABORT"])
        self._step(f"end {self._next_ticket()} {producer} {epoch} {self.random.randint(0, 2)} {ending}")
        if self.random.random() < 0.9:
            self._open = [open_producer for open_producer in self._open if open_producer != producer]
