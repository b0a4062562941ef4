"""An assignor for tests: every member gets what the test says."""

from __future__ import annotations

from collections.abc import Mapping

from coordwire.coordinator.assignors.specification import Assignor, GroupSpec
from coordwire.coordinator.model.assignment import NO_TARGET, Target

__all__ = ["fixed_targets"]


def fixed_targets(targets: Mapping[str, Target]) -> Assignor:
    """Give each member its target out of a mapping by member id, which may change between calls."""

    def assign(spec: GroupSpec) -> Mapping[str, Target]:
        return {member_id: targets.get(member_id, NO_TARGET) for member_id in spec.members}

    return assign
