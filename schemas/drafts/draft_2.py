"""The detailed design of the consumer coordinator, still in Kafka 0.7's wire format.

As in the first draft, a consumer asks and registers, and the coordinator sends Ping, Stop and Start over its
connection. Responses to the coordinator repeat the request's type id (a header here), those to the consumer
have none. PingResponse and StopFetcherResponse exist twice: in version 0 as they are without auto_commit, in
version 1 with it; ClusterMetadataRequest and RegisterConsumerResponse too: in version 0 as section 7 has
them, in version 1 as sections 1 and 2 need them. The numbers are ours and not on the wire. Source: Kafka's wiki, "Detailed Consumer
Coordinator Design". All names have the prefix Draft2, since the drafts share names with each other.
"""

from schemas.vocabulary import (
    Array,
    Boolean,
    Data,
    Default,
    Encoding,
    ErrorCode,
    GroupId,
    Int32,
    Int64,
    MemberId,
    Nullable,
    Since,
    String,
    Struct,
    TopicName,
)

Text = Default(Nullable(String), "")

Draft2ClusterMetadataRequest = Data("Draft2ClusterMetadataRequest", versions=(0, 1), direction="request", encoding=Encoding.SHORT_COUNTS, doc="Asks any broker for the brokers and the coordinator. Version 0 is the document's, without fields; version 1 is reconstructed.")(
    "group_id" / Since(1, Default(Nullable(GroupId), "")) * "Whose coordinator is wanted: sections 1 and 2 have one for each subset of the groups, section 7 no field for it.",
)

Draft2Broker = Struct(
    "id"   / Int32 * "The broker's id.",
    "host" / Text  * "Its host.",
    "port" / Int32 * "Its port.",
    doc="A broker of the cluster.",
)

Draft2ClusterMetadataResponse = Data("Draft2ClusterMetadataResponse", versions=(0, 0), direction="response", encoding=Encoding.SHORT_COUNTS, doc="The cluster and its coordinator.")(
    "error_code"     / ErrorCode           * "0 for none.",
    "coordinator_id" / Int32               * "The coordinator's broker id.",
    "brokers_info"   / Array(Draft2Broker) * "All brokers.",
)

Draft2RegisterConsumerRequest = Data("Draft2RegisterConsumerRequest", versions=(0, 0), direction="request", encoding=Encoding.SHORT_COUNTS, doc="A consumer joins its group. The document calls its type ConnectConsumerRequest.")(
    "group_id"           / Default(Nullable(GroupId), "")  * "The consumer's group.",
    "consumer_id"        / Default(Nullable(MemberId), "") * "The consumer's own id, unique in its group.",
    "topic_count"        / Text                            * "Topics and their numbers of streams as JSON, or a wildcard; see coordwire.dialects.zookeeper.",
    "auto_commit"        / Boolean                         * "Whether the coordinator commits offsets for it; decides what its responses hold.",
    "auto_offset_rest"   / Text                            * 'What to do with an offset out of range, "smallest" or "largest" (spelled so in the document).',
    "session_timeout_ms" / Int32                           * "Silence after which either side counts as dead; it is pinged every third of it.",
)

Draft2PingRequest = Data("Draft2PingRequest", versions=(0, 0), direction="request", encoding=Encoding.SHORT_COUNTS, doc="The coordinator asks whether a consumer is alive. The document also calls it HeartbeatRequest.")(
    "consumer_id" / Default(Nullable(MemberId), "") * "The consumer.",
    "num_retries" / Int32                           * "How often it asked before without an answer.",
)

Draft2PartitionOffset = Struct(
    "topic"     / Default(Nullable(TopicName), "") * "The topic.",
    "partition" / Text                             * "The partition with its broker, as broker-partition.",
    "offset"    / Int64                            * "The offset in it.",
    doc="The position of consumption in a partition, or where it is to begin.",
)

