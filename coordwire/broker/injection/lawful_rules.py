"""What every client has to live with: faults that Kafka's brokers and networks have without being broken.

Strategy: `LAWFUL_RULES` is what a seed draws from, for the `inject` of a simulated world; `drawn_rules`
leaves out what takes time, and what keeps a client from beginning. Rule: their order is part of what a seed
means.
"""

from __future__ import annotations

from dataclasses import replace
from random import Random

from coordwire.broker.injection.fault_rule import FaultRule, parse_fault
from coordwire.versions import ApiKey

LAWFUL_RULES = (
    "Heartbeat error=REBALANCE_IN_PROGRESS",
    "Heartbeat error=NOT_COORDINATOR",
    "Heartbeat error=UNKNOWN_MEMBER_ID",
    "Heartbeat delay=12s",
    "JoinGroup error=COORDINATOR_NOT_AVAILABLE",
    "JoinGroup after disconnect",
    "SyncGroup error=REBALANCE_IN_PROGRESS",
    "SyncGroup after disconnect",
    "OffsetCommit error=NOT_COORDINATOR",
    "OffsetCommit error=COORDINATOR_LOAD_IN_PROGRESS",
    "OffsetCommit after disconnect",
    "OffsetCommit delay=3s",
    "OffsetFetch error=COORDINATOR_LOAD_IN_PROGRESS",
    "OffsetFetch error=NOT_COORDINATOR",
    "FindCoordinator error=COORDINATOR_NOT_AVAILABLE",
    "Fetch error=NOT_LEADER_OR_FOLLOWER",
    "Fetch error=UNKNOWN_TOPIC_OR_PARTITION",
    "Fetch half",
    "Fetch delay=5s",
    "ListOffsets error=LEADER_NOT_AVAILABLE",
    "Produce error=NOT_LEADER_OR_FOLLOWER",
    "Produce error=NOT_ENOUGH_REPLICAS",
    "Produce after disconnect",
    "Produce after lose",
    "Metadata delay=4s",
    "Metadata disconnect",
    "InitProducerId error=COORDINATOR_LOAD_IN_PROGRESS",
    "AddPartitionsToTxn error=CONCURRENT_TRANSACTIONS",
    "AddOffsetsToTxn error=NOT_COORDINATOR",
    "TxnOffsetCommit error=COORDINATOR_LOAD_IN_PROGRESS",
    "EndTxn error=NOT_COORDINATOR",
    "EndTxn after disconnect",
)
"""Errors that clients mend by themselves, answers that come late or not at all, connections that end."""

_DRAWN, _TAKEN = 1 / 2, 1 / 5
"""How many of the rules a seed draws, and how many of its requests each takes."""


def drawn_rules(seed: int) -> list[FaultRule]:
    """About half of the rules that are for real time, each for about a fifth of its requests."""
    random = Random(seed)
    rules = [
        rule
        for rule in map(parse_fault, LAWFUL_RULES)
        if not (rule.delay or rule.lose or ApiKey.METADATA in rule.keys)
    ]
    return [
        replace(rule, times=None, probability=_TAKEN, seed=random.randrange(1 << 31), optional=True)
        for rule in rules
        if random.random() < _DRAWN
    ]
