"""What an operator sets for transactions, with the defaults of Apache Kafka's broker settings."""

from __future__ import annotations

from dataclasses import dataclass

__all__ = ["TransactionConfig"]


@dataclass(frozen=True, slots=True, kw_only=True)
class TransactionConfig:
    """Times are in milliseconds.

    max_timeout_ms: the longest that a producer may ask for. abort_interval_ms: how often transactions are
    looked for that are over their time. expiration_ms, expiration_interval_ms: how long an id that is not
    used is kept, and how often such ids are looked for. retry_ms: how long after a failure markers are
    written again. version: the level of the feature transaction.version; from 1 on records have version 1,
    from 2 on each transaction has an epoch of its own (KIP-890). two_phase_commit: whether a producer may ask
    for a transaction without a timeout (KIP-939).
    """

    max_timeout_ms: int = 900_000
    abort_interval_ms: int = 10_000
    expiration_ms: int = 604_800_000
    expiration_interval_ms: int = 3_600_000
    retry_ms: int = 100
    version: int = 2
    two_phase_commit: bool = False
