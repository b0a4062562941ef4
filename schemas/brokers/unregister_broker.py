"""UnregisterBroker: an admin removes a broker that will not come back."""

from schemas.vocabulary import Api, BrokerId, Default, ErrorCode, Int32, Nullable, String

UnregisterBroker = Api(
    64, "UnregisterBroker", versions=(0, 0), flexible=0, listeners=("broker", "controller"), modifies=True,
    doc="Takes a broker's registration out of the metadata, for KRaft clusters only. One that still runs can register again.",
    changes={},
    errors=(
        "REQUEST_TIMED_OUT", "CLUSTER_AUTHORIZATION_FAILED", "NOT_CONTROLLER", "BROKER_ID_NOT_REGISTERED",
    ),
)

UnregisterBrokerRequest = UnregisterBroker.request(
    "broker_id" / BrokerId * "Node id of the broker to remove.",
)

UnregisterBrokerResponse = UnregisterBroker.response(
    "throttle_time_ms" / Int32                         * "How long a quota holds the client back, in ms; 0 for not at all.",
    "error_code"       / ErrorCode                     * "0, or why the broker is still registered.",
    "error_message"    / Default(Nullable(String), "") * "More about the error; null or empty for none.",
)
