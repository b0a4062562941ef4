"""Watches of ZooKeeper's client protocol: the events that a server sends, and the requests about them.

Reads leave a watch where they ask for it; it fires once, as an event with the xid -1. A client that connects
again leaves all its watches again with setWatches, or with setWatches2 where it has lasting ones (3.6).
addWatch leaves a lasting watch (3.6), removeWatches and checkWatches are of 3.5. From 3.9 on an event's zxid
is that of the change, before it is -1. Sources: the records of Apache ZooKeeper 3.4.14 and 3.9.3.
"""

from schemas.vocabulary import Data, Default, Int32, Int64, LongErrorCode
from schemas.zookeeper._words import (
    NOTIFICATION_XID,
    SET_WATCHES_XID,
    Text,
    Texts,
    record,
    request,
    response,
)

Path = "path" / Text * "The node."
WATCHES = (
    "relative_zxid" / Int64 * "The last transaction that the client has seen: later changes fire at once.",
    "data_watches"  / Texts * "Nodes whose data is watched.",
    "exist_watches" / Texts * "Nodes that don't exist and are watched.",
    "child_watches" / Texts * "Nodes whose children are watched.",
)

ZooKeeperWatcherEvent = Data("ZooKeeperWatcherEvent", versions=(0, 0), direction="request", doc="A watch has fired; the server sends it, and nothing answers it. jute's ReplyHeader and WatcherEvent.")(
    "xid"        / Default(Int32, NOTIFICATION_XID) * "-1.",
    "zxid"       / Default(Int64, -1)               * "The change that fired it (3.9), or -1.",
    "error_code" / LongErrorCode                    * "0.",
    "type"       / Int32                            * "1 created, 2 deleted, 3 data changed, 4 children changed, 5 to 7 a watch was removed, -1 the state.",
    "state"      / Int32                            * "The session's state: 3 connected, 5 read-only.",
    "path"       / Text                             * "The node.",
)

ZooKeeperSetWatchesRequest = request("SetWatches", 101, *WATCHES, xid=SET_WATCHES_XID, doc="Leaves all watches again, on a new connection.")
ZooKeeperSetWatchesResponse = response("SetWatches", xid=SET_WATCHES_XID)

ZooKeeperSetWatches2Request = request("SetWatches2", 105,
    *WATCHES,
    "persistent_watches"           / Texts * "Nodes with a lasting watch.",
    "persistent_recursive_watches" / Texts * "Nodes with a lasting watch on all below them.",
    xid=SET_WATCHES_XID, doc="Leaves all watches again, lasting ones too (3.6).",
)  # fmt: skip
ZooKeeperSetWatches2Response = response("SetWatches2", xid=SET_WATCHES_XID)

ZooKeeperAddWatchRequest = request("AddWatch", 106,
    Path,
    "mode" / Int32 * "0 persistent, 1 persistent and recursive.",
    doc="Leaves a watch that stays when it has fired (3.6).",
)  # fmt: skip
ZooKeeperAddWatchResponse = response("AddWatch", "result" / record(Int32) * "jute's ErrorResponse.err: 0.")

ZooKeeperRemoveWatchesRequest = request("RemoveWatches", 18,
    Path,
    "watcher_type" / Int32 * "jute's type: 1 children, 2 data, 3 any, 4 persistent, 5 persistent and recursive.",
    doc="Removes watches (3.5).",
)  # fmt: skip
ZooKeeperRemoveWatchesResponse = response("RemoveWatches")

ZooKeeperCheckWatchesRequest = request("CheckWatches", 17,
    Path,
    "watcher_type" / Int32 * "jute's type: 1 children, 2 data, 3 any, 4 persistent, 5 persistent and recursive.",
    doc="Asks whether watches are there (3.5).",
)  # fmt: skip
ZooKeeperCheckWatchesResponse = response("CheckWatches")
