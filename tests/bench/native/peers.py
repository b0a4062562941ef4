"""Programs in Rust and Go that decode and encode the five messages: built once, and asked by lines.

Strategy: the sources lie beside this file; the programs are kept in the cache folder of the interop tests, by
a checksum of their sources. A program counts the processor's time itself, and proves first that it encodes
what it decoded to the same bytes. Rule: `Unavailable` says in a line what is missing.
"""

from __future__ import annotations

import shutil
import subprocess
from collections.abc import Callable
from pathlib import Path
from zlib import crc32

from tests.interop.maven import Unavailable, cache

RUST, GO = "kafka-protocol 0.18.0 (Rust)", "kmsg 1.15.0 (Go)"
_KMSG = "github.com/twmb/franz-go/pkg/kmsg@v1.15.0"
_WAIT = 900
_SOURCES = Path(__file__).parent


def built(peer: str) -> Path:
    """The program of a peer. Raises `Unavailable`."""
    folder = _SOURCES / ("rust" if peer == RUST else "go")
    number = 0
    for file in sorted(folder.iterdir()):
        number = crc32(file.read_bytes(), number)
    program = cache() / f"native-{folder.name}-{number:08x}"
    if not program.exists():
        work = program.with_suffix(".build")
        shutil.rmtree(work, ignore_errors=True)
        shutil.copytree(folder, work)
        made = (_rust if peer == RUST else _go)(work)
        made.rename(program)
        shutil.rmtree(work)
    return program


def _rust(work: Path) -> Path:
    _run(work, "cargo", "build", "--release", "--target-dir", "target")
    return work / "target" / "release" / "peer"


def _go(work: Path) -> Path:
    (work / "go.mod").write_text("module peer\n")
    _run(work, "go", "get", _KMSG)
    _run(work, "go", "build", "-o", "peer", ".")
    return work / "peer"


def _run(work: Path, *command: str) -> None:
    if shutil.which(command[0]) is None:
        raise Unavailable(f"{command[0]} is not installed")
    result = subprocess.run(command, cwd=work, capture_output=True, text=True, timeout=_WAIT, check=False)
    if result.returncode:
        raise Unavailable(f"{' '.join(command[:2])}: {result.stderr.strip()[-300:]}")


class NativePeer:
    """A running program; a context manager ends it. folder: of the messages' bytes, by their numbers."""

    def __init__(self, program: Path, folder: Path) -> None:
        self._process = subprocess.Popen(
            [program, folder], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, bufsize=1
        )

    def __enter__(self) -> NativePeer:
        return self

    def __exit__(self, *error: object) -> None:
        self._process.kill()
        self._process.communicate()

    def seconds(self, number: int, work: str) -> Callable[[int], float]:
        """A function that gives the seconds of so many calls. work: "decode" or "encode"."""

        def spent(count: int) -> float:
            assert self._process.stdin is not None
            assert self._process.stdout is not None
            print(number, work, count, file=self._process.stdin, flush=True)
            return float(self._process.stdout.readline()) / 1e9

        return spent
