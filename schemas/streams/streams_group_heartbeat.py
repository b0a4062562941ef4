"""StreamsGroupHeartbeat: a Kafka Streams client joins its group, gets tasks and leaves.

Null means "as in the heartbeat before" nearly everywhere; on joining, everything is sent.
"""

from schemas._errors import COORDINATOR
from schemas.vocabulary import (
    Api,
    Array,
    Boolean,
    Default,
    ErrorCode,
    GroupId,
    InstanceId,
    Int8,
    Int16,
    Int32,
    Int64,
    MemberId,
    Nullable,
    Since,
    String,
    Struct,
    TopicName,
    Uint16,
    Until,
)

StreamsGroupHeartbeat = Api(
    88, "StreamsGroupHeartbeat", versions=(0, 1), flexible=0, coordinator="group", modifies=True,
    doc="Keeps a Streams client in its group, reports its topology and tasks, and returns the tasks that it has to run (KIP-1071).",
    changes={
        1: "The coordinator may ask for the topology's description (KIP-1331) and report MISSING_CLIENT_TAGS; a recovery lag of 64 bits.",
    },
    errors={
        **COORDINATOR,
        "UNKNOWN_MEMBER_ID": "The group does not have the member.",
        "TOPIC_AUTHORIZATION_FAILED": "The client may not describe a topic of the topology.",
        "GROUP_AUTHORIZATION_FAILED": "The client may not read the group.",
        "CLUSTER_AUTHORIZATION_FAILED": "",
        "UNSUPPORTED_VERSION": "The streams protocol is not enabled at the broker.",
        "INVALID_REQUEST": "A field is missing or out of range, such as an empty group id, no topology on joining, or a task that the topology does not have; or the topology differs from the group's.",
        "GROUP_ID_NOT_FOUND": "A member that has joined names a group that does not exist, or the group is not a streams group.",
        "GROUP_MAX_SIZE_REACHED": "The group already has group.streams.max.size members.",
        "FENCED_INSTANCE_ID": "",
        "FENCED_MEMBER_EPOCH": "The member epoch is neither the member's current one, nor the previous one of a member that owns only tasks assigned to it.",
        "UNRELEASED_INSTANCE_ID": "",
        "STREAMS_INVALID_TOPOLOGY": "The topology that the member sends names an invalid or internal topic, or gives a changelog topic a number of partitions.",
        "STREAMS_INVALID_TOPOLOGY_EPOCH": "",
        "STREAMS_TOPOLOGY_FENCED": "",
    },
)

KeyValue = Struct(
    "key"   / String * "Its name.",
    "value" / String * "What it is set to.",
    doc="A setting or tag.",
)

TopicInfo = Struct(
    "name"               / TopicName       * "What it is called.",
    "partitions"         / Int32           * "How many it must have; 0 if the broker works it out.",
    "replication_factor" / Int16           * "Replicas of each partition; 0 for the broker's default.",
    "topic_configs"      / Array(KeyValue) * "Settings for its creation.",
    doc="An internal topic that the application needs.",
)

CopartitionGroup = Struct(
    "source_topics"             / Array(Int16) * "Indexes into source_topics, from 0.",
    "source_topic_regex"        / Array(Int16) * "Indexes into source_topic_regex, from 0.",
    "repartition_source_topics" / Array(Int16) * "Indexes into repartition_source_topics, from 0.",
    doc="Topics that need equally many partitions, as indexes into the subtopology's lists.",
)

Subtopology = Struct(
    "subtopology_id"            / String                  * "Its name within the topology.",
    "source_topics"             / Array(TopicName)        * "The topics that it reads, but for internal ones.",
    "source_topic_regex"        / Array(String)           * "Patterns of further topics that it reads.",
    "state_changelog_topics"    / Array(TopicInfo)        * "Internal topics that back up its state stores.",
    "repartition_sink_topics"   / Array(TopicName)        * "Internal topics that it writes for another subtopology to read.",
    "repartition_source_topics" / Array(TopicInfo)        * "Internal topics that it reads from another subtopology.",
    "copartition_groups"        / Array(CopartitionGroup) * "Which topics need equally many partitions.",
    doc="A part of the topology whose tasks run on their own.",
)

Topology = Struct(
    "epoch"         / Int32              * "Grows with each change of the topology.",
    "subtopologies" / Array(Subtopology) * "Its independent parts.",
    doc="What the application computes, as far as the group has to know.",
)

StreamsGroupHeartbeatRequestTaskIds = Struct(
    "subtopology_id" / String       * "Which part of the topology.",
    "partitions"     / Array(Int32) * "The input partitions, each of them a task.",
    doc="Tasks of one subtopology, one a partition.",
)

StreamsGroupHeartbeatRequestEndpoint = Struct(
    "host" / String * "Its host name or address.",
    "port" / Uint16 * "Its TCP port, unsigned.",
    doc="Where a client serves interactive queries.",
)

TaskOffset = Struct(
    "subtopology_id" / String * "Which part of the topology.",
    "partition"      / Int32  * "Which of its tasks.",
    "offset"         / Int64  * "Summed up over the task's changelog partitions.",
    doc="How far the state of one task is.",
)

