"""Written histories, each for a rule that random ones seldom show.

`python -m tests.coordinator.rule_histories FILE` runs them on Kafka's coordinator and ours, and writes
their steps, which `python -m conformance --histories rules FILE` keeps with Kafka's answers.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from copy import copy
from dataclasses import replace
from pathlib import Path
from uuid import UUID

from coordwire.messages import (
    ConsumerGroupDescribeRequest,
    ConsumerGroupHeartbeatRequest,
    DescribeGroupsRequest,
    HeartbeatRequest,
    JoinGroupRequest,
    LeaveGroupRequest,
    ListGroupsRequest,
    OffsetCommitRequest,
    OffsetFetchRequest,
    SyncGroupRequest,
    TxnOffsetCommitRequest,
)
from coordwire.messages.join_group import JoinGroupRequestProtocol
from coordwire.messages.leave_group import MemberIdentity
from coordwire.messages.offset_commit import OffsetCommitRequestPartition, OffsetCommitRequestTopic
from coordwire.messages.streams_group_records import StreamsGroupMetadataKey
from coordwire.messages.sync_group import SyncGroupRequestAssignment
from coordwire.messages.txn_offset_commit import TxnOffsetCommitRequestPartition, TxnOffsetCommitRequestTopic
from tests.coordinator.comparison import outcome_lines
from tests.coordinator.histories import (
    Replayer,
    kafka_outcome,
)
from tests.coordinator.oracle import RELEASE, oracle
from tests.coordinator.recorded_histories import RecordedHistory, checksum, write_histories
from tests.coordinator.rule_script import (
    APPEND_FAILS,
    SEED,
    Script,
    join_consumer_group,
    join_share_group,
    join_streams_group,
    settle,
)
from tests.coordinator.settings import kafka_settings, settings
from tests.coordinator.steady_heartbeat_rules import STEADY_HEARTBEATS

_SUBSCRIPTION = bytes.fromhex("00000000000100056175646974ffffffff")
"""Of the topic "audit"."""


def _join(member_id: str = "", *, session_ms: int = 10_000, instance: str | None = None) -> JoinGroupRequest:
    return JoinGroupRequest(
        group_id="g", member_id=member_id, group_instance_id=instance, session_timeout_ms=session_ms,
        rebalance_timeout_ms=5_000, protocol_type="consumer",
        protocols=[JoinGroupRequestProtocol(name="range", metadata=_SUBSCRIPTION)],
    )  # fmt: skip


def _sync(member_id: str, instance: str | None = None) -> SyncGroupRequest:
    return SyncGroupRequest(
        group_id="g", member_id=member_id, group_instance_id=instance, generation_id=1,
        protocol_type="consumer", protocol_name="range",
        assignments=[SyncGroupRequestAssignment(member_id=member_id, assignment=b"a")],
    )  # fmt: skip


def _beat(member_id: str) -> HeartbeatRequest:
    return HeartbeatRequest(group_id="g", member_id=member_id, generation_id=1)


def _retention_starts_when_the_group_is_empty(script: Script) -> None:
    """The commit is older than the retention, the time without members is not."""
    member_id = script.ask(_join(session_ms=1_800_000), 3)
    script.wait(3_000)
    script.ask(_sync(member_id), 5)
    topics = [
        OffsetCommitRequestTopic(
            name="orders", partitions=[OffsetCommitRequestPartition(partition_index=0, committed_offset=5)]
        )
    ]
    script.ask(
        OffsetCommitRequest(
            group_id="g", member_id=member_id, generation_id_or_member_epoch=1, topics=topics
        ),
        8,
    )
    for _ in range(3):
        script.wait(1_000_000)
        script.ask(_beat(member_id), 4)
    script.ask(LeaveGroupRequest(group_id="g", members=[MemberIdentity(member_id=member_id)]), 5)
    for _ in range(6):
        script.wait(700_000)
        script.ask(OffsetFetchRequest(group_id="g", topics=None), 7)


def _the_last_members_of_a_pattern_leave_at_once(script: Script) -> None:
    for member_id in ("a", "b", "c"):
        request = ConsumerGroupHeartbeatRequest(
            group_id="g", member_id=member_id, rebalance_timeout_ms=5_000, topic_partitions=[],
            subscribed_topic_regex="o.*" if member_id != "c" else None,
            subscribed_topic_names=["audit"] if member_id == "c" else None,
        )  # fmt: skip
        script.ask(request, 1)
        script.wait(2_000)
    leaving = [MemberIdentity(member_id=member_id) for member_id in ("a", "b", "b")]
    script.ask(LeaveGroupRequest(group_id="g", members=leaving), 5)
    script.ask(ConsumerGroupDescribeRequest(group_ids=["g"]), 1)
    script.wait(60_000)
    script.ask(ConsumerGroupDescribeRequest(group_ids=["g"]), 1)


def _members_leave_in_a_batch_that_fails(script: Script) -> None:
    for member_id in ("a", "b", "c", "d"):
        script.ask(
            ConsumerGroupHeartbeatRequest(
                group_id="g", member_id=member_id, rebalance_timeout_ms=5_000, topic_partitions=[],
                subscribed_topic_names=["orders"],
            ),
            1,
        )  # fmt: skip
    leaving = [MemberIdentity(member_id=member_id) for member_id in ("c", "a")]
    for _ in range(2):
        script.step(APPEND_FAILS)
        script.ask(LeaveGroupRequest(group_id="g", members=leaving), 5)
        script.ask(ConsumerGroupDescribeRequest(group_ids=["g"]), 1)
    script.ask(LeaveGroupRequest(group_id="g", members=leaving), 5)
    for member_id in ("a", "b"):
        script.ask(ConsumerGroupHeartbeatRequest(group_id="g", member_id=member_id, member_epoch=1), 1)


def _a_static_member_comes_back_and_its_record_fails(script: Script) -> None:
    """The member before is in the group again, with its own session time-out, which begins then."""
    member_id = script.ask(_join(instance="i"), 5)
    script.wait(3_000)
    script.ask(_sync(member_id, "i"), 5)
    script.wait(4_000)
    script.step(APPEND_FAILS)
    script.ask(_join(instance="i", session_ms=25_000), 5)
    script.ask(DescribeGroupsRequest(groups=["g"]), 5)
    script.wait(8_000)
    script.ask(_beat(member_id), 4)
    script.wait(9_000)
    script.ask(_beat(member_id), 4)
    script.wait(12_000)
    script.ask(DescribeGroupsRequest(groups=["g"]), 5)


def _a_static_member_that_is_back_expires_where_it_is_silent(script: Script) -> None:
    member_id = script.ask(_join(instance="i"), 5)
    script.wait(3_000)
    script.ask(_sync(member_id, "i"), 5)
    script.step(APPEND_FAILS)
    script.ask(_join(instance="i", session_ms=25_000), 5)
    script.wait(9_900)
    script.ask(DescribeGroupsRequest(groups=["g"]), 5)
    script.wait(200)
    script.ask(DescribeGroupsRequest(groups=["g"]), 5)


def _a_static_member_comes_back_with_a_shorter_session(script: Script) -> None:
    """The time-out before counts until its next heartbeat."""
    member_id = script.ask(_join(session_ms=25_000, instance="i"), 5)
    script.wait(3_000)
    script.ask(_sync(member_id, "i"), 5)
    member_id = script.ask(_join(instance="i"), 5)
    script.wait(9_000)
    script.ask(_beat(member_id), 2)
    for milliseconds in (9_900, 200):
        script.wait(milliseconds)
        script.ask(DescribeGroupsRequest(groups=["g"]), 5)


def _a_custom_assignors_group_is_not_upgraded(script: Script) -> None:
    member_id = script.ask(_join(), 3)
    script.wait(3_000)
    request = _sync(member_id)
    request.assignments[0].assignment = bytes.fromhex("0000000000010005617564697400000001000000000000000178")
    script.ask(request, 5)
    for member in ("a", "b"):
        joining = ConsumerGroupHeartbeatRequest(
            group_id="g", member_id=member, rebalance_timeout_ms=5_000, topic_partitions=[],
            subscribed_topic_names=["audit"],
        )  # fmt: skip
        script.ask(joining, 1)
    script.ask(DescribeGroupsRequest(groups=["g"]), 5)


def _a_streams_group_waits_with_the_target_of_its_log(script: Script) -> None:
    """The target is newer than the group, so that members come to it during the initial delay."""
    (beat,) = beats = [join_streams_group(script, "g")]
    settle(script, beats, 0)
    script.answer(replace(beat, member_epoch=-1), 0)
    script.reload(assignment_epoch=9)
    beat = join_streams_group(script, "g")
    for _ in range(5):
        script.answer(beat, 0)
        script.wait(1_000)


def _share_coordinators_do_not_answer(script: Script) -> None:
    """What they should initialize is entered again after some time."""
    beat = join_share_group(script, "g")
    for _ in range(8):
        script.wait(1_000, answers=False)
        beat.member_epoch = script.answer(beat, 1).member_epoch


def _a_streams_member_has_an_older_topology(script: Script) -> None:
    beats = [
        join_streams_group(script, "g"),
        join_streams_group(script, "g", "n", topology_epoch=0),
    ]
    settle(script, beats, 0)
    for beat in beats:
        script.answer(beat, 0)


def _subtopologies_come_in_another_order(script: Script) -> None:
    """It matters where two read one topic, and their ids are in one bucket of Java's hash table."""
    for group_id, reads in {
        "one-bucket": (("AaAa", "orders"), ("BBBB", "orders")),
        "one-bucket-two-topics": (("AaAa", "orders"), ("BBBB", "audit")),
        "two-buckets": (("0", "orders"), ("1", "orders")),
    }.items():
        join_streams_group(script, group_id, reads=reads)
        join_streams_group(script, group_id, "n", reads=reads[::-1])


