"""Flushes of logs on disk, as `flush.messages` and `flush.ms` of their topics say.

Strategy: after each append, records that are not on the disk yet are counted; the first of them starts a
timer. So a machine that crashes loses fewer than `flush.messages` records of a partition, and none that is
older than `flush.ms`. A producer whose records cannot be flushed gets an error. Rules: by default both are
unbounded, as in Kafka: the system decides when it writes. Kafka's own broker looks at `flush.ms` every
`log.flush.scheduler.interval.ms`, which is unbounded too unless it is set.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from typing import Any

from coordwire.broker.cluster.topics import ClusterTopic
from coordwire.broker.log.partition_log import PartitionLog
from coordwire.broker.log.validation import RefusedRecords
from coordwire.coordinator.timers import Timers

__all__ = ["UNBOUNDED", "LogFlushes"]

UNBOUNDED = (1 << 63) - 1
_LISTENER = "log-flush"


class LogFlushes:
    """The flushes of a cluster's logs. timers, clock: the cluster's."""

    def __init__(self, timers: Timers[Any], clock: Callable[[], int]) -> None:
        self._timers = timers
        self._clock = clock

    def watch(self, topic: ClusterTopic, index: int, log: PartitionLog) -> None:
        """Flush the log of a partition as its topic's settings say from now on."""
        key = _key(topic, index)

        def flush_late() -> None:
            with suppress(RefusedRecords):  # the log's directory is offline from now on
                log.sync()

        def changed(size: int) -> None:
            if not size:
                return
            if log.end_offset - log.synced_offset >= topic.flush_messages:
                self._timers.cancel(key)
                log.sync()
            elif topic.flush_ms < UNBOUNDED and not self._timers.is_set(key):
                self._timers.set(key, self._clock() + topic.flush_ms, flush_late)

        log.listeners[_LISTENER] = changed

    def settings_changed(self, topic: ClusterTopic) -> None:
        """Flush what the topic's settings want flushed by now, with the settings as they are now."""
        for partition in topic.partitions:
            self._timers.cancel(_key(topic, partition.index))
            changed = partition.log.listeners.get(_LISTENER)
            if changed is not None and partition.log.end_offset > partition.log.synced_offset:
                with suppress(RefusedRecords):
                    changed(1)

    def removed(self, topic: ClusterTopic) -> None:
        """A topic was deleted."""
        for partition in topic.partitions:
            self._timers.cancel(_key(topic, partition.index))


def _key(topic: ClusterTopic, index: int) -> tuple[str, ...]:
    return (_LISTENER, topic.name, str(index))
