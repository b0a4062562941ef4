"""A group coordinator in real time: each request is a coroutine that ends with its answer.

Strategy: a request's ticket leads to a future; whatever changes the coordinator carries out its effects and
sets a timer for its next deadline. Rules: only this module gives the coordinator the time; an append is
confirmed as soon as `append` returns.
"""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Callable
from uuid import uuid4

from coordwire.codec import Message, Request
from coordwire.coordinator import Answer, Append, GroupApis, GroupCoordinator, RequestContext, StateRequest
from coordwire.coordinator.apis import TOPIC_GUARDS
from coordwire.coordinator.shard import ShardStatus
from coordwire.enums import ErrorCode
from coordwire.messages import (
    ConsumerGroupDescribeRequest,
    ConsumerGroupHeartbeatRequest,
    DeleteGroupsRequest,
    DescribeGroupsRequest,
    HeartbeatRequest,
    JoinGroupRequest,
    LeaveGroupRequest,
    ListGroupsRequest,
    OffsetCommitRequest,
    OffsetDeleteRequest,
    OffsetFetchRequest,
    SyncGroupRequest,
)

log = logging.getLogger("coordwire.server")

GROUP_REQUESTS: tuple[type[Request], ...] = (
    OffsetCommitRequest,
    OffsetFetchRequest,
    JoinGroupRequest,
    HeartbeatRequest,
    LeaveGroupRequest,
    SyncGroupRequest,
    DescribeGroupsRequest,
    ListGroupsRequest,
    DeleteGroupsRequest,
    OffsetDeleteRequest,
    ConsumerGroupHeartbeatRequest,
    ConsumerGroupDescribeRequest,
)
"""What needs nothing but a coordinator of groups. Groups of the other kinds need share coordinators, or
topics that are made for them."""

_LONGEST_START = 3_600_000
"""Milliseconds that may pass before a coordinator that has loaded its logs is served."""

_TURN = 10_000
"""Work of a turn of what a coordinator does between requests: some milliseconds."""


class GroupService:
    """One coordinator. append: gets each batch of its log, with the partition's number."""

    def __init__(self, coordinator: GroupCoordinator, append: Callable[[int, bytes], object] | None) -> None:
        self._coordinator = coordinator
        self._apis = GroupApis(coordinator, TOPIC_GUARDS)
        self._append = append
        self._waiting: dict[int, asyncio.Future[Message]] = {}
        self._loop: asyncio.AbstractEventLoop | None = None
        self._alarm: asyncio.TimerHandle | None = None
        self._offset = 0.0

    def start(self) -> None:
        """Take the partitions that the coordinator does not have yet, with empty logs.

        Raises `ValueError` for a coordinator that has loaded logs at another time than this.
        """
        loop = self._loop = asyncio.get_running_loop()
        self._offset = time.time() - loop.time()
        due = self._coordinator.next_deadline()
        if due is not None and due < self._now - _LONGEST_START:  # it would go through all of that time
            reason = f"expected a coordinator at {self._now} ms since 1970, got one with a deadline at {due}"
            raise ValueError(reason)
        for partition in range(self._coordinator.partitions):
            if self._coordinator.status(partition) is ShardStatus.ABSENT:
                self._coordinator.load(partition, [], now=self._now)
        self._settle()

    def stop(self) -> None:
        """Stop the timer; what waits gets no answer."""
        self._loop = None
        if self._alarm is not None:
            self._alarm.cancel()
            self._alarm = None
        for answer in self._waiting.values():
            answer.cancel()
        self._waiting.clear()

    async def handle(self, request: Message, version: int, client_id: str, host: str) -> Message:
        """The coordinator's answer to a request of a client at an address."""
        assert self._loop is not None
        context = RequestContext(client_id=client_id, client_host=f"/{host}", new_id=lambda: str(uuid4()))
        ticket = self._apis.handle(request, version=version, now=self._now, context=context)
        answer: asyncio.Future[Message] = self._loop.create_future()
        self._waiting[ticket] = answer
        self._settle()
        return await answer

    @property
    def _now(self) -> int:
        assert self._loop is not None
        return int((self._offset + self._loop.time()) * 1000)

    def _settle(self) -> None:
        """Carry out the effects, and set the timer."""
        coordinator = self._coordinator
        for effect in self._apis.effects():
            if isinstance(effect, Append):
                self._write(effect)
            elif isinstance(effect, Answer):
                answer = self._waiting.pop(effect.ticket, None)
                if answer is not None and not answer.done():  # its client may be gone
                    answer.set_result(effect.response)
            elif isinstance(effect, StateRequest):  # of a share group that the log has
                code = int(ErrorCode.COORDINATOR_NOT_AVAILABLE)
                coordinator.persisted(effect.partition, effect.number, None, code, now=self._now)
        if self._alarm is not None:
            self._alarm.cancel()
            self._alarm = None
        due = self._now if coordinator.has_work else coordinator.next_deadline()
        if due is not None and self._loop is not None:
            self._alarm = self._loop.call_later(max(0, due - self._now) / 1000, self._ring)

    def _write(self, effect: Append) -> None:
        coordinator, partition, number = self._coordinator, effect.partition, effect.number
        try:
            if self._append is not None:
                self._append(partition, effect.batch(timestamp=self._now))
        except Exception:
            log.exception("a batch of the group coordinator's partition %d was not appended", partition)
            coordinator.failed(partition, number, int(ErrorCode.KAFKA_STORAGE_ERROR), now=self._now)
        else:
            coordinator.appended(partition, number, now=self._now)

    def _ring(self) -> None:
        self._coordinator.advance(self._now)
        self._coordinator.work(_TURN, now=self._now)
        self._settle()
