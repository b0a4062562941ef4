"""Scenarios: one event, or a series of them, that each design goes through with many seeds.

    python -m tests.designs.simulator.scenarios NAME...      print the measures of these scenarios, or of all

Strategy: a scenario is a row of `SCENARIOS`: faults with times from the event on, what the network and the
clients are, and which designs it concerns. A seed draws when the event comes (within one session timeout, so
that it meets heartbeats at any moment), whom it hits, and the network. What is measured is the same for all:
from the event to the end of the window.

Rules: a group has four consumers and twelve partitions. A group has healed when each partition is read by one
owner, or by any of a share group, and stays so until the window ends. Percentiles are those of nearest rank;
an interval is the bootstrap's (95%, 1,000 draws of the seeds, seeded itself): the same command gives the same
bytes. Bytes are those of the messages, ZooKeeper's in ZooKeeper's own protocol; TCP's headers, and fetches,
are left out. A quiet group's traffic is that of the last two session timeouts of the window; its rate is
taken off the event's.
"""

from __future__ import annotations

import sys
from bisect import bisect_left
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import accumulate
from math import ceil, inf
from random import Random
from statistics import mean
from typing import Any

from coordwire.designs.simulator import PlannedFault, TapRecord, parse_faults
from coordwire.designs.simulator.drafts import DRAFT_DESIGNS
from coordwire.designs.simulator.drafts.zookeeper_capture import ZooKeeperTap
from coordwire.designs.simulator.runs import DESIGNS, DesignRun, OwnershipSpell, simulate

MEMBERS, PARTITIONS = 4, 12
SESSION_MS, PLANNED_MS, EVENT_MS, AFTER_MS = 6_000, 6_000, 18_000, 10_000
METADATA_MS = 300_000
DRAWS, SPREAD = 1_000, (2.5, 97.5)
NONE = "–"


def lossy(share: float, *, again_ms: int = 200) -> Callable[[Callable[[], float]], int]:
    """1 to 5 ms, and for each loss TCP's wait until it sends again, which doubles."""

    def draw(random: Callable[[], float]) -> int:
        time, wait = 1 + int(random() * 5), again_ms
        while random() < share:
            time, wait = time + wait, wait * 2
        return time

    return draw


def heavy_tailed(exponent: float, *, least_ms: float = 2.0, most_ms: int = 20_000) -> Callable[..., int]:
    """Pareto: with an exponent of 1.1, half of the messages take under 4 ms, one in a thousand a second."""
    return lambda random: min(int(least_ms * (1.0 - random()) ** (-1 / exponent)), most_ms)


@dataclass(frozen=True, slots=True)
class Scenario:
    """plan: faults, with times from the event on; {one} is the consumer that is hit, {acting} the
    coordinator. lasts_ms: how long the event goes on, added to the window. options: of `simulate`. designs:
    that it concerns. weight: how many times the usual number of seeds it has."""

    plan: str
    lasts_ms: int = 0
    session_ms: int = SESSION_MS
    options: Mapping[str, Any] = field(default_factory=dict)
    designs: Sequence[str] = tuple(DESIGNS)
    weight: int = 1

    def event_ms(self, seed: int) -> int:
        """When the event comes."""
        return EVENT_MS + Random(f"event/{seed}").randrange(self.session_ms)

    def window_ms(self) -> int:
        return self.lasts_ms + AFTER_MS + 4 * self.session_ms

    def faults(self, seed: int, acting: str) -> list[PlannedFault]:
        """The plan of a seed. acting: the coordinator."""
        at = self.event_ms(seed)
        victim = Random(f"victim/{seed}").randint(1, MEMBERS)
        plan = self.plan.format(one=f"consumer-{victim}", acting=acting)
        parts = (part.split(maxsplit=1) for part in plan.split("; "))
        return parse_faults("; ".join(f"{at + int(offset)}ms {fault}" for offset, fault in parts))


LOST = "0 cut {one} * for 10m; 0 crash {one}"
FROZEN = "0 freeze {one} for 8s"
COORDINATOR_LOST = "0 crash {acting} for 10m"
EACH_CONSUMER = "; ".join(
    f"{12_000 * number} leave consumer-{number + 1}; "
    f"{12_000 * number + 500} crash consumer-{number + 1} for 5s"
    for number in range(MEMBERS)
)
EACH_BROKER = "; ".join(
    f"{20_000 * number} leave coordinator-{number + 1}; "
    f"{20_000 * number + 500} crash coordinator-{number + 1} for 8s"
    for number in range(2)
)
WITH_ZOOKEEPER, TODAYS = tuple(DRAFT_DESIGNS), ("classic", "consumer")

