"""Conversations of groups, scripted frame by frame, as the entries that a capture would give."""

from __future__ import annotations

from types import UnionType
from typing import Any, Literal

from coordwire.capture.entries import ConnectionEnd, Entry, FrameEntry
from coordwire.codec import Message
from coordwire.connection.dialect import Direction
from coordwire.messages import (
    ConsumerProtocolAssignment,
    ConsumerProtocolSubscription,
    DescribeConfigsRequest,
    DescribeConfigsResponse,
    HeartbeatRequest,
    HeartbeatResponse,
    JoinGroupRequest,
    JoinGroupResponse,
    LeaveGroupRequest,
    LeaveGroupResponse,
    SyncGroupRequest,
    SyncGroupResponse,
)
from coordwire.messages.consumer_protocol import (
    ConsumerProtocolAssignmentTopicPartition,
    ConsumerProtocolSubscriptionTopicPartition,
)
from coordwire.messages.describe_configs import DescribeConfigsResourceResult, DescribeConfigsResult
from coordwire.messages.join_group import JoinGroupRequestProtocol, JoinGroupResponseMember
from coordwire.messages.leave_group import MemberIdentity
from coordwire.messages.sync_group import SyncGroupRequestAssignment
from coordwire.timeline.events import GroupEvent
from coordwire.timeline.from_wire.timeline import timeline

SECOND = 1_000_000_000
START = 1_700_000_000 * SECOND
Share = dict[str, list[int]]


def subscription(*topics: str, owned: Share | None = None) -> bytes:
    parts = [
        ConsumerProtocolSubscriptionTopicPartition(topic=topic, partitions=numbers)
        for topic, numbers in (owned or {}).items()
    ]
    message = ConsumerProtocolSubscription(topics=list(topics), user_data=None, owned_partitions=parts)
    return b"\x00\x01" + message.encode(version=1)


def assignment(share: Share) -> bytes:
    parts = [
        ConsumerProtocolAssignmentTopicPartition(topic=topic, partitions=numbers)
        for topic, numbers in share.items()
    ]
    message = ConsumerProtocolAssignment(assigned_partitions=parts, user_data=None)
    return b"\x00\x01" + message.encode(version=1)


