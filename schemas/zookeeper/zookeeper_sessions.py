"""Sessions of ZooKeeper's client protocol: connect, authentication, ping, the end.

The first frame of each direction is a connect record without a header. Clients before 3.4 leave the
read-only flag out, and are answered without it: version 0. Sources: the records of Apache ZooKeeper 3.4.14
and 3.9.3, and what both servers do.
"""

from schemas.vocabulary import Array, Boolean, Data, Int32, Int64, Nullable, Since, Struct
from schemas.zookeeper._words import AUTH_XID, PING_XID, Text, Token, record, request, response

ZooKeeperCreateSessionRequest = Data("ZooKeeperCreateSessionRequest", versions=(0, 1), direction="request", doc="The first frame of a client: opens a session, or goes on with one. jute's ConnectRequest.")(
    "protocol_version" / Int32             * "0.",
    "last_zxid_seen"   / Int64             * "The last transaction that the client has seen; a server that has not applied it refuses.",
    "time_out"         / Int32             * "The session timeout that the client asks for, in milliseconds.",
    "session_id"       / Int64             * "The session to go on with, 0 for a new one.",
    "passwd"           / Token             * "The session's password, with which any client can take the session over.",
    "read_only"        / Since(1, Boolean) * "Whether a server that has lost its quorum will do (3.4).",
)

ZooKeeperCreateSessionResponse = Data("ZooKeeperCreateSessionResponse", versions=(0, 1), direction="response", doc="The first frame of a server. A session id and timeout of 0: the session has expired. jute's ConnectResponse.")(
    "protocol_version" / Int32             * "0.",
    "time_out"         / Int32             * "The session timeout, as the server's limits allow it, in milliseconds; 0 or less where the session has ended.",
    "session_id"       / Int64             * "The session, 0 where it has ended.",
    "passwd"           / Token             * "The session's password, zeros where it has ended.",
    "read_only"        / Since(1, Boolean) * "Whether the server has lost its quorum (3.4).",
)

ZooKeeperPingRequest = request("Ping", 11, xid=PING_XID, doc="Keeps a session alive.")
ZooKeeperPingResponse = response("Ping", xid=PING_XID)

ZooKeeperCloseSessionRequest = request("CloseSession", -11, doc="Ends a session; its ephemeral nodes go at once.")
ZooKeeperCloseSessionResponse = response("CloseSession")

ZooKeeperAuthRequest = request("Auth", 100,
    "auth_type" / Int32 * "jute's type: 0, unused.",
    "scheme"    / Text  * 'How the credentials prove who it is: "digest", "ip", "x509", …',
    "auth"      / Token * "The credentials; of digest the user and the password.",
    xid=AUTH_XID, doc="Adds an identity to a connection. jute's AuthPacket.",
)  # fmt: skip
ZooKeeperAuthResponse = response("Auth", xid=AUTH_XID)

ZooKeeperSaslRequest = request("Sasl", 102,
    "token" / Token * "The client's SASL token.",
    doc="A step of a SASL exchange. jute's GetSASLRequest.",
)  # fmt: skip
ZooKeeperSaslResponse = response("Sasl",
    "token" / record(Token) * "The server's SASL token, null at the end and after a failure.",
)  # fmt: skip

ZooKeeperClientInfo = Struct(
    "auth_scheme" / Text * "How an identity was proved.",
    "user"        / Text * "Who it is.",
    doc="An identity of a connection; jute's ClientInfo.",
)

ZooKeeperWhoAmIRequest = request("WhoAmI", 107, doc="Asks for the identities of this connection (3.7).")
ZooKeeperWhoAmIResponse = response("WhoAmI",
    "client_info" / record(Nullable(Array(ZooKeeperClientInfo))) * "The identities.",
)  # fmt: skip
