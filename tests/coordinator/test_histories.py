"""Our coordinator and Kafka's agree, answer by answer and record by record, on random histories."""

from __future__ import annotations

from dataclasses import dataclass, field

import pytest

from coordwire.coordinator.model.consumer_states import MemberState
from tests.coordinator.compare import first_difference
from tests.coordinator.coverage import TRANSITIONS, Coverage
from tests.coordinator.histories import Replayer
from tests.coordinator.kept import checksum, read_kept
from tests.coordinator.oracle import oracle
from tests.coordinator.settings import settings
from tests.interop.conftest import give_up
from tests.interop.maven import Unavailable

FRESH = 20
"""Histories that Kafka's own coordinator judges; `python -m tests.coordinator.compare` takes more."""


SHARE = 3
"""CI replays every third of the kept histories; `-m long` replays them all, and prints what they reach."""


@dataclass(slots=True)
class _Replayed:
    """What became of the kept histories."""

    count: int = 0
    differences: list[str] = field(default_factory=list)
    coverage: Coverage = field(default_factory=Coverage)


def _replay(share: int) -> _Replayed:
    found = _Replayed()
    for index, (seed, steps) in enumerate(read_kept()):
        found.count += 1
        if index % share:
            continue
        replayer = Replayer(settings(seed))
        for number, (expected, step) in enumerate(steps):
            outcome = replayer.run(step)
            if checksum(outcome.sorted(replayer.requests)) != expected:
                found.differences.append(f"history {seed}, step {number}: {step}")
                break
            found.coverage.add(replayer, outcome)
    return found


@pytest.fixture(scope="module")
def replayed() -> _Replayed:
    return _replay(SHARE)


def test_kept_histories_come_out_as_kafka_made_them(replayed: _Replayed) -> None:
    assert replayed.differences == []
    assert replayed.count >= 700


@pytest.mark.long
def test_all_kept_histories_come_out_as_kafka_made_them(capsys: pytest.CaptureFixture[str]) -> None:
    found = _replay(1)
    assert found.differences == []
    with capsys.disabled():
        print("", *found.coverage.lines(), sep="\n")


CODES = {
    "JoinGroup": {
        *("NONE", "UNKNOWN_MEMBER_ID", "INCONSISTENT_GROUP_PROTOCOL", "MEMBER_ID_REQUIRED"),
        *("INVALID_SESSION_TIMEOUT", "GROUP_MAX_SIZE_REACHED", "FENCED_INSTANCE_ID", "INVALID_GROUP_ID"),
        *("NOT_COORDINATOR", "COORDINATOR_NOT_AVAILABLE"),
    },
    "SyncGroup": {
        *("NONE", "UNKNOWN_MEMBER_ID", "ILLEGAL_GENERATION", "REBALANCE_IN_PROGRESS", "FENCED_INSTANCE_ID"),
        *("INCONSISTENT_GROUP_PROTOCOL", "INVALID_GROUP_ID", "NOT_COORDINATOR", "COORDINATOR_NOT_AVAILABLE"),
    },
    "Heartbeat": {
        *("NONE", "UNKNOWN_MEMBER_ID", "ILLEGAL_GENERATION", "REBALANCE_IN_PROGRESS", "FENCED_INSTANCE_ID"),
        *("INVALID_GROUP_ID", "NOT_COORDINATOR"),
    },
    "LeaveGroup": {"NONE", "UNKNOWN_MEMBER_ID", "FENCED_INSTANCE_ID", "INVALID_GROUP_ID", "NOT_COORDINATOR"},
    "OffsetCommit": {
        *("NONE", "OFFSET_METADATA_TOO_LARGE", "UNKNOWN_TOPIC_OR_PARTITION", "UNKNOWN_TOPIC_ID"),
        *("ILLEGAL_GENERATION", "UNKNOWN_MEMBER_ID", "REBALANCE_IN_PROGRESS", "FENCED_INSTANCE_ID"),
        *("GROUP_ID_NOT_FOUND", "COORDINATOR_NOT_AVAILABLE", "NOT_COORDINATOR"),
        *("STALE_MEMBER_EPOCH", "UNSUPPORTED_VERSION"),
    },
    "OffsetFetch": {
        *("NONE", "UNKNOWN_TOPIC_ID", "NOT_COORDINATOR", "STALE_MEMBER_EPOCH", "UNKNOWN_MEMBER_ID"),
    },
    "ConsumerGroupHeartbeat": {
        *("NONE", "INVALID_REQUEST", "UNSUPPORTED_ASSIGNOR", "INVALID_REGULAR_EXPRESSION"),
        *("GROUP_MAX_SIZE_REACHED", "UNKNOWN_MEMBER_ID", "FENCED_MEMBER_EPOCH", "FENCED_INSTANCE_ID"),
        *("UNRELEASED_INSTANCE_ID", "GROUP_ID_NOT_FOUND", "NOT_COORDINATOR", "COORDINATOR_NOT_AVAILABLE"),
    },
    "ConsumerGroupDescribe": {"NONE", "GROUP_ID_NOT_FOUND", "INVALID_GROUP_ID", "NOT_COORDINATOR"},
    "OffsetDelete": {
        *("NONE", "GROUP_SUBSCRIBED_TO_TOPIC", "GROUP_ID_NOT_FOUND", "NON_EMPTY_GROUP", "INVALID_GROUP_ID"),
    },
    "DescribeGroups": {"NONE", "GROUP_ID_NOT_FOUND", "NOT_COORDINATOR"},
    "DeleteGroups": {"NONE", "NON_EMPTY_GROUP", "GROUP_ID_NOT_FOUND", "NOT_COORDINATOR"},
}


