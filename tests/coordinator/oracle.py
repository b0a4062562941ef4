"""Kafka's own group coordinator on a mock clock, without a broker: one JVM, commands and answers as lines.

Strategy: the sources in oracle/ run Kafka's `GroupCoordinatorService` and `CoordinatorRuntime` on a log, a
clock and random ids of their own; they are compiled once against the release's jars and kept beside these.
What differs between lines of releases, as 4.3 and 4.4, is in a folder of the line's name.
Commands go in batches, so that a whole history costs one round trip.

Rules: a JVM that dies or hangs is an `OracleError`, never a test that waits. `Unavailable` if there is no JDK
(17 or later) or no jars.
"""

from __future__ import annotations

import atexit
import functools
import shutil
import subprocess
import tempfile
import threading
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple
from zlib import crc32

from tests.interop.java_oracle import OracleError
from tests.interop.maven import Project, Unavailable, cache, jars

SOURCES = Path(__file__).parent / "oracle"
RELEASE = "4.3.0"
"""The release of a history that names none."""

RELEASES = ("4.3.0", "4.3.1", "4.4.0")
"""Those that judge the coordinator, oldest first."""

WAIT = 120
"""Seconds for the output of one batch."""

_FLAGS = ["-Xmx256m", "-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1", "-Xshare:auto"]


class Program(NamedTuple):
    """A program that judges: the project whose jars it needs, its sources, and its main class.

    sources: files, and folders that have one of them for each line of releases.
    """

    project: Project
    sources: tuple[Path, ...]
    main: str

    def sources_for(self, release: str) -> list[Path]:
        """The files to compile for a release."""
        line = release.rpartition(".")[0]
        lines = [source for folder in self.sources for source in sorted((folder / line).glob("*.java"))]
        return [*(source for source in self.sources if source.is_file()), *lines]


GROUPS = Program(
    "coordinator", (*sorted(SOURCES.glob("*.java")), SOURCES), "org.apache.kafka.coordinator.group.Oracle"
)


def _compiled(release: str, program: Program) -> str:
    """The class path of a program, which this compiles where nobody did before."""
    folder, sources = jars(release, program.project), program.sources_for(release)
    checksum = crc32(b"".join(source.read_bytes() for source in sources))
    classes = cache() / f"{folder.name}-coordinator-oracle-{checksum:08x}"
    if not classes.exists():
        javac = shutil.which("javac")
        if javac is None:
            raise Unavailable("no JDK is installed")
        with tempfile.TemporaryDirectory(dir=cache()) as work:
            output = Path(work) / "classes"
            command = [javac, "-nowarn", "-d", str(output), "-cp", f"{folder}/*", *map(str, sources)]
            run = subprocess.run(command, capture_output=True, text=True, check=False)
            if run.returncode:
                raise OracleError(run.stderr[-2000:])
            try:
                output.rename(classes)
            except OSError:  # another run was faster
                if not classes.exists():
                    raise
    return f"{classes}:{folder}/*"


class CoordinatorOracle:
    """One JVM; `new` begins a coordinator without state, as often as wanted."""

    def __init__(
        self, release: str = RELEASE, flags: Sequence[str] = _FLAGS, *, program: Program = GROUPS
    ) -> None:
        """flags: of the JVM; by default it is small and starts fast."""
        java = shutil.which("java")
        if java is None:
            raise Unavailable("no Java is installed")
        self._stderr = tempfile.TemporaryFile()  # noqa: SIM115 (closed with the JVM)
        self._jvm = subprocess.Popen(
            [java, *flags, "-cp", _compiled(release, program), program.main],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=self._stderr,
        )

    def close(self) -> None:
        self._jvm.kill()
        self._jvm.communicate()
        self._stderr.close()

    def run(self, commands: Sequence[str]) -> list[list[str]]:
        """The lines that each command led to, without the full stop that ends them."""
        assert self._jvm.stdin is not None
        is_late = threading.Event()

        def end() -> None:
            is_late.set()
            self._jvm.kill()

        guard = threading.Timer(WAIT, end)
        guard.start()
        text = "".join(f"{command}\n" for command in commands).encode()
        writer = threading.Thread(target=self._write, args=(text,))
        writer.start()
        try:
            return [self._output() for _ in commands]
        except EOFError:
            self._jvm.kill()
            self._jvm.wait()
            self._stderr.seek(0)
            message = self._stderr.read().decode(errors="replace").strip()
            if is_late.is_set():
                raise OracleError(f"the coordinator's JVM took more than {WAIT} s") from None
            raise OracleError(f"the coordinator's JVM ended: {message[-2000:] or 'no word'}") from None
        finally:
            guard.cancel()
            writer.join()

    def _write(self, text: bytes) -> None:
        assert self._jvm.stdin is not None
        try:
            self._jvm.stdin.write(text)
            self._jvm.stdin.flush()
        except BrokenPipeError:
            pass  # the reader says so

    def _output(self) -> list[str]:
        assert self._jvm.stdout is not None
        lines = []
        while (line := self._jvm.stdout.readline()) != b".\n":
            if not line:
                raise EOFError
            lines.append(line.decode().rstrip("\n"))
        return lines


@functools.cache
def oracle(release: str = RELEASE) -> CoordinatorOracle:
    """The one JVM of a release, ended with this process. Raises `Unavailable`."""
    started = CoordinatorOracle(release)
    atexit.register(started.close)
    return started
