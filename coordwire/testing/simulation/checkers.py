"""What must hold in every simulated world, and how a user adds to it.

    UnprocessedRecord    no record below a committed offset is unprocessed, once `world.processed` is used
    FallingOffset        a committed offset does not fall
    TwoOwners            one member has a partition in a generation, or epoch
    NoProgress           after faults, a group with members goes on in partitions in which it has committed
    AbortedRecord        no record is processed whose transaction was aborted, or has not ended
    SplitTransaction     a transaction ends in each of its partitions as its coordinator has decided
    LeftBehind           a process that ends by itself, or the test, leaves no task and no connection

Strategy: `Observed` reads the logs of the broker, as each record is appended; checkers get its reports, and
ask it. What a checker reports is a `Violation`, with which the run ends. Rules: checkers judge what the
broker has in its logs and what processes did, not what clients report.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from functools import partial
from typing import TYPE_CHECKING, Any, NamedTuple

from coordwire.broker.cluster.topics import TRANSACTIONS_TOPIC, ClusterPartition
from coordwire.coordinator.log_entries import TransactionMarker, log_entries
from coordwire.coordinator.model.embedded_protocol import MalformedProtocol, read_named_assignment
from coordwire.enums.numbers import TransactionStatus
from coordwire.logs import decode_log_record
from coordwire.messages.classic_group_records import GroupMetadataKey, GroupMetadataValue
from coordwire.messages.consumer_group_records import (
    ConsumerGroupCurrentMemberAssignmentKey,
    ConsumerGroupCurrentMemberAssignmentValue,
    ConsumerGroupMemberMetadataValue,
)
from coordwire.messages.offset_records import OffsetCommitKey, OffsetCommitValue
from coordwire.messages.transaction_log import TransactionLogValue
from coordwire.records import ControlType, RecordBatch, batches

if TYPE_CHECKING:
    from coordwire.testing.simulation.network import Network
    from coordwire.testing.simulation.world import SimulatedWorld

__all__ = [
    "CHECKERS",
    "AbortedRecord",
    "Checker",
    "FallingOffset",
    "LeftBehind",
    "NoProgress",
    "Observed",
    "PartitionPlace",
    "SplitTransaction",
    "TwoOwners",
    "UnprocessedRecord",
    "Violation",
]

_ALL = 1 << 40


class PartitionPlace(NamedTuple):
    """A partition of a topic."""

    topic: str
    partition: int

    def __str__(self) -> str:
        return f"{self.topic}-{self.partition}"


class Violation(AssertionError):
    """Something that must hold did not. checker: the name of the class that found it."""

    def __init__(self, checker: str, reason: str) -> None:
        super().__init__(reason)
        self.checker = checker


class Checker:
    """A checker of one world; subclasses override what they need.

    >>> from coordwire.testing.simulation import Checker, Simulation
    >>> class Quick(Checker):
    ...     def each_second(self):
    ...         if self.world.now > 5:
    ...             self.fail("it took more than 5 s")
    >>> async def test(kafka, world):
    ...     await world.until(lambda: world.now > 8)
    >>> Simulation(test=test, checkers=(Quick,)).run(7).failure
    Violation('it took more than 5 s')
    """

    def __init__(self, world: SimulatedWorld) -> None:
        self.world = world

    def __repr__(self) -> str:
        return f"<checker {type(self).__name__} of {self.world}>"

    def fail(self, reason: str) -> None:
        """Report a violation; the run ends."""
        self.world.fail(Violation(type(self).__name__, reason))

    def committed(self, group: str, place: PartitionPlace, offset: int, before: int | None) -> None:
        """A group has committed an offset. before: the one that it had."""

    def assigned(self, group: str, generation: int, members: Mapping[str, frozenset[PartitionPlace]]) -> None:
        """A classic group has a generation, or members of a consumer group have these partitions."""

    def processed(self, place: PartitionPlace, offset: int) -> None:
        """A process has processed a record."""

    def each_second(self) -> None:
        """A second has passed."""

    def process_ended(self, name: str, tasks: list[str], connections: list[str]) -> None:
        """A process, or the test, has ended by itself, and left these."""

    def ended(self) -> None:
        """The test has ended, and nothing has failed."""


class UnprocessedRecord(Checker):
    """No record below a committed offset is unprocessed when the test ends.

    It is about groups and topics of which the test has marked a record as processed.
    """

    def ended(self) -> None:
        world = self.world
        stored: dict[PartitionPlace, list[int]] = {}
        for topic in {place.topic: None for place in world.marks}:
            for record in world.kafka.records(topic, committed=True):
                stored.setdefault(PartitionPlace(topic, record.partition), []).append(record.offset)
        for group, offsets in sorted(world.observed.offsets.items()):
            for place, offset in sorted(offsets.items()):
                marks = world.marks.get(place, {})
                missing = [
                    number for number in stored.get(place, ()) if number < offset and number not in marks
                ]
                if missing:
                    self.fail(
                        f"{group} has committed {place} up to {offset}, and never processed "
                        f"{_offsets_text(missing)}"
                    )
                    return


class FallingOffset(Checker):
    """A committed offset does not fall."""

    def committed(self, group: str, place: PartitionPlace, offset: int, before: int | None) -> None:
        if before is not None and offset < before:
            self.fail(f"{group} has committed {offset} of {place}, after {before}")


class TwoOwners(Checker):
    """One member has a partition in a generation, or epoch."""

    def assigned(self, group: str, generation: int, members: Mapping[str, frozenset[PartitionPlace]]) -> None:
        owners: dict[PartitionPlace, str] = {}
        for member, places in members.items():
            for place in places:
                if place in owners:
                    name = self.world.observed.process_of
                    self.fail(
                        f"{place} is {name(owners[place])}'s and {name(member)}'s in {group}, {generation}"
                    )
                    return
                owners[place] = member


class NoProgress(Checker):
    """A group with members goes on in partitions in which it has committed, within `bound` seconds without a
    fault. One without a committed offset may begin at the end, and is not judged."""

    bound = 120.0

    def __init__(self, world: SimulatedWorld) -> None:
        super().__init__(world)
        self._since: dict[tuple[str, PartitionPlace], tuple[int, float]] = {}

    def each_second(self) -> None:
        world = self.world
        if world.loop.now < world.driver.ends:
            self._since.clear()
            return
        observed = world.observed
        for group, offsets in observed.offsets.items():
            if not observed.members(group):
                self._since = {key: since for key, since in self._since.items() if key[0] != group}
                continue
            for place, offset in offsets.items():
                entry = world.partition(place)
                key = group, place
                if entry is None or offset >= entry.log.last_stable_offset or not world.has_clients:
                    self._since.pop(key, None)
                    continue
                known = self._since.get(key)
                if known is None or known[0] != offset:
                    self._since[key] = offset, world.loop.now
                elif world.loop.now - known[1] > self.bound:
                    self.fail(
                        f"{group} has members ({observed.processes(group)}), and has "
                        f"committed {place} up to {offset} of {entry.log.last_stable_offset} for "
                        f"{world.loop.now - known[1]:.0f} s without a fault; {world.waiting}"
                    )
                    return


class AbortedRecord(Checker):
    """No record is processed whose transaction was aborted, or has not ended by then."""

    def processed(self, place: PartitionPlace, offset: int) -> None:
        entry = self.world.partition(place)
        if entry is None or not entry.log.last_stable_offset <= offset < entry.log.end_offset:
            return
        for batch in batches(entry.log.read(offset, 1).data):
            if batch.transactional and batch.base_offset <= offset <= batch.last_offset:
                self.fail(f"processed offset {offset} of {place}, of a transaction that has not ended")

    def ended(self) -> None:
        for place, processed_offsets in sorted(self.world.marks.items()):
            entry = self.world.partition(place)
            if entry is None:
                continue
            pending: dict[int, list[int]] = {}
            for batch in _batches(entry):
                if not batch.is_control:
                    if batch.transactional:
                        pending.setdefault(batch.producer_id, []).extend(record.offset for record in batch)
                    continue
                for marker in batch.control_records():
                    written = pending.pop(batch.producer_id, [])
                    read = [offset for offset in written if offset in processed_offsets]
                    if marker.type == ControlType.ABORT and read:
                        self.fail(
                            f"processed {_offsets_text(read)} of {place}, of a transaction that was aborted"
                        )
                        return


_ENDS = {
    TransactionStatus.PREPARE_COMMIT: ControlType.COMMIT,
    TransactionStatus.PREPARE_ABORT: ControlType.ABORT,
}


class SplitTransaction(Checker):
    """A transaction ends in each of its partitions as its coordinator has decided."""

    def ended(self) -> None:
        world = self.world
        decided: dict[tuple[int, PartitionPlace], list[int]] = {}
        for topic, index in world.partitions(internal=True):
            if topic == TRANSACTIONS_TOPIC:
                for key, end in _decisions(world.partition(PartitionPlace(topic, index))):
                    decided.setdefault(key, []).append(end)
        for topic, index in world.partitions(internal=True):
            place = PartitionPlace(topic, index)
            entry = world.partition(place)
            written: dict[int, list[int]] = {}
            for batch in _batches(entry):
                for marker in batch.control_records():
                    written.setdefault(batch.producer_id, []).append(int(marker.type))
            for producer, ends in written.items():
                expected = decided.get((producer, place), [])
                count = min(len(ends), len(expected))  # the coordinator's log may have been compacted
                if len(ends) <= len(expected) and ends != expected[:count]:
                    self.fail(
                        f"the transactions of producer {producer} end in {place} otherwise than decided"
                    )
                    return


def _batches(entry: ClusterPartition | None) -> Iterator[RecordBatch]:
    if entry is not None:
        yield from batches(entry.log.read(entry.log.start_offset, _ALL).data)


def _decisions(entry: ClusterPartition | None) -> Iterator[tuple[tuple[int, PartitionPlace], int]]:
    """What a coordinator's log has decided, by producer and partition."""
    for batch in _batches(entry):
        for record in batch:
            value = decode_log_record("transaction_state", record.key, record.value).value
            if isinstance(value, TransactionLogValue) and value.transaction_status in _ENDS:
                for topic in value.transaction_partitions or ():
                    for index in topic.partition_ids:
                        yield (
                            (value.producer_id, PartitionPlace(topic.topic, index)),
                            int(_ENDS[TransactionStatus(value.transaction_status)]),
                        )


