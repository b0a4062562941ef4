"""What members' messages hold: subscriptions, assignments, topics' ids."""

from __future__ import annotations

from base64 import urlsafe_b64encode
from collections.abc import Iterable
from itertools import islice
from typing import Any
from uuid import UUID

from coordwire.embedded import Embedded
from coordwire.groups.members import Member, Owned
from coordwire.groups.timeline_events import TopicPartition
from coordwire.messages import ConsumerProtocolAssignment, ConsumerProtocolSubscription

__all__ = ["changed", "given", "id_text", "owned", "partitions_of", "subscribe", "wanted_topics"]

MOST_PARTITIONS = 10_000
"""So many partitions of one member are remembered."""

MOST_LISTED = 100
"""So many topics are listed in the text of a cause."""


def owned(topics: Iterable[tuple[str, Iterable[int]]]) -> Owned:
    """The partitions of some topics, as far as they are remembered."""
    every = (TopicPartition(topic, number) for topic, numbers in topics for number in numbers)
    return frozenset(islice(every, MOST_PARTITIONS))


def partitions_of(topics: Iterable[Any]) -> Owned:
    """The partitions in a message's list of topics with `topic` and `partitions`."""
    return owned((part.topic, part.partitions) for part in topics)


def given(inside: Embedded | None) -> Owned | None:
    """The partitions of a consumer's assignment; None for what is not a consumer's, or not read whole."""
    message = None if inside is None else inside.message
    if inside is None or inside.deviation is not None or not isinstance(message, ConsumerProtocolAssignment):
        return None
    return partitions_of(message.assigned_partitions)


def subscribe(member: Member, inside: Embedded | None) -> None:
    """Take over what a consumer's subscription says."""
    message = None if inside is None else inside.message
    if isinstance(message, ConsumerProtocolSubscription):
        member.topics = tuple(sorted(message.topics))
        member.owned = partitions_of(message.owned_partitions)


def wanted_topics(request: Any) -> tuple[str, ...] | None:
    """The topics that a heartbeat subscribes to, patterns in slashes; None for no change."""
    if hasattr(request, "topology"):
        topology = request.topology
        if topology is None:
            return None
        return tuple(sorted({topic for part in topology.subtopologies for topic in part.source_topics}))
    names, regex = request.subscribed_topic_names, getattr(request, "subscribed_topic_regex", None)
    if names is None and not regex:
        return None
    return (*sorted(names or ()), *([f"/{regex}/"] if regex else ()))


def changed(before: tuple[str, ...], after: tuple[str, ...]) -> str:
    """How a subscription changed, in words."""
    return f"{_listed(before)} → {_listed(after)}"


def _listed(topics: tuple[str, ...]) -> str:
    more = len(topics) - MOST_LISTED
    text = ", ".join(topics[:MOST_LISTED]) or "nothing"
    return f"{text} and {more} more" if more > 0 else text


def id_text(topic_id: UUID) -> str:
    """A topic's id as Kafka prints it."""
    return urlsafe_b64encode(topic_id.bytes).decode().rstrip("=")
