"""What consumers put into the opaque bytes of classic groups: subscriptions and assignments.

An int16 version precedes each of them, outside these layouts. Newer versions only append fields, so a reader of
an older version can stop early. Neither has compact lengths or tagged fields in any version.
"""

from schemas.assignors.sticky_assignor import CooperativeStickyAssignorUserData, StickyAssignorUserData
from schemas.assignors.streams_assignor import AssignmentInfo, SubscriptionInfoData
from schemas.vocabulary import (
    Array,
    Data,
    Default,
    Embedded,
    Int32,
    Nullable,
    Since,
    String,
    Struct,
    TopicName,
)

SubscriptionUserData = Embedded({
    "sticky": StickyAssignorUserData,
    "cooperative-sticky": CooperativeStickyAssignorUserData,
    "stream": SubscriptionInfoData,
})

ConsumerProtocolSubscriptionTopicPartition = Struct(
    "topic"      / TopicName    * "The topic's name.",
    "partitions" / Array(Int32) * "Numbers of the partitions owned.",
    doc="What the member owns of one topic.",
)

ConsumerProtocolSubscription = Data("ConsumerProtocolSubscription", versions=(0, 3), flexible=None, doc="What a member wants to read, in JoinGroup; the leader assigns by it. v1 adds what it owns (KIP-429), v2 the generation (KIP-792), v3 the rack (KIP-881).")(
    "topics"           / Array(TopicName)                                                            * "The topics wanted, by name.",
    "user_data"        / Nullable(SubscriptionUserData)                                              * "What the assignor adds, in its own format; null for nothing.",
    "owned_partitions" / Since(1, Array(ConsumerProtocolSubscriptionTopicPartition), ignorable=True) * "What it holds from before, for cooperative rebalancing (KIP-429).",
    "generation_id"    / Since(2, Default(Int32, -1), ignorable=True)                                * "The generation it holds that from; -1 for none (KIP-792).",
    "rack_id"          / Since(3, Nullable(String), ignorable=True)                                  * "The rack the member runs in; null for none (KIP-881).",
)

ConsumerProtocolAssignmentTopicPartition = Struct(
    "topic"      / TopicName    * "The topic's name.",
    "partitions" / Array(Int32) * "Numbers of the partitions assigned.",
    doc="What the member gets of one topic.",
)

ConsumerProtocolAssignment = Data("ConsumerProtocolAssignment", versions=(0, 3), flexible=None, doc="What the leader gives a member, in SyncGroup. All versions have one layout; the numbers follow the subscription's.")(
    "assigned_partitions" / Array(ConsumerProtocolAssignmentTopicPartition) * "All that the member shall read, not a difference.",
    "user_data"           / Nullable(Embedded({"stream": AssignmentInfo}))  * "What the assignor adds, in its own format; null for nothing.",
)
