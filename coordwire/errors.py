"""Every error that coordwire raises, as one tree.

    CoordwireError
    ├── DecodeError            bytes that were refused: reason, position, path, partial
    │   ├── Truncated          the bytes end before the value does
    │   ├── Malformed          the bytes are there and say something impossible
    │   ├── CorruptBatch       a record batch fails its checksum or its own arithmetic
    │   ├── UnknownApi         an api key that no Kafka has
    │   ├── UnsupportedVersion an api version that this package doesn't know
    │   └── LimitExceeded      valid perhaps, but over a budget (see coordwire.limits)
    ├── EncodeError            a value that can't be written: reason, path
    │   ├── NotInVersion       a field is set that the version can't carry
    │   ├── OutOfRange         a number or length beyond its type
    │   └── WrongType          a value of a Python type that the field doesn't take
    └── CodecUnavailable       a compression codec whose library isn't installed

Rule: decoding untrusted bytes raises nothing outside this tree, encoding values nothing outside
`EncodeError`. A `DecodeError` always says where (byte position), what (field path) and why.
"""

from __future__ import annotations

__all__ = [
    "CodecUnavailable",
    "CoordwireError",
    "CorruptBatch",
    "DecodeError",
    "Deviation",
    "EncodeError",
    "LimitExceeded",
    "Malformed",
    "NotInVersion",
    "OutOfRange",
    "Truncated",
    "UnknownApi",
    "UnreadableRange",
    "UnsupportedVersion",
    "WrongType",
]

from dataclasses import field
from typing import NamedTuple

from coordwire._dataclasses import dataclass


def counted(count: int, noun: str, form: str = "") -> str:
    """A number with its noun, for the text of an error: "1 byte", "2 batches". form: the number's format."""
    plural = "" if count == 1 else "es" if noun.endswith("ch") else "s"
    return f"{count:{form}} {noun}{plural}"


class CoordwireError(Exception):
    """The base of all errors of coordwire: a `reason` in words.

    >>> from coordwire import CoordwireError, decode_request
    >>> try:
    ...     decode_request(b"GET / HTTP/1.1")
    ... except CoordwireError as error:
    ...     print(type(error).__name__)
    LimitExceeded
    """

    def __init__(self, reason: str) -> None:
        super().__init__(reason)
        self.reason = reason


class DecodeError(CoordwireError):
    """Bytes that were refused.

    reason: why, in words.
    position: where, in bytes from the start of what was given (of a frame: from after its size prefix).
    path: what, as a field path ("topics[3].partitions[0].metadata"); "" for the whole.
    partial: the value as far as it was decoded, where there is one.

        >>> from coordwire import DecodeError
        >>> from coordwire.messages import LeaveGroupRequest
        >>> try:
        ...     LeaveGroupRequest.decode(bytes.fromhex("0001 67 0009 6d"), version=0)
        ... except DecodeError as error:
        ...     print(error.position, error.path, error.reason, sep="; ")
        5; member_id; string needs 9 bytes, 1 left
    """

    def __init__(self, reason: str, position: int = 0, path: str = "", partial: object = None) -> None:
        super().__init__(reason)
        self.position = position
        self.path = path
        self.partial = partial

    def __str__(self) -> str:
        where = f" in {self.path}" if self.path else ""
        return f"{self.reason} at byte {self.position}{where}"

    def __reduce__(self) -> tuple[object, ...]:
        return type(self), (self.reason, self.position, self.path, self.partial)


class Truncated(DecodeError):
    """The bytes end before the value does.

    missing: the fewest bytes that have to follow; 0 where that is not known.

        >>> from coordwire import Truncated
        >>> from coordwire.messages import HeartbeatResponse
        >>> try:
        ...     HeartbeatResponse.decode(b"\\0", version=0)
        ... except Truncated as error:
        ...     print(error, "missing:", error.missing)
        int16 needs 2 bytes, 1 left at byte 0 in error_code missing: 1
    """

    missing = 0

    def __reduce__(self) -> tuple[object, ...]:
        return *super().__reduce__(), {"missing": self.missing}


class Malformed(DecodeError):
    """The bytes are there and say something impossible.

    >>> from coordwire import Malformed
    >>> from coordwire.messages import FindCoordinatorRequest
    >>> try:
    ...     FindCoordinatorRequest.decode(b"\\xff\\xfe", version=0)
    ... except Malformed as error:
    ...     print(error)
    the length of a string is -2 at byte 0 in key
    """


class CorruptBatch(DecodeError):
    """A record batch fails its checksum or its own arithmetic.

    >>> from coordwire import CorruptBatch
    >>> from coordwire.records import Record, batches, encode_batch
    >>> data = encode_batch([Record(value=b"paid")], base_offset=0)
    >>> try:
    ...     [list(batch) for batch in batches(data[:-1] + b"?")]
    ... except CorruptBatch as error:
    ...     print(error.reason)
    the CRC-32C is 0x028058d9, the batch says 0x6c702d4c
    """


class UnknownApi(DecodeError):
    """An api key that this package has no message for.

    >>> from coordwire import UnknownApi, decode_request
    >>> try:
    ...     decode_request(bytes.fromhex("0000000a 03e7 0000 00000001 ffff"))
    ... except UnknownApi as error:
    ...     print(error)
    api key 999 is unknown at byte 0 in request_api_key
    """


class UnsupportedVersion(DecodeError):
    """An api version that this package doesn't know.

    >>> from coordwire import UnsupportedVersion
    >>> from coordwire.messages import HeartbeatRequest
    >>> try:
    ...     HeartbeatRequest.decode(b"", version=9)
    ... except UnsupportedVersion as error:
    ...     print(error.reason)
    HeartbeatRequest has no version 9: it has 0 to 4
    """


