"""What the sticky assignors put into a subscription's user_data: what a member held, and since when.

The bytes don't state the version: v1 is v0 with a generation after it, and Kafka tries them in this order.
"""

from schemas.vocabulary import Array, Data, Default, Int32, Since, Struct, TopicName

StickyAssignorTopicPartition = Struct(
    "topic"      / TopicName    * "The topic's name.",
    "partitions" / Array(Int32) * "Numbers of the partitions held.",
    doc="What the member held of one topic.",
)

StickyAssignorUserData = Data("StickyAssignorUserData", versions=(0, 1), flexible=None, doc='What a member held before the rebalance, under the protocol "sticky" (KIP-54). v1 adds the generation (KIP-341).')(
    "previous_assignment" / Array(StickyAssignorTopicPartition) * "What it held, by topic.",
    "generation"          / Since(1, Default(Int32, -1), ignorable=True) * "The generation that it held that in; -1 for none (KIP-341).",
)

CooperativeStickyAssignorUserData = Data("CooperativeStickyAssignorUserData", versions=(0, 0), flexible=None, doc='Since when a member holds its owned_partitions, under the protocol "cooperative-sticky" (KIP-429).')(
    "generation" / Default(Int32, -1) * "The generation that it holds them from; -1 for none.",
)
