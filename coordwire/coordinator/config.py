"""What an operator sets, with the names and defaults of Apache Kafka's broker settings."""

from __future__ import annotations

from dataclasses import dataclass

__all__ = ["CoordinatorConfig"]

_INT32_MAX = (1 << 31) - 1


@dataclass(frozen=True, slots=True, kw_only=True)
class CoordinatorConfig:
    """Times are in milliseconds, sizes in characters or members.

    min_session_timeout_ms, max_session_timeout_ms: what a classic member may ask for.
    initial_rebalance_delay_ms: how long an empty group waits for more members, and again after each that
    comes. new_member_join_timeout_ms: how long a member without an id known to its client may stay parked
    in JoinGroup. group_max_size: of a classic group. offset_metadata_max_size: of the text that goes with a
    committed offset. offsets_retention_ms, offsets_retention_check_interval_ms: KIP-211's expiry.
    write_timeout_ms: an operation whose records are not durable by then is answered with an error.
    """

    min_session_timeout_ms: int = 6_000
    max_session_timeout_ms: int = 1_800_000
    initial_rebalance_delay_ms: int = 3_000
    new_member_join_timeout_ms: int = 300_000
    group_max_size: int = _INT32_MAX
    offset_metadata_max_size: int = 4_096
    offsets_retention_ms: int = 10_080 * 60_000
    offsets_retention_check_interval_ms: int = 600_000
    write_timeout_ms: int = 5_000
