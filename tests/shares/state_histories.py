"""Histories of one share coordinator's partition: steps as lines, ours run on them, and random ones.

The steps are those of oracle/StateOracle.java. What comes out is answers and records as bytes.
"""

from __future__ import annotations

import base64
import random
import re
from collections import Counter
from collections.abc import Iterable
from uuid import UUID

from coordwire.coordinator.effects import Answer, Append
from coordwire.coordinator.share_state import ShareStateConfig, ShareStateShard
from coordwire.coordinator.topics import TopicImage, TopicsImage
from coordwire.enums import ErrorCode
from coordwire.errors import CoordwireError
from coordwire.logs import decode_log_record
from coordwire.messages import (
    DeleteShareGroupStateRequest,
    InitializeShareGroupStateRequest,
    ReadShareGroupStateRequest,
    ReadShareGroupStateSummaryRequest,
    WriteShareGroupStateRequest,
    find_message,
)
from coordwire.messages import delete_share_group_state as deletion
from coordwire.messages import initialize_share_group_state as initialization
from coordwire.messages import read_share_group_state as reading
from coordwire.messages import read_share_group_state_summary as summary
from coordwire.messages import write_share_group_state as writing
from tests.coordinator.oracle import RELEASE

START = 1_000


def kafka_id(text: str) -> UUID:
    """The topic id of a text of Kafka's."""
    return UUID(bytes=base64.urlsafe_b64decode(text + "=="))


class Replayer:
    """One shard of ours, and its log."""

    def __init__(self) -> None:
        self.shard = ShareStateShard(now=START, config=ShareStateConfig(release=RELEASE))
        self.topics: dict[UUID, TopicImage] = {}
        self.log: list[tuple[int, bytes, bytes | None]] = []
        self.end = 0
        self.versions: dict[int, tuple[int, int]] = {}
        self.failure: str | None = None
        self.held: list[int] | None = None
        self.lines: list[str] = []

    def run(self, step: str) -> list[str]:
        words = step.split(" ")
        self.lines = []
        if words[0] == "new":
            self.__init__()  # type: ignore[misc]
            config = ShareStateConfig(
                updates_per_snapshot=int(words[1]), cold_ms=int(words[2]), release=RELEASE
            )
            self.shard = ShareStateShard(now=START, config=config)
            self.shard.load([])
            return []
        getattr(self, "_" + words[0])(words)
        self._pump()
        return self.lines

    def _request(self, words: list[str]) -> None:
        api, version = int(words[2]), int(words[3])
        request = find_message(api, "request").decode(bytes.fromhex(words[4]), version=version)
        ticket = self.shard.handle(request)
        assert ticket == int(words[1])
        self.versions[ticket] = api, version

    def _advance(self, words: list[str]) -> None:
        self.shard.advance(int(words[1]))

    def _fail(self, words: list[str]) -> None:
        self.failure = words[1]

    def _hold(self, words: list[str]) -> None:
        self.held = self.held or []

    def _commit(self, words: list[str]) -> None:
        held, self.held = self.held, None
        for number in held or ():
            self.shard.appended(number)

    def _topics(self, words: list[str]) -> None:
        for word in words[1:]:
            parts = word[1:].split(":", 2)
            topic_id = kafka_id(parts[0])
            if word[0] == "+":
                self.topics[topic_id] = TopicImage(topic_id, parts[2], int(parts[1]))
            else:
                del self.topics[topic_id]
        self.shard.set_topics(TopicsImage(self.topics.values()))

    def _unload(self, words: list[str]) -> None:
        self.shard.unload()
        if self.held:
            self.held = []

    def _load(self, words: list[str]) -> None:
        if len(words) > 1:
            self.end = int(words[1])
            self.log = []
            for word in words[2:]:
                key, value, offset = word.split(":")
                self.log.append(
                    (int(offset), bytes.fromhex(key), None if value == "-" else bytes.fromhex(value))
                )
        records = (
            (offset, decode_log_record("share_group_state", key, value, strict=False))
            for offset, key, value in self.log
        )
        try:
            self.shard.load(records, end_offset=self.end)
        except CoordwireError:
            self.lines.append("unloadable")

    def _cold(self, words: list[str]) -> None:
        self.shard.snapshot_cold_partitions()

    def _redundant(self, words: list[str]) -> None:
        offset = self.shard.redundant_before
        self.lines.append(f"redundant {'-' if offset is None else offset}")

    def _pump(self) -> None:
        for effect in self.shard.effects():
            if isinstance(effect, Append):
                if self.failure is not None:
                    failure, self.failure = self.failure, None
                    self.lines.append(f"failed {failure}")
                    self.shard.failed(effect.number, int(ErrorCode[failure]))
                    continue
                self.lines.append(f"batch {effect.base_offset} -1 -1")
                for offset, (key, value) in enumerate(effect.encoded(), effect.base_offset):
                    self.log.append((offset, key, value))
                    self.lines.append(f"record {key.hex()} {'-' if value is None else value.hex()}")
                self.end = effect.end_offset
                if self.held is None:
                    self.shard.appended(effect.number)
                else:
                    self.held.append(effect.number)
            else:
                assert isinstance(effect, Answer)
                body = effect.response.encode(version=self.versions[effect.ticket][1])
                self.lines.append(f"answer {effect.ticket} {body.hex()}")

    def load_step(self) -> str:
        """The step that loads the log as it is."""
        entries = (
            f"{key.hex()}:{'-' if value is None else value.hex()}:{offset}" for offset, key, value in self.log
        )
        return " ".join(["load", str(self.end), *entries])


