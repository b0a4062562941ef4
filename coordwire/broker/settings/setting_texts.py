"""Descriptions of settings for DescribeConfigs: short texts of this package, not Kafka's."""

from __future__ import annotations

from collections.abc import Mapping

from coordwire.broker.settings.settings import TOPIC_SETTINGS

__all__ = ["BROKER_DOCUMENTATION", "GROUP_DOCUMENTATION", "METRICS_DOCUMENTATION", "TOPIC_DOCUMENTATION"]

TOPIC_DOCUMENTATION: Mapping[str, str] = {
    "cleanup.policy": "How old records are removed: delete, compact, both, or neither.",
    "compression.gzip.level": "The level of compression with gzip.",
    "compression.lz4.level": "The level of compression with LZ4.",
    "compression.type": "The codec of stored batches; producer keeps the one that the producer used.",
    "compression.zstd.level": "The level of compression with Zstandard.",
    "delete.retention.ms": "How long compaction keeps tombstones and transaction markers, in ms.",
    "errors.deadletterqueue.group.enable": "Whether share groups may use the topic as a dead letter queue.",
    "file.delete.delay.ms": "How long a deleted file stays on disk, in ms.",
    "flush.messages": "The number of records after which the log is forced to disk.",
    "flush.ms": "The time after which the log is forced to disk, in ms.",
    "follower.replication.throttled.replicas":
        "Replicas whose followers are throttled, as partition:broker pairs; * for all.",
    "index.interval.bytes": "The number of bytes of records between two entries of the offset index.",
    "leader.replication.throttled.replicas":
        "Replicas whose leaders are throttled, as partition:broker pairs; * for all.",
    "local.retention.bytes":
        "The size up to which a partition keeps local segments with tiered storage; -2 for retention.bytes.",
    "local.retention.ms":
        "How long local segments are kept with tiered storage, in ms; -2 for retention.ms.",
    "max.compaction.lag.ms": "The longest time that a record stays uncompacted, in ms.",
    "max.decompressed.message.bytes": "The largest size of a batch after decompression, in bytes.",
    "max.message.bytes": "The largest size of a batch as it is stored, in bytes.",
    "message.timestamp.after.max.ms":
        "How far a record's timestamp may be after the broker's clock, in ms.",
    "message.timestamp.before.max.ms":
        "How far a record's timestamp may be before the broker's clock, in ms.",
    "message.timestamp.type":
        "Whether a record has the producer's time (CreateTime) or the broker's (LogAppendTime).",
    "min.cleanable.dirty.ratio": "The uncompacted part of a log from which on it is compacted.",
    "min.compaction.lag.ms": "The shortest time that a record stays uncompacted, in ms.",
    "min.insync.replicas": "The number of replicas in sync that a write with acks=all needs.",
    "preallocate": "Whether a new segment's file has its full size at once.",
    "remote.copy.lag.bytes": "The size of closed segments that need not be copied to remote storage yet.",
    "remote.copy.lag.ms": "How long a closed segment need not be copied to remote storage, in ms.",
    "remote.log.copy.disable": "Whether no more segments are copied to remote storage.",
    "remote.log.delete.on.disable":
        "Whether segments in remote storage are deleted when tiered storage is disabled.",
    "remote.storage.enable": "Whether the topic has tiered storage.",
    "retention.bytes": "The size up to which a partition keeps records with the policy delete; -1 for any.",
    "retention.ms": "How long records are kept with the policy delete, in ms; -1 for ever.",
    "segment.bytes": "The largest size of a segment's file.",
    "segment.index.bytes": "The largest size of a segment's index.",
    "segment.jitter.ms": "The largest random time by which a segment is closed earlier, in ms.",
    "segment.ms": "The time after which a segment is closed even if it is not full, in ms.",
    "unclean.leader.election.enable": "Whether a replica that is not in sync may become the leader.",
}  # fmt: skip

GROUP_DOCUMENTATION: Mapping[str, str] = {
    "consumer.assignment.interval.ms": "The shortest time between a consumer group's assignments, in ms.",
    "consumer.heartbeat.interval.ms": "The time between two heartbeats of a consumer group's member, in ms.",
    "consumer.session.timeout.ms":
        "The time without a heartbeat after which a consumer group's member is removed, in ms.",
    "share.assignment.interval.ms": "The shortest time between a share group's assignments, in ms.",
    "share.auto.offset.reset":
        "Where a share group begins that has no position: latest, earliest, or by_duration.",
    "share.delivery.count.limit": "How often a record is delivered to a share group before it is archived.",
    "share.heartbeat.interval.ms": "The time between two heartbeats of a share group's member, in ms.",
    "share.isolation.level": "Whether a share group gets records of transactions that are not committed.",
    "share.partition.max.record.locks":
        "The largest number of a share group's records in flight in a partition.",
    "share.record.lock.duration.ms":
        "How long a member of a share group has a record that it acquired, in ms.",
    "share.renew.acknowledge.enable": "Whether members of a share group may renew their hold of a record.",
    "share.session.timeout.ms":
        "The time without a heartbeat after which a share group's member is removed, in ms.",
    "streams.assignment.interval.ms": "The shortest time between a streams group's assignments, in ms.",
    "streams.heartbeat.interval.ms": "The time between two heartbeats of a streams group's member, in ms.",
    "streams.initial.rebalance.delay.ms":
        "How long a new streams group waits for more members before its first assignment, in ms.",
    "streams.num.standby.replicas": "The number of standby tasks of each task with state.",
    "streams.session.timeout.ms":
        "The time without a heartbeat after which a streams group's member is removed, in ms.",
}  # fmt: skip

