"""A member of a group that sends what it is told to, and only that: requests that no client library sends.

Strategy: one connection of `coordwire.Connection`, on which requests are sent with or without waiting for
their answers. Rules: a raw member is silent unless it is asked to send; its process is ours, so that it is
"killed" by closing its socket.
"""

from __future__ import annotations

import socket
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from coordwire import Connection, Role
from coordwire.codec import Message
from coordwire.connection.events import ResponseReceived
from coordwire.messages import (
    ConsumerGroupHeartbeatRequest,
    HeartbeatRequest,
    JoinGroupRequest,
    LeaveGroupRequest,
    SyncGroupRequest,
)
from coordwire.messages.consumer_group_heartbeat import ConsumerGroupHeartbeatRequestTopicPartitions
from coordwire.messages.join_group import JoinGroupRequestProtocol
from coordwire.messages.leave_group import MemberIdentity

__all__ = ["RawClassic", "RawConsumer"]

SUBSCRIPTION = b"\0\0" + b"\0\0\0\1" + b"\0\6orders" + b"\xff\xff\xff\xff"
"""ConsumerProtocolSubscription of version 0: one topic, no user data."""


class _Raw:
    def __init__(self, port: int, client_id: str, group: str) -> None:
        self.group = group
        self._client = Connection(Role.CLIENT, client_id=client_id)
        self._socket = socket.create_connection(("127.0.0.1", port), timeout=20)
        self._answers: list[Any] = []
        self._lock = threading.Lock()

    def send(self, request: Message, version: int) -> None:
        self._socket.sendall(self._client.send(request, version=version))

    def receive(self) -> Any:
        """The next answer."""
        while not self._answers:
            self._client.receive_data(self._socket.recv(65536))
            for event in self._client.events():
                if isinstance(event, ResponseReceived):
                    self._answers.append(event.response)
        return self._answers.pop(0)

    def ask(self, request: Message, version: int) -> Any:
        with self._lock:
            self.send(request, version)
            return self.receive()

    def close(self) -> None:
        self._socket.close()


class RawClassic(_Raw):
    """A member of a classic group by JoinGroup 9, SyncGroup 5, Heartbeat 4 and LeaveGroup 5."""

    member_id = ""
    generation = -1

    def joining(self, member_id: str) -> JoinGroupRequest:
        protocol = JoinGroupRequestProtocol(name="range", metadata=SUBSCRIPTION)
        return JoinGroupRequest(
            group_id=self.group, session_timeout_ms=2000, rebalance_timeout_ms=5000, member_id=member_id,
            protocol_type="consumer", protocols=[protocol],
        )  # fmt: skip

    def leaving(self) -> LeaveGroupRequest:
        return LeaveGroupRequest(group_id=self.group, members=[MemberIdentity(member_id=self.member_id)])

    def join(self) -> None:
        """A first JoinGroup, which gives it an id, a second one, and a SyncGroup of a follower."""
        self.member_id = self.ask(self.joining(""), 9).member_id
        answer = self.ask(self.joining(self.member_id), 9)
        self.generation = answer.generation_id
        self.ask(
            SyncGroupRequest(
                group_id=self.group, generation_id=self.generation, member_id=self.member_id,
                protocol_type="consumer", protocol_name="range",
            ), 5,
        )  # fmt: skip

    def heartbeat(self, generation: int) -> int:
        code: int = self.ask(
            HeartbeatRequest(group_id=self.group, generation_id=generation, member_id=self.member_id), 4
        ).error_code
        return code


class RawConsumer(_Raw):
    """A member of a KIP-848 group by ConsumerGroupHeartbeat 1, that revokes nothing if it is told so."""

    def __init__(self, port: int, client_id: str, group: str, member_id: str) -> None:
        super().__init__(port, client_id, group)
        self.member_id, self.epoch = member_id, 0
        self.has: Any = []
        self.keeps = False

    def join(self) -> None:
        self._take(
            self.ask(
                ConsumerGroupHeartbeatRequest(
                    group_id=self.group, member_id=self.member_id, member_epoch=0, rebalance_timeout_ms=2000,
                    subscribed_topic_names=["orders"], topic_partitions=[],
                ), 1,
            )
        )  # fmt: skip

    def heartbeat(self, epoch: int | None = None) -> int:
        """One heartbeat, which says what it has. Returns the error code."""
        answer = self.ask(
            ConsumerGroupHeartbeatRequest(
                group_id=self.group, member_id=self.member_id,
                member_epoch=self.epoch if epoch is None else epoch, topic_partitions=_owned(self.has),
            ), 1,
        )  # fmt: skip
        self._take(answer)
        code: int = answer.error_code
        return code

    @contextmanager
    def beating(self, seconds: float = 0.4) -> Iterator[None]:
        """Heartbeats at intervals while something else is done; no more after the first that is refused."""
        event = threading.Event()

        def beat() -> None:
            while not event.wait(seconds) and not self.heartbeat():
                pass

        thread = threading.Thread(target=beat)
        thread.start()
        try:
            yield
        finally:
            event.set()
            thread.join()

    def _take(self, answer: Any) -> None:
        if not answer.error_code:
            self.epoch = answer.member_epoch
            if answer.assignment is not None and not (self.keeps and self.has):
                self.has = answer.assignment.topic_partitions


def _owned(given: Any) -> list[ConsumerGroupHeartbeatRequestTopicPartitions]:
    return [
        ConsumerGroupHeartbeatRequestTopicPartitions(topic_id=one.topic_id, partitions=list(one.partitions))
        for one in given
    ]
