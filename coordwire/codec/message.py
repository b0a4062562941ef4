"""Struct, Message, Request and Response: the base classes of all generated classes.

Strategy: `decode` and `encode` call the version's function of the fast back end, which `backends.py` chooses;
if that declines, the interpreter goes over the same bytes or value and words the refusal. Rules: only errors
of this package are raised; where the interpreter accepts the input, its result counts.
"""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Any, ClassVar, Generic

from coordwire._display import RichDisplay
from coordwire.codec.backends import Decode, Encode, decoder, encoder, serve
from coordwire.codec.class_docs import ClassSignature
from coordwire.codec.declarations import DataclassAttribute, as_class, owner
from coordwire.codec.fields import LEAF_FACTOR, NEVER, FieldTable
from coordwire.errors import Deviation, EncodeError, NotInVersion, UnsupportedVersion, WrongType
from coordwire.limits import current

if TYPE_CHECKING:
    from typing_extensions import TypeVar  # which type checkers bring along: `default` is Python 3.13's

    R = TypeVar("R", bound="Response", covariant=True, default="Response")
    M_co = TypeVar("M_co", bound="Message", covariant=True, default="Message")

    class _ResponseClass:
        """`response_class` as a type checker sees it: it depends on the request's class."""

        def __get__(self, request: object, owner: type[Request[R]]) -> type[R]: ...
else:
    from typing import TypeVar

    R = TypeVar("R", bound="Response", covariant=True)
    M_co = TypeVar("M_co", bound="Message", covariant=True)

M = TypeVar("M", bound="Message")

Buffer = bytes | bytearray | memoryview


class Struct(RichDisplay):
    """A group of fields inside messages: a plain slotted dataclass, the same in all versions.

    tags: unknown tagged fields by number, with their bytes, kept and written back; None for none. The wire
    can't tell an empty dict from that: it is written as none, and comes back as None.

    The body of a generated class declares its fields' wire form too, see `declarations.py`. Said of the whole
    class: flexible, the first version with tagged fields and compact lengths; short_counts: its counts are
    int16.

    >>> from coordwire.messages.join_group import JoinGroupRequestProtocol
    >>> JoinGroupRequestProtocol(name="range", metadata=b"")
    JoinGroupRequestProtocol(name='range', metadata=b'', tags=None)
    """

    __slots__ = ()
    _flexible_: ClassVar[int] = NEVER
    _short_counts_: ClassVar[bool] = False
    _layout_: ClassVar[FieldTable]
    if TYPE_CHECKING:
        tags: dict[int, bytes] | None
    else:
        __signature__ = ClassSignature()
        __init__ = DataclassAttribute()
        __repr__ = DataclassAttribute()
        __eq__ = DataclassAttribute()  # which also makes `__hash__` None
        __match_args__ = DataclassAttribute()
        __dataclass_fields__ = DataclassAttribute()
        __dataclass_params__ = DataclassAttribute()
        if sys.version_info >= (3, 13):
            __replace__ = DataclassAttribute()

    def __init_subclass__(cls, *, flexible: int = NEVER, short_counts: bool = False) -> None:
        super().__init_subclass__()
        if flexible != NEVER:
            cls._flexible_ = flexible
        if short_counts:
            cls._short_counts_ = short_counts


