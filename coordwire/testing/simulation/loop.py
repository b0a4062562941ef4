"""`SimulationLoop`: an asyncio event loop whose time is virtual and whose choices come from a seed.

Strategy: callbacks, tasks and futures are asyncio's own; only the step of the loop is other: when nothing is
ready, time jumps to the next timer. What asyncio leaves open is the seed's choice: how late a timer is (up to
a millisecond), which of those that are due runs first, how long an executor takes. `call_soon` keeps its
order, as asyncio promises, unless `TaskOrder` is asked for. Tasks and futures have hashes by their number, so
that sets of them have an order that does not depend on where they are in memory. Rules: every callback
belongs to the process in whose context it was made; one of a process that is frozen waits, one of a process
that was killed never runs. A socket or a subprocess is refused; a thread too, or it is waited for.
"""

from __future__ import annotations

import asyncio
import gc
import socket
from asyncio import events
from collections import deque
from collections.abc import Callable, Coroutine
from contextvars import Context, ContextVar, copy_context
from functools import partial
from heapq import heapify, heappop, heappush
from random import Random
from ssl import create_default_context
from threading import get_ident
from typing import TYPE_CHECKING, Any

from coordwire.errors import CoordwireError
from coordwire.testing.simulation.order import TaskOrder
from coordwire.testing.simulation.packages import DialedSocket
from coordwire.testing.simulation.surroundings import EnteredWorld, is_outside, refuse
from coordwire.testing.simulation.threads import WorldThreads

if TYPE_CHECKING:
    from coordwire.testing.simulation.network import Network

__all__ = ["PROCESS", "LoopProcess", "SimulatedTask", "SimulationLoop", "TooLong", "is_own", "place_of"]

_LATENESS = 0.001
"""Seconds that a timer is late at most."""

_STEP = 0.000_01
"""Seconds that a step of the loop takes, so that code that asks the clock until time has passed gets on."""

_COLLECTED = 20_000
"""After so many steps of the loop garbage of what is new is collected, and each tenth time all of it."""

_MOST_STEPS = 50_000_000

_MIX = 0x9E37_79B9_7F4A_7C15


class TooLong(CoordwireError):
    """The world did not end within the time or the steps that it may have."""


class LoopProcess:
    """The owner of callbacks. is_frozen: they wait in `postponed`; is_gone: they never run; on_step: called
    with a task after each of its steps; is_halted: one of these, so that the loop asks but once.

    signal_handlers: what signals call, by their numbers; name: as reports have it.
    """

    __slots__ = ("is_frozen", "is_gone", "is_halted", "name", "on_step", "postponed", "signal_handlers")

    def __init__(self, name: str = "") -> None:
        self.name = name
        self.is_halted = self.is_frozen = self.is_gone = False
        self.postponed: deque[events.Handle] = deque()
        self.on_step: Callable[[SimulatedTask], None] | None = None
        self.signal_handlers: dict[int, Callable[[], events.Handle]] = {}


PROCESS: ContextVar[LoopProcess | None] = ContextVar("simulated process", default=None)
"""The process that runs."""


class _Callback(events.Handle):
    """asyncio's own handle, made and cancelled without a look at the debug mode, which is half the work."""

    __slots__ = ()

    def __init__(
        self, callback: Callable[..., Any], args: tuple[Any, ...], loop: SimulationLoop, context: Context
    ) -> None:
        self._callback, self._args, self._loop, self._context = callback, args, loop, context
        self._cancelled = False
        self._repr = self._source_traceback = None

    def cancel(self) -> None:
        self._cancelled = True
        self._callback = self._args = None  # type: ignore[assignment]


_set_due_time = events.TimerHandle._when.__set__  # type: ignore[attr-defined]


class _Timer(events.TimerHandle):
    """The same for a time."""

    __slots__ = ()

    def __init__(
        self,
        due_time: float,
        callback: Callable[..., Any],
        args: tuple[Any, ...],
        loop: SimulationLoop,
        context: Context,
    ) -> None:
        _set_due_time(self, due_time)
        self._scheduled = True
        self._callback, self._args, self._loop, self._context = callback, args, loop, context
        self._cancelled = False
        self._repr = self._source_traceback = None

    def cancel(self) -> None:
        if not self._cancelled:
            if self._scheduled:
                self._loop._cancelled_timers += 1
            self._cancelled = True
            self._callback = self._args = None  # type: ignore[assignment]


