"""What Kafka Streams puts into user_data under the protocol "stream", in classic groups.

Each begins with its version, an int32. The names are Kafka's; it declares the first of the two as a message, and
writes the second by hand (AssignmentInfo.java): its texts are in Java's modified UTF-8, which differs from UTF-8 in
characters that no topic or host has.
"""

from schemas.vocabulary import (
    Array,
    Between,
    Bytes,
    Data,
    Default,
    Int8,
    Int16,
    Int32,
    Int64,
    Nullable,
    Since,
    String,
    Struct,
    TopicName,
    Until,
    Uuid,
)

TaskId = Struct(
    "topic_group_id" / Int32 * "Number of the subtopology.",
    "partition"      / Int32 * "The partition that the task works on.",
    doc="One task, up to v6.",
)

PartitionToOffsetSum = Struct(
    "partition"  / Int32 * "The partition that the task works on.",
    "offset_sum" / Int64 * "Sum of the offsets of its stores; -2 if it was active, -3 if unknown.",
    doc="One task of a subtopology, in v7 to v9.",
)

TaskOffsetSum = Struct(
    "topic_group_id"          / Int32                                         * "Number of the subtopology.",
    "partition"               / Since(10, Int32)                              * "The partition that the task works on.",
    "offset_sum"              / Since(10, Int64)                              * "Sum of the offsets of its stores; -2 if it was active, -3 if unknown.",
    "named_topology"          / Since(10, Default(Nullable(String), ""))      * "The topology, where several have names; null for the one that has none.",
    "partition_to_offset_sum" / Between(7, 9, Array(PartitionToOffsetSum))    * "The tasks, by partition.",
    doc="How far the state of a task has come, or of all tasks of a subtopology (KIP-441).",
)

ClientTag = Struct(
    "key"   / Bytes * "The tag's name, in UTF-8.",
    "value" / Bytes * "Its value, in UTF-8.",
    doc="A word about the client, for spreading standbys over racks.",
)

SubscriptionInfoData = Data("SubscriptionInfoData", versions=(1, 11), flexible=None, doc="What a Streams client has, in JoinGroup. v2 adds its endpoint (KIP-67), v3 version probing (KIP-268), v7 offsets in place of tasks (KIP-441), v8 a field that forces a rejoin, v9 an error, v10 named topologies, v11 tags (KIP-708).")(
    "version"                  / Int32                            * "The version of these bytes.",
    "latest_supported_version" / Since(3, Default(Int32, -1))     * "The newest version that the client knows (KIP-268).",
    "process_id"               / Uuid                             * "The client's process, another at each start.",
    "prev_tasks"               / Until(6, Array(TaskId))          * "Tasks that were active here.",
    "standby_tasks"            / Until(6, Array(TaskId))          * "Tasks that have state here.",
    "user_end_point"           / Since(2, Bytes)                  * "Where the client can be queried, host:port in UTF-8; empty for nowhere.",
    "task_offset_sums"         / Since(7, Array(TaskOffsetSum))   * "The tasks that have state here, and how far it has come (KIP-441).",
    "unique_field"             / Since(8, Int8)                   * "A number that changes, so that the broker sees a change.",
    "error_code"               / Since(9, Int32)                  * "0, or 4 to stop all of the application (KIP-663).",
    "client_tags"              / Since(11, Array(ClientTag))      * "Words about the client, such as its rack (KIP-708).",
)

AssignmentTaskId = Struct(
    "topic_group_id" / Int32                    * "Number of the subtopology.",
    "partition"      / Int32                    * "The partition that the task works on.",
    "named_topology" / Since(10, Array(Int16) ) * "The topology's name in UTF-16 units; empty for the one that has none.",
    doc="One task.",
)

AssignmentTopicPartition = Struct(
    "topic"     / TopicName * "The topic's name.",
    "partition" / Int32     * "The partition's number.",
    doc="One partition.",
)

AssignmentStandbyTask = Struct(
    "topic_group_id" / Int32                           * "Number of the subtopology.",
    "partition"      / Int32                           * "The partition that the task works on.",
    "named_topology" / Since(10, Array(Int16) )        * "The topology's name in UTF-16 units; empty for the one that has none.",
    "partitions"     / Array(AssignmentTopicPartition) * "The partitions of its input.",
    doc="One standby task.",
)

AssignmentTopicIndex = Struct(
    "index" / Int32     * "The number used for the topic below.",
    "topic" / TopicName * "The topic's name.",
    doc="A topic that is named once, from v5 on.",
)

AssignmentHostPartition = Struct(
    "topic"       / Until(4, TopicName) * "The topic's name.",
    "topic_index" / Since(5, Int32)     * "Its number in topics.",
    "partition"   / Int32               * "The partition's number.",
    doc="One partition at a host.",
)

AssignmentHost = Struct(
    "host"       / String                         * "The host that can be queried.",
    "port"       / Int32                          * "Its port.",
    "partitions" / Array(AssignmentHostPartition) * "The partitions whose state it has.",
    doc="A client's endpoint, and what can be asked there (KIP-67).",
)

AssignmentInfo = Data("AssignmentInfo", versions=(1, 11), flexible=None, doc="What a Streams client shall do, in SyncGroup. v2 adds where state can be queried (KIP-67), v3 version probing (KIP-268), v4 an error, v5 numbers for topics, v6 where standbys are (KIP-535), v7 the next rebalance (KIP-441), v10 named topologies.")(
    "version"                    / Int32                                              * "The version of these bytes.",
    "commonly_supported_version" / Since(3, Default(Int32, -1))                       * "The newest version that all clients know (KIP-268).",
    "active_tasks"               / Array(AssignmentTaskId)                            * "Tasks to run, in the order of the assigned partitions.",
    "standby_tasks"              / Array(AssignmentStandbyTask)                       * "Tasks whose state to keep up.",
    "topics"                     / Since(5, Array(AssignmentTopicIndex))              * "The topics named below.",
    "partitions_by_host"         / Since(2, Array(AssignmentHost))                    * "Where the state of active tasks can be queried (KIP-67).",
    "standby_partitions_by_host" / Since(6, Array(AssignmentHost))                    * "Where that of standby tasks can (KIP-535).",
    "err_code"                   / Since(4, Int32)                                    * "0, or why there is no assignment, in the assignor's own numbers.",
    "next_rebalance_ms"          / Since(7, Default(Int64, 9_223_372_036_854_775_807)) * "When to rebalance again, in ms since the epoch; the greatest int64 for never (KIP-441).",
)