class Script:
    """One group's conversation. `now` is in seconds; each frame takes a millisecond. broker: the address of
    who is asked; port: the clients', another one for new connections."""

    broker = "broker:9092"
    port = 1

    def __init__(self, group: str = "g", capture: str = "script") -> None:
        self.group = group
        self.capture = capture
        self.entries: list[Entry | ConnectionEnd] = []
        self.now = 0.0

    def frame(
        self, message: Message, direction: Direction, client: str, request: FrameEntry | None = None,
        version: int | None = None,
    ) -> FrameEntry:  # fmt: skip
        cls = type(message)
        api_version = cls.versions[-1] if version is None else version
        if request is not None:
            api_version = request.api_version or 0
        entry = FrameEntry(
            capture=self.capture, number=len(self.entries) + 1,
            flow=f"{client}:{self.port} > {self.broker}" if request is None else request.flow,
            time_ns=START + int(self.now * SECOND), direction=direction, body=b"", api_key=cls.api_key,
            api_version=api_version, body_version=api_version, correlation_id=1, client_id=client,
            message=message, request=request,
        )  # fmt: skip
        self.entries.append(entry)
        self.now += 0.001
        return entry

    def ask(self, message: Message, client: str, version: int | None = None) -> FrameEntry:
        return self.frame(message, "request", client, version=version)

    def answer(self, request: FrameEntry, message: Message) -> FrameEntry:
        return self.frame(message, "response", request.client_id or "", request)

    def events(self, *, ends: bool = False) -> list[GroupEvent]:
        return list(timeline(self.entries, ends=ends))

    def close(self, *clients: str, sender: Literal["client", "broker"] = "client") -> None:
        """FINs of their connections to the broker."""
        for client in clients:
            self.entries.append(ConnectionEnd(
                capture=self.capture, flow=f"{client}:{self.port} > {self.broker}",
                time_ns=START + int(self.now * SECOND), sender=sender, kind="fin",
            ))  # fmt: skip

    # --- the classic protocol ---

    def join(
        self, client: str, *topics: str, owned: Share | None = None, instance: str | None = None,
        member: str | None = None, reason: str | None = None, timeout_ms: int = 10_000,
    ) -> FrameEntry:  # fmt: skip
        """A JoinGroup request; the member is "CLIENT-id" unless told."""
        protocol = JoinGroupRequestProtocol(
            name="range", metadata=subscription(*(topics or ("t",)), owned=owned)
        )
        request = JoinGroupRequest(
            group_id=self.group, session_timeout_ms=timeout_ms, protocol_type="consumer", reason=reason,
            member_id=f"{client}-id" if member is None else member, group_instance_id=instance,
            protocols=[protocol],
        )  # fmt: skip
        return self.ask(request, client)

    def joined(
        self, generation: int, leader: str, *asked: FrameEntry, members: list[str] | None = None
    ) -> None:
        """The answers to some JoinGroups, the leader's with all members."""
        names = [f"{entry.client_id}-id" for entry in asked] if members is None else members
        for one in asked:
            name = f"{one.client_id}-id"
            listed = [JoinGroupResponseMember(member_id=name) for name in names] if name == leader else []
            self.answer(one, JoinGroupResponse(
                generation_id=generation, protocol_type="consumer", protocol_name="range", leader=leader,
                member_id=name, members=listed,
            ))  # fmt: skip

    def sync(self, generation: int, shares: dict[str, Share]) -> None:
        """All members sync, the first of them as the leader."""
        asked = []
        for number, name in enumerate(shares):
            given = [
                SyncGroupRequestAssignment(member_id=f"{one}-id", assignment=assignment(share))
                for one, share in shares.items()
            ]
            request = SyncGroupRequest(
                group_id=self.group, generation_id=generation, member_id=f"{name}-id",
                assignments=[] if number else given,
            )  # fmt: skip
            asked.append((self.ask(request, name), shares[name]))
        for one, share in asked:
            self.answer(one, SyncGroupResponse(assignment=assignment(share)))

    def rebalance(self, generation: int, shares: dict[str, Share], *asked: FrameEntry) -> None:
        """From the answers to JoinGroup to those to SyncGroup."""
        self.joined(generation, f"{next(iter(shares))}-id", *asked)
        self.sync(generation, shares)

    def heartbeat(self, client: str, generation: int, error_code: int = 0) -> None:
        request = HeartbeatRequest(group_id=self.group, generation_id=generation, member_id=f"{client}-id")
        self.answer(self.ask(request, client), HeartbeatResponse(error_code=error_code))

    def leave(self, client: str, reason: str | None = None) -> None:
        member_identity = MemberIdentity(member_id=f"{client}-id", group_instance_id=None, reason=reason)
        request = self.ask(LeaveGroupRequest(group_id=self.group, members=[member_identity]), client)
        self.answer(request, LeaveGroupResponse())

    def steady(self, *clients: str) -> Script:
        """A group of these members in generation 1, partition n of topic "t" for the n-th of them."""
        asked = [self.join(client) for client in clients]
        self.rebalance(1, {client: {"t": [n]} for n, client in enumerate(clients)}, *asked)
        return self


def says_session_timeout(script: Script, kind: str, timeout_ms: int) -> None:
    """The group's configuration is described."""
    config = DescribeConfigsResourceResult(name=f"{kind}.session.timeout.ms", value=str(timeout_ms))
    result = DescribeConfigsResult(resource_type=32, resource_name=script.group, configs=[config])
    asked = script.ask(DescribeConfigsRequest(), "admin")
    script.answer(asked, DescribeConfigsResponse(results=[result]))


def only(events: list[GroupEvent], kind: type[Any] | UnionType) -> list[Any]:
    return [event for event in events if isinstance(event, kind)]
