"""Our coordinator and Kafka's agree, answer by answer and record by record, on random histories."""

from __future__ import annotations

import pytest

from tests.coordinator.compare import first_difference
from tests.coordinator.coverage import TRANSITIONS, Coverage
from tests.coordinator.generator import SETTINGS, history
from tests.coordinator.histories import Replayer
from tests.coordinator.kept import checksum, read_kept
from tests.coordinator.oracle import oracle
from tests.interop.conftest import give_up
from tests.interop.maven import Unavailable

FRESH = 20
"""Histories that Kafka's own coordinator judges; `python -m tests.coordinator.compare` takes more."""


def test_kept_histories_come_out_as_kafka_made_them() -> None:
    count = 0
    for seed, steps in read_kept():
        replayer = Replayer(SETTINGS)
        for number, (expected, step) in enumerate(steps):
            found = checksum(replayer.run(step).sorted(replayer.requests))
            assert found == expected, f"history {seed}, step {number}: {step}"
        count += 1
    assert count >= 100


def test_histories_reach_what_they_are_for() -> None:
    coverage = Coverage()
    for seed in range(30):
        history(seed, 200, coverage)
    for api, codes in {
        "JoinGroup": {"NONE", "UNKNOWN_MEMBER_ID", "INCONSISTENT_GROUP_PROTOCOL", "MEMBER_ID_REQUIRED",
                      "INVALID_SESSION_TIMEOUT", "GROUP_MAX_SIZE_REACHED", "FENCED_INSTANCE_ID"},
        "SyncGroup": {"NONE", "UNKNOWN_MEMBER_ID", "ILLEGAL_GENERATION", "REBALANCE_IN_PROGRESS",
                      "INCONSISTENT_GROUP_PROTOCOL", "NOT_COORDINATOR"},
        "Heartbeat": {"NONE", "UNKNOWN_MEMBER_ID", "ILLEGAL_GENERATION", "REBALANCE_IN_PROGRESS"},
        "LeaveGroup": {"NONE", "UNKNOWN_MEMBER_ID"},
        "OffsetCommit": {"NONE", "OFFSET_METADATA_TOO_LARGE", "UNKNOWN_TOPIC_OR_PARTITION",
                         "UNKNOWN_TOPIC_ID", "ILLEGAL_GENERATION", "UNKNOWN_MEMBER_ID", "REBALANCE_IN_PROGRESS",
                         "COORDINATOR_NOT_AVAILABLE", "NOT_COORDINATOR"},
        "OffsetDelete": {"NONE", "GROUP_SUBSCRIBED_TO_TOPIC", "GROUP_ID_NOT_FOUND", "NON_EMPTY_GROUP"},
        "DeleteGroups": {"NONE", "NON_EMPTY_GROUP", "GROUP_ID_NOT_FOUND"},
    }.items():  # fmt: skip
        assert codes <= set(coverage.errors[api]), api
    assert {"GroupMetadata v3", "GroupMetadata tombstone", "OffsetCommit v1", "OffsetCommit v4"} <= set(
        coverage.records
    )
    alive = {(before.value, after.value) for before, after in TRANSITIONS if after.value != "Dead"}
    assert alive <= set(coverage.transitions)


@pytest.mark.maven
@pytest.mark.parametrize("seed", range(1_000_000, 1_000_000 + FRESH))
def test_kafka_agrees(seed: int) -> None:
    try:
        oracle()
    except Unavailable as error:
        give_up(error)
    difference = first_difference(seed)
    assert difference is None, str(difference)
