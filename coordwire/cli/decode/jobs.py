"""`--jobs N`: several inputs at once, each decoded by one of N processes, with the output of one process.

Strategy: processes are forked once the command is prepared, each with a pipe to it. One is given an input at
a time; its standard output and error are files of a temporary folder meanwhile, which are copied to the
command's own in the order of the inputs. Where the output of an input depends on those before it (the widths
of columns, the names of topics), a process is given what the latest finished inputs have left; if another
input changed that meanwhile, the input is decoded again. At most `AHEAD` inputs for each process are given
out before their output is written.

Rules: no process holds more than a command without --jobs, and what waits; interrupts are left to the
command, and whatever way it ends, its processes and files are gone; a process whose command was killed ends
after its input.
"""

from __future__ import annotations

import os
import shutil
import signal
import sys
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import suppress
from multiprocessing import get_all_start_methods, get_context
from multiprocessing.connection import Connection, wait
from pathlib import Path
from typing import Any, Protocol, cast

from coordwire.capture.printable import shown
from coordwire.cli import Failure, progress, terminable

AHEAD = 2
COPIED = 1 << 20
"""Bytes that are copied at a time."""


class InputReading(Protocol):
    """What the processes do. state: what the inputs read so far have left for the output of the next ones,
    comparable; None where that depends on nothing."""

    state: Any

    def read(self, index: int) -> Any:
        """Write the output of one input; what else is to be known of it, for pickle."""


def is_possible() -> bool:
    """Whether standard output is a file or a pipe, in an encoding without a mark at its beginning, both
    outputs are the process's own, and the system can fork."""
    try:
        numbers = [stream.fileno() for stream in (sys.stdout, sys.stderr)]
    except (AttributeError, OSError, ValueError):
        return False
    is_own = numbers == [1, 2] and not sys.stdout.isatty() and not "".encode(sys.stdout.encoding)
    return is_own and "fork" in get_all_start_methods()


def read_all(reading: InputReading, names: Sequence[str], jobs: int) -> Iterator[Any]:
    """Read all inputs in so many processes; for each, in order, what `InputReading.read` has returned, once
    its output is written. Raises what a process raised, and `Failure` for one that was killed."""
    with terminable(), tempfile.TemporaryDirectory(prefix="coordwire-") as folder:
        pool = _Pool(reading, names, Path(folder))
        try:
            for _ in range(min(jobs, len(names))):
                pool.add()
            for index in range(len(names)):
                result = pool.result(index)
                for kind, stream in (("out", sys.stdout), ("err", sys.stderr)):
                    _copy(pool.path(index, kind), stream)
                progress.report(names[index], index + 1, len(names))
                yield result
        finally:
            pool.stop()


def _copy(path: Path, stream: Any) -> None:
    """Copy a file to a standard stream, and remove it."""
    progress.clear()
    with path.open("rb") as file:
        stream.flush()
        shutil.copyfileobj(file, stream.buffer, COPIED)
        stream.flush()
    path.unlink()


class _Worker:
    """A process, its pipe, and the input that it has, with the state that it was given."""

    def __init__(self, process: Any, pipe: Connection) -> None:
        self.process = process
        self.pipe = pipe
        self.index: int | None = None
        self.state: Any = None


class _Pool:
    """The processes, and the inputs that are read ahead."""

    def __init__(self, reading: InputReading, names: Sequence[str], folder: Path) -> None:
        self._reading = reading
        self._names = names
        self._folder = folder
        self._workers: list[_Worker] = []
        self._next = 0
        self._results: dict[int, tuple[Any, Any, Any]] = {}
        """By input: the state before it, the state after it, its result."""

    def path(self, index: int, kind: str) -> Path:
        return self._folder / f"{index}.{kind}"

    def add(self) -> None:
        """Add a process."""
        for stream in (sys.stdout, sys.stderr):
            stream.flush()
        context = get_context("fork")
        own_end, worker_end = context.Pipe()
        inherited = [own_end, *[worker.pipe for worker in self._workers]]
        process = context.Process(target=self._run, args=(worker_end, inherited), daemon=True)
        process.start()
        worker_end.close()
        self._workers.append(_Worker(process, own_end))

    def stop(self) -> None:
        """Kill all processes."""
        for worker in self._workers:
            worker.process.kill()
            worker.process.join()
            worker.pipe.close()

    # --- in the command's process ---

    def result(self, index: int) -> Any:
        """The result of an input whose predecessors' were given."""
        reading = self._reading
        while True:
            self._give(index)
            if index not in self._results:
                self._receive()
                continue
            before, after, result = self._results.pop(index)
            if isinstance(result, BaseException):
                raise result
            if before == reading.state:
                reading.state = after
                return result
            self._repeat(index)

    def _give(self, index: int) -> None:
        """Give inputs to idle processes. index: the input that is due."""
        if self._reading.state is not None and index == 0 and self._next == 1:
            return  # the first input leaves most of what the others need
        last = min(index + AHEAD * len(self._workers), len(self._names))
        for worker in self._workers:
            if worker.index is None and self._next < last:
                self._send(worker, self._next)
                self._next += 1
                if self._reading.state is not None and self._next == 1:
                    return

    def _repeat(self, index: int) -> None:
        """Read an input again, with the state that it must have."""
        while (worker := next((idle for idle in self._workers if idle.index is None), None)) is None:
            self._receive()
        self._send(worker, index)

    def _send(self, worker: _Worker, index: int) -> None:
        worker.index, worker.state = index, self._reading.state
        with suppress(OSError):  # it has ended, which the next answer shows
            worker.pipe.send((index, worker.state))

    def _receive(self) -> None:
        """Wait for results."""
        by_pipe = {worker.pipe: worker for worker in self._workers if worker.index is not None}
        for pipe in wait(list(by_pipe)):
            worker = by_pipe[cast("Connection", pipe)]
            index, worker.index = worker.index, None
            assert index is not None
            after = None
            try:
                result, after = worker.pipe.recv()
            except (EOFError, OSError):
                result = self._replace(worker, self._names[index])
            self._results[index] = worker.state, after, result

    def _replace(self, worker: _Worker, name: str) -> Failure:
        """Replace a process that has ended before its time; the error of its input."""
        self._workers.remove(worker)
        worker.pipe.close()
        worker.process.join()
        self.add()
        return Failure(f"{shown(name)}: the process that read it ended with status {worker.process.exitcode}")

    # --- in a process of the pool ---

    def _run(self, pipe: Connection, inherited: Sequence[Connection]) -> None:
        """Read inputs until the command's end of the pipe closes."""
        signal.signal(signal.SIGINT, signal.SIG_IGN)
        signal.signal(signal.SIGTERM, signal.SIG_DFL)
        progress.end()
        for pipe_end in inherited:
            pipe_end.close()
        with suppress(EOFError, OSError):
            while True:
                index, state = pipe.recv()
                pipe.send(self._answer(index, state))

    def _answer(self, index: int, state: Any) -> tuple[Any, Any]:
        try:
            for number, kind in ((1, "out"), (2, "err")):
                file = os.open(self.path(index, kind), os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
                os.dup2(file, number)
                os.close(file)
            self._reading.state = state
            result = self._reading.read(index)
            sys.stdout.flush()
            sys.stderr.flush()
        except (Exception, SystemExit) as error:
            with suppress(OSError):
                sys.stdout.flush()
            return error, None
        return result, self._reading.state
