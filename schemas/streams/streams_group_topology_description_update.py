"""StreamsGroupTopologyDescriptionUpdate: a Kafka Streams client describes its topology to the group's coordinator.

The coordinator asks for it in the answer to a heartbeat, hands it to the broker's plugin, and gives it out by
StreamsGroupDescribe.
"""

from schemas._errors import COORDINATOR
from schemas.vocabulary import (
    Api,
    Array,
    ErrorCode,
    GroupId,
    Int8,
    Int32,
    MemberId,
    Nullable,
    String,
    Struct,
    TopicName,
)

StreamsGroupTopologyDescriptionUpdate = Api(
    93, "StreamsGroupTopologyDescriptionUpdate", versions=(0, 0), flexible=0, coordinator="group", modifies=True,
    doc="Stores the description of a streams group's topology, node by node, where operators can read it (KIP-1331).",
    changes={},
    errors=(
        *COORDINATOR, "UNKNOWN_MEMBER_ID", "GROUP_AUTHORIZATION_FAILED", "UNSUPPORTED_VERSION",
        "INVALID_REQUEST", "GROUP_ID_NOT_FOUND", "STREAMS_TOPOLOGY_DESCRIPTION_UPDATE_FAILED",
    ),
)

TopologyDescriptionNode = Struct(
    "name"          / String              * 'Its name, such as "KSTREAM-SOURCE-0000000000".',
    "node_type"     / Int8                * "1 source, 2 processor, 3 sink.",
    "source_topics" / Array(TopicName)    * "The topics that a source reads; empty if they are found at run time.",
    "sink_topic"    / Nullable(TopicName) * "The topic that a sink writes; null if it is chosen at run time.",
    "stores"        / Array(String)       * "The state stores that a processor uses, by name.",
    "successors"    / Array(String)       * "The nodes that take its output, by name.",
    doc="A node of the processing graph.",
)

TopologyDescriptionSubtopology = Struct(
    "subtopology_id" / String                         * "Its name within the topology.",
    "nodes"          / Array(TopologyDescriptionNode) * "Its nodes.",
    doc="A part of the topology whose tasks run on their own, node by node.",
)

TopologyDescriptionGlobalStore = Struct(
    "source"    / TopologyDescriptionNode * "The source node that feeds it.",
    "processor" / TopologyDescriptionNode * "The processor node that fills it.",
    doc="A state store that every client holds whole.",
)

TopologyDescription = Struct(
    "subtopologies" / Array(TopologyDescriptionSubtopology) * "The parts that it consists of.",
    "global_stores" / Array(TopologyDescriptionGlobalStore) * "The global state stores that it uses.",
    doc="The whole topology of the application, for people to read (KIP-1331).",
)

StreamsGroupTopologyDescriptionUpdateRequest = StreamsGroupTopologyDescriptionUpdate.request(
    "group_id"             / GroupId             * "The group, which is the application's id.",
    "member_id"            / MemberId            * "The member that sends it; one that is not in the group gets UNKNOWN_MEMBER_ID.",
    "topology_epoch"       / Int32               * "The epoch of the topology that is described.",
    "topology_description" / TopologyDescription * "The description.",
)

StreamsGroupTopologyDescriptionUpdateResponse = StreamsGroupTopologyDescriptionUpdate.response(
    "throttle_time_ms" / Int32            * "How long a quota holds the client back, in ms; 0 for not at all.",
    "error_code"       / ErrorCode        * "0, or why the description was not stored.",
    "error_message"    / Nullable(String) * "Explains the error; null if there is none.",
)
