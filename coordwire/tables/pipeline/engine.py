"""An engine runs units of work: Spark, or processes of this machine, without Spark and Java.

Strategy: an `Engine` has one operation; `LocalEngine` and the engines of `coordwire.spark.engines` implement
it. Units, attempts, notes, manifest and report are the same functions for both, and the plan of units does
not depend on the engine, so that one finishes what the other began. Rules: neighbouring units share a task,
whose files appear together, so that all workers end at about the same time and stores are asked seldom; a
failed job raises one sentence.

Processes: each worker is a fork of this process where that has one thread, and so has what was imported;
otherwise an interpreter of its own, started without the user's main module (a script needs no guard, a
notebook no file). It has a socket to this process, which hands it one task at a time. A worker that is
killed takes down only its task, which is given to another one; a pool of `concurrent.futures` would be broken
as a whole. Rules: a task is begun `TRIES` times, as Spark does on a cluster, then the job fails; interrupts
are left to this process, and no worker is left when it continues; a worker whose socket closes ends, so that
none outlives this process for longer than its task.
"""

from __future__ import annotations

__all__ = ["TRIES", "Engine", "LocalEngine", "Progress", "as_tasks", "serve"]

import gc
import os
import signal
import socket
import subprocess
import sys
import traceback
from collections import deque
from collections.abc import Callable, Sequence
from contextlib import suppress
from multiprocessing.connection import Connection, wait
from typing import NoReturn, Protocol, cast

from coordwire.errors import CoordwireError
from coordwire.tables.pipeline.units import Job, Unit, cause, is_last_of, is_rest, printable, run_units
from coordwire.tables.readers.splits import OPENING

Progress = Callable[[int, int], None]
"""Called with how many tasks are done, of how many."""

TASK = 32 << 20
"""Bytes that a task reads at least, where there are that many."""

SMALL, MOST_UNITS = 1 << 20, 100
"""Units of together fewer bytes, or than one of them may have, share a task, up to so many, however many
workers there are; so do those of half a task's, where each worker still has four tasks: small captures of a
task share files."""


class Engine(Protocol):
    """Runs units."""

    def run_units(self, units: Sequence[Unit], job: Job, progress: Progress | None) -> None:
        """Run the units, in any order, each to its note. Raises `CoordwireError` where the job fails."""


