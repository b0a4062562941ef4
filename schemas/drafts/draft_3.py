"""The draft of the new consumer's protocol, in Kafka 0.8's framing, between the drafts and JoinGroup v0.

The consumer sends everything, Ping included. Version and correlation id (int64) are fields of every message;
requests have a type id before them (a header here), which 0.8's frame has and the document leaves out.
Source: Kafka's wiki, "Client-side Assignment / New consumer" draft, the change from revision 38571849 to
38571850. That change elides JoinGroupRequest: its fields are those of the page's revisions 38571843 to
38571844 and 38572008 to 38572009, which agree but for ConsumerAddr. All names have the prefix Draft3, since
today's messages have the plain ones.
"""

from schemas.vocabulary import (
    Array,
    BrokerId,
    Data,
    Default,
    ErrorCode,
    GroupId,
    Int16,
    Int32,
    Int64,
    MemberId,
    Nullable,
    String,
    Struct,
    TopicName,
    Until,
)

Text = Default(Nullable(String), "")
CorrelationId = Default(Int64, -1)

Draft3PingRequest = Data("Draft3PingRequest", versions=(0, 0), direction="request", doc="A consumer's heartbeat.")(
    "version"        / Int16                           * "The message's version.",
    "correlation_id" / CorrelationId                   * "Repeated by the response; a Connection numbers a request with -1.",
    "group_id"       / Default(Nullable(GroupId), "")  * "The consumer's group.",
    "consumer_id"    / Default(Nullable(MemberId), "") * "The id that the coordinator gave it.",
)

Draft3PingResponse = Data("Draft3PingResponse", versions=(0, 0), direction="response", doc="The coordinator is alive.")(
    "version"        / Int16         * "The message's version.",
    "correlation_id" / CorrelationId * "The request's; a Connection fills in -1.",
    "error_code"     / ErrorCode     * "0 for none.",
)

Draft3MetadataRequest = Data("Draft3MetadataRequest", versions=(0, 0), direction="request", doc="Asks any broker for the cluster, its topics, and the coordinators of groups.")(
    "version"        / Int16            * "The message's version.",
    "correlation_id" / CorrelationId    * "Repeated by the response; a Connection numbers a request with -1.",
    "client_id"      / Text             * "Name of the client.",
    "topics"         / Array(TopicName) * "Topics of interest.",
    "group_ids"      / Array(GroupId)   * "Groups whose coordinators are wanted.",
)

Draft3Broker = Struct(
    "node_id" / BrokerId * "The broker's id.",
    "host"    / Text     * "Its host.",
    "port"    / Int32    * "Its port.",
    doc="A broker of the cluster, as in Metadata v0.",
)

Draft3Partition = Struct(
    "error_code"      / ErrorCode       * "0 for none.",
    "partition_index" / Int32           * "The partition.",
    "leader_id"       / BrokerId        * "The leader's broker id, -1 for none.",
    "replica_nodes"   / Array(BrokerId) * "All nodes that hold it.",
    "isr_nodes"       / Array(BrokerId) * "Those of them that are in sync.",
    doc="A partition, as in Metadata v0.",
)

Draft3TopicMetadata = Struct(
    "error_code" / ErrorCode              * "0 for none.",
    "name"       / Text                   * "The topic.",
    "partitions" / Array(Draft3Partition) * "Its partitions.",
    doc="A topic, as in Metadata v0.",
)

Draft3MetadataResponse = Data("Draft3MetadataResponse", versions=(0, 0), direction="response", doc="The cluster, topics, and coordinators.")(
    "version"         / Int16                      * "The message's version.",
    "correlation_id"  / CorrelationId              * "The request's; a Connection fills in -1.",
    "brokers"         / Array(Draft3Broker)        * "All brokers.",
    "topics_metadata" / Array(Draft3TopicMetadata) * "The topics asked for.",
    "coordinator_ids" / Array(Int16)               * "Broker ids of the coordinators, in the order of the groups asked for.",
)

Draft3JoinGroupRequest = Data("Draft3JoinGroupRequest", versions=(0, 1), direction="request", doc="A consumer joins its group. Version 0 is with its address, version 1 without; the number is ours and not on the wire.")(
    "version"         / Int16                          * "The message's version.",
    "correlation_id"  / CorrelationId                  * "Repeated by the response; a Connection numbers a request with -1.",
    "group_id"        / Default(Nullable(GroupId), "") * "The group to join.",
    "consumer_addr"   / Until(0, Text)                 * "Where the consumer is; in revisions 38571844 and 38572009, not in the text beside the former.",
    "session_timeout" / Int64                          * "Silence in ms after which the consumer counts as dead; the pages give no unit.",
    "subscribing"     / Array(TopicName)               * "The topics that it reads.",
)

Draft3TopicAndPartition = Struct(
    "topic"     / Default(Nullable(TopicName), "") * "The topic.",
    "partition" / Int32                            * "The partition.",
    doc="A partition to own.",
)

Draft3JoinGroupResponse = Data("Draft3JoinGroupResponse", versions=(0, 0), direction="response", doc="What a consumer owns in the new generation.")(
    "version"           / Int16                           * "The message's version.",
    "correlation_id"    / CorrelationId                   * "The request's; a Connection fills in -1.",
    "error_code"        / ErrorCode                       * "0 for none.",
    "generation"        / Int16                           * "Counts the group's rebalances.",
    "group_id"          / Default(Nullable(GroupId), "")  * "The group.",
    "consumer_id"       / Default(Nullable(MemberId), "") * "The id that the coordinator gives the consumer.",
    "partitions_to_own" / Array(Draft3TopicAndPartition)  * "What it is to consume.",
)
