"""DeleteTopics: the controller deletes topics, by name or by id."""

from schemas.vocabulary import (
    Api,
    Array,
    Default,
    ErrorCode,
    Int32,
    Nullable,
    Since,
    String,
    Struct,
    TopicName,
    Until,
    Uuid,
)

DeleteTopics = Api(
    20, "DeleteTopics", versions=(0, 6), flexible=4, listeners=("broker", "controller"), deprecated=(0, 0),
    answered_by="controller", modifies=True,
    doc="Deletes topics with all their records. Each topic succeeds or fails by itself.",
    changes={
        1: "The response reports how long it was throttled (KIP-124).",
        2: "Same layout; the broker throttles after it has answered (KIP-219).",
        3: "Same layout; the client understands TOPIC_DELETION_DISABLED (KIP-322).",
        4: "Flexible lengths and tagged fields (KIP-482).",
        5: "Error messages, and THROTTLING_QUOTA_EXCEEDED as a new error (KIP-599).",
        6: "Topics by name or by id (KIP-516).",
    },
    errors=(
        "UNKNOWN_TOPIC_OR_PARTITION", "REQUEST_TIMED_OUT", "INVALID_TOPIC_EXCEPTION",
        "TOPIC_AUTHORIZATION_FAILED", "UNSUPPORTED_VERSION", "NOT_CONTROLLER", "INVALID_REQUEST",
        "TOPIC_DELETION_DISABLED", "THROTTLING_QUOTA_EXCEEDED", "UNKNOWN_TOPIC_ID",
    ),
)

DeleteTopicState = Struct(
    "name"     / Nullable(TopicName) * "Null if the topic is given by id.",
    "topic_id" / Uuid                * "Zero if the topic is given by name.",
    doc="A topic to delete, by one of its two names (KIP-516).",
)

DeleteTopicsRequest = DeleteTopics.request(
    "topics"      / Since(6, Array(DeleteTopicState))          * "What to delete, from version 6 on.",
    "topic_names" / Until(5, Array(TopicName), ignorable=True) * "What to delete, up to version 5.",
    "timeout_ms"  / Int32                                      * "Longest wait for the deletion, in ms; it may continue after it.",
)

DeletableTopicResult = Struct(
    "name"          / Default(Nullable(TopicName, since=6), "")  * "Null if the id that was asked for is unknown or must not be seen.",
    "topic_id"      / Since(6, Uuid, ignorable=True)             * "Its id; zero if unknown (KIP-516).",
    "error_code"    / ErrorCode                                  * "0, or why it was not deleted.",
    "error_message" / Since(5, Nullable(String), ignorable=True) * "Explains the error; null if there is none.",
    doc="What became of one topic.",
)

DeleteTopicsResponse = DeleteTopics.response(
    "throttle_time_ms" / Since(1, Int32, ignorable=True) * "Throttling in ms: 0, or how long the quota holds this client back.",
    "responses"        / Array(DeletableTopicResult)     * "What became of them, a topic each.",
)
