"""One interface for every design of a coordinator: the same nodes, the same faults, the same measures.

    run = simulate("draft-2", members=4, partitions=6, seed=7, plan=parse_faults("20s crash consumer-2"))
    print(run.measures.duplicated_ms, run.measures.rebalances)

every_design.py     the designs, added to a world under the same names
run_measures.py     the figures of a run: messages and watches by the time, changes of ownership
simulated_run.py    a run from its start to its figures, with its capture
"""

from coordwire.designs.simulator.runs.every_design import (
    DESIGNS,
    METADATA_MS,
    DesignRun,
    RunNote,
    add_design,
)
from coordwire.designs.simulator.runs.run_measures import (
    CoordinatorDeath,
    Death,
    OwnershipRebalance,
    OwnershipSpell,
    RunMeasures,
    RunObserver,
)
from coordwire.designs.simulator.runs.simulated_run import SimulatedRun, comparable_faults, simulate

__all__ = [
    "DESIGNS",
    "METADATA_MS",
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