def as_tasks(units: Sequence[Unit], workers: int, split_size: int) -> list[list[Unit]]:
    """Group neighbouring units: enough tasks for workers to end at about the same time, none too small.

    The two units of a capture share a task, which reads it once, unless a worker would have nothing to do;
    those of a chain always do."""
    cost = [unit.part.end - unit.part.start + OPENING for unit in units]
    total = sum(cost)
    most = (
        max(TASK, total // (1000 * workers)) if total > 4 * workers * TASK else (total // (4 * workers) + 1)
    )
    read = (total - len(units) * OPENING) // (4 * workers)
    small = min(max(SMALL, min(read, TASK // 2)), split_size)
    tasks: list[list[Unit]] = []
    used, before = most, None
    for unit, size in zip(units, cost, strict=True):
        count = len(tasks[-1]) if tasks else MOST_UNITS
        is_small = used + size - (count + 1) * OPENING <= small
        is_last = is_last_of(before, unit)
        is_read_already = is_last or (unit.part.size * workers <= total and is_rest(before, unit))
        if not is_read_already and (count >= MOST_UNITS or (used + size > most and not is_small)):
            tasks.append([])
            used = 0
        tasks[-1].append(unit)
        used += size
        before = before if is_last else unit
    return tasks


# --- processes ---

TRIES = 4
"""How often a task is begun before the job fails."""

_START = f"import sys; sys.path[:] = sys.argv[2:]; from {__name__} import serve; serve(int(sys.argv[1]))"


class LocalEngine:
    """Runs units in processes. workers: how many; by default one for each processor that we may use."""

    def __init__(self, workers: int | None = None) -> None:
        if workers is not None and workers < 1:
            raise CoordwireError(f"expected at least 1 worker, got {workers}")
        self.workers = workers or _processors()

    def run_units(self, units: Sequence[Unit], job: Job, progress: Progress | None) -> None:
        tasks = as_tasks(units, self.workers, job.options.split_size)
        if not tasks:
            return
        pool = _Pool(tasks, job, progress)
        try:
            pool.run(min(self.workers, len(tasks)))
        finally:
            pool.stop()


def _processors() -> int:
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def _has_one_thread() -> bool:
    """Whether this process has one thread, of Python's or of a library, as far as the system can tell: of
    several, a fork would lack all others and keep what they have locked."""
    try:
        return len(os.listdir("/proc/self/task")) == 1
    except OSError:
        return False


class _Fork:
    """A fork of this process that works as a worker, with the interface of `subprocess.Popen`."""

    def __init__(self, file: int) -> None:
        self._code: int | None = None
        self._process = os.fork()
        if not self._process:
            _serve_in_fork(file)

    def kill(self) -> None:
        if self._code is None:
            os.kill(self._process, signal.SIGKILL)

    def wait(self) -> int:
        if self._code is None:
            try:
                _, status = os.waitpid(self._process, 0)
                self._code = os.waitstatus_to_exitcode(status)
            except ChildProcessError:  # this process ignores how its children end
                self._code = 0
        return self._code


def _serve_in_fork(file: int) -> NoReturn:
    """Work as a worker with no more of the forked process than a new interpreter would have, but for what it
    imported: not its files, the folder's lock among them, nor its handlers of signals."""
    code = 1
    try:
        if hasattr(gc, "freeze"):
            gc.freeze()  # or files whose objects go would be closed, whatever has their numbers then
        for number in signal.valid_signals():
            if callable(signal.getsignal(number)):
                signal.signal(number, signal.SIG_DFL)
        signal.set_wakeup_fd(-1)
        os.dup2(os.open(os.devnull, os.O_RDONLY), 0)
        for open_file in map(int, os.listdir("/proc/self/fd")):
            if open_file > 2 and open_file != file:
                with suppress(OSError):  # the one of the list
                    os.close(open_file)
        serve(file)
        code = 0
    except BaseException:
        traceback.print_exc()
    finally:
        os._exit(code)


class _Worker:
    """A process, its pipe, and the task that it has."""

    def __init__(self, job: Job) -> None:
        own_end, worker_end = socket.socketpair()
        with worker_end:
            number = worker_end.fileno()
            before = signal.pthread_sigmask(signal.SIG_BLOCK, [signal.SIGINT])  # it keeps what it begins with
            try:
                self.process: _Fork | subprocess.Popen[bytes] = (
                    _Fork(number)
                    if _has_one_thread()
                    else subprocess.Popen(
                        [sys.executable, "-c", _START, str(number), *sys.path],
                        pass_fds=[number], stdin=subprocess.DEVNULL,
                    )
                )  # fmt: skip
            finally:
                signal.pthread_sigmask(signal.SIG_SETMASK, before)
        self.pipe = Connection(own_end.detach())
        self.task: int | None = None
        self._send(job)

    def _send(self, value: object) -> None:
        with suppress(OSError):  # it has ended, which the pipe is about to say
            self.pipe.send(value)

    def give(self, task: int, group: Sequence[Unit]) -> None:
        self.task = task
        self._send(group)

    def answer(self) -> str | None:
        """Why the task failed; None if it is done. Raises `EOFError` where the process has ended."""
        try:
            answer: str | None = self.pipe.recv()
        except OSError:
            raise EOFError from None
        return answer

    def ended(self) -> str:
        """How the process ended, in words; closes its pipe."""
        self.pipe.close()
        code = self.process.wait()
        return f"was ended by {_signal(-code)}" if code < 0 else f"ended with status {code}"

    def stop(self) -> None:
        """Kill the process; the run removes what it leaves."""
        self.process.kill()
        self.process.wait()
        self.pipe.close()


def _signal(number: int) -> str:
    try:
        return signal.Signals(number).name
    except ValueError:
        return f"signal {number}"


class _Pool:
    """Distributes tasks to workers."""

    def __init__(self, tasks: list[list[Unit]], job: Job, progress: Progress | None) -> None:
        self._tasks = tasks
        self._job = job
        self._progress = progress
        self._waiting = deque(range(len(tasks)))
        self._tries = [0] * len(tasks)
        self._done_count = 0
        self._workers: dict[Connection, _Worker] = {}

    def run(self, workers: int) -> None:
        while len(self._workers) < workers:
            self._add()
        while self._done_count < len(self._tasks):
            for pipe in wait(list(self._workers)):
                self._hear(self._workers[cast("Connection", pipe)])

    def _add(self) -> None:
        worker = _Worker(self._job)
        self._workers[worker.pipe] = worker
        self._feed(worker)

    def _feed(self, worker: _Worker) -> None:
        worker.task = None
        if self._waiting:
            task = self._waiting.popleft()
            self._tries[task] += 1
            worker.give(task, self._tasks[task])

    def _hear(self, worker: _Worker) -> None:
        task = worker.task
        try:
            failure = worker.answer()
        except EOFError:
            del self._workers[worker.pipe]
            lost = f"a worker process {worker.ended()}"
            if task is not None:
                self._failed(task, f"{printable(self._tasks[task][0].part.path)}: {lost}")
                self._add()
            return
        if failure is None:
            self._done_count += 1
            if self._progress is not None:
                self._progress(self._done_count, len(self._tasks))
        elif task is not None:
            self._failed(task, failure)
        self._feed(worker)

    def _failed(self, task: int, reason: str) -> None:
        if self._tries[task] >= TRIES:
            raise CoordwireError(f"the job failed: {reason} ({TRIES} attempts); a rerun goes on where it was")
        self._waiting.append(task)

    def stop(self) -> None:
        """Kill all workers."""
        for worker in self._workers.values():
            worker.stop()
        self._workers.clear()


def serve(file: int) -> None:
    """Work as a worker: run tasks from a socket until it closes."""
    pipe = Connection(file)
    with suppress(EOFError, OSError):
        job = cast("Job", pipe.recv())
        while True:
            group = pipe.recv()
            try:
                run_units(group, job)
                answer = None
            except Exception as error:
                answer = cause(error)
            pipe.send(answer)
