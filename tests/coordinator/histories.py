"""Histories: what happens to a coordinator, step by step, and what comes out of it.

Strategy: a step is a line in the oracle's own language, so that one text drives Kafka's coordinator and ours.
`Replayer` runs steps on a `Shard` with a log of its own; the layer around the shard knows which topics there
are, as that of the oracle. What comes out of a step is its answers by ticket and its records; lists whose
order Kafka takes from hash tables (members, groups, topics, records of one step) are sorted on both sides.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from typing import Any, NamedTuple
from uuid import UUID

from coordwire.codec import Message
from coordwire.coordinator import (
    Append,
    CoordinatorConfig,
    Effect,
    GroupApis,
    LogEntry,
    RequestContext,
    Shard,
    StateRequest,
    TopicImage,
    TopicsImage,
    TransactionCompleted,
    TransactionMarker,
)
from coordwire.coordinator.apis import TOPIC_GUARDS
from coordwire.coordinator.effects import InternalTopic
from coordwire.enums import ErrorCode
from coordwire.errors import EncodeError, Malformed
from coordwire.logs import LogRecord, decode_log_record
from coordwire.messages import (
    ConsumerGroupDescribeResponse,
    DeleteGroupsResponse,
    DescribeGroupsResponse,
    GroupMetadataValue,
    InitializeShareGroupStateRequest,
    InitializeShareGroupStateResponse,
    JoinGroupResponse,
    ListGroupsResponse,
    OffsetFetchResponse,
    ShareGroupDescribeResponse,
    StreamsGroupDescribeResponse,
    StreamsGroupHeartbeatResponse,
    find_message,
)
from coordwire.messages.initialize_share_group_state import InitializeStateResult, PartitionResult

HOST = "/127.0.0.1"
START = 1_000
"""The oracle's first moment."""


class Record(NamedTuple):
    """A record as the log has it. marker: whether it is the end of a transaction."""

    key: bytes
    value: bytes | None
    producer_id: int = -1
    producer_epoch: int = -1
    marker: bool = False


_COMMIT, _ABORT = (TransactionMarker(committed).encoded()[0] for committed in (True, False))


@dataclass(slots=True)
class Outcome:
    """What one step led to. answers: by ticket; created: the topics that go with one, in the oracle's words;
    failed: errors of appends; ended: transactions, by ticket.

    other: what is neither; "unloadable" for a log that could not be loaded.
    """

    answers: dict[int, bytes] = field(default_factory=dict)
    created: dict[int, str] = field(default_factory=dict)
    records: list[Record] = field(default_factory=list)
    failed: list[str] = field(default_factory=list)
    ended: dict[int, str] = field(default_factory=dict)
    other: list[str] = field(default_factory=list)

    def sorted(self, requests: dict[int, tuple[int, int]]) -> Outcome:
        """The same without the order of hash tables."""
        answers = {
            ticket: _sorted_answer(data, *requests[ticket]) for ticket, data in sorted(self.answers.items())
        }
        records = sorted((_sorted_record(record) for record in self.records), key=repr)
        return Outcome(
            answers,
            dict(sorted(self.created.items())),
            records,
            self.failed,
            dict(sorted(self.ended.items())),
            self.other,
        )


def request_step(ticket: int, message: Message, version: int, new_id: int, client: str | None) -> str:
    body = message.encode(version=version).hex()
    client_text = "-" if client is None else client.encode().hex()
    return f"request {ticket} {message.api_key} {version} {new_id:032x} {client_text} {body}"


def kafka_outcome(lines: Iterable[str]) -> Outcome:
    """What the oracle said about a step."""
    outcome = Outcome()
    producer = (-1, -1)
    for line in lines:
        words = line.split(" ")
        if words[0] == "answer":
            outcome.answers[int(words[1])] = bytes.fromhex(words[2]) if len(words) > 2 else b""
        elif words[0] == "create":
            outcome.created[int(words[1])] = " ".join(words[2:])
        elif words[0] in ("record", "marker"):
            value = None if words[2] == "-" else bytes.fromhex(words[2])
            outcome.records.append(Record(bytes.fromhex(words[1]), value, *producer, words[0] == "marker"))
        elif words[0] == "failed":
            outcome.failed.append(words[1])
        elif words[0] == "ended":
            outcome.ended[int(words[1])] = words[2]
        elif words[0] == "batch":
            producer = (int(words[2]), int(words[3]))
        elif words[0] == "unloadable":
            outcome.other.append(words[0])
        elif words[0] != "unknown":
            outcome.other.append(line)
    return outcome


