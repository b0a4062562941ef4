"""The records of a live cluster's `__consumer_offsets`, as they are written.

Strategy: each round is a Fetch of all its partitions, which the client splits among their leaders; what comes
goes through the reader of log files. Rules: nothing is written to the cluster; a record comes once; a
partition whose log was cut continues at its start; a round waits as long as the broker holds a Fetch.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, MutableMapping

from coordwire.client import RequestFailed, SyncClient
from coordwire.enums import ErrorCode
from coordwire.errors import UnreadableRange
from coordwire.messages import FetchRequest, ListOffsetsRequest, MetadataRequest
from coordwire.messages.fetch import FetchPartition, FetchTopic, PartitionData
from coordwire.messages.list_offsets import ListOffsetsPartition, ListOffsetsTopic
from coordwire.messages.metadata import MetadataRequestTopic
from coordwire.records import batches
from coordwire.timeline.consumer_data import id_text
from coordwire.timeline.events import TopicPartition
from coordwire.timeline.from_log.coordinator_log import LogItem, read_records

__all__ = ["OffsetsFollower", "end_offsets", "list_offsets"]

TOPIC = "__consumer_offsets"
_EARLIEST, _LATEST = -2, -1
_WAIT_MS = 500
_PARTITION_BYTES = 1 << 20
_MAX_BYTES = 50 << 20


class OffsetsFollower:
    """Reads the log of groups. names: of topics by their ids, which this fills in as they appear."""

    def __init__(self, client: SyncClient, names: MutableMapping[str, str]) -> None:
        self._client = client
        self._names = names
        self._positions: dict[int, int] = {}

    def start(self) -> None:
        """Find the partitions, and where their logs start. Raises `ClientError`."""
        request = MetadataRequest(topics=[MetadataRequestTopic(name=TOPIC)], allow_auto_topic_creation=False)
        (topic,) = self._client.request(request).topics
        if topic.error_code:
            code = ErrorCode(topic.error_code)
            raise RequestFailed(f"{TOPIC}: {code.name}: {code.description}", topic.error_code)
        partitions = [(TOPIC, partition.partition_index) for partition in topic.partitions]
        for place, offset in end_offsets(self._client, partitions, _EARLIEST).items():
            self._positions[place.partition] = offset

    def items(self, round_ended: Callable[[], bool]) -> Iterator[LogItem]:
        """The items of the log, until `round_ended`, which is called after each round, gives False."""
        self._read_names()
        while True:
            fetched = self._client.request(self._fetch())
            for topic in fetched.responses:
                for partition in topic.partitions:
                    yield from self._items(partition)
            if not round_ended():
                return

    def _fetch(self) -> FetchRequest:
        partitions = [
            FetchPartition(partition=number, fetch_offset=offset, partition_max_bytes=_PARTITION_BYTES)
            for number, offset in sorted(self._positions.items())
        ]
        return FetchRequest(
            max_wait_ms=_WAIT_MS, min_bytes=1, max_bytes=_MAX_BYTES, session_epoch=-1,
            topics=[FetchTopic(topic=TOPIC, partitions=partitions)],
        )  # fmt: skip

    def _items(self, partition: PartitionData) -> Iterator[LogItem]:
        number = partition.partition_index
        if partition.error_code == ErrorCode.OFFSET_OUT_OF_RANGE:
            places = end_offsets(self._client, [(TOPIC, number)], _EARLIEST)
            self._positions.update({place.partition: offset for place, offset in places.items()})
        if partition.error_code or not partition.records:
            return
        position = self._positions[number]
        for item in read_records(
            partition.records, log="consumer_offsets", file=f"{TOPIC}-{number}", log_partition=number
        ):
            if isinstance(item, UnreadableRange):
                continue  # an answer may end within a batch, which the next one has
            if item.log_offset >= position:
                yield item
        for batch in batches(partition.records, on_error="skip"):
            self._positions[number] = max(self._positions[number], batch.last_offset + 1)
        if self._positions[number] == position:  # nothing of it can be read
            self._positions[number] += 1

    def _read_names(self) -> None:
        """The names of all topics: groups of the newer protocols go by ids."""
        metadata = self._client.request(MetadataRequest(topics=None, allow_auto_topic_creation=False))
        for topic in metadata.topics:
            if topic.name is not None:
                self._names[id_text(topic.topic_id)] = topic.name


def end_offsets(
    client: SyncClient, partitions: list[tuple[str, int]], timestamp: int = _LATEST
) -> dict[TopicPartition, int]:
    """The ends of partitions, or what else a timestamp means; those that have none are left out."""
    answers = list_offsets(client, {TopicPartition(*partition): timestamp for partition in partitions})
    return {partition: offset for partition, (offset, _) in answers.items()}


def list_offsets(
    client: SyncClient, timestamps: Mapping[TopicPartition, int]
) -> dict[TopicPartition, tuple[int, int]]:
    """The offset and timestamp that each partition has for a timestamp; those that have none are left out."""
    topics: dict[str, list[ListOffsetsPartition]] = {}
    for place, timestamp in timestamps.items():
        row = ListOffsetsPartition(partition_index=place.partition, timestamp=timestamp)
        topics.setdefault(place.topic, []).append(row)
    answer = client.request(
        ListOffsetsRequest(
            topics=[ListOffsetsTopic(name=topic, partitions=rows) for topic, rows in topics.items()]
        )
    )
    return {
        TopicPartition(topic.name, partition.partition_index): (partition.offset, partition.timestamp)
        for topic in answer.topics
        for partition in topic.partitions
        if not partition.error_code
    }