class SimulatedFuture(asyncio.Future[Any]):
    """A future whose hash is not its address."""

    _hash = 0
    """Until it is asked for; an attribute that is missing would cost an exception, which is slow."""

    def __hash__(self) -> int:
        value = self._hash
        if not value:
            loop: SimulationLoop = self.get_loop()  # type: ignore[assignment]
            value = self._hash = loop.new_hash()
        return value


class SimulatedTask(asyncio.Task[Any]):
    """A task whose hash is not its address. number: of its making; process: the one that made it."""

    def __init__(
        self,
        hash_value: int,
        number: int,
        coro: Coroutine[Any, Any, Any],
        *,
        loop: SimulationLoop,
        name: str,
        context: Context | None,
        process: LoopProcess | None,
    ) -> None:
        self._hash = hash_value
        self.number = number
        self.process = process
        self.coroutine = coro
        self.is_main = False
        """Whether it is the first of its process."""
        super().__init__(coro, loop=loop, name=name, context=context)

    def __hash__(self) -> int:
        return self._hash


class SimulationLoop(asyncio.BaseEventLoop):
    """The loop. now: seconds; steps: how many it has made; world: what runs in it.

    network: gives transports and servers. limit: seconds after which `TooLong` is raised. reorder: the depth
    of `TaskOrder`; 0 for asyncio's own order.
    """

    _ready: deque[events.Handle]
    _closed: bool
    _stopping: bool

    def __init__(self, seed: int, world: EnteredWorld, *, limit: float = 86_400.0, reorder: int = 0) -> None:
        super().__init__()
        self.now = 0.0
        self.steps = 0
        self.world = world
        self.limit = limit
        self.network: Network | None = None
        self._order = TaskOrder(seed, reorder) if reorder else None
        self._seed = seed
        self._random = Random(f"loop/{seed}")
        self._draw = self._random.random
        self._timers: list[tuple[float, int, _Timer]] = []
        self._cancelled_timers = 0
        self._numbers = self._hashes = 0
        self._tasks = 0
        self._is_stopping = False
        self.threads = WorldThreads()
        self.get_debug = bool  # type: ignore[method-assign]
        """False: futures and tasks ask for it when they are made, and this one costs no call in Python."""

    def time(self) -> float:
        return self.now

    # --- callbacks ---

    def call_soon(  # type: ignore[override]
        self, callback: Callable[..., Any], *args: Any, context: Context | None = None
    ) -> events.Handle:
        if self._closed:
            raise RuntimeError("Event loop is closed")
        handle = _Callback(callback, args, self, copy_context() if context is None else context)
        self._ready.append(handle)
        return handle

    def call_soon_threadsafe(  # type: ignore[override]
        self, callback: Callable[..., Any], *args: Any, context: Context | None = None
    ) -> events.Handle:
        if get_ident() == self.world.thread:
            return self.call_soon(callback, *args, context=context)
        if self._closed:
            raise RuntimeError("Event loop is closed")
        handle = _Callback(callback, args, self, Context() if context is None else context)

        def take(own: Context) -> None:
            if context is None:
                handle._context = own
            self._ready.append(handle)

        self.threads.give(take)
        return handle

    def call_later(  # type: ignore[override]
        self, delay: float, callback: Callable[..., Any], *args: Any, context: Context | None = None
    ) -> events.TimerHandle:
        return self._set_timer(self.now + delay, callback, args, context)

    def call_at(  # type: ignore[override]
        self, due_time: float, callback: Callable[..., Any], *args: Any, context: Context | None = None
    ) -> events.TimerHandle:
        return self._set_timer(due_time, callback, args, context)

    def _set_timer(
        self, due_time: float, callback: Callable[..., Any], args: tuple[Any, ...], context: Context | None
    ) -> _Timer:
        if self._closed:
            raise RuntimeError("Event loop is closed")
        handle = _Timer(due_time, callback, args, self, copy_context() if context is None else context)
        number = self._numbers = self._numbers + 1
        heappush(self._timers, (due_time + _LATENESS * self._draw(), number, handle))
        return handle

    def call_exactly(self, due_time: float, callback: Callable[..., Any], *args: Any) -> None:
        """Call something at a time, outside of all processes; the seed's other choices stay what they are."""
        handle = _Timer(due_time, callback, args, self, Context())
        heappush(self._timers, (due_time, 0, handle))

    def new_hash(self) -> int:
        """The next hash of a future or a task."""
        self._hashes += 1
        return (self._hashes * _MIX ^ self._seed) & 0x7FFF_FFFF_FFFF

    def create_future(self) -> asyncio.Future[Any]:
        return SimulatedFuture(loop=self)

    def create_task(  # type: ignore[override]
        self,
        coro: Coroutine[Any, Any, Any],
        *,
        name: str | None = None,
        context: Context | None = None,
        **options: Any,
    ) -> SimulatedTask:
        if self._closed:
            raise RuntimeError("Event loop is closed")
        self._tasks += 1
        process = PROCESS.get() if context is None else context.get(PROCESS)
        return SimulatedTask(
            self.new_hash(),
            self._tasks,
            coro,
            loop=self,
            name=f"Task-{self._tasks}" if name is None else str(name),
            context=context,
            process=process,
        )

    @property
    def tasks(self) -> list[SimulatedTask]:
        """Those that have not ended, in the order in which they were made."""
        waiting = [task for task in asyncio.all_tasks(self) if isinstance(task, SimulatedTask)]
        return sorted(waiting, key=lambda task: task.number)

    # --- the step ---

    def _run_once(self) -> None:
        """Run step after step until the loop is stopped."""
        ready, next_ready, process_of = self._ready, self._ready.popleft, PROCESS
        threads, order = self.threads, self._order
        while True:
            if threads.are_there:
                threads.settle()
            timers = self._timers
            while timers:
                due_time, _, timer = timers[0]
                if timer._cancelled:
                    heappop(timers)
                    self._cancelled_timers -= 1
                    continue
                if not ready and due_time > self.now and not self._is_stopping:
                    self.now = due_time
                if due_time <= self.now:
                    ready.extend(self._due())
                break
            else:
                if not ready and not self._is_stopping:
                    raise TooLong(f"nothing will ever happen: {self.waiting()}")
            for _ in range(len(ready) if order is None else order.arrange(ready, map(_task_of, ready))):
                handle = next_ready()
                if handle._cancelled:
                    continue
                context: Context = handle._context  # type: ignore[attr-defined]
                process = context.get(process_of)
                if process is not None and process.is_halted:
                    if process.is_gone:
                        continue
                    if process.is_frozen:
                        process.postponed.append(handle)
                        continue
                    task = getattr(handle._callback, "__self__", None)  # type: ignore[attr-defined]
                    if process.on_step is not None and isinstance(task, SimulatedTask):
                        context.run(handle._callback, *handle._args)  # type: ignore[attr-defined]
                        process.on_step(task)
                        continue
                try:
                    context.run(handle._callback, *handle._args)  # type: ignore[attr-defined]
                except (SystemExit, KeyboardInterrupt):
                    raise
                except BaseException as error:
                    self._failed(handle, error)
            self.now += _STEP
            self.steps += 1
            if not self.steps % _COLLECTED:
                gc.collect(1 if self.steps % (10 * _COLLECTED) else 2)
            if self.now > self.limit or self.steps > _MOST_STEPS:
                raise TooLong(f"the world has not ended after {self.now:.0f} s: {self.waiting()}")
            if self._stopping:
                return

    def _due(self) -> list[_Timer]:
        """The timers that are due now, in the seed's order."""
        timers, due = self._timers, []
        while timers and timers[0][0] <= self.now:
            handle = heappop(timers)[2]
            handle._scheduled = False
            if handle._cancelled:
                self._cancelled_timers -= 1
            else:
                due.append(handle)
        if len(due) > 1:
            self._random.shuffle(due)
        if self._cancelled_timers > 100 and 2 * self._cancelled_timers > len(timers):
            self._timers = [timer for timer in timers if not timer[2]._cancelled]
            heapify(self._timers)
            self._cancelled_timers = 0
        return due

    def _failed(self, handle: events.Handle, error: BaseException) -> None:
        """Report the error of a callback."""
        name = getattr(handle._callback, "__qualname__", "a callback")  # type: ignore[attr-defined]
        self.call_exception_handler(
            {"message": f"Exception in callback {name}", "exception": error, "handle": handle}
        )

    def thaw(self, process: LoopProcess) -> None:
        """Let a frozen process go on with what waited."""
        process.is_frozen, process.is_halted = False, process.on_step is not None
        self._ready.extend(process.postponed)
        process.postponed.clear()

    def drop_callbacks(self) -> None:
        """Forget all that is to be called."""
        self._timers.clear()
        self._ready.clear()

    def waiting(self, *processes: LoopProcess) -> str:
        """Where tasks wait, of all processes or of these; only the program's own tasks, if there are any."""
        tasks = [
            task for task in self.tasks
            if task.process and not task.process.is_gone and (not processes or task.process in processes)
        ]  # fmt: skip
        tasks = [task for task in tasks if is_own(task)] or tasks
        names = [f"{task.get_name()}{_owner(task)} ({place_of(task)})" for task in tasks]
        return f"these tasks wait: {', '.join(names[:10]) or 'none'}"

    def stop(self) -> None:
        self._is_stopping = True
        super().stop()

    def run_forever(self) -> None:
        self._is_stopping = False
        super().run_forever()

    def close(self) -> None:
        self._timers.clear()
        super().close()

    # --- signals ---

    def add_signal_handler(  # type: ignore[override]
        self, sig: int, callback: Callable[..., object], *args: Any
    ) -> None:
        """The process that asks has a handler; `Service.stop` sends SIGTERM."""
        process = PROCESS.get()
        if process is None:
            raise refuse(self.world, "signals", "waits for signals outside of a process")
        process.signal_handlers[sig] = partial(self.call_soon, callback, *args, context=copy_context())

    def remove_signal_handler(self, sig: int) -> bool:
        process = PROCESS.get()
        return process is not None and process.signal_handlers.pop(sig, None) is not None

    # --- threads and names ---

    def run_in_executor(  # type: ignore[override]
        self, executor: Any, func: Callable[..., Any], *args: Any
    ) -> asyncio.Future[Any]:
        """The function runs in the loop's thread, some time later, and delays no callback."""
        future = self.create_future()

        def work() -> None:
            if future.done():
                return
            events._set_running_loop(None)
            try:
                result = func(*args)
            except StopIteration as error:
                future.set_exception(RuntimeError(f"{error!r} of a function in an executor"))
            except BaseException as error:
                future.set_exception(error)
            else:
                future.set_result(result)
            finally:
                events._set_running_loop(self)

        self.call_later(0.000_1 + 0.002 * self._random.random(), work, context=copy_context())
        return future

    async def getaddrinfo(
        self,
        host: str | bytes | None,
        port: int | str | bytes | None,
        *,
        family: int = 0,
        type: int = 0,
        proto: int = 0,
        flags: int = 0,
    ) -> list[tuple[Any, ...]]:
        name = host.decode() if isinstance(host, bytes) else host or "127.0.0.1"
        await asyncio.sleep(0.000_5)
        address = self._net.address_of(name)
        if address is None:
            raise socket.gaierror(socket.EAI_NONAME, f"no machine of the simulated world is named {name}")
        return [(socket.AF_INET, socket.SOCK_STREAM, socket.IPPROTO_TCP, "", (address, int(port or 0)))]

    async def getnameinfo(self, sockaddr: Any, flags: int = 0) -> tuple[str, str]:
        return str(sockaddr[0]), str(sockaddr[1])

    # --- connections ---

    @property
    def _net(self) -> Network:
        assert self.network is not None
        return self.network

    async def create_connection(  # type: ignore[override]
        self,
        protocol_factory: Callable[[], asyncio.BaseProtocol],
        host: str | None = None,
        port: int | None = None,
        *,
        ssl: Any = None,
        sock: Any = None,
        server_hostname: str | None = None,
        **options: Any,
    ) -> tuple[asyncio.Transport, asyncio.BaseProtocol]:
        if isinstance(sock, DialedSocket):
            host, port = sock.host, sock.port
        elif sock is not None:
            raise refuse(self.world, "sockets", "connects a real socket")
        tls = create_default_context() if ssl is True else ssl or None
        host = host or "127.0.0.1"
        name = host if server_hostname is None else server_hostname
        return await self._net.connect(protocol_factory, host, int(port or 0), tls, name or None)

    async def create_server(  # type: ignore[override]
        self,
        protocol_factory: Callable[[], asyncio.BaseProtocol],
        host: Any = None,
        port: int | None = None,
        *,
        ssl: Any = None,
        sock: Any = None,
        **options: Any,
    ) -> asyncio.AbstractServer:
        if sock is not None:
            raise refuse(self.world, "sockets", "listens on a real socket")
        return self._net.listen(protocol_factory, host, int(port or 0), ssl or None)


