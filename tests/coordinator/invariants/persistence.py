"""Invariants of the log and of offsets: P1-P5, P7."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from coordwire.coordinator import Append, Shard, ShardStatus
from coordwire.coordinator.log_entries import LogEntry, TransactionMarker
from coordwire.coordinator.model.classic_group import ClassicGroupModel, GroupState
from coordwire.coordinator.model.consumer_group import ConsumerGroupModel
from coordwire.coordinator.model.embedded_protocol import subscribed_topics
from coordwire.coordinator.refusal import OperationRefused
from coordwire.enums import ErrorCode
from coordwire.logs import LogRecord, decode_log_record, encode_log_record
from coordwire.messages import (
    ConsumerGroupHeartbeatRequest,
    ConsumerGroupMetadataKey,
    DeleteGroupsRequest,
    GroupMetadataKey,
    HeartbeatRequest,
    JoinGroupRequest,
    OffsetCommitKey,
    OffsetCommitRequest,
    OffsetDeleteRequest,
    OffsetFetchRequest,
    SyncGroupRequest,
    TxnOffsetCommitRequest,
)
from tests.coordinator.invariants.watch import Call, Checker, durable

_TOPIC_IDS = 10
_SAMPLE = 60
"""One of so many calls is compared with a replay of the log."""

_SHORT = 400
"""Records of a log that is short enough to be replayed always after a failure."""


class DurableCommits(Checker):
    """P1: an answered commit is in the log; and P2 with it: an answer leaves after its append."""

    name = "P1"

    def __init__(self, shard: Any) -> None:
        super().__init__(shard)
        self._known: dict[tuple[str, str, int], set[int]] = {}

    def loaded(self) -> None:
        self._known.clear()
        for entry in self.shard.log:
            record = entry.record if isinstance(entry, LogEntry) else entry
            if isinstance(record, LogRecord):
                self._note(record)

    def confirmed(self, append: Append) -> None:
        for record in append.records:
            self._note(record)

    def _note(self, record: LogRecord) -> None:
        key, value = record.key, record.value
        if isinstance(key, OffsetCommitKey) and value is not None:
            known = self._known.setdefault((key.group, key.topic, key.partition), set())
            known.add(value.offset)  # type: ignore[union-attr]

    def answered(self, call: Call, response: Any) -> None:
        request = call.request
        if not isinstance(request, OffsetCommitRequest | TxnOffsetCommitRequest):
            return
        refused = {
            (topic.name or str(topic.topic_id), partition.partition_index)
            if isinstance(request, OffsetCommitRequest)
            else (topic.name, partition.partition_index)
            for topic in response.topics
            for partition in topic.partitions
            if partition.error_code
        }
        topics = self.shard.state.topics
        for topic in request.topics:
            name = topic.name
            if call.version >= _TOPIC_IDS and isinstance(request, OffsetCommitRequest):
                image = topics.find_id(topic.topic_id)
                if image is None:
                    continue
                name = image.name
            for partition in topic.partitions:
                label = topic.name or str(getattr(topic, "topic_id", ""))
                if (label, partition.partition_index) in refused or (
                    name,
                    partition.partition_index,
                ) in refused:
                    continue
                known = self._known.get((request.group_id, name, partition.partition_index), ())
                if partition.committed_offset not in known:
                    self.wrong(
                        f"{request.group_id} {name} {partition.partition_index} is answered, not in the log"
                    )


class ReplayedState(Checker):
    """P5: the log's replay gives the state, at each prefix of whole writes, compacted too; and P2: after a
    failed append as well. A classic group's rebalance is in memory alone, so only Empty and Stable are
    compared.

    Kafka's exceptions: an empty consumer group whose place a refused JoinGroup took is gone in memory
    alone, so that another one of its name begins with the first epoch; and of several SyncGroups of a
    leader on their way, the members get the first, the log has the last."""

    name = "P5"

    def __init__(self, shard: Any) -> None:
        super().__init__(shard)
        self._due = False
        self._twice: set[tuple[str, int]] = set()
        self._logged: set[str] = set()
        self._forgotten: dict[str, ConsumerGroupModel] = {}
        self._consumers: dict[str, ConsumerGroupModel] = {}

    def loaded(self) -> None:
        self._forgotten.clear()
        self._consumers = {
            group.group_id: group
            for group in self.shard.all_groups()
            if isinstance(group, ConsumerGroupModel)
        }
        self._logged = set(self._consumers)

    def _look_for_forgotten(self) -> None:
        """Groups that are in the log, without a tombstone, and were replaced in memory."""
        groups = self.shard.state.groups
        for group_id, group in self._consumers.items():
            if groups.get(group_id) is not group and group_id in self._logged:
                self._forgotten.setdefault(group_id, group)
        for group_id, group in list(self._forgotten.items()):
            if groups.get(group_id) is group or group_id not in self._logged:
                del self._forgotten[group_id]
        self._consumers = {
            group.group_id: group
            for group in self.shard.all_groups()
            if isinstance(group, ConsumerGroupModel)
        }

    def wrote(self, append: Append, call: Call | None) -> None:
        for record in append.records:
            if isinstance(record.key, ConsumerGroupMetadataKey):
                if record.value is None:
                    self._logged.discard(record.key.group_id)
                else:
                    self._logged.add(record.key.group_id)
        if call is None or not isinstance(call.request, SyncGroupRequest):
            return
        earlier = [pending for pending in self.shard.pending if pending is not append]
        if any(isinstance(record.key, GroupMetadataKey) for pending in earlier for record in pending.records):
            self._twice.add((call.request.group_id, call.request.generation_id))

    def reverted(self) -> None:
        self._due = len(self.shard.log) < _SHORT

    def settled(self) -> None:
        self._look_for_forgotten()
        if not self.shard.is_settled or self.shard.status is not ShardStatus.ACTIVE:
            return
        if self._due or not self.shard.coin.randrange(_SAMPLE + len(self.shard.log) // 4):
            name = "P2" if self._due else None
            self._due = False
            self.compare(name)

    def compare(self, name: str | None = None) -> None:
        state = written_state(self.shard)
        for log in (self.shard.log, compacted(self.shard.log)):
            copy = self.shard.spawn()
            copy.load([through_bytes(entry) for entry in log], now=copy.now)
            replayed = written_state(copy)
            for group in self.shard.all_groups():
                if not isinstance(group, ClassicGroupModel):
                    continue
                if group.state is not GroupState.STABLE or (group.group_id, group.generation) in self._twice:
                    replayed.pop(group.group_id, None)
                    state.pop(group.group_id, None)
            for group_id in self._forgotten:
                replayed.pop(group_id, None)
                state.pop(group_id, None)
            for group in copy.groups.values():
                has_ended = group.group_id not in self.shard.state.groups
                if has_ended and isinstance(group, ConsumerGroupModel) and group.is_empty:
                    replayed.pop(group.group_id, None)
            if replayed != state:
                differences = {key: state.get(key) for key in state if state[key] != replayed.get(key)}
                other = {key: replayed[key] for key in replayed if state.get(key) != replayed[key]}
                self.wrong(f"in memory {differences}, replayed {other}", name)


def through_bytes(entry: LogRecord | LogEntry) -> LogRecord | LogEntry:
    record = entry.record if isinstance(entry, LogEntry) else entry
    if isinstance(record, TransactionMarker):
        return entry
    key, value = encode_log_record(record)
    assert key is not None
    read = decode_log_record("consumer_offsets", key, value)
    if isinstance(entry, LogEntry):
        return LogEntry(offset=entry.offset, record=read, producer_id=entry.producer_id)
    return read


def compacted(log: Iterable[LogRecord | LogEntry]) -> list[LogRecord | LogEntry]:
    """The last record of each key, without tombstones. What belongs to a transaction stays as it is."""
    log = list(log)
    if any(isinstance(entry, LogEntry) and entry.producer_id != -1 for entry in log):
        return log
    last: dict[bytes, LogRecord | LogEntry] = {}
    for entry in log:
        record = entry.record if isinstance(entry, LogEntry) else entry
        assert isinstance(record, LogRecord)
        key, value = encode_log_record(record)
        assert key is not None
        last.pop(key, None)
        if value is not None:
            last[key] = entry
    return list(last.values())


def written_state(shard: Shard) -> dict[Any, Any]:
    """What of a shard's state is in its log."""
    state = shard._state
    written: dict[Any, Any] = {}
    for group in state.groups.values():
        if isinstance(group, ConsumerGroupModel):
            written[group.group_id] = (
                group.epoch, group.assignment_epoch, group.assigned_at, group.metadata_hash,
                {member.member_id: _member(member) for member in group.members.values()},
                {name: _sets(group.target(name)) for name in group.targets if group.target(name)},
                dict(group.owners.items()), dict(group.static_members.items()),
                {name: resolved.topics for name, resolved in group.resolved.items()},
            )  # fmt: skip
        elif isinstance(group, ClassicGroupModel) and group.state is GroupState.STABLE:
            written[group.group_id] = (
                group.generation, group.protocol, group.leader, group.protocol_type,
                {
                    member.member_id: (member.instance_id, member.assignment, member.session_timeout_ms)
                    for member in group.members.values()
                },
            )  # fmt: skip
    for group_id, offsets in state.offsets.groups.items():
        for (topic, partition), name in offsets.items():
            written[group_id, topic, partition] = (
                name.offset,
                name.metadata,
                name.committed_at,
                name.expires_at,
            )
    return written


