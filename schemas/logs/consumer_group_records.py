"""Consumer groups of the coordinator's own making (KIP-848), in __consumer_offsets: one record a fact.

A record without a value takes the fact back: a member left, an assignment is void, the group is gone.
"""

from schemas.consumer_protocol import ConsumerProtocolSubscription
from schemas.vocabulary import (
    Array,
    Data,
    Default,
    Embedded,
    GroupId,
    InstanceId,
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

ConsumerGroupMetadataKey = Data("ConsumerGroupMetadataKey", versions=(0, 0), flexible=None, log="consumer_offsets", record_type=3, role="key", doc="Which group it is.")(
    "group_id" / GroupId * "The group's id.",
)

ConsumerGroupMetadataValue = Data("ConsumerGroupMetadataValue", versions=(0, 0), flexible=0, log="consumer_offsets", record_type=3, doc="A group's epoch, and what the topics looked like then.")(
    "epoch"         / Int32            * "The group's epoch, one more with every change of members or topics.",
    "metadata_hash" / Tagged(0, Int64) * "Hash over the partitions and racks of all topics subscribed; 0 for none yet.",
)

ConsumerGroupPartitionMetadataKey = Data("ConsumerGroupPartitionMetadataKey", versions=(0, 0), flexible=None, log="consumer_offsets", record_type=4, role="key", doc="Which group it is.")(
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

ConsumerGroupPartitionMetadataValue = Data("ConsumerGroupPartitionMetadataValue", versions=(0, 0), flexible=0, log="consumer_offsets", record_type=4, doc="The partitions and racks of all topics subscribed. Newer coordinators keep a hash in ConsumerGroupMetadataValue instead.")(
    "topics" / Array(TopicMetadata) * "The topics that the group subscribes to.",
)

ConsumerGroupMemberMetadataKey = Data("ConsumerGroupMemberMetadataKey", versions=(0, 0), flexible=None, log="consumer_offsets", record_type=5, role="key", doc="Which member of which group.")(
    "group_id"  / GroupId  * "The group's id.",
    "member_id" / MemberId * "The member's id.",
)

ClassicProtocol = Struct(
    "name"     / String                                 * 'An assignment protocol, such as "range".',
    "metadata" / Embedded(ConsumerProtocolSubscription) * "The member's subscription under this protocol.",
    doc="One protocol on offer.",
)

ClassicMemberMetadata = Struct(
    "session_timeout_ms"  / Int32                  * "Silence after which it counts as dead, in ms.",
    "supported_protocols" / Array(ClassicProtocol) * "The assignment protocols that it can run, most preferred first.",
    doc="A member that uses the classic protocol, while the group is moved to the new one.",
)

ConsumerGroupMemberMetadataValue = Data("ConsumerGroupMemberMetadataValue", versions=(0, 0), flexible=0, log="consumer_offsets", record_type=5, doc="A member as it described itself.")(
    "instance_id"             / Default(Nullable(InstanceId), "")                                                  * "A static member's own name; null for a dynamic one.",
    "rack_id"                 / Default(Nullable(String), "")                                                      * "The rack the member runs in; null for none.",
    "client_id"               / String                                                                             * "What the member's client calls itself.",
    "client_host"             / String                                                                             * "The address that the member last came from.",
    "subscribed_topic_names"  / Array(TopicName)                                                                   * "Topics wanted by name.",
    "subscribed_topic_regex"  / Default(Nullable(String), "")                                                      * "Topics wanted by pattern (RE2); null for none.",
    "rebalance_timeout_ms"    / Default(Int32, -1)                                                                 * "How long it may take to give up partitions, in ms; -1 if not given.",
    "server_assignor"         / Default(Nullable(String), "")                                                      * "The assignor that the member requests; null for the coordinator's choice.",
    "classic_member_metadata" / Tagged(0, Default(Nullable(ClassicMemberMetadata), ClassicMemberMetadata.default)) * "What a member of the classic protocol needs; null for the others.",
)

ConsumerGroupTargetAssignmentMetadataKey = Data("ConsumerGroupTargetAssignmentMetadataKey", versions=(0, 0), flexible=None, log="consumer_offsets", record_type=6, role="key", doc="Which group it is.")(
    "group_id" / GroupId * "The group's id.",
)

ConsumerGroupTargetAssignmentMetadataValue = Data("ConsumerGroupTargetAssignmentMetadataValue", versions=(0, 0), flexible=0, log="consumer_offsets", record_type=6, doc="Which epoch the target assignment is for.")(
    "assignment_epoch"     / Int32            * "The group epoch that the target assignment was made for.",
    "assignment_timestamp" / Tagged(0, Int64) * "When it was computed, in ms since the epoch; 0 if unknown.",
)

ConsumerGroupTargetAssignmentMemberKey = Data("ConsumerGroupTargetAssignmentMemberKey", versions=(0, 0), flexible=None, log="consumer_offsets", record_type=7, role="key", doc="Which member of which group.")(
    "group_id"  / GroupId  * "The group's id.",
    "member_id" / MemberId * "The member's id.",
)

TopicPartition = Struct(
    "topic_id"   / Uuid         * "The topic's id.",
    "partitions" / Array(Int32) * "Numbers of the partitions.",
    doc="Partitions of one topic.",
)

ConsumerGroupTargetAssignmentMemberValue = Data("ConsumerGroupTargetAssignmentMemberValue", versions=(0, 0), flexible=0, log="consumer_offsets", record_type=7, doc="A member's target: what it shall own once all others have let go.")(
    "topic_partitions" / Array(TopicPartition) * "All that the member shall come to own, by topic.",
)

ConsumerGroupCurrentMemberAssignmentKey = Data("ConsumerGroupCurrentMemberAssignmentKey", versions=(0, 0), flexible=None, log="consumer_offsets", record_type=8, role="key", doc="Which member of which group.")(
    "group_id"  / GroupId  * "The group's id.",
    "member_id" / MemberId * "The member's id.",
)

TopicPartitions = Struct(
    "topic_id"          / Uuid                                           * "The topic's id.",
    "partitions"        / Array(Int32)                                   * "Numbers of the partitions.",
    "assignment_epochs" / Tagged(0, Default(Nullable(Array(Int32)), [])) * "Epoch in which each partition was assigned, in their order; empty if not kept.",
    doc="Partitions of one topic.",
)

ConsumerGroupCurrentMemberAssignmentValue = Data("ConsumerGroupCurrentMemberAssignmentValue", versions=(0, 0), flexible=0, log="consumer_offsets", record_type=8, doc="What a member owns now, on its way to the target.")(
    "member_epoch"                  / Int32                  * "The epoch that the member is in.",
    "previous_member_epoch"         / Int32                  * "The epoch before it, in case its answer never reached the member.",
    "state"                         / Int8                   * "0 stable, 1 has partitions to give up, 2 waits for others to give up theirs.",
    "assigned_partitions"           / Array(TopicPartitions) * "What it owns now.",
    "partitions_pending_revocation" / Array(TopicPartitions) * "What it has to give up and may still read.",
)

ConsumerGroupRegularExpressionKey = Data("ConsumerGroupRegularExpressionKey", versions=(0, 0), flexible=None, log="consumer_offsets", record_type=16, role="key", doc="Which pattern of which group.")(
    "group_id"           / GroupId * "The group's id.",
    "regular_expression" / String  * "The pattern (RE2).",
)

ConsumerGroupRegularExpressionValue = Data("ConsumerGroupRegularExpressionValue", versions=(0, 0), flexible=0, log="consumer_offsets", record_type=16, doc="The topics that a pattern matches, as last matched.")(
    "topics"    / Array(TopicName) * "Names of the topics that the expression matches.",
    "version"   / Int64            * "Version of the cluster's metadata that it was matched against.",
    "timestamp" / Int64            * "When it was matched, in ms since the epoch.",
)
