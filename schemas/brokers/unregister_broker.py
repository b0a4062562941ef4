"""TODO"""

from schemas.vocabulary import Api, Default, Int16, Int32, Nullable, String

UnregisterBroker = Api(
    64, "UnregisterBroker", versions=(0, 0), flexible=0,
    about="TODO",
    changes={},
)

UnregisterBrokerRequest = UnregisterBroker.request(
    "broker_id" / Int32 * "TODO",
)

UnregisterBrokerResponse = UnregisterBroker.response(
    "throttle_time_ms" / Int32                         * "TODO",
    "error_code"       / Int16                         * "TODO",
    "error_message"    / Default(Nullable(String), "") * "TODO",
)
