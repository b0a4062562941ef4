"""One run at a time in one output folder.

Strategy: a run describes itself in `_manifest/runs/RUN.lock`, then looks for others: of two that begin
together at least one sees the other, in any store, and gives up. On local disks it also holds
`_manifest/lock` by flock, which the kernel takes away from a process that dies. Another run's file is
removed if its process is proven dead: the same kernel, and the flock is free, or no process has that number
and start; or its machine was started again. Any other one is refused with a sentence. Rules: attempts
publish under a shared flock on `_manifest/commit`, and only while their run's file says `working`; `fence`
takes that flock alone, so that nothing is published afterwards. A store without flock has the files alone.
"""

from __future__ import annotations

__all__ = ["InUse", "Lock", "published"]

import fcntl
import getpass
import json
import os
import platform
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from datetime import UTC, datetime
from pathlib import Path
from secrets import token_hex
from typing import TYPE_CHECKING, Any

from coordwire.errors import CoordwireError
from coordwire.files.lock import lock
from coordwire.tables.storage.folders import LocalFolder
from coordwire.tables.storage.names import COMMIT, LOCK, RUNS, is_own_name

if TYPE_CHECKING:
    from coordwire.tables.storage.folders import Output

WORKING, ENDING = "working", "ending"


class InUse(CoordwireError):
    """Another run writes into the output folder, or may."""


class Lock:
    """A run's lock on its output folder. run: its name. notices: sentences on runs before it."""

    def __init__(self, output: Output) -> None:
        self.output = output
        self.run = token_hex(16)
        self.notices: list[str] = []
        self._name = f"{RUNS}/{self.run}.lock"
        self._file: int | None = None
        self._stated: dict[str, Any] = {}

    def acquire(self) -> None:
        """Take the folder. Raises `InUse`."""
        try:
            self._file, locked = _flock(self.output, LOCK, fcntl.LOCK_EX | fcntl.LOCK_NB)
            if locked is False:
                raise InUse(self._sentence([stated for _, stated in self._other_runs()]))
            self._stated = this_process() | {"run": self.run, "phase": WORKING, "flock": bool(locked)}
            self._write()
            living = []
            for name, stated in self._other_runs():
                reason = why_dead(stated, this_process(), bool(locked))
                if reason is None:
                    living.append((name, stated))
                    continue
                with _locked(self.output, fcntl.LOCK_EX):
                    self.output.delete(name)
                self.notices.append(
                    f"{_owner(stated)} ended without finishing ({reason}); this run goes on where it was"
                )
            if living:
                files = ", ".join(self.output.path(name) for name, _ in living)
                raise InUse(
                    f"{self._sentence([stated for _, stated in living])}; if it is over, which can't be seen "
                    f"from here, remove {files}"
                )
        except BaseException:
            self.release()
            raise

    def _other_runs(self) -> list[tuple[str, dict[str, Any]]]:
        return [
            (name, _parsed(data))
            for name in self.output.names(RUNS)
            if name != self._name and is_own_name(name) and (data := self.output.read(name)) is not None
        ]

    def _sentence(self, runs: list[dict[str, Any]]) -> str:
        owners = " and ".join(_owner(stated) for stated in runs) or "another run"
        return f"{self.output.place} is in use by {owners}: wait until it has ended, or choose another --out"

    def _write(self) -> None:
        self.output.write(self._name, json.dumps(self._stated).encode())

    def fence(self) -> None:
        """Let no attempt of this run publish any more; returns when none is publishing."""
        with _locked(self.output, fcntl.LOCK_EX):
            self._stated["phase"] = ENDING
            try:
                self._write()
            except OSError:  # a full disk; there is always room for less
                self.output.delete(self._name)

    def release(self) -> None:
        """Let other runs use the folder."""
        try:
            with suppress(OSError):  # a lock that stays is known to be dead
                if self._stated:
                    with _locked(self.output, fcntl.LOCK_EX):
                        self.output.delete(self._name)
        finally:
            self._stated = {}
            if self._file is not None:
                os.close(self._file)
                self._file = None


