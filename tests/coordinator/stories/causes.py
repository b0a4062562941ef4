"""Whether a generation's cause and its begin are as the coordinator has them."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import NamedTuple

from coordwire.timeline.events import Cause, RebalanceBegan, RebalanceEnded
from tests.coordinator.stories.events import MS, at
from tests.coordinator.stories.excuses import UNWRITTEN

BEGIN_MS = 400
"""How near a rebalance's begin is told, where a member caused it."""

SHOWN_MS = 7_000
"""The coordinator's own doing shows with a member's next heartbeat."""

JOINS: set[Cause] = {"first_member", "new_member", "static_member_returned", "member_rejoined"}

ALIKE: dict[Cause, set[Cause]] = {
    "first_member": {"first_member"},
    "new_member": {"new_member"},
    "static_member_returned": {"static_member_returned"},
    "member_left": {"member_left"},
    "session_timeout": {"session_timeout"},
    "member_removed": {"member_removed", "session_timeout"},
    "subscription_changed": {"subscription_changed"},
    "assignment_changed": {"assignment_changed", "unknown"},
    "leader_rejoined": {"leader_rejoined", "coordinator_moved"},
    "member_rejoined": {"member_rejoined", "coordinator_moved"},
    "partitions_revoked": {"partitions_revoked"},
    "unknown": {"unknown", "leader_rejoined", "member_rejoined", "assignment_changed"},
}
"""What may be told of each true cause."""

CAUSE_OF: dict[str, Cause] = {
    "left": "member_left", "session_timeout": "session_timeout", "not_rejoined": "member_removed",
}  # fmt: skip


class Difference(NamedTuple):
    """what: its kind; text: what differs."""

    problem: str
    text: str


def cause_of(
    name: str,
    passed: Sequence[RebalanceBegan],
    reported: Sequence[RebalanceEnded],
    member_ids: set[str],
    also: set[Cause],
    excuse: Callable[[str], bool],
) -> Iterator[Difference]:
    """also: causes that the coordinator took together with those that passed."""
    allowed = {
        cause for rebalance in passed for cause in ALIKE.get(rebalance.cause, {rebalance.cause})
    } | also
    last = reported[-1]
    unknown = any(rebalance.cause == "unknown" for rebalance in passed)
    if (
        allowed
        and not any(rebalance.cause in allowed for rebalance in reported)
        and last.cause in JOINS
        and unknown
    ):
        excuse(UNWRITTEN)  # a write failed, and a member came before anybody was told so
        return
    if allowed and not any(rebalance.cause in allowed for rebalance in reported):
        yield Difference("cause", f"{name}: told {last.cause} {last.member_id}; {_causes(passed)}")
        return
    named = {rebalance.member_id for rebalance in reported if rebalance.member_id}
    known = all(rebalance.cause != "unknown" for rebalance in passed)
    if known and member_ids and named and not member_ids & named:
        yield Difference("by whom", f"{name}: told {last.cause} {sorted(named)}; {_causes(passed)}")


def begin_of(
    name: str, passed: Sequence[RebalanceBegan], begins: Sequence[int], first: RebalanceEnded
) -> Iterator[Difference]:
    if not passed or first.began_ns is None:
        return
    own = any(rebalance.cause in ("assignment_changed", "unknown") for rebalance in passed)
    late = SHOWN_MS if own else BEGIN_MS
    if not min(begins) - BEGIN_MS * MS <= first.began_ns <= max(begins) + late * MS:
        yield Difference("begin", f"{name}: told from {first.began_ns / 1e9 % 10_000:.3f}; {_causes(passed)}")


def _causes(passed: Sequence[RebalanceBegan]) -> str:
    return "true: " + ", ".join(
        f"{rebalance.cause} {rebalance.member_id} {at(rebalance)}" for rebalance in passed
    )