def unvalidated_groups(script: Script) -> None:
    """The log has lost the record of the group's epoch, as after a compaction that went wrong."""
    join_streams_group(script, "g")
    script.wait(1_000)
    script.reload(StreamsGroupMetadataKey)
    script.wait(60_000)


def _a_pattern_is_resolved_again(script: Script) -> None:
    """A topic comes that a member's pattern matches; the next resolution is due by time."""
    joining = ConsumerGroupHeartbeatRequest(
        group_id="g", member_id="m", rebalance_timeout_ms=5_000, topic_partitions=[],
        subscribed_topic_regex="o.*",
    )  # fmt: skip
    script.answer(joining, 1)
    beat = ConsumerGroupHeartbeatRequest(group_id="g", member_id="m", member_epoch=1)
    settle(script, [beat], 1)
    script.step("topics +AAAAAAAAAAQAAAAAAAAABw:2:others")
    for _ in range(3):
        script.wait(5_000)
        beat.member_epoch = script.answer(beat, 1).member_epoch


def _a_classic_member_becomes_one_of_a_consumer_group(script: Script) -> None:
    """Its group was upgraded; its first heartbeat of the new protocol names nothing."""
    member_id = script.ask(_join(session_ms=45_000), 3)
    script.wait(3_000)
    request = _sync(member_id)
    request.assignments[0].assignment = bytes.fromhex("000000000000ffffffff")
    script.ask(request, 5)
    beat = join_consumer_group(script, "g")
    for generation_id in (1, 2, 3):
        script.ask(replace(_beat(member_id), generation_id=generation_id), 4)
    script.ask(_join(member_id, session_ms=45_000), 3)
    for generation_id in (2, 3):
        script.ask(replace(_sync(member_id), generation_id=generation_id), 5)
    for epoch in (1, 2, 3, 4):
        script.answer(replace(beat, member_id=member_id, member_epoch=epoch), 1)
        script.answer(replace(beat, member_id=member_id, member_epoch=epoch), 1)


