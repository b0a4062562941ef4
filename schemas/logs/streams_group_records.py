"""Streams groups (KIP-1071), in __consumer_offsets: one record a fact.

A task is a subtopology's share of one partition number. A record without a value takes the fact back: a member
left, an assignment is void, the group is gone.
"""

from schemas.vocabulary import (
    Array,
    Data,
    Default,
    GroupId,
    InstanceId,
    Int8,
    Int16,
    Int32,
    Int64,
    MemberId,
    Nullable,
    String,
    Struct,
    Tagged,
    TopicName,
    Uint16,
)

StreamsGroupMetadataKey = Data("StreamsGroupMetadataKey", versions=(0, 0), flexible=None, log="consumer_offsets", record_type=17, role="key", doc="Which group it is.")(
    "group_id" / GroupId * "The group's id.",
)

LastAssignmentConfig = Struct(
    "key"   / String * "The config's name.",
    "value" / String * "Its value.",
    doc="One config of the group.",
)

StreamsGroupMetadataValue = Data("StreamsGroupMetadataValue", versions=(0, 0), flexible=0, log="consumer_offsets", record_type=17, doc="A group's epoch, and what its topics and topology looked like then.")(
    "epoch"                             / Int32                                                         * "The group's epoch, one more with every change of members, topics or topology.",
    "metadata_hash"                     / Int64                                                         * "Hash over the partitions and racks of all topics subscribed; 0 for none yet.",
    "validated_topology_epoch"          / Tagged(0, Default(Int32, -1))                                 * "Epoch of the topology last found sound; -1 for none.",
    "last_assignment_configs"           / Tagged(1, Default(Nullable(Array(LastAssignmentConfig)), [])) * "The group's configs that the last assignment was made by; empty if not kept.",
    "stored_description_topology_epoch" / Tagged(2, Default(Int32, -1))                                 * "Epoch of the topology whose description the broker's plugin keeps; -1 for none, -2 for unsure (Kafka 4.4).",
    "failed_description_topology_epoch" / Tagged(3, Default(Int32, -1))                                 * "Epoch of the topology whose description the plugin refused for good; -1 for none (Kafka 4.4).",
)

StreamsGroupMemberMetadataKey = Data("StreamsGroupMemberMetadataKey", versions=(0, 0), flexible=None, log="consumer_offsets", record_type=19, role="key", doc="Which member of which group.")(
    "group_id"  / GroupId  * "The group's id.",
    "member_id" / MemberId * "The member's id.",
)

Endpoint = Struct(
    "host" / String * "Host name or address.",
    "port" / Uint16 * "Port, 0 to 65535.",
    doc="Where a member can be asked.",
)

KeyValue = Struct(
    "key"   / String * "The tag's name.",
    "value" / String * "Its value.",
    doc="One tag.",
)

StreamsGroupMemberMetadataValue = Data("StreamsGroupMemberMetadataValue", versions=(0, 0), flexible=0, log="consumer_offsets", record_type=19, doc="A member as it described itself.")(
    "instance_id"          / Default(Nullable(InstanceId), "") * "A static member's own name; null for a dynamic one.",
    "rack_id"              / Default(Nullable(String), "")     * "The rack the member runs in; null for none.",
    "client_id"            / String                            * "What the member's client calls itself.",
    "client_host"          / String                            * "The address that the member last came from.",
    "rebalance_timeout_ms" / Default(Int32, -1)                * "How long it may take to give up tasks, in ms; -1 if not given.",
    "topology_epoch"       / Int32                             * "Epoch of the topology that the member runs.",
    "process_id"           / String                            * "Id of its process; members of one process share local state.",
    "user_endpoint"        / Nullable(Endpoint)                * "Where it answers interactive queries; null for nowhere.",
    "client_tags"          / Array(KeyValue)                   * "Tags of its client, for spreading standby tasks.",
)

StreamsGroupTargetAssignmentMetadataKey = Data("StreamsGroupTargetAssignmentMetadataKey", versions=(0, 0), flexible=None, log="consumer_offsets", record_type=20, role="key", doc="Which group it is.")(
    "group_id" / GroupId * "The group's id.",
)

StreamsGroupTargetAssignmentMetadataValue = Data("StreamsGroupTargetAssignmentMetadataValue", versions=(0, 0), flexible=0, log="consumer_offsets", record_type=20, doc="Which epoch the target assignment is for.")(
    "assignment_epoch"     / Int32            * "The group epoch that the target assignment was made for.",
    "assignment_timestamp" / Tagged(0, Int64) * "When it was computed, in ms since the epoch; 0 if unknown.",
)

StreamsGroupTargetAssignmentMemberKey = Data("StreamsGroupTargetAssignmentMemberKey", versions=(0, 0), flexible=None, log="consumer_offsets", record_type=21, role="key", doc="Which member of which group.")(
    "group_id"  / GroupId  * "The group's id.",
    "member_id" / MemberId * "The member's id.",
)

StreamsGroupTargetAssignmentMemberValueTaskIds = Struct(
    "subtopology_id" / String       * "Id of the subtopology within the topology.",
    "partitions"     / Array(Int32) * "Numbers of the partitions, one a task.",
    doc="Tasks of one subtopology.",
)

