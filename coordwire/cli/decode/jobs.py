"""`--jobs N`: several inputs at once, each decoded by one of N processes, or one capture that N processes
read, with the output of one process.

Strategy for several inputs: processes are forked once the command is prepared. One is given an input at a
time; its standard output and error are files of a temporary folder meanwhile, which are copied to the
command's own in the order of the inputs. Where the output of an input depends on those before it (the widths
of columns, the names of topics), a process is given what the latest finished inputs have left; if another
input changed that meanwhile, the input is decoded again. At most `AHEAD` inputs for each process are given
out before their output is written.

Strategy for one capture: every process reads all of it and decodes its share of the frames
(`coordwire.capture.share`). Shares take turns, and only the process whose turn it is writes: straight to
standard output. What one has written before its turn waits in memory, up to `MOST_DEFERRED` bytes; where it
depends on what the turns before have left (`ShareTurns`), its entries are written again once that is known. A
turn is passed on through the command, which counts, and watches the processes.

Rules: no process holds more than a command without --jobs, and what waits; interrupts are left to the
command, and whatever way it ends, its processes and files are gone; a process whose command was killed ends
after its input, or its turn.
"""

from __future__ import annotations

__all__ = ["InputReading", "ShareReading", "ShareTurns", "is_possible", "read_all", "read_shares"]

import io
import os
import pickle
import shutil
import sys
import tempfile
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any, Protocol, cast

from coordwire.capture.entries import Entry
from coordwire.capture.printable import shown
from coordwire.capture.share import Share
from coordwire.cli import Failure, progress, terminable
from coordwire.cli.decode.formats import DecodeFormat
from coordwire.cli.processes import CHANGED, Child, Children, can_fork
from coordwire.cli.selection.names import TELLING, TopicNames

AHEAD = 2
COPIED = 1 << 20
"""Bytes that are copied at a time."""

MOST_DEFERRED = 32 << 20
"""Bytes of output that wait for the turn of their process."""
MOST_WAITING = 20_000
"""Entries that wait to be written again, if that must be."""
BUFFERED = 1 << 16


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
    return is_own and can_fork()


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


# --- several inputs ---


class _Pool:
    """The processes, and the inputs that are read ahead."""

    def __init__(self, reading: InputReading, names: Sequence[str], folder: Path) -> None:
        self._reading = reading
        self._names = names
        self._folder = folder
        self._workers = Children()
        self._next = 0
        self._results: dict[int, tuple[Any, Any, Any]] = {}
        """By input: the state before it, the state after it, its result."""

    def path(self, index: int, kind: str) -> Path:
        return self._folder / f"{index}.{kind}"

    def add(self) -> None:
        """Add a process."""
        self._workers.fork(self._serve)

    def stop(self) -> None:
        """Kill all processes."""
        self._workers.kill()

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

    def _send(self, worker: Child, index: int) -> None:
        worker.index, worker.state = index, self._reading.state
        with suppress(OSError):  # it has ended, which the next answer shows
            worker.pipe.send((index, worker.state))

    def _receive(self) -> None:
        """Wait for results."""
        for worker in self._workers.wait():
            index, worker.index = worker.index, None
            assert index is not None
            after = None
            try:
                result, after = worker.pipe.recv()
            except (EOFError, OSError):
                result = self._workers.remove_ended(worker, self._names[index])
                self.add()
            self._results[index] = worker.state, after, result

    # --- in a process of the pool ---

    def _serve(self, pipe: Connection) -> None:
        """Read inputs until the command's end of the pipe closes."""
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


# --- one capture ---


class ShareReading(Protocol):
    """What the processes that read one capture do."""

    def read_share(self, turns: ShareTurns) -> Any:
        """Read a share and write its output by turns; what else is to be known of it, for pickle."""

    def take(self) -> Any:
        """What was counted since the last call, for pickle."""

    def add_counts(self, counts: Any) -> None:
        """Add what a process counted in its turn; those of all turns are given in their order."""


