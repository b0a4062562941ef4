"""`SimulatedWorld`: one run of a test with a seed: its loop, network, processes, broker, faults and checkers.

    async def test(kafka, world):
        world.start("orders-1", service, kafka.bootstrap)      a process, which faults may kill
        kafka.produce("orders", "tea", "cake")
        await world.calm()                                     all faults are over
        await world.until(lambda: len(booked) == 2, within=60)

Strategy: a process is a tree of tasks with connections of their own; when it is killed none of them runs any
more, not even a `finally`. The broker and the network belong to no process. All that happens goes into a
trace, whose digest two runs of one seed share. Rules: the first violation ends the run. Nothing in here asks
a real clock.
"""

from __future__ import annotations

import asyncio
import gc
import inspect
import logging
import sys
import threading
from collections.abc import AsyncIterator, Callable, Coroutine, Iterable, Iterator, Mapping
from contextlib import redirect_stdout, suppress
from contextvars import Context
from fnmatch import fnmatchcase
from random import Random
from typing import Any, TypeVar

from coordwire.broker.cluster.topics import ClusterPartition
from coordwire.testing.fault_plans import PlannedFault
from coordwire.testing.simulation.asserted import failure_of
from coordwire.testing.simulation.checkers import CHECKERS, Checker, Observed, PartitionPlace, Violation
from coordwire.testing.simulation.database import Database
from coordwire.testing.simulation.faults import DrawnFaults, FaultDriver
from coordwire.testing.simulation.kafka import SimulatedKafka
from coordwire.testing.simulation.load import PacedItems
from coordwire.testing.simulation.loop import PROCESS, SimulatedTask, SimulationLoop, TooLong
from coordwire.testing.simulation.network import Network
from coordwire.testing.simulation.processes import GRACE, Service, SimulatedProcess
from coordwire.testing.simulation.rest import come_to_rest
from coordwire.testing.simulation.surroundings import LeftTheWorld, line_outside, unheard
from coordwire.testing.simulation.trace import LogLines, Printed, Trace, without_addresses
from coordwire.testing.simulation.unawaited import noted_coroutines

__all__ = ["SimulatedWorld", "Test"]

Test = Callable[..., Coroutine[Any, Any, object]]
"""What runs in a world: it takes `SimulatedKafka` and `SimulatedWorld`, and drawn values by their names."""

_Item = TypeVar("_Item")

_SETTLE = 0.1

_LOOKS = 200_000
"""So often a step of the loop may look at the clock."""

log = logging.getLogger("coordwire.testing.simulation")


