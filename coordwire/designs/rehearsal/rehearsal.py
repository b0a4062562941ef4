"""The rolls of a rehearsal: every order of a small group's members, or a sample by a seed, on each release.

Beside the upgrade, each order is rolled in two more ways, from which its cost and its risk can be judged: the
same restarts without an upgrade, and the way back after it, in the opposite order.

Rules: the coordinator has the limits of session time-outs that the recorded members need, since their broker
let them in.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import permutations
from math import factorial
from random import Random

from coordwire.coordinator import CoordinatorConfig
from coordwire.coordinator.releases import RELEASES
from coordwire.designs.rehearsal.advice import Advice, advice
from coordwire.designs.rehearsal.recorded_group import RecordedGroup
from coordwire.designs.rehearsal.rolling_restart import MemberRefusal, Roll, RollConfig, RollStep, roll

MOST_MEMBERS, MOST_PARTITIONS = 300, 100_000
_ALL_ORDERS, _SAMPLE, _LEAST = 120, 24, 2
"""The most orders of which all are rolled; so many of more; and the fewest, of large groups."""

_ALL_OF_THE_SAMPLE = 10
"""So many members have the whole sample; a roll's cost grows with the square of the members."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RehearsalConfig:
    """releases: of Apache Kafka, whose coordinators are asked. broker: settings by Kafka's names. orders: at
    most so many; None for all of up to five members, 24
    of up to ten, and fewer of more, down to 2. partitions: of topics, where the
    source does not show all."""

    releases: Sequence[str] = RELEASES
    broker: Mapping[str, str] = field(default_factory=dict)
    orders: int | None = None
    partitions: Mapping[str, int] = field(default_factory=dict)
    roll: RollConfig = field(default_factory=RollConfig)


@dataclass(frozen=True, slots=True, kw_only=True)
class ReleaseRehearsal:
    """upgrades, plain: a roll for each order: to the consumer protocol, and without an upgrade. setbacks,
    back: of the orders in which the upgrade is complete, the first member to the consumer protocol and back;
    and all."""

    release: str
    upgrades: tuple[Roll, ...]
    plain: tuple[Roll, ...]
    setbacks: tuple[Roll, ...]
    back: tuple[Roll, ...]

    @property
    def complete(self) -> int:
        """In how many orders the upgrade goes through."""
        return sum(roll.is_complete for roll in self.upgrades)

    @property
    def refusals(self) -> dict[tuple[str, str], list[tuple[Roll, MemberRefusal]]]:
        """By error and text, the orders in which it came, and who got it."""
        refusals: dict[tuple[str, str], list[tuple[Roll, MemberRefusal]]] = {}
        for known in self.upgrades:
            for refusal in known.refusals:
                refusals.setdefault((refusal.error, refusal.text), []).append((known, refusal))
        return refusals

    @property
    def best(self) -> Roll | None:
        """The complete order with the least idle time; of equal ones the first."""
        complete = [roll for roll in self.upgrades if roll.is_complete]
        return min(complete, key=lambda roll: (roll.idle_ms, roll.rebalances), default=None)


@dataclass(frozen=True, slots=True, kw_only=True)
class Rehearsal:
    """possible: how many orders there are."""

    group: RecordedGroup
    possible: int
    releases: tuple[ReleaseRehearsal, ...]
    advice: tuple[Advice, ...]

    @property
    def succeeds(self) -> bool:
        """Whether the upgrade goes through in every order on every release."""
        return all(release.complete == len(release.upgrades) for release in self.releases)


def rehearse(
    group: RecordedGroup,
    config: RehearsalConfig | None = None,
    *,
    on_roll: Callable[[int, int], None] = lambda order, orders: None,
) -> Rehearsal:
    """Roll the group's upgrade. on_roll: called after each order, with its number and how many there are.

    Raises `ValueError` for a release or a broker's setting that is not known, for partitions that are fewer
    than members have, for members without ids of their own, and for a group of more than 300 members or
    100,000 partitions; `Malformed` for a group that its coordinator can't load.
    """
    config = config or RehearsalConfig()
    group = _with_partitions(group, config.partitions)
    names = [member.name for member in group.members]
    orders = list(_orders(names, config.orders, config.roll.seed))
    coordinators = [_coordinator(group, config, release) for release in config.releases]
    releases, number = [], 0
    for coordinator in coordinators:
        upgrades, plain, setbacks, back = [], [], [], []
        for order in orders:
            upgrade = [RollStep(name, "consumer") for name in order]
            plain_restarts = [RollStep(name, "classic") for name in order]
            upgrades.append(roll(group, upgrade, coordinator, config.roll))
            plain.append(roll(group, plain_restarts, coordinator, config.roll))
            if upgrades[-1].is_complete:
                setbacks.append(roll(group, [upgrade[0], plain_restarts[0]], coordinator, config.roll))
                back.append(roll(group, [*upgrade, *reversed(plain_restarts)], coordinator, config.roll))
            number += 1
            on_roll(number, len(orders) * len(coordinators))
        releases.append(
            ReleaseRehearsal(
                release=coordinator.release,
                upgrades=tuple(upgrades),
                plain=tuple(plain),
                setbacks=tuple(setbacks),
                back=tuple(back),
            )
        )
    return Rehearsal(
        group=group, possible=factorial(len(names)), releases=tuple(releases),
        advice=tuple(advice(group, coordinators, config.roll)),
    )  # fmt: skip


def _with_partitions(group: RecordedGroup, stated: Mapping[str, int]) -> RecordedGroup:
    if len(group.members) > MOST_MEMBERS:
        raise ValueError(f"expected at most {MOST_MEMBERS:,} members, got {len(group.members):,}")
    ids = [member.record.member_id for member in group.members]
    if len(set(ids)) < len(ids) or "" in ids:
        raise ValueError("expected members with ids of their own, got one without, or one id twice")
    for topic, count in stated.items():
        least = group.partitions.get(topic, 0)
        if count < least:
            raise ValueError(
                f"partitions of {topic}: expected at least the {least} that were seen, got {count}"
            )
    partitions = {topic: stated.get(topic, count) for topic, count in group.partitions.items()}
    if sum(partitions.values()) > MOST_PARTITIONS:
        total = sum(partitions.values())
        raise ValueError(f"expected at most {MOST_PARTITIONS:,} partitions, got {total:,}")
    return replace(group, partitions=partitions)


def _orders(names: Sequence[str], most: int | None, seed: int) -> Iterator[tuple[str, ...]]:
    """All orders, or a sample without repetitions, which begins with that of the names."""
    possible = factorial(len(names))
    count = most or (_ALL_ORDERS if possible <= _ALL_ORDERS else _sample(len(names)))
    if possible <= count:
        yield from permutations(names)
        return
    random = Random(f"{seed}/orders")
    order, drawn_orders = list(names), set[tuple[str, ...]]()
    while len(drawn_orders) < count:
        if tuple(order) not in drawn_orders:
            drawn_orders.add(tuple(order))
            yield tuple(order)
        random.shuffle(order)


def _sample(members: int) -> int:
    return max(min(_SAMPLE, _SAMPLE * _ALL_OF_THE_SAMPLE**2 // members**2), _LEAST)


def _coordinator(group: RecordedGroup, config: RehearsalConfig, release: str) -> CoordinatorConfig:
    coordinator = CoordinatorConfig(release=release).with_settings(config.broker)
    sessions = [member.record.session_timeout for member in group.members]
    return replace(
        coordinator,
        min_session_timeout_ms=min(coordinator.min_session_timeout_ms, *sessions),
        max_session_timeout_ms=max(coordinator.max_session_timeout_ms, *sessions),
    )
