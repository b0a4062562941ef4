"""The oracle's own promises: chosen ids, a clock that stands still, failing appends, a log to load."""

from __future__ import annotations

import pytest

from coordwire.codec import Message
from coordwire.messages import HeartbeatRequest, HeartbeatResponse, JoinGroupRequest, JoinGroupResponse
from coordwire.messages.join_group import JoinGroupRequestProtocol
from tests.coordinator.oracle import RELEASES, CoordinatorOracle, oracle
from tests.interop.conftest import give_up
from tests.interop.maven import Unavailable

pytestmark = pytest.mark.maven

MEMBER = "till-00000000-0000-4000-8000-000000000001"


@pytest.fixture(params=RELEASES)
def kafka(request: pytest.FixtureRequest) -> CoordinatorOracle:
    try:
        started = oracle(request.param)
    except Unavailable as error:
        give_up(error)
    started.run(["new"])
    return started


def request(ticket: int, message: Message, version: int) -> str:
    new_id = f"{1:032x}"
    body = message.encode(version=version).hex()
    return f"request {ticket} {message.api_key} {version} {new_id} {b'till'.hex()} {body}"


def join(member_id: str = "") -> JoinGroupRequest:
    return JoinGroupRequest(
        group_id="payments", session_timeout_ms=10_000, rebalance_timeout_ms=60_000, member_id=member_id,
        protocol_type="consumer", protocols=[JoinGroupRequestProtocol(name="range", metadata=b"")],
    )  # fmt: skip


def test_it_uses_the_ids_that_the_driver_chose(kafka: CoordinatorOracle) -> None:
    answer = kafka.run([request(7, join(), 4)])[0][-1].split()
    assert answer[:2] == ["answer", "7"]
    response = JoinGroupResponse.decode(bytes.fromhex(answer[2]), version=4)
    assert (response.error_code, response.member_id) == (79, MEMBER)


def test_time_moves_only_when_told(kafka: CoordinatorOracle) -> None:
    first, timers, early, late = kafka.run([request(1, join(), 3), "timers", "advance 3999", "advance 4000"])
    assert [line.split()[0] for line in first] == ["batch", "record"]
    assert "timer 4000 join-payments" in timers
    assert (early, [line.split()[:2] for line in late]) == ([], [["answer", "1"]])


def test_a_failed_append_is_answered_and_leaves_no_group(kafka: CoordinatorOracle) -> None:
    _, failed, beat = kafka.run(
        [
            "fail NOT_ENOUGH_REPLICAS",
            request(1, join(), 4),
            request(2, HeartbeatRequest(group_id="payments", generation_id=0, member_id=MEMBER), 4),
        ]
    )
    assert failed[0] == "failed NOT_ENOUGH_REPLICAS"
    response = HeartbeatResponse.decode(bytes.fromhex(beat[0].split()[2]), version=4)
    assert response.error_code == 25


def test_it_loads_what_it_wrote(kafka: CoordinatorOracle) -> None:
    written, *_ = kafka.run([request(1, join(), 4), "unload"])
    record = written[1].split()
    loaded, timers = kafka.run([f"load 1 {record[1]}:{record[2]}:-1:0", "timers"])
    assert loaded == []
    assert len(timers) == 2