class Replayer:
    """Runs steps on a shard of ours. new_shard: makes it; one that is watched, perhaps."""

    def __init__(
        self, config: CoordinatorConfig | None = None, new_shard: Callable[..., Shard] = Shard
    ) -> None:
        self.config = config or CoordinatorConfig()
        self.shard = new_shard(now=START, config=self.config)
        self.apis = GroupApis(self.shard, TOPIC_GUARDS)
        self.shard.load([], now=START)
        self.requests: dict[int, tuple[int, int]] = {}
        self.log: list[tuple[int, Record]] = []
        self.end_offset = 0
        self.topics: dict[str, TopicImage] = {}
        self.now = START
        self._version = 0
        self._tickets: dict[int, int] = {}
        self._is_held = False
        self._pending: list[int] = []
        self.failure: str | None = None
        self.state_requests: dict[int, Any] = {}
        """Those to share coordinators that were not answered."""

    def run(self, step: str) -> Outcome:
        """The step's outcome, with answers as bytes of the request's version."""
        command, *words = step.split(" ")
        outcome = Outcome()
        if command == "advance":
            self.now = max(self.now, int(words[0]))
            self.shard.advance(self.now)
        else:
            try:
                getattr(self, f"_{command.replace('-', '_')}")(*words)
            except Malformed:
                outcome.other.append("unloadable")
        self._settle(outcome, self.apis.effects(), waits=command != "advance")
        return outcome

    def _settle(self, outcome: Outcome, effects: Iterator[Effect], *, waits: bool) -> None:
        """Carry out effects. waits: whether what is due at once waits for the next step `advance`, as the
        oracle's timers do."""
        shard: Any = self.shard
        while not waits or getattr(shard, "_out", shard._effects):
            effect = next(effects, None)
            if effect is None:
                return
            if isinstance(effect, Append):
                self._write(effect, outcome)
            elif isinstance(effect, StateRequest):
                self.state_requests[effect.number] = effect.request
                api = effect.request.api_key
                assert api is not None
                body = effect.request.encode(version=effect.version)
                outcome.other.append(f"persist {effect.number} {api} {body.hex()}")
            elif isinstance(effect, TransactionCompleted):
                outcome.ended[self._tickets[effect.ticket]] = ErrorCode(effect.error_code).name
            else:
                ticket = self._tickets[effect.ticket]
                version = self.requests[ticket][1]
                if effect.topics_to_create:
                    outcome.created[ticket] = _created_text(effect.topics_to_create)
                try:
                    outcome.answers[ticket] = effect.response.encode(version=version)
                except EncodeError as error:
                    outcome.other.append(f"unwritable {ticket}: {error}")

    def _write(self, append: Append, outcome: Outcome) -> None:
        if self.failure is not None:
            outcome.failed.append(self.failure)
            self.shard.failed(append.number, int(ErrorCode[self.failure]), now=self.shard.now)
            self.failure = None
            return
        assert append.base_offset == self.end_offset
        producer, marker = (append.producer_id, append.producer_epoch), append.marker is not None
        records = [Record(key, value, *producer, marker) for key, value in append.encoded()]
        self.log += enumerate(records, self.end_offset)
        self.end_offset = append.end_offset
        outcome.records += records
        if self._is_held:
            self._pending.append(append.number)
        else:
            self.shard.appended(append.number, now=self.shard.now)

    def deadlines(self) -> list[str]:
        """When which timer of the groups is due, as the oracle says it."""
        return sorted(f"{due} {key}" for key, due in self.shard.deadlines().items())

    @property
    def whole_log(self) -> tuple[int, list[tuple[int, Record]]]:
        """The end offset, and the records with their offsets."""
        return self.end_offset, list(self.log)

    def is_due(self) -> bool:
        """Whether a timer is due that was set for now."""
        due = self.shard.next_deadline()
        return due is not None and due <= self.now

    def topics_by_id(self) -> dict[UUID, TopicImage]:
        return {topic.id: topic for topic in self.topics.values()}

    # --- steps ---

    def _request(self, ticket: str, api: str, version: str, new_id: str, client: str, body: str = "") -> None:
        number = int(ticket)
        self.requests[number] = (int(api), int(version))
        request = find_message(int(api), "request").decode(bytes.fromhex(body), version=int(version))
        ids = itertools.count(int(new_id, 16))
        context = RequestContext(
            client_id=None if client == "-" else bytes.fromhex(client).decode(),
            client_host=HOST,
            new_id=lambda: str(UUID(int=next(ids), version=4)),
        )
        # Tickets count from 1, so that this one is known before an answer comes.
        self._tickets[self.apis.handle(request, version=int(version), now=self.now, context=context)] = number

    def _end(
        self, ticket: str, producer_id: str, producer_epoch: str, coordinator_epoch: str, ending: str
    ) -> None:
        number = self.shard.complete_transaction(
            int(producer_id), int(producer_epoch), committed=ending == "COMMIT",
            coordinator_epoch=int(coordinator_epoch), now=self.now,
        )  # fmt: skip
        self._tickets[number] = int(ticket)

    def _fail(self, error: str) -> None:
        self.failure = error

    def _hold(self) -> None:
        self._is_held = True

    def _commit(self) -> None:
        self._is_held = False
        for number in self._pending:
            self.shard.appended(number, now=self.now)
        self._pending.clear()

    def _topics(self, *changes: str) -> None:
        for change in changes:
            topic_id, *fields = change[1:].split(":", 2)
            if change[0] == "+":
                self.topics[topic_id] = TopicImage(_uuid(topic_id), fields[1], int(fields[0]))
            else:
                del self.topics[topic_id]
        self._version += 1
        self.shard.set_topics(TopicsImage(self.topics.values(), version=self._version), now=self.now)

    def _config(self, group_id: str, *pairs: str) -> None:
        """A group's own configuration, by Kafka's names; none takes it back."""
        self.shard.set_group_config(group_id, None, now=self.now)
        for config in self.config.group_configs(dict(pair.split("=") for pair in pairs)):
            self.shard.set_group_config(group_id, config, now=self.now)

    def _persisted(self, number: str, answer: str, *ends: str) -> None:
        """The share coordinators answer: a response, or an error's name, and the ends of logs."""
        request = self.state_requests.pop(int(number))
        offsets = {}
        for end in ends:
            topic, partition, error, offset = end.split(":")
            offsets[topic, int(partition)] = int(ErrorCode[error]), int(offset)
        if answer in ErrorCode.__members__:
            self.shard.persisted(int(number), None, int(ErrorCode[answer]), now=self.now)
            return
        response = find_message(request.api_key, "response").decode(
            bytes.fromhex(answer), version=request.versions[-1]
        )
        self.shard.persisted(int(number), response, latest_offsets=offsets, now=self.now)

    def _unload(self) -> None:
        self._pending.clear()
        self.shard.unload(now=self.now)

    def _begin_load(self) -> None:
        self.shard.begin_loading()

    def _load(self, end_offset: str | None = None, *entries: str) -> None:
        """Load this log, or the one that was written so far."""
        if end_offset is not None:
            self.log = [entry_from_text(entry) for entry in entries]
            self.end_offset = int(end_offset)
        self.shard.load(map(log_entry, self.log), end_offset=self.end_offset, now=self.now)