@contextmanager
def published(output: Output, run: str | None) -> Iterator[bool]:
    """A context for publishing: gives whether the attempt's run is still working; true without a run."""
    with _locked(output, fcntl.LOCK_SH):
        if run is None:
            yield True
            return
        data = output.read(f"{RUNS}/{run}.lock")
        yield data is not None and _parsed(data).get("phase") == WORKING


@contextmanager
def _locked(output: Output, operation: int) -> Iterator[None]:
    """A context in which attempts publish (`LOCK_SH`), or none does (`LOCK_EX`)."""
    file, _ = _flock(output, COMMIT, operation)
    try:
        yield
    finally:
        if file is not None:
            os.close(file)


def _flock(output: Output, name: str, operation: int) -> tuple[int | None, bool | None]:
    """A locked file's descriptor, and whether it is locked: None where the file system has no flock."""
    if not isinstance(output, LocalFolder):
        return None, None
    with output.at(name, create=True) as (place, last):
        file = os.open(last, os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW | os.O_CLOEXEC, 0o666, dir_fd=place)
    try:
        locked = lock(file, operation)
    except OSError:
        os.close(file)
        raise
    if not locked:
        os.close(file)
        return None, locked
    return file, True


# --- who runs, and who is dead ---


def this_process() -> dict[str, Any]:
    """What identifies this process, as far as the system can report it."""
    return {
        "host": platform.node(), "machine": _known(Path("/etc/machine-id").read_text),
        "boot": _known(Path("/proc/sys/kernel/random/boot_id").read_text),
        "namespace": _known(lambda: os.readlink("/proc/self/ns/pid")),
        "pid": os.getpid(), "started": process_start(os.getpid()),
        "user": _known(getpass.getuser) or str(os.getuid()),
        "began": f"{datetime.now(UTC):%Y-%m-%d %H:%M:%S} UTC",
    }  # fmt: skip


def why_dead(stated: dict[str, Any], process: dict[str, Any], locked: bool) -> str | None:
    """The proof that a process is dead; None if it may live. locked: whether its flock was free."""
    if stated.get("boot") and stated["boot"] == process["boot"]:
        if stated.get("namespace") == process["namespace"] and isinstance(stated.get("pid"), int):
            started = process_start(stated["pid"])
            if started is None:
                return "its process is gone"
            if stated.get("started") not in (None, started):
                return "its process number is another process's now"
        return "the lock that it held is free" if locked and stated.get("flock") is True else None
    is_here = all(stated.get(key) and stated[key] == process[key] for key in ("host", "machine"))
    return "its machine was started again" if is_here and stated.get("boot") and process["boot"] else None


def process_start(pid: int) -> int | None:
    """When a process was started, in clock ticks since the machine was; None if it is gone, or without /proc,
    where no boot is known either."""
    try:
        stat = Path(f"/proc/{pid}/stat").read_bytes()
        state, *fields = stat.rpartition(b")")[2].split()
        return None if state in (b"Z", b"X") else int(fields[18])
    except (OSError, ValueError, IndexError):
        return None


def _known(read: Callable[[], str]) -> str:
    """What the system says, as far as it says anything."""
    try:
        return read().strip()[:100]
    except (KeyError, OSError, ValueError):
        return ""


def _parsed(data: bytes) -> dict[str, Any]:
    try:
        stated = json.loads(data)
    except ValueError:
        return {}
    return stated if isinstance(stated, dict) else {}


def _owner(stated: dict[str, Any]) -> str:
    keys = ("run", "user", "pid", "host", "began")
    run, user, pid, host, began = (
        "".join(char for char in str(stated.get(key, "?")) if char.isprintable())[:80] for key in keys
    )
    return f"run {run[:8]} ({user}, process {pid} on {host}, since {began})"
