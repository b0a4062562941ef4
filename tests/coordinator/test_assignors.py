"""The assignors: what they promise, and the same choices as Kafka's own, for groups of every size."""

from __future__ import annotations

import base64
import random
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, replace
from uuid import UUID

import pytest

from coordwire.coordinator.assignors import ASSIGNORS, GroupSpec, MemberSpec
from coordwire.coordinator.hash_tables import HashSet
from coordwire.coordinator.model.assignment import Target, target_from_lists
from coordwire.coordinator.refusal import OperationRefused
from coordwire.enums import ErrorCode
from tests.coordinator.oracle import oracle
from tests.interop.conftest import give_up
from tests.interop.maven import Unavailable


@dataclass(frozen=True, slots=True)
class Listed:
    """Partitions of a topic, as a record lists them."""

    topic_id: UUID
    partitions: list[int]


@dataclass(slots=True)
class Group:
    """A random group: topics by name, and of each member its instance id, names and target."""

    topics: dict[str, tuple[UUID, int]]
    members: dict[str, tuple[str | None, list[str], list[Listed]]]
    homogeneous: bool

    def spec(self) -> GroupSpec:
        specs = {}
        known: dict[tuple[UUID, ...], tuple[UUID, ...]] = {}
        for member_id in HashSet.of(self.members):
            instance_id, names, target = self.members[member_id]
            ids = tuple(self.topics[name][0] for name in HashSet.copy_of(names) if name in self.topics)
            # Members with one subscription share it, as those of a coordinator do.
            ids = known.setdefault(ids, ids)
            specs[member_id] = MemberSpec(instance_id, ids, len(names), target_from_lists(target))
        targets = [spec.target for spec in specs.values()]
        return GroupSpec(specs, self.homogeneous, dict(self.topics.values()), targets)

    def command(self, name: str) -> str:
        kind = "HOMOGENEOUS" if self.homogeneous else "HETEROGENEOUS"
        words = ["assign", name, kind]
        for member_id, (instance_id, names, target) in self.members.items():
            topics = ",".join(f"{_text(topic.topic_id)}:{_dotted(topic.partitions)}" for topic in target)
            words.append(f"{member_id};{instance_id or ''};{','.join(names)};{topics}")
        return " ".join(words)


def _text(topic_id: UUID) -> str:
    return base64.urlsafe_b64encode(topic_id.bytes).decode().rstrip("=")


def _dotted(partitions: list[int]) -> str:
    return ".".join(map(str, partitions))


