"""BrokerHeartbeat: a broker reports to the controller that it is alive, and learns whether it may serve (KIP-631)."""

from schemas.vocabulary import (
    Api,
    Array,
    Boolean,
    BrokerId,
    Default,
    ErrorCode,
    Int32,
    Int64,
    Nullable,
    Since,
    Tagged,
    Uuid,
)

BrokerHeartbeat = Api(
    63, "BrokerHeartbeat", versions=(0, 2), flexible=0, listeners=("controller",), modifies=True,
    doc="Sent every few seconds after BrokerRegistration. A broker that stays silent is fenced: it gets no leadership and clients are not sent to it.",
    changes={
        1: "Log directories that failed (KIP-858).",
        2: "Log directories that take no new replicas (KIP-1066).",
    },
    errors=(
        "CLUSTER_AUTHORIZATION_FAILED", "NOT_CONTROLLER", "STALE_BROKER_EPOCH", "BROKER_ID_NOT_REGISTERED",
    ),
)

BrokerHeartbeatRequest = BrokerHeartbeat.request(
    "broker_id"               / BrokerId                                   * "The broker that reports.",
    "broker_epoch"            / Default(Int64, -1)                         * "Its epoch from registration; -1 if it has none.",
    "current_metadata_offset" / Int64                                      * "How far it has applied the metadata log.",
    "want_fence"              / Boolean                                    * "True: the broker wants to be fenced, as while it starts.",
    "want_shut_down"          / Boolean                                    * "True: the broker wants its leaderships moved, so that it can stop.",
    "offline_log_dirs"        / Since(1, Tagged(0, Array(Uuid)))           * "Ids of log directories that failed; empty for none (KIP-858).",
    "cordoned_log_dirs"       / Since(2, Tagged(1, Nullable(Array(Uuid)))) * "Ids of log directories closed to new replicas; null while it starts (KIP-1066).",
)

BrokerHeartbeatResponse = BrokerHeartbeat.response(
    "throttle_time_ms" / Int32                  * "How long a quota holds the client back, in ms; 0 for not at all.",
    "error_code"       / ErrorCode              * "0, or why the heartbeat does not count.",
    "is_caught_up"     / Boolean                * "True: the broker has applied nearly all of the metadata.",
    "is_fenced"        / Default(Boolean, True) * "True: the broker is fenced and serves no clients.",
    "should_shut_down" / Boolean                * "True: nothing depends on the broker any more, it may stop.",
)
