"""Logs with groups of all four kinds: `python -m tests.coordinator.foreign_logs SEED COUNT`.

Strategy: a log is made of the records of some groups, mostly in an order that a coordinator writes, sometimes
of two kinds under one id. Both coordinators load it. Requests that name the groups follow: those of the
classic protocol, of consumer groups and of operators. Members of share and streams groups send nothing, and
no time passes in which they expire.

`--keep FILE` stores the histories, which need no Java to be run again.
"""

from __future__ import annotations

import argparse
import random
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from uuid import UUID

from coordwire.codec import Message
from coordwire.logs import LogRecord, encode_log_record
from coordwire.messages import (
    ConsumerGroupDescribeRequest,
    ConsumerGroupHeartbeatRequest,
    ConsumerGroupMetadataKey,
    ConsumerGroupMetadataValue,
    DeleteGroupsRequest,
    DescribeGroupsRequest,
    GroupMetadataKey,
    GroupMetadataValue,
    HeartbeatRequest,
    JoinGroupRequest,
    LeaveGroupRequest,
    ListGroupsRequest,
    OffsetCommitKey,
    OffsetCommitRequest,
    OffsetCommitValue,
    OffsetDeleteRequest,
    OffsetFetchRequest,
    ShareGroupCurrentMemberAssignmentKey,
    ShareGroupCurrentMemberAssignmentValue,
    ShareGroupMemberMetadataKey,
    ShareGroupMemberMetadataValue,
    ShareGroupMetadataKey,
    ShareGroupMetadataValue,
    ShareGroupStatePartitionMetadataKey,
    ShareGroupStatePartitionMetadataValue,
    ShareGroupTargetAssignmentMemberKey,
    ShareGroupTargetAssignmentMemberValue,
    ShareGroupTargetAssignmentMetadataKey,
    ShareGroupTargetAssignmentMetadataValue,
    StreamsGroupCurrentMemberAssignmentKey,
    StreamsGroupCurrentMemberAssignmentValue,
    StreamsGroupMemberMetadataKey,
    StreamsGroupMemberMetadataValue,
    StreamsGroupMetadataKey,
    StreamsGroupMetadataValue,
    StreamsGroupTargetAssignmentMemberKey,
    StreamsGroupTargetAssignmentMemberValue,
    StreamsGroupTargetAssignmentMetadataKey,
    StreamsGroupTargetAssignmentMetadataValue,
    StreamsGroupTopologyKey,
    StreamsGroupTopologyValue,
    SyncGroupRequest,
    TxnOffsetCommitRequest,
)
from coordwire.messages.join_group import JoinGroupRequestProtocol
from coordwire.messages.leave_group import MemberIdentity
from coordwire.messages.offset_commit import OffsetCommitRequestPartition, OffsetCommitRequestTopic
from coordwire.messages.offset_delete import OffsetDeleteRequestPartition, OffsetDeleteRequestTopic
from coordwire.messages.offset_fetch import OffsetFetchRequestGroup, OffsetFetchRequestTopic
from coordwire.messages.txn_offset_commit import TxnOffsetCommitRequestPartition, TxnOffsetCommitRequestTopic
from tests.coordinator.comparison import Difference, outcome_lines, readable
from tests.coordinator.histories import (
    Outcome,
    Record,
    Replayer,
    entry_text,
    kafka_outcome,
    request_step,
)
from tests.coordinator.oracle import RELEASE, RELEASES, oracle
from tests.coordinator.recorded_histories import RecordedHistory, checksum, write_histories
from tests.coordinator.settings import kafka_settings, settings

_IDS = ["a", "b", "c", "d"]
_MEMBERS = ["m1", "m2"]
_TOPICS = "topics +AAAAAAAAAAEAAAAAAAAABw:3:audit +AAAAAAAAAAIAAAAAAAAABw:3:orders"
_ORDERS = UUID(int=(2 << 64) + 7)
_EXPIRED = 3 * 3_600_000
_PARTITIONS = b"\x00\x0f"
"""How the key of a record about a share group's partitions begins."""


