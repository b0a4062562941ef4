"""Consumer groups: heartbeats, targets, reconciliation (KIP-848), and conversion from and to classic."""
