"""Error codes that several APIs share, by Kafka's names, with when they come."""

COORDINATOR = {
    "COORDINATOR_LOAD_IN_PROGRESS": "The coordinator is still loading its log.",
    "COORDINATOR_NOT_AVAILABLE": "The coordinator is not active, or can't write its log.",
    "NOT_COORDINATOR": "Another broker is the coordinator.",
}
"""Errors of a broker that does not, or not yet, coordinate the group; `*COORDINATOR` has the names alone."""
