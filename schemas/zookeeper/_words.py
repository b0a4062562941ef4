"""Words that the messages of ZooKeeper's client protocol share.

Strategy: jute's types are words of the vocabulary: ustring is a long string, buffer bytes, vector an array,
int, long and boolean what they are; each of the first three may be null, as a length of -1. A record follows
its header without anything between them, so a message begins with the header's fields. Rules: fields have
jute's names in snake_case, but `error_code` for `err`; a vector's strings can't be null here.
"""

from __future__ import annotations

from collections.abc import Callable

from construct import Construct, Renamed

from schemas.vocabulary import (
    Array,
    Between,
    Bytes,
    Data,
    Default,
    Int32,
    Int64,
    LongErrorCode,
    LongString,
    Message,
    Nullable,
    Secret,
    Since,
    Struct,
)

Text = Default(Nullable(LongString), "")
Buffer = Nullable(Bytes)
Token = Nullable(Secret(Bytes))
Texts = Nullable(Array(LongString))

NOTIFICATION_XID, PING_XID, AUTH_XID, SET_WATCHES_XID = -1, -2, -4, -8

ZooKeeperStat = Struct(
    "czxid"           / Int64 * "The transaction that created the node.",
    "mzxid"           / Int64 * "The transaction that last set its data.",
    "ctime"           / Int64 * "When it was created, in milliseconds since the epoch.",
    "mtime"           / Int64 * "When its data was last set, in milliseconds since the epoch.",
    "version"         / Int32 * "Changes of its data.",
    "cversion"        / Int32 * "Changes of its children.",
    "aversion"        / Int32 * "Changes of its ACL.",
    "ephemeral_owner" / Int64 * "The session of an ephemeral node, 0 for none; the top byte also marks containers and TTLs.",
    "data_length"     / Int32 * "Bytes of its data.",
    "num_children"    / Int32 * "Its children.",
    "pzxid"           / Int64 * "The transaction that last changed its children.",
    doc="What ZooKeeper knows of a node; jute's Stat.",
)

ZooKeeperAcl = Struct(
    "perms"  / Int32                               * "Bits: read 1, write 2, create 4, delete 8, admin 16.",
    "scheme" / Text                                * 'How the id is proved: "world", "auth", "digest", "ip", "sasl", "x509".',
    "id"     / Default(Nullable(Secret(LongString)), "") * "Who it is; of a digest the user and the hash of the password.",
    doc="Who may do what with a node; jute's ACL with the Id in it.",
)

Acls = Nullable(Array(ZooKeeperAcl))


def request(
    name: str, op: int, *fields: Renamed, xid: int = 0, doc: str, versions: tuple[int, int] = (0, 0)
) -> Message:
    """A request: the header's xid and type, and the fields of its record. op: its type, in ZooDefs.OpCode."""
    return _data(f"ZooKeeper{name}Request", versions, "request", doc)(
        "xid"  / Default(Int32, xid) * "Counts the client's requests, from 1; pings, auth and setWatches have their own below 0.",
        "type" / Default(Int32, op)  * "Which request it is.",
        *fields,
    )


def response(name: str, *fields: Renamed, xid: int = 0) -> Message:
    """A response: the reply header's fields, and those of its record from version 1 on.

    Version 0 is a reply without a record: of an error, or of a request that has none.
    """
    versions = (0, 1) if fields else (0, 0)
    doc = f"The response to ZooKeeper{name}Request."
    if fields:
        doc += " Version 0 is the header alone, as errors have it; version 1 has the record."
    return _data(f"ZooKeeper{name}Response", versions, "response", doc)(
        "xid"        / Default(Int32, xid) * "The request's.",
        "zxid"       / Int64               * "The last transaction that the server has applied.",
        "error_code" / LongErrorCode       * "jute's err: 0, or a negative code.",
        *fields,
    )


def record(subcon: Construct) -> Between:
    """A field of a response's record."""
    return Since(1, subcon)


def _data(name: str, versions: tuple[int, int], direction: str, doc: str) -> Callable[..., Message]:
    return Data(name, versions=versions, direction=direction, doc=doc)
