"""TODO"""

from schemas.vocabulary import Array, Bytes, Data, Default, Int32, Nullable, Since, String, Struct

ConsumerProtocolSubscriptionTopicPartition = Struct(
    "topic"      / String       * "TODO",
    "partitions" / Array(Int32) * "TODO",
    about="TODO",
)

ConsumerProtocolSubscription = Data("ConsumerProtocolSubscription", versions=(0, 3), flexible=None, about="TODO")(
    "topics"           / Array(String)                                                    * "TODO",
    "user_data"        / Nullable(Bytes)                                                  * "TODO",
    "owned_partitions" / Since(1, Array(ConsumerProtocolSubscriptionTopicPartition), ignorable=True) * "TODO",
    "generation_id"    / Since(2, Default(Int32, -1), ignorable=True)                     * "TODO",
    "rack_id"          / Since(3, Nullable(String), ignorable=True)                       * "TODO",
)

ConsumerProtocolAssignmentTopicPartition = Struct(
    "topic"      / String       * "TODO",
    "partitions" / Array(Int32) * "TODO",
    about="TODO",
)

ConsumerProtocolAssignment = Data("ConsumerProtocolAssignment", versions=(0, 3), flexible=None, about="TODO")(
    "assigned_partitions" / Array(ConsumerProtocolAssignmentTopicPartition) * "TODO",
    "user_data"           / Nullable(Bytes)                                 * "TODO",
)
