"""One interface for every design of a coordinator: the same nodes, the same faults, the same measures.

    run = simulate("draft-2", members=4, partitions=6, seed=7, plan=parse_faults("20s crash consumer-2"))
    print(run.measures.duplicated_ms, run.measures.rebalances)

every_design.py     the designs, added to a world under the same names
run_observer.py     the changes of ownership: rebalances, deaths, partitions with two owners or none
run_measures.py     the figures of a run, also of its messages and watches by the time
simulated_run.py    a run from its start to its figures, with its capture
"""

from coordwire.designs.simulator.runs.every_design import DESIGNS, DesignRun, RunNote, add_design
from coordwire.designs.simulator.runs.run_measures import CoordinatorDeath, RunMeasures
from coordwire.designs.simulator.runs.run_observer import (
    Death,
    OwnershipRebalance,
    OwnershipSpell,
    RunObserver,
)
from coordwire.designs.simulator.runs.simulated_run import SimulatedRun, comparable_faults, simulate

__all__ = [
    "DESIGNS",
    "CoordinatorDeath",
    "Death",
    "DesignRun",
    "OwnershipRebalance",
    "OwnershipSpell",
    "RunMeasures",
    "RunNote",
    "RunObserver",
    "SimulatedRun",
    "add_design",
    "comparable_faults",
    "simulate",
]
