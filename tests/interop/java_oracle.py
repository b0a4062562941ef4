"""Apache Kafka's generated classes, asked over a pipe: one long-lived JVM for each release.

Strategy: java/Oracle.java is compiled in memory by the JVM that runs it (`java FILE`), against the release's
own jars; commands go in batches, one round trip each.

Rules: a JVM that dies or hangs is an `OracleError`, never a test that waits; what Kafka refuses is a
`Refused` among the answers, in its words. `Unavailable` if there is no JDK (17 or later) or no jars.
"""

from __future__ import annotations

import atexit
import functools
import shutil
import struct
import subprocess
import tempfile
import threading
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType

from tests.interop.maven import Project, Unavailable, jars

SOURCE = Path(__file__).parent / "java" / "Oracle.java"
WAIT = 60
"""Seconds for the answers to one batch."""


class OracleError(Exception):
    """The JVM is gone; the text is what it said last."""


@dataclass(frozen=True, slots=True)
class Refused:
    """What Kafka threw."""

    reason: str


@dataclass(frozen=True, slots=True)
class Command:
    """what: "V", "J", "B", "R", "S", "H" or "E", as in Oracle.java; name: the Java class."""

    what: str
    name: str
    version: int = 0
    data: bytes = b""

    def encoded(self) -> bytes:
        name = self.name.encode()
        head = struct.pack(
            f">cH{len(name)}shi", self.what.encode(), len(name), name, self.version, len(self.data)
        )
        return head + self.data


class JavaOracle:
    """One JVM with one release's classes; a context manager."""

    def __init__(self, release: str, project: Project = "classes") -> None:
        folder = jars(release, project)
        java = shutil.which("java")
        if java is None or shutil.which("javac") is None:
            raise Unavailable("no JDK is installed")
        self.release = release
        self._stderr = tempfile.TemporaryFile()  # noqa: SIM115 (closed with the JVM)
        flags = ["-Xmx1g", "-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1"]
        self._jvm = subprocess.Popen(
            [java, *flags, "-cp", f"{folder}/*", str(SOURCE)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=self._stderr,
        )

    def __enter__(self) -> JavaOracle:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def close(self) -> None:
        self._jvm.kill()
        self._jvm.communicate()
        self._stderr.close()

    def versions(self, name: str) -> range | None:
        """The versions that the release has of a class; None if it has no such class."""
        (result,) = self.ask([Command("V", name)])
        return None if isinstance(result, Refused) else range(int(result[0]), int(result[1]) + 1)

    def ask(self, commands: Sequence[Command]) -> list[list[bytes] | Refused]:
        """The parts of each answer, in order."""
        assert self._jvm.stdin is not None
        guard = threading.Timer(WAIT, self._jvm.kill)
        guard.start()
        try:
            batch = b"".join(command.encoded() for command in commands)
            self._jvm.stdin.write(struct.pack(">i", len(commands)) + batch)
            self._jvm.stdin.flush()
            return [self._answer() for _ in commands]
        except (BrokenPipeError, EOFError):
            self._jvm.kill()
            self._jvm.wait()
            self._stderr.seek(0)
            said = self._stderr.read().decode(errors="replace").strip()
            raise OracleError(f"Kafka {self.release}'s JVM ended: {said[-2000:] or 'no word'}") from None
        finally:
            guard.cancel()

    def _answer(self) -> list[bytes] | Refused:
        (parts,) = self._read(">b")
        results = [self._bytes(self._read(">i")[0]) for _ in range(abs(parts))]
        return results if parts >= 0 else Refused(results[0].decode(errors="replace"))

    def _read(self, form: str) -> tuple[int, ...]:
        return struct.unpack(form, self._bytes(struct.calcsize(form)))

    def _bytes(self, count: int) -> bytes:
        assert self._jvm.stdout is not None
        data = self._jvm.stdout.read(count)
        if len(data) != count:
            raise EOFError
        return data


@functools.cache
def oracle(release: str, project: Project = "classes") -> JavaOracle:
    """The one JVM of a release and project, ended with this process. Raises `Unavailable`."""
    java_oracle = JavaOracle(release, project)
    atexit.register(java_oracle.close)
    return java_oracle
