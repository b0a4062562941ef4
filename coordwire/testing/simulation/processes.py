"""The processes of a simulated world, each over all its lives.

Strategy: a life is a tree of tasks with connections of their own, whose first task runs the user's function.
Rules: one that is killed runs no more, not even a `finally`. One that ends by an error starts again a second
later, as under a supervisor; one that SIGTERM has ended waits for `boot`.
"""

from __future__ import annotations

import asyncio
import logging
import signal
from collections.abc import Callable, Coroutine
from contextvars import Context
from typing import TYPE_CHECKING, Any

from coordwire.testing.simulation.asserted import failure_of
from coordwire.testing.simulation.checkers import Violation
from coordwire.testing.simulation.loop import PROCESS, LoopProcess, SimulatedTask, is_own, place_of
from coordwire.testing.simulation.network import Host

if TYPE_CHECKING:
    from coordwire.testing.simulation.world import SimulatedWorld

__all__ = ["GRACE", "Service", "SimulatedProcess"]

_RESTART = 1.0
"""Seconds until a process starts again that has ended by an error."""

GRACE = 2.0
"""Seconds that tasks and connections of a process may take to end after it."""

_STOP = 300.0
"""Seconds that a process may take to end when it is stopped."""

_LIVES = 5
"""So many lives in a row that an error ends soon, without a fault, are a loop of crashes."""

_SOON = 10.0
"""Seconds."""

log = logging.getLogger("coordwire.testing.simulation")


class SimulatedProcess(LoopProcess):
    """One life of a process."""

    __slots__ = ("ended", "main", "service", "tasks")

    def __init__(self, service: Service | None) -> None:
        super().__init__("test" if service is None else service.name)
        self.service = service
        self.ended: asyncio.Future[None] | None = None
        """Done when it is gone."""
        self.main: SimulatedTask | None = None
        self.tasks: list[SimulatedTask] = []
        """Those that a killed process had: a task that is collected would run its `finally`."""


