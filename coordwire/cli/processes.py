"""The processes of a command: forked once it is prepared, each with a pipe to it.

Rules: interrupts are left to the command, which kills its processes whatever way it ends; a process whose
command was killed ends once it uses its pipe.
"""

from __future__ import annotations

__all__ = ["CHANGED", "Child", "Children", "can_fork", "configure"]

import argparse
import sys
from collections.abc import Callable, Sequence
from contextlib import suppress
from typing import TYPE_CHECKING, Any, cast

from coordwire.capture.printable import shown
from coordwire.cli import Failure, progress

if TYPE_CHECKING:
    from multiprocessing.connection import Connection

MOST_JOBS = 1_000

CHANGED = "the capture changed while it was read by several processes"


def configure(parser: argparse.ArgumentParser, text: str) -> None:
    """Add the option that says how many processes a command has."""
    parser.add_argument("--jobs", type=_jobs, default=1, metavar="N", help=text)


def _jobs(text: str) -> int:
    jobs = int(text) if text.isdecimal() and text.isascii() and len(text) <= 4 else 0
    if not 0 < jobs <= MOST_JOBS:
        raise argparse.ArgumentTypeError(
            f"expected a number of processes from 1 to {MOST_JOBS:,}, got {text!r}"
        )
    return jobs


def can_fork() -> bool:
    """Whether the system can fork."""
    from multiprocessing import get_all_start_methods

    return "fork" in get_all_start_methods()


class Child:
    """A process, its pipe, and the input or the share that it has."""

    def __init__(self, process: Any, pipe: Connection) -> None:
        self.process = process
        self.pipe = pipe
        self.index: int | None = None
        self.state: Any = None


class Children(list[Child]):
    """The processes of a command."""

    def fork(self, serve: Callable[[Connection], None], *, reports: bool = False) -> Child:
        """Add a process, which calls `serve` with its end of a pipe. reports: whether it shows how far it has
        come."""
        from multiprocessing import get_context

        for stream in (sys.stdout, sys.stderr):
            stream.flush()
        context = get_context("fork")
        own_end, worker_end = context.Pipe()
        inherited = [own_end, *[worker.pipe for worker in self]]
        process = context.Process(target=_run, args=(serve, worker_end, inherited, reports), daemon=True)
        process.start()
        worker_end.close()
        worker = Child(process, own_end)
        self.append(worker)
        return worker

    def wait(self) -> list[Child]:
        """Those with an input that have sent something or ended, one at least."""
        from multiprocessing.connection import wait

        by_pipe = {worker.pipe: worker for worker in self if worker.index is not None}
        return [by_pipe[cast("Connection", pipe)] for pipe in wait(list(by_pipe))]

    def remove_ended(self, worker: Child, name: str) -> Failure:
        """Remove a process that has ended before its time; the error of its input."""
        self.remove(worker)
        worker.pipe.close()
        worker.process.join()
        status = worker.process.exitcode
        return Failure(f"{shown(name)}: the process that read it ended with status {status}")

    def kill(self) -> None:
        """Kill all processes."""
        for worker in self:
            worker.process.kill()
            worker.process.join()
            worker.pipe.close()


def _run(
    serve: Callable[[Connection], None], pipe: Connection, inherited: Sequence[Connection], reports: bool
) -> None:
    """What a process does: `serve`, until the command's end of the pipe closes."""
    import signal  # which most commands do without

    signal.signal(signal.SIGINT, signal.SIG_IGN)
    signal.signal(signal.SIGTERM, signal.SIG_DFL)
    if not reports:
        progress.end()
    for pipe_end in inherited:
        pipe_end.close()
    with suppress(EOFError, OSError):
        serve(pipe)