def random_group(seed: int, name: str) -> Group:
    """A group whose members have an earlier target of the same assignor, as far as they were there.

    Subscriptions differ by member, by kind of member, or not at all.
    """
    chance = random.Random(seed)
    count = chance.choice([1, 2, 5, 14, 30])
    topics = {
        f"topic-{index}": (UUID(int=chance.getrandbits(128)), chance.choice([1, 3, 12, 13, 40]))
        for index in range(count)
    }
    homogeneous = chance.random() < 0.5
    names = [*topics, "missing"]
    common = chance.sample(names, chance.randint(1, len(names)))
    kinds = [chance.sample(names, chance.randint(0, len(names))) for _ in range(chance.choice([0, 2, 5]))]

    def subscription() -> list[str]:
        if homogeneous:
            return common
        return chance.choice(kinds) if kinds else chance.sample(names, chance.randint(0, len(names)))

    group = Group(topics, {}, homogeneous)
    for index in range(chance.choice([1, 3, 13, 40])):
        subscribed = subscription()
        instance_id = f"till-{index}" if chance.random() < 0.2 else None
        group.members[f"member-{chance.getrandbits(24):x}"] = instance_id, subscribed, []
    for _ in range(chance.randint(0, 2)):
        targets = ASSIGNORS[name](group.spec())
        for member_id in list(group.members):
            instance_id, subscribed, _before = group.members[member_id]
            topics_owned = [
                Listed(topic, list(indexes)) for topic, indexes in targets.get(member_id, {}).items()
            ]
            group.members[member_id] = instance_id, subscribed, topics_owned
        for topic, (topic_id, partitions) in list(topics.items()):
            if chance.random() < 0.2:
                topics[topic] = topic_id, partitions + chance.randint(1, 9)
        for member_id in chance.sample(list(group.members), len(group.members) // 4):
            del group.members[member_id]
        for _joined in range(chance.randint(0, 3)):
            group.members[f"member-{chance.getrandbits(24):x}"] = None, subscription(), []
    return group


@pytest.mark.parametrize("name", ASSIGNORS)
@pytest.mark.parametrize("seed", range(10))
def test_topics_are_the_same_where_their_ids_are_equal(name: str, seed: int) -> None:
    spec = random_group(seed, name).spec()
    copies = {
        member_id: replace(
            member,
            topics=tuple(UUID(int=topic.int) for topic in member.topics),
            target={UUID(int=topic.int): partitions for topic, partitions in member.target.items()},
        )
        for member_id, member in spec.members.items()
    }
    partitions, expected = ASSIGNORS[name](replace(spec, members=copies)), ASSIGNORS[name](spec)
    assert [(owner, list(target.items())) for owner, target in partitions.items()] == [
        (owner, list(target.items())) for owner, target in expected.items()
    ]


@pytest.mark.parametrize("name", ASSIGNORS)
@pytest.mark.parametrize("seed", range(25))
def test_each_partition_goes_to_one_subscriber(name: str, seed: int) -> None:
    group = random_group(seed, name)
    spec = group.spec()
    targets = ASSIGNORS[name](spec)
    counts: Counter[tuple[UUID, int]] = Counter()
    for member_id, target in targets.items():
        assert set(target) <= set(spec.members[member_id].topics)
        counts.update((topic, partition) for topic, partitions in target.items() for partition in partitions)
    subscribed = {topic for member in spec.members.values() for topic in member.topics}
    subscribed_partitions = {
        (topic, index) for topic in subscribed for index in range(spec.partitions[topic])
    }
    assert counts == Counter(subscribed_partitions)


def test_the_first_member_of_a_range_decides_the_order_of_topics() -> None:
    """A member whose pattern is not resolved yet has no topics where the group's are said to be equal."""
    topics = [UUID(int=0x55EFF17F2B1A39B7115B577BEAC1003C), UUID(int=0x04BB568F0CD6A7A8A33BA1DCF647DBE7),
              UUID(int=0x6E150DA009A758065524E160C32053F3)]  # fmt: skip
    members = {"member-c": MemberSpec(None, (), 0), "member-a": MemberSpec(None, tuple(topics), 3)}
    spec = GroupSpec(members, True, dict.fromkeys(topics, 6))
    first, second, third = topics
    assert {member_id: list(target) for member_id, target in ASSIGNORS["range"](spec).items()} == {
        "member-a": [first, third, second], "member-c": [first, third, second],
    }  # fmt: skip


@pytest.mark.parametrize("seed", range(25))
def test_the_uniform_assignor_balances_equal_subscriptions(seed: int) -> None:
    group = random_group(seed, "uniform")
    spec = group.spec()
    if not spec.homogeneous or not next(iter(spec.members.values())).topics:
        return
    sizes = [
        sum(map(len, ASSIGNORS["uniform"](spec).get(member_id, {}).values())) for member_id in spec.members
    ]
    assert max(sizes) - min(sizes) <= 1


def test_the_uniform_assignor_moves_nothing_without_need() -> None:
    group = random_group(4, "uniform")
    spec = group.spec()
    first = ASSIGNORS["uniform"](spec)
    for member_id, (instance_id, names, _) in list(group.members.items()):
        topics = [Listed(topic, list(partitions)) for topic, partitions in first[member_id].items()]
        group.members[member_id] = instance_id, names, topics
    second = ASSIGNORS["uniform"](group.spec())
    assert _as_sets(second) == _as_sets(first)


def _as_sets(targets: Mapping[str, Target]) -> dict[str, dict[UUID, set[int]]]:
    return {
        member: {topic: set(partitions) for topic, partitions in target.items()}
        for member, target in targets.items()
    }


def shrunk(group: Group, seed: int) -> Group:
    """Members have targets with partitions that topics no longer have, or not yet, in this broker's image."""
    chance = random.Random(seed)
    for name, (topic_id, partitions) in group.topics.items():
        if chance.random() < 0.5:
            group.topics[name] = topic_id, chance.randint(1, partitions)
    return group


@pytest.mark.parametrize("name", ASSIGNORS)
@pytest.mark.parametrize("seed", range(40))
def test_targets_beyond_a_topics_partitions_are_refused_if_at_all(name: str, seed: int) -> None:
    """A broker whose image is older than the log meets them; Kafka's assignors fail, or take them away."""
    spec = shrunk(random_group(seed, name), seed).spec()
    try:
        targets = ASSIGNORS[name](spec)
    except OperationRefused as refusal:
        outcome = refusal.code, name
    else:
        assert set(targets) <= set(spec.members)
        return
    assert outcome == (ErrorCode.UNKNOWN_SERVER_ERROR, "uniform")


def unresolved(group: Group, seed: int) -> Group:
    """A member has no topics, in a group that is said to be homogeneous: its pattern is not resolved yet."""
    chosen_member = random.Random(seed).choice([min(group.members), next(iter(group.spec().members))])
    group.members[chosen_member] = group.members[chosen_member][0], [], []
    return group


def difference(seed: int, name: str) -> str | None:
    """What Kafka's own assignor chooses otherwise, the order of topics and partitions included."""
    group = random_group(seed, name)
    if seed >= 30:
        shrunk(group, seed)
    if seed % 3 == 0 and group.members:
        unresolved(group, seed)
    topics_text = " ".join(
        [
            "topics",
            *(f"+{_text(topic_id)}:{count}:{topic}" for topic, (topic_id, count) in group.topics.items()),
        ]
    )
    expected = oracle().run(["new", topics_text, group.command(name)])[-1]
    try:
        targets = ASSIGNORS[name](group.spec())
    except OperationRefused:
        return None if expected[0].startswith("error ") else f"refused; Kafka's: {expected}"
    actual = sorted(
        " ".join(
            [
                "target",
                member,
                *(f"{_text(topic)}:{_dotted(list(partitions))}" for topic, partitions in target.items()),
            ]
        )
        for member, target in targets.items()
    )
    if actual == sorted(expected):
        return None
    return "\n".join(sorted(set(actual) ^ set(expected)))


@pytest.mark.maven
@pytest.mark.parametrize("name", ASSIGNORS)
def test_kafka_assigns_the_same(name: str) -> None:
    try:
        oracle()
    except Unavailable as error:
        give_up(error)
    differences = {seed: difference(seed, name) for seed in range(90)}
    assert {seed: text for seed, text in differences.items() if text is not None} == {}
