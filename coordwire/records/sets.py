"""The record sets in messages: of Produce requests, of Fetch and ShareFetch answers, of a snapshot's pieces,
and of Kafka 0.7's requests and fetch results.

Strategy: the field tables say which fields hold records and which lead to them; the structs on the way have
the topic and the partition. Rules: the fields stay bytes, nothing is copied, and nothing is read before a
batch is asked for; so that a bad batch never makes the message an error.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Literal, NamedTuple, overload
from uuid import UUID

from coordwire.codec import Message, Struct
from coordwire.codec.walk import FieldSelection, entity_field
from coordwire.errors import UnreadableRange
from coordwire.records import batch_reader, kafka_07
from coordwire.records.batch import RecordBatch
from coordwire.records.batch_reader import Batches, OnError

_RECORDS = FieldSelection(lambda field: field.type == "records")
_PARTITION = ("partition_index", "partition", "index")


class RecordSet(NamedTuple):
    """A record set in a message.

    path: of its field ("responses[0].partitions[2].records"). topic, topic_id, partition: those that the
    message states, else None. data: its bytes. is_kafka_07: whether they are messages of Kafka 0.7's layout.
    """

    path: str
    topic: str | None
    topic_id: UUID | None
    partition: int | None
    data: bytes
    is_kafka_07: bool

    @overload
    def batches(
        self, *, on_error: Literal["raise", "skip"] = "raise", check_records: bool = True
    ) -> Batches[RecordBatch]: ...
    @overload
    def batches(
        self, *, on_error: Literal["report"], check_records: bool = True
    ) -> Batches[RecordBatch | UnreadableRange]: ...
    def batches(self, *, on_error: OnError = "raise", check_records: bool = True) -> Any:
        """Its batches, lazily; the arguments and errors are those of `coordwire.records.batches`.

        A piece of a snapshot (`unaligned_records`) may begin within a batch: "skip" finds the next one.
        """
        if self.is_kafka_07:
            return kafka_07.batches(self.data, on_error=on_error, check_records=check_records)
        return batch_reader.batches(self.data, on_error=on_error, check_records=check_records)


class _Place(NamedTuple):
    topic: str | None = None
    topic_id: UUID | None = None
    partition: int | None = None


def record_sets(message: Message) -> Iterator[RecordSet]:
    """The record sets in a message, in its order; null and empty ones are left out. Raises nothing."""
    for path, place, data in _walk_sets(message, "", _Place()):
        yield RecordSet(path, *place, data, is_kafka_07=message.api_key is None)


def _walk_sets(value: Struct, prefix: str, place: _Place) -> Iterator[tuple[str, _Place, bytes]]:
    cls: Any = type(value)
    fields = _RECORDS.fields(cls)
    if not fields:
        return
    topic = entity_field(cls, "topic_name")
    place = _Place(
        _first(value, () if topic is None else (topic,), str) or place.topic,
        _first(value, ("topic_id",), UUID) or place.topic_id,
        place.partition if (own := _first(value, _PARTITION, int)) is None else own,
    )
    for field in fields:
        content = getattr(value, field.name)
        path = f"{prefix}{field.name}"
        if field.struct is None:
            if content:
                yield path, place, content
        elif field.array:
            for index, element in enumerate(content or ()):
                yield from _walk_sets(element, f"{path}[{index}].", place)
        elif content is not None:
            yield from _walk_sets(content, f"{path}.", place)


def _first(value: Struct, names: tuple[str, ...], kind: type) -> Any:
    """The value of the first of these fields that a struct has; None for none, and for zero ids."""
    for name in names:
        content = getattr(value, name, None)
        if isinstance(content, kind):
            return None if isinstance(content, UUID) and not content.int else content
    return None