def _member(member: Any) -> tuple[Any, ...]:
    return (
        member.epoch, member.previous_epoch, member.state, member.instance_id, member.topics,
        member.regex or "", member.assignor, _sets(member.owned), _sets(member.revoking), member.classic,
        member.rebalance_timeout_ms,
    )  # fmt: skip


def _sets(partitions: Any) -> dict[Any, Any]:
    return {
        topic: dict(indexes) if isinstance(indexes, dict) else set(indexes)
        for topic, indexes in partitions.items()
        if indexes
    }


class PendingTransactions(Checker):
    """P3: what a transaction commits is invisible until its marker, and RequireStable answers 88 until
    then."""

    name = "P3"

    def __init__(self, shard: Any) -> None:
        super().__init__(shard)
        self._pending: dict[tuple[str, str, int], dict[int, int]] = {}

    def loaded(self) -> None:
        self._pending.clear()
        for entry in self.shard.log:
            if isinstance(entry, LogEntry):
                self._note(entry)

    unloaded = loaded

    def confirmed(self, append: Append) -> None:
        for entry in durable(append):
            self._note(entry)

    def _note(self, entry: LogEntry) -> None:
        record = entry.record
        if isinstance(record, TransactionMarker):
            for pending in self._pending.values():
                pending.pop(entry.producer_id, None)
        elif isinstance(record.key, OffsetCommitKey):
            key = record.key.group, record.key.topic, record.key.partition
            if entry.producer_id != -1 and record.value is not None:
                self._pending.setdefault(key, {})[entry.producer_id] = record.value.offset  # type: ignore[union-attr]
            elif record.value is None and entry.producer_id == -1:
                self._pending.pop(key, None)

    def answered(self, call: Call, response: Any) -> None:
        request = call.request
        if (
            not isinstance(request, OffsetFetchRequest)
            or call.version >= _TOPIC_IDS
            or not self.shard.is_settled
        ):
            return
        if call.now != self.shard.now:
            return
        groups = [(group.group_id, group) for group in response.groups] or [(request.group_id, response)]
        for group_id, group in groups:
            for topic in group.topics:
                for partition in topic.partitions:
                    pending = self._pending.get((group_id, topic.name, partition.partition_index))
                    if (
                        pending
                        and request.require_stable
                        and not partition.error_code
                        and not group.error_code
                    ):
                        self.wrong(f"{group_id} {topic.name} {partition.partition_index} is read as stable")


