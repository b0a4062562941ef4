"""Access to a cluster without a client: records, committed offsets, descriptions.

Strategy: functions read the cluster's state directly, in the broker's own thread, and ask coordinators by the
requests that clients send. Rules: results are copies. Control records are left out, as by clients; records of
aborted transactions are read where uncommitted records are asked for.

Topics that tests make, by the request that a client would send, so that Kafka's rules hold for them.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any
from uuid import uuid4

from coordwire.broker.cluster.cluster_state import ClusterState
from coordwire.broker.cluster.promise import immediate_result
from coordwire.broker.cluster.topics import ClusterPartition, ClusterTopic
from coordwire.broker.handlers import ApiCall
from coordwire.broker.handlers.topics_api import create_topics
from coordwire.broker.log.validation import RefusedRecords, one_batch
from coordwire.broker.settings.settings import TOPIC_SETTINGS
from coordwire.codec import Message
from coordwire.codec.names import suggestion
from coordwire.coordinator import RequestContext
from coordwire.enums import ErrorCode
from coordwire.messages import CreateTopicsRequest, OffsetFetchRequest
from coordwire.messages.create_topics import CreatableTopic, CreatableTopicConfig
from coordwire.messages.offset_fetch import OffsetFetchRequestGroup
from coordwire.records import ControlType, Header, Record, batches, encode_batch

_DEFAULT = -1
_VERSION = 7


def make_topic(
    cluster: ClusterState,
    name: str,
    partitions: int = _DEFAULT,
    replication_factor: int = _DEFAULT,
    settings: Mapping[str, object] | None = None,
) -> None:
    """Make a topic; -1 for the broker's defaults. settings: Kafka's, with underscores for dots.

    Raises `ValueError` for what a Kafka broker refuses.
    """
    own = [
        CreatableTopicConfig(name=_setting_name(label), value=_setting_value(value))
        for label, value in (settings or {}).items()
    ]
    topic = CreatableTopic(
        name=name,
        num_partitions=partitions,
        replication_factor=replication_factor,
        assignments=[],
        configs=own,
    )
    request = CreateTopicsRequest(topics=[topic])
    call = ApiCall(cluster, cluster.controller_id, request, _VERSION, "test", "/127.0.0.1")
    (result,) = create_topics(call).topics
    if result.error_code == ErrorCode.TOPIC_ALREADY_EXISTS:
        raise ValueError(f"expected a new topic, got {name!r}, which is there")
    if result.error_code:
        raise ValueError(f"{ErrorCode(result.error_code).name}: {result.error_message}")


def _setting_name(label: str) -> str:
    name = label.replace("_", ".")
    if name not in TOPIC_SETTINGS:
        known = [element.replace(".", "_") for element in TOPIC_SETTINGS]
        raise ValueError(f"expected a setting of a topic, got {label!r}{suggestion(label, known)}")
    return name


def _setting_value(value: object) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value)


# --- the view ---


Value = bytes | str | None
"""Of a record; text is written as UTF-8."""

_ALL = 1 << 40
_PRODUCE_VERSION = 9


@dataclass(frozen=True, slots=True)
class StoredRecord:
    """A record of a topic."""

    topic: str
    partition: int
    offset: int
    timestamp: int
    key: bytes | None
    value: bytes | None
    headers: tuple[Header, ...] = ()


def ask_coordinator(cluster: ClusterState, group_id: str, request: Message, version: int) -> Message:
    """The immediate answer of a group's coordinator."""
    context = RequestContext(client_id="test", client_host="/127.0.0.1", new_id=lambda: str(uuid4()))
    node = cluster.groups.coordinator_of(group_id)
    answer = cluster.groups.handle(node, request, version, context)
    return answer if isinstance(answer, Message) else immediate_result(answer)


