"""Nodes of ZooKeeper's client protocol: create, delete, read and write them and their ACLs, alone or several.

A multi holds operations, each after a header (type, done, err), up to a header that is done; their types
decide what follows, so they stay bytes here. `ZooKeeperOperationHeader` and the `…Operation` and `…Result`
messages are what is in them. Operations of 3.5 and later: create2, createContainer, createTTL, reconfig;
multiRead, getEphemerals and getAllChildrenNumber came with 3.6. Sources: the records of Apache ZooKeeper
3.4.14 and 3.9.3.
"""

from functools import partial

from schemas.vocabulary import Boolean, Data, Default, Int32, Int64, LongErrorCode, Rest, Secret
from schemas.zookeeper._words import (
    Acls,
    Buffer,
    Text,
    Texts,
    ZooKeeperAcl,
    ZooKeeperStat,
    record,
    request,
    response,
)

__all__ = ["ZooKeeperAcl", "ZooKeeperStat"]

Path = "path" / Text * "The node."
AnyVersion = Default(Int32, -1)

CREATE = (
    "path"  / Text   * "The node; a sequential one gets a number after it.",
    "data"  / Buffer * "Its data.",
    "acl"   / Acls   * "Who may do what with it.",
    "flags" / Int32  * "0 persistent, 1 ephemeral, 2 and 3 the same and sequential, 4 container, 5 and 6 with a TTL.",
)
CREATE_TTL = (
    *CREATE,
    "ttl" / Int64 * "Milliseconds without change or children after which it goes.",
)
DELETE = (
    Path,
    "version" / AnyVersion * "The version that is expected, -1 for any.",
)
SET_DATA = (
    Path,
    "data"    / Buffer     * "Its new data.",
    "version" / AnyVersion * "The version that is expected, -1 for any.",
)
CREATED = "path" / record(Text) * "The node as it was created."
STAT = "stat" / record(ZooKeeperStat) * "The node."
READ = (
    Path,
    "watch" / Boolean * "Whether the next change sends an event.",
)
CHILDREN = "children" / record(Texts) * "Their names, in no order."
OPERATIONS = "operations" / Secret(Rest) * "Operations, each after its header, and the header that ends them."

ZooKeeperCreateRequest = request("Create", 1, *CREATE, doc="Creates a node.")
ZooKeeperCreateResponse = response("Create", CREATED)

ZooKeeperCreate2Request = request("Create2", 15, *CREATE, doc="Creates a node, and asks for its stat (3.5).")
ZooKeeperCreate2Response = response("Create2", CREATED, STAT)

ZooKeeperCreateContainerRequest = request("CreateContainer", 19, *CREATE, doc="Creates a node that goes after its last child (3.5).")
ZooKeeperCreateContainerResponse = response("CreateContainer", CREATED, STAT)

ZooKeeperCreateTtlRequest = request("CreateTtl", 21, *CREATE_TTL, doc="Creates a node that goes when nothing has happened for a time (3.5).")
ZooKeeperCreateTtlResponse = response("CreateTtl", CREATED, STAT)

ZooKeeperDeleteRequest = request("Delete", 2, *DELETE, doc="Deletes a node without children.")
ZooKeeperDeleteResponse = response("Delete")

ZooKeeperExistsRequest = request("Exists", 3, *READ, doc="Asks whether a node is there.")
ZooKeeperExistsResponse = response("Exists", STAT)

ZooKeeperGetDataRequest = request("GetData", 4, *READ, doc="Reads a node's data.")
ZooKeeperGetDataResponse = response("GetData", "data" / record(Buffer) * "Its data.", STAT)

ZooKeeperSetDataRequest = request("SetData", 5, *SET_DATA, doc="Writes a node's data.")
ZooKeeperSetDataResponse = response("SetData", STAT)

ZooKeeperGetAclRequest = request("GetAcl", 6, Path, doc="Reads a node's ACL.")
ZooKeeperGetAclResponse = response("GetAcl", "acl" / record(Acls) * "Who may do what with it.", STAT)

ZooKeeperSetAclRequest = request("SetAcl", 7,
    Path,
    "acl"     / Acls       * "Who may do what with it from now on.",
    "version" / AnyVersion * "The version of the ACL that is expected, -1 for any.",
    doc="Writes a node's ACL.",
)  # fmt: skip
ZooKeeperSetAclResponse = response("SetAcl", STAT)

ZooKeeperGetChildrenRequest = request("GetChildren", 8, *READ, doc="Lists a node's children.")
ZooKeeperGetChildrenResponse = response("GetChildren", CHILDREN)

ZooKeeperGetChildren2Request = request("GetChildren2", 12, *READ, doc="Lists a node's children, with the node's stat.")
ZooKeeperGetChildren2Response = response("GetChildren2", CHILDREN, STAT)

