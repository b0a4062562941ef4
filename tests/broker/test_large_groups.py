"""Groups of very many members: work linear in their number, and the limit."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from coordwire.broker.settings.broker_config import BrokerConfig
from coordwire.enums import ErrorCode
from coordwire.messages import (
    ConsumerProtocolSubscription,
    HeartbeatRequest,
    JoinGroupRequest,
    LeaveGroupRequest,
    SyncGroupRequest,
)
from coordwire.messages.join_group import JoinGroupRequestProtocol
from coordwire.messages.leave_group import MemberIdentity
from coordwire.messages.sync_group import SyncGroupRequestAssignment
from tests.broker.core import Core
from tests.growth import assert_linear

DELAY = 3_000
CHARGES = {"heapreplace": lambda *_: 1}
"""It takes a logarithm of what it is given."""


def core(**coordinator: Any) -> Core:
    config = replace(BrokerConfig().coordinator, initial_rebalance_delay_ms=DELAY, **coordinator)
    return Core(topics={"orders": 1}, coordinator=config)


def join() -> JoinGroupRequest:
    return JoinGroupRequest(
        group_id="large",
        session_timeout_ms=60_000,
        rebalance_timeout_ms=60_000,
        protocol_type="consumer",
        protocols=[JoinGroupRequestProtocol(name="range", metadata=b"m")],
    )


def lives(members: int) -> None:
    """So many members join, get what the leader assigned, send a heartbeat, and leave."""
    group_core = core()
    waiting = [group_core.begin(join(), 3)[0] for _ in range(members)]
    for _ in range(30):
        group_core.pass_time(DELAY)
        if waiting[0]:
            break
    joined: list[Any] = [answers[0] for answers in waiting]
    (leader,) = [answer for answer in joined if answer.members]
    assert len({member.member_id for member in leader.members}) == members
    synced = []
    for answer in sorted(joined, key=lambda answer: answer is leader):
        assignments = [
            SyncGroupRequestAssignment(member_id=member.member_id, assignment=b"x")
            for member in (leader.members if answer is leader else ())
        ]
        request = SyncGroupRequest(
            group_id="large",
            generation_id=answer.generation_id,
            member_id=answer.member_id,
            assignments=assignments,
        )
        synced.append(group_core.begin(request, 3)[0])
    group_core.pass_time(1)
    assert all(answers and answers[0].assignment == b"x" for answers in synced)  # type: ignore[attr-defined]
    for answer in joined:
        beat = HeartbeatRequest(
            group_id="large", generation_id=answer.generation_id, member_id=answer.member_id
        )
        assert group_core.ask(beat, 3).error_code == 0
    for answer in joined:
        leave = LeaveGroupRequest(group_id="large", members=[MemberIdentity(member_id=answer.member_id)])
        assert group_core.ask(leave, 3).error_code == 0


def test_the_work_of_a_group_is_linear_in_its_members() -> None:
    lives(600)  # the hashes of ids are kept
    assert_linear(lambda n: n, lives, n=150, charges=CHARGES)


@pytest.mark.long
def test_a_group_of_a_hundred_thousand_members() -> None:
    lives(100_000)


def test_the_size_of_a_group_is_bounded_as_kafkas_is() -> None:
    group_core = core(group_max_size=3)
    waiting = [group_core.begin(join(), 3)[0] for _ in range(5)]
    group_core.pass_time(DELAY * 5)
    codes = [answers[0].error_code for answers in waiting]  # type: ignore[attr-defined]
    assert codes == [0, 0, 0, *[ErrorCode.GROUP_MAX_SIZE_REACHED] * 2]


def test_a_join_of_ten_megabytes_is_answered() -> None:
    """Metadata that Kafka can't read, of whatever size, keep the group from its generation, as in Kafka."""
    subscription = ConsumerProtocolSubscription(topics=["orders"], user_data=b"m" * 10_000_000)
    request = join()
    request.protocols[0].metadata = bytes(2) + subscription.encode(version=0)
    group_core = core()
    answers, _ = group_core.begin(request, 3)
    group_core.pass_time(DELAY)
    (answer,) = answers
    assert (answer.error_code, answer.generation_id) == (0, 1)  # type: ignore[attr-defined]
