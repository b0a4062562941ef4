"""Attempts of rebalances by the coordinators of drafts 1 and 2.

Strategy: an attempt is what was seen of it: who was stopped, what each shall start, and who has answered.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field

from coordwire.dialects.draft_registrations import DraftRegistration
from coordwire.timeline.events import TopicPartition
from coordwire.timeline.evidence import Seen
from coordwire.timeline.members import Owned
from coordwire.timeline.rebalance import Trigger


@dataclass(slots=True)
class DraftAttempt:
    """One attempt of a rebalance. number: in it; stopped: the consumers that got a Stop, or a Start; parts:
    what each shall start; started: the partitions of all Starts; covers: whether these are all that are
    known; answered: the consumers that have; missing: how many of these are missing since; failed: whether it
    can't succeed any more; completed: where the last answer was seen, while others may be waited for that
    can't answer, or its end is not paid for yet; given_up: a lost consumer with which it failed then, if it
    was still awaited, and when; reasons: why it may have begun."""

    began: Seen
    number: int = 1
    stopped: dict[str, DraftRegistration] = field(default_factory=dict)
    parts: dict[str, Owned] = field(default_factory=dict)
    started: set[TopicPartition] = field(default_factory=set)
    answered: set[str] = field(default_factory=set)
    missing: int = 0
    failed: bool = False
    covers: bool = False
    completed: Seen | None = None
    given_up: tuple[DraftRegistration, int] | None = None
    reasons: list[tuple[Trigger, Seen]] = field(default_factory=list)


def leaves_none_out(attempt: DraftAttempt) -> bool:
    """Whether all known consumers get partitions, which are divided evenly: if one gets two of a topic."""
    for parts in attempt.parts.values():
        topics = [part.topic.partition("/")[0] for part in parts]
        if len(set(topics)) < len(topics):
            return True
    return False


def most_of_a_topic(parts: set[TopicPartition]) -> int:
    """How many partitions the topic has that has the most."""
    return max(Counter(part.topic.partition("/")[0] for part in parts).values(), default=0)