StreamsGroupTargetAssignmentMemberValue = Data("StreamsGroupTargetAssignmentMemberValue", versions=(0, 0), flexible=0, log="consumer_offsets", record_type=21, doc="A member's target: the tasks it shall have once all others have let go.")(
    "active_tasks"  / Array(StreamsGroupTargetAssignmentMemberValueTaskIds) * "Tasks that it processes.",
    "standby_tasks" / Array(StreamsGroupTargetAssignmentMemberValueTaskIds) * "Tasks whose state it follows, to take over quickly.",
    "warmup_tasks"  / Array(StreamsGroupTargetAssignmentMemberValueTaskIds) * "Tasks whose state it builds up before it gets them.",
)

StreamsGroupCurrentMemberAssignmentKey = Data("StreamsGroupCurrentMemberAssignmentKey", versions=(0, 0), flexible=None, log="consumer_offsets", record_type=22, role="key", doc="Which member of which group.")(
    "group_id"  / GroupId  * "The group's id.",
    "member_id" / MemberId * "The member's id.",
)

StreamsGroupCurrentMemberAssignmentValueTaskIds = Struct(
    "subtopology_id"    / String                                         * "Id of the subtopology within the topology.",
    "partitions"        / Array(Int32)                                   * "Numbers of the partitions, one a task.",
    "assignment_epochs" / Tagged(0, Default(Nullable(Array(Int32)), [])) * "Epoch in which each task was assigned, in their order; empty if not kept.",
    doc="Tasks of one subtopology.",
)

StreamsGroupCurrentMemberAssignmentValue = Data("StreamsGroupCurrentMemberAssignmentValue", versions=(0, 0), flexible=0, log="consumer_offsets", record_type=22, doc="The tasks that a member has now, on its way to the target.")(
    "member_epoch"                     / Int32                                                  * "The epoch that the member is in.",
    "previous_member_epoch"            / Int32                                                  * "The epoch before it, in case its answer never reached the member.",
    "state"                            / Int8                                                   * "1 stable, 2 has tasks to give up, 3 waits for others to give up theirs.",
    "active_tasks"                     / Array(StreamsGroupCurrentMemberAssignmentValueTaskIds) * "Tasks that it processes.",
    "standby_tasks"                    / Array(StreamsGroupCurrentMemberAssignmentValueTaskIds) * "Tasks whose state it follows, to take over quickly.",
    "warmup_tasks"                     / Array(StreamsGroupCurrentMemberAssignmentValueTaskIds) * "Tasks whose state it builds up before it gets them.",
    "active_tasks_pending_revocation"  / Array(StreamsGroupCurrentMemberAssignmentValueTaskIds) * "Active tasks that it has to give up.",
    "standby_tasks_pending_revocation" / Array(StreamsGroupCurrentMemberAssignmentValueTaskIds) * "Standby tasks that it has to give up.",
    "warmup_tasks_pending_revocation"  / Array(StreamsGroupCurrentMemberAssignmentValueTaskIds) * "Warm-up tasks that it has to give up.",
)

StreamsGroupTopologyKey = Data("StreamsGroupTopologyKey", versions=(0, 0), flexible=None, log="consumer_offsets", record_type=23, role="key", doc="Which group it is.")(
    "group_id" / GroupId * "The group's id.",
)

TopicConfig = Struct(
    "key"   / String * "The config's name.",
    "value" / String * "Its value.",
    doc="One config of an internal topic.",
)

TopicInfo = Struct(
    "name"               / String             * "The topic's name.",
    "partitions"         / Int32              * "How many partitions it shall have; 0 if others decide that.",
    "replication_factor" / Int16              * "How many replicas it shall have; 0 for the broker's default.",
    "topic_configs"      / Array(TopicConfig) * "Configs that it shall have.",
    doc="An internal topic.",
)

CopartitionGroup = Struct(
    "source_topics"             / Array(Int16) * "Indexes into the subtopology's source topics.",
    "source_topic_regex"        / Array(Int16) * "Indexes into its patterns.",
    "repartition_source_topics" / Array(Int16) * "Indexes into its repartition source topics.",
    doc="Topics that are read together, partition by partition.",
)

Subtopology = Struct(
    "subtopology_id"            / String                  * "Id of the subtopology within the topology.",
    "source_topics"             / Array(TopicName)        * "Topics that it reads, by name.",
    "source_topic_regex"        / Array(String)           * "Patterns of topics that it reads.",
    "state_changelog_topics"    / Array(TopicInfo)        * "Topics that keep its state stores.",
    "repartition_sink_topics"   / Array(TopicName)        * "Internal topics that it writes for others to read.",
    "repartition_source_topics" / Array(TopicInfo)        * "Internal topics that it reads, written by others.",
    "copartition_groups"        / Array(CopartitionGroup) * "Which of its topics must have equally many partitions.",
    doc="A part of the topology that can run by itself.",
)

StreamsGroupTopologyValue = Data("StreamsGroupTopologyValue", versions=(0, 0), flexible=0, log="consumer_offsets", record_type=23, doc="The topology that the group runs, as its members described it.")(
    "epoch"         / Int32              * "The topology's epoch, which the application counts up with each change of it.",
    "subtopologies" / Array(Subtopology) * "Its parts, which share no task.",
)
