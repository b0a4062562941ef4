"""Retention and compaction of topics, as their settings say: when asked, or every so often.

Rules: retention removes whole segments at the start of a log, by its size and their largest timestamp, up to
the last stable offset; then those go that further policies of the broker choose. Compaction leaves a log's
last batch as it is, as a Kafka broker leaves the active segment, and is done in memory only. Internal topics
stay whole.
"""

from __future__ import annotations

import logging
from collections.abc import Iterable

from coordwire.broker.cluster.cluster_state import ClusterState
from coordwire.broker.cluster.topics import ClusterPartition, ClusterTopic
from coordwire.broker.log.retention import DeletePolicy, LargerThan, OlderThan

log = logging.getLogger("coordwire.broker")

_TIMER = "log-cleaning"


def schedule(cluster: ClusterState) -> None:
    """Clean all topics as often as the broker's settings say."""
    interval = cluster.config.retention_check_ms
    if interval:

        def due() -> None:
            schedule(cluster)
            try:
                clean_all(cluster)
            except Exception:  # a log's place, or a policy of the user's
                log.exception("topics cannot be cleaned")

        cluster.timers.set(_TIMER, cluster.clock() + interval, due)


def clean_all(cluster: ClusterState) -> None:
    """Clean all topics. Raises `RefusedRecords`, `OSError` where a log's place fails."""
    _clean(cluster, list(cluster.topics.values()))


def clean_topic(cluster: ClusterState, topic: ClusterTopic) -> None:
    """Remove what is too old, too much, or replaced. Raises `RefusedRecords`, `OSError`."""
    _clean(cluster, [topic])


def _clean(cluster: ClusterState, topics: Iterable[ClusterTopic]) -> None:
    started: list[ClusterPartition] = []
    try:
        for topic in topics:
            if not topic.is_internal:
                _clean_topic(cluster, topic, started)
    finally:
        if started:
            cluster.logs.started(*started)


def _clean_topic(cluster: ClusterState, topic: ClusterTopic, started: list[ClusterPartition]) -> None:
    """started: gets the partitions that begin at another offset."""
    settings, now = topic.settings, cluster.clock()
    policies = settings.items("cleanup.policy")
    for partition in topic.partitions:
        log = partition.log
        if "delete" in policies and log.remove_old(now, _delete_policies(cluster, topic)):
            started.append(partition)
        if "compact" in policies and log.can_compact:
            log.compact(
                now,
                tombstones_ms=settings.number("delete.retention.ms"),
                lag_ms=settings.number("min.compaction.lag.ms"),
            )


def _delete_policies(cluster: ClusterState, topic: ClusterTopic) -> tuple[DeletePolicy, ...]:
    """Kafka's, in its order, and those of the broker's settings."""
    settings = topic.settings
    return (
        LargerThan(settings.number("retention.bytes")),
        OlderThan(settings.number("retention.ms")),
        *cluster.config.delete_policies,
    )
