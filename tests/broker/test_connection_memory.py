"""The memory that connections share, without sockets: who gets a grant, who waits, who is closed.

Strategy: connections are records of what happened to them, and the alarm is rung by the test.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

import pytest

from coordwire.broker.connections.connection_memory import PROGRESS, ConnectionMemory

MEGA = 1 << 20
SMALL, LARGE = 16_000, 90 * MEGA
BEGINNING = 4096
"""Bytes that come before a grant is asked for."""


@dataclass(eq=False)
class Client:
    held_bytes: int = 0
    progress: int = 0
    grants: list[int] = field(default_factory=list)
    reason: str = ""

    def granted(self, size: int) -> None:
        self.grants.append(size)

    def evict(self, reason: str) -> None:
        self.reason = reason


class Alarm:
    """The only timer: `ring` runs what was last set."""

    def __init__(self) -> None:
        self._callback: Callable[[], None] | None = None

    def __call__(self, seconds: float, callback: Callable[[], None]) -> Alarm:
        self._callback = callback
        return self

    def ring(self) -> None:
        callback, self._callback = self._callback, None
        assert callback is not None
        callback()

    def cancel(self) -> None:
        self._callback = None


@pytest.fixture
def alarm() -> Alarm:
    return Alarm()


@pytest.fixture
def memory(alarm: Alarm) -> ConnectionMemory:
    return ConnectionMemory(256 * MEGA, alarm)


def fill(memory: ConnectionMemory, count: int = 100) -> list[Client]:
    """So many clients that have sent the beginning of a large frame."""
    clients = [Client() for _ in range(count)]
    for client in clients:
        memory.admit(client, LARGE, BEGINNING)
    return clients


def test_a_frame_that_is_only_announced_gets_no_grant(memory: ConnectionMemory) -> None:
    for _ in range(100):
        assert memory.admit(Client(), LARGE, 4) == 0
    assert memory.used == 0
    assert memory.admit(Client(), LARGE, BEGINNING) == LARGE


def test_a_small_frame_does_not_wait_for_larger_ones(memory: ConnectionMemory) -> None:
    fill(memory)
    assert memory.is_scarce
    assert memory.admit(Client(), SMALL, BEGINNING) == SMALL


def test_larger_frames_leave_a_part_to_small_ones(memory: ConnectionMemory) -> None:
    large = [Client() for _ in range(300)]
    for client in large:
        memory.admit(client, MEGA, BEGINNING)
    assert memory.used == 240 * MEGA
    small = [Client() for _ in range(300)]
    assert all(memory.admit(client, SMALL, BEGINNING) == SMALL for client in small)
    assert memory.used <= memory.most


def test_small_frames_wait_for_small_ones_in_their_order(memory: ConnectionMemory) -> None:
    fill(memory)
    small = [Client() for _ in range(6_000)]
    direct = [client for client in small if memory.admit(client, SMALL, BEGINNING) == SMALL]
    assert memory.used <= memory.most
    waiting = small[len(direct) :]
    assert direct == small[: len(direct)]
    assert waiting
    memory.hold(direct[0], 0)
    assert waiting[0].grants == [SMALL]
    assert not waiting[1].grants


def test_one_large_frame_gets_its_grant_whatever_small_ones_hold(memory: ConnectionMemory) -> None:
    first, second = fill(memory, 2)
    small = [Client() for _ in range(20_000)]
    for client in small:
        memory.admit(client, SMALL, BEGINNING)
    third = Client()
    assert memory.admit(third, LARGE, BEGINNING) is None
    memory.finish(first)
    assert not third.grants
    memory.finish(second)
    assert third.grants == [LARGE]
    assert memory.used <= memory.most + LARGE


def test_holders_without_progress_are_closed_while_others_wait(
    memory: ConnectionMemory, alarm: Alarm
) -> None:
    clients = fill(memory, 4)
    holding = [client for client in clients if client.held_bytes]
    assert len(holding) == 2
    holding[0].progress += PROGRESS
    alarm.ring()
    assert [bool(client.reason) for client in clients] == [False, True, False, False]
    assert clients[2].grants == [LARGE]


def test_nobody_is_closed_who_finished_a_frame_and_began_another(
    memory: ConnectionMemory, alarm: Alarm
) -> None:
    busy = Client()
    fill(memory, 1)
    assert memory.admit(busy, MEGA, BEGINNING) == MEGA
    fill(memory)  # some wait now, and the alarm is set
    memory.finish(busy)
    memory.hold(busy, 0)
    memory.admit(busy, MEGA, BEGINNING)
    alarm.ring()
    assert not busy.reason


def test_what_has_ended_holds_nothing(memory: ConnectionMemory) -> None:
    clients = fill(memory, 10)
    for client in clients:
        memory.forget(client)
    assert memory.used == 0
    assert not memory.is_scarce
