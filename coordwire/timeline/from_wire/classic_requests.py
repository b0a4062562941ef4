"""What the requests of classic members say: who joins as what, and whom a LeaveGroup takes out."""

from __future__ import annotations

from typing import Any

from coordwire.capture.entries import FrameEntry
from coordwire.timeline.consumer_data import subscribe_by_offer
from coordwire.timeline.group import Group
from coordwire.timeline.members import Member

__all__ = ["joining_member", "leavers"]


def joining_member(entry: FrameEntry, message: Any, host: str | None) -> Member:
    """A member as its JoinGroup describes it."""
    member = Member(
        message.member_id, entry.client_id, host, message.group_instance_id,
        protocols=tuple(one.name for one in message.protocols),
        session_timeout_ms=message.session_timeout_ms, classic=True,
        rebalance_timeout_ms=max(message.rebalance_timeout_ms, 0) or message.session_timeout_ms,
    )  # fmt: skip
    for offer in message.protocols[:1]:
        subscribe_by_offer(member, offer, message.protocol_type)
    return member


def leavers(group: Group, request: Any, message: Any = None) -> list[tuple[str, str | None]]:
    """Whom a LeaveGroup takes out, by its answer, with their reasons. message: None before it is answered."""
    answered = () if message is None else message.members
    refused = {(one.member_id, one.group_instance_id) for one in answered if one.error_code}
    found = []
    for one in [request, *request.members]:
        instance_id = getattr(one, "group_instance_id", None)
        static = group.members.of_instance(instance_id)
        name = one.member_id or (static.member_id if static else "")
        if name and (one.member_id, instance_id) not in refused:
            found.append((name, getattr(one, "reason", None)))
    return found
