"""The Apache Kafka wire protocol, typed and exact.

    from coordwire.messages import HeartbeatRequest
    body = HeartbeatRequest(group_id="payments", generation_id=3, member_id="m").encode(version=4)
    HeartbeatRequest.decode(body, version=4)

Messages are plain dataclasses for all versions; the version is an argument. Whole frames: `encode_request`,
`decode_request`, `encode_response`, `decode_response`. A conversation without its socket: `Connection`.
Bytes are untrusted: every refusal is a `CoordwireError` that says where, what and why, and `limits` bounds
what a decode may cost. Names that need message modules are imported when they are first used.
"""

from typing import TYPE_CHECKING

from coordwire._lazy import exports
from coordwire._speedups import implementation
from coordwire.errors import (
    CodecUnavailable,
    CoordwireError,
    CorruptBatch,
    DecodeError,
    Deviation,
    EncodeError,
    LimitExceeded,
    Malformed,
    NotInVersion,
    OutOfRange,
    Truncated,
    UnknownApi,
    UnreadableRange,
    UnsupportedVersion,
    WrongType,
)
from coordwire.limits import limits
from coordwire.messages import find_message

if TYPE_CHECKING:
    from coordwire.codec import Message, Request, Response
    from coordwire.connection.connection import Connection, Role
    from coordwire.connection.events import (
        ConnectionClosed,
        ConnectionFailed,
        Event,
        FrameRefused,
        RequestReceived,
        ResponseReceived,
        SentRequest,
        TokenReceived,
        VersionsRefused,
        is_response_to,
    )
    from coordwire.connection.state import ConnectionState
    from coordwire.embedded import open_embedded
    from coordwire.enums import ErrorCode
    from coordwire.frames import (
        RequestFrame,
        ResponseFrame,
        decode_request,
        decode_response,
        encode_request,
        encode_response,
    )
    from coordwire.jsonform import from_json, to_json
    from coordwire.spans import explain
    from coordwire.versions import ApiKey, VersionRange, negotiate

__version__ = "0.1.0"

_LAZY = {
    "ApiKey": "versions",
    "Connection": "connection.connection",
    "ConnectionClosed": "connection.events",
    "ConnectionFailed": "connection.events",
    "ConnectionState": "connection.state",
    "ErrorCode": "enums",
    "Event": "connection.events",
    "FrameRefused": "connection.events",
    "Message": "codec",
    "Request": "codec",
    "RequestFrame": "frames",
    "RequestReceived": "connection.events",
    "Response": "codec",
    "ResponseFrame": "frames",
    "ResponseReceived": "connection.events",
    "Role": "connection.connection",
    "SentRequest": "connection.events",
    "TokenReceived": "connection.events",
    "VersionRange": "versions",
    "VersionsRefused": "connection.events",
    "decode_request": "frames",
    "decode_response": "frames",
    "encode_request": "frames",
    "encode_response": "frames",
    "explain": "spans",
    "from_json": "jsonform",
    "is_response_to": "connection.events",
    "negotiate": "versions",
    "open_embedded": "embedded",
    "to_json": "jsonform",
}

__all__ = [
    "ApiKey",
    "CodecUnavailable",
    "Connection",
    "ConnectionClosed",
    "ConnectionFailed",
    "ConnectionState",
    "CoordwireError",
    "CorruptBatch",
    "DecodeError",
    "Deviation",
    "EncodeError",
    "ErrorCode",
    "Event",
    "FrameRefused",
    "LimitExceeded",
    "Malformed",
    "Message",
    "NotInVersion",
    "OutOfRange",
    "Request",
    "RequestFrame",
    "RequestReceived",
    "Response",
    "ResponseFrame",
    "ResponseReceived",
    "Role",
    "SentRequest",
    "TokenReceived",
    "Truncated",
    "UnknownApi",
    "UnreadableRange",
    "UnsupportedVersion",
    "VersionRange",
    "VersionsRefused",
    "WrongType",
    "decode_request",
    "decode_response",
    "encode_request",
    "encode_response",
    "explain",
    "find_message",
    "from_json",
    "implementation",
    "is_response_to",
    "limits",
    "negotiate",
    "open_embedded",
    "to_json",
]

__getattr__, __dir__ = exports(__name__, __all__, _LAZY)