def _a_member_of_a_group_without_a_name_is_in_its_epoch(script: Script) -> None:
    """A log has the group, with its member in the epoch that begins when a classic member joins."""
    (beat,) = beats = [join_consumer_group(script, "g")]
    settle(script, beats, 1)
    beat.group_id, beat.member_epoch = " ", beat.member_epoch + 1
    script.reload(group_id=" ", member_epoch=beat.member_epoch)
    script.wait(3_000)
    script.ask(replace(_join(), group_id=" "), 3)
    for _ in range(2):
        script.answer(beat, 1)
    script.ask(ConsumerGroupDescribeRequest(group_ids=[" "]), 1)


def _heartbeats_of_a_classic_group(script: Script) -> None:
    """Each field differs once; then a log has the group without a name, as clients could once make it."""
    member_id = script.ask(_join(), 3)
    script.wait(3_000)
    script.ask(_sync(member_id), 5)
    beat = _beat(member_id)
    for name, value in {
        "generation_id": 2,
        "member_id": "m",
        "group_instance_id": "i",
        "group_id": "h",
    }.items():
        changed = copy(beat)
        setattr(changed, name, value)
        script.ask(changed, 4)
        script.ask(beat, 4)
    script.ask(_join(), 3)
    script.ask(beat, 4)
    script.ask(_join(member_id), 3)
    beat.generation_id = 2
    sync = _sync(member_id)
    sync.generation_id = 2
    script.ask(sync, 5)
    script.ask(beat, 4)
    for group_id in (" ", ""):
        script.reload(group=group_id)
        beat.group_id = group_id
        script.ask(beat, 4)
        script.wait(6_000)
        script.ask(beat, 4)
        script.wait(6_000)
        script.ask(ListGroupsRequest(), 5)


