"""A running broker of Kafka 0.8.2.2, whose offset manager is asked by our bytes and by Kafka's own channel.

Strategy: `java/OffsetManagerChannel.java` starts ZooKeeper and the broker on loopback and carries out lines;
our requests are frames over a socket of their own. Rules: nothing is left running after the `with` block, and
a program that hangs is ended.
"""

from __future__ import annotations

import socket
import subprocess
import tempfile
from itertools import count
from pathlib import Path
from threading import Timer
from types import TracebackType
from typing import Any, Self

from coordwire import ApiKey, decode_response, encode_request
from coordwire.codec import Message
from tests.interop.broker import BrokerError, Java, free_port

RELEASE = "0.8.2.2"
VERSIONS = {
    "FindCoordinatorRequest": 0, "MetadataRequest": 0, "OffsetCommitRequest": 1, "OffsetFetchRequest": 1,
}  # fmt: skip
"""The largest versions of the release; those that keep offsets in Kafka."""

WAIT = 300
"""Seconds after which a program that hangs is ended."""

_SOURCE = Path(__file__).parent / "java" / "OffsetManagerChannel.java"


class RunningOffsetManager:
    """The broker; a context manager. Raises `Unavailable` or `BrokerError`."""

    def __init__(self) -> None:
        self._folder = tempfile.TemporaryDirectory()
        self._port = free_port()
        self._numbers = count(1)
        self._java = subprocess.Popen(
            Java(RELEASE, "zookeeper-consumer").command(str(_SOURCE), self._folder.name, str(self._port)),
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True,
        )  # fmt: skip
        self._watchdog = Timer(WAIT, self._java.kill)

    def __enter__(self) -> Self:
        self._watchdog.start()
        self._line()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._watchdog.cancel()
        self._java.kill()
        self._java.communicate()
        self._folder.cleanup()

    def _line(self) -> str:
        """A line of the program, without what its libraries print."""
        assert self._java.stdout is not None
        for line in self._java.stdout:
            if line.strip() == "ready" or line.strip().lstrip("-").isdecimal():
                return line.strip()
        raise BrokerError("the offset manager of 0.8.2.2 has ended")

    def _ask_java(self, words: str) -> int:
        assert self._java.stdin is not None
        self._java.stdin.write(f"{words}\n")
        self._java.stdin.flush()
        return int(self._line())

    def commit(self, group: str, topic: str, partition: int, offset: int) -> int:
        """Commit by Kafka's own channel; gives the error code."""
        return self._ask_java(f"commit {group} {topic} {partition} {offset}")

    def fetch(self, group: str, topic: str, partition: int) -> int:
        """The group's offset by Kafka's own channel."""
        return self._ask_java(f"fetch {group} {topic} {partition}")

    def request(self, message: Message) -> Any:
        """The answer to our request."""
        version = VERSIONS[type(message).__name__]
        frame = encode_request(message, version=version, correlation_id=next(self._numbers), client_id="ours")
        with socket.create_connection(("127.0.0.1", self._port), timeout=10) as connection:
            connection.sendall(frame)
            stream = connection.makefile("rb")
            size = stream.read(4)
            answer = size + stream.read(int.from_bytes(size))
        return decode_response(answer, api_key=ApiKey(message.api_key or 0), version=version).message