def read_shares(reading: ShareReading, name: str, count: int) -> list[Any]:
    """Read a capture in so many processes; for each, what `ShareReading.read_share` has returned. Raises what
    a process raised, and `Failure` for one that was killed."""
    workers = Children()
    results: dict[int, Any] = {}
    with terminable():
        try:
            for index in range(count):
                worker = workers.fork(_ShareServer(reading, name, index, count), reports=index == 0)
                worker.index = index
            _pass_turns(reading, name, workers, results)
        finally:
            progress.expect()
            workers.kill()
    return [results[index] for index in range(count)]


def _pass_turns(reading: ShareReading, name: str, workers: Children, results: dict[int, Any]) -> None:
    """Pass on the turns of all shares, until all processes have ended. results: by share."""
    by_share = {worker.index: worker for worker in workers}
    current = 0
    while workers:
        for worker in workers.wait():
            try:
                message = worker.pipe.recv()
            except (EOFError, OSError):
                raise workers.remove_ended(worker, name) from None
            if isinstance(message, BaseException):
                raise message
            following, state, counts, result = message
            reading.add_counts(counts)
            if following is not None:
                current = following
                if current in results:
                    raise Failure(f"{shown(name)}: {CHANGED}")
                with suppress(OSError):  # it has ended, which its own pipe shows
                    by_share[current].pipe.send(state)
                continue
            assert worker.index is not None
            results[worker.index] = result
            workers.remove(worker)
            worker.process.join()
            worker.pipe.close()
            for waiting in workers if worker.index == current else ():
                with suppress(OSError):
                    waiting.pipe.send(None)  # there are no further turns


class _ShareServer:
    """What the process of one share does."""

    def __init__(self, reading: ShareReading, name: str, index: int, count: int) -> None:
        self._reading = reading
        self._name = name
        self._share = Share(index, count, in_order=True)

    def __call__(self, pipe: Connection) -> None:
        output = sys.stdout  # which stays open
        deferred = _DeferredOutput()
        sys.stdout = io.TextIOWrapper(
            io.BufferedWriter(deferred, BUFFERED), encoding=output.encoding, errors=output.errors
        )
        turns = ShareTurns(pipe, self._share, self._name, deferred, self._reading.take)
        try:
            result = self._reading.read_share(turns)
            sys.stdout.flush()
            progress.end()
            pipe.send((None, None, self._reading.take(), result))
        except (Exception, SystemExit) as error:
            pipe.send(error)


class _DeferredOutput(io.RawIOBase):
    """Standard output, or what waits to be written to it. is_full: more would have waited than may; what did
    is dropped, and must be written again."""

    def __init__(self) -> None:
        self.is_full = False
        self._output = io.FileIO(1, "wb", closefd=False)
        self._waiting: list[bytes] | None = []
        self._size = 0

    def writable(self) -> bool:
        return True

    def fileno(self) -> int:
        return self._output.fileno()

    def write(self, data: Any) -> int | None:
        if self._waiting is None:
            return self._output.write(data)
        self._size += len(data)
        if self._size > MOST_DEFERRED:
            self.is_full = True
            self._waiting.clear()
        else:
            self._waiting.append(bytes(data))
        return len(data)

    def drop(self) -> None:
        """Drop what waits, and let wait all that is written from now on."""
        self._waiting, self._size, self.is_full = [], 0, False

    def release(self) -> None:
        """Write what waits, and all later output at once."""
        waiting, self._waiting = self._waiting, None
        for data in waiting or ():
            view = memoryview(data)
            while view:
                view = view[self._output.write(view) or 0 :]


