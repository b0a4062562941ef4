"""Share groups (KIP-932), in __consumer_offsets: one record a fact; what was delivered is in a log of its own.

A record without a value takes the fact back: a member left, an assignment is void, the group is gone.
"""

from schemas.vocabulary import (
    Array,
    Data,
    Default,
    GroupId,
    Int8,
    Int32,
    Int64,
    MemberId,
    Nullable,
    String,
    Struct,
    Tagged,
    TopicName,
    Uuid,
)

ShareGroupPartitionMetadataKey = Data("ShareGroupPartitionMetadataKey", versions=(0, 0), flexible=None, log="consumer_offsets", record_type=9, role="key", doc="Which group it is.")(
    "group_id" / GroupId * "The group's id.",
)

PartitionMetadata = Struct(
    "partition" / Int32         * "The partition's number.",
    "racks"     / Array(String) * "The racks of its replicas.",
    doc="One partition's racks.",
)

TopicMetadata = Struct(
    "topic_id"           / Uuid                     * "The topic's id.",
    "topic_name"         / TopicName                * "The topic's name.",
    "num_partitions"     / Int32                    * "How many partitions the topic has.",
    "partition_metadata" / Array(PartitionMetadata) * "Racks by partition; empty if no rack is known.",
    doc="One topic subscribed.",
)

ShareGroupPartitionMetadataValue = Data("ShareGroupPartitionMetadataValue", versions=(0, 0), flexible=0, log="consumer_offsets", record_type=9, doc="The partitions and racks of all topics subscribed. Written by Kafka 4.0 alone; since then a hash in ShareGroupMetadataValue serves.")(
    "topics" / Array(TopicMetadata) * "The topics that the group subscribes to.",
)

ShareGroupMemberMetadataKey = Data("ShareGroupMemberMetadataKey", versions=(0, 0), flexible=None, log="consumer_offsets", record_type=10, role="key", doc="Which member of which group.")(
    "group_id"  / GroupId  * "The group's id.",
    "member_id" / MemberId * "The member's id.",
)

ShareGroupMemberMetadataValue = Data("ShareGroupMemberMetadataValue", versions=(0, 0), flexible=0, log="consumer_offsets", record_type=10, doc="A member as it described itself.")(
    "rack_id"                / Default(Nullable(String), "") * "The rack the member runs in; null for none.",
    "client_id"              / String                        * "What the member's client calls itself.",
    "client_host"            / String                        * "The address that the member last came from.",
    "subscribed_topic_names" / Array(TopicName)              * "Topics wanted by name.",
)

ShareGroupMetadataKey = Data("ShareGroupMetadataKey", versions=(0, 0), flexible=None, log="consumer_offsets", record_type=11, role="key", doc="Which group it is.")(
    "group_id" / GroupId * "The group's id.",
)

ShareGroupMetadataValue = Data("ShareGroupMetadataValue", versions=(0, 0), flexible=0, log="consumer_offsets", record_type=11, doc="A group's epoch, and what the topics looked like then.")(
    "epoch"         / Int32 * "The group's epoch, one more with every change of members or topics.",
    "metadata_hash" / Int64 * "Hash over the partitions and racks of all topics subscribed; 0 for none yet.",
)

ShareGroupTargetAssignmentMetadataKey = Data("ShareGroupTargetAssignmentMetadataKey", versions=(0, 0), flexible=None, log="consumer_offsets", record_type=12, role="key", doc="Which group it is.")(
    "group_id" / GroupId * "The group's id.",
)

ShareGroupTargetAssignmentMetadataValue = Data("ShareGroupTargetAssignmentMetadataValue", versions=(0, 0), flexible=0, log="consumer_offsets", record_type=12, doc="Which epoch the target assignment is for.")(
    "assignment_epoch"     / Int32            * "The group epoch that the target assignment was made for.",
    "assignment_timestamp" / Tagged(0, Int64) * "When it was computed, in ms since the epoch; 0 if unknown.",
)

ShareGroupTargetAssignmentMemberKey = Data("ShareGroupTargetAssignmentMemberKey", versions=(0, 0), flexible=None, log="consumer_offsets", record_type=13, role="key", doc="Which member of which group.")(
    "group_id"  / GroupId  * "The group's id.",
    "member_id" / MemberId * "The member's id.",
)

TopicPartition = Struct(
    "topic_id"   / Uuid         * "The topic's id.",
    "partitions" / Array(Int32) * "Numbers of the partitions.",
    doc="Partitions of one topic.",
)

ShareGroupTargetAssignmentMemberValue = Data("ShareGroupTargetAssignmentMemberValue", versions=(0, 0), flexible=0, log="consumer_offsets", record_type=13, doc="A member's target; several members may share a partition.")(
    "topic_partitions" / Array(TopicPartition) * "All that the member shall read, by topic.",
)

ShareGroupCurrentMemberAssignmentKey = Data("ShareGroupCurrentMemberAssignmentKey", versions=(0, 0), flexible=None, log="consumer_offsets", record_type=14, role="key", doc="Which member of which group.")(
    "group_id"  / GroupId  * "The group's id.",
    "member_id" / MemberId * "The member's id.",
)

TopicPartitions = Struct(
    "topic_id"   / Uuid         * "The topic's id.",
    "partitions" / Array(Int32) * "Numbers of the partitions.",
    doc="Partitions of one topic.",
)

ShareGroupCurrentMemberAssignmentValue = Data("ShareGroupCurrentMemberAssignmentValue", versions=(0, 0), flexible=0, log="consumer_offsets", record_type=14, doc="What a member reads now.")(
    "member_epoch"          / Int32                  * "The epoch that the member is in.",
    "previous_member_epoch" / Int32                  * "The epoch before it, in case its answer never reached the member.",
    "state"                 / Int8                   * "0: stable; share groups know no other state.",
    "assigned_partitions"   / Array(TopicPartitions) * "What it reads now.",
)

ShareGroupStatePartitionMetadataKey = Data("ShareGroupStatePartitionMetadataKey", versions=(0, 0), flexible=None, log="consumer_offsets", record_type=15, role="key", doc="Which group it is.")(
    "group_id" / GroupId * "The group's id.",
)

TopicPartitionsInfo = Struct(
    "topic_id"   / Uuid         * "The topic's id.",
    "topic_name" / TopicName    * "The topic's name.",
    "partitions" / Array(Int32) * "Numbers of the partitions.",
    doc="Partitions of one topic.",
)

TopicInfo = Struct(
    "topic_id"   / Uuid      * "The topic's id.",
    "topic_name" / TopicName * "The topic's name.",
    doc="One topic.",
)

ShareGroupStatePartitionMetadataValue = Data("ShareGroupStatePartitionMetadataValue", versions=(0, 0), flexible=0, log="consumer_offsets", record_type=15, doc="How far the share state of the group's partitions has been set up or removed.")(
    "initializing_topics" / Array(TopicPartitionsInfo) * "Partitions whose share state is being set up.",
    "initialized_topics"  / Array(TopicPartitionsInfo) * "Partitions whose share state is there.",
    "deleting_topics"     / Array(TopicInfo)           * "Topics whose share state is being removed.",
)