def _votes_tie_in_a_log(script: Script) -> None:
    """Kafka's two tables have these assignors in different orders for n, whose heartbeat raises the epoch."""
    epochs = {}
    for member_id, topic in (("m", "audit"), ("n", "orders")):
        join = ConsumerGroupHeartbeatRequest(
            group_id="g", member_id=member_id, member_epoch=0, rebalance_timeout_ms=5_000,
            subscribed_topic_names=[topic], server_assignor="uniform", topic_partitions=[],
        )  # fmt: skip
        epochs[member_id] = script.answer(join, 1).member_epoch

    def beat(*names: str) -> None:
        for name in names:
            request = ConsumerGroupHeartbeatRequest(group_id="g", member_id=name, member_epoch=epochs[name])
            epochs[name] = script.answer(request, 1).member_epoch

    script.wait(1_500)
    beat("m", "n", "m", "n")
    script.reload(server_assignor="a54")
    beat("m", "m", "m", "n")


def _an_offset_of_an_unknown_topic_without_partitions(script: Script) -> None:
    """TxnOffsetCommit 6 names it by its id, which the answer has too."""
    topics = [TxnOffsetCommitRequestTopic(topic_id=UUID(int=99), partitions=[])]
    commit = TxnOffsetCommitRequest(
        group_id="g", transactional_id="t", producer_id=3, producer_epoch=0, topics=topics,
    )  # fmt: skip
    script.answer(commit, 6)
    part = TxnOffsetCommitRequestPartition(partition_index=0, committed_offset=3)
    topics.append(TxnOffsetCommitRequestTopic(topic_id=UUID(int=2 << 64 | 7), partitions=[part]))
    script.answer(commit, 6)


def _a_group_that_was_classic_meanwhile_is_refreshed(script: Script) -> None:
    """Kafka takes it for subscribed to topics of its past, until it subscribes to them and ceases to."""

    def beat(member_id: str, epoch: int, regex: str | None, *names: str) -> int:
        request = ConsumerGroupHeartbeatRequest(
            group_id="g", member_id=member_id, member_epoch=epoch, rebalance_timeout_ms=5_000,
            topic_partitions=[], subscribed_topic_regex=regex, subscribed_topic_names=list(names),
        )  # fmt: skip
        return int(script.answer(request, 1).member_epoch)

    def change_pattern_and_topic(old: str, new: str) -> None:
        """The pattern is not resolved so soon after the last one, so that the metadata is another."""
        epoch = beat("n", 0, "o.*")
        script.wait(3_000)
        beat("n", epoch, f"o.*|{new}")
        script.step(f"topics -AAAAAAAAAA{old}AAAAAAAAABw +AAAAAAAAAA{new}AAAAAAAAABw:3:audit")
        beat("n", epoch, None)
        beat("n", -1, None)
        script.wait(70_000)

    beat("m", 0, None, "audit")
    member_id = script.ask(_join(), 3)
    beat("m", -1, None)
    script.ask(LeaveGroupRequest(group_id="g", members=[MemberIdentity(member_id=member_id)]), 5)
    script.wait(70_000)
    change_pattern_and_topic("E", "M")
    beat("m", 0, None, "audit")
    beat("m", -1, None)
    change_pattern_and_topic("M", "Q")


