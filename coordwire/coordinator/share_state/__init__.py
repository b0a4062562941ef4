"""The share coordinator (KIP-932): the state of share groups' partitions in `__share_group_state`."""

from coordwire.coordinator.share_state.model import PartitionKey, PersistedState, StateBatch, combined_batches
from coordwire.coordinator.share_state.shard import ShareStateConfig, ShareStateShard

__all__ = [
    "PartitionKey",
    "PersistedState",
    "ShareStateConfig",
    "ShareStateShard",
    "StateBatch",
    "combined_batches",
]
