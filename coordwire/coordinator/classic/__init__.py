"""Classic groups (KIP-62, KIP-345, KIP-394, KIP-814): JoinGroup, SyncGroup, Heartbeat and LeaveGroup."""