def _settings_of_later_streams_groups(script: Script) -> None:
    """What members are told, and what a target is made with; other settings of Kafka change neither."""
    beats = [join_streams_group(script, "g", member_id) for member_id in ("m", "n")]
    settle(script, beats, 0)
    for setting in (
        "task.offset.interval.ms=30000",
        "acceptable.recovery.lag=0",
        "acceptable.recovery.lag=99999999999",
        "rack.aware.assignment.tags=zone",
        "rack.aware.assignment.tags=zone,cloud",
        "num.warmup.replicas=3",
        "assignor.name=sticky",
        "num.standby.replicas=1",
    ):
        script.step(f"config g streams.{setting}")
        for beat in [*beats, *beats]:
            script.answer(beat, 0)
        settle(script, beats, 0)
    script.reload()
    script.step("config g")
    settle(script, beats, 0)


LATER: list[tuple[str, Callable[[Script], None]]] = [
    ("4.4.0", _votes_tie_in_a_log),
    ("4.4.0", _an_offset_of_an_unknown_topic_without_partitions),
    ("4.4.0", _settings_of_later_streams_groups),
    ("4.3.1", _settings_of_later_streams_groups),
]
"""Rules of later releases."""

RULES: list[Callable[[Script], None]] = [
    _retention_starts_when_the_group_is_empty,
    _the_last_members_of_a_pattern_leave_at_once,
    _members_leave_in_a_batch_that_fails,
    _a_static_member_comes_back_and_its_record_fails,
    _a_static_member_that_is_back_expires_where_it_is_silent,
    _a_static_member_comes_back_with_a_shorter_session,
    _a_custom_assignors_group_is_not_upgraded,
    _heartbeats_of_a_classic_group,
    _a_member_of_a_group_without_a_name_is_in_its_epoch,
    _a_streams_group_waits_with_the_target_of_its_log,
    _a_streams_member_has_an_older_topology,
    _subtopologies_come_in_another_order,
    _share_coordinators_do_not_answer,
    _a_pattern_is_resolved_again,
    _a_classic_member_becomes_one_of_a_consumer_group,
    _a_group_that_was_classic_meanwhile_is_refreshed,
    *STEADY_HEARTBEATS,
]


def main() -> int:
    histories: list[RecordedHistory] = []
    differences = 0
    for release, rule in [*((RELEASE, rule) for rule in RULES), *LATER]:
        script = Script(release)
        rule(script)
        replayer, kept = Replayer(settings(SEED, release)), list[tuple[int, str]]()
        given = [kafka_settings(SEED), *script.steps]
        for step, lines in zip(script.steps, oracle(release).run(given)[1:], strict=True):
            actual, expected = replayer.run(step), kafka_outcome(lines)
            kept.append((checksum(expected.sorted(replayer.requests)), step))
            if actual.sorted(replayer.requests) != expected.sorted(replayer.requests):
                differences += 1
                print(rule.__name__, step, *outcome_lines(actual, replayer.requests), "Kafka's:", sep="\n")
                print(*outcome_lines(expected, replayer.requests), sep="\n")
        histories.append(RecordedHistory(SEED, kept, release))
    write_histories(Path(sys.argv[1]), histories)
    print(f"{len(histories)} histories: {differences} steps differ")
    return 1 if differences else 0


if __name__ == "__main__":
    sys.exit(main())
