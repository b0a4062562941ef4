"""Fault plans that a seed draws, the same for each design."""

from __future__ import annotations

from random import Random

from coordwire.testing.fault_plans import PlannedFault

__all__ = ["random_faults"]


def random_faults(
    seed: int, *, members: int, coordinators: int = 2, begin: int = 10_000, end: int = 120_000, count: int = 8
) -> list[PlannedFault]:
    """A plan by a seed: crashes, freezes, cuts and drops of consumers and coordinators."""
    random = Random(f"faults/{seed}")
    plan = []
    for _ in range(count):
        at = random.randrange(begin, end, 100)
        consumer = f"consumer-{random.randint(1, members)}"
        coordinator = f"coordinator-{random.randint(1, coordinators)}"
        short, long = random.randrange(500, 8_000, 100), random.randrange(8_000, 60_000, 1_000)
        plan.append(
            random.choice([
                PlannedFault(at, "crash", (consumer,), duration=random.choice([short, long, None])),
                PlannedFault(at, "crash", (coordinator,), duration=random.choice([short, long])),
                PlannedFault(at, "freeze", (consumer,), duration=random.choice([short, long])),
                PlannedFault(at, "freeze", (coordinator,), duration=short),
                PlannedFault(at, "cut", (consumer, "coordinator-*"), duration=random.choice([short, long])),
                PlannedFault(at, "drop", (consumer, "coordinator-*")),
                PlannedFault(at, "drop", ("consumer-*", coordinator)),
                PlannedFault(at, "slow", (consumer, "*"), ("300ms",), duration=long),
                PlannedFault(at, "expire", (consumer,)),
            ])
        )  # fmt: skip
    return sorted(plan, key=lambda fault: fault.at)