def _record(number: int, key: Message, value: Message | None, version: int = 0) -> Record:
    log = LogRecord(
        log="consumer_offsets", type=number, key=key, value=value, version=None if value is None else version
    )
    encoded, content = encode_log_record(log)
    assert encoded is not None
    return Record(encoded, content)


# --- logs ---


def _share(chance: random.Random, group_id: str, members: list[str]) -> list[Record]:
    records = []
    for member_id in members:
        key = ShareGroupMemberMetadataKey(group_id=group_id, member_id=member_id)
        value = ShareGroupMemberMetadataValue(
            subscribed_topic_names=["orders"], client_id="c", client_host="/h"
        )
        records.append(_record(10, key, value))
    epochs = ShareGroupMetadataValue(epoch=chance.randint(1, 3))
    records.append(_record(11, ShareGroupMetadataKey(group_id=group_id), epochs))
    if chance.random() < 0.3:
        partitions = ShareGroupStatePartitionMetadataValue()
        records.append(_record(15, ShareGroupStatePartitionMetadataKey(group_id=group_id), partitions))
    for member_id in members:
        target_key = ShareGroupTargetAssignmentMemberKey(group_id=group_id, member_id=member_id)
        records.append(_record(13, target_key, ShareGroupTargetAssignmentMemberValue()))
    target = ShareGroupTargetAssignmentMetadataValue(assignment_epoch=2)
    records.append(_record(12, ShareGroupTargetAssignmentMetadataKey(group_id=group_id), target))
    for member_id in members:
        own_key = ShareGroupCurrentMemberAssignmentKey(group_id=group_id, member_id=member_id)
        own = ShareGroupCurrentMemberAssignmentValue(member_epoch=chance.randint(1, 2))
        records.append(_record(14, own_key, own))
    return records


def _streams(chance: random.Random, group_id: str, members: list[str]) -> list[Record]:
    records = []
    for member_id in members:
        key = StreamsGroupMemberMetadataKey(group_id=group_id, member_id=member_id)
        value = StreamsGroupMemberMetadataValue(process_id="p", client_id="c", client_host="/h")
        records.append(_record(19, key, value))
    epoch, topology_epoch = chance.randint(1, 3), chance.randint(0, 1)
    epochs = StreamsGroupMetadataValue(epoch=epoch, validated_topology_epoch=chance.randint(0, 1))
    records.append(_record(17, StreamsGroupMetadataKey(group_id=group_id), epochs))
    if chance.random() < 0.8:
        topology = StreamsGroupTopologyValue(epoch=topology_epoch)
        records.append(_record(23, StreamsGroupTopologyKey(group_id=group_id), topology))
    for member_id in members:
        target_key = StreamsGroupTargetAssignmentMemberKey(group_id=group_id, member_id=member_id)
        records.append(_record(21, target_key, StreamsGroupTargetAssignmentMemberValue()))
    target = StreamsGroupTargetAssignmentMetadataValue(assignment_epoch=chance.randint(1, epoch))
    records.append(_record(20, StreamsGroupTargetAssignmentMetadataKey(group_id=group_id), target))
    for member_id in members:
        own_key = StreamsGroupCurrentMemberAssignmentKey(group_id=group_id, member_id=member_id)
        own = StreamsGroupCurrentMemberAssignmentValue(
            member_epoch=chance.randint(1, epoch), state=chance.choice([1, 1, 2])
        )
        records.append(_record(22, own_key, own))
    return records


def _consumer(chance: random.Random, group_id: str, members: list[str]) -> list[Record]:
    return [
        _record(3, ConsumerGroupMetadataKey(group_id=group_id), ConsumerGroupMetadataValue(epoch=2)),
    ]


def _classic(chance: random.Random, group_id: str, members: list[str]) -> list[Record]:
    value = GroupMetadataValue(protocol_type="consumer", generation=4, protocol=None, leader=None)
    return [_record(2, GroupMetadataKey(group=group_id), value, 3)]