def state_answer(replayer: Replayer) -> str | None:
    """The step in which share coordinators answer the oldest request that waits, if one does.

    The heartbeats between the steps of a history change what share coordinators are asked for.
    """
    number, request = next(iter(replayer.state_requests.items()), (0, None))
    if not isinstance(request, InitializeShareGroupStateRequest):
        return None if request is None else f"persisted {number} COORDINATOR_NOT_AVAILABLE"
    response = InitializeShareGroupStateResponse(
        results=[
            InitializeStateResult(
                topic_id=topic.topic_id,
                partitions=[PartitionResult(partition=part.partition) for part in topic.partitions],
            )
            for topic in request.topics
        ]
    )
    return f"persisted {number} {response.encode(version=0).hex()}"


def log_entry(entry: tuple[int, Record]) -> LogEntry:
    """A record of the log as a shard loads it."""
    offset, record = entry
    content: LogRecord | TransactionMarker
    if record.marker:
        content = TransactionMarker(record.key == _COMMIT)
    else:
        content = decode_log_record("consumer_offsets", record.key, record.value, strict=False)
    return LogEntry(offset=offset, record=content, producer_id=record.producer_id)


def entry_text(offset: int, record: Record) -> str:
    """A record of the log as a word of the step `load`."""
    key = record.key.hex()
    if record.marker:
        key = "C" if record.key == _COMMIT else "A"
    value = "-" if record.value is None or record.marker else record.value.hex()
    return f"{key}:{value}:{record.producer_id}:{offset}"