METRICS_DOCUMENTATION: Mapping[str, str] = {
    "interval.ms": "The time between two pushes of a client's metrics, in ms.",
    "match": "Which clients push metrics, as key=pattern pairs.",
    "metrics": "Prefixes of the names of metrics that clients push.",
}

BROKER_DOCUMENTATION: Mapping[str, str] = {
    "advertised.listeners": "The addresses that clients connect to.",
    "auto.create.topics.enable": "Whether a topic is created when a client asks for its metadata.",
    "broker.id": "The broker's number.",
    "broker.rack": "The rack that the broker is in.",
    "default.replication.factor": "The number of replicas of a topic that is created without one.",
    "fetch.max.bytes": "The largest size of the records in one answer to Fetch, in bytes.",
    "group.consumer.assignment.interval.ms": GROUP_DOCUMENTATION["consumer.assignment.interval.ms"],
    "group.consumer.assignors": "The assignors that consumer groups can use; the first is the default.",
    "group.consumer.heartbeat.interval.ms": GROUP_DOCUMENTATION["consumer.heartbeat.interval.ms"],
    "group.consumer.max.size": "The largest number of members of a consumer group.",
    "group.consumer.migration.policy":
        "Which online conversions between classic groups and consumer groups are done.",
    "group.consumer.session.timeout.ms": GROUP_DOCUMENTATION["consumer.session.timeout.ms"],
    "group.streams.assignment.interval.ms": GROUP_DOCUMENTATION["streams.assignment.interval.ms"],
    "group.streams.heartbeat.interval.ms": GROUP_DOCUMENTATION["streams.heartbeat.interval.ms"],
    "group.streams.initial.rebalance.delay.ms": GROUP_DOCUMENTATION["streams.initial.rebalance.delay.ms"],
    "group.streams.max.size": "The largest number of members of a streams group.",
    "group.streams.num.standby.replicas": GROUP_DOCUMENTATION["streams.num.standby.replicas"],
    "group.streams.session.timeout.ms": GROUP_DOCUMENTATION["streams.session.timeout.ms"],
    "group.initial.rebalance.delay.ms":
        "How long the first rebalance of an empty classic group waits for more members, in ms.",
    "group.max.session.timeout.ms": "The longest session timeout of a classic group's member, in ms.",
    "group.max.size": "The largest number of members of a classic group.",
    "group.min.session.timeout.ms": "The shortest session timeout of a classic group's member, in ms.",
    "group.share.assignment.interval.ms": GROUP_DOCUMENTATION["share.assignment.interval.ms"],
    "group.share.delivery.count.limit": GROUP_DOCUMENTATION["share.delivery.count.limit"],
    "group.share.heartbeat.interval.ms": GROUP_DOCUMENTATION["share.heartbeat.interval.ms"],
    "group.share.max.share.sessions": "The largest number of share sessions.",
    "group.share.max.size": "The largest number of members of a share group.",
    "group.share.partition.max.record.locks": GROUP_DOCUMENTATION["share.partition.max.record.locks"],
    "group.share.record.lock.duration.ms": GROUP_DOCUMENTATION["share.record.lock.duration.ms"],
    "group.share.session.timeout.ms": GROUP_DOCUMENTATION["share.session.timeout.ms"],
    "listeners": "The addresses that the broker listens on.",
    "max.incremental.fetch.session.cache.slots": "The largest number of fetch sessions.",
    "node.id": "The node's number.",
    "num.partitions": "The number of partitions of a topic that is created without one.",
    "offset.metadata.max.bytes": "The largest size of the metadata of a committed offset.",
    "offsets.retention.minutes": "How long offsets of a group without members are kept, in minutes.",
    "offsets.topic.num.partitions": "The number of partitions of __consumer_offsets.",
    "replica.selector.class": "The class that chooses the replica that a consumer reads from.",
    "share.coordinator.state.topic.num.partitions": "The number of partitions of __share_group_state.",
    "socket.request.max.bytes": "The largest size of a request, in bytes.",
    **{
        setting.synonym: TOPIC_DOCUMENTATION[name]
        for name, setting in TOPIC_SETTINGS.items()
        if setting.synonym
    },
}  # fmt: skip
