"""A process that reads captures with one engine: `COORDWIRE_IMPL=c|python python -m fuzz._engine`.

Strategy: the names of commands and a capture come on standard input, each after its size in 4 bytes; what the
commands write about it goes to standard output likewise, as a JSON object of texts by their names. Rules:
each capture has the same name, and the folder of its tables is a new one, so that two engines can differ only
in what they read.
"""

from __future__ import annotations

import io
import json
import os
import struct
import subprocess
import sys
import tempfile
from collections.abc import Collection, Iterable
from contextlib import redirect_stderr, redirect_stdout
from pathlib import Path
from typing import IO

from coordwire.capture.reader import Capture
from coordwire.cli.__main__ import main
from coordwire.errors import DecodeError

NAME = "capture.pcap"
COMMANDS = {
    "timeline": ["timeline", "--format", "json", NAME],
    "decode": ["decode", "--format", "json", NAME],
    "tree": ["decode", "--format", "tree", NAME],
    "line": ["decode", "--format", "line", NAME],
    "hex": ["decode", "--format", "hex", NAME],
    "tables": ["decode", "--format", "csv", "--out", "tables", NAME],
}
_SIZE = struct.Struct(">I")


class Engine:
    """One such process. implementation: "c" or "python"."""

    def __init__(self, implementation: str) -> None:
        self._process = subprocess.Popen(
            [sys.executable, "-m", "fuzz._engine"],
            cwd=Path(__file__).parents[1],
            env={**os.environ, "COORDWIRE_IMPL": implementation},
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
        )

    def give(self, data: bytes, commands: Collection[str] = tuple(COMMANDS)) -> None:
        """Have it read a capture by some of `COMMANDS`."""
        assert self._process.stdin is not None
        _write(self._process.stdin, json.dumps(list(commands)).encode())
        _write(self._process.stdin, data)

    def texts(self) -> dict[str, str]:
        """What it wrote about the capture that it was given."""
        assert self._process.stdout is not None
        answer = _read(self._process.stdout)
        if answer is None:
            raise RuntimeError(f"the engine's process ended with status {self._process.wait()}")
        texts: dict[str, str] = json.loads(answer)
        return texts

    def close(self) -> None:
        for stream in (self._process.stdin, self._process.stdout):
            assert stream is not None
            stream.close()
        self._process.wait()


def difference(texts: dict[str, str], other: dict[str, str]) -> str:
    """The first line of a text that another engine does not write; "" if there is none."""
    for name in {**texts, **other}:
        first, second = (found.get(name, "").splitlines() for found in (texts, other))
        if first == second:
            continue
        at = next((at for at, pair in enumerate(zip(first, second, strict=False)) if pair[0] != pair[1]), -1)
        at = min(len(first), len(second)) if at < 0 else at
        lines = (found[at] if at < len(found) else "nothing" for found in (first, second))
        return f"line {at + 1} of {name}:\n" + "\n".join(lines)
    return ""


def _texts(data: bytes, commands: Iterable[str]) -> dict[str, str]:
    """What the commands write about a capture, their statuses, and how many entries it has."""
    result: dict[str, str] = {"entries": str(_entries(data))}
    with tempfile.TemporaryDirectory() as folder:
        os.chdir(folder)
        Path(NAME).write_bytes(data)
        for name in commands:
            out, err = (io.TextIOWrapper(io.BytesIO(), "utf-8") for _ in range(2))
            with redirect_stdout(out), redirect_stderr(err):
                status = main(COMMANDS[name])
            for stream, of in ((out, name), (err, f"{name}'s notes")):
                stream.flush()
                stream.seek(0)
                result[of] = stream.read()
            result[f"{name}'s status"] = str(status)
        for table in sorted(Path("tables").glob("*.csv")):
            result[table.name] = table.read_text("utf-8", "surrogateescape")
        os.chdir("/")
    return result


def _entries(data: bytes) -> int:
    try:
        return sum(1 for _ in Capture(io.BytesIO(data), NAME, lazy=True).entries())
    except DecodeError:
        return 0


def _read(stream: IO[bytes]) -> bytes | None:
    head = stream.read(_SIZE.size)
    return stream.read(_SIZE.unpack(head)[0]) if len(head) == _SIZE.size else None


def _write(stream: IO[bytes], data: bytes) -> None:
    stream.write(_SIZE.pack(len(data)) + data)
    stream.flush()


if __name__ == "__main__":
    questions, answers = sys.stdin.buffer, os.fdopen(os.dup(1), "wb")
    while (names := _read(questions)) is not None:
        capture = _read(questions)
        if capture is None:
            break
        _write(answers, json.dumps(_texts(capture, json.loads(names))).encode())