def entry_from_text(text: str) -> tuple[int, Record]:
    key, value, producer, offset = text.split(":")
    if key in ("C", "A"):
        record = Record(_COMMIT if key == "C" else _ABORT, b"", int(producer), 0, True)
    else:
        record = Record(bytes.fromhex(key), None if value == "-" else bytes.fromhex(value), int(producer))
    return int(offset), record


def _created_text(topics: Iterable[InternalTopic]) -> str:
    """Topics to create, as the oracle says it."""
    texts = []
    for topic in topics:
        configs = sorted(
            f"{key.encode().hex()}={value.encode().hex()}" for key, value in topic.configs.items()
        )
        replicas = topic.replication_factor or -1
        texts.append(f"{topic.name.encode().hex()}:{topic.partitions}:{replicas}:{','.join(configs)}")
    return " ".join(sorted(texts))


def _uuid(text: str) -> UUID:
    """A UUID as Kafka prints it."""
    import base64

    return UUID(bytes=base64.urlsafe_b64decode(text + "=="))


def _sorted_answer(data: bytes, api: int, version: int) -> bytes:
    cls = find_message(api, "response")
    if cls not in _SORT:
        return data
    response: Any = cls.decode(data, version=version)
    _SORT[cls](response)
    encoded: bytes = response.encode(version=version)
    return encoded


def _sort_join(response: Any) -> None:
    response.members.sort(key=lambda member: member.member_id)


def _sort_described(response: Any) -> None:
    # Kafka lists a member of a consumer group twice that appends on their way replaced twice.
    for group in response.groups:
        members = {member.member_id: member for member in group.members}
        group.members = [members[member_id] for member_id in sorted(members)]


def _sort_streams_heartbeat(response: Any) -> None:
    # Java's immutable maps have an order of their own in each process.
    for endpoint in response.partitions_by_user_endpoint or ():
        endpoint.active_partitions.sort(key=repr)


def _sort_listed(response: Any) -> None:
    # Kafka lists a group twice that an append on its way replaced.
    response.groups = sorted(
        {group.group_id: group for group in response.groups}.values(), key=lambda group: group.group_id
    )


def _sort_deleted(response: Any) -> None:
    response.results.sort(key=lambda result: result.group_id)


def _sort_fetched(response: Any) -> None:
    # Kafka gives a topic or partition twice that was replaced twice by appends on their way.
    for owner in (response, *response.groups):
        topics = {(topic.name, getattr(topic, "topic_id", None)): topic for topic in owner.topics}
        owner.topics = [topics[key] for key in sorted(topics, key=repr)]
        for topic in owner.topics:
            partitions = {partition.partition_index: partition for partition in topic.partitions}
            topic.partitions = [partitions[index] for index in sorted(partitions)]


_SORT = {
    ShareGroupDescribeResponse: _sort_described,
    JoinGroupResponse: _sort_join,
    DescribeGroupsResponse: _sort_described,
    ConsumerGroupDescribeResponse: _sort_described,
    StreamsGroupDescribeResponse: _sort_described,
    StreamsGroupHeartbeatResponse: _sort_streams_heartbeat,
    ListGroupsResponse: _sort_listed,
    DeleteGroupsResponse: _sort_deleted,
    OffsetFetchResponse: _sort_fetched,
}


def _sorted_record(record: Record) -> Record:
    key, value, *_ = record
    if value is None or record.marker or not key.startswith(b"\x00\x02"):
        return record
    version = int.from_bytes(value[:2], "big")
    metadata = GroupMetadataValue.decode(value[2:], version=version)
    metadata.members.sort(key=lambda member: member.member_id)
    return record._replace(value=value[:2] + metadata.encode(version=version))