class Expiry(Checker):
    """P4: expiry removes no offset of a topic that the group subscribes to, nor one with a pending commit.

    A request that waited for the log (DeleteGroups, OffsetDelete) may remove any when its turn comes."""

    name = "P4"

    def __init__(self, shard: Any) -> None:
        super().__init__(shard)
        self._names: set[str] = set()
        self._open: set[tuple[str, str, int]] = set()

    def moving(self) -> None:
        self._names = set(self.shard.state.topics.names)
        pending = self.shard.state.pending_offsets
        self._open = {(group_id, *partition) for group_id, partition, _ in pending.all_offsets()}

    def wrote(self, append: Append, call: Call | None) -> None:
        if call is not None:
            return
        deleted_topics = self._names - set(self.shard.state.topics.names)
        deleted = {name for call in self.shard.open_calls.values() for name in _deletes(call.request)}
        for record in append.records:
            key = record.key
            if (
                not isinstance(key, OffsetCommitKey)
                or record.value is not None
                or key.topic in deleted_topics
            ):
                continue
            if key.group in deleted:
                continue
            if (key.group, key.topic, key.partition) in self._open:
                self.wrong(f"{key.group} loses an offset of {key.topic} that a transaction still commits")
            group = self.shard.state.groups.get(key.group)
            if group is not None and key.topic in subscribed(group) and key.topic in self._names:
                self.wrong(f"{key.group} subscribes to {key.topic} and loses its offset")


