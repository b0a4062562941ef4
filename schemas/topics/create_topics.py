"""CreateTopics: the controller creates topics, or only checks whether it could."""

from schemas.vocabulary import (
    Api,
    Array,
    Boolean,
    BrokerId,
    Default,
    ErrorCode,
    Int8,
    Int16,
    Int32,
    Nullable,
    Secret,
    Since,
    String,
    Struct,
    Tagged,
    TopicName,
    Uuid,
)

CreateTopics = Api(
    19, "CreateTopics", versions=(0, 7), flexible=5, listeners=("broker", "controller"), deprecated=(0, 1),
    answered_by="controller", modifies=("validate_only", False),
    doc="Creates topics. Each topic succeeds or fails by itself.",
    changes={
        1: "A dry run with validate_only, and error messages.",
        2: "The response reports how long it was throttled (KIP-124).",
        3: "Same layout; the broker throttles after it has answered (KIP-219).",
        4: "Same layout; -1 asks for the broker's default partitions and replicas (KIP-464).",
        5: "Flexible lengths and tagged fields (KIP-482); the response describes the topic (KIP-525).",
        6: "Same layout; the client understands THROTTLING_QUOTA_EXCEEDED (KIP-599).",
        7: "The id of the new topic (KIP-516).",
    },
    errors={
        "REQUEST_TIMED_OUT": "The controller did not create the topic within timeout_ms.",
        "INVALID_TOPIC_EXCEPTION": "The name is not valid, or differs from another topic's only in periods and underscores.",
        "TOPIC_AUTHORIZATION_FAILED": "The client may not create the topic.",
        "TOPIC_ALREADY_EXISTS": "A topic has the name.",
        "INVALID_PARTITIONS": "The number of partitions is 0 or below -1.",
        "INVALID_REPLICATION_FACTOR": "The replication factor is 0 or below -1, or there are fewer brokers.",
        "INVALID_REPLICA_ASSIGNMENT": "The assignment has gaps between partitions, unknown brokers, or a broker twice for one partition.",
        "INVALID_CONFIG": "A setting is unknown or has an invalid value.",
        "NOT_CONTROLLER": "The controller has changed.",
        "INVALID_REQUEST": "The request names the topic twice, or gives an assignment and a number of partitions or replicas.",
        "POLICY_VIOLATION": "The broker's create.topic.policy.class.name refuses the topic.",
        "THROTTLING_QUOTA_EXCEEDED": "The client exceeds its quota controller_mutation_rate (from version 6 on).",
    },
)

CreatableReplicaAssignment = Struct(
    "partition_index" / Int32           * "Its number within the topic.",
    "broker_ids"      / Array(BrokerId) * "Its replicas; the first is the preferred leader.",
    doc="The brokers that shall hold one partition.",
)

CreatableTopicConfig = Struct(
    "name"  / String                                * 'The setting, such as "cleanup.policy".',
    "value" / Default(Nullable(Secret(String)), "") * "Its value as text.",
    doc="A setting that the topic shall have.",
)

CreatableTopic = Struct(
    "name"               / TopicName                         * "What the topic shall be called.",
    "num_partitions"     / Int32                             * "-1 if assignments are given, or for the broker's default (KIP-464).",
    "replication_factor" / Int16                             * "-1 if assignments are given, or for the broker's default (KIP-464).",
    "assignments"        / Array(CreatableReplicaAssignment) * "Replicas by hand; empty lets the controller place them.",
    "configs"            / Array(CreatableTopicConfig)       * "Settings other than the defaults.",
    doc="A topic to create.",
)

CreateTopicsRequest = CreateTopics.request(
    "topics"        / Array(CreatableTopic)  * "What to create.",
    "timeout_ms"    / Default(Int32, 60_000) * "Longest wait for the topics to exist, in ms; creation may continue after it.",
    "validate_only" / Since(1, Boolean)      * "True checks the request and creates nothing.",
)

CreatableTopicConfigs = Struct(
    "name"          / String                                * 'The setting, such as "cleanup.policy".',
    "value"         / Default(Nullable(Secret(String)), "") * "Its value as text; null if it is sensitive.",
    "read_only"     / Boolean                               * "True if it can't be changed.",
    "config_source" / Default(Int8, -1)                     * "Who set it: 1 the topic, 2 to 4 a broker's settings, 5 default; -1 unset.",
    "is_sensitive"  / Boolean                               * "True for a secret, whose value is withheld.",
    doc="A setting of the new topic, as it now holds (KIP-525).",
)

CreatableTopicResult = Struct(
    "name"                    / TopicName                                                                     * "The topic asked for.",
    "topic_id"                / Since(7, Uuid, ignorable=True)                                                * "Its new id; zero if none was created (KIP-516).",
    "error_code"              / ErrorCode                                                                     * "0, or why it was not created.",
    "error_message"           / Since(1, Default(Nullable(String), ""), ignorable=True)                       * "Explains the error; null if there is none.",
    "topic_config_error_code" / Since(5, Tagged(0, ErrorCode), ignorable=True)                                * "0, or why the fields below were withheld (KIP-525).",
    "num_partitions"          / Since(5, Default(Int32, -1), ignorable=True)                                  * "How many it has; -1 if withheld or failed (KIP-525).",
    "replication_factor"      / Since(5, Default(Int16, -1), ignorable=True)                                  * "How many replicas each partition has; -1 if withheld or failed (KIP-525).",
    "configs"                 / Since(5, Default(Nullable(Array(CreatableTopicConfigs)), []), ignorable=True) * "Its settings; null if withheld (KIP-525).",
    doc="What became of one topic.",
)

CreateTopicsResponse = CreateTopics.response(
    "throttle_time_ms" / Since(2, Int32, ignorable=True) * "Throttling in ms: 0, or how long the quota holds this client back.",
    "topics"           / Array(CreatableTopicResult)     * "What became of them, a topic each.",
)
