"""A simulation of processes that talk over a network which fails: one seeded clock, bytes, faults by a plan.

`World` has nodes, and a process on each (`Process`), a machine without socket and clock. They exchange the
codec's bytes over links, so that a run can be kept as a capture. The same fault plan runs with each design of
a coordinator.
"""

from coordwire.designs.simulator.network import Link, Process, SimulatedNode
from coordwire.designs.simulator.ownership import Ownership
from coordwire.designs.simulator.runs.simulated_run import random_faults
from coordwire.designs.simulator.tap import PcapWriter, TapRecord, TapRecords
from coordwire.designs.simulator.world import World
from coordwire.testing.fault_plans import PlannedFault, parse_faults, written_faults

__all__ = [
    "Link",
    "Ownership",
    "PcapWriter",
    "PlannedFault",
    "Process",
    "SimulatedNode",
    "TapRecord",
    "TapRecords",
    "World",
    "parse_faults",
    "random_faults",
    "written_faults",
]
