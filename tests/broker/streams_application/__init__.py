"""A Kafka Streams application in a streams group (KIP-1071) against the broker.

Strategy: WordCount.java counts the words of lines, exactly once. Its instances are JVMs that are started,
stopped and killed while lines are written; at the end each count must be right, once in the topic of counts
for each occurrence: an update lost or applied twice shows.
"""

from __future__ import annotations

import random
import subprocess
import time
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from types import TracebackType
from typing import Self

from coordwire.broker.harness import Kafka
from coordwire.messages import StreamsGroupDescribeRequest, StreamsGroupDescribeResponse
from coordwire.messages.streams_group_describe import DescribedGroup
from tests.interop.broker import Java, ask

__all__ = ["APPLICATION", "WordCount"]

APPLICATION = "word-count"
_SOURCE = Path(__file__).parent / "WordCount.java"
_WORDS = ["till", "refund", "order", "audit", "stock", "payment", "return"]
_WAIT = 90
"""Seconds for the application to get so far."""


class WordCount:
    """Instances of the application at one broker."""

    def __init__(self, kafka: Kafka, folder: Path, seed: int = 1) -> None:
        self.kafka = kafka
        self.expected: Counter[str] = Counter()
        self._java = Java(project="streams")
        self._folder = folder
        self._random = random.Random(seed)
        self._running: dict[str, subprocess.Popen[bytes]] = {}

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        for name in list(self._running):
            self.kill(name)

    # --- instances ---

    def start(self, name: str, *, threads: int = 1) -> None:
        state = self._folder / f"state-{name}"
        arguments = (str(_SOURCE), self.kafka.bootstrap, APPLICATION, str(state), str(threads))
        self._running[name] = self._java.start(*arguments, output=self._folder / f"{name}.log")

    def kill(self, name: str) -> None:
        process = self._running.pop(name)
        process.kill()
        process.wait()

    def stop(self, name: str) -> None:
        """End an instance as an operator does; its member leaves the group."""
        process = self._running.pop(name)
        process.terminate()
        process.wait(_WAIT)

    def log(self, name: str) -> str:
        return (self._folder / f"{name}.log").read_text(errors="replace")

    # --- the group ---

    def group(self) -> DescribedGroup:
        """The application's group as the broker describes it."""
        port = self.kafka.bootstrap.rpartition(":")[2]
        request = StreamsGroupDescribeRequest(group_ids=[APPLICATION])
        response = ask(int(port), request, version=0)
        assert isinstance(response, StreamsGroupDescribeResponse)
        (group,) = response.groups
        return group

    def until(self, condition: Callable[[DescribedGroup], bool], what: str) -> DescribedGroup:
        """Wait until the group fulfils a condition."""
        deadline = time.monotonic() + _WAIT
        while time.monotonic() < deadline:
            group = self.group()
            if condition(group):
                return group
            for name, process in self._running.items():
                if process.poll() is not None:
                    raise AssertionError(f"{name} ended: {self.log(name)[-3000:]}")
            time.sleep(0.1)
        logs = "\n".join(self.log(name)[-1500:] for name in self._running)
        raise AssertionError(f"no {what} in {_WAIT} s: {self.group().group_state}\n{logs}")

    def until_stable(self, members: int) -> DescribedGroup:
        return self.until(
            lambda group: len(group.members) == members and group.group_state == "Stable",
            f"stable group of {members}",
        )

    # --- lines and counts ---

    def write(self, lines: int) -> None:
        for number in range(lines):
            words = self._random.choices(_WORDS, k=self._random.randint(1, 4))
            self.expected.update(words)
            self.kafka.produce("lines", " ".join(words), partition=number % 4)

    def counts(self) -> dict[str, list[int]]:
        """The counts of each word, in the order in which they were committed."""
        counts: dict[str, list[int]] = {}
        for record in self.kafka.records("counts", committed=True):
            assert record.key is not None
            assert record.value is not None
            counts.setdefault(record.key.decode(), []).append(int.from_bytes(record.value, "big"))
        return counts

    def until_counted(self) -> None:
        """Wait until all lines are counted, and check that each count rises, and to the right number."""
        self.until(
            lambda _: {word: counts[-1] for word, counts in self.counts().items()} == dict(self.expected),
            f"counts {dict(self.expected)}, but { ({w: c[-1] for w, c in self.counts().items()}) }",
        )
        for word, counts in self.counts().items():
            assert counts == sorted(set(counts)), (word, counts)