def _deletes(request: Any) -> Iterable[str]:
    """The groups whose offsets a request removes."""
    if isinstance(request, DeleteGroupsRequest):
        return list(request.groups_names)
    return [request.group_id] if isinstance(request, OffsetDeleteRequest) else []


def subscribed(group: Any) -> set[str]:
    """What a group with members subscribes to, from what they said."""
    if isinstance(group, ConsumerGroupModel):
        topics = set()
        for member in group.members.values():
            resolved = group.resolved.get(member.regex) if member.regex else None
            topics |= {*member.topics, *(() if resolved is None else resolved.topics)}
        return topics
    assert isinstance(group, ClassicGroupModel)
    if group.state is not GroupState.STABLE or not group.is_consumer:
        return set()
    try:
        return set(
            subscribed_topics(
                (member.metadata(group.protocol) for member in group.members.values()),
                impossible_is_malformed=False,
            )
            or ()
        )
    except OperationRefused:
        return set()


class Loading(Checker):
    """P7: while the log is read a request gets COORDINATOR_LOAD_IN_PROGRESS, without a partition
    NOT_COORDINATOR; and no old timer writes into the next epoch."""

    name = "P7"

    _KINDS = (
        JoinGroupRequest, SyncGroupRequest, OffsetCommitRequest, ConsumerGroupHeartbeatRequest,
        HeartbeatRequest,
    )  # fmt: skip

    def answered(self, call: Call, response: Any) -> None:
        if call.status is ShardStatus.ACTIVE or not isinstance(call.request, self._KINDS):
            return
        expected = ErrorCode.NOT_COORDINATOR
        if call.status is ShardStatus.LOADING:
            expected = ErrorCode.COORDINATOR_LOAD_IN_PROGRESS
        code = getattr(response, "error_code", None)
        codes = {code} if code is not None else {
            partition.error_code for topic in response.topics for partition in topic.partitions
        }  # fmt: skip
        if isinstance(call.request, HeartbeatRequest) and expected is ErrorCode.COORDINATOR_LOAD_IN_PROGRESS:
            expected = ErrorCode.NONE
        if ErrorCode.NONE in codes and expected is not ErrorCode.NONE:
            self.wrong(f"{type(call.request).__name__} is served with {codes} while {call.status}")

    def settled(self) -> None:
        if self.shard.status is not ShardStatus.ACTIVE and self.shard.pending:
            self.wrong("a shard without a partition writes")


PERSISTENCE = [DurableCommits, ReplayedState, PendingTransactions, Expiry, Loading]