class Message(Struct):
    """A unit of its own: one request, response, header or data type, for all its versions.

    api_key: its conversation, None for headers and data types; direction: "request", "response", "header" or
    "data"; versions: those that this package knows; flexible_versions: those with tagged fields.

        >>> from coordwire.messages import ConsumerProtocolSubscription
        >>> body = ConsumerProtocolSubscription(topics=["orders"]).encode(version=0)
        >>> ConsumerProtocolSubscription.decode(body, version=0).topics
        ['orders']
        >>> ConsumerProtocolSubscription.direction, ConsumerProtocolSubscription.versions
        ('data', range(0, 4))
    """

    __slots__ = ()
    api_key: ClassVar[int | None] = None
    direction: ClassVar[str] = "data"
    versions: ClassVar[range]
    flexible_versions: ClassVar[range]
    _decoders_: ClassVar[dict[int, Decode]]
    _encoders_: ClassVar[dict[int, Encode]]

    def __init_subclass__(
        cls,
        *,
        versions: tuple[int, int] | None = None,
        flexible: int = NEVER,
        api_key: int | None = None,
        direction: str | None = None,
        short_counts: bool = False,
    ) -> None:
        super().__init_subclass__(flexible=flexible, short_counts=short_counts)
        if versions is not None:
            first, stop = versions[0], versions[1] + 1
            cls.versions = range(first, stop)
            cls.flexible_versions = range(min(max(flexible, first), stop), stop)
            cls.api_key = api_key
            if direction is not None:
                cls.direction = direction
        elif hasattr(cls, "versions"):  # the class that is used, see `wire_class`
            serve(cls, Message)

    @classmethod
    def decode(
        cls: type[M],
        data: Buffer,
        *,
        version: int,
        strict: bool = True,
        deviations: list[Deviation] | None = None,
    ) -> M:
        """The message that these bytes hold: all of them, from the first.

        version: the api version that the header says (for data types, what their int16 prefix says).
        strict=False accepts what Apache Kafka's own decoder accepts, with its value, and appends each
        `Deviation` to `deviations`, the first 1,000 at most and then one that says so. Positions count from
        the start of `data`.

        Raises `UnsupportedVersion`, or another `DecodeError` with position, path, reason and, in `partial`,
        the message as far as it was read.
        """
        if not isinstance(data, bytes):
            data = bytes(memoryview(data))
        # `_decode_at` once more: small messages would feel the call
        budget = current()
        room = budget.memory + (budget.memory_factor - LEAF_FACTOR) * len(data)
        try:
            decode = cls._decoders_.get(version) or decoder(cls, version)
            message, pos = decode(data, 0, budget.elements, room)
            if pos == len(data):
                return as_class(cls, message)
        except Exception:  # whatever it was: the interpreter words it
            pass
        return cls._read_exactly(data, 0, version, strict, deviations)

    @classmethod
    def _decode_at(
        cls: type[M], data: bytes, start: int, version: int, strict: bool, deviations: list[Deviation] | None
    ) -> M:
        """`decode` of what follows `start`; positions count from the start of `data`."""
        budget = current()
        room = budget.memory + (budget.memory_factor - LEAF_FACTOR) * (len(data) - start)
        try:
            decode = cls._decoders_.get(version) or decoder(cls, version)
            message, pos = decode(data, start, budget.elements, room)
            if pos == len(data):
                return as_class(cls, message)
        except Exception:  # whatever it was: the interpreter words it
            pass
        return cls._read_exactly(data, start, version, strict, deviations)

    @classmethod
    def _read_exactly(
        cls: type[M], data: bytes, start: int, version: int, strict: bool, deviations: list[Deviation] | None
    ) -> M:
        """What the interpreter makes of bytes that the fast back end declines."""
        if version not in owner(cls).versions:
            raise UnsupportedVersion(no_version(cls, version), start)
        from coordwire.codec.interpreter.decoder import Reader

        return Reader(data, start, version, strict=strict, deviations=deviations).message(cls)

    def encode(self, *, version: int) -> bytes:
        """The message's bytes in one api version.

        Raises `NotInVersion` if a field is set that the version can't carry (and that isn't ignorable) or the
        message has no such version, `OutOfRange` or `WrongType` if a value doesn't fit its field.
        """
        try:
            return (self._encoders_.get(version) or encoder(type(self), version))(self)
        except Exception:  # whatever it was: the interpreter words it
            pass
        return self._write_exactly(version)

    def _write_exactly(self, version: int) -> bytes:
        """What the interpreter makes of a message that the fast back end gives up."""
        if version not in owner(type(self)).versions:
            raise refused_version(type(self), version)
        from coordwire.codec.interpreter.encoder import Writer

        return Writer(version).message(self)


class Response(Message):
    """The base class of responses: those with an api key.

    >>> from coordwire import Response
    >>> from coordwire.messages import HeartbeatResponse
    >>> issubclass(HeartbeatResponse, Response), HeartbeatResponse.api_key
    (True, 12)
    """

    __slots__ = ()
    api_key: ClassVar[int]
    direction: ClassVar[str] = "response"
    _answers_: ClassVar[type[Request[Any]]]

    def __init_subclass__(cls, *, answers: type[Request[Any]] | None = None, **facts: Any) -> None:
        super().__init_subclass__(**facts)
        if answers is not None:
            cls._answers_ = answers
        if "_answers_" in vars(cls):
            cls._answers_.response_class = cls  # type: ignore[assignment]


class Request(Message, Generic[R]):
    """The base class of requests: `JoinGroupRequest` is a `Request[JoinGroupResponse]`.

    Those with an api key; those of other dialects may have no response.
    response_class: the class of the response.

        >>> from coordwire.messages import HeartbeatRequest
        >>> HeartbeatRequest.api_key, HeartbeatRequest.response_class.__name__
        (12, 'HeartbeatResponse')
    """

    __slots__ = ()
    api_key: ClassVar[int]
    direction: ClassVar[str] = "request"
    response_class: ClassVar[_ResponseClass]


def no_version(cls: type[Message], version: object) -> str:
    """The reason to refuse a version that a message doesn't have."""
    if not isinstance(version, int):
        return f"expected an int as version, got {type(version).__name__}"
    return f"{cls.__name__} has no version {version}: it has {cls.versions[0]} to {cls.versions[-1]}"


def refused_version(cls: type[Message], version: object) -> EncodeError:
    """The error for a version in which a message can't be written."""
    return (NotInVersion if isinstance(version, int) else WrongType)(no_version(cls, version))