class SimulatedWorld:
    """A run. seed: of all choices; kafka: the broker; driver: the faults; marks: the records that were marked
    as processed, with the process; observed: what the broker's logs say; failure: why the run has failed.

    cooldown: seconds after the test until its processes are stopped, as each may get over its last error;
    None for as long as something is under way (rest.py). last_event: when the last one was. reorder: as of
    `SimulationLoop`. reached: what `sometimes`, `always` and `eventually` were asked about, and whether it
    held. nodes: of the broker, by number. is_over: the test has ended.

    >>> import asyncio
    >>> from coordwire.testing.simulation import Simulation
    >>> async def test(kafka, world):
    ...     await asyncio.sleep(3_600)
    ...     print(world)
    >>> Simulation(test=test).run(7).failure
    <SimulatedWorld of seed 7 at 3600.0 s: 3 nodes, 0 services>
    """

    def __init__(
        self,
        seed: int,
        *,
        faults: Iterable[PlannedFault] | DrawnFaults = (),
        nodes: int = 3,
        settings: Mapping[str, Any] | None = None,
        allow: Iterable[str] = (),
        checkers: Iterable[type[Checker]] = CHECKERS,
        limit: float = 86_400.0,
        cooldown: float | None = None,
        reorder: int = 0,
        keep_trace: bool = False,
    ) -> None:
        self.seed = seed
        self.allow = frozenset(allow)
        self.cooldown = cooldown
        self.last_event = 0.0
        self.reached: dict[str, bool] = {}
        self.thread = threading.get_ident()
        self.nodes = range(1, nodes + 1)
        self.loop = SimulationLoop(seed, self, limit=limit, reorder=reorder)
        self.trace = Trace(self.loop, keep=keep_trace)
        self.network = Network(self.loop, seed, self.trace)
        self.kafka: SimulatedKafka
        self.driver: FaultDriver
        self.marks: dict[PartitionPlace, dict[int, str]] = {}
        self._visits: dict[tuple[PartitionPlace, int], list[str]] = {}
        self.failure: BaseException | None = None
        self.unawaited: list[str] = []
        """Coroutines that nothing has awaited, where something else has failed."""
        self.is_over = False
        self._looks = self._looks_in = 0
        self.graveyard: list[SimulatedProcess] = []
        self.observed = Observed(self._report, self.network)
        self._faults = list(faults) if not isinstance(faults, DrawnFaults) else faults
        self._settings = dict(settings or {})
        self._random = Random(f"bytes/{seed}")
        self._services: dict[str, Service] = {}
        self.databases: list[str] = []
        self._checkers = [checker(self) for checker in checkers]
        self._lines = LogLines(self)
        self._failed: asyncio.Future[None] | None = None
        self._test = SimulatedProcess(None)
        for number in self.nodes:
            self.network.names[9091 + number] = self.network.add(f"broker-{number}")
        self.network.by_process[None] = self.network.add("world")
        self.network.by_process[self._test] = self.network.add("test")

    def __repr__(self) -> str:
        services = f"{len(self._services)} service{'s' * (len(self._services) != 1)}"
        nodes = f"{len(self.nodes)} node{'s' * (len(self.nodes) != 1)}"
        return f"<SimulatedWorld of seed {self.seed} at {self.now:.1f} s: {nodes}, {services}>"

    # --- for tests ---

    @property
    def now(self) -> float:
        """Seconds since the world's beginning."""
        return self.loop.now

    def start(
        self, name: str, function: Callable[..., Coroutine[Any, Any, Any]], *args: Any, restarts: bool = True
    ) -> Service:
        """Start a process that runs a coroutine function.

        restarts: it starts again a second after it has ended by an error, as under a supervisor; else the
        run fails with that error. An `AssertionError` fails the run in any case.
        """
        if name in self._services or name in self.network.machines:
            raise ValueError(f"expected a name that no other process has, got {name!r}")
        if not inspect.iscoroutinefunction(function):
            raise TypeError(f"expected a coroutine function, got {function!r}")
        machine = self.network.add(name)
        service = self._services[name] = Service(self, machine, lambda: function(*args), restarts)
        service.boot()
        return service

    def processed(self, record: Any, partition: int | None = None, offset: int | None = None) -> None:
        """Mark a record as processed: one of a client, with `topic`, `partition` and `offset`, or these."""
        if partition is None or offset is None:
            place, offset = PartitionPlace(record.topic, record.partition), record.offset
        else:
            place = PartitionPlace(record, partition)
        name = self.process_name()
        self.trace("processed", f"{name} {place} {offset}")
        self.last_event = self.now
        self.marks.setdefault(place, {})[offset] = name
        self._visits.setdefault((place, offset), []).append(f"{name} at {self.now:.3f}")
        for checker in self._checkers:
            checker.processed(place, offset)

    async def slow(self, usual: float) -> None:
        """Wait as for an answer of something else, such as a database, that takes so many seconds usually.

        With the faults "load", or "any", the seed draws stretches of ten seconds, two in five, for which it
        takes 5 or 25 times as long.
        """
        await asyncio.sleep(usual * self.driver.load.slowness(self.process_name()))

    def load(self, name: str, items: Iterable[_Item], *, every: float = 1.0) -> AsyncIterator[_Item]:
        """Items one after the other, for `async for`, as orders that come. name: by which a plan finds them.

        every: seconds between two of them. With the faults "load", or "any", the seed draws a pace: up to
        100 times as close together, or three times as far apart, and in bursts of up to 16.
        """
        if not 0 < every < float("inf"):
            raise ValueError(f"expected more than 0 s between items, got {every!r}")
        return PacedItems(items, self.driver.load.pauses(name, every))

    def database(self, name: str, *, usual: float = 0.01) -> Database:
        """A simulated database, on a machine of that name; usual: seconds that it takes."""
        if name in self.network.machines:
            raise ValueError(f"expected a name that nothing else has, got {name!r}")
        database = Database(self.network, self.seed, name, lambda: usual * self.driver.load.slowness(name))
        self.databases.append(name)
        return database

    def sometimes(self, name: str, condition: object = True) -> None:
        """Note that something may hold, and whether it does; a test of which no seed has seen it fails."""
        key = f"sometimes {name!r}"
        self.reached[key] = self.reached.get(key, False) or bool(condition)

    def always(self, name: str, condition: object) -> None:
        """Hold that something holds here; a violation if it does not."""
        key = f"always {name!r}"
        self.reached[key] = self.reached.get(key, True) and bool(condition)
        if not condition:
            violation = Violation(f"always {name!r}", f"it does not hold in {self.process_name()}")
            self.fail(violation)
            raise violation

    async def eventually(self, name: str, condition: Callable[[], object], *, within: float = 60.0) -> None:
        """Wait until a condition holds, as `until`, and note it by a name."""
        await self.until(condition, within=within, description=name)
        self.reached[f"eventually {name!r}"] = True

    @property
    def repeated(self) -> list[str]:
        """The records that were marked more than once, each with the processes and the times."""
        return [
            f"{place} {offset}: {', '.join(visits)}"
            for (place, offset), visits in self._visits.items()
            if len(visits) > 1
        ]

    def note(self, text: str) -> None:
        """Write something into the trace and the log."""
        log.info("%s", text)

    async def calm(self, after: float = 0.0) -> None:
        """Wait until all faults are over, and for so many seconds more."""
        while (wait := self.driver.ends - self.loop.now) > 0:
            await asyncio.sleep(wait)
        self.driver.finish()
        if after:
            await asyncio.sleep(after)

    async def until(
        self, condition: Callable[[], object], *, within: float = 60.0, description: str | None = None
    ) -> None:
        """Wait until a condition holds; a violation if it does not, so many seconds after the last fault."""
        if not await self._becomes_true(condition, within):
            name = description or getattr(condition, "__qualname__", "the condition")
            raise Violation(
                "until",
                f"expected {name} within {within:g} s after the last fault; {self.waiting}",
            )

    async def _becomes_true(self, condition: Callable[[], object], within: float) -> bool:
        """Whether a condition holds in time."""
        start = self.loop.now
        while True:
            value = condition()
            if inspect.isawaitable(value):
                value = await value
            if value:
                return True
            if self.loop.now >= max(start, self.driver.ends) + within:
                return False
            await asyncio.sleep(_SETTLE)

    async def caught_up(self, group: str, *topics: str, within: float = 120.0) -> None:
        """Wait until a group has committed all records of topics; a violation if it does not, or if there is
        no such group or topic by then. Raises `TypeError` without a topic."""
        if not topics:
            raise TypeError("expected the topics that the group has to catch up with")
        if not await self._becomes_true(lambda: self._has_caught_up(group, topics), within):
            self._check_names(group, topics)
            places = [
                f"{place} up to {offset} of {end}" for place, offset, end in self._offsets(group, topics)
                if offset < end
            ]  # fmt: skip
            members = self.observed.processes(group)
            raise Violation(
                "caught_up",
                f"{group} has not committed all records {within:g} s after the last fault, but "
                f"{', '.join(places)}; {f'its members are {members}' if members else 'it has no member'}; "
                f"{self.waiting}",
            )

    def _has_caught_up(self, group: str, topics: tuple[str, ...]) -> bool:
        return self._knows(group) and not self._unknown_topics(topics) and not self.lag(group, *topics)

    def _knows(self, group: str) -> bool:
        """Whether the group has had a member or committed an offset."""
        return group in self.observed.groups or group in self.observed.offsets

    def _unknown_topics(self, topics: tuple[str, ...]) -> list[str]:
        known = self.kafka.broker.broker.cluster.topics
        return [topic for topic in topics if topic not in known]

    def _check_names(self, group: str, topics: tuple[str, ...]) -> None:
        """Refuse names that nothing has; a process may have made them by now."""
        if unknown := self._unknown_topics(topics):
            known = ", ".join(sorted({name for name, _ in self.partitions()})) or "none"
            raise Violation("caught_up", f"no topic is named {unknown[0]!r}; there are {known}")
        if not self._knows(group):
            known = ", ".join(sorted({*self.observed.groups, *self.observed.offsets})) or "none"
            raise Violation("caught_up", f"no group is named {group!r}; there are {known}")

    @property
    def waiting(self) -> str:
        """Where the processes wait."""
        processes = [service.process for service in self._services.values() if service.process is not None]
        return self.loop.waiting(*processes)

    def lag(self, group: str, *topics: str) -> int:
        """How many offsets of topics a group has not committed."""
        return sum(max(end - offset, 0) for _, offset, end in self._offsets(group, topics))

    def _offsets(
        self, group: str, topics: tuple[str, ...]
    ) -> Iterator[tuple[PartitionPlace, int, int]]:  # fmt: skip
        """Partitions of topics, with the offset that a group has committed, or the first, and the last."""
        committed = self.observed.offsets.get(group, {})
        for place in (PartitionPlace(*place) for place in self.partitions() if place[0] in topics):
            entry = self.partition(place)
            if entry is not None:
                yield place, committed.get(place, entry.log.start_offset), entry.log.last_stable_offset

    # --- for faults and checkers ---

    @property
    def clients(self) -> list[str]:
        """The names of processes; the test's, if there are no others."""
        return list(self._services) or ["test"]

    @property
    def has_clients(self) -> bool:
        """Whether a process runs, or the test is the client itself."""
        return not self._services or any(
            service.process is not None and not service.process.is_frozen
            for service in self._services.values()
        )

    def services(self, pattern: str) -> list[Service]:
        return [service for name, service in self._services.items() if fnmatchcase(name, pattern)]

    def partitions(self, *, internal: bool = False) -> list[tuple[str, int]]:
        """All partitions of topics."""
        topics = self.kafka.broker.broker.cluster.topics
        return [
            (name, partition.index)
            for name, topic in topics.items()
            if internal or not name.startswith("__")
            for partition in topic.partitions
        ]

    def partition(self, place: PartitionPlace) -> ClusterPartition | None:
        return self.kafka.broker.broker.cluster.partition(*place)

    def fail(self, error: BaseException) -> None:
        """The run has failed; the first failure counts."""
        if self.failure is None and not self.is_over:
            error = self.failure = failure_of(error)
            self.trace("failed", without_addresses(repr(error)))
            if self._failed is not None and not self._failed.done():
                self._failed.set_result(None)

    def happened(self, kind: str, text: str) -> None:
        """Write what happens to a process or the network into trace and log."""
        self.trace(kind, text)
        self.last_event = self.now
        self._lines.add("world", kind.upper(), text)

    def check_left(self, name: str, process: SimulatedProcess) -> None:
        """Let checkers see what a process has left."""
        current = asyncio.current_task(self.loop)
        tasks = [
            f"the task {task.get_name()} ({getattr(task.coroutine, '__qualname__', '')})"
            for task in self.loop.tasks
            if task.process is process and task is not current
        ]
        connections = [
            f"a connection to {transport.peer.machine.name}"
            for transport in self.network.of_process(process)
            if not transport.is_lost and transport.peer.machine.name not in self.databases
        ]
        for checker in self._checkers:
            checker.process_ended(name, tasks, connections)

    def _report(self, method: str, arguments: Any) -> None:
        self.trace(method, " ".join(map(_plain, arguments)))
        self.last_event = self.now
        for checker in self._checkers:
            getattr(checker, method)(*arguments)

    # --- for the surroundings ---

    def monotonic(self) -> float:
        self._look_at_the_clock()
        return self.loop.now

    def _look_at_the_clock(self) -> None:
        """Count looks at the clock, and raise `TooLong` where one step of the loop has too many."""
        loop = self.loop
        if self._looks_in != loop.steps:
            self._looks_in, self._looks = loop.steps, 0
        self._looks += 1
        if self._looks > _LOOKS:
            loop.now += 1.0  # so that the code ends even if it swallows the error
        if self._looks == _LOOKS:
            error = TooLong(
                f"{line_outside()} has looked at the clock {_LOOKS:,} times without an await: time passes "
                "only while all tasks wait"
            )
            self.fail(error)
            raise error

    def wall(self) -> float:
        self._look_at_the_clock()
        process = PROCESS.get()
        service = process.service if isinstance(process, SimulatedProcess) else None
        return self.loop.now + (service.ahead if service is not None else 0.0)

    def random_bytes(self, size: int) -> bytes:
        return self._random.randbytes(size)

    def pass_time(self, seconds: float) -> None:
        self._look_at_the_clock()
        self.loop.now += max(seconds, 0.0)

    def refused(self, refusal: LeftTheWorld) -> None:
        self.fail(refusal)

    def start_thread(self, thread: threading.Thread, start: Callable[[threading.Thread], None]) -> None:
        self.loop.threads.start(thread, start)

    def wait_in_thread(
        self, condition: threading.Condition, wait: Callable[..., bool], timeout: float | None
    ) -> bool:
        return self.loop.threads.wait(condition, wait, timeout)

    def process_name(self) -> str:
        process = PROCESS.get()
        return self.network.by_process[process].name if process in self.network.by_process else "world"

    # --- the run ---

    @property
    def log_lines(self) -> list[str]:
        """The last lines of the log."""
        return self._lines.lines

    def run(self, test: Test) -> None:
        """Run a test; `failure` says how it has ended. To be called within `surroundings.entered`."""
        root = logging.getLogger()
        handlers, level = root.handlers, root.level
        root.handlers = [self._lines]
        root.setLevel(min(level or logging.INFO, logging.INFO))
        self.loop.set_exception_handler(self._unhandled)
        try:
            with noted_coroutines() as texts, redirect_stdout(Printed(self._lines, sys.stdout)):
                Context().run(self.loop.run_until_complete, self._main(test))
                gc.collect()
            unawaited = [*dict.fromkeys(texts)]
            if unawaited and self.failure is None:
                raise Violation("NeverAwaited", f"no await for {'; '.join(unawaited)}")
            self.unawaited = unawaited
        except Exception as error:
            if self.failure is None:
                self.failure = error
        finally:
            self.is_over = True
            self._bury()
            self.loop.close()
            asyncio.set_event_loop(None)
            root.handlers = handlers
            root.setLevel(level)

    async def _main(self, test: Test) -> None:
        self._failed = self.loop.create_future()
        settings = {"kafka_defaults": "config" not in self._settings} | self._settings
        settings.setdefault("default_replication_factor", min(3, len(self.nodes)))
        self.kafka = SimulatedKafka(nodes=len(self.nodes), **settings)
        broker = self.kafka.broker.broker
        await broker.start()
        for number, node in broker.cluster.nodes.items():
            # Python 3.11 hashes None by its address, and clients have sets of nodes with their racks.
            node.rack = node.rack or f"rack-{number}"
        self.observed.watch(broker.cluster.offsets_topic().partitions)
        self.driver = FaultDriver(self, self._faults, self.seed)
        self.loop.call_exactly(1.0, self._second)
        context = Context()
        context.run(PROCESS.set, self._test)
        body = self.loop.create_task(self._body(test), name="test", context=context)
        await asyncio.wait({body, self._failed}, return_when=asyncio.FIRST_COMPLETED)
        if self.failure is None:
            for checker in self._checkers:
                checker.ended()
        self.trace("end", "")
        self.is_over = True

    async def _body(self, test: Test) -> None:
        try:
            await test(self.kafka, self)
            self.driver.finish()
            self._lines.add("world", "TEST", "it has returned; what follows is the end of its processes")
            if self._services:
                await (come_to_rest(self) if self.cooldown is None else asyncio.sleep(self.cooldown))
            for service in self._services.values():
                await service.stop()
            await asyncio.sleep(GRACE)
            self.check_left("the test", self._test)
            self.driver.check()
            self.kafka.faults.check()
        except Exception as error:
            self.fail(error)

    def _second(self) -> None:
        if self.is_over:
            return
        for checker in self._checkers:
            checker.each_second()
        self.loop.call_exactly(self.loop.now + 1.0, self._second)

    def _unhandled(self, loop: asyncio.AbstractEventLoop, context: dict[str, Any]) -> None:
        if self.is_over:
            return
        error = context.get("exception")
        log.error("%s%s", context.get("message"), "" if error is None else f": {error!r}")
        if error is not None and isinstance(failure_of(error), AssertionError):  # of a task without an await
            self.fail(error)

    def _bury(self) -> None:
        """Let the tasks go that are left."""
        for task in self.loop.tasks:
            task._log_destroy_pending = False  # type: ignore[attr-defined]
        for transport in list(self.network.transports):
            transport.is_lost = True
        with unheard():
            self.loop.drop_callbacks()
            buried = [task for process in self.graveyard for task in process.tasks]
            closed: set[SimulatedTask] = set()
            while tasks := [task for task in (*self.loop.tasks, *buried) if task not in closed]:
                for task in tasks:
                    with suppress(BaseException):  # whatever a coroutine does when it is closed
                        task.coroutine.close()
                closed.update(tasks)  # what they have started meanwhile comes next
            self.loop.drop_callbacks()
            self.graveyard.clear()
            for service in self._services.values():
                service.process = service.machine.process = None
            self.network.by_process.clear()
            gc.collect()


def _plain(value: object) -> str:
    """A value's text, in which sets have an order."""
    if isinstance(value, Mapping):
        return ", ".join(f"{key}: {_plain(value[key])}" for key in sorted(value))
    if isinstance(value, frozenset):
        return "{" + ", ".join(sorted(map(str, value))) + "}"
    return str(value)
