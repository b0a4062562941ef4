"""A classic group as its coordinator's log has it: the last record that names members, and committed offsets.

Rules: a group counts with its last members, also where it has lost them since, which `since` says. A topic
has as many partitions as assignments and commits show; one that neither shows has none.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace

from coordwire.coordinator.model.embedded_protocol import (
    ImpossibleLength,
    MalformedProtocol,
    assignment_data,
    read_named_assignment,
    read_subscription,
)
from coordwire.messages import GroupMetadataKey, GroupMetadataValue
from coordwire.messages.classic_group_records import MemberMetadata
from coordwire.timeline.from_log.coordinator_log import CoordinatorRecord, LogItem

COOPERATIVE = "cooperative-sticky"


@dataclass(frozen=True, slots=True, kw_only=True)
class RecordedMember:
    """A member. name: its instance id, else its client id, with a number where several have the same.
    topics: to which it subscribes, owned: its partitions; empty where malformed, as `problem` says.
    data: what a custom assignor added to its assignment. assignors: that it offers, the group's alone where
    the log is the source."""

    name: str
    record: MemberMetadata
    topics: tuple[str, ...] = ()
    owned: tuple[tuple[str, int], ...] = ()
    data: bytes | None = None
    assignors: tuple[str, ...] = ()
    problem: str = ""

    @property
    def is_cooperative(self) -> bool:
        """Whether it keeps its partitions while it joins again."""
        return set(self.assignors) == {COOPERATIVE}


@dataclass(frozen=True, slots=True, kw_only=True)
class RecordedGroup:
    """partitions: of each topic that is subscribed, as far as the source shows. since: what became of it
    after this record: "" nothing, "empty", "consumer", "deleted"."""

    group_id: str
    value: GroupMetadataValue
    version: int
    members: tuple[RecordedMember, ...]
    partitions: Mapping[str, int] = field(default_factory=dict)
    since: str = ""

    @property
    def topics(self) -> list[str]:
        """The topics of all members."""
        return sorted({topic for member in self.members for topic in member.topics})


def find_groups(items: Iterable[LogItem]) -> dict[str, RecordedGroup]:
    """The classic groups that a log has, or had, members of, by id. Items of a partition come in order."""
    known: dict[str, tuple[GroupMetadataValue, int]] = {}
    since: dict[str, str] = {}
    commits: dict[str, dict[str, int]] = {}
    for item in items:
        group_id = item.group if isinstance(item, CoordinatorRecord) else None
        if group_id is None or not isinstance(item, CoordinatorRecord):
            continue
        if item.topic is not None and item.partition is not None:
            _see(commits.setdefault(group_id, {}), item.topic, item.partition)
        elif item.kind == "ConsumerGroupMetadata":
            since[group_id] = "consumer"
        elif isinstance(item.key, GroupMetadataKey):
            if isinstance(item.value, GroupMetadataValue) and item.value.members:
                known[group_id] = item.value, item.version or 0
                since[group_id] = ""
            else:
                since[group_id] = "deleted" if item.value is None else "empty"
    return {
        group_id: recorded_group(group_id, value, version, commits.get(group_id, {}), since[group_id])
        for group_id, (value, version) in known.items()
    }


def recorded_group(
    group_id: str,
    value: GroupMetadataValue,
    version: int,
    partitions: Mapping[str, int],
    since: str = "",
    assignors: Mapping[str, tuple[str, ...]] | None = None,
) -> RecordedGroup:
    """The group of a record. partitions: of topics, as far as commits or answers show. assignors: that
    members offer, by their ids, where that is known."""
    elected = () if value.protocol is None else (value.protocol,)
    members = [_member(member, (assignors or {}).get(member.member_id, elected)) for member in value.members]
    counts = {topic: 0 for member in members for topic in member.topics}
    for topic in counts:
        counts[topic] = partitions.get(topic, 0)
    for member in members:
        for topic, partition in member.owned:
            _see(counts, topic, partition)
    return RecordedGroup(
        group_id=group_id, value=value, version=version, members=_named(members), partitions=counts,
        since=since,
    )  # fmt: skip


def _see(partitions: dict[str, int], topic: str, partition: int) -> None:
    partitions[topic] = max(partitions.get(topic, 0), partition + 1)


def _member(record: MemberMetadata, assignors: tuple[str, ...]) -> RecordedMember:
    name = record.group_instance_id or record.client_id
    member = RecordedMember(name=name, record=record, assignors=assignors)
    try:
        topics = tuple(dict.fromkeys(read_subscription(record.subscription).topics))
    except (MalformedProtocol, ImpossibleLength):
        return replace(member, problem="its subscription is malformed")
    if not record.assignment:
        return replace(member, topics=topics)
    try:
        assigned = read_named_assignment(record.assignment)
        data = assignment_data(record.assignment)
    except (MalformedProtocol, ImpossibleLength):
        return replace(member, topics=topics, problem="its assignment is malformed")
    owned = tuple((topic, index) for topic, indexes in assigned for index in indexes if index >= 0)
    return replace(member, topics=topics, owned=owned, data=data)


def _named(members: list[RecordedMember]) -> tuple[RecordedMember, ...]:
    """The members under names of their own, in the order of these."""
    members = sorted(members, key=lambda member: (member.name, member.record.member_id))
    shared = Counter(member.name for member in members)
    named, numbers = [], Counter[str]()
    for member in members:
        numbers[member.name] += 1
        name = f"{member.name} #{numbers[member.name]}" if shared[member.name] > 1 else member.name
        named.append(replace(member, name=name))
    return tuple(named)
