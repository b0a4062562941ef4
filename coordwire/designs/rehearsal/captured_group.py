"""A classic group as captured traffic shows it: the last generation of which members have their assignments.

Strategy: answered JoinGroups have a generation's members, with all assignors that each offers and its
time-outs; the leader's answer lists those whose own were not captured. SyncGroups have the assignments.

Rules: a member that only the leader's answer shows has the Java client's time-outs. Later generations count
once an assignment of theirs is seen, and a generation's members are those of it alone.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any

from coordwire.capture import FrameEntry
from coordwire.designs.rehearsal.recorded_group import RecordedGroup, recorded_group
from coordwire.messages import (
    ConsumerGroupHeartbeatRequest,
    GroupMetadataValue,
    JoinGroupRequest,
    JoinGroupResponse,
    MetadataResponse,
    SyncGroupRequest,
    SyncGroupResponse,
)
from coordwire.messages.classic_group_records import MemberMetadata

_VERSION = 3
_SESSION_MS, _REBALANCE_MS = 45_000, 300_000
_OLDEST_IDS = "-"
"""Between a client's id and the rest of the member id that a coordinator makes of it."""


@dataclass(slots=True)
class _Generation:
    """What answers show of one. assignors: that members offer, by their ids."""

    value: GroupMetadataValue
    members: dict[str, MemberMetadata] = field(default_factory=dict)
    assignors: dict[str, tuple[str, ...]] = field(default_factory=dict)


@dataclass(slots=True)
class _Group:
    latest: _Generation | None = None
    assigned: _Generation | None = None
    since: str = ""


def find_captured_groups(entries: Iterable[Any]) -> dict[str, RecordedGroup]:
    """The classic groups in a capture's entries, of which a generation has assignments, by id."""
    groups: dict[str, _Group] = {}
    partitions: dict[str, int] = {}
    for entry in entries:
        if not isinstance(entry, FrameEntry) or entry.error is not None or entry.request is None:
            continue
        request, response = entry.request.message, entry.message
        if isinstance(response, MetadataResponse):
            known = {topic.name: len(topic.partitions) for topic in response.topics if topic.name}
            partitions |= {name: count for name, count in known.items() if count}
        elif isinstance(request, JoinGroupRequest) and isinstance(response, JoinGroupResponse):
            if not response.error_code:
                group = groups.setdefault(request.group_id, _Group())
                _join(group, request, response, entry.request.client_id or "")
        elif isinstance(request, SyncGroupRequest) and isinstance(response, SyncGroupResponse):
            if not response.error_code and request.group_id in groups:
                _sync(groups[request.group_id], request, response)
        elif isinstance(request, ConsumerGroupHeartbeatRequest) and request.group_id in groups:
            groups[request.group_id].since = "consumer"
    return {
        group_id: _recorded(group_id, group.assigned, partitions, group.since)
        for group_id, group in groups.items() if group.assigned is not None
    }  # fmt: skip


def _recorded(
    group_id: str, generation: _Generation, partitions: dict[str, int], since: str
) -> RecordedGroup:
    generation.value.members = list(generation.members.values())
    return recorded_group(group_id, generation.value, _VERSION, partitions, since, generation.assignors)


def _join(group: _Group, request: JoinGroupRequest, response: JoinGroupResponse, client_id: str) -> None:
    latest = group.latest
    if latest is None or latest.value.generation != response.generation_id:
        latest = group.latest = _Generation(
            GroupMetadataValue(
                protocol_type=request.protocol_type, generation=response.generation_id,
                protocol=response.protocol_name, leader=response.leader,
            )
        )  # fmt: skip
        group.since = ""
    for joined in response.members:
        latest.members.setdefault(
            joined.member_id,
            MemberMetadata(
                member_id=joined.member_id, group_instance_id=joined.group_instance_id,
                client_id=joined.member_id.split(_OLDEST_IDS)[0], session_timeout=_SESSION_MS,
                rebalance_timeout=_REBALANCE_MS, subscription=joined.metadata,
            ),
        )  # fmt: skip
    metadata = {protocol.name: protocol.metadata for protocol in request.protocols}
    before = latest.members.get(response.member_id)
    latest.assignors[response.member_id] = tuple(metadata)
    latest.members[response.member_id] = MemberMetadata(
        member_id=response.member_id, group_instance_id=request.group_instance_id, client_id=client_id,
        session_timeout=request.session_timeout_ms,
        rebalance_timeout=max(request.rebalance_timeout_ms, 0) or request.session_timeout_ms,
        subscription=metadata.get(response.protocol_name or "", b""),
        assignment=b"" if before is None else before.assignment,
    )  # fmt: skip


def _sync(group: _Group, request: SyncGroupRequest, response: SyncGroupResponse) -> None:
    latest = group.latest
    if latest is None or latest.value.generation != request.generation_id:
        return
    assignments = {row.member_id: row.assignment for row in request.assignments}
    assignments[request.member_id] = response.assignment
    for member_id, assignment in assignments.items():
        if member_id in latest.members:
            latest.members[member_id].assignment = assignment
            group.assigned = latest
