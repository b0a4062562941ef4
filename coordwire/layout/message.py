"""Struct and Message: what every generated class can do.

Strategy: `decode` and `encode` call the generated function of the version; if that refuses, the interpreter
goes over the same bytes or value and words the refusal. Where the native engine runs, each class has its
objects in their places, which try it first and hand on what it won't do. Rules: no error but ours leaves; the
interpreter is the judge, so that where it finds nothing wrong its result stands.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any, ClassVar, TypeVar

from coordwire._speedups import native
from coordwire.budget import current
from coordwire.errors import NotInVersion, Oddity, UnsupportedVersion
from coordwire.layout.program import message_program
from coordwire.layout.tables import LEAF_FACTOR, Layout

M = TypeVar("M", bound="Message")

Buffer = bytes | bytearray | memoryview


class Struct:
    """A group of fields inside messages: a plain slotted dataclass, the same in all versions.

    tags: unknown tagged fields by number, with their bytes; None for none. The wire can't tell an empty dict
    from that: it is written as none, and comes back as None.
    """

    __slots__ = ()
    _layout_: ClassVar[Layout]
    if TYPE_CHECKING:
        tags: dict[int, bytes] | None


class Message(Struct):
    """What stands by itself: one request, response, header or data type, for all its versions.

    api_key: its conversation, None for headers and data types; direction: "request", "response", "header" or
    "data"; versions: those that this package knows; flexible_versions: those with tagged fields.
    """

    __slots__ = ()
    api_key: ClassVar[int | None]
    direction: ClassVar[str]
    versions: ClassVar[range]
    flexible_versions: ClassVar[range]
    _decoders_: ClassVar[Mapping[int, Callable[[bytes, int, int, int], tuple[Message, int]]]]
    _encoders_: ClassVar[Mapping[int, Callable[[Any], bytes]]]

    def __init_subclass__(cls) -> None:
        """Let the native engine serve the class first, where it runs: what it won't do it hands on to the
        functions below. A subclass that has its own is left alone."""
        super().__init_subclass__()
        if native is None or not hasattr(cls, "versions"):
            return
        stop = min(cls.versions.stop, 256)  # versions beyond, which nobody has, are Python's
        for name, make in (
            ("decode", native.Decoder),
            ("_decode_at", native.Decoder),
            ("encode", native.Encoder),
        ):
            python = vars(Message)[name]
            held = next(vars(each)[name] for each in cls.__mro__ if name in vars(each))
            if held is python or isinstance(held, make):
                function = getattr(python, "__func__", python)
                setattr(cls, name, make(cls, message_program, function, stop, name == "_decode_at"))

    @classmethod
    def decode(
        cls: type[M],
        data: Buffer,
        *,
        version: int,
        lenient: bool = False,
        oddities: list[Oddity] | None = None,
    ) -> M:
        """The message that these bytes hold: all of them, from the first.

        version: the api version that the header says (for data types, what their int16 prefix says).
        lenient: accept what Apache Kafka's own decoder accepts, with its value, and append each `Oddity` to
        `oddities`. Offsets count from the start of `data`.

        Raises `UnsupportedVersion`, or another `DecodeError` with offset, path, reason and, in `partial`,
        the message as far as it was read.
        """
        if not isinstance(data, bytes):
            data = bytes(memoryview(data))
        # `_decode_at` once more: small messages would feel the call
        decoder = cls._decoders_.get(version)
        if decoder is not None:
            budget = current()
            room = budget.memory + (budget.memory_factor - LEAF_FACTOR) * len(data)
            try:
                message, pos = decoder(data, 0, budget.elements, room)
                if pos == len(data):
                    return as_class(cls, message)
            except Exception:  # whatever it was: the interpreter words it
                pass
        return cls._judge(data, 0, version, lenient, oddities)

    @classmethod
    def _decode_at(
        cls: type[M], data: bytes, start: int, version: int, lenient: bool, oddities: list[Oddity] | None
    ) -> M:
        """`decode` of what stands behind `start`; offsets count from the start of `data`."""
        decoder = cls._decoders_.get(version)
        if decoder is not None:
            budget = current()
            room = budget.memory + (budget.memory_factor - LEAF_FACTOR) * (len(data) - start)
            try:
                message, pos = decoder(data, start, budget.elements, room)
                if pos == len(data):
                    return as_class(cls, message)
            except Exception:  # whatever it was: the interpreter words it
                pass
        return cls._judge(data, start, version, lenient, oddities)

    @classmethod
    def _judge(
        cls: type[M], data: bytes, start: int, version: int, lenient: bool, oddities: list[Oddity] | None
    ) -> M:
        """What the interpreter makes of bytes that the generated decoder doesn't like."""
        if version not in cls._decoders_:
            raise UnsupportedVersion(f"{cls.__name__} has no version {version}: {_known(cls)}", start)
        from coordwire.layout.reader import Reader

        return Reader(data, start, version, lenient=lenient, oddities=oddities).message(cls)

    def encode(self, version: int) -> bytes:
        """The message's bytes in one api version.

        Raises `NotInVersion` if a field is set that the version can't carry (and that isn't ignorable) or the
        message has no such version, `OutOfRange` or `WrongType` if a value doesn't fit its field.
        """
        try:
            return self._encoders_[version](self)
        except Exception:  # whatever it was: the interpreter words it
            pass
        if version not in self._encoders_:
            raise NotInVersion(f"{type(self).__name__} has no version {version}: {_known(type(self))}")
        from coordwire.layout.writer import Writer

        return Writer(version).message(self)


def as_class(cls: type[M], message: Message) -> M:
    """What was read, as an object of the class that was asked: it may be a user's subclass."""
    if message.__class__ is cls:
        return message
    found = object.__new__(cls)
    for name in (*(field.name for field in cls._layout_.fields), "tags"):
        setattr(found, name, getattr(message, name))
    return found


def _known(cls: type[Message]) -> str:
    return f"it has {cls.versions[0]} to {cls.versions[-1]}"
