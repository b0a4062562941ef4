"""Subscriptions, assignments and topics' ids in members' messages.

Strategy: the same bytes come again and again (the leader sends each member's assignment, and all members
subscribe alike), so the decoded values of short messages are remembered, within bounds.
"""

from __future__ import annotations

from collections.abc import Iterable
from functools import lru_cache
from itertools import islice
from typing import Any, TypeVar
from uuid import UUID

from coordwire.codec import Struct
from coordwire.codec.primitives import uuid_text
from coordwire.embedded import Embedded, open_field
from coordwire.messages import ConsumerProtocolAssignment, ConsumerProtocolSubscription
from coordwire.timeline.events import TopicPartition
from coordwire.timeline.members import Member, Owned

T = TypeVar("T")

MOST_PARTITIONS = 10_000
"""So many partitions of one member are remembered."""

REMEMBERED, LONGEST = 1024, 1024
"""So many assignments and subscriptions are remembered, of so many bytes at most."""

MOST_LISTED = 100
"""So many topics are listed in the text of a cause."""


_new = tuple.__new__  # a named tuple's own goes through a function


def owned(topics: Iterable[tuple[str, Iterable[int]]]) -> Owned:
    """The partitions of some topics, as far as they are remembered."""
    every: list[TopicPartition] = []
    for topic, numbers in topics:
        every += [_new(TopicPartition, (topic, number)) for number in islice(numbers, MOST_PARTITIONS)]
        if len(every) >= MOST_PARTITIONS:
            break
    return frozenset(every[:MOST_PARTITIONS])


def partitions_of(topics: Iterable[Any]) -> Owned:
    """The partitions in a message's list of topics with `topic` and `partitions`."""
    return owned((part.topic, part.partitions) for part in topics)


def assigned_partitions(content: Embedded | None) -> Owned | None:
    """The partitions of a consumer's assignment; None for another, or one not read whole."""
    message = None if content is None else content.message
    if (
        content is None
        or content.deviation is not None
        or not isinstance(message, ConsumerProtocolAssignment)
    ):
        return None
    return partitions_of(message.assigned_partitions)


def assignment_of(value: Any, kind: str | None) -> Owned | None:
    """`assigned_partitions` of a struct's field `assignment`, for this protocol type."""
    key = type(value), value.assignment, kind or None
    partitions = _ASSIGNMENTS.get(key)
    if partitions is None:
        cls, data, kind = key
        partitions = _keep(_ASSIGNMENTS, key, assigned_partitions(open_field(cls, "assignment", data, kind)))
    return partitions


def subscribe(member: Member, content: Embedded | None) -> None:
    """Set a member's topics and owned partitions to those of a consumer's subscription."""
    _take_over(member, _subscription_in(content))


def subscribe_by_offer(member: Member, offer: Any, kind: str | None) -> None:
    """`subscribe` by the metadata of a JoinGroup's protocol, for this protocol type."""
    key = type(offer), offer.metadata, kind or None
    subscription = _SUBSCRIPTIONS.get(key)
    if subscription is None:
        cls, data, kind = key
        subscription = _keep(_SUBSCRIPTIONS, key, _subscription_in(open_field(cls, "metadata", data, kind)))
    _take_over(member, subscription)


_Key = tuple[type[Struct], bytes, str | None]
_Subscription = tuple[tuple[str, ...], Owned]
_ASSIGNMENTS: dict[_Key, Owned] = {}
_SUBSCRIPTIONS: dict[_Key, _Subscription] = {}
"""By the struct, its bytes and the protocol type."""


def _keep(known: dict[_Key, T], key: _Key, value: T | None) -> T | None:
    """Remember a value, within bounds; at the bound all values are dropped."""
    if value is not None and len(key[1]) <= LONGEST:
        if len(known) >= REMEMBERED:
            known.clear()
        known[key] = value
    return value


def _subscription_in(content: Embedded | None) -> _Subscription | None:
    message = None if content is None else content.message
    if not isinstance(message, ConsumerProtocolSubscription):
        return None
    return tuple(sorted(message.topics)), partitions_of(message.owned_partitions)


def _take_over(member: Member, subscription: _Subscription | None) -> None:
    if subscription is not None:
        member.topics, member.owned = subscription


def wanted_topics(request: Any, before: tuple[str, ...] = ()) -> tuple[str, ...] | None:
    """The topics that a heartbeat subscribes to, patterns in slashes; None for no change. before: the topics
    of its member, or of the member that it replaces: names and pattern change separately."""
    if hasattr(request, "topology"):
        topology = request.topology
        if topology is None:
            return None
        return tuple(sorted({topic for part in topology.subtopologies for topic in part.source_topics}))
    names, regex = request.subscribed_topic_names, getattr(request, "subscribed_topic_regex", None)
    if names is None and (regex is None or (not regex and not has_pattern(before))):
        return None
    had = before[-1:] if has_pattern(before) else ()
    pattern = had if regex is None else (f"/{regex}/",) if regex else ()
    return (*(before[: len(before) - len(had)] if names is None else sorted(names)), *pattern)


def has_pattern(topics: tuple[str, ...]) -> bool:
    """Whether one of the topics is a pattern, which the coordinator resolves later."""
    return bool(topics) and topics[-1].startswith("/")


def changed(before: tuple[str, ...], after: tuple[str, ...]) -> str:
    """A subscription's change, in words."""
    return f"{_topics_text(before)} → {_topics_text(after)}"


def _topics_text(topics: tuple[str, ...]) -> str:
    excess = len(topics) - MOST_LISTED
    text = ", ".join(topics[:MOST_LISTED]) or "nothing"
    return f"{text} and {excess} more" if excess > 0 else text


@lru_cache(REMEMBERED)
def id_text(topic_id: UUID) -> str:
    """A topic's id as Kafka prints it."""
    return uuid_text(topic_id)
