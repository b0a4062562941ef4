"""Kafka's known fault is excused where it can be, and nowhere else, in a fetch and in a list of groups."""

from __future__ import annotations

from dataclasses import replace

import pytest

from coordwire.messages import (
    DeleteGroupsRequest,
    ListGroupsRequest,
    ListGroupsResponse,
    OffsetCommitRequest,
    OffsetFetchRequest,
    OffsetFetchResponse,
)
from coordwire.messages.list_groups import ListedGroup
from coordwire.messages.offset_commit import OffsetCommitRequestPartition, OffsetCommitRequestTopic
from tests.coordinator.histories import Outcome, Replayer, request_step
from tests.coordinator.known_faults import without_known_faults
from tests.coordinator.settings import settings

TOPICS = "topics +AAAAAAAAAAEAAAAAAAAABw:3:audit +AAAAAAAAAAIAAAAAAAAABw:3:orders"
COMMIT = OffsetCommitRequest(
    group_id="simple",
    topics=[
        OffsetCommitRequestTopic(
            name=name, partitions=[OffsetCommitRequestPartition(partition_index=1, committed_offset=5)]
        )
        for name in ("audit", "orders")
    ],
)
SEED = 0


def fetched(*between: str) -> tuple[list[str], Outcome]:
    """Steps up to a fetch of all offsets, and its outcome."""
    request = OffsetFetchRequest(group_id="simple", topics=None)
    steps = [TOPICS, request_step(1, COMMIT, 8, 1, "till"), *between, request_step(9, request, 7, 9, "till")]
    replayer = Replayer(settings(SEED))
    outcomes = [replayer.run(step) for step in steps]
    return steps, outcomes[-1].sorted(replayer.requests)


def lacking(outcome: Outcome, *, offset: int = 5) -> Outcome:
    """The same answer without its first topic, and with another offset in what is left, perhaps."""
    response = OffsetFetchResponse.decode(outcome.answers[9], version=7)
    del response.topics[0]
    response.topics[0].partitions[0].committed_offset = offset
    return replace(outcome, answers={9: response.encode(version=7)})


REMOVAL = ("hold", request_step(2, DeleteGroupsRequest(groups_names=["simple"]), 2, 2, "till"))


def test_an_offset_that_is_being_removed_may_be_missing() -> None:
    steps, actual = fetched(*REMOVAL)
    expected = lacking(actual)
    assert expected != actual
    assert without_known_faults(settings(SEED), steps, actual, expected) == actual


@pytest.mark.parametrize("between", [(), ("hold",)])
def test_an_offset_that_stays_may_not(between: tuple[str, ...]) -> None:
    steps, actual = fetched(*between)
    expected = lacking(actual)
    assert without_known_faults(settings(SEED), steps, actual, expected) == expected


def test_another_offset_is_a_difference() -> None:
    steps, actual = fetched(*REMOVAL)
    expected = lacking(actual, offset=6)
    assert without_known_faults(settings(SEED), steps, actual, expected) == expected


def group_list(*between: str) -> tuple[list[str], Outcome]:
    steps = [TOPICS, request_step(1, COMMIT, 8, 1, "till"), *between]
    steps.append(request_step(9, ListGroupsRequest(), 2, 9, "till"))
    replayer = Replayer(settings(SEED))
    outcomes = [replayer.run(step) for step in steps]
    return steps, outcomes[-1].sorted(replayer.requests)


def answering(outcome: Outcome, *group_ids: str) -> Outcome:
    response = ListGroupsResponse(groups=[ListedGroup(group_id=group_id) for group_id in group_ids])
    return replace(outcome, answers={9: response.encode(version=2)})


@pytest.mark.parametrize("group_ids", [(), ("simple", "simple")])
def test_a_group_may_be_missing_or_listed_twice_while_one_is_being_removed(
    group_ids: tuple[str, ...],
) -> None:
    steps, actual = group_list(*REMOVAL)
    expected = answering(actual, *group_ids)
    assert expected != actual
    assert without_known_faults(settings(SEED), steps, actual, expected) == actual


@pytest.mark.parametrize("between", [(), ("hold",)])
def test_groups_are_listed_once_where_none_is_being_removed(between: tuple[str, ...]) -> None:
    steps, actual = group_list(*between)
    expected = answering(actual)
    assert without_known_faults(settings(SEED), steps, actual, expected) == expected


def test_a_group_that_is_not_there_is_a_difference() -> None:
    steps, actual = group_list(*REMOVAL)
    expected = answering(actual, "another")
    assert without_known_faults(settings(SEED), steps, actual, expected) == expected
