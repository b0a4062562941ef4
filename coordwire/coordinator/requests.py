"""The map of requests: the handler of every request type that a shard takes, and the kinds of
groups that it knows.

Rules: a request that is invalid whatever the group is like is refused by its handler. A write is answered
after it is durable; DescribeGroups, ListGroups and OffsetFetch without `require_stable` read what is durable
at once. A new kind is a `GroupKind` here, and its requests.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from coordwire.codec import Message
from coordwire.codec.message import refused_version
from coordwire.coordinator import admin, classic_protocol
from coordwire.coordinator.classic.kind import ClassicKind
from coordwire.coordinator.consumer import kind as consumer
from coordwire.coordinator.offsets import handlers as offsets
from coordwire.coordinator.share import kind as share
from coordwire.coordinator.state import GroupKind
from coordwire.coordinator.streams import kind as streams
from coordwire.coordinator.writes import Handler, ImmediateRequest, IncomingRequest, SteadyAnswer

IMMEDIATE: Mapping[type[Message], ImmediateRequest] = {
    **classic_protocol.IMMEDIATE,
    **consumer.IMMEDIATE,
    **streams.IMMEDIATE,
    **share.IMMEDIATE,
}

_HANDLERS: Mapping[type[Message], Handler] = {
    **{request: immediate.route for request, immediate in IMMEDIATE.items()},
    **classic_protocol.HANDLERS,
    **consumer.HANDLERS,
    **streams.HANDLERS,
    **share.HANDLERS,
    **offsets.HANDLERS,
    **admin.HANDLERS,
}

REQUESTS: Mapping[type[Message], frozenset[int]] = {
    request: frozenset(request.versions) for request in _HANDLERS
}
"""The request types of a shard, with their versions."""


STEADY: Mapping[type[Message], Mapping[int, SteadyAnswer | None]] = {
    request: dict.fromkeys(versions, IMMEDIATE[request].steady if request in IMMEDIATE else None)
    for request, versions in REQUESTS.items()
}
"""The fast path of each request type in each version, None where it has none; in a shard that has no
service it finds no group."""


def refused_request(kind: type[Message], version: int) -> Exception:
    """The error for a request that `REQUESTS` does not have, or not in this version."""
    if kind not in REQUESTS:
        return TypeError(f"expected a request to a group coordinator, got {kind.__name__}")
    return refused_version(kind, version)


def route(call: IncomingRequest) -> None:
    """Handle a request whose type is in `REQUESTS`."""
    _HANDLERS[type(call.request)](call)


KINDS: Mapping[str, GroupKind[Any]] = {
    kind.name: kind
    for kind in (ClassicKind(), consumer.ConsumerKind(), share.ShareKind(), streams.StreamsKind())
}
