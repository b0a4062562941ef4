"""What a member subscribes to: names, and the topics that its pattern matches, as far as that is known."""

from __future__ import annotations

from uuid import UUID

from coordwire.coordinator.hash_order import copied_set_capacity, in_hash_order
from coordwire.coordinator.model.consumer_group import ConsumerGroupModel
from coordwire.coordinator.model.consumer_member import ConsumerMember
from coordwire.coordinator.topics import TopicsImage

__all__ = ["ordered_names", "subscribed_ids", "subscribed_names"]


def ordered_names(names: tuple[str, ...]) -> list[str]:
    """Names, some of them twice perhaps, as the HashSet of a subscription has them."""
    return in_hash_order(dict.fromkeys(names), copied_set_capacity(len(names)))


def subscribed_names(group: ConsumerGroupModel, member: ConsumerMember) -> list[str]:
    """Topics, each once; a pattern that is not resolved yet matches none (KIP-848)."""
    resolved = group.resolved.get(member.regex) if member.regex else None
    if resolved is None or not resolved.topics:
        return ordered_names(member.named or member.topics)
    if not member.topics:
        return ordered_names(resolved.topics)
    larger, smaller = resolved.topics, member.named or member.topics
    if len(member.topics) > len(resolved.topics):
        larger, smaller = smaller, larger
    return list(dict.fromkeys([*ordered_names(larger), *ordered_names(smaller)]))


def subscribed_ids(image: TopicsImage, names: list[str]) -> tuple[UUID, ...]:
    """The topics of these names that exist."""
    return tuple(topic.id for topic in map(image.find, names) if topic is not None)