def _offsets(chance: random.Random, group_id: str) -> list[Record]:
    key = OffsetCommitKey(group=group_id, topic="orders", partition=chance.randint(0, 1))
    return [_record(1, key, OffsetCommitValue(offset=5, commit_timestamp=900), 4)]


def _tombstones(chance: random.Random, records: list[Record]) -> list[Record]:
    """The end of some facts, in any order: many contradict what stays."""
    return [Record(record.key, None) for record in chance.sample(records, chance.randint(1, len(records)))]


_KINDS: list[Callable[[random.Random, str, list[str]], list[Record]]] = [
    _share, _share, _streams, _streams, _consumer, _classic,
]  # fmt: skip


def _log(chance: random.Random, members: list[str]) -> list[Record]:
    log: list[Record] = []
    for group_id in _IDS:
        known = [name for name in members if chance.random() < 0.8]
        records = chance.choice(_KINDS)(chance, group_id, known)
        if chance.random() < 0.03:
            log += _offsets(chance, group_id)  # before the group: it is of no kind yet
        log += records
        if chance.random() < 0.5:
            log += _offsets(chance, group_id)
        if chance.random() < 0.05:
            log += _tombstones(chance, records)
        if chance.random() < 0.03:
            log += chance.choice(_KINDS)(chance, group_id, known)
    return log


# --- requests ---


def _partitions(chance: random.Random) -> list[OffsetCommitRequestPartition]:
    return [OffsetCommitRequestPartition(partition_index=chance.randint(0, 2), committed_offset=7)]


def _request(chance: random.Random) -> tuple[Message, int]:
    """A request and its version."""
    group_id, member_id = chance.choice(_IDS), chance.choice(["", *_MEMBERS])
    epoch = chance.choice([-1, 0, 1, 2, 3])
    requests: list[tuple[Message, int]] = [
        (
            JoinGroupRequest(
                group_id=group_id, member_id=member_id, session_timeout_ms=10_000, rebalance_timeout_ms=5_000,
                protocol_type="consumer", protocols=[JoinGroupRequestProtocol(name="range", metadata=b"")],
            ),
            chance.randint(3, 9),
        ),
        (
            SyncGroupRequest(
                group_id=group_id, member_id=member_id, generation_id=epoch, protocol_type="consumer",
                protocol_name="range",
            ),
            5,
        ),
        (HeartbeatRequest(group_id=group_id, member_id=member_id, generation_id=epoch), 4),
        (LeaveGroupRequest(group_id=group_id, members=[MemberIdentity(member_id=member_id)]), 5),
        (
            ConsumerGroupHeartbeatRequest(
                group_id=group_id, member_id=member_id or "m9", member_epoch=epoch,
                rebalance_timeout_ms=5_000 if epoch == 0 else -1,
                subscribed_topic_names=["orders"] if epoch == 0 else None,
                topic_partitions=[] if epoch == 0 else None,
            ),
            1,
        ),
        (
            OffsetCommitRequest(
                group_id=group_id, member_id=member_id, generation_id_or_member_epoch=epoch,
                topics=[OffsetCommitRequestTopic(name="orders", partitions=_partitions(chance))],
            ),
            chance.choice([8, 9]),
        ),
        (
            TxnOffsetCommitRequest(
                group_id=group_id, member_id=member_id, generation_id_or_member_epoch=epoch,
                transactional_id="t", producer_id=3, producer_epoch=0,
                topics=[
                    TxnOffsetCommitRequestTopic(
                        name="orders",
                        partitions=[TxnOffsetCommitRequestPartition(partition_index=0, committed_offset=3)],
                    )
                ],
            ),
            chance.choice([3, 5]),
        ),
        (
            OffsetFetchRequest(
                group_id=group_id, topics=[OffsetFetchRequestTopic(name="orders", partition_indexes=[0, 1])],
            ),
            chance.choice([1, 2, 7]),
        ),
        (
            OffsetFetchRequest(
                groups=[
                    OffsetFetchRequestGroup(
                        group_id=group_id, member_id=chance.choice([None, *_MEMBERS]), member_epoch=epoch,
                        topics=None,
                    )
                ],
                require_stable=chance.random() < 0.5,
            ),
            9,
        ),
        (
            OffsetDeleteRequest(
                group_id=group_id,
                topics=[
                    OffsetDeleteRequestTopic(
                        name="orders", partitions=[OffsetDeleteRequestPartition(partition_index=0)]
                    )
                ],
            ),
            0,
        ),
        (DescribeGroupsRequest(groups=_IDS), chance.choice([5, 6])),
        (ConsumerGroupDescribeRequest(group_ids=_IDS), 1),
        (ListGroupsRequest(), chance.choice([4, 5])),
        (
            ListGroupsRequest(
                states_filter=chance.choice([[], ["Empty"], ["not_ready"], ["NotReady"], ["stable"]]),
                types_filter=chance.choice([[], ["share"], ["Streams"], ["classic", "consumer"]]),
            ),
            5,
        ),
        (DeleteGroupsRequest(groups_names=chance.sample(_IDS, 2)), 2),
    ]  # fmt: skip
    return chance.choice(requests)


