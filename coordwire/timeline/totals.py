"""A group's timeline in numbers: what its events amount to.

Strategy: one `GroupStory` a group, fed event by event. Rules: counts and sums, what holds at the end, and
a bounded number of clients, so that it stays small whatever the traffic.
"""

from __future__ import annotations

from collections import Counter, OrderedDict
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import TypeVar

from coordwire.enums import ErrorCode
from coordwire.timeline.events import (
    Cause,
    ClusterFound,
    CoordinatorFound,
    ErrorMet,
    GroupConverted,
    GroupDeleted,
    GroupEvent,
    Kind,
    LagMeasured,
    MemberJoined,
    MemberLeft,
    OffsetCommitted,
    OffsetReset,
    RebalanceBegan,
    RebalanceCost,
    RebalanceEnded,
    TopicPartition,
    Unanswered,
)
from coordwire.timeline.evidence import remember

T = TypeVar("T")

StoryKey = str | tuple[str, str]
"""A group's id; with its cluster where the input shows several."""

MOST_CLIENTS = 10_000
"""So many of one group are remembered."""

MOST_PARTITIONS = 100_000


@dataclass(slots=True)
class GroupStory:
    """What happened to one group. cluster: which one's it is, where the input shows several; parted_ns:
    when a second one showed, of a group that may have events of both from before.

    members: those still in, by id, with their client ids. generations: how many began. rebalances: how many,
    without those that proved not to be needed; rebalancing_ns: the sum of their lengths; unmeasured: of how
    many the length is not known; longest: the longest of them; began_ns: the first's begin, ended_ns: the
    last's end. idle_ns: for how long at least one partition had no consumer; idle: for how long each had
    none, of a bounded number; waited: by how much the lag grew meanwhile.
    caused: by client (None: by no member) the causes of rebalances; shared: clients' ids that several members
    had at a time; restarted: those of a single member at a time whose connections ended, and that came again
    from another connection (who merely leaves and comes may be one process, and so may who asks as a member
    that is out). lag: the last of each partition,
    below 0 where what is committed is beyond the end. errors: how often each code was met.
    """

    group: str
    cluster: str | None = None
    parted_ns: int | None = None
    kind: Kind | None = None
    first_ns: int | None = None
    last_ns: int | None = None
    coordinator: str | None = None
    members: dict[str, str | None] = field(default_factory=dict)
    joined: int = 0
    departed: int = 0
    generations: int = 0
    rebalances: int = 0
    rebalancing_ns: int = 0
    unmeasured: int = 0
    longest: RebalanceEnded | None = None
    began_ns: int | None = None
    ended_ns: int | None = None
    idle_ns: int = 0
    idle: Counter[TopicPartition] = field(default_factory=Counter)
    waited: int = 0
    caused: dict[str | None, Counter[Cause]] = field(default_factory=dict)
    shared: set[str] = field(default_factory=set)
    restarted: set[str] = field(default_factory=set)
    commits: int = 0
    lag: dict[TopicPartition, int] = field(default_factory=dict)
    errors: Counter[int] = field(default_factory=Counter)
    unanswered: int = 0
    _clients: OrderedDict[str, str] = field(default_factory=OrderedDict)  # of members that were in
    _instances: OrderedDict[str, str] = field(default_factory=OrderedDict)  # members of static names
    _under_way: bool = False
    _former: OrderedDict[str, tuple[str, str | None]] = field(default_factory=OrderedDict)
    """By client, the last member of it that went as its connections ended, and its address."""

    _told_out: OrderedDict[str, None] = field(default_factory=OrderedDict)  # members that asked once out
    _present: Counter[str] = field(default_factory=Counter)  # members that are in, by client
    _hosts: OrderedDict[str, str | None] = field(default_factory=OrderedDict)  # of members that were in

    def add(self, event: GroupEvent) -> None:
        """Count one event."""
        if event.time_ns is not None:
            self.first_ns = event.time_ns if self.first_ns is None else min(self.first_ns, event.time_ns)
            self.last_ns = event.time_ns if self.last_ns is None else max(self.last_ns, event.time_ns)
        match event:
            case CoordinatorFound():
                self.coordinator = f"{event.node_id} at {event.host}:{event.port}"
            case MemberJoined():
                self.kind = event.kind
                self.joined += not event.rejoined
                self._joins(event)
            case MemberLeft():
                self._leaves(event)
            case GroupConverted():
                self.kind = event.kind
            case GroupDeleted():
                self.lag.clear()
            case RebalanceBegan():
                self.kind = event.kind
                self.rebalances += 1
                self._under_way = True
            case RebalanceEnded():
                self._ended(event)
            case RebalanceCost():
                self.waited += max(event.lag_after - event.lag_before, 0)
            case OffsetCommitted():
                self.commits += not (event.error_code or event.removed)
            case OffsetReset(offset=None):
                self.lag.pop(TopicPartition(event.topic, event.partition), None)
            case LagMeasured():
                self.lag[TopicPartition(event.topic, event.partition)] = event.lag
            case ErrorMet():
                self.errors[event.error_code] += 1
                if event.error_code == ErrorCode.UNKNOWN_MEMBER_ID and event.member_id:
                    remember(self._told_out, event.member_id, None, MOST_CLIENTS)
            case Unanswered():
                self.unanswered += 1

    def part(self, event: ClusterFound) -> None:
        """A second cluster shows: what was counted so far is taken for the first one's."""
        if self.cluster is None:
            self.cluster, self.parted_ns = event.cluster, event.time_ns

    def _joins(self, event: MemberJoined) -> None:
        if event.instance_id is not None:  # it takes the place of the one before
            self._goes(self._instances.get(event.instance_id, ""))
            remember(self._instances, event.instance_id, event.member_id, MOST_CLIENTS)
        self._goes(event.member_id)
        self.members[event.member_id] = event.client_id
        client = event.client_id or event.member_id
        self._present[client] += 1
        remember(self._clients, event.member_id, client, MOST_CLIENTS)
        remember(self._hosts, event.member_id, event.host, MOST_CLIENTS)
        if self._present[client] > 1 and len(self.shared) < MOST_CLIENTS:
            self.shared.add(client)
        former_id, host = self._former.get(client, ("", event.host))
        is_same = host == event.host or former_id == event.member_id or former_id in self._told_out
        if not is_same and len(self.restarted) < MOST_CLIENTS:
            self.restarted.add(client)

    def _goes(self, member_id: str) -> None:
        if member_id in self.members:
            client = self.members.pop(member_id) or member_id
            self._present[client] -= 1
            if not self._present[client]:
                del self._present[client]

    def _leaves(self, event: MemberLeft) -> None:
        self.departed += 1
        self._goes(event.member_id)
        if event.client_id and event.member_id not in self._clients:  # its coming is not among the events
            remember(self._clients, event.member_id, event.client_id, MOST_CLIENTS)
        if event.ending is not None and event.ending.how in ("closed", "reset"):
            host = self._hosts.get(event.member_id)
            remember(self._former, self._client(event.member_id), (event.member_id, host), MOST_CLIENTS)

    def _client(self, member_id: str) -> str:
        return self._clients.get(member_id, member_id)

    def _ended(self, event: RebalanceEnded) -> None:
        self.idle_ns += event.idle_ns
        for gap in event.idle:
            partition = TopicPartition(gap.topic, gap.partition)
            if partition in self.idle or len(self.idle) < MOST_PARTITIONS:
                self.idle[partition] += gap.until_ns - gap.since_ns
        began, self._under_way = self._under_way, False  # it may be filtered out
        if event.outcome == "not_needed":
            self.rebalances -= began
            return
        self.generations += event.generation not in (None, event.generation_before)
        length = event.length_ns or 0
        self.unmeasured += not length and event.outcome != "empty"
        self.rebalancing_ns += length
        if self.longest is None or length > (self.longest.length_ns or 0):
            self.longest = event
        client = event.client_id if event.member_id is None else self._client(event.member_id)
        if client in self.caused or len(self.caused) < MOST_CLIENTS:
            self.caused.setdefault(client, Counter())[event.cause] += 1
        if event.began_ns is not None:
            self.began_ns = event.began_ns if self.began_ns is None else min(self.began_ns, event.began_ns)
        self.ended_ns = event.ended_ns if event.ended_ns is not None else self.ended_ns


def story_key(event: GroupEvent) -> StoryKey:
    """The story that an event is part of."""
    return event.group if event.cluster is None else (event.group, event.cluster)


def named(by_group: dict[StoryKey, T], cluster: str) -> dict[StoryKey, T]:
    """The same, where those without a cluster's name are this one's."""
    return {(key, cluster) if isinstance(key, str) else key: value for key, value in by_group.items()}


def stories(events: Iterable[GroupEvent]) -> dict[StoryKey, GroupStory]:
    """The stories of all groups that events are about."""
    by_group: dict[StoryKey, GroupStory] = {}
    for event in events:
        if isinstance(event, ClusterFound):
            by_group = named(by_group, event.cluster or "")
            for story in by_group.values():
                story.part(event)
            continue
        key = story_key(event)
        if key not in by_group:
            by_group[key] = GroupStory(event.group, event.cluster)
        by_group[key].add(event)
    return by_group
