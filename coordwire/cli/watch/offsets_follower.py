"""The records of a live cluster's `__consumer_offsets`, as they are written, and offsets of its partitions.

Strategy: each round is a Fetch at each broker that leads partitions of the log; what comes goes through the
reader of log files. Rules: nothing is written to the cluster; a record comes once. A partition that cannot be
read is a `Problem`, and is tried again after a pause that grows up to a bound; the others go on. A log that
does not exist yet is waited for. A partition whose first records were deleted continues at its start, one
that was cut below what was read at its end. A log of another topic id is another log: the items end, so that
the caller begins again.
"""

from __future__ import annotations

import asyncio
import time
from collections import OrderedDict
from collections.abc import Callable, Coroutine, Generator, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, TypeVar
from uuid import UUID

from coordwire.cli.watch.cluster_reader import SILENCE_S, Backoff, ClusterReader, NodeReply, meaning_of
from coordwire.cli.watch.problems import Problems, ProblemSubject
from coordwire.client import Client
from coordwire.enums import ErrorCode
from coordwire.errors import CoordwireError, UnreadableRange
from coordwire.messages import FetchRequest, FetchResponse, ListOffsetsRequest, ListOffsetsResponse
from coordwire.messages.fetch import FetchPartition, FetchTopic, PartitionData
from coordwire.messages.list_offsets import (
    ListOffsetsPartition,
    ListOffsetsTopic,
)
from coordwire.records import batches
from coordwire.timeline.events import TopicPartition
from coordwire.timeline.from_log.coordinator_log import LogItem, read_records

T = TypeVar("T")

TOPIC = "__consumer_offsets"
MOST_PARTITIONS = 10_000
"""Of the log."""

_EARLIEST, _LATEST = -2, -1
_WAIT_MS = 500
_PARTITION_BYTES = 1 << 20
_MAX_BYTES = 16 << 20
_LAST_OFFSET = (1 << 63) - 1
_NO_ID = UUID(int=0)
_ALL = ProblemSubject("log", TOPIC)


@dataclass(slots=True)
class _Log:
    """A partition of the log. position: the offset to read next; None before it is known. timestamp: which
    offset is asked for meanwhile; lost_at: the position that was out of range. is_cut: the last answer had
    only a part of a batch."""

    position: int | None = None
    timestamp: int = _EARLIEST
    lost_at: int | None = None
    is_cut: bool = False
    backoff: Backoff = field(default_factory=Backoff)