class LimitExceeded(DecodeError):
    """Valid perhaps, but over a budget that `coordwire.limits` sets, or a count that Kafka refuses.

    >>> from coordwire import LimitExceeded, limits
    >>> from coordwire.messages import DescribeGroupsRequest
    >>> body = DescribeGroupsRequest(groups=["a", "b", "c"]).encode(version=0)
    >>> with limits(elements=2):
    ...     try:
    ...         DescribeGroupsRequest.decode(body, version=0)
    ...     except LimitExceeded as error:
    ...         print(error)
    3 more elements would exceed the budget of elements at byte 0 in groups
    """


class EncodeError(CoordwireError):
    """A value that can't be written.

    reason: why, in words.
    path: the field ("topics[3].name"); "" for the whole.

        >>> from coordwire import EncodeError
        >>> from coordwire.messages import HeartbeatRequest
        >>> try:
        ...     HeartbeatRequest(generation_id=1 << 31).encode(version=4)
        ... except EncodeError as error:
        ...     print(error.path)
        generation_id
    """

    def __init__(self, reason: str, path: str = "") -> None:
        super().__init__(reason)
        self.path = path

    def __str__(self) -> str:
        return f"{self.path}: {self.reason}" if self.path else self.reason

    def __reduce__(self) -> tuple[object, ...]:
        return type(self), (self.reason, self.path)


class NotInVersion(EncodeError):
    """A field is set, and not ignorable, that the version can't carry; or the message has no such version.

    >>> from coordwire import NotInVersion
    >>> from coordwire.messages import HeartbeatRequest
    >>> try:
    ...     HeartbeatRequest(group_instance_id="till-3").encode(version=2)
    ... except NotInVersion as error:
    ...     print(error)
    group_instance_id: set, but not in version 2
    """


class OutOfRange(EncodeError):
    """A number or a length beyond what its type on the wire holds.

    >>> from coordwire import OutOfRange
    >>> from coordwire.messages import HeartbeatRequest
    >>> try:
    ...     HeartbeatRequest(generation_id=1 << 31).encode(version=4)
    ... except OutOfRange as error:
    ...     print(error)
    generation_id: 2147483648 is beyond int32
    """


class WrongType(EncodeError):
    """A value of a Python type that the field doesn't take.

    >>> from coordwire import WrongType
    >>> from coordwire.messages import HeartbeatRequest
    >>> try:
    ...     HeartbeatRequest(group_id=b"payments").encode(version=4)
    ... except WrongType as error:
    ...     print(error)
    group_id: expected str, got bytes
    """


class CodecUnavailable(CoordwireError):
    """A compression codec whose library isn't installed; the reason names the extra that brings it.

    >>> from coordwire import CodecUnavailable, CoordwireError
    >>> issubclass(CodecUnavailable, CoordwireError)
    True
    """


@dataclass(frozen=True, slots=True)
class Deviation:
    """Something that a decode with strict=False tolerated, as Apache Kafka's own decoder does.

    reason: what was odd; position: where, in bytes as for `DecodeError`; path: the field.
    unread: how many bytes no field holds as they were, such as those after the message.

        >>> from coordwire.messages import HeartbeatResponse
        >>> deviations = []
        >>> HeartbeatResponse.decode(b"\\0\\0more", version=0, strict=False, deviations=deviations)
        HeartbeatResponse(throttle_time_ms=0, error_code=0, tags=None)
        >>> deviations
        [Deviation(reason='4 trailing bytes', position=2, path='')]
    """

    reason: str
    position: int
    path: str
    unread: int = field(default=0, compare=False, repr=False)


class UnreadableRange(NamedTuple):
    """Bytes that could not be read: of a file, of a stream, or of a record set.

    position, length: which, in bytes from the start of what was read; reason: why, in words; data: what is
    kept of them (of a capture the first 64 KB), b"" where they can be found at their position.

    The other fields say where the bytes belong, as far as the reader knows. file: the name of the file or
    capture. flow: the direction of a connection in a capture, if `position` counts from the start of its
    stream and not of the file. time_ns: of the last of the bytes, in nanoseconds since 1970 UTC. log,
    log_partition: which of a coordinator's logs, and its partition. packet, first_packet: the packets of a
    capture that hold the last and the first of the bytes, counted from 1 as Wireshark does; tcp_stream: the
    connection's number, as Wireshark's tcp.stream.

        >>> from coordwire import UnreadableRange
        >>> from coordwire.records import Record, batches, encode_batch
        >>> data = encode_batch([Record(value=b"paid")], base_offset=0)
        >>> parts = batches(bytes(10) + data, on_error="report")
        >>> [part for part in parts if isinstance(part, UnreadableRange)]
        [<UnreadableRange: 10 bytes at byte 0: a batch can't have a length of 0 bytes at byte 8 in length>]
    """

    position: int
    length: int
    reason: str
    data: bytes = b""
    file: str = ""
    flow: str = ""
    time_ns: int | None = None
    log: str | None = None
    log_partition: int | None = None
    packet: int | None = None
    first_packet: int | None = None
    tcp_stream: int | None = None

    def __repr__(self) -> str:
        """The range, without its bytes, in which a secret may be."""
        place = f" of {self.file!r}" if self.file else ""
        bytes_at = f"{counted(self.length, 'byte')} at byte {self.position}"
        return f"<{type(self).__name__}{place}: {bytes_at}: {self.reason}>"