StreamsGroupHeartbeatRequest = StreamsGroupHeartbeat.request(
    "group_id"                   / GroupId                                              * "The group, which is the application's id.",
    "member_id"                  / MemberId                                             * "A UUID that the member picks itself and keeps for its lifetime.",
    "member_epoch"               / Int32                                                * "0 joins, -1 leaves, -2 leaves for a restart of a static member.",
    "endpoint_information_epoch" / Int32                                                * "The endpoint map that the member has, by its epoch.",
    "instance_id"                / Nullable(InstanceId)                                 * "A static member's own name; null if it is dynamic.",
    "rack_id"                    / Nullable(String)                                     * "The member's rack; null if it has none or it is unchanged.",
    "rebalance_timeout_ms"       / Default(Int32, -1)                                   * "Longest time to give tasks up, in ms; -1 if unchanged.",
    "topology"                   / Nullable(Topology)                                   * "Sent on joining; null otherwise.",
    "active_tasks"               / Nullable(Array(StreamsGroupHeartbeatRequestTaskIds)) * "Those that it processes now; null if unchanged.",
    "standby_tasks"              / Nullable(Array(StreamsGroupHeartbeatRequestTaskIds)) * "Those that it keeps a copy of now; null if unchanged.",
    "warmup_tasks"               / Nullable(Array(StreamsGroupHeartbeatRequestTaskIds)) * "Those that it prepares to take over now; null if unchanged.",
    "process_id"                 / Nullable(String)                                     * "Names the process, which may run several members; null if unchanged.",
    "user_endpoint"              / Nullable(StreamsGroupHeartbeatRequestEndpoint)       * "Where it serves interactive queries; null if nowhere or unchanged.",
    "client_tags"                / Nullable(Array(KeyValue))                            * "For rack-aware placing of standbys; null if unchanged.",
    "task_offsets"               / Nullable(Array(TaskOffset))                          * "How far its tasks' state is restored; null if unchanged.",
    "task_end_offsets"           / Nullable(Array(TaskOffset))                          * "Where the changelogs of its tasks end; null if unchanged.",
    "shutdown_application"       / Boolean                                              * "True asks all members to stop.",
)

Status = Struct(
    "status_code"   / Int8   * "0 stale topology, 1 no source, 2 partitions differ, 3 no internal topic, 4 shutdown, 5 delayed, 6 no client tags (v1).",
    "status_detail" / String * "Explains it to people.",
    doc="Something that keeps the group from running as it should.",
)

StreamsGroupHeartbeatResponseTaskIds = Struct(
    "subtopology_id" / String       * "Which part of the topology.",
    "partitions"     / Array(Int32) * "The input partitions, each of them a task.",
    doc="Tasks of one subtopology, one a partition.",
)

StreamsGroupHeartbeatResponseEndpoint = Struct(
    "host" / String * "Its host name or address.",
    "port" / Uint16 * "Its TCP port, unsigned.",
    doc="Where a client serves interactive queries.",
)

TopicPartition = Struct(
    "topic"      / TopicName    * "Its name.",
    "partitions" / Array(Int32) * "Numbers of the partitions.",
    doc="Partitions of one topic.",
)

EndpointToPartitions = Struct(
    "user_endpoint"      / StreamsGroupHeartbeatResponseEndpoint * "Where to query it.",
    "active_partitions"  / Array(TopicPartition)                 * "Those that it processes.",
    "standby_partitions" / Array(TopicPartition)                 * "Those that it keeps a copy of.",
    doc="The partitions whose state one client can be asked for.",
)

StreamsGroupHeartbeatResponse = StreamsGroupHeartbeat.response(
    "throttle_time_ms"               / Int32                                                 * "Throttling in ms: 0, or how long the quota holds this client back.",
    "error_code"                     / ErrorCode                                             * "0, or why the heartbeat was refused.",
    "error_message"                  / Nullable(String)                                      * "Explains the error; null if there is none.",
    "member_id"                      / MemberId                                              * "The member that is answered.",
    "member_epoch"                   / Int32                                                 * "To be sent with the next heartbeat.",
    "heartbeat_interval_ms"          / Int32                                                 * "When to send the next heartbeat, in ms.",
    "acceptable_recovery_lag_legacy" / Until(0, Int32)                                       * "In v0, offsets that a warm-up task may lag and still count as caught up.",
    "task_offset_interval_ms"        / Int32                                                 * "How often to send task_offsets, in ms.",
    "acceptable_recovery_lag"        / Since(1, Default(Int64, -1), ignorable=True)          * "Offsets that a warm-up task may lag and still count as caught up; -1 if the broker has no such setting.",
    "status"                         / Default(Nullable(Array(Status)), [])                  * "What is wrong with the group; null if unchanged.",
    "active_tasks"                   / Nullable(Array(StreamsGroupHeartbeatResponseTaskIds)) * "Those to process from now on; null if unchanged.",
    "standby_tasks"                  / Nullable(Array(StreamsGroupHeartbeatResponseTaskIds)) * "Those to keep a copy of from now on; null if unchanged.",
    "warmup_tasks"                   / Nullable(Array(StreamsGroupHeartbeatResponseTaskIds)) * "Those to prepare for taking over; null if unchanged.",
    "topology_description_required"  / Since(1, Boolean)                                     * "True asks for a StreamsGroupTopologyDescriptionUpdate (KIP-1331).",
    "endpoint_information_epoch"     / Int32                                                 * "The epoch of the map below; sent back in heartbeats.",
    "partitions_by_user_endpoint"    / Nullable(Array(EndpointToPartitions))                 * "Who holds which state; null if unchanged.",
)
