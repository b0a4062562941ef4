"""The dead letter queues of share groups (KIP-1191): topics with what no member could do anything with.

Strategy: for each record that a group archives, one in the topic that the group's settings name, in the
partition of the same number (modulo the topic's), with headers that say which record it was and why; with
its key and value if the group wants a copy. Rule: what cannot be written is logged and given up, as by Apache
Kafka: records are archived whatever becomes of their dead letters.
"""

from __future__ import annotations

import logging
from collections.abc import Iterator, Mapping
from typing import Protocol

from coordwire.broker.cluster.facts import ClusterFacts
from coordwire.broker.cluster.replication import Replication
from coordwire.broker.cluster.topics import ClusterPartition, ClusterTopic
from coordwire.broker.log.validation import RefusedRecords
from coordwire.coordinator.share_partition import DeadLetters
from coordwire.coordinator.topics import bad_name
from coordwire.errors import CoordwireError
from coordwire.records import Record, batches, encode_batch

_log = logging.getLogger("coordwire.broker")

DEAD_LETTERS_SHARE_VERSION = 2
"""The level of share.version from which on there are dead letters."""

_MOST_LETTERS = 100_000
"""For one run of records, which are at most those in flight."""

_BATCH_BYTES = 500_000
_REJECTED = b"Offset rejected by client."
_EXCEEDED = b"Offset delivery count exceeded the threshold."


_SETTINGS = {"errors.deadletterqueue.group.enable": "true", "message.timestamp.type": "CreateTime"}
"""Of a queue that the broker makes."""


class CreateTopic(Protocol):
    """`ClusterState.create_topic`."""

    def __call__(
        self, name: str, partitions: int, *, replication_factor: int, settings: Mapping[str, str]
    ) -> ClusterTopic: ...


class _Unwritable(Exception):
    """Dead letters that cannot be written; the text says why."""


class DeadLetterQueues:
    """Those of a cluster's share groups."""

    def __init__(self, facts: ClusterFacts, replication: Replication, create: CreateTopic) -> None:
        self._facts = facts
        self._replication = replication
        self._create = create

    @property
    def are_known(self) -> bool:
        """Whether the cluster's share.version has them."""
        return self._facts.features["share.version"] >= DEAD_LETTERS_SHARE_VERSION

    def is_wanted(self, group_id: str) -> bool:
        """Whether a group has a queue, which may not be there."""
        settings = self._facts.settings_of_group(group_id)
        return self.are_known and bool(settings["errors.deadletterqueue.topic.name"])

    def write(self, group_id: str, partition: ClusterPartition, letters: DeadLetters) -> None:
        """Write the dead letters of a partition's records, as far as that can be done."""
        try:
            topic = self._topic(group_id)
            count = letters.last_offset - letters.first_offset + 1
            if count > _MOST_LETTERS:
                raise _Unwritable(f"{count:,} records are too many")
            queue = topic.partitions[partition.index % len(topic.partitions)]
            for data in self._batches(group_id, partition, letters):
                self._replication.check_in_sync(queue)
                queue.log.append_own(data)
        except (_Unwritable, RefusedRecords) as error:
            _log.warning(
                "%s-%d: no dead letters for offsets %d to %d of group %r: %s",
                partition.topic, partition.index, letters.first_offset, letters.last_offset, group_id, error,
            )  # fmt: skip

    def _topic(self, group_id: str) -> ClusterTopic:
        name = self._facts.settings_of_group(group_id)["errors.deadletterqueue.topic.name"]
        topic, prefix = self._facts.topics.get(name), self._facts.config.dead_letter_queue_prefix
        if not name.startswith(prefix):
            raise _Unwritable(f"the name {name!r} does not begin with {prefix}")
        if topic is None:
            topic = self._created(name)
        if topic.settings["errors.deadletterqueue.group.enable"] != "true":
            raise _Unwritable(f"the topic {name} lacks errors.deadletterqueue.group.enable=true")
        return topic

    def _created(self, name: str) -> ClusterTopic:
        """A queue that is missing, made as Kafka does."""
        config = self._facts.config
        if not config.creates_dead_letter_queues:
            raise _Unwritable(f"there is no topic {name!r}")
        if (reason := bad_name(name)) is not None or (alike := self._facts.topic_alike(name)) is not None:
            raise _Unwritable(reason or f"the topics {name} and {alike} would have one name in metrics")
        try:
            return self._create(
                name,
                config.num_partitions,
                replication_factor=min(config.default_replication_factor, len(self._facts.nodes)),
                settings=_SETTINGS,
            )
        except OSError as error:
            raise _Unwritable(str(error)) from None

    def _batches(self, group_id: str, partition: ClusterPartition, letters: DeadLetters) -> Iterator[bytes]:
        settings, now = self._facts.settings_of_group(group_id), self._facts.clock()
        copies: dict[int, Record] = {}
        if settings["errors.deadletterqueue.copy.record.enable"] == "true":
            copies = _originals(partition, letters)
        cause = _REJECTED if letters.is_rejected else _EXCEEDED
        records, size = list[Record](), 0
        for offset in range(letters.first_offset, letters.last_offset + 1):
            record = copies.get(offset)
            key, value = (None, None) if record is None else (record.key, record.value)
            headers = {
                "topic": partition.topic.encode(), "partition": b"%d" % partition.index,
                "offset": b"%d" % offset, "group": group_id.encode(),
                "delivery.count": b"%d" % letters.delivery_count, "message": cause,
            }  # fmt: skip
            own = tuple((f"__dlq.errors.{name}", text) for name, text in headers.items())
            records.append(Record(timestamp=now, key=key, value=value, headers=own))
            size += len(key or b"") + len(value or b"") + sum(len(text) + 30 for text in headers.values())
            if size > _BATCH_BYTES:
                yield encode_batch(records, base_offset=0)
                records, size = [], 0
        if records:
            yield encode_batch(records, base_offset=0)


def _originals(partition: ClusterPartition, letters: DeadLetters) -> dict[int, Record]:
    """The records themselves, as far as they are there and can be read."""
    originals: dict[int, Record] = {}
    offset = letters.first_offset
    try:
        while offset <= letters.last_offset:
            data = partition.log.read(offset, _BATCH_BYTES).data
            if not data:
                break
            for batch in batches(data):
                offset = max(offset, batch.last_offset + 1)
                for record in () if batch.is_control else batch:
                    if letters.first_offset <= record.offset <= letters.last_offset:
                        originals[record.offset] = record
    except (CoordwireError, RefusedRecords) as error:
        _log.warning("%s-%d cannot be copied from %d on: %s", partition.topic, partition.index, offset, error)
    return originals
