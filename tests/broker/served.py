"""`coordwire serve` in a process of its own, which can be stopped, killed and started again on its folder."""

from __future__ import annotations

import signal
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path
from types import TracebackType
from typing import Self

from tests.interop.broker import free_port


class NotServed(Exception):
    """The broker's process ended instead of listening."""


class Served:
    """A broker on a folder, on the same port each time it is started; a context manager ends it.

    folder: of its logs, None for memory. topics: names with the number of their partitions. options: more
    of the command's.
    """

    def __init__(self, folder: Path | None, topics: Mapping[str, int], options: tuple[str, ...] = ()) -> None:
        self.port = free_port()
        arguments = [f"--port={self.port}", *options]
        if folder is not None:
            arguments.append(f"--data={folder}")
        arguments += [f"--topic={name}:{count}" for name, count in topics.items()]
        self._command = [sys.executable, "-m", "coordwire.cli", "serve", *arguments]
        self._process: subprocess.Popen[bytes] | None = None

    @property
    def bootstrap(self) -> str:
        return f"127.0.0.1:{self.port}"

    @property
    def process_id(self) -> int:
        assert self._process is not None
        return self._process.pid

    def start(self) -> None:
        """Start it, and wait until it listens. Raises `NotServed`."""
        process = self._process = subprocess.Popen(self._command, stdout=subprocess.PIPE)
        assert process.stdout is not None
        if not process.stdout.readline():
            raise NotServed(f"the broker did not start: status {process.wait()}")

    def end(self, number: int = signal.SIGKILL) -> None:
        """Send it a signal, and wait until it has ended."""
        process, self._process = self._process, None
        if process is not None:
            process.send_signal(number)
            process.wait()
            if process.stdout is not None:
                process.stdout.close()

    def __enter__(self) -> Self:
        self.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.end()