def normalized(lines: Iterable[str]) -> list[str]:
    """Lines, with the records of one batch and the answers of one step in a fixed order.

    The reason why an operation could not be done is in Java's words in Kafka's answers.
    """
    result: list[str] = []
    run: list[str] = []
    for line in lines:
        if line.startswith("answer") and _UNABLE in line:
            line = _without_reasons(line)
        if line.startswith("unloadable"):
            line = "unloadable"
        if line.startswith("record"):
            run.append(line)
            continue
        result += sorted(run)
        run = []
        result.append(line)
    result += sorted(run)
    return [line for line in result if not line.startswith("answer")] + sorted(
        line for line in result if line.startswith("answer")
    )


_UNABLE = b"Unable to ".hex()
_REASON = re.compile(rb"([\x02-\x7f\x80-\xff]|[\x80-\xff][\x01-\x02])Unable to ([a-z ]+): [^\x00-\x1f]*")


def _without_reasons(line: str) -> str:
    words = line.split(" ")
    body = _REASON.sub(rb"\2", bytes.fromhex(words[2]))
    return f"{words[0]} {words[1]} {body.hex()}"


def readable(line: str, versions: dict[int, tuple[int, int]]) -> str:
    words = line.split(" ")
    if words[0] == "answer":
        api, version = versions[int(words[1])]
        try:
            answer = find_message(api, "response").decode(bytes.fromhex(words[2]), version=version)
            return f"{words[1]}: {answer}"
        except CoordwireError:
            return line
    if words[0] == "record":
        value = None if words[2] == "-" else bytes.fromhex(words[2])
        record = decode_log_record("share_group_state", bytes.fromhex(words[1]), value)
        return f"{record.key!r} {record.value!r}"
    return line


# --- random histories ---

_IDS = ("AAAAAAAAAAAAAAAAAAAAAQ", "AAAAAAAAAAEAAAAAAAAAAg", "ZZZZAAAAAAAAAAAAAAAAAw")
_FAILURES = ("NOT_ENOUGH_REPLICAS", "NOT_LEADER_OR_FOLLOWER", "KAFKA_STORAGE_ERROR", "MESSAGE_TOO_LARGE",
             "UNKNOWN_TOPIC_OR_PARTITION", "REQUEST_TIMED_OUT", "RECORD_LIST_TOO_LARGE")  # fmt: skip


