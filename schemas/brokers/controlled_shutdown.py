"""ControlledShutdown: a broker under ZooKeeper asks the controller to move its leaderships away."""

from schemas.vocabulary import (
    Api,
    Array,
    BrokerId,
    Default,
    ErrorCode,
    Int32,
    Int64,
    Since,
    Struct,
    TopicName,
)

ControlledShutdown = Api(
    7, "ControlledShutdown", versions=(0, 3), flexible=3, listeners=("controller", "zkBroker"), modifies=True,
    request_headers={0: 0, 1: 1, 3: 2},
    doc="Asked before a broker stops, and again while partitions remain. Under KRaft the heartbeat does this; Kafka 4.0 dropped the API.",
    changes={
        1: "Same layout; the request header has the client id, which v0 lacks.",
        2: "The broker's epoch, so that a late request of an earlier life is refused (KIP-380).",
        3: "Flexible lengths and tagged fields (KIP-482).",
    },
    errors=(
        "BROKER_NOT_AVAILABLE", "STALE_CONTROLLER_EPOCH", "CLUSTER_AUTHORIZATION_FAILED",
        "STALE_BROKER_EPOCH",
    ),
)

ControlledShutdownRequest = ControlledShutdown.request(
    "broker_id"    / BrokerId                                     * "The broker that wants to stop.",
    "broker_epoch" / Since(2, Default(Int64, -1), ignorable=True) * "Its epoch from registration; -1 if unknown (KIP-380).",
)

RemainingPartition = Struct(
    "topic_name"      / TopicName * "The topic's name.",
    "partition_index" / Int32     * "The partition's number.",
    doc="A partition that the broker still leads.",
)

ControlledShutdownResponse = ControlledShutdown.response(
    "error_code"           / ErrorCode                 * "0, or why the leaderships were not moved.",
    "remaining_partitions" / Array(RemainingPartition) * "What could not be moved yet; the broker may stop when empty.",
)
