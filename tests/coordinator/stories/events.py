"""A group's story, by its events: who came and went, and the generations that became steady."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace

from coordwire.timeline.events import GroupEvent, MemberJoined, MemberLeft, RebalanceBegan, RebalanceEnded

MS = 1_000_000


@dataclass(slots=True)
class _Steady:
    """A generation that became steady. passed: the causes since the last one, with who caused them."""

    ended: RebalanceEnded
    passed: list[RebalanceBegan] = field(default_factory=list)


@dataclass(slots=True)
class GroupStory:
    joined: list[MemberJoined] = field(default_factory=list)
    leavers: list[MemberLeft] = field(default_factory=list)
    steady: list[_Steady] = field(default_factory=list)
    ended: list[RebalanceEnded] = field(default_factory=list)
    members: set[str] = field(default_factory=set)
    instances: dict[str, str] = field(default_factory=dict)
    open: list[RebalanceBegan] = field(default_factory=list)


def story(events: Iterable[GroupEvent], reloaded: Sequence[tuple[int, set[str]]] = ()) -> GroupStory:
    """reloaded: when a coordinator loaded the group, and who is in by the log."""
    story_of_group = GroupStory()
    loads = list(reversed(reloaded))
    for event in events:
        while loads and loads[-1][0] <= ns(event):
            story_of_group.members = set(loads.pop()[1])
        if isinstance(event, MemberJoined):
            story_of_group.joined.append(event)
            if event.instance_id is not None:
                before = story_of_group.instances.get(event.instance_id, event.member_id)
                story_of_group.members.discard(before)
                story_of_group.instances[event.instance_id] = event.member_id
            story_of_group.members.add(event.member_id)
        elif isinstance(event, MemberLeft):
            story_of_group.leavers.append(event)
            if event.how != "left_for_now":
                story_of_group.members.discard(event.member_id)
        elif isinstance(event, RebalanceBegan):
            story_of_group.open.append(event)
        elif isinstance(event, RebalanceEnded):
            story_of_group.ended.append(event)
            if event.outcome in ("steady", "empty"):
                story_of_group.steady.append(_Steady(event, story_of_group.open))
                story_of_group.open = []
    return story_of_group if not loads else replace(story_of_group, members=set(loads[0][1]))


def kind_at(events: Iterable[GroupEvent], when_ns: int) -> str | None:
    """What a group was at a time, by the last event that says it."""
    kinds = [getattr(event, "kind", None) for event in events if ns(event) <= when_ns]
    return next(filter(None, reversed(kinds)), None)


def ns(event: GroupEvent) -> int:
    return event.time_ns or 0


def apart(first: GroupEvent, second: GroupEvent) -> float:
    return abs(ns(first) - ns(second)) / MS


def at(event: GroupEvent) -> str:
    return f"{ns(event) / 1e9 % 10_000:.3f}"
