"""A client for tests that block: coordwire's own connection over a plain socket."""

from __future__ import annotations

import socket
from types import TracebackType
from typing import Any, Self, TypeVar

from coordwire import Connection, Response
from coordwire.codec import Request
from coordwire.connection.events import ResponseReceived
from coordwire.messages import (
    ConsumerProtocolAssignment,
    ConsumerProtocolSubscription,
    HeartbeatRequest,
    JoinGroupRequest,
    OffsetCommitRequest,
    SyncGroupRequest,
)
from coordwire.messages.consumer_protocol import ConsumerProtocolAssignmentTopicPartition
from coordwire.messages.join_group import JoinGroupRequestProtocol
from coordwire.messages.offset_commit import OffsetCommitRequestPartition, OffsetCommitRequestTopic
from coordwire.messages.sync_group import SyncGroupRequestAssignment

R = TypeVar("R", bound=Response)


class BlockingPeer:
    """One connection."""

    def __init__(self, bootstrap: str, client_id: str = "peer") -> None:
        host, _, port = bootstrap.split(",")[0].rpartition(":")
        self.socket = socket.create_connection((host, int(port)), 20)
        self.connection = Connection("client", client_id=client_id)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.socket.close()

    def ask(self, request: Request[R], version: int) -> R:
        """The answer to a request."""
        self.socket.sendall(self.connection.send(request, version=version))
        while (event := self.connection.next_event()) is None:
            data = self.socket.recv(1 << 16)
            if not data:
                raise ConnectionResetError("the broker has closed the connection")
            self.connection.receive_data(data)
        assert isinstance(event, ResponseReceived)
        response: Any = event.response
        return response  # type: ignore[no-any-return]

    def join(self, group: str, topic: str, partitions: int) -> JoinGroupRequest:
        """Be the only member of a group, with all partitions of a topic; what asks for the same again."""
        subscription = ConsumerProtocolSubscription(topics=[topic]).encode(version=1)
        request = JoinGroupRequest(
            group_id=group,
            session_timeout_ms=10_000,
            rebalance_timeout_ms=10_000,
            protocol_type="consumer",
            protocols=[JoinGroupRequestProtocol(name="range", metadata=b"\0\1" + subscription)],
        )
        joined = self.ask(request, 3)
        assert joined.error_code == 0
        data = ConsumerProtocolAssignment(
            assigned_partitions=[
                ConsumerProtocolAssignmentTopicPartition(topic=topic, partitions=list(range(partitions)))
            ]
        ).encode(version=1)
        answer = self.ask(
            SyncGroupRequest(
                group_id=group,
                generation_id=joined.generation_id,
                member_id=joined.member_id,
                assignments=[
                    SyncGroupRequestAssignment(member_id=joined.member_id, assignment=b"\0\1" + data)
                ],
            ),
            2,
        )
        assert answer.error_code == 0
        request.member_id = joined.member_id
        return request

    def beat(self, member: JoinGroupRequest, generation: int = 1) -> int:
        """The error code that a heartbeat gets."""
        request = HeartbeatRequest(
            group_id=member.group_id, generation_id=generation, member_id=member.member_id
        )
        return self.ask(request, 2).error_code

    def commit(self, member: JoinGroupRequest, topic: str, offset: int, generation: int = 1) -> int:
        """Commit an offset of the first partition; the error code."""
        request = OffsetCommitRequest(
            group_id=member.group_id,
            generation_id_or_member_epoch=generation,
            member_id=member.member_id,
            topics=[
                OffsetCommitRequestTopic(
                    name=topic,
                    partitions=[OffsetCommitRequestPartition(partition_index=0, committed_offset=offset)],
                )
            ],
        )
        return self.ask(request, 5).topics[0].partitions[0].error_code
