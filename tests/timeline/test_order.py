"""The order of what a timeline says does not depend on the order of sets, which differs from run to run."""

from __future__ import annotations

import random
from collections import Counter

import pytest

from coordwire.timeline import consumption
from coordwire.timeline.consumption import Consumption
from coordwire.timeline.events import Idle, TopicPartition
from coordwire.timeline.from_wire.reconciliation import Reconciliation

MANY = [TopicPartition(f"topic-{number}", number) for number in range(10, 40)]


def test_former_owners_come_by_their_partitions() -> None:
    group = Reconciliation(shared=False)
    for number, one in enumerate(MANY):
        group.hold(f"m{number}", frozenset([one]))
    owners = list(group.former_owners("heir", frozenset(MANY)))
    assert owners == [f"m{number}" for number in range(len(MANY))]


def test_partitions_beyond_the_limit_are_the_last_ones(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(consumption, "MOST_GAPS", 5)
    group = Consumption()
    group.has("a", frozenset(MANY), 0)
    group.ends("a", 10)
    group.has("b", frozenset(MANY), 30)
    assert [(gap.topic, gap.until_ns - gap.since_ns) for gap in group.take_gaps()] == [
        (one.topic, 20) for one in MANY[:5]
    ]


def test_topics_that_have_one_name_by_now_are_one() -> None:
    old, new = TopicPartition("id of the deleted topic", 0), TopicPartition("id of its successor", 0)
    group = Consumption()
    group.has("a", frozenset([old]), 0)
    group.has("b", frozenset([new]), 0)
    named = group.renamed(lambda topic: "orders")
    named.ends("a", 10)
    named.ends("b", 20)
    named.has("c", frozenset([TopicPartition("orders", 0)]), 50)
    assert [(gap.since_ns, gap.until_ns) for gap in named.take_gaps()] == [(20, 50)]


def test_a_partition_that_has_a_consumer_under_its_new_name_is_not_idle() -> None:
    old, new = TopicPartition("id of the deleted topic", 0), TopicPartition("id of its successor", 0)
    group = Consumption()
    group.has("a", frozenset([old]), 0)
    group.ends("a", 10)
    group.has("b", frozenset([new]), 20)
    named = group.renamed(lambda topic: "orders")
    named.has("c", frozenset([TopicPartition("orders", 0)]), 50)
    assert named.take_gaps() == ()


class OneByOne:
    """What `Consumption` says, from each partition's own consumers. most: so many gaps are kept."""

    def __init__(self, most: int) -> None:
        self.most = most
        self.of: dict[str, frozenset[TopicPartition]] = {}
        self.consumers: Counter[TopicPartition] = Counter()
        self.idle: dict[TopicPartition, int] = {}
        self.gaps: list[Idle] = []

    def has(self, member: str, partitions: frozenset[TopicPartition], time_ns: int | None) -> None:
        before = self.of.pop(member, frozenset())
        if partitions:
            self.of[member] = partitions
        for partition in sorted(before - partitions):
            self.consumers[partition] -= 1
            if not self.consumers[partition] and time_ns is not None and len(self.idle) < self.most:
                self.idle[partition] = time_ns
        for partition in sorted(partitions - before):
            self.consumers[partition] += 1
            since_ns = self.idle.pop(partition, None)
            if since_ns is not None and time_ns is not None and len(self.gaps) < self.most:
                self.gaps.append(Idle(*partition, since_ns, max(time_ns, since_ns)))


@pytest.mark.parametrize("seed", range(20))
def test_consumption_is_that_of_each_partition(seed: int, monkeypatch: pytest.MonkeyPatch) -> None:
    rng = random.Random(seed)
    most = rng.choice((2, 4, 1000))
    monkeypatch.setattr(consumption, "MOST_GAPS", most)
    group, reference = Consumption(), OneByOne(most)
    for step in range(300):
        time_ns = None if rng.random() < 0.05 else step - rng.randrange(5)
        member, partitions = rng.choice("abc"), frozenset(rng.sample(MANY, rng.randrange(len(MANY))))
        if rng.random() < 0.4:
            reference.has(member, reference.of.get(member, frozenset()) & partitions, time_ns)
            group.keeps(member, partitions, time_ns)
        else:
            reference.has(member, partitions, time_ns)
            group.has(member, partitions, time_ns)
        if rng.random() < 0.1:
            assert group.take_gaps() == tuple(sorted(reference.gaps))
            reference.gaps = []