CONSUMER_RECORDS = {
    *("ConsumerGroupMetadata", "ConsumerGroupPartitionMetadata", "ConsumerGroupMemberMetadata"),
    *("ConsumerGroupTargetAssignmentMetadata", "ConsumerGroupTargetAssignmentMember"),
    *("ConsumerGroupCurrentMemberAssignment", "ConsumerGroupRegularExpression"),
}
NEVER_WRITTEN = {"ConsumerGroupPartitionMetadata v0"}
NEVER_ENTERED = {("UNKNOWN", "KIP-848"), ("UNKNOWN", "classic")}
"""What only other releases' coordinators write."""

CONSUMER_TRANSITIONS = {
    ("Empty", "Assigning"), ("Assigning", "Reconciling"), ("Reconciling", "Stable"), ("Assigning", "Stable"),
    ("Stable", "Assigning"), ("Reconciling", "Assigning"), ("Assigning", "Empty"), ("Stable", "Reconciling"),
}  # fmt: skip


@pytest.mark.parametrize("api", CODES)
def test_kept_histories_reach_every_error_code(replayed: _Replayed, api: str) -> None:
    assert CODES[api] - set(replayed.coverage.errors[api]) == set()


def test_kept_histories_reach_every_record_and_transition(replayed: _Replayed) -> None:
    classic = {"GroupMetadata v3", "GroupMetadata tombstone", "OffsetCommit v1", "OffsetCommit v4"}
    kinds = {f"{kind} {form}" for kind in CONSUMER_RECORDS for form in ("v0", "tombstone")}
    assert classic | {"OffsetCommit tombstone"} | kinds - NEVER_WRITTEN == set(replayed.coverage.records)
    members = {(state.name, kind) for state in MemberState for kind in ("KIP-848", "classic")}
    assert members - NEVER_ENTERED == set(replayed.coverage.member_states)
    assert set(replayed.coverage.transitions) >= CONSUMER_TRANSITIONS
    alive = {(before.value, after.value) for before, after in TRANSITIONS if after.value != "Dead"}
    assert alive <= set(replayed.coverage.transitions)


@pytest.mark.maven
@pytest.mark.parametrize("seed", range(1_000_000, 1_000_000 + FRESH))
def test_kafka_agrees(seed: int) -> None:
    try:
        oracle()
    except Unavailable as error:
        give_up(error)
    difference = first_difference(seed)
    assert difference is None, str(difference)