def committed_offsets(cluster: ClusterState, group_id: str) -> dict[tuple[str, int], int]:
    """The committed offsets of a group, by topic and partition."""
    request = OffsetFetchRequest(groups=[OffsetFetchRequestGroup(group_id=group_id, topics=None)])
    answer: Any = ask_coordinator(cluster, group_id, request, 8)
    return {
        (topic.name, part.partition_index): part.committed_offset
        for topic in answer.groups[0].topics
        for part in topic.partitions
    }


def _topic_to_write(cluster: ClusterState, name: str) -> ClusterTopic:
    """A topic, made if a client that asks for it would get it. Raises `LookupError`, `ValueError`."""
    if name not in cluster.topics and cluster.config.auto_create_topics:
        make_topic(cluster, name)
    topic = cluster.topics.get(name)
    if topic is None:
        known = ", ".join(sorted(cluster.topics)) or "none"
        raise LookupError(f"expected a topic of the broker, got {name!r}; there are: {known}")
    return topic


def produce_records(
    cluster: ClusterState,
    name: str,
    values: Iterable[Value],
    *,
    key: Value = None,
    partition: int = 0,
    headers: Mapping[str, Value] | None = None,
    timestamp: int | None = None,
) -> list[StoredRecord]:
    """Append records to a partition, as one batch of a producer would be; what was written."""
    pairs = tuple((label, _bytes(value)) for label, value in (headers or {}).items())
    content = [(_bytes(key), _bytes(value)) for value in values]
    topic = _topic_to_write(cluster, name)
    place = topic.partition(partition)
    if place is None:
        raise LookupError(f"expected a partition of {name} below {len(topic.partitions)}, got {partition}")
    now = cluster.clock() if timestamp is None else timestamp
    records = [Record(timestamp=now, key=own, value=value, headers=pairs) for own, value in content]
    if not records:
        return []
    batch = one_batch(encode_batch(records, base_offset=0), _PRODUCE_VERSION)
    try:
        base = place.log.append(batch, topic.rules, cluster.clock()).base_offset
    except RefusedRecords as refusal:
        raise ValueError(_refused_text(refusal)) from None
    return [
        StoredRecord(name, partition, base + number, now, record.key, record.value, pairs)
        for number, record in enumerate(records)
    ]


def _bytes(value: Value) -> bytes | None:
    if value is not None and not isinstance(value, (bytes, str)):
        raise TypeError(f"expected bytes, text or None, got {type(value).__name__}")
    return value.encode() if isinstance(value, str) else value


def _refused_text(refusal: RefusedRecords) -> str:
    """Why records were refused, with Kafka's name for it and the first record that is wrong."""
    reasons = [refusal.message, *(f"records[{number}]: {reason}" for number, reason in refusal.records[:1])]
    return ": ".join([ErrorCode(refusal.code).name, *(reason for reason in reasons if reason)])


def read_records(cluster: ClusterState, name: str, *, committed: bool) -> list[StoredRecord]:
    """The records of a topic, partition after partition; none if it is not there."""
    topic = cluster.topics.get(name)
    partitions = () if topic is None else topic.partitions
    return [record for place in partitions for record in _records(place, committed)]


def _records(place: ClusterPartition, committed: bool) -> Iterable[StoredRecord]:
    log = place.log
    read = log.read(log.start_offset, _ALL, committed=committed)
    waiting = sorted(read.aborted or (), key=lambda transaction: transaction.first_offset)
    aborted: set[int] = set()
    for batch in batches(read.data):
        while waiting and waiting[0].first_offset <= batch.last_offset:
            aborted.add(waiting.pop(0).producer_id)
        if batch.is_control:
            for marker in batch.control_records():
                if marker.type == ControlType.ABORT:
                    aborted.discard(batch.producer_id)
            continue
        if batch.transactional and batch.producer_id in aborted:
            continue
        for record in batch:
            if record.offset >= log.start_offset:
                yield StoredRecord(
                    place.topic,
                    place.index,
                    record.offset,
                    record.timestamp,
                    record.key,
                    record.value,
                    tuple(record.headers),
                )
