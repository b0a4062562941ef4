"""The share coordinator (KIP-932): the state of share groups' partitions in `__share_group_state`."""

from coordwire.coordinator.share_state.model import PartitionKey, PersistedState
from coordwire.coordinator.share_state.shard import ShareStateConfig, ShareStateShard
from coordwire.coordinator.share_state.state_batches import StateBatch, combined_batches

__all__ = [
    "PartitionKey",
    "PersistedState",
    "ShareStateConfig",
    "ShareStateShard",
    "StateBatch",
    "combined_batches",
]
