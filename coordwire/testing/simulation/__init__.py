"""Tests of Kafka clients in virtual time: unmodified asyncio programs, a seed for every choice, faults.

    @kafka_simulation(seeds=200, faults="any", topics={"orders": 4})
    async def test_every_order_is_booked_once(kafka, world):
        world.start("orders-1", service, kafka.bootstrap)
        kafka.produce("orders", "tea", "cake")
        await world.calm()
        await world.caught_up("bookkeeping", "orders")

    decorator.py      kafka_simulation: a test that runs with many seeds
    report.py         the report of a failure
    runs.py           a run, a run twice, a plan of faults that is shrunk
    given.py          arguments that Hypothesis draws
    summary.py        what all seeds have shown
    world.py          one run: the test's face
    processes.py      processes: how they start, end, stop and are killed
    trace.py          what is written down of a run: its trace, the log of its processes
    rest.py           how long processes go on after the test
    kafka.py          the fixture kafka, with its broker in the world's loop
    database.py       a simulated database
    faults.py         plans of faults: their text, how a seed draws them, what they do
    load.py           how close together orders come, and what is slow
    checkers.py       what must hold
    client_faults.py  failures that are a client's own
    order.py          the order of ready tasks, where another than asyncio's is asked for
    network.py        connections in memory
    tls.py            their TLS
    asserted.py       what an assertion without a text says
    unawaited.py      coroutines that nothing awaited
    loop.py           the event loop
    threads.py        the threads of a world that allows them
    surroundings.py   clocks, randomness and ways out, replaced while a world runs
    packages.py       the same in packages of others

Rules: a seed gives one run, byte for byte, on each machine with the same Python, packages and order of
hashes. A world changes nothing that lasts.
"""

from coordwire.testing.simulation.checkers import (
    CHECKERS,
    AbortedRecord,
    Checker,
    FallingOffset,
    LeftBehind,
    NoProgress,
    PartitionPlace,
    SplitTransaction,
    TwoOwners,
    UnprocessedRecord,
    Violation,
)
from coordwire.testing.simulation.database import Database
from coordwire.testing.simulation.decorator import RunOptions, SimulationFailed, kafka_simulation
from coordwire.testing.simulation.faults import KINDS, DrawnFaults, parse_plan
from coordwire.testing.simulation.kafka import SimulatedKafka
from coordwire.testing.simulation.loop import TooLong
from coordwire.testing.simulation.processes import Service
from coordwire.testing.simulation.runs import Nondeterminism, RunOutcome, Simulation
from coordwire.testing.simulation.surroundings import LeftTheWorld
from coordwire.testing.simulation.threads import Restless
from coordwire.testing.simulation.world import SimulatedWorld

__all__ = [
    "CHECKERS",
    "KINDS",
    "AbortedRecord",
    "Checker",
    "Database",
    "DrawnFaults",
    "FallingOffset",
    "LeftBehind",
    "LeftTheWorld",
    "NoProgress",
    "Nondeterminism",
    "PartitionPlace",
    "Restless",
    "RunOptions",
    "RunOutcome",
    "Service",
    "SimulatedKafka",
    "SimulatedWorld",
    "Simulation",
    "SimulationFailed",
    "SplitTransaction",
    "TooLong",
    "TwoOwners",
    "UnprocessedRecord",
    "Violation",
    "kafka_simulation",
    "parse_plan",
]
