"""The order of what a timeline says does not depend on the order of sets, which differs from run to run."""

from __future__ import annotations

import random
from collections import defaultdict

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
    """What `Consumption` says, from each partition's own consumers, one point of time after the other. most:
    so many gaps are kept. spans: who had a partition from when until when, the first since ever, the last
    ones until now."""

    def __init__(self, most: int) -> None:
        self.most = most
        self.of: dict[str, frozenset[TopicPartition]] = {}
        self.spans: dict[TopicPartition, dict[str, int | None]] = defaultdict(dict)
        self.past: dict[TopicPartition, list[tuple[int, int]]] = defaultdict(list)
        self.idle: dict[TopicPartition, int] = {}
        self.gaps: list[Idle] = []

    def has(self, member: str, partitions: frozenset[TopicPartition], time_ns: int | None) -> None:
        before = self.of.pop(member, frozenset())
        if partitions:
            self.of[member] = partitions
        given_up = sorted(before - partitions)
        shared = [partition for partition in given_up if len(self.spans[partition]) > 1]
        shared += [partition for partition in given_up if partition not in shared and self.past[partition]]
        for partition in sorted(shared) + [name for name in given_up if name not in shared]:
            self._gives_up(member, partition, time_ns)
        for partition in sorted(partitions - before):
            spans = self.spans[partition]
            spans[member] = (0 if time_ns is None else time_ns) if spans else None
            since_ns = self.idle.pop(partition, None)
            if since_ns is not None and time_ns is not None:
                self._keep(Idle(*partition, since_ns, max(time_ns, since_ns)))

    def _keep(self, gap: Idle) -> None:
        if len(self.gaps) < self.most:
            self.gaps.append(gap)

    def _gives_up(self, member: str, partition: TopicPartition, time_ns: int | None) -> None:
        spans, past = self.spans[partition], self.past[partition]
        since_ns = spans.pop(member)
        if since_ns is not None:  # it was not the first
            past += [(since_ns, time_ns)] if time_ns is not None and time_ns > since_ns else []
            return
        heir = next(iter(spans), None)
        until_ns = None if heir is None else spans[heir]
        covered = {point for begin_ns, end_ns in past for point in range(begin_ns, end_ns)}
        self.past[partition] = []
        if time_ns is not None:
            last = max([time_ns, *(end_ns for _, end_ns in past)])
            begin_ns = None
            for point in range(time_ns, max(last, until_ns or 0) + 2):
                is_idle = point not in covered and (until_ns is None or point < until_ns)
                if is_idle and begin_ns is None:
                    begin_ns = point
                elif not is_idle and begin_ns is not None:
                    self._keep(Idle(*partition, begin_ns, point))
                    begin_ns = None
            if heir is None and len(self.idle) < self.most:
                self.idle[partition] = last
            elif heir is not None:
                told_ns = max(time_ns, until_ns or 0)  # gaps before are told
                self.past[partition] = [(0, told_ns), *(span for span in past if span[1] > told_ns)]
        if heir is not None:
            spans[heir] = None


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
