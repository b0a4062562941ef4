"""A real Apache Kafka broker on loopback: KRaft, one node, its own controller.

Strategy: the release's jars, run by their main classes as the shell scripts do; ready once ApiVersions is
answered. A clean stop (SIGTERM) flushes the logs and trims the indexes, which are 10 MB each while in use.

Rules: what doesn't come up, answer or end in time is a `BrokerError` with what the JVM said last; nothing is
left running after the `with` block. `Unavailable` if there is no JDK or no jars.
"""

from __future__ import annotations

import shutil
import signal
import socket
import subprocess
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from types import TracebackType

from coordwire import Connection, Role
from coordwire.codec import Message
from coordwire.connection.events import ResponseReceived
from coordwire.messages import ApiVersionsRequest
from tests.interop.maven import COMPLETE, Project, Unavailable, jars

_PLAIN = "org.apache.kafka.common.security.plain.PlainLoginModule"

WAIT = 60
"""Seconds for the broker to come up, and to go."""

_FLAGS = ["-Xmx400m", "-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1", "-Dfile.encoding=UTF-8"]


class BrokerError(Exception):
    """A JVM didn't do as it should; the text is what it said last."""


def free_port() -> int:
    with socket.socket() as asked:
        asked.bind(("127.0.0.1", 0))
        port: int = asked.getsockname()[1]
        return port


class Java:
    """A release's programs. project: whose jars; flags: more for each JVM. Raises `Unavailable`."""

    def __init__(
        self, release: str = COMPLETE, project: Project = "broker", flags: Sequence[str] = ()
    ) -> None:
        java = shutil.which("java")
        if java is None or shutil.which("javac") is None:
            raise Unavailable("no JDK is installed")
        self._java = [java, *_FLAGS, *flags]
        self._classes = f"{jars(release, project)}/*"

    def command(self, *arguments: str) -> list[str]:
        """How a main class (or a source file) is started."""
        return [*self._java, "-cp", self._classes, *arguments]

    def compile(self, source: Path, folder: Path) -> None:
        """Put the classes of a source file into a folder, and before the jars. Raises `BrokerError`."""
        command = ["javac", "-nowarn", "-d", str(folder), "-cp", self._classes, str(source)]
        run = subprocess.run(command, capture_output=True, text=True, check=False)
        if run.returncode:
            raise BrokerError(f"{source.name}: {run.stderr[-2000:]}")
        self._classes = f"{folder}:{self._classes}"

    def run(self, *arguments: str, folder: Path | None = None, wait: float = WAIT) -> str:
        """What a main class (or a source file) prints. Raises `BrokerError` where it fails or hangs."""
        return self.pipe(b"", *arguments, folder=folder, wait=wait).decode("utf-8", "surrogateescape")

    def pipe(self, given: bytes, *arguments: str, folder: Path | None = None, wait: float = WAIT) -> bytes:
        """The same for bytes, with `given` for standard input."""
        try:
            run = subprocess.run(
                self.command(*arguments), cwd=folder, capture_output=True, timeout=wait, input=given,
                check=False,
            )  # fmt: skip
        except subprocess.TimeoutExpired:
            raise BrokerError(f"{arguments[0]} took more than {wait} s") from None
        if run.returncode:
            message = (run.stdout + run.stderr).decode(errors="replace")
            raise BrokerError(f"{arguments[0]}: {message[-2000:]}")
        return run.stdout

    def start(self, *arguments: str, output: Path) -> subprocess.Popen[bytes]:
        """A program that goes on, with what it says in `output`."""
        with output.open("ab") as stream:
            return subprocess.Popen(
                self.command(*arguments), stdin=subprocess.DEVNULL, stdout=stream, stderr=stream
            )


