"""Server-side assignors of consumer groups (KIP-848), whose targets equal those of Apache Kafka."""

from collections.abc import Mapping

from coordwire.coordinator.assignors.range_assignor import range_targets
from coordwire.coordinator.assignors.specification import (
    Assignor,
    Assignors,
    GroupSpec,
    MemberSpec,
    StreamsAssignor,
    StreamsGroupSpec,
    StreamsMemberSpec,
    checked_assignors,
    computed_targets,
)
from coordwire.coordinator.assignors.uniform_assignor import uniform_targets

__all__ = [
    "ASSIGNORS",
    "Assignor",
    "Assignors",
    "GroupSpec",
    "MemberSpec",
    "StreamsAssignor",
    "StreamsGroupSpec",
    "StreamsMemberSpec",
    "checked_assignors",
    "computed_targets",
]

ASSIGNORS: Mapping[str, Assignor] = {"uniform": uniform_targets, "range": range_targets}
"""Kafka's two, by the names that members and operators use."""
