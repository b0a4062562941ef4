"""What a situation is played on: a real broker, clients that are started, killed and frozen, and a recorder.

Strategy: each client is a process of its own, so that it can be killed (SIGKILL) and frozen (SIGSTOP,
SIGCONT); a Java `Operator` runs all the while for topics, records and settings. `Stage.recording` runs
tcpdump on loopback and keeps what was done to whom and when. Rules: every process is ended by its own id; a
client that has no assignment in time is a `BrokerError`.
"""

from __future__ import annotations

import json
import shutil
import signal
import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path

from tests.interop.broker import Broker, BrokerError, Java
from tests.interop.maven import jars
from tests.timeline.record.raw import RawClassic, RawConsumer

__all__ = ["CLIENTS", "RELEASE", "SETTINGS", "STREAMS_RELEASE", "Stage"]

RELEASE = "4.4.0"
"""The broker's and the Java clients' release."""

STREAMS_RELEASE = "4.3.1"
"""The newest Kafka Streams that is on Maven Central."""

SETTINGS = {
    "group.initial.rebalance.delay.ms": "300",
    "offsets.topic.num.partitions": "4",
    "offsets.topic.replication.factor": "1",
    "transaction.state.log.replication.factor": "1",
    "transaction.state.log.min.isr": "1",
    "share.coordinator.state.topic.num.partitions": "2",
    "share.coordinator.state.topic.replication.factor": "1",
    "share.coordinator.state.topic.min.isr": "1",
    "group.coordinator.rebalance.protocols": "classic,consumer,share,streams",
    "group.min.session.timeout.ms": "500",
    "group.max.size": "4",
    "group.consumer.migration.policy": "bidirectional",
    "group.consumer.min.session.timeout.ms": "1000",
    "group.consumer.session.timeout.ms": "3000",
    "group.consumer.min.heartbeat.interval.ms": "100",
    "group.consumer.heartbeat.interval.ms": "600",
    "group.share.min.session.timeout.ms": "1000",
    "group.share.session.timeout.ms": "3000",
    "group.share.min.heartbeat.interval.ms": "100",
    "group.share.heartbeat.interval.ms": "600",
    "group.streams.min.session.timeout.ms": "1000",
    "group.streams.session.timeout.ms": "3000",
    "group.streams.min.heartbeat.interval.ms": "100",
    "group.streams.heartbeat.interval.ms": "600",
    "group.streams.initial.rebalance.delay.ms": "300",
    "num.partitions": "3",
    "default.replication.factor": "1",
}

WAIT = 20
FLAGS = ["-Xmx128m", "-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1", "-Xshare:auto"]
HERE = Path(__file__).parent

LOGGING = """<Configuration><Appenders>
<File name="groups" fileName="{path}" append="true">
<PatternLayout pattern="[%d{{yyyy-MM-dd HH:mm:ss.SSS}}{{UTC}}] %p %m (%c)%n"/></File>
<Console name="said"><PatternLayout pattern="%p %m%n"/></Console></Appenders><Loggers>
<Logger name="org.apache.kafka.coordinator" level="DEBUG" additivity="false">
<AppenderRef ref="groups"/></Logger>
<Root level="WARN"><AppenderRef ref="said"/></Root></Loggers></Configuration>"""

CLIENTS = ("confluent", "kpy", "aio")


