"""What Connect's workers put into the opaque bytes of their group, whose protocol type is "connect".

An int16 version precedes each of them, outside these layouts: 0 under the protocol "default" (or "eager"), 1 under
"compatible" (KIP-415), 2 under "sessioned" (KIP-507). Readers take a newer version for the newest they know.
"""

from schemas.vocabulary import (
    Array,
    Data,
    Default,
    Embedded,
    Int16,
    Int32,
    Int64,
    MemberId,
    Nullable,
    Since,
    String,
    Struct,
)

ConnectorAssignment = Struct(
    "connector" / String       * "The connector's name.",
    "tasks"     / Array(Int32) * "Numbers of its tasks; -1 is the connector itself.",
    doc="What a worker runs of one connector.",
)

ConnectProtocolAssignment = Data("ConnectProtocolAssignment", versions=(0, 2), flexible=None, doc="What the leader gives a worker, in SyncGroup. v1 adds what it must give up and when to expect another rebalance (KIP-415); v2 is the same, and states that internal requests are signed (KIP-507).")(
    "error"         / Int16                                                      * "0, or 1 if the worker's configs are older than the leader's.",
    "leader"        / MemberId                                                   * "Member id of the leader.",
    "leader_url"    / String                                                     * "Where the leader's REST interface is.",
    "config_offset" / Int64                                                      * "Up to which offset of the config topic the leader had read.",
    "assignment"    / Default(Nullable(Array(ConnectorAssignment), since=1), []) * "What the worker shall run: up to v0 all of it, from v1 on what is new.",
    "revoked"       / Since(1, Nullable(Array(ConnectorAssignment)))             * "What it shall stop; null for nothing (KIP-415).",
    "delay"         / Since(1, Int32)                                            * "After how long the next rebalance is due, in ms; 0 for none (KIP-415).",
)

ConnectProtocolSubscription = Data("ConnectProtocolSubscription", versions=(0, 2), flexible=None, doc="How far a worker is, in JoinGroup. v1 adds what it runs (KIP-415); v2 is the same, and states that internal requests are signed (KIP-507).")(
    "url"           / String * "Where the worker's REST interface is.",
    "config_offset" / Int64  * "Up to which offset of the config topic it has read.",
    "allocation"    / Since(1, Nullable(Embedded(ConnectProtocolAssignment))) * "What it runs, as an assignment; null for nothing (KIP-415).",
)
