"""Written histories, each for a rule that random ones seldom show.

`python -m tests.coordinator.rule_histories FILE` runs them on Kafka's coordinator and ours, and stores
them with Kafka's outcomes, for tests without Java.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from pathlib import Path
from uuid import UUID

from coordwire.codec import Message
from coordwire.messages import (
    ConsumerGroupDescribeRequest,
    ConsumerGroupHeartbeatRequest,
    DescribeGroupsRequest,
    HeartbeatRequest,
    JoinGroupRequest,
    LeaveGroupRequest,
    OffsetCommitRequest,
    OffsetFetchRequest,
    SyncGroupRequest,
)
from coordwire.messages.join_group import JoinGroupRequestProtocol
from coordwire.messages.leave_group import MemberIdentity
from coordwire.messages.offset_commit import OffsetCommitRequestPartition, OffsetCommitRequestTopic
from coordwire.messages.sync_group import SyncGroupRequestAssignment
from tests.coordinator.comparison import outcome_lines
from tests.coordinator.histories import Replayer, kafka_outcome, request_step
from tests.coordinator.oracle import oracle
from tests.coordinator.recorded_histories import RecordedHistory, checksum, write_histories
from tests.coordinator.settings import kafka_settings, settings

__all__ = ["RULES"]

_TOPICS = "topics +AAAAAAAAAAEAAAAAAAAABw:3:audit +AAAAAAAAAAIAAAAAAAAABw:3:orders"
_SUBSCRIPTION = bytes.fromhex("00000000000100056175646974ffffffff")
"""Of the topic "audit"."""

_FAIL = "fail NOT_ENOUGH_REPLICAS"


class _Script:
    """A history that grows."""

    def __init__(self) -> None:
        self.steps = [_TOPICS]
        self.now = 1_000
        self._ticket = 0

    def ask(self, message: Message, version: int) -> str:
        """Add a request; returns the id that a new member of the classic protocol gets by it."""
        self._ticket += 1
        number = self._ticket << 20
        self.steps.append(request_step(self._ticket, message, version, number, "till"))
        prefix = getattr(message, "group_instance_id", None) or "till"
        return f"{prefix}-{UUID(int=number, version=4)}"

    def wait(self, milliseconds: int) -> None:
        self.now += milliseconds
        self.steps.append(f"advance {self.now}")


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


def _retention_starts_when_the_group_is_empty(script: _Script) -> None:
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


def _the_last_members_of_a_pattern_leave_at_once(script: _Script) -> None:
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


def _members_leave_in_a_batch_that_fails(script: _Script) -> None:
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
        script.steps.append(_FAIL)
        script.ask(LeaveGroupRequest(group_id="g", members=leaving), 5)
        script.ask(ConsumerGroupDescribeRequest(group_ids=["g"]), 1)
    script.ask(LeaveGroupRequest(group_id="g", members=leaving), 5)
    for member_id in ("a", "b"):
        script.ask(ConsumerGroupHeartbeatRequest(group_id="g", member_id=member_id, member_epoch=1), 1)


def _a_static_member_comes_back_and_its_record_fails(script: _Script) -> None:
    """The member before is in the group again, with its own session time-out, which begins then."""
    member_id = script.ask(_join(instance="i"), 5)
    script.wait(3_000)
    script.ask(_sync(member_id, "i"), 5)
    script.wait(4_000)
    script.steps.append(_FAIL)
    script.ask(_join(instance="i", session_ms=25_000), 5)
    script.ask(DescribeGroupsRequest(groups=["g"]), 5)
    script.wait(8_000)
    script.ask(_beat(member_id), 4)
    script.wait(9_000)
    script.ask(_beat(member_id), 4)
    script.wait(12_000)
    script.ask(DescribeGroupsRequest(groups=["g"]), 5)


def _a_static_member_that_is_back_expires_where_it_is_silent(script: _Script) -> None:
    member_id = script.ask(_join(instance="i"), 5)
    script.wait(3_000)
    script.ask(_sync(member_id, "i"), 5)
    script.steps.append(_FAIL)
    script.ask(_join(instance="i", session_ms=25_000), 5)
    script.wait(9_900)
    script.ask(DescribeGroupsRequest(groups=["g"]), 5)
    script.wait(200)
    script.ask(DescribeGroupsRequest(groups=["g"]), 5)


def _a_custom_assignors_group_is_not_upgraded(script: _Script) -> None:
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


RULES: list[Callable[[_Script], None]] = [
    _retention_starts_when_the_group_is_empty,
    _the_last_members_of_a_pattern_leave_at_once,
    _members_leave_in_a_batch_that_fails,
    _a_static_member_comes_back_and_its_record_fails,
    _a_static_member_that_is_back_expires_where_it_is_silent,
    _a_custom_assignors_group_is_not_upgraded,
]


def main() -> int:
    histories: list[RecordedHistory] = []
    differences = 0
    for rule in RULES:
        script = _Script()
        rule(script)
        seed = 0  # of the settings: bidirectional migration
        replayer, kept = Replayer(settings(seed)), list[tuple[int, str]]()
        for step, lines in zip(
            script.steps, oracle().run([kafka_settings(seed), *script.steps])[1:], strict=True
        ):
            actual, expected = replayer.run(step), kafka_outcome(lines)
            kept.append((checksum(expected.sorted(replayer.requests)), step))
            if actual.sorted(replayer.requests) != expected.sorted(replayer.requests):
                differences += 1
                print(rule.__name__, step, *outcome_lines(actual, replayer.requests), "Kafka's:", sep="\n")
                print(*outcome_lines(expected, replayer.requests), sep="\n")
        histories.append((seed, kept))
    write_histories(Path(sys.argv[1]), histories)
    print(f"{len(histories)} histories: {differences} steps differ")
    return 1 if differences else 0


if __name__ == "__main__":
    sys.exit(main())
