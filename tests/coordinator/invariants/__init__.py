"""The invariants that a group coordinator keeps, each a named checker that watches a shard.

Names are S for safety at every step, L for liveness once perturbations stop, P for persistence. S14, S21, L1
and L2 are about clients too: `tests.coordinator.invariants.clients`.
"""

from __future__ import annotations

from tests.coordinator.invariants.classic import CLASSIC
from tests.coordinator.invariants.classic_members import CLASSIC_MEMBERS
from tests.coordinator.invariants.consumer import CONSUMER
from tests.coordinator.invariants.persistence import PERSISTENCE
from tests.coordinator.invariants.timing import TIMING
from tests.coordinator.invariants.watch import Call, Checker, Violation, WatchedShard

__all__ = ["CHECKERS", "Call", "Checker", "Violation", "WatchedShard"]

CHECKERS = [*CLASSIC, *CLASSIC_MEMBERS, *CONSUMER, *PERSISTENCE, *TIMING]