SCENARIOS: Mapping[str, Scenario] = {
    "a consumer comes": Scenario("-12000 crash consumer-4 for 12s"),
    "a machine is lost": Scenario(LOST, weight=4),
    "a consumer is cut off for 12 s": Scenario("0 cut {one} * for 12s", 12_000),
    "a coordinator crashes": Scenario(COORDINATOR_LOST),
    "a coordinator crashes, and a machine is lost a second later": Scenario(
        f"{COORDINATOR_LOST}; 1000 cut {{one}} * for 10m; 1000 crash {{one}}"
    ),
    "a machine is lost; 5% of the packets too": Scenario(LOST, options={"latency": lossy(0.05)}),
    "a machine is lost; heavy-tailed latency": Scenario(LOST, options={"latency": heavy_tailed(1.1)}),
    "ZooKeeper is away for 4 s": Scenario("0 crash zookeeper for 4s", 4_000, designs=WITH_ZOOKEEPER),
    "ZooKeeper is away for 20 s": Scenario("0 crash zookeeper for 20s", 20_000, designs=WITH_ZOOKEEPER),
    "ZooKeeper is away for 20 s, and a machine is lost": Scenario(
        f"0 crash zookeeper for 20s; {LOST}", 20_000, designs=WITH_ZOOKEEPER
    ),
    "all ZooKeeper sessions expire": Scenario("0 expire *", designs=WITH_ZOOKEEPER),
    "consumers restart one by one": Scenario(EACH_CONSUMER, 12_000 * MEMBERS),
    "the same, static members": Scenario(
        EACH_CONSUMER, 12_000 * MEMBERS, options={"client": {"instance_id": "consumer"}}, designs=TODAYS
    ),
    "the same, cooperative": Scenario(
        EACH_CONSUMER, 12_000 * MEMBERS, options={"client": {"cooperative": True}}, designs=("classic",)
    ),
    "brokers restart one by one": Scenario(EACH_BROKER, 40_000),
    "a machine is lost; session timeout 3 s": Scenario(LOST, session_ms=3_000),
    "a machine is lost; session timeout 10 s": Scenario(LOST, session_ms=10_000),
    "a machine is lost; session timeout 30 s": Scenario(LOST, session_ms=30_000),
    "a consumer is frozen for 8 s; session timeout 3 s": Scenario(FROZEN, 8_000, session_ms=3_000),
    "a consumer is frozen for 8 s": Scenario(FROZEN, 8_000),
    "a consumer is frozen for 8 s; session timeout 10 s": Scenario(FROZEN, 8_000, session_ms=10_000),
}


# --- a run ---


class MessageSizes:
    """A tap: when each message was seen, and its bytes."""

    def __init__(self) -> None:
        self.times: list[int] = []
        self.sizes: list[int] = []

    def __call__(self, record: TapRecord) -> None:
        if record.kind == "data":
            self.times.append(record.time)
            self.sizes.append(len(record.data))

    def totals(self) -> Callable[[int, int], tuple[int, int]]:
        """Messages, and their bytes, from one time to before another."""
        sums = [0, *accumulate(self.sizes)]

        def between(begin: int, end: int) -> tuple[int, int]:
            first, last = bisect_left(self.times, begin), bisect_left(self.times, end)
            return last - first, sums[last] - sums[first]

        return between


@dataclass(frozen=True, slots=True)
class Event:
    """One run of a scenario. heal_ms: until the group has healed, None if it had not when the window ended.
    unread_ms, twice_ms: partition-milliseconds without an owner, and with two, in the window. messages,
    bytes: beyond a quiet group's. quiet_messages, quiet_bytes: of two session timeouts."""

    heal_ms: int | None
    unread_ms: int
    twice_ms: int
    messages: float
    bytes: float
    quiet_messages: int
    quiet_bytes: int


