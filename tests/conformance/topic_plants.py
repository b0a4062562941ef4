"""Bugs planted into a broker's topics, configs and the ends of its partitions, as in `broker_plants`."""

from __future__ import annotations

from uuid import UUID

from coordwire.tap.script import TappedExchange
from tests.conformance.broker_plants import Plants, asks, on, sets, swaps

OFFSET = "topics.partitions.offset"
ALTER = "IncrementalAlterConfigs"
UNKNOWN = "UNKNOWN_TOPIC_OR_PARTITION"


def _one_partition(exchange: TappedExchange) -> None:
    for topic in exchange.request.topics:
        if topic.num_partitions > 1:
            topic.num_partitions = 1


def _fewer_partitions(exchange: TappedExchange) -> None:
    for topic in exchange.request.topics:
        topic.count -= 1


def _only_sets(exchange: TappedExchange) -> None:
    for resource in exchange.request.resources:
        resource.configs = [item for item in resource.configs if item.config_operation == 0]


def _changes_nothing(exchange: TappedExchange) -> None:
    for resource in exchange.request.resources:
        resource.configs = []


def _removes_others(exchange: TappedExchange) -> None:
    for resource in exchange.request.resources:
        for item in resource.configs:
            item.name, item.config_operation, item.value = "segment.bytes", 1, None


def _ignores_limits(exchange: TappedExchange) -> None:
    exchange.request.response_partition_limit = 100


PLANTS: Plants = {
    "topics/create/1 2 3 4 5 6": lambda: (on("CreateTopics", _one_partition), None),
    "topics/create/20": lambda: asks("CreateTopics", validate_only=False),
    "topics/create/22": lambda: swaps("CreateTopics", "INVALID_PARTITIONS"),
    "topics/create/23": lambda: sets("CreateTopics", "topics.num_partitions", 1),
    "topics/create/24": lambda: sets("CreateTopics", "topics.topic_id", UUID(int=9)),
    "topics/partitions/5": lambda: (on("CreatePartitions", _fewer_partitions), None),
    "topics/delete/1": lambda: swaps("DeleteTopics", UNKNOWN),
    "topics/delete/3": lambda: sets("Metadata", "topics.topic_id", UUID(int=9)),
    "topics/metadata/2": lambda: asks("Metadata", topics=None),
    "topics/metadata/4 5 6 7 8 9 10 11 12 13 14 15 16 17": lambda: sets(
        "Metadata", "topics.partitions.leader_id", 99
    ),
    "topics/describe/1": lambda: (on("DescribeTopicPartitions", _ignores_limits), None),
    "topics/configs/1": lambda: (on(ALTER, _changes_nothing), None),
    "topics/configs/2 3 4": lambda: (on(ALTER, _only_sets), None),
    "topics/configs/9": lambda: sets("DescribeConfigs", "results.configs.config_source", 5),
    "topics/configs/10": lambda: asks(ALTER, validate_only=False),
    "topics/configs/11": lambda: (on(ALTER, _removes_others), None),
    "partitions/offsets/1 2 3 4 5 6 7 8 11": lambda: sets("ListOffsets", OFFSET, 2),
    "partitions/delete/1 5 6 7": lambda: sets("DeleteRecords", "topics.partitions.low_watermark", 0),
    "partitions/epochs/1 2 3 4": lambda: sets("OffsetForLeaderEpoch", "topics.partitions.end_offset", 1),
}