class Service:
    """A process by its name, over all its lives. starts: how many there were; last_error: how the last one
    ended, if by an error; crashes: how many in a row ended so soon, without a fault; ahead: seconds by which
    its clock is ahead.

    >>> import asyncio
    >>> from coordwire.testing.simulation import Simulation
    >>> async def test(kafka, world):
    ...     till = world.start("till-1", asyncio.sleep, 3_600)
    ...     await asyncio.sleep(60)
    ...     print(till)
    ...     await till.stop()
    ...     print(till)
    >>> Simulation(test=test).run(7).failure
    <Service till-1: up, 1 start>
    <Service till-1: down, 1 start>
    """

    def __init__(
        self,
        world: SimulatedWorld,
        machine: Host,
        function: Callable[[], Coroutine[Any, Any, Any]],
        restarts: bool,
    ) -> None:
        self.world, self.machine, self._function, self._restarts = world, machine, function, restarts
        self.name = machine.name
        self.starts = self.crashes = 0
        self.ahead = 0.0
        self.last_error: BaseException | None = None
        self.process: SimulatedProcess | None = None
        self._freezes = 0
        self._is_stopping = False

    def __repr__(self) -> str:
        starts = f"{self.starts} start{'s' * (self.starts != 1)}"
        error = f", last ended by {self.last_error!r}" if self.last_error else ""
        return f"<Service {self.name}: {'up' if self.is_up else 'down'}, {starts}{error}>"

    @property
    def is_up(self) -> bool:
        """Whether its process runs, or is frozen."""
        return self.process is not None

    def boot(self) -> None:
        """Start the process, if it is down."""
        world = self.world
        if self.process is not None or world.is_over:
            return
        process = self.process = SimulatedProcess(self)
        process.ended = world.loop.create_future()
        self._is_stopping = False
        world.network.by_process[process] = self.machine
        self.machine.process = process
        self.starts += 1
        world.happened("start", self.name)
        context = Context()
        context.run(PROCESS.set, process)
        process.main = world.loop.create_task(self._life(process), name=self.name, context=context)
        process.main.is_main = True
        process.main.add_done_callback(lambda _: self._end(process))  # one that never began
        if self._freezes:
            process.is_frozen = process.is_halted = True

    async def _life(self, process: SimulatedProcess) -> None:
        world, start_time = self.world, self.world.now
        error: BaseException | None = None
        try:
            await self._function()
        except asyncio.CancelledError as cancelled:
            error = None if self._is_stopping else cancelled
        except Exception as raised:
            error = raised
            if isinstance(failure_of(error), AssertionError):
                world.fail(error)
                return
        self.last_error = error
        if error is not None:
            log.warning("%s has ended by %r", self.name, error)
            is_soon = world.now - start_time < _SOON and start_time > world.driver.ends
            self.crashes = self.crashes + 1 if is_soon and not self._is_stopping else 0
            if self.crashes == _LIVES:
                world.fail(
                    Violation(
                        "CrashLoop",
                        f"{self.name} ended {_LIVES} times in a row, without a fault, by {error!r}",
                    )
                )
                return
        if not self._is_stopping:  # what a process has left that SIGTERM ends, its system takes back
            await asyncio.sleep(GRACE)
            if error is None:
                world.check_left(self.name, process)
        self._end(process)
        if error is not None and self._restarts and not self._is_stopping:
            world.loop.call_exactly(world.loop.now + _RESTART, self.boot)
        elif error is not None and not self._restarts and not self._is_stopping:
            world.fail(error)

    def _end(self, process: SimulatedProcess) -> None:
        """The process is gone, with all that it had."""
        if process.is_gone:
            return
        if self.process is process:
            self.process = self.machine.process = None
        process.is_gone = process.is_halted = True
        process.postponed.clear()
        if process.ended is not None and not process.ended.done():
            process.ended.set_result(None)
        loop = self.world.loop
        process.tasks = [task for task in loop.tasks if task.process is process]
        for task in process.tasks:
            task._log_destroy_pending = False  # type: ignore[attr-defined]
        self.world.graveyard.append(process)
        for transport in self.world.network.of_process(process):
            transport.vanish()
        for server in list(self.world.network.servers.values()):
            if server.context.get(PROCESS) is process:
                server.close()

    async def stop(self) -> None:
        """Send SIGTERM, and wait until the process has ended.

        Its handler is called (`loop.add_signal_handler`); the main task of a process without one is
        cancelled. Raises `Violation` if it has not ended 300 s later. `boot` starts it again.
        """
        process = self.process
        if process is None or process.main is None or process.ended is None:
            return
        if not self._is_stopping:
            self._is_stopping = True
            handler = process.signal_handlers.get(signal.SIGTERM)
            place = place_of(process.main)
            if handler is None:
                self.world.happened("sigterm", f"{self.name} is cancelled at {place}")
                process.main.cancel()
            else:
                self.world.happened("sigterm", f"{self.name} is at {place}")
                handler()
        await asyncio.wait([process.ended], timeout=_STOP)
        if not process.is_gone:
            raise Violation(
                "Stop",
                f"{self.name} has not ended {_STOP:.0f} s after SIGTERM: {self.world.loop.waiting(process)}",
            )

    def awaits(self, count: int) -> asyncio.Future[None]:
        """Done when the process's own code, not that of packages, has come to so many more awaits."""
        counted: asyncio.Future[None] = self.world.loop.create_future()
        process, remaining = self.process, count

        def step(task: SimulatedTask) -> None:
            nonlocal remaining
            if task.done() or not is_own(task):
                return
            remaining -= 1
            if not remaining:
                process.on_step, process.is_halted = None, process.is_frozen  # type: ignore[union-attr]
                if not counted.done():
                    counted.set_result(None)

        if process is None:
            counted.set_result(None)
        else:
            process.on_step, process.is_halted = step, True
        return counted

    # --- faults ---

    def crash(self) -> Callable[[], None]:
        """Kill the process; what starts it again."""
        process = self.process
        if process is not None:
            self._end(process)
        return self.boot

    def freeze(self) -> Callable[[], None]:
        """Freeze the process; what lets it go on."""
        self._freezes += 1
        if self.process is not None:
            self.process.is_frozen = self.process.is_halted = True

        def thaw() -> None:
            self._freezes -= 1
            process = self.process
            if not self._freezes and process is not None and process.is_frozen:
                self.world.loop.thaw(process)

        return thaw

    def skew(self, seconds: float) -> Callable[[], None]:
        """Set the process's clock ahead; what sets it right."""
        self.ahead += seconds

        def right() -> None:
            self.ahead -= seconds

        return right
