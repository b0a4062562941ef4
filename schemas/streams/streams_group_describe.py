"""StreamsGroupDescribe: an operator looks into the groups of Kafka Streams applications."""

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
)

StreamsGroupDescribe = Api(
    89, "StreamsGroupDescribe", versions=(0, 1), flexible=0, coordinator="group",
    doc="Reports the state, the topology, the members and the tasks of streams groups (KIP-1071).",
    changes={
        1: "The topology node by node (KIP-1331), and the assignor (KIP-1357).",
    },
    errors=(
        *COORDINATOR, "INVALID_GROUP_ID", "TOPIC_AUTHORIZATION_FAILED", "GROUP_AUTHORIZATION_FAILED",
        "INVALID_REQUEST", "GROUP_ID_NOT_FOUND",
    ),
)

StreamsGroupDescribeRequest = StreamsGroupDescribe.request(
    "group_ids"                     / Array(GroupId)    * "Whom to tell about.",
    "include_authorized_operations" / Boolean           * "True asks for authorized_operations.",
    "include_topology_description"  / Since(1, Boolean) * "True asks for topology_description (KIP-1331).",
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

Subtopology = Struct(
    "subtopology_id"            / String           * "Its name within the topology.",
    "source_topics"             / Array(TopicName) * "The topics that it reads, with patterns resolved, but for internal ones.",
    "repartition_sink_topics"   / Array(TopicName) * "Internal topics that it writes for another subtopology to read.",
    "state_changelog_topics"    / Array(TopicInfo) * "Internal topics that back up its state stores.",
    "repartition_source_topics" / Array(TopicInfo) * "Internal topics that it reads from another subtopology.",
    doc="A part of the topology whose tasks run on their own.",
)

Topology = Struct(
    "epoch"         / Int32                        * "Grows with each change of the topology.",
    "subtopologies" / Nullable(Array(Subtopology)) * "Its independent parts; null while the topology can't be set up.",
    doc="What the application computes, as the group holds it.",
)

Endpoint = Struct(
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

TaskIds = Struct(
    "subtopology_id" / String       * "Which part of the topology.",
    "partitions"     / Array(Int32) * "The input partitions, each of them a task.",
    doc="Tasks of one subtopology, one a partition.",
)

Assignment = Struct(
    "active_tasks"  / Array(TaskIds) * "Those that it processes.",
    "standby_tasks" / Array(TaskIds) * "Those that it keeps a copy of.",
    "warmup_tasks"  / Array(TaskIds) * "Those that it prepares to take over.",
    doc="The tasks of one member.",
)

Member = Struct(
    "member_id"         / MemberId             * "The UUID that the member picked.",
    "member_epoch"      / Int32                * "The epoch that it has reached.",
    "instance_id"       / Nullable(InstanceId) * "A static member's own name; null if it is dynamic.",
    "rack_id"           / Nullable(String)     * "Its rack; null if it has none.",
    "client_id"         / String               * "The client id of its request headers.",
    "client_host"       / String               * "The address that it connects from.",
    "topology_epoch"    / Int32                * "The topology that it runs, by its epoch.",
    "process_id"        / String               * "Names the process, which may run several members.",
    "user_endpoint"     / Nullable(Endpoint)   * "Where it serves interactive queries; null if nowhere.",
    "client_tags"       / Array(KeyValue)      * "For rack-aware placing of standbys.",
    "task_offsets"      / Array(TaskOffset)    * "How far its tasks' state is restored.",
    "task_end_offsets"  / Array(TaskOffset)    * "Where the changelogs of its tasks end.",
    "assignment"        / Assignment           * "What it runs now.",
    "target_assignment" / Assignment           * "What it shall run in the end.",
    "is_classic"        / Boolean              * "True for a member that still uses the classic protocol.",
    doc="A member of the group.",
)

TopologyDescriptionNode = Struct(
    "name"          / String              * 'Its name, such as "KSTREAM-SOURCE-0000000000".',
    "node_type"     / Int8                * "1 source, 2 processor, 3 sink.",
    "source_topics" / Array(TopicName)    * "The topics that a source reads; empty if they are found at run time.",
    "sink_topic"    / Nullable(TopicName) * "The topic that a sink writes; null if it is chosen at run time.",
    "stores"        / Array(String)       * "The state stores that a processor uses, by name.",
    "successors"    / Array(String)       * "The nodes that take its output, by name.",
    doc="A node of the processing graph.",
)

TopologyDescriptionSubtopology = Struct(
    "subtopology_id" / String                         * "Its name within the topology.",
    "nodes"          / Array(TopologyDescriptionNode) * "Its nodes.",
    doc="A part of the topology whose tasks run on their own, node by node.",
)

TopologyDescriptionGlobalStore = Struct(
    "source"    / TopologyDescriptionNode * "The source node that feeds it.",
    "processor" / TopologyDescriptionNode * "The processor node that fills it.",
    doc="A state store that every client holds whole.",
)

TopologyDescription = Struct(
    "subtopologies" / Array(TopologyDescriptionSubtopology) * "The parts that it consists of.",
    "global_stores" / Array(TopologyDescriptionGlobalStore) * "The global state stores that it uses.",
    doc="The whole topology of the application, for people to read (KIP-1331).",
)

DescribedGroup = Struct(
    "error_code"                  / ErrorCode                                  * "0, or why it is not described.",
    "error_message"               / Nullable(String)                           * "Explains the error; null if there is none.",
    "group_id"                    / GroupId                                    * "Which group.",
    "group_state"                 / String                                     * '"Empty", "NotReady", "Assigning", "Reconciling", "Stable" or "Dead".',
    "group_epoch"                 / Int32                                      * "Grows when members, topology or topics change.",
    "assignment_epoch"            / Int32                                      * "The group epoch that the target assignment was made for.",
    "topology"                    / Nullable(Topology)                         * "Null if no member has brought one yet.",
    "members"                     / Array(Member)                              * "Empty if the group has none.",
    "authorized_operations"       / Default(Int32, -2_147_483_648)             * "Bits of the operations allowed on it; the least int32 if not asked.",
    "topology_description"        / Since(1, Nullable(TopologyDescription))    * "The topology node by node; null unless the status is 3 (KIP-1331).",
    "topology_description_status" / Since(1, Int8)                             * "0 not asked for, 1 none stored, 2 the broker couldn't fetch it, 3 available (KIP-1331).",
    "assignor_name"               / Since(1, Nullable(String), ignorable=True) * "The assignor that the next assignment will be made with; null after an error (KIP-1357).",
    doc="A streams group.",
)

StreamsGroupDescribeResponse = StreamsGroupDescribe.response(
    "throttle_time_ms" / Int32                 * "Throttling in ms: 0, or how long the quota holds this client back.",
    "groups"           / Array(DescribedGroup) * "The groups asked for.",
)