class Generator:
    """A random history that grows on ours."""

    def __init__(self, seed: int) -> None:
        self.chance = random.Random(seed)
        self.replayer = Replayer()
        self.steps: list[str] = []
        self.outcomes: list[list[str]] = []
        self.counts: Counter[str] = Counter()
        self.now = START
        self.ticket = 0
        self.fails_over = self.chance.random() < 0.5

    def step(self, text: str) -> None:
        self.steps.append(text)
        lines = self.replayer.run(text)
        self.outcomes.append(lines)
        for line in lines:
            words = line.split(" ")
            if words[0] != "answer":
                self.counts[words[0]] += 1
                continue
            api, version = self.replayer.versions[int(words[1])]
            response = find_message(api, "response").decode(bytes.fromhex(words[2]), version=version)
            for result in response.results:  # type: ignore[attr-defined]
                for partition in result.partitions:
                    self.counts[f"{api} {ErrorCode(partition.error_code).name}"] += 1

    def grow(self, count: int) -> None:
        chance = self.chance
        self.cold = chance.choice([1_000, 60_000])
        self.step(f"new {chance.choice([0, 1, 3, 500])} {self.cold}")
        self.step("topics " + " ".join(f"+{topic}:{chance.randint(1, 3)}:t{topic[-1]}" for topic in _IDS))
        while len(self.steps) < count:
            chance.choices(
                [
                    self._initialize, self._read, self._write, self._delete, self._summarize, self._advance,
                    self._fail, self._hold, self._topics, self._reload, self._cold,
                ],
                [3, 3, 12, 0.7, 2, 3, 0.7, 1, 0.3, 0.6, 1],
            )[0]()  # fmt: skip

    def _request(self, request: WriteShareGroupStateRequest | ReadShareGroupStateRequest
                 | InitializeShareGroupStateRequest | DeleteShareGroupStateRequest
                 | ReadShareGroupStateSummaryRequest, version: int = 0) -> None:  # fmt: skip
        self.ticket += 1
        body = request.encode(version=version)
        self.step(f"request {self.ticket} {request.api_key} {version} {body.hex()}")

    def _group(self) -> str:
        return self.chance.choice(["g", "g", "g", "h", "i"] + ([""] if self.chance.random() < 0.02 else []))

    def _topic_data(self) -> list[tuple[UUID, list[int]]]:
        """Some topics with some partitions."""
        chance = self.chance
        if chance.random() < 0.02:
            return []
        if self.replayer.failure is not None:
            # Kafka appends for one partition after the other; ours takes back the later ones with the first.
            return [(kafka_id(chance.choice(_IDS)), [0])]
        topics = chance.sample(_IDS, chance.choice([1, 1, 1, 2, 3]))
        data = []
        for topic in topics:
            partitions = [chance.choice([0, 0, 0, 1, 2]) for _ in range(chance.choice([1, 1, 1, 2]))]
            if chance.random() < 0.03:
                partitions.append(chance.choice([-1, 7]))
            if chance.random() < 0.02:
                partitions = []
            data.append((kafka_id(topic), partitions))
        if chance.random() < 0.02:
            data.append((UUID(int=99), [0]))
        return data

    def _epoch(self) -> int:
        return self.chance.choice([0, 0, 0, 1, 1, 2, -1])

    def _initialize(self) -> None:
        data = [
            initialization.InitializeStateData(
                topic_id=topic,
                partitions=[
                    initialization.PartitionData(
                        partition=index, state_epoch=self._epoch(),
                        start_offset=self.chance.choice([-1, -1, 0, 10]),
                    )
                    for index in partitions
                ],
            )
            for topic, partitions in self._topic_data()
        ]  # fmt: skip
        self._request(InitializeShareGroupStateRequest(group_id=self._group(), topics=data))

    def _read(self) -> None:
        data = [
            reading.ReadStateData(
                topic_id=topic,
                partitions=[
                    reading.PartitionData(partition=index, leader_epoch=self._epoch()) for index in partitions
                ],
            )
            for topic, partitions in self._topic_data()
        ]
        self._request(ReadShareGroupStateRequest(group_id=self._group(), topics=data))

    def _write(self) -> None:
        chance = self.chance
        data = []
        for topic, partitions in self._topic_data():
            written = []
            for index in partitions:
                batches = []
                for _ in range(chance.choice([0, 1, 1, 2, 4])):
                    first = chance.randint(0, 40)
                    batches.append(
                        writing.StateBatch(
                            first_offset=first, last_offset=first + chance.choice([0, 1, 5, 20]),
                            delivery_state=chance.choice([0, 2, 4]), delivery_count=chance.randint(1, 3),
                        )
                    )  # fmt: skip
                written.append(
                    writing.PartitionData(
                        partition=index, state_epoch=self._epoch(), leader_epoch=self._epoch(),
                        start_offset=chance.choice([-1, 0, 5, 20]),
                        delivery_complete_count=chance.choice([-1, 0, 7]), state_batches=batches,
                    )
                )  # fmt: skip
            data.append(writing.WriteStateData(topic_id=topic, partitions=written))
        self._request(
            WriteShareGroupStateRequest(group_id=self._group(), topics=data), chance.choice([0, 1, 1])
        )

    def _delete(self) -> None:
        data = [
            deletion.DeleteStateData(
                topic_id=topic, partitions=[deletion.PartitionData(partition=index) for index in partitions]
            )
            for topic, partitions in self._topic_data()
        ]
        self._request(DeleteShareGroupStateRequest(group_id=self._group(), topics=data))

    def _summarize(self) -> None:
        data = [
            summary.ReadStateSummaryData(
                topic_id=topic, partitions=[summary.PartitionData(partition=index) for index in partitions]
            )
            for topic, partitions in self._topic_data()
        ]
        self._request(
            ReadShareGroupStateSummaryRequest(group_id=self._group(), topics=data), self.chance.choice([0, 1])
        )

    def _advance(self) -> None:
        self.now += self.chance.choice([1, 500, 1_000, 5_000, 60_000])
        self.step(f"advance {self.now}")

    def _fail(self) -> None:
        if self.replayer.held is None:
            self.step("fail " + self.chance.choice(_FAILURES))

    def _hold(self) -> None:
        if self.replayer.failure is None:
            self.step("hold" if self.replayer.held is None else "commit")

    def _topics(self) -> None:
        chance = self.chance
        known = list(self.replayer.topics.values())
        words = []
        for name in _IDS:
            topic = next((topic for topic in known if topic.id == kafka_id(name)), None)
            if topic is None:
                words.append(f"+{name}:{chance.randint(1, 3)}:t{name[-1]}")
            elif chance.random() < 0.3:
                words.append(f"-{name}")
            elif chance.random() < 0.3:
                words.append(f"+{name}:{topic.partitions + 1}:{topic.name}")
        if words:
            self.step("topics " + " ".join(words))

    def _reload(self) -> None:
        if self.replayer.held is not None:
            return
        self.step("unload")
        if self.chance.random() < 0.5:
            self._write()
        self.step(self.replayer.load_step() if self.chance.random() < 0.5 else "load")

    def _cold(self) -> None:
        choices = ["cold", "redundant"] if self.replayer.held is None else ["cold"]
        self.step(self.chance.choice(choices))


def history(seed: int, steps: int = 120) -> Generator:
    grown = Generator(seed)
    grown.grow(steps)
    return grown