ZooKeeperSyncRequest = request("Sync", 9, Path, doc="Waits until the server has applied what the leader had.")
ZooKeeperSyncResponse = response("Sync", "path" / record(Text) * "The request's.")

ZooKeeperCheckRequest = request("Check", 13, *DELETE, doc="Compares a node's version; in a multi.")
ZooKeeperCheckResponse = response("Check")

ZooKeeperMultiRequest = request("Multi", 14, OPERATIONS, doc="Several operations, all of them or none.")
ZooKeeperMultiResponse = response("Multi",
    "operations" / record(Rest) * "A result for each operation, after its header, and the header that ends them.",
)  # fmt: skip

ZooKeeperMultiReadRequest = request("MultiRead", 22, OPERATIONS, doc="Several reads (3.6).")
ZooKeeperMultiReadResponse = response("MultiRead",
    "operations" / record(Rest) * "A result for each read, after its header, and the header that ends them.",
)  # fmt: skip

ZooKeeperGetEphemeralsRequest = request("GetEphemerals", 103,
    "prefix_path" / Text * "Of nodes below this path.",
    doc="Lists the session's ephemeral nodes (3.6).",
)  # fmt: skip
ZooKeeperGetEphemeralsResponse = response("GetEphemerals", "ephemerals" / record(Texts) * "Their paths.")

ZooKeeperGetAllChildrenNumberRequest = request("GetAllChildrenNumber", 104, Path, doc="Counts all nodes below a node (3.6).")
ZooKeeperGetAllChildrenNumberResponse = response("GetAllChildrenNumber", "total_number" / record(Int32) * "How many they are.")

ZooKeeperReconfigRequest = request("Reconfig", 16,
    "joining_servers" / Text  * "Servers to add, null for none.",
    "leaving_servers" / Text  * "Ids of servers to remove, null for none.",
    "new_members"     / Text  * "All servers, null where the two above say what changes.",
    "cur_config_id"   / Int64 * "The configuration that is expected, -1 for any.",
    doc="Changes the servers of the ensemble (3.5).",
)  # fmt: skip
ZooKeeperReconfigResponse = response("Reconfig", "data" / record(Buffer) * "The new configuration.", STAT)

ZooKeeperOperationHeader = Data("ZooKeeperOperationHeader", versions=(0, 0), direction="header", doc="What precedes an operation or a result in a multi; jute's MultiHeader.")(
    "type"       / Int32         * "Which operation follows; -1 for an error, and at the end.",
    "done"       / Boolean       * "Whether this is the end, after which nothing follows.",
    "error_code" / LongErrorCode * "jute's err: of a result 0 or an error, of an operation -1.",
)


Operation = partial(Data, versions=(0, 0))

ZooKeeperCreateOperation = Operation("ZooKeeperCreateOperation", doc="create, create2 and createContainer in a multi; jute's CreateRequest.")(*CREATE)
ZooKeeperCreateTtlOperation = Operation("ZooKeeperCreateTtlOperation", doc="createTTL in a multi; jute's CreateTTLRequest.")(*CREATE_TTL)
ZooKeeperDeleteOperation = Operation("ZooKeeperDeleteOperation", doc="delete in a multi; jute's DeleteRequest.")(*DELETE)
ZooKeeperSetDataOperation = Operation("ZooKeeperSetDataOperation", doc="setData in a multi; jute's SetDataRequest.")(*SET_DATA)
ZooKeeperCheckOperation = Operation("ZooKeeperCheckOperation", doc="check in a multi; jute's CheckVersionRequest.")(*DELETE)
ZooKeeperReadOperation = Operation("ZooKeeperReadOperation", doc="getData and getChildren in a multiRead; jute's GetDataRequest and GetChildrenRequest.")(*READ)

ZooKeeperCreateResult = Operation("ZooKeeperCreateResult", doc="The result of create; jute's CreateResponse.")("path" / Text * "The node as it was created.")
ZooKeeperCreate2Result = Operation("ZooKeeperCreate2Result", doc="The result of create2, createContainer and createTTL; jute's Create2Response.")("path" / Text * "The node as it was created.", "stat" / ZooKeeperStat * "The node.")
ZooKeeperSetDataResult = Operation("ZooKeeperSetDataResult", doc="The result of setData; jute's SetDataResponse.")("stat" / ZooKeeperStat * "The node.")
ZooKeeperGetDataResult = Operation("ZooKeeperGetDataResult", doc="The result of getData; jute's GetDataResponse.")("data" / Buffer * "Its data.", "stat" / ZooKeeperStat * "The node.")
ZooKeeperGetChildrenResult = Operation("ZooKeeperGetChildrenResult", doc="The result of getChildren; jute's GetChildrenResponse.")("children" / Texts * "Their names, in no order.")
ZooKeeperErrorResult = Operation("ZooKeeperErrorResult", doc="The result of an operation that failed; jute's ErrorResponse.")("error_code" / LongErrorCode * "jute's err: why it failed, or that another operation did.")
