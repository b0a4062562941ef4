"""Kafka 0.7's own requests and replies, which the first two drafts build on.

A frame is an int32 size, a request type id (0 Produce, 1 Fetch, 2 MultiFetch, 3 MultiProduce, 4 Offsets) and
the body; replies have no id, nothing has a version or correlation id. Produce and MultiProduce get no reply.
Sources: public descriptions of Kafka 0.7; for the two fetch results Kafka's implementation page, which calls
them MessageSetSend and MultiMessageSetSend. All names have the prefix Kafka07, since today's messages have
the plain ones.
"""

from schemas.vocabulary import (
    Array,
    Data,
    Default,
    Encoding,
    ErrorCode,
    Int16,
    Int32,
    Int64,
    Nullable,
    Records,
    RestRecords,
    Sequence,
    String,
    TopicName,
)

Text = Default(Nullable(String), "")

RequestTypeHeader = Data("RequestTypeHeader", versions=(0, 0), direction="header", encoding=Encoding.SHORT_COUNTS, doc="What precedes a message before Kafka 0.8: which request it is, or answers.")(
    "request_type_id" / Int16 * "The request's type; the drafts' are the caller's to set.",
)

Kafka07ProduceRequest = Data("Kafka07ProduceRequest", versions=(0, 0), direction="request", encoding=Encoding.SHORT_COUNTS, doc="Messages for one partition; it gets no reply.")(
    "topic"     / Default(Nullable(TopicName), "") * "The topic to append to.",
    "partition" / Default(Int32, -1)               * "The partition on that broker; -1 lets the broker choose.",
    "messages"  / Records                          * "A message set.",
)

Kafka07FetchRequest = Data("Kafka07FetchRequest", versions=(0, 0), direction="request", encoding=Encoding.SHORT_COUNTS, doc="Asks for messages of one partition from an offset on.")(
    "topic"     / Default(Nullable(TopicName), "") * "The topic to read.",
    "partition" / Int32                            * "The partition on that broker.",
    "offset"    / Int64                            * "Byte position in the partition's log.",
    "max_size"  / Int32                            * "Bytes of messages at most.",
)

Kafka07MultiFetchRequest = Data("Kafka07MultiFetchRequest", versions=(0, 0), direction="request", encoding=Encoding.SHORT_COUNTS, doc="Several fetches at once.")(
    "fetches" / Array(Kafka07FetchRequest) * "What to fetch; the reply's sets are in this order.",
)

Kafka07MultiProduceRequest = Data("Kafka07MultiProduceRequest", versions=(0, 0), direction="request", encoding=Encoding.SHORT_COUNTS, doc="Messages for several partitions at once; it gets no reply.")(
    "produces" / Array(Kafka07ProduceRequest) * "What to append where.",
)

Kafka07OffsetsRequest = Data("Kafka07OffsetsRequest", versions=(0, 0), direction="request", encoding=Encoding.SHORT_COUNTS, doc="Asks where segments begin that are older than a time.")(
    "topic"      / Default(Nullable(TopicName), "") * "The topic.",
    "partition"  / Int32                            * "The partition on that broker.",
    "time"       / Default(Int64, -1)               * "In ms since the epoch; -1 latest, -2 earliest.",
    "max_number" / Int32                            * "Offsets at most.",
)

Kafka07MessageSetSend = Data("Kafka07MessageSetSend", versions=(0, 0), direction="response", encoding=Encoding.SHORT_COUNTS, doc="The reply to Fetch; one set of the reply to MultiFetch.")(
    "error_code" / ErrorCode   * "0 for none.",
    "messages"   / RestRecords * "A message set up to the frame's end; its last message may be cut off.",
)

Kafka07MultiMessageSetSend = Data("Kafka07MultiMessageSetSend", versions=(0, 0), direction="response", encoding=Encoding.SHORT_COUNTS, doc="The reply to MultiFetch.")(
    "error_code"   / ErrorCode                       * "Of the whole, 0 for none.",
    "message_sets" / Sequence(Kafka07MessageSetSend) * "One for each fetch, each after its size.",
)

Kafka07OffsetsResponse = Data("Kafka07OffsetsResponse", versions=(0, 0), direction="response", doc="The reply to Offsets, whose count is an int32.")(
    "error_code" / ErrorCode    * "0 for none.",
    "offsets"    / Array(Int64) * "First offsets of segments, the newest first.",
)