class Broker:
    """A broker whose logs are in `folder`; a context manager, and can be entered again after it was left.

    settings: lines of server.properties, over the defaults. That file, and what the broker says, stand beside
    the folder. voters: the quorum is in the settings, not in the folder. features: levels that a new folder
    is formatted with, where they are not the release's own. cluster: the id of the cluster that it joins,
    whose quorum is in the settings; None for a cluster of its own. passwords: of the users of one more
    listener, by SASL's mechanism PLAIN; None for no such listener.
    """

    def __init__(
        self,
        java: Java,
        folder: Path,
        settings: Mapping[str, str] | None = None,
        *,
        voters: bool = False,
        features: Mapping[str, int] | None = None,
        cluster: str | None = None,
        passwords: Mapping[str, str] | None = None,
    ) -> None:
        self.java = java
        self.folder = folder
        self.port, self.controller_port, self.sasl_port = free_port(), free_port(), free_port()
        controller = self.controller_port
        self._said = folder.with_name("broker.log")
        self._properties = folder.with_name("server.properties")
        own = f"PLAINTEXT://127.0.0.1:{self.port},CONTROLLER://127.0.0.1:{controller}"
        sasl: dict[str, str] = {}
        if passwords is not None:
            own += f",SASL://127.0.0.1:{self.sasl_port}"
            sasl = _sasl_settings(passwords)
        lines = {
            "process.roles": "broker,controller",
            "node.id": "1",
            **(
                {"controller.quorum.voters": f"1@127.0.0.1:{controller}"}
                if voters
                else {"controller.quorum.bootstrap.servers": f"127.0.0.1:{controller}"}
            ),
            "listeners": own,
            "advertised.listeners": own,
            "controller.listener.names": "CONTROLLER",
            "inter.broker.listener.name": "PLAINTEXT",
            "log.dirs": str(folder),
            "group.initial.rebalance.delay.ms": "0",
            **sasl,
            **(settings or {}),
        }
        self._properties.write_text("".join(f"{name}={value}\n" for name, value in lines.items()))
        if not (folder / "meta.properties").exists():
            uuid = cluster or java.run("kafka.tools.StorageTool", "random-uuid").strip()
            levels = [f"--feature={name}={level}" for name, level in (features or {}).items()]
            java.run(
                "kafka.tools.StorageTool",
                *("format", "-t", uuid, "-c", str(self._properties), *levels),
                *(() if cluster else ("--standalone",)),
            )

    @property
    def address(self) -> str:
        return f"127.0.0.1:{self.port}"

    def __enter__(self) -> Broker:
        self._jvm = self.java.start("kafka.Kafka", str(self._properties), output=self._said)
        deadline = time.monotonic() + WAIT
        while time.monotonic() < deadline and self._jvm.poll() is None:
            try:
                ask(self.port, ApiVersionsRequest(), version=0)
                return self
            except OSError:
                time.sleep(0.25)
        self._jvm.kill()
        self._jvm.wait()
        raise BrokerError(f"the broker didn't come up: {self.said()}")

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._jvm.send_signal(signal.SIGTERM)
        try:
            self._jvm.wait(WAIT)
        except subprocess.TimeoutExpired:
            self._jvm.kill()
            self._jvm.wait()
            if error is None:
                raise BrokerError(f"the broker didn't stop: {self.said()}") from None

    def kill(self) -> None:
        """End the JVM at once, as a crash does."""
        self._jvm.kill()
        self._jvm.wait()

    def said(self) -> str:
        """The end of what the broker's JVM said."""
        return self._said.read_text(errors="replace")[-2000:]


def _sasl_settings(passwords: Mapping[str, str]) -> dict[str, str]:
    users = " ".join(f'user_{name}="{password}"' for name, password in passwords.items())
    return {
        "listener.security.protocol.map": "PLAINTEXT:PLAINTEXT,CONTROLLER:PLAINTEXT,SASL:SASL_PLAINTEXT",
        "listener.name.sasl.sasl.enabled.mechanisms": "PLAIN",
        "listener.name.sasl.plain.sasl.jaas.config": f"{_PLAIN} required {users};",
    }


def ask(port: int, request: Message, *, version: int) -> Message:
    """One request to a broker on loopback, and what it answers. Raises `OSError` where none comes."""
    client = Connection(Role.CLIENT)
    with socket.create_connection(("127.0.0.1", port), timeout=10) as connected:
        connected.sendall(client.send(request, version=version))
        while data := connected.recv(65536):
            client.receive_data(data)
            for event in client.events():
                if isinstance(event, ResponseReceived):
                    return event.response
                raise ConnectionError(f"no answer but {event}")
    raise ConnectionError("the broker closed the connection")
