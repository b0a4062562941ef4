"""`GroupUnderTest`: one group, as its coordinator has it now, and as a test waits for it.

    kafka.group("g").stable(members=2)              in code that blocks
    await kafka.group("g").stable(members=2)        in a coroutine

Strategy: while a test waits, it asks the coordinator as a client would, after each request that the broker
has handled. Rule: a group is stable when its coordinator reports so and, for a consumer group, every member
has its target assignment.
"""

from __future__ import annotations

import concurrent.futures
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from coordwire.broker.broker import Broker
from coordwire.broker.harness.cluster_view import ask_coordinator
from coordwire.broker.injection.waits import Settled
from coordwire.broker.thread import BrokerThread
from coordwire.embedded import Embedded, open_embedded
from coordwire.messages import (
    ConsumerGroupDescribeRequest,
    ConsumerProtocolAssignment,
    DescribeGroupsRequest,
)

_TIMEOUT = 10.0


@dataclass(frozen=True, slots=True)
class MemberSnapshot:
    """A member of a group. partitions: what it is given, as topics and numbers."""

    id: str
    client_id: str
    instance_id: str | None = None
    partitions: frozenset[tuple[str, int]] = frozenset()


@dataclass(frozen=True, slots=True)
class GroupSnapshot:
    """A group as its coordinator describes it. state: Kafka's word, "Dead" for a group that is not there.
    kind: "classic" or "consumer". settled: whether all members have what they are to have."""

    id: str
    state: str = "Dead"
    kind: str = "classic"
    assignor: str = ""
    members: list[MemberSnapshot] = field(default_factory=list)
    settled: bool = True

    @property
    def is_stable(self) -> bool:
        return self.state == "Stable" and self.settled

    def __str__(self) -> str:
        names = ", ".join(f"{member.client_id} {len(member.partitions)}" for member in self.members)
        return f"the group is {self.state}, with members (partitions): {names or 'none'}"


class GroupUnderTest:
    """One group of a broker on a thread of its own.

    >>> from coordwire.broker.harness import Kafka
    >>> with Kafka() as kafka:
    ...     len(kafka.group("orders").state.members)
    0
    """

    def __init__(self, thread: BrokerThread, group_id: str) -> None:
        self.id = group_id
        self._thread = thread

    def __repr__(self) -> str:
        return f"<GroupUnderTest {self.id!r} of {self._thread.broker!r}>"

    @property
    def state(self) -> GroupSnapshot:
        """The group's state now."""
        return self._thread.call(lambda broker: _described(broker, self.id))

    def stable(self, *, members: int | None = None, timeout: float = _TIMEOUT) -> Settled[GroupSnapshot]:
        """Until it is stable, with so many members; blocks, or is awaited in a coroutine."""
        of = "" if members is None else f" with {members} members"
        return self.wait(
            lambda group: group.is_stable and members in (None, len(group.members)),
            f"the group {self.id} to be stable{of}",
            timeout=timeout,
        )

    def empty(self, *, timeout: float = _TIMEOUT) -> Settled[GroupSnapshot]:
        """Until it has no members."""
        return self.wait(
            lambda group: not group.members, f"the group {self.id} to have no members", timeout=timeout
        )

    def wait(
        self, condition: Callable[[GroupSnapshot], Any], description: str, *, timeout: float = _TIMEOUT
    ) -> Settled[GroupSnapshot]:
        """Until a condition of the state holds. Raises `TimeoutError`, with `description` and the state."""
        reached: concurrent.futures.Future[GroupSnapshot] = concurrent.futures.Future()
        last = [GroupSnapshot(self.id)]

        def look(broker: Broker) -> bool:
            if reached.done():
                return True
            try:
                last[0] = _described(broker, self.id)
                holds = condition(last[0])
            except Exception as error:  # the condition's own, which its test gets
                reached.set_exception(error)
                return True
            if holds and reached.set_running_or_notify_cancel():
                reached.set_result(last[0])
            return bool(holds)

        self._thread.call(lambda broker: None if look(broker) else broker.watchers.append(look))
        return self._thread.faults.waits.settle(reached, timeout, description, lambda: str(last[0]))


def _described(broker: Broker, group_id: str) -> GroupSnapshot:
    cluster = broker.cluster
    answer: Any = ask_coordinator(cluster, group_id, ConsumerGroupDescribeRequest(group_ids=[group_id]), 1)
    group = answer.groups[0]
    if not group.error_code:
        members = [
            MemberSnapshot(member.member_id, member.client_id, member.instance_id, _places(member.assignment))
            for member in group.members
        ]
        settled = group.assignment_epoch == group.group_epoch and all(
            _places(member.assignment) == _places(member.target_assignment)
            and member.member_epoch == group.group_epoch
            for member in group.members
        )
        return GroupSnapshot(group_id, group.group_state, "consumer", group.assignor_name, members, settled)
    answer = ask_coordinator(cluster, group_id, DescribeGroupsRequest(groups=[group_id]), 5)
    group = answer.groups[0]
    embedded = open_embedded(answer)
    members = [
        MemberSnapshot(
            member.member_id,
            member.client_id,
            member.group_instance_id,
            _assigned(embedded, f"groups[0].members[{number}].member_assignment"),
        )
        for number, member in enumerate(group.members)
    ]
    return GroupSnapshot(group_id, group.group_state or "Dead", "classic", group.protocol_data, members)


def _places(assignment: Any) -> frozenset[tuple[str, int]]:
    return frozenset(
        (topic.topic_name, index) for topic in assignment.topic_partitions for index in topic.partitions
    )


def _assigned(embedded: Mapping[str, Embedded], path: str) -> frozenset[tuple[str, int]]:
    opened = embedded.get(path)
    message = None if opened is None else opened.message
    if not isinstance(message, ConsumerProtocolAssignment):
        return frozenset()
    return frozenset(
        (topic.topic, index) for topic in message.assigned_partitions for index in topic.partitions
    )