def run(name: str, design: str, seed: int) -> Event:
    """One seed of a scenario with a design."""
    scenario = SCENARIOS[name]
    sizes = MessageSizes()

    def prepare(running: DesignRun) -> None:
        world = running.world
        usual, counted = world.tap, ZooKeeperTap(sizes)
        assert usual is not None

        def tap(record: TapRecord) -> None:
            usual(record)
            counted(record)

        def plan() -> None:
            acting = [note.node for note in running.notes() if note.name == "Elected"]
            world.plan(scenario.faults(seed, acting[-1] if acting else "coordinator-1"))

        world.tap = tap
        world.clock.at(PLANNED_MS, plan)

    at = scenario.event_ms(seed)
    end = at + scenario.window_ms()
    result = simulate(
        design, members=MEMBERS, partitions=PARTITIONS, seed=seed, prepare=prepare,
        duration_ms=end, session_ms=scenario.session_ms, metadata_ms=METADATA_MS, **scenario.options,
    )  # fmt: skip
    spells = [spell for spell in result.observer.spells if spell.ended > at]
    wrong = [spell for spell in spells if not (spell.owners and result.run.shares)]
    last = max((spell.ended for spell in wrong), default=at)
    between = sizes.totals()
    calm = end - 2 * scenario.session_ms
    (messages, data), (quiet_messages, quiet_bytes) = between(at, calm), between(calm, end)
    share = (calm - at) / (end - calm)
    return Event(
        None if last >= end else last - at,
        _partition_ms(spells, at, 0), _partition_ms(spells, at, 2),
        messages - quiet_messages * share, data - quiet_bytes * share, quiet_messages, quiet_bytes,
    )  # fmt: skip


def _partition_ms(spells: Sequence[OwnershipSpell], begin: int, owners: int) -> int:
    return sum(
        spell.ended - max(spell.began, begin) for spell in spells if min(len(spell.owners), 2) == owners
    )


# --- figures ---


def percentile(values: Sequence[float], share: float) -> float:
    """Of nearest rank; share: in percent."""
    return sorted(values)[max(ceil(len(values) * share / 100), 1) - 1]


def interval(
    values: Sequence[float], figure: Callable[[Sequence[float]], float], key: str
) -> tuple[float, float]:
    """The bootstrap's, of a figure of these values. key: of its draws."""
    random = Random(f"bootstrap/{key}")
    found = [figure(random.choices(values, k=len(values))) for _ in range(DRAWS)]
    return percentile(found, SPREAD[0]), percentile(found, SPREAD[1])


Events = Sequence[Event]
Cell = Callable[[Events, str], str]


def _with_interval(value: Callable[[Event], float], figure: Callable[[Sequence[float]], float]) -> Cell:
    def cell(events: Events, key: str) -> str:
        values = [value(event) for event in events]
        low, high = interval(values, figure, key)
        return f"{_text(figure(values))} [{_text(low)}, {_text(high)}]"

    return cell


def _text(value: float) -> str:
    return "not" if value == inf else f"{value:,.1f}"


def _heal_s(event: Event) -> float:
    return inf if event.heal_ms is None else event.heal_ms / 1000


def _of_heal(share: float) -> Cell:
    return _with_interval(_heal_s, lambda values: percentile(values, share))


def _bytes_a_message(events: Events, _key: str) -> str:
    return f"{sum(e.quiet_bytes for e in events) / max(sum(e.quiet_messages for e in events), 1):.0f}"


MEASURES: Mapping[str, Cell] = {
    "Seconds until a group has healed, p50": _of_heal(50),
    "Seconds until a group has healed, p95": _of_heal(95),
    "Seconds until a group has healed, p99": _of_heal(99),
    "Partition-seconds without an owner, by scenario": _with_interval(lambda e: e.unread_ms / 1000, mean),
    "Partition-seconds with two owners, by scenario": _with_interval(lambda e: e.twice_ms / 1000, mean),
    "Messages beyond a quiet group's, by scenario": _with_interval(lambda e: e.messages, mean),
    "Kilobytes beyond a quiet group's, by scenario": _with_interval(lambda e: e.bytes / 1000, mean),
    "Bytes of a quiet group's message, by scenario": _bytes_a_message,
}
"""The tables, and what a cell of each has: a figure and its interval."""

Found = Mapping[str, Mapping[str, Events]]
"""Events by scenario and design."""


def scenario_tables(found: Found) -> Iterator[str]:
    """A table for each measure; a row for each scenario, with how often it was run."""
    for title, cell in MEASURES.items():
        lines = [f"| scenario | {' | '.join(DESIGNS)} |", "|---|" + "---:|" * len(DESIGNS)]
        for name, by_design in found.items():
            cells = [
                cell(by_design[design], f"{title}/{name}/{design}") if design in by_design else NONE
                for design in DESIGNS
            ]
            lines.append(f"| {name} | {' | '.join(cells)} |")
        yield f"**{title}**\n\n" + "\n".join(lines) + "\n"


def main() -> None:
    names = sys.argv[1:] or list(SCENARIOS)
    found = {
        name: {
            design: [run(name, design, seed) for seed in range(1, 4)] for design in SCENARIOS[name].designs
        }
        for name in names
    }
    print("\n".join(scenario_tables(found)))


if __name__ == "__main__":
    main()