class OffsetsFollower:
    """Reads the log of groups. names: of topics by their ids, which this fills in as they appear."""

    def __init__(
        self, client: Client, names: OrderedDict[str, str], problems: Problems, runner: asyncio.Runner
    ) -> None:
        self._problems = problems
        self._reader = ClusterReader(client, names, problems)
        self._runner = runner
        self._logs: dict[int, _Log] = {}
        self._topic_id = _NO_ID
        self._fetched: list[NodeReply] = []
        self._committed: set[TopicPartition] = set()
        self._ends: dict[TopicPartition, tuple[int, float]] = {}

    @property
    def cluster_id(self) -> str | None:
        """The cluster's id; None while it is not known."""
        return self._reader.cluster_id

    def close(self) -> None:
        """Cancel what was not answered."""
        self._runner.run(self._reader.close())

    def items(self, round_ended: Callable[[], bool]) -> Iterator[LogItem]:
        """The items of the log, until `round_ended`, which is called after each round, gives False, or
        another log takes its place."""
        while True:
            if self._run(self._round()):
                return
            fetched, self._fetched = self._fetched, []
            for exchange in fetched:
                yield from self._read(exchange)
            if not round_ended():
                return

    def _run(self, step: Coroutine[Any, Any, T]) -> T:
        return self._runner.run(step)

    async def _round(self) -> bool:
        """Look for what is new; whether another log has taken the place of the one that was read."""
        end = time.monotonic() + _WAIT_MS / 1000
        await self._reader.look({TOPIC, *(place.topic for place in self._committed)})
        if self._find_partitions():
            return True
        by_leader = self._reader.by_leader(
            [TopicPartition(TOPIC, number) for number, log in self._logs.items() if log.backoff.is_due],
            {TopicPartition(TOPIC, number): ProblemSubject("log", TOPIC, number) for number in self._logs},
        )
        await self._find_positions(by_leader)
        requests = {node: self._fetch(places) for node, places in by_leader.items()}
        await self._exchange({node: request for node, request in requests.items() if request.topics})
        if not any(_has_records(exchange.answer) for exchange in self._fetched):
            await asyncio.sleep(end - time.monotonic())
        return False

    def _find_partitions(self) -> bool:
        """Find the partitions of the log; whether it is another log than before."""
        topic = self._reader.topic(TOPIC)
        if topic is None:
            return False
        if topic.error_code:
            self._problems.begin(_ALL, meaning_of(topic.error_code))
            return False
        self._problems.end(_ALL)
        before, self._topic_id = self._topic_id, topic.topic_id
        if _NO_ID != before != topic.topic_id != _NO_ID:
            self._logs, self._fetched = {}, []
            return True
        for partition in topic.partitions[:MOST_PARTITIONS]:
            if partition.partition_index >= 0:
                self._logs.setdefault(partition.partition_index, _Log())
        return False

    # --- the log ---

    async def _find_positions(self, by_leader: Mapping[int, Iterable[TopicPartition]]) -> None:
        """Find where to begin to read, where that is not known."""
        await self._exchange(
            {
                node: _list_request({place: self._logs[place.partition].timestamp for place in places})
                for node, led in by_leader.items()
                if (places := [place for place in led if self._logs[place.partition].position is None])
            }
        )

    def _fetch(self, places: Iterable[TopicPartition]) -> FetchRequest:
        logs = [(place.partition, self._logs[place.partition]) for place in places]
        partitions = [
            FetchPartition(partition=number, fetch_offset=log.position, partition_max_bytes=_PARTITION_BYTES)
            for number, log in sorted(logs, key=lambda pair: (not pair[1].is_cut, pair[0]))
            if log.position is not None
        ]  # the first has its next batch whole
        return FetchRequest(
            max_wait_ms=_WAIT_MS, min_bytes=1, max_bytes=_MAX_BYTES, session_epoch=-1,
            topics=[FetchTopic(topic=TOPIC, partitions=partitions)] if partitions else [],
        )  # fmt: skip

    def _read(self, exchange: NodeReply) -> Iterator[LogItem]:
        """The items in an answer to a Fetch."""
        request: Any = exchange.request
        answer: Any = exchange.answer
        parts = {
            part.partition_index: part
            for topic in answer.responses
            if topic.topic in (TOPIC, "") and topic.topic_id in (self._topic_id, _NO_ID)
            for part in topic.partitions
        }
        for topic in request.topics:
            for row in topic.partitions:
                number, is_first = row.partition, row is topic.partitions[0]
                log, subject = self._logs.get(number), ProblemSubject("log", TOPIC, number)
                if log is None or log.position != row.fetch_offset:
                    continue  # another node has answered meanwhile, or it was asked of another log
                try:
                    reason = yield from self._read_partition(number, log, parts.get(number), is_first)
                except CoordwireError as error:
                    reason = str(error)
                if reason:
                    log.backoff.fails()
                    self._problems.begin(subject, reason)
                else:
                    log.backoff.succeeds()
                    self._problems.end(subject)

    def _read_partition(
        self, number: int, log: _Log, part: PartitionData | None, is_first: bool
    ) -> Generator[LogItem, None, str]:
        """The items in a partition's answer. Returns what is wrong, "" if nothing is."""
        position = log.position
        if part is None:
            return "the answer to Fetch does not have the partition"
        if part.error_code == ErrorCode.OFFSET_OUT_OF_RANGE:
            log.position, log.lost_at = None, position
            return (
                f"its log does not have offset {position}, which was to be read next: what was there is lost"
            )
        if part.error_code:
            self._reader.look_again()
            return meaning_of(part.error_code)
        if not part.records or position is None:
            return ""
        for item in read_records(
            part.records, log="consumer_offsets", file=f"{TOPIC}-{number}", log_partition=number
        ):
            if isinstance(item, UnreadableRange):
                continue  # an answer may end within a batch, which the next one has
            if item.log_offset >= position:
                yield item
        scan = batches(part.records, on_error="skip")
        last = max((batch.last_offset for batch in scan), default=-1)
        log.is_cut = last < position and len(scan.remainder) > 0
        if last >= position or (log.is_cut and not is_first):
            log.position = min(max(last + 1, position), _LAST_OFFSET)
            return ""
        log.position, log.is_cut = min(position + 1, _LAST_OFFSET), False
        return f"no batch can be read at offset {position}"

    # --- offsets ---

    def measure(self, places: Iterable[TopicPartition]) -> dict[TopicPartition, int]:
        """The ends of partitions, as of their last answer; those that have had none for a while are left out.
        places: all that are asked for from now on."""
        self._committed = set(places)
        self._problems.end_others("end", {ProblemSubject("end", *place) for place in self._committed})
        self._run(self._ask(dict.fromkeys(sorted(self._committed), _LATEST)))
        oldest = time.monotonic() - SILENCE_S
        self._ends = {
            place: (end, answered_at)
            for place, (end, answered_at) in self._ends.items()
            if answered_at >= oldest and place in self._committed
        }
        return {place: end for place, (end, _) in self._ends.items()}

    def list_offsets(self, timestamps: Mapping[TopicPartition, int]) -> dict[TopicPartition, tuple[int, int]]:
        """The offset and timestamp that each partition has for a timestamp; those that have none are left
        out."""
        return self._run(self._ask(timestamps))

    async def _ask(self, timestamps: Mapping[TopicPartition, int]) -> dict[TopicPartition, tuple[int, int]]:
        by_leader = self._reader.by_leader(
            timestamps, {place: ProblemSubject("end", *place) for place in timestamps}
        )
        requests = {
            node: _list_request({place: timestamps[place] for place in places})
            for node, places in by_leader.items()
        }
        return await self._exchange(requests)

    async def _exchange(self, requests: Mapping[int, Any]) -> dict[TopicPartition, tuple[int, int]]:
        """Take the answers that have come, to earlier requests too. Those to Fetch are kept until they are
        read; gives what those to ListOffsets of these requests have."""
        answers: dict[TopicPartition, tuple[int, int]] = {}
        for exchange in await self._reader.exchange(requests):
            if isinstance(exchange.answer, FetchResponse):
                self._fetched.append(exchange)
            elif isinstance(exchange.answer, ListOffsetsResponse):
                answers_now = dict(self._take_offsets(exchange))
                if any(exchange.request is request for request in requests.values()):
                    answers |= answers_now
        return answers

    def _take_offsets(self, exchange: NodeReply) -> Iterator[tuple[TopicPartition, tuple[int, int]]]:
        """Take an answer to ListOffsets: the offset and timestamp of each partition without an error."""
        request: Any = exchange.request
        answer: Any = exchange.answer
        parts = {
            (topic.name, part.partition_index): part for topic in answer.topics for part in topic.partitions
        }
        now = time.monotonic()
        for topic in request.topics:
            for row in topic.partitions:
                place, part = (
                    TopicPartition(topic.name, row.partition_index),
                    parts.get((topic.name, row.partition_index)),
                )
                log = self._logs.get(place.partition) if place.topic == TOPIC else None
                is_position = log is not None and log.position is None and log.timestamp == row.timestamp
                subject = ProblemSubject("log" if is_position else "end", *place)
                if part is None or part.error_code:
                    self._reader.look_again()
                    reason = "the answer to ListOffsets does not have the partition"
                    self._problems.begin(subject, meaning_of(part.error_code) if part else reason)
                    continue
                if is_position and log is not None:
                    _take_offset(log, part.offset)
                if row.timestamp == _LATEST and place in self._committed:
                    self._ends[place] = part.offset, now
                    self._problems.end(ProblemSubject("end", *place))
                yield place, (part.offset, part.timestamp)


def _take_offset(log: _Log, offset: int) -> None:
    """An offset that was asked for because a position is not known."""
    if log.timestamp == _EARLIEST and log.lost_at is not None and offset <= log.lost_at:
        log.timestamp = _LATEST  # no record was deleted at its start: it was cut at its end
    else:
        log.position, log.timestamp, log.lost_at = max(offset, 0), _EARLIEST, None


def _list_request(timestamps: Mapping[TopicPartition, int]) -> ListOffsetsRequest:
    topics: dict[str, list[ListOffsetsPartition]] = {}
    for place, timestamp in timestamps.items():
        row = ListOffsetsPartition(partition_index=place.partition, timestamp=timestamp)
        topics.setdefault(place.topic, []).append(row)
    return ListOffsetsRequest(
        topics=[ListOffsetsTopic(name=topic, partitions=rows) for topic, rows in topics.items()]
    )


def _has_records(answer: Any) -> bool:
    return any(part.records for topic in answer.responses for part in topic.partitions)
