"""Committed offsets, in __consumer_offsets: of any kind of group, or of none.

A record without a value removes the offset: it was deleted, it expired, or its group is gone.
"""

from schemas.vocabulary import (
    Between,
    Data,
    Default,
    GroupId,
    Int32,
    Int64,
    Since,
    String,
    Tagged,
    TopicName,
    Uuid,
)

LegacyOffsetCommitKey = Data("LegacyOffsetCommitKey", versions=(0, 0), flexible=None, log="consumer_offsets", record_type=0, role="key", doc="Whose offset it is, as the first coordinators wrote it; the layout is OffsetCommitKey's.")(
    "group"     / GroupId   * "Id of the group that committed, or that a lone consumer committed under.",
    "topic"     / TopicName * "The topic's name.",
    "partition" / Int32     * "The partition's number.",
)

LegacyOffsetCommitValue = Data("LegacyOffsetCommitValue", versions=(0, 0), flexible=None, log="consumer_offsets", record_type=0, doc="The offset, as the first coordinators wrote it. No longer written.")(
    "offset"           / Int64  * "The next offset to read, one after the last that was done.",
    "metadata"         / String * "What the consumer keeps with the offset; empty for nothing.",
    "commit_timestamp" / Int64  * "When it was committed, in ms since the epoch.",
)

OffsetCommitKey = Data("OffsetCommitKey", versions=(0, 0), flexible=None, log="consumer_offsets", record_type=1, role="key", doc="Whose offset it is: a group's, for one partition.")(
    "group"     / GroupId   * "Id of the group that committed, or that a lone consumer committed under.",
    "topic"     / TopicName * "The topic's name.",
    "partition" / Int32     * "The partition's number.",
)

OffsetCommitValue = Data("OffsetCommitValue", versions=(0, 4), flexible=4, log="consumer_offsets", record_type=1, doc="The offset committed. v1 kept the client's own expiry, v3 added the leader epoch (KIP-320); v4 is flexible (KIP-915).")(
    "offset"           / Int64                                             * "The next offset to read, one after the last that was done.",
    "leader_epoch"     / Since(3, Default(Int32, -1), ignorable=True)      * "Leader epoch of the record before the offset; -1 if unknown (KIP-320).",
    "metadata"         / String                                            * "What the consumer keeps with the offset; empty for nothing.",
    "commit_timestamp" / Int64                                             * "When it was committed, in ms since the epoch.",
    "expire_timestamp" / Between(1, 1, Default(Int64, -1), ignorable=True) * "When the offset expires, in ms since the epoch; -1 for the broker's own rule.",
    "topic_id"         / Since(4, Tagged(0, Uuid), ignorable=True)         * "Id of the topic, so that a topic created again is distinguished; all zero if unknown.",
)
