"""The pipeline's worker processes, by the process that they descend from."""

from __future__ import annotations

import os
from pathlib import Path


def spark_workers(root: int | None = None) -> list[int]:
    """The Python workers of Spark below a process, this one by default: children of Spark's daemons."""
    parents = _parents()
    below = _below(os.getpid() if root is None else root, parents)
    daemons = [pid for pid in below if b"pyspark.daemon" in _command(pid)]
    return [pid for pid in daemons if parents.get(pid) in daemons]


def local_workers(root: int | None = None) -> list[int]:
    """The workers of the local engine below a process, this one by default."""
    root = os.getpid() if root is None else root
    commands = {pid: _command(pid) for pid in _below(root, _parents())}
    started = b"coordwire.tables.pipeline.engine import serve"
    return [pid for pid, command in commands.items() if started in command or command == _command(root)]


def descendants(root: int | None = None) -> dict[int, bytes]:
    """The commands of all processes below a process, this one by default."""
    return {pid: _command(pid) for pid in _below(os.getpid() if root is None else root, _parents())}


def _parents() -> dict[int, int]:
    parents: dict[int, int] = {}
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit():
            try:
                parents[int(entry.name)] = int((entry / "stat").read_text().rpartition(")")[2].split()[1])
            except OSError:
                continue
    return parents


def _below(root: int, parents: dict[int, int]) -> set[int]:
    below = {root}
    while more := {child for child, parent in parents.items() if parent in below} - below:
        below |= more
    return below - {root}


def _command(pid: int) -> bytes:
    try:
        return Path(f"/proc/{pid}/cmdline").read_bytes()
    except OSError:
        return b""
