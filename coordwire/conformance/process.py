"""An implementation as a process: asked by a line of JSON on its standard input, and heard on its standard
output.

Strategy: one request at a time. What does not answer within the deadline is killed with all that it
started; the next request starts it again. On Linux the growth of a process's memory is known; what it grows
from answer to answer is the request's, but for the first, which has what is made once.

Rules: an answer has at most `LONGEST_ANSWER` bytes; of standard error the end is kept, and what comes before
is read and dropped, so that neither fills anything. Nothing is left running.
"""

from __future__ import annotations

import asyncio
import json
import os
import signal
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from types import TracebackType
from typing import Any, Self

from coordwire.errors import CoordwireError

LONGEST_ANSWER = 256 << 20
OUTPUT = 4_000
"""Bytes of standard error that are shown."""

_PART = 1 << 20
"""Bytes of it that are read at once: more than asyncio takes in one turn of its loop."""

_TURNS = 3
"""Of the loop, after which what is in the pipe has been read."""

_LAST_WORDS = 1.0
"""Seconds for the end of it once the process has ended."""


class ProcessDied(CoordwireError):
    """The process has ended, was silent for too long, or said what is not an answer. output: the end of its
    standard error, where it can't be started."""

    output = ""


class AskedProcess:
    """A process; to be used in `async with`. command: what starts it; kind: what it is, as "codec"; timeout:
    seconds for an answer, the start included; memory: bytes of address space that it gets, on Linux; None for
    no limit."""

    def __init__(
        self, command: Sequence[str], *, kind: str, timeout: float, memory: int | None = None
    ) -> None:
        self._command = command
        self._kind = kind
        self._timeout = timeout
        self._memory = memory
        self._process: asyncio.subprocess.Process | None = None
        self._errors_end = b""
        """The end of standard error."""
        self._hearing: asyncio.Task[None] | None = None
        self._peaks = (0, 0)
        self.starts = 0
        self.name = ""
        """What the implementation calls itself."""

    async def __aenter__(self) -> Self:
        try:
            await self._start()
        except BaseException as error:
            if isinstance(error, ProcessDied):
                error.output = await self.output()
            await self.__aexit__(None, None, None)
            raise
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self._end()

    async def ask(self, request: dict[str, Any], *, timeout: float | None = None) -> dict[str, Any]:
        """The answer to a request. timeout: seconds for this one. Raises `ProcessDied`, also where it can't
        be started again; `OSError`."""
        if self._process is None:
            await self._start()
        return await self._exchange(request, self._timeout if timeout is None else timeout)

    def growth(self) -> int:
        """Bytes by which the greatest size of the process's memory has grown since the last call; 0 where the
        system doesn't report it."""
        before, self._peaks = self._peaks, self._measured()
        if not any(before):
            return 0
        return max(0, *(now - then for now, then in zip(self._peaks, before, strict=True)))

    @property
    def memory_is_known(self) -> bool:
        """Whether the system reports how much memory the process has had."""
        return any(self._peaks)

    async def output(self) -> str:
        """The end of what the process wrote to standard error since the last call."""
        for _ in range(_TURNS):
            await asyncio.sleep(0)
        text, self._errors_end = self._errors_end.decode(errors="replace"), b""
        return text

    async def _hear(self, errors: asyncio.StreamReader) -> None:
        while part := await errors.read(_PART):
            self._errors_end = (self._errors_end + part)[-OUTPUT:]

    async def _start(self) -> None:
        self._peaks = (0, 0)
        self.starts += 1
        self._process = await asyncio.create_subprocess_exec(
            *self._command, stdin=asyncio.subprocess.PIPE, stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.PIPE, limit=LONGEST_ANSWER, start_new_session=True,
        )  # fmt: skip
        assert self._process.stderr is not None
        self._hearing = asyncio.create_task(self._hear(self._process.stderr))
        if self._memory is not None:
            import resource

            resource.prlimit(self._process.pid, resource.RLIMIT_AS, (self._memory, self._memory))
        answer = await self._exchange({"do": "name"}, self._timeout)
        self.name = str(answer.get("name", ""))[:200]
        self.growth()

    async def _exchange(self, request: dict[str, Any], timeout: float) -> dict[str, Any]:
        process = self._process
        assert process is not None
        assert process.stdin is not None
        assert process.stdout is not None
        try:
            async with asyncio.timeout(timeout):
                with suppress(OSError):  # it may have ended, or closed its input: what it wrote says more
                    process.stdin.write(json.dumps(request).encode() + b"\n")
                    await process.stdin.drain()
                line = await process.stdout.readline()
                if not line.endswith(b"\n"):
                    raise ProcessDied(f"the {self._kind} ended, {_status(await process.wait())}")
            answer = json.loads(line)
        except TimeoutError:
            await self._end()
            raise ProcessDied(f"no answer within {timeout:g} s") from None
        except (ValueError, RecursionError):  # also a line that is too long
            await self._end()
            raise ProcessDied("a line that is not JSON") from None
        except (ProcessDied, asyncio.CancelledError):  # the next request's answer would be this one's
            await self._end()
            raise
        if not isinstance(answer, dict):
            await self._end()
            raise ProcessDied("a line that is not a JSON object")
        return answer

    async def _end(self) -> None:
        process, self._process = self._process, None
        if process is None:
            return
        with suppress(ProcessLookupError):
            if hasattr(os, "killpg"):
                os.killpg(process.pid, signal.SIGKILL)
            else:
                process.kill()
        await process.wait()
        if self._hearing is not None:  # another session's process may hold the pipe
            await asyncio.wait([self._hearing], timeout=_LAST_WORDS)
            self._hearing.cancel()

    def _measured(self) -> tuple[int, int]:
        """The peaks of address space and of resident memory in bytes: memory that was only reserved grows the
        one, and what a runtime takes of memory that it reserved before the other."""
        if self._process is None:
            return 0, 0
        try:
            text = Path(f"/proc/{self._process.pid}/status").read_text("ascii", "replace")
            fields = dict(line.split(":", 1) for line in text.splitlines())
            space, resident = (int(fields[name].split()[0]) << 10 for name in ("VmPeak", "VmHWM"))
        except (OSError, ValueError, KeyError):
            return 0, 0
        return space, resident


def _status(code: int) -> str:
    if code >= 0:
        return f"status {code}"
    with suppress(ValueError):
        return f"signal {signal.Signals(-code).name}"
    return f"signal {-code}"
