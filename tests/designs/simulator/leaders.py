"""What the crash of a leader takes of its messages, by its flushes, and with replicas, in figures.

    python -m tests.designs.simulator.leaders     print the table

Strategy: one group of KIP-848 whose three consumers read six partitions, ten messages a second each; the
machine that leads three of them crashes for eight seconds. Rules: as the comparison's, which puts the table
into its page.
"""

from __future__ import annotations

from collections.abc import Mapping

from coordwire.designs.simulator import parse_faults
from coordwire.designs.simulator.message_flow import Deliveries
from coordwire.designs.simulator.runs import simulate

PLAN = "30s crash coordinator-1 for 8s"
WAYS: Mapping[str, Mapping[str, int]] = {
    "each message is flushed": {},
    "flushed after 10 messages": {"flush_messages": 10},
    "flushed after 40 messages": {"flush_messages": 40},
    "flushed after 2 s": {"flush_ms": 2_000},
    "flushed after 40 messages, with replicas that lead after 6 s": {
        "flush_messages": 40, "failover_ms": 6_000,
    },
}  # fmt: skip


def crashed(flow: Mapping[str, int]) -> Deliveries:
    run = simulate(
        "consumer",
        members=3,
        partitions=6,
        plan=parse_faults(PLAN),
        duration_ms=80_000,
        messages=True,
        flow=flow,
    )
    assert run.measures.deliveries is not None
    return run.measures.deliveries


def leaders_table() -> str:
    lines = ["| a leader's machine crashes | lost | of them not delivered | passed over | delivered twice |"]
    lines += ["|---|" + "---:|" * 4]
    for name, flow in WAYS.items():
        result = crashed(flow)
        lines.append(f"| {name} | {result.lost} | {result.lost_unread} | {result.skipped} | {result.twice} |")
    return "\n".join(lines) + "\n"


if __name__ == "__main__":
    print(leaders_table())
