"""One run at a time, and runs that died."""

from __future__ import annotations

import errno
import fcntl
import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("pyarrow", reason="pyarrow isn't installed: pip install 'coordwire[arrow]'")

from coordwire.tables.storage import run_lock
from coordwire.tables.storage.folders import Output, open_output
from coordwire.tables.storage.run_lock import InUse, Lock, this_process, why_dead
from tests.tables import pipeline_steps

HOLD = """
import sys, time
from coordwire.tables.storage.run_lock import Lock
from coordwire.tables.storage.folders import Output, open_output
lock = Lock(open_output(sys.argv[1]))
lock.acquire()
print(lock.run, flush=True)
time.sleep(600)
"""


@pytest.fixture
def output(tmp_path: Path) -> Output:
    return open_output(str(tmp_path / "out"))


def holder(output: Output) -> tuple[subprocess.Popen[str], str]:
    """Another process that has the lock, and its run."""
    process = subprocess.Popen([sys.executable, "-c", HOLD, output.root], stdout=subprocess.PIPE, text=True)
    assert process.stdout is not None
    return process, process.stdout.readline().strip()


def no_flock(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(file: int, operation: int) -> None:
        raise OSError(errno.ENOLCK, "No locks available")

    monkeypatch.setattr(fcntl, "flock", refuse)


@pytest.mark.parametrize("flock", [True, False])
def test_a_second_run_is_refused_and_says_by_whom(
    output: Output, flock: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    if not flock:
        no_flock(monkeypatch)
    first = Lock(output)
    first.acquire()
    with pytest.raises(InUse) as actual:
        Lock(output).acquire()
    current = this_process()
    assert (
        f"is in use by run {first.run[:8]} ({current['user']}, process {os.getpid()}" in actual.value.reason
    )
    assert "wait until it has ended, or choose another --out" in actual.value.reason
    first.release()
    rerun = Lock(output)
    rerun.acquire()
    assert rerun.notices == []
    rerun.release()
    assert pipeline_steps.leftovers(Path(output.root)) == []


@pytest.mark.parametrize("flock", [True, False])
def test_a_run_that_was_killed_is_known_to_be_dead(
    output: Output, flock: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    if not flock:
        no_flock(monkeypatch)
    process, run = holder(output)
    with pytest.raises(InUse, match=run[:8]):
        Lock(output).acquire()
    process.kill()
    process.wait()
    lock = Lock(output)
    lock.acquire()
    [notice] = lock.notices
    assert notice.startswith(f"run {run[:8]} (")
    assert "ended without finishing (its process is gone)" in notice
    lock.release()


def test_a_zombie_is_dead(output: Output, monkeypatch: pytest.MonkeyPatch) -> None:
    no_flock(monkeypatch)
    process, _ = holder(output)
    process.kill()
    os.waitid(os.P_PID, process.pid, os.WEXITED | os.WNOWAIT)
    lock = Lock(output)
    lock.acquire()
    lock.release()
    process.wait()


def changed(**values: Any) -> dict[str, Any]:
    """What a run's file says. machine: "m", as a container has no id of its own."""
    return this_process() | {"machine": "m", "run": "a" * 32, "phase": "working", "flock": True} | values


@pytest.mark.parametrize(
    ("held", "locked", "why"),
    [
        (changed(), True, "the lock that it held is free"),
        (changed(), False, None),
        (changed(flock=False), True, None),
        (changed(started=1), False, "its process number is another process's now"),
        (changed(pid=1 << 22, started=1), False, "its process is gone"),
        (
            changed(pid=1 << 22, namespace="pid:[1]"),
            False,
            None,
        ),  # of another container: its numbers say nothing
        (changed(pid=1 << 22, namespace="pid:[1]"), True, "the lock that it held is free"),
        (changed(boot="other"), True, "its machine was started again"),
        (changed(boot="other", host="elsewhere"), True, None),
        (changed(boot="other", machine="elsewhere"), True, None),
        (changed(boot="other", machine=""), True, None),
        ({}, True, None),
        ({"boot": None, "pid": "x"}, True, None),
        (changed(pid="1; rm"), False, None),
    ],
)
def test_when_a_run_is_dead(held: dict[str, Any], locked: bool, why: str | None) -> None:
    assert why_dead(held, this_process() | {"machine": "m"}, locked) == why


def test_a_run_elsewhere_is_believed_to_live(output: Output) -> None:
    name = f"_manifest/runs/{'a' * 32}.lock"
    output.write(name, json.dumps(changed(host="far", boot="b", machine="m")).encode())
    with pytest.raises(InUse, match=rf"if it is over, .*remove {output.path(name)}"):
        Lock(output).acquire()
    assert output.names("_manifest/runs") == [name]
    output.delete(name)
    lock = Lock(output)
    lock.acquire()
    lock.release()


@pytest.mark.parametrize("data", [b"", b"{", b"[]", b"\xff", b'{"run": "\\u001b[31m", "host": 7}'])
def test_a_lock_that_cannot_be_read(output: Output, data: bytes) -> None:
    output.write(f"_manifest/runs/{'a' * 32}.lock", data)
    with pytest.raises(InUse) as actual:
        Lock(output).acquire()
    assert actual.value.reason.isprintable()


def test_a_store_without_flock() -> None:
    pytest.importorskip("fsspec", reason="fsspec isn't installed").filesystem("memory").store.clear()
    output = open_output("memory://bucket/tables")
    first = Lock(output)
    first.acquire()
    with pytest.raises(InUse, match=first.run[:8]):
        Lock(output).acquire()
    first.release()
    Lock(output).acquire()


def test_two_that_begin_together_never_both_run(output: Output, monkeypatch: pytest.MonkeyPatch) -> None:
    """Without flock: at whatever step of the one the other begins."""
    no_flock(monkeypatch)
    number, ended = 0, False
    while not ended:
        number += 1
        held: list[Lock] = []

        def at(count: int, number: int = number, held: list[Lock] = held) -> None:
            if count == number:
                other = Lock(output)
                try:
                    other.acquire()
                    held.append(other)
                except InUse:
                    pass

        own = Lock(output)
        with pipeline_steps.steps(at) as steps:
            try:
                own.acquire()
                held.append(own)
            except InUse:
                pass
        assert len(held) <= 1
        for lock in held:
            lock.release()
        ended = steps.count < number


def test_a_pipeline_that_runs_keeps_others_out(tmp_path: Path) -> None:
    pipeline_steps.put_segment(tmp_path / "in", "orders", 0, range(3))
    number, ended, refused = 0, False, 0
    while not ended:
        number += 3
        out = tmp_path / f"out{number}"

        def at(count: int, number: int = number, out: Path = out) -> None:
            nonlocal refused
            if count == number:
                try:
                    pipeline_steps.run(tmp_path / "in", out)
                except InUse:
                    refused += 1

        with pipeline_steps.steps(at) as steps:
            pipeline_steps.run(tmp_path / "in", out)
        assert [offset for _, _, offset in pipeline_steps.record_keys(out)] == [0, 1, 2], number
        assert not pipeline_steps.leftovers(out), number
        ended = steps.count < number
    assert refused > 10
    assert run_lock.WORKING == "working"
