"""The share partitions of a cluster: the records that are in flight in share groups, and who waits for more.

Strategy: a share partition is made from the share coordinator's state when it is first fetched, and dropped
when its partition gets another leader, or its group's state is gone. Its locks end by the cluster's clock.
Rules: what a share partition writes goes to the share coordinator at once, so that outcomes are there when a
call returns.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import TypeVar
from uuid import UUID

from coordwire.broker.cluster.dead_letters import DeadLetterQueues
from coordwire.broker.cluster.facts import ClusterFacts
from coordwire.broker.cluster.share_sessions import SessionKey, ShareSessions
from coordwire.broker.cluster.share_state_coordinators import ShareStateCoordinators
from coordwire.broker.cluster.topics import ClusterPartition
from coordwire.broker.log.validation import RefusedRecords
from coordwire.coordinator.share_partition import (
    AcknowledgementBatch,
    AcknowledgementOutcome,
    DeadLetters,
    SharePartition,
    SharePartitionConfig,
    StateBatch,
    StateWrite,
    translated_error,
)
from coordwire.enums import ErrorCode
from coordwire.errors import Malformed
from coordwire.messages import (
    ReadShareGroupStateRequest,
    ReadShareGroupStateResponse,
    WriteShareGroupStateRequest,
    WriteShareGroupStateResponse,
)
from coordwire.messages import read_share_group_state as reading
from coordwire.messages import write_share_group_state as writing

_UNKNOWN_START = -1
_ENDING = frozenset(
    {
        ErrorCode.NOT_LEADER_OR_FOLLOWER,
        ErrorCode.FENCED_STATE_EPOCH,
        ErrorCode.GROUP_ID_NOT_FOUND,
        ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
    }
)
"""Errors after which a share partition is read again."""


K = TypeVar("K")
P = TypeVar("P")


class SharePartitionFailed(Exception):
    """A share partition cannot be had."""

    def __init__(self, code: int, message: str | None = None) -> None:
        super().__init__(message)
        self.code = code
        self.message = message


class SharePartitionEntry:
    """A share partition, its partition, and the fetches that wait for it.

    listeners: called after records became available, or room did.
    """

    __slots__ = ("group_id", "index", "listeners", "outcomes", "partition", "shared", "topic_id")

    def __init__(
        self, group_id: str, topic_id: UUID, partition: ClusterPartition, shared: SharePartition
    ) -> None:
        self.group_id = group_id
        self.topic_id = topic_id
        self.index = partition.index
        self.partition = partition
        self.shared = shared
        self.listeners: dict[object, Callable[[], None]] = {}
        self.outcomes: dict[int, AcknowledgementOutcome] = {}

    @property
    def place(self) -> tuple[UUID, int]:
        return self.topic_id, self.index

    @property
    def timer(self) -> tuple[str, ...]:
        return "share-lock", self.group_id, str(self.topic_id), str(self.index)


class SharePartitions:
    """The share partitions and sessions that there are. states: the share coordinators."""

    def __init__(
        self, facts: ClusterFacts, states: ShareStateCoordinators, dead_letters: DeadLetterQueues
    ) -> None:
        self._facts = facts
        self._states = states
        self._dead_letters = dead_letters
        self._entries: dict[str, dict[tuple[UUID, int], SharePartitionEntry]] = {}
        self._readers: dict[ClusterPartition, dict[str, SharePartitionEntry]] = {}
        """By partition, the entries of the groups that read it."""
        self.sessions = {node: ShareSessions(facts.config.share_sessions) for node in facts.nodes}

    # --- share partitions ---

    def find(self, group_id: str, topic_id: UUID, index: int) -> SharePartitionEntry | None:
        place = topic_id, index
        entry = self._entries.get(group_id, {}).get(place)
        if entry is not None:
            self._advance(entry)
        return self._entries.get(group_id, {}).get(place)

    def find_or_load(self, group_id: str, topic_id: UUID, partition: ClusterPartition) -> SharePartitionEntry:
        """The share partition of a group; raises `SharePartitionFailed`."""
        known = self.find(group_id, topic_id, partition.index)
        if known is not None:
            return known
        now = self._facts.clock()
        config = replace(self.config_of(group_id), resumes_archiving=self._dead_letters.are_known)
        shared = SharePartition(config, now=now)
        request = ReadShareGroupStateRequest(
            group_id=group_id,
            topics=[
                reading.ReadStateData(
                    topic_id=topic_id,
                    partitions=[
                        reading.PartitionData(partition=partition.index, leader_epoch=partition.leader_epoch)
                    ],
                )
            ],
        )
        answer = self._states.ask(request)
        assert isinstance(answer, ReadShareGroupStateResponse)
        if not answer.results:  # of a group without a name
            raise SharePartitionFailed(int(ErrorCode.UNKNOWN_SERVER_ERROR))
        state = answer.results[0].partitions[0]
        if state.error_code:
            raise SharePartitionFailed(translated_error(state.error_code), state.error_message)
        start = state.start_offset
        if start == _UNKNOWN_START:
            start = self._reset_offset(group_id, partition)
        batches = (
            StateBatch(batch.first_offset, batch.last_offset, batch.delivery_count, batch.delivery_state)
            for batch in state.state_batches
        )
        try:
            shared.load(start, state.state_epoch, batches)
        except Malformed as error:
            raise SharePartitionFailed(int(ErrorCode.UNKNOWN_SERVER_ERROR), str(error)) from None
        entry = SharePartitionEntry(group_id, topic_id, partition, shared)
        self._entries.setdefault(group_id, {})[entry.place] = entry
        self._readers.setdefault(partition, {})[group_id] = entry
        self.settle(entry)
        return entry

    def config_of(self, group_id: str) -> SharePartitionConfig:
        """The settings of a group's share partitions."""
        settings = self._facts.group_settings.get(group_id)
        if settings is None:
            return self._facts.config.share_partitions
        return SharePartitionConfig(
            lock_duration_ms=settings.number("share.record.lock.duration.ms"),
            delivery_count_limit=settings.number("share.delivery.count.limit"),
            max_record_locks=settings.number("share.partition.max.record.locks"),
            renews=settings["share.renew.acknowledge.enable"] == "true",
            has_dead_letters=self._dead_letters.is_wanted(group_id),
        )

    def reads_committed(self, group_id: str) -> bool:
        """Whether a group reads committed records only."""
        settings = self._facts.settings_of_group(group_id)
        return settings["share.isolation.level"] == "read_committed"

    def _reset_offset(self, group_id: str, partition: ClusterPartition) -> int:
        """The offset at which a group begins that has none."""
        log = partition.log
        strategy = self._facts.settings_of_group(group_id)["share.auto.offset.reset"]
        if strategy == "earliest":
            return log.start_offset
        if strategy.startswith("by_duration:"):
            since = self._facts.clock() - duration_ms(strategy.removeprefix("by_duration:"))
            try:
                place = log.find_time(since, log.high_watermark)
            except RefusedRecords as refusal:
                raise SharePartitionFailed(refusal.code) from None
            if place is None:
                raise SharePartitionFailed(int(ErrorCode.OFFSET_NOT_AVAILABLE))
            return place.offset
        return log.high_watermark

    def configure(self, group_id: str) -> None:
        """A group's settings have changed."""
        for entry in self._entries.get(group_id, {}).values():
            entry.shared.config = self.config_of(group_id)

    # --- what members do ---

    def acknowledge(
        self, entry: SharePartitionEntry, member_id: str, batches: Sequence[AcknowledgementBatch]
    ) -> tuple[int, str | None]:
        """Acknowledge records; an error code and its text."""
        return self._outcome(entry, entry.shared.acknowledge(member_id, batches))

    def release(self, entry: SharePartitionEntry, member_id: str) -> None:
        """Release all records of a member."""
        self._outcome(entry, entry.shared.release(member_id))

    def _outcome(self, entry: SharePartitionEntry, ticket: int) -> tuple[int, str | None]:
        self.settle(entry)
        outcome = entry.outcomes.pop(ticket)
        if outcome.error_code in _ENDING:
            self._drop(entry)
        else:
            self._notify(entry)
        return outcome.error_code, outcome.message

    def settle(self, entry: SharePartitionEntry) -> None:
        """Write what a share partition wants written, dead letters too, and set its timer."""
        for effect in entry.shared.effects():
            if isinstance(effect, StateWrite):
                code, message = self._write(entry, effect)
                entry.shared.written(effect.number, code, message)
            elif isinstance(effect, DeadLetters):
                self._dead_letters.write(entry.group_id, entry.partition, effect)
                entry.shared.archived(effect.number)
            else:
                entry.outcomes[effect.ticket] = effect
        due = entry.shared.next_deadline()
        timers = self._facts.timers
        if due is None:
            timers.cancel(entry.timer)
        elif not timers.renew(entry.timer, due):
            timers.set(entry.timer, due, lambda: self._expire(entry))

    def _write(self, entry: SharePartitionEntry, write: StateWrite) -> tuple[int, str | None]:
        request = WriteShareGroupStateRequest(
            group_id=entry.group_id,
            topics=[
                writing.WriteStateData(
                    topic_id=entry.topic_id,
                    partitions=[
                        writing.PartitionData(
                            partition=entry.index,
                            state_epoch=write.state_epoch,
                            leader_epoch=entry.partition.leader_epoch,
                            start_offset=write.start_offset,
                            delivery_complete_count=write.delivery_complete_count,
                            state_batches=[
                                writing.StateBatch(
                                    first_offset=batch.first_offset, last_offset=batch.last_offset,
                                    delivery_state=batch.delivery_state, delivery_count=batch.delivery_count,
                                )
                                for batch in write.batches
                            ],
                        )
                    ],
                )
            ],
        )  # fmt: skip
        answer = self._states.ask(request)
        assert isinstance(answer, WriteShareGroupStateResponse)
        result = answer.results[0].partitions[0]
        return result.error_code, result.error_message

    def _expire(self, entry: SharePartitionEntry) -> None:
        self._advance(entry)
        self._notify(entry)

    def _advance(self, entry: SharePartitionEntry) -> None:
        """Let a share partition come to the cluster's time."""
        is_ready = False
        while not is_ready:
            is_ready = entry.shared.advance(self._facts.clock())
            if not is_ready:
                self.settle(entry)
        self.settle(entry)

    def _notify(self, entry: SharePartitionEntry) -> None:
        for listener in list(entry.listeners.values()):
            listener()

    # --- sessions ---

    def release_session(self, node: int, key: SessionKey) -> bool:
        """End a session, and release its records; whether there was one."""
        session = self.sessions[node].remove(key)
        if session is None:
            return False
        group_id, member_id = key
        for topic_id, index in session.places():
            entry = self.find(group_id, topic_id, index)
            if entry is not None:
                self.release(entry, member_id)
        return True

    def disconnected(self, node: int, owner: object) -> None:
        """A connection ended, and with it the sessions that it began. The share partitions of a group
        without sessions are loaded anew when they are needed, as their positions may be changed meanwhile."""
        sessions = self.sessions.get(node)
        if sessions is None:
            return
        keys = sessions.of_owner(owner)
        for key in keys:
            self.release_session(node, key)
        latest = sessions.latest_group(owner)
        for group_id in {group_id for group_id, _ in keys} | ({latest} if latest is not None else set()):
            if not sessions.has_members(group_id):
                for entry in list(self._entries.get(group_id, {}).values()):
                    if entry.partition.leader == node:
                        self._drop(entry)

    # --- the end ---

    def forget(self, partition: ClusterPartition) -> None:
        """A partition has another leader, or is gone."""
        for entry in list(self._readers.get(partition, {}).values()):
            self._drop(entry)

    def _drop(self, entry: SharePartitionEntry) -> None:
        _discard(self._entries, entry.group_id, entry.place)
        _discard(self._readers, entry.partition, entry.group_id)
        self._facts.timers.cancel(entry.timer)
        self._notify(entry)

    def close(self) -> None:
        """Drop all share partitions; what waits gets no answer."""
        self._entries.clear()
        self._readers.clear()


def _discard(tables: dict[K, dict[P, SharePartitionEntry]], outer: K, inner: P) -> None:
    """Remove an entry from a table of tables, and a table that becomes empty."""
    table = tables.get(outer)
    if table is not None:
        table.pop(inner, None)
        if not table:
            del tables[outer]


def duration_ms(text: str) -> int:
    """The milliseconds of a duration of ISO 8601, as "PT1H30M" or "P2D"; 0 for one that cannot be read."""
    total, number = 0.0, ""
    in_time = False
    for character in text.removeprefix("P"):
        if character == "T":
            in_time = True
        elif character.isdigit() or character == ".":
            number += character
        else:
            seconds = {"D": 86_400, "H": 3_600, "M": 60, "S": 1}.get(character, 0)
            if not number or (character == "D") is in_time:
                return 0
            total += float(number) * seconds
            number = ""
    return int(total * 1_000)