Draft2RegisterConsumerResponse = Data("Draft2RegisterConsumerResponse", versions=(0, 1), direction="response", encoding=Encoding.SHORT_COUNTS, doc="Whether the coordinator accepts a consumer. Version 0 is section 7's layout; version 1 is that of section 2, which lists partitions and has no layout (reconstructed).")(
    "error_code"     / ErrorCode                              * "0 if accepted; else the consumer closes the connection.",
    "assigned_parts" / Since(1, Array(Draft2PartitionOffset)) * "What the consumer is to own, and where to begin.",
)

Draft2PingResponse = Data("Draft2PingResponse", versions=(0, 1), direction="response", encoding=Encoding.SHORT_COUNTS, doc="A consumer is alive. Version 0 is without auto_commit, version 1 with it.")(
    "error_code"  / ErrorCode                              * "0 for none.",
    "consumer_id" / Default(Nullable(MemberId), "")        * "The consumer.",
    "offset_info" / Since(1, Array(Draft2PartitionOffset)) * "What it consumed, a partition each; absent without auto_commit.",
)

Draft2CommitOffsetRequest = Data("Draft2CommitOffsetRequest", versions=(0, 0), direction="request", encoding=Encoding.SHORT_COUNTS, doc="A consumer commits its offsets without waiting for a ping. Section 12.6 names it as future work, without a layout: reconstructed.")(
    "consumer_id" / Default(Nullable(MemberId), "") * "The consumer.",
    "offset_info" / Array(Draft2PartitionOffset)    * "What it consumed, a partition each.",
)

Draft2CommitOffsetResponse = Data("Draft2CommitOffsetResponse", versions=(0, 0), direction="response", encoding=Encoding.SHORT_COUNTS, doc="Whether a consumer's offsets are kept.")(
    "error_code"  / ErrorCode                       * "0 for none.",
    "consumer_id" / Default(Nullable(MemberId), "") * "The consumer.",
)

Draft2StopFetcherRequest = Data("Draft2StopFetcherRequest", versions=(0, 0), direction="request", encoding=Encoding.SHORT_COUNTS, doc="The coordinator instructs a consumer to stop its fetchers.")(
    "consumer_id" / Default(Nullable(MemberId), "") * "The consumer.",
)

Draft2StopFetcherResponse = Data("Draft2StopFetcherResponse", versions=(0, 1), direction="response", encoding=Encoding.SHORT_COUNTS, doc="A consumer has stopped its fetchers. Version 0 is without auto_commit, version 1 with it.")(
    "error_code"  / ErrorCode                              * "0 for none.",
    "consumer_id" / Default(Nullable(MemberId), "")        * "The consumer.",
    "offset_info" / Since(1, Array(Draft2PartitionOffset)) * "What it consumed, a partition each; absent without auto_commit.",
)

Draft2Ownership = Struct(
    "consumer_thread_id" / Text                         * "The thread, as consumer-number.",
    "assigned_parts"     / Array(Draft2PartitionOffset) * "Its partitions and where to begin.",
    doc="What one thread of a consumer owns.",
)

Draft2StartFetcherRequest = Data("Draft2StartFetcherRequest", versions=(0, 0), direction="request", encoding=Encoding.SHORT_COUNTS, doc="The coordinator sends a consumer the list of what it owns from here on, and the cluster as it is.")(
    "consumer_id"    / Default(Nullable(MemberId), "") * "The consumer.",
    "ownership_info" / Array(Draft2Ownership)          * "Its threads and what they own.",
    "brokers_info"   / Array(Draft2Broker)             * "All brokers.",
)

Draft2StartFetcherResponse = Data("Draft2StartFetcherResponse", versions=(0, 0), direction="response", encoding=Encoding.SHORT_COUNTS, doc="A consumer has started its fetchers.")(
    "error_code"  / ErrorCode                       * "0 for none.",
    "consumer_id" / Default(Nullable(MemberId), "") * "The consumer.",
)