class Stage:
    """The broker and whoever is on. python: one that has the Python clients, None for Java's only."""

    def __init__(self, folder: Path, python: str | None) -> None:
        self.folder, self.python = folder, python
        self.log = folder / "group-coordinator.log"
        logging = folder / "log4j2.xml"
        logging.write_text(LOGGING.format(path=self.log))
        java = Java(RELEASE, "recording", [f"-Dlog4j2.configurationFile={logging}"])
        self.broker = Broker(java, folder / "data", SETTINGS)
        self._classes = {
            "Member": self._compile("recording", RELEASE, "Member", "Operator"),
            "Stream": self._compile("streams", STREAMS_RELEASE, "Stream"),
        }
        self._on: dict[str, subprocess.Popen[str]] = {}
        self._done: list[dict[str, str]] = []
        self._started: list[str] = []
        self.topics: dict[str, str] = {}
        """Their names by their ids."""
        self._operator: subprocess.Popen[str] | None = None

    def _compile(self, project: str, release: str, *names: str) -> str:
        """The class path of some of our programs."""
        assert project in ("recording", "streams")
        result = jars(release, "recording" if project == "recording" else "streams")
        into = self.folder / project
        sources = [str(HERE / "java" / f"{name}.java") for name in names]
        compile_them = ["javac", "-nowarn", "-d", str(into), "-cp", f"{result}/*", *sources]
        subprocess.run(compile_them, check=True, capture_output=True)
        return f"{into}:{result}/*"

    # --- the broker ---

    @contextmanager
    def up(self) -> Iterator[Stage]:
        with self.broker:
            self._operator = self._java("Operator", self.broker.address, name="operator")
            try:
                yield self
            finally:
                _end(self._operator)

    def restart(self) -> None:
        """The broker, and its coordinator with it, goes cleanly and comes again."""
        self.note("broker stops", "")
        self.broker.__exit__(None, None, None)
        self.note("broker starts", "")
        self.broker.__enter__()
        self.note("broker is up", "")

    def operate(self, command: str) -> None:
        """One command of Operator.java."""
        assert self._operator is not None
        assert self._operator.stdin is not None
        assert self._operator.stdout is not None
        self.note(command, "operator")
        self._operator.stdin.write(command + "\n")
        self._operator.stdin.flush()
        answer = self._operator.stdout.readline().strip()
        if not answer.startswith("done"):
            raise BrokerError(f"{command}: {answer}")
        if topic_id := answer.removeprefix("done").strip():
            self.topics[topic_id] = command.split()[1]

    # --- clients ---

    def consumer(self, name: str, group: str, topics: str, *settings: str, wait: bool = True) -> None:
        """A Java consumer."""
        self._start(name, group, ["consumer", group, name, topics, *settings], wait)

    def share(self, name: str, group: str, topics: str, *settings: str) -> None:
        self._start(name, group, ["share", group, name, topics, *settings], True)

    def _start(self, name: str, group: str, arguments: list[str], wait: bool) -> None:
        self.note("start", name, " ".join(arguments))
        self._on[name] = self._java("Member", self.broker.address, *arguments, name=name)
        if wait:
            self.assigned(name)

    def stream(self, name: str, group: str, topic: str, *settings: str, wait: bool = True) -> None:
        """An instance of a Streams application."""
        self.note("start", name, f"stream {group} {name} {topic} {' '.join(settings)}")
        state = str(self.folder / "state" / name)
        arguments = (self.broker.address, group, name, topic, state, *settings)
        self._on[name] = self._java("Stream", *arguments, name=name)
        if wait:
            self.assigned(name, "RUNNING")

    def python_client(
        self, library: str, name: str, group: str, topics: str, *settings: str, wait: bool = True
    ) -> None:
        assert self.python is not None
        assert library in CLIENTS
        arguments = [library, self.broker.address, group, name, topics, *settings]
        self.note("start", name, " ".join([library, *arguments[2:]]))
        self._on[name] = self._run([self.python, "-u", str(HERE / "python_member.py"), *arguments], name)
        if wait:
            self.assigned(name)

    def go_client(self, name: str, group: str, topics: str) -> None:
        """A consumer by franz-go, which is built when the first is started."""
        program = self.folder / "go" / "member"
        if not program.exists():
            shutil.copytree(HERE / "go", program.parent)
            for command in (["go", "mod", "tidy"], ["go", "build", "-o", program.name, "."]):
                subprocess.run(command, cwd=program.parent, check=True, capture_output=True)
        arguments = [self.broker.address, group, name, topics, "2000", "400"]
        self.note("start", name, " ".join(["franz-go", *arguments[1:]]))
        self._on[name] = self._run([str(program), *arguments], name)
        self.assigned(name)

    @contextmanager
    def raw(self, name: str, group: str) -> Iterator[RawClassic]:
        """A member that sends what it is told to; its connection is closed at the end."""
        member = RawClassic(self.broker.port, name, group)
        try:
            yield member
        finally:
            member.close()

    @contextmanager
    def raw_consumer(self, name: str, group: str, member_id: str) -> Iterator[RawConsumer]:
        member = RawConsumer(self.broker.port, name, group, member_id)
        try:
            yield member
        finally:
            member.close()

    def assigned(self, name: str, word: str = "") -> None:
        """Wait for a client's next assignment."""
        path, deadline = self.folder / f"{name}.out", time.monotonic() + WAIT
        while time.monotonic() < deadline:
            for line in path.read_text().splitlines():
                if line.startswith(("assigned", "subscribed")) and word in line:
                    return
            time.sleep(0.05)
        raise BrokerError(f"{name} has no assignment: {path.read_text()[-500:]}")

    def say(self, name: str, command: str) -> None:
        """A command on a client's standard input."""
        self.note(command, name)
        stream = self._on[name].stdin
        assert stream is not None
        stream.write(command + "\n")
        stream.flush()

    def close(self, *names: str) -> None:
        """Clean ends, all at once."""
        for name in names:
            self.say(name, "close")
        for name in names:
            _end(self._on.pop(name))

    def kill(self, *names: str) -> None:
        for name in names:
            self.note("kill -9", name)
            self._on[name].send_signal(signal.SIGKILL)
        for name in names:
            _end(self._on.pop(name))

    def freeze(self, name: str) -> None:
        self.note("SIGSTOP", name)
        self._on[name].send_signal(signal.SIGSTOP)

    def thaw(self, name: str) -> None:
        self.note("SIGCONT", name)
        self._on[name].send_signal(signal.SIGCONT)

    def wait(self, seconds: float) -> None:
        time.sleep(seconds)

    # --- the recorder ---

    @contextmanager
    def recording(self, name: str) -> Iterator[None]:
        """NAME.pcap, NAME.log and NAME.did.json of what is done inside."""
        self._done, self._started = [], []
        path = self.folder / f"{name}.pcap"
        started = self.log.stat().st_size if self.log.exists() else 0
        command = ["tcpdump", "-q", "-i", "lo", "-U", "--immediate-mode", "-B", "16384", "-w", str(path)]
        dump = subprocess.Popen(
            [*command, f"tcp port {self.broker.port}"], stderr=subprocess.PIPE, stdin=subprocess.DEVNULL
        )
        assert dump.stderr is not None
        dump.stderr.readline()  # it listens
        time.sleep(0.3)
        try:
            yield
            self.note("end", "")
            time.sleep(1)
        finally:
            for remaining in list(self._on):
                _end(self._on.pop(remaining), kill=True)
            dump.send_signal(signal.SIGINT)
            message = dump.communicate()[1].decode()
        if " 0 packets dropped by kernel" not in " " + message.replace("\n", " "):
            raise BrokerError(f"{name}: {message}")
        with self.log.open("rb") as log:
            log.seek(started)
            (self.folder / f"{name}.log").write_bytes(log.read())
        did = {"did": self._done, "assigned": self._assigned(), "topics": self.topics}
        (self.folder / f"{name}.did.json").write_text(json.dumps(did, indent=1))

    def _assigned(self) -> list[list[str]]:
        """What the clients said that they have: when, who, what."""
        results = []
        for name in dict.fromkeys(self._started):
            for line in (self.folder / f"{name}.out").read_text().splitlines():
                words = line.split(" ")
                if words[0] == "assigned" and words[1].isdigit():
                    results.append([words[1], name, *words[2:]])
        return sorted(results)

    def note(self, did: str, who: str, arguments: str = "") -> None:
        """Keep what is done to whom, and when."""
        now = datetime.now(UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")
        self._done.append({"time": now, "did": did, "who": who, **({"args": arguments} if arguments else {})})
        if did == "start":
            self._started.append(who)

    # --- processes ---

    def _java(self, program: str, *arguments: str, name: str) -> subprocess.Popen[str]:
        java = shutil.which("java")
        assert java is not None
        path = self._classes["Stream" if program == "Stream" else "Member"]
        return self._run([java, *FLAGS, "-cp", path, program, *arguments], name)

    def _run(self, command: list[str], name: str) -> subprocess.Popen[str]:
        with (self.folder / f"{name}.out").open("w") as out, (self.folder / f"{name}.err").open("w") as err:
            return subprocess.Popen(
                command, stdin=subprocess.PIPE, text=True, stderr=err,
                stdout=subprocess.PIPE if name == "operator" else out,
            )  # fmt: skip


def _end(process: subprocess.Popen[str], kill: bool = False) -> None:
    """Wait for a process that was told to end; it is killed where it doesn't."""
    if kill:
        process.kill()
    if process.stdin is not None:
        process.stdin.close()
    try:
        process.wait(WAIT)
    except subprocess.TimeoutExpired:
        process.kill()
        process.wait()