class ShareTurns:
    """The turns of one share: its entries, and what is written of them. share: for the capture; output: what
    writes, which depends on the turns before by the names of topics and its `state`.

    The names are learned from the frames of all shares, in their order; where one of them is new while
    entries wait, these have their turn first. An output with a `state` begins with its own last one, and is
    written again if the turn before has left another; one that keeps texts meanwhile has `keep`.
    """

    output: DecodeFormat

    def __init__(
        self, pipe: Connection, share: Share, name: str, deferred: _DeferredOutput, take: Callable[[], Any]
    ) -> None:
        self.share = share
        self._name = name
        self._pipe = pipe
        self._deferred = deferred
        self._take = take
        self._has_turn = share.index == share.turn
        self._waiting: list[tuple[Entry, int]] = []
        self._state: Any = None
        self._topics = TopicNames()
        self._plain_line: Callable[[Any, int], str | None] = _no_line
        self._plain_run: Callable[[list[Any], int, int, frozenset[int]], tuple[str, int]] | None = None

    def begin(self, output: DecodeFormat, topics: TopicNames, *, learns: bool) -> None:
        """Begin to write. What the output has written so far, the command has written. learns: whether the
        output depends on the names of topics."""
        sys.stdout.flush()
        self._deferred.drop()
        self.output, self._topics = output, topics
        plain = getattr(output, "plain", None)
        self._plain_line = _no_line if plain is None else plain.line
        self._plain_run = None if plain is None else plain.run
        if learns:
            self.share.share_answer, self.share.shared_keys = topics.learn, TELLING
        if self._has_turn:
            self._deferred.release()
        else:
            self._wait()

    def batches(self, batches: Iterator[list[Entry]]) -> Iterator[list[Entry]]:
        """The share's entries in lists, each of one turn, with the turns between them."""
        trouble = None
        while True:
            try:
                batch = next(batches)
            except StopIteration:
                break
            except Failure as failure:
                trouble = failure
                break
            yield batch
            if not self.share.is_next:
                self._pass_on()
        if self.share.is_next:
            self._settle()
            if trouble is None:
                self.output.finish()
        if trouble is not None:
            raise trouble

    def learn(self, entry: Entry) -> None:
        """Learn the names of topics that an entry has."""
        if self._waiting and any(True for _ in self._topics.news(entry)):
            self._settle()
        self._topics.learn(entry)

    def write(self, entry: Entry, digits: int) -> None:
        """Write an entry, or let it wait."""
        if not self._has_turn:
            self._waiting.append((entry, digits))
        self.output.write(entry, digits)
        self._bound()

    def plain_line(self, entry: Entry, digits: int) -> str | None:
        """The output's plain line; an empty text where the line waits."""
        line = self._plain_line(entry, digits)
        if line is None or self._has_turn:
            return line
        self._waiting.append((entry, digits))
        sys.stdout.write(line)
        self._bound()
        return ""

    def plain_run(self, batch: list[Entry], at: int, digits: int, stops: frozenset[int]) -> tuple[str, int]:
        """The output's run of plain lines; an empty text where they wait."""
        assert self._plain_run is not None
        text, after = self._plain_run(batch, at, digits, stops)
        if self._has_turn or after == at:
            return text, after
        self._waiting += [(entry, digits) for entry in batch[at:after]]
        sys.stdout.write(text)
        self._bound()
        return "", after

    def _bound(self) -> None:
        """Wait for the turn if too much waits."""
        if self._deferred.is_full or len(self._waiting) >= MOST_WAITING:
            self._settle()

    def _wait(self) -> None:
        """Begin to let entries wait."""
        self._has_turn = False
        self._state = getattr(self.output, "state", None)
        self._deferred.drop()
        if (keep := getattr(self.output, "keep", None)) is not None:
            keep(True)

    def _settle(self) -> None:
        """Wait for the turn, and write what waits."""
        if self._has_turn:
            return
        data = self._pipe.recv()
        if data is None:
            raise Failure(f"{shown(self._name)}: {CHANGED}")
        state = pickle.loads(data)
        sys.stdout.flush()
        is_as_assumed = state == self._state and not self._deferred.is_full
        if not is_as_assumed:
            self._deferred.drop()
        self._deferred.release()
        self._has_turn = True
        waiting, self._waiting = self._waiting, []
        if not is_as_assumed:
            if state is not None:
                cast(Any, self.output).state = state
            for entry, digits in waiting:
                line = self._plain_line(entry, digits)
                if line is None:
                    self.output.write(entry, digits)
                else:
                    sys.stdout.write(line)
        if (keep := getattr(self.output, "keep", None)) is not None:
            keep(False)

    def _pass_on(self) -> None:
        """End the turn."""
        self._settle()
        sys.stdout.flush()
        state = getattr(self.output, "state", None)
        self._pipe.send((self.share.turn, pickle.dumps(state), self._take(), None))
        self._wait()


def _no_line(entry: Entry, digits: int) -> str | None:
    """No plain line."""
    return None
