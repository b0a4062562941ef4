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

from dataclasses import dataclass, field
from typing import NamedTuple


def counted(count: int, noun: str, form: str = "") -> str:
    """A number with its noun, for the text of an error: "1 byte", "2 batches". form: the number's format."""
    plural = "" if count == 1 else "es" if noun.endswith("ch") else "s"
    return f"{count:{form}} {noun}{plural}"


class CoordwireError(Exception):
    """The base of all errors of coordwire: a `reason` in words."""

    def __init__(self, reason: str) -> None:
        super().__init__(reason)
        self.reason = reason


class DecodeError(CoordwireError):
    """Bytes that were refused.

    reason: why, in words.
    position: where, in bytes from the start of what was given (of a frame: from after its size prefix).
    path: what, as a field path ("topics[3].partitions[0].metadata"); "" for the whole.
    partial: the value as far as it was decoded, where there is one.
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
    """

    missing = 0

    def __reduce__(self) -> tuple[object, ...]:
        return *super().__reduce__(), {"missing": self.missing}


class Malformed(DecodeError):
    """The bytes are there and say something impossible."""


class CorruptBatch(DecodeError):
    """A record batch fails its checksum or its own arithmetic."""


class UnknownApi(DecodeError):
    """An api key that this package has no message for."""


class UnsupportedVersion(DecodeError):
    """An api version that this package doesn't know."""


class LimitExceeded(DecodeError):
    """Valid perhaps, but over one of the budgets that `coordwire.limits` sets."""


class EncodeError(CoordwireError):
    """A value that can't be written.

    reason: why, in words.
    path: the field ("topics[3].name"); "" for the whole.
    """

    def __init__(self, reason: str, path: str = "") -> None:
        super().__init__(reason)
        self.path = path

    def __str__(self) -> str:
        return f"{self.path}: {self.reason}" if self.path else self.reason

    def __reduce__(self) -> tuple[object, ...]:
        return type(self), (self.reason, self.path)


class NotInVersion(EncodeError):
    """A field is set, and not ignorable, that the version can't carry; or the message has no such version."""


class OutOfRange(EncodeError):
    """A number or a length beyond what its type on the wire holds."""


class WrongType(EncodeError):
    """A value of a Python type that the field doesn't take."""


class CodecUnavailable(CoordwireError):
    """A compression codec whose library isn't installed; the reason names the extra that brings it."""


@dataclass(frozen=True, slots=True)
class Deviation:
    """Something that a decode with strict=False tolerated, as Apache Kafka's own decoder does.

    reason: what was odd; position: where, in bytes as for `DecodeError`; path: the field.
    unread: how many bytes no field holds as they were, such as those after the message.
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
