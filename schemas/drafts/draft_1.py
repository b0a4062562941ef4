"""The first draft of a consumer coordinator, in Kafka 0.7's wire format.

A consumer consults any broker, registers with the coordinator, and then only answers: the coordinator sends
Ping, Stop and Start over the consumer's connection. Requests begin with their type id (a header here), no
response does. PingResponse exists twice: in version 0 as it is without auto_commit, in version 1 with it; the
number is ours and not on the wire. Source: Kafka's wiki, "Consumer Coordinator" draft, first design. All
names have the prefix Draft1, since the drafts share names with each other.
"""

from schemas.vocabulary import (
    Array,
    Boolean,
    Data,
    Default,
    Encoding,
    ErrorCode,
    GroupId,
    Int16,
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

Draft1ConsultRequest = Data("Draft1ConsultRequest", versions=(0, 0), direction="request", encoding=Encoding.SHORT_COUNTS, doc="Asks any broker for the brokers and the coordinator; it has no fields.")()

Draft1Broker = Struct(
    "creator_id" / Text  * "Who registered the broker in ZooKeeper.",
    "id"         / Int32 * "The broker's id.",
    "host"       / Text  * "Its host.",
    "port"       / Int32 * "Its port.",
    doc="A broker of the cluster.",
)

Draft1ConsultResponse = Data("Draft1ConsultResponse", versions=(0, 0), direction="response", encoding=Encoding.SHORT_COUNTS, doc="The cluster and its coordinator.")(
    "error_code"     / ErrorCode           * "0 for none.",
    "coordinator_id" / Int16               * "The coordinator's broker id.",
    "brokers_info"   / Array(Draft1Broker) * "All brokers; the document names no count field, the list carries an int16 of its own (reconstructed).",
)

Draft1RegisterRequest = Data("Draft1RegisterRequest", versions=(0, 0), direction="request", encoding=Encoding.SHORT_COUNTS, doc="A consumer joins its group; the first Ping or Stop is its only answer. The document calls its type ConnectRequest.")(
    "group_id"         / Default(Nullable(GroupId), "")  * "The consumer's group.",
    "consumer_id"      / Default(Nullable(MemberId), "") * "The consumer's own id.",
    "topic_count"      / Text                            * "Topics and their numbers of streams as JSON, or a wildcard; see coordwire.dialects.zookeeper.",
    "auto_commit"      / Boolean                         * "Whether the coordinator commits offsets for it; decides what PingResponse holds.",
    "auto_offset_rest" / Text                            * 'What to do with an offset out of range, "smallest" or "largest" (spelled so in the document).',
    "ping_interval_ms" / Int32                           * "How often it is pinged, and how soon it must answer.",
    "max_ping_retries" / Int16                           * "Unanswered pings after which it counts as dead.",
)

Draft1PingRequest = Data("Draft1PingRequest", versions=(0, 0), direction="request", encoding=Encoding.SHORT_COUNTS, doc="The coordinator asks whether a consumer is alive.")(
    "num_retries" / Int16 * "How often it asked before without an answer.",
)

Draft1PartitionOffset = Struct(
    "topic"     / Default(Nullable(TopicName), "") * "The topic.",
    "partition" / Text                             * "The partition with its broker, as broker-partition.",
    "offset"    / Int64                            * "The offset in it.",
    doc="The position of consumption in a partition, or where it is to begin.",
)

Draft1PingResponse = Data("Draft1PingResponse", versions=(0, 1), direction="response", encoding=Encoding.SHORT_COUNTS, doc="A consumer is alive. Version 0 is without auto_commit and empty, version 1 is with it.")(
    "offset_info" / Since(1, Array(Draft1PartitionOffset)) * "What it consumed, a partition each; absent without auto_commit.",
)

Draft1StopRequest = Data("Draft1StopRequest", versions=(0, 0), direction="request", encoding=Encoding.SHORT_COUNTS, doc="The coordinator instructs a consumer to stop its fetchers; it has no fields and gets no answer.")()

Draft1StartRequest = Data("Draft1StartRequest", versions=(0, 0), direction="request", encoding=Encoding.SHORT_COUNTS, doc="The coordinator sends a consumer the list of what it owns from here on.")(
    "assigned_parts" / Array(Draft1PartitionOffset) * "Its partitions and where to begin.",
)

Draft1StartResponse = Data("Draft1StartResponse", versions=(0, 0), direction="response", encoding=Encoding.SHORT_COUNTS, doc="A consumer has started its fetchers.")(
    "error_code" / ErrorCode * "0 for none.",
)
