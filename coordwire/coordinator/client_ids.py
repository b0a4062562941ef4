"""The ids that clients give themselves, which a request may leave out and a record may not.

Apache Kafka lets a client without one join. It names the member "null-…", and fails when it writes a record
that needs the client's id: the request is answered with UNKNOWN_SERVER_ERROR, and its timers stay.
"""

from __future__ import annotations

from coordwire.coordinator.effects import RequestContext
from coordwire.coordinator.wire_limits import fits
from coordwire.logs import LogRecord
from coordwire.messages import ConsumerGroupMemberMetadataValue, GroupMetadataValue

__all__ = ["NO_CLIENT_ID", "client_id_of", "is_unwritable"]


class _Missing(str):
    """A text of its own, which is not a client's."""

    __slots__ = ()


NO_CLIENT_ID = _Missing("null")
"""Where a client has none. Compare with `is`: some client may call itself "null"."""


def client_id_of(context: RequestContext) -> str:
    return NO_CLIENT_ID if context.client_id is None else context.client_id


def is_unwritable(record: LogRecord) -> bool:
    """Whether a record can't be written, for want of a client's id or of room for a member's."""
    value = record.value
    if not fits(getattr(record.key, "member_id", None)):
        return True
    if isinstance(value, ConsumerGroupMemberMetadataValue):
        return value.client_id is NO_CLIENT_ID
    if isinstance(value, GroupMetadataValue):
        return any(member.client_id is NO_CLIENT_ID or not fits(member.member_id) for member in value.members)
    return False