def _refused(deed: str) -> Callable[..., Any]:
    def refused(self: SimulationLoop, *args: Any, **kwargs: Any) -> Any:
        raise refuse(self.world, "real files", deed)

    return refused


_EXITS = {
    "add_reader": "watches a real file descriptor",
    "add_writer": "watches a real file descriptor",
    "remove_reader": "watches a real file descriptor",
    "remove_writer": "watches a real file descriptor",
    "sock_recv": "reads a real socket",
    "sock_recv_into": "reads a real socket",
    "sock_sendall": "writes to a real socket",
    "sock_connect": "connects a real socket",
    "sock_accept": "accepts from a real socket",
    "create_datagram_endpoint": "opens a datagram socket",
    "create_unix_connection": "connects a Unix socket",
    "create_unix_server": "listens on a Unix socket",
    "connect_accepted_socket": "accepts a real socket",
    "connect_read_pipe": "reads a pipe",
    "connect_write_pipe": "writes to a pipe",
    "start_tls": "starts TLS within a connection",
    "subprocess_exec": "starts a process",
    "subprocess_shell": "starts a process",
}
for _name, _deed in _EXITS.items():
    setattr(SimulationLoop, _name, _refused(_deed))


def _task_of(handle: events.Handle) -> SimulatedTask | None:
    """The task of a process whose step it is."""
    task = getattr(handle._callback, "__self__", None)  # type: ignore[attr-defined]
    return task if isinstance(task, SimulatedTask) and task.process is not None else None


def is_own(task: SimulatedTask) -> bool:
    """Whether a task runs code of the program itself: neither of a package, nor of the library."""
    code = getattr(task.coroutine, "cr_code", None)
    return code is not None and (task.is_main or _is_own_file(code.co_filename))


def _is_own_file(name: str) -> bool:
    return is_outside(name) and "site-packages" not in name


def _owner(task: SimulatedTask) -> str:
    """Whose a task is, where its name does not say it."""
    name = task.process.name if task.process is not None else ""
    return "" if name in ("", task.get_name()) else f" of {name}"


def place_of(task: SimulatedTask) -> str:
    """Where a task waits: the innermost line of the program itself, and that of a package below it."""
    coroutine: Any = task.coroutine
    own, inner = "", getattr(coroutine, "__qualname__", "a coroutine")
    while coroutine is not None:
        frame = getattr(coroutine, "cr_frame", None)
        if frame is None:
            break
        name = frame.f_code.co_filename
        if is_outside(name):
            inner = f"{name.rpartition('/')[2]}:{frame.f_lineno}"
            own = inner if _is_own_file(name) else own
        coroutine = getattr(coroutine, "cr_await", None)
    return inner if own in ("", inner) else f"{own}, in {inner}"
