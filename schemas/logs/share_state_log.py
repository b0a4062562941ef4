"""What share groups have been given, in __share_group_state (KIP-932): snapshots, and what changed since.

Key and value go together by partition: a snapshot replaces all before it, updates build on the last one. A record
without a value removes the partition.
"""

from schemas.vocabulary import Array, Data, Default, GroupId, Int8, Int16, Int32, Int64, Struct, Tagged, Uuid

ShareSnapshotKey = Data("ShareSnapshotKey", versions=(0, 0), flexible=None, log="share_group_state", record_type=0, role="key", doc="Whose share state it is: a group's, for one partition.")(
    "group_id"  / GroupId * "The share group's id.",
    "topic_id"  / Uuid    * "The topic's id.",
    "partition" / Int32   * "The partition's number.",
)

ShareSnapshotValueStateBatch = Struct(
    "first_offset"   / Int64 * "The first offset of the run.",
    "last_offset"    / Int64 * "The last offset of the run, itself included.",
    "delivery_state" / Int8  * "0 available, 1 acquired, 2 acknowledged, 3 being archived, 4 archived.",
    "delivery_count" / Int16 * "How often it has been delivered.",
    doc="A run of offsets with one state.",
)

ShareSnapshotValue = Data("ShareSnapshotValue", versions=(0, 0), flexible=0, log="share_group_state", record_type=0, doc="The whole share state of a partition. Kafka 4.0, where share groups were a preview, had another layout under the same version.")(
    "snapshot_epoch"          / Int32                               * "Number of the snapshot, one more with each; an update names the one it changes.",
    "state_epoch"             / Int32                               * "Epoch of the share state, one more each time the group's start is set again.",
    "leader_epoch"            / Int32                               * "Leader epoch of the share partition's leader, so that an older one is fenced.",
    "start_offset"            / Int64                               * "The first offset still in flight: all before it is done; -1 for none yet.",
    "delivery_complete_count" / Tagged(0, Default(Int32, -1))       * "How many records from the start offset on are done; -1 if unknown.",
    "create_timestamp"        / Int64                               * "When the snapshot was first made, in ms since the epoch.",
    "write_timestamp"         / Int64                               * "When it was written, in ms since the epoch.",
    "state_batches"           / Array(ShareSnapshotValueStateBatch) * "Runs of offsets with one state each; none for a run that was never read.",
)

ShareUpdateKey = Data("ShareUpdateKey", versions=(0, 0), flexible=None, log="share_group_state", record_type=1, role="key", doc="Whose share state it is: a group's, for one partition.")(
    "group_id"  / GroupId * "The share group's id.",
    "topic_id"  / Uuid    * "The topic's id.",
    "partition" / Int32   * "The partition's number.",
)

ShareUpdateValueStateBatch = Struct(
    "first_offset"   / Int64 * "The first offset of the run.",
    "last_offset"    / Int64 * "The last offset of the run, itself included.",
    "delivery_state" / Int8  * "0 available, 1 acquired, 2 acknowledged, 3 being archived, 4 archived.",
    "delivery_count" / Int16 * "How often it has been delivered.",
    doc="A run of offsets with one state.",
)

ShareUpdateValue = Data("ShareUpdateValue", versions=(0, 0), flexible=0, log="share_group_state", record_type=1, doc="What has changed since the snapshot. Kafka 4.0, where share groups were a preview, had another layout under the same version.")(
    "snapshot_epoch"          / Int32                             * "Number of the snapshot, one more with each; an update names the one it changes.",
    "leader_epoch"            / Int32                             * "Leader epoch of the share partition's leader, so that an older one is fenced.",
    "start_offset"            / Int64                             * "The first offset still in flight; -1: as before.",
    "delivery_complete_count" / Tagged(0, Default(Int32, -1))     * "How many records from the start offset on are done; -1 if unknown.",
    "state_batches"           / Array(ShareUpdateValueStateBatch) * "Runs of offsets whose state has changed.",
)