def foreign_history(seed: int, count: int = 30) -> list[str]:
    chance = random.Random(seed)
    members = _MEMBERS if chance.random() < 0.6 else []
    log = _log(chance, members)
    entries = " ".join(entry_text(offset, record) for offset, record in enumerate(log))
    steps = [_TOPICS, "unload", f"load {len(log)} {entries}"]
    # The oracle has no persister to ask for the state of a share group's partitions, which a deletion ends.
    has_partitions = any(record.key.startswith(_PARTITIONS) for record in log)
    for ticket in range(1, count + 1):
        message, version = _request(chance)
        if has_partitions and isinstance(message, DeleteGroupsRequest):
            message, version = ListGroupsRequest(), 5
        steps.append(request_step(ticket, message, version, (seed << 64) + ticket * 1_000, "till"))
        if chance.random() < 0.05:
            steps.append(chance.choice(["fail NOT_ENOUGH_REPLICAS", "hold", "commit"]))
    if not members:
        steps += ["commit", f"advance {_EXPIRED}", f"advance {2 * _EXPIRED}"]
        steps.append(request_step(count + 1, ListGroupsRequest(), 5, seed, "till"))
    return steps


# --- the comparison ---


def compared(seed: int, release: str = RELEASE) -> tuple[Difference | None, RecordedHistory]:
    steps = foreign_history(seed)
    outputs = oracle(release).run([kafka_settings(seed), *steps])[1:]
    replayer = Replayer(settings(seed, release))
    kept: list[tuple[int, str]] = []
    for number, (step, lines) in enumerate(zip(steps, outputs, strict=True)):
        actual = replayer.run(step)
        requests = replayer.requests
        actual, expected = actual.sorted(requests), kafka_outcome(lines).sorted(requests)
        if actual != expected:
            texts = [outcome_lines(outcome, requests) for outcome in (actual, expected)]
            return Difference(seed, number, readable(step), *texts), RecordedHistory(seed, kept, release)
        kept.append((checksum(expected), step))
    return None, RecordedHistory(seed, kept, release)


def _loads(history: RecordedHistory) -> bool:
    unloadable = checksum(Outcome(other=["unloadable"]))
    return all(crc != unloadable for crc, _ in history.steps)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("seed", type=int)
    parser.add_argument("count", type=int)
    parser.add_argument("--keep", type=Path)
    parser.add_argument("--release", choices=RELEASES, default=RELEASE)
    options = parser.parse_args()
    differences = loaded = 0

    def agreed() -> Iterator[RecordedHistory]:
        nonlocal differences, loaded
        for seed in range(options.seed, options.seed + options.count):
            difference, history = compared(seed, options.release)
            if difference is None:
                loaded += _loads(history)
                yield history
            else:
                differences += 1
                print(difference, flush=True)

    if options.keep:
        write_histories(options.keep, agreed())
    else:
        for _ in agreed():
            pass
    print(f"{options.count} logs, of which {loaded} could be loaded: {differences} differ")
    return 1 if differences else 0


if __name__ == "__main__":
    sys.exit(main())