class LeftBehind(Checker):
    """A process that ends by itself, or the test, leaves no task and no connection."""

    def process_ended(self, name: str, tasks: list[str], connections: list[str]) -> None:
        if tasks or connections:
            self.fail(f"{name} has ended, and left {', '.join([*tasks, *connections])}")


CHECKERS: tuple[type[Checker], ...] = (
    UnprocessedRecord, FallingOffset, TwoOwners, NoProgress, AbortedRecord, SplitTransaction,
    LeftBehind,
)  # fmt: skip


def _offsets_text(offsets: list[int]) -> str:
    names = ", ".join(map(str, offsets[:5]))
    return f"offset{'s' * (len(offsets) > 1)} {names}{', …' * (len(offsets) > 5)}"


class Observed:
    """What the logs of `__consumer_offsets` say. offsets: what each group has committed; groups: their names.

    report: called for each checker's method; network: whose processes the members are.
    """

    def __init__(self, report: Callable[[str, Any], None], network: Network) -> None:
        self._network = network
        self._hosts: dict[str, str] = {}
        self.offsets: dict[str, dict[PartitionPlace, int]] = {}
        self.groups: dict[str, None] = {}
        self._classic: dict[str, tuple[int, dict[str, frozenset[PartitionPlace]]]] = {}
        self._consumer: dict[str, dict[str, frozenset[PartitionPlace]]] = {}
        self._report = report
        self._pending: dict[tuple[int, int], list[tuple[str, PartitionPlace, int | None]]] = {}
        self._read: dict[int, int] = {}

    def watch(self, partitions: list[ClusterPartition]) -> None:
        """Read what is appended to these."""
        for entry in partitions:
            self._read[entry.index] = entry.log.end_offset
            entry.log.listeners[self] = partial(self._appended, entry)

    def members(self, group: str) -> list[str]:
        """The ids of a group's members."""
        return list(self._classic[group][1] if group in self._classic else self._consumer.get(group, ()))

    def processes(self, group: str) -> str:
        """The processes whose a group's members are, as text: "till-1, till-2"."""
        counts = Counter(map(self.process_of, self.members(group)))
        return ", ".join(name if n == 1 else f"{name} ({n} members)" for name, n in sorted(counts.items()))

    def process_of(self, member_id: str) -> str:
        """The process whose a member is, or its id."""
        return self._network.by_address.get(self._hosts.get(member_id, ""), member_id)

    def _appended(self, entry: ClusterPartition, size: int) -> None:
        index, log = entry.index, entry.log
        start = self._read[index]
        if not log.start_offset <= start <= log.end_offset:
            self._read[index] = log.end_offset
            return
        data = log.read(start, _ALL).data
        read = [batch for batch in batches(data) if batch.base_offset >= start]
        if read:
            self._read[index] = read[-1].last_offset + 1
        for logged in log_entries(read):
            if isinstance(logged.record, TransactionMarker):
                changes = self._pending.pop((index, logged.producer_id), ())
                if logged.record.committed:
                    for change in changes:
                        self._commit(*change)
                continue
            self._record(index, logged.producer_id, logged.record.key, logged.record.value)

    def _record(self, index: int, producer_id: int, key: Any, value: Any) -> None:
        if isinstance(key, OffsetCommitKey):
            offset = value.offset if isinstance(value, OffsetCommitValue) else None
            change = key.group, PartitionPlace(key.topic, key.partition), offset
            if producer_id >= 0:
                self._pending.setdefault((index, producer_id), []).append(change)
            else:
                self._commit(*change)
        elif isinstance(key, GroupMetadataKey):
            self.groups[key.group] = None
            if not isinstance(value, GroupMetadataValue):
                self._classic.pop(key.group, None)
                return
            self._hosts |= {member.member_id: member.client_host.lstrip("/") for member in value.members}
            members = {
                member.member_id: _assigned(member.assignment)
                for member in value.members
                if value.protocol_type == "consumer"
            }
            self._classic[key.group] = value.generation, members
            self._report("assigned", (key.group, value.generation, members))
        elif isinstance(value, ConsumerGroupMemberMetadataValue):
            self._hosts[key.member_id] = value.client_host.lstrip("/")
        elif isinstance(key, ConsumerGroupCurrentMemberAssignmentKey):
            self.groups[key.group_id] = None
            members = self._consumer.setdefault(key.group_id, {})
            if not isinstance(value, ConsumerGroupCurrentMemberAssignmentValue):
                members.pop(key.member_id, None)
                return
            members[key.member_id] = frozenset(
                PartitionPlace(str(topic.topic_id), number)
                for topic in value.assigned_partitions
                for number in topic.partitions
            )
            self._report("assigned", (key.group_id, value.member_epoch, members))

    def _commit(self, group: str, place: PartitionPlace, offset: int | None) -> None:
        self.groups[group] = None
        offsets = self.offsets.setdefault(group, {})
        before = offsets.get(place)
        if offset is None:
            offsets.pop(place, None)
            return
        offsets[place] = offset
        self._report("committed", (group, place, offset, before))


def _assigned(data: bytes) -> frozenset[PartitionPlace]:
    """A member's partitions; none for what is not a consumer's assignment."""
    try:
        topics = read_named_assignment(data)
    except MalformedProtocol:
        return frozenset()
    return frozenset(PartitionPlace(topic, number) for topic, numbers in topics for number in numbers)
