"""Error codes that several APIs share, by Kafka's names."""

COORDINATOR = ("COORDINATOR_LOAD_IN_PROGRESS", "COORDINATOR_NOT_AVAILABLE", "NOT_COORDINATOR")
"""From a broker that does not coordinate the group or the transaction, or not yet."""
