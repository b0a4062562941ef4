"""The engines that must agree: native, compiled Python, the interpreter, and construct running the
declaration.

Strategy: construct's values are Containers; two small functions turn messages into them and back, by the
field tables. Rule: each engine is called by itself, since `Message.decode` and `encode` use several
of them.
"""

from __future__ import annotations

import functools
import struct
from collections.abc import Callable
from typing import Any

from construct import ConstructError, Container
from hypothesis import given, note, settings
from hypothesis.strategies import SearchStrategy

from coordwire._speedups import native
from coordwire.codec import Message, Struct
from coordwire.codec.interpreter.decoder import Reader
from coordwire.codec.interpreter.encoder import Writer
from coordwire.codec.program import message_program
from coordwire.limits import current
from coordwire.messages import __all__ as names
from coordwire.messages import find_message
from schemas._generate.walk import modules
from schemas.vocabulary import Message as Declaration
from tests.compiled import compiled_decoder, compiled_encoder

MESSAGES = [find_message(name) for name in names if name != "find_message"]


def name_of(value: object) -> str:
    """What a parametrised test calls a message."""
    return value.__name__ if isinstance(value, type) else str(value)


@functools.cache
def _declarations() -> dict[str, Declaration]:
    return {row.name: row.message for module in modules() for row in module.messages if row.message}


def declaration(cls: type[Message]) -> Declaration:
    """The schema that the class was generated from."""
    return _declarations()[cls.__name__]


def to_container(value: Any) -> Any:
    """What construct builds from."""
    if isinstance(value, Struct):
        fields = {
            field.name: to_container(getattr(value, field.name)) for field in type(value)._layout_.fields
        }
        return Container(fields, tags=value.tags)
    return [to_container(element) for element in value] if isinstance(value, list) else value


def from_container(cls: type[Struct], by_name: Any) -> Any:
    """What construct parsed, as a message."""
    value = cls(tags=by_name.tags)  # type: ignore[call-arg]
    for field in cls._layout_.fields:
        content = by_name[field.name]
        if field.struct is not None and content is not None:
            struct = field.struct
            content = (
                [from_container(struct, element) for element in content]
                if field.array
                else from_container(struct, content)
            )
        setattr(value, field.name, content)
    return value


def fast_decode(cls: type[Message], version: int, data: bytes) -> Any:
    """What the compiled decoder says: a message, or None where it refuses in whatever way."""
    memory = current().memory_for(len(data)) - 4 * len(data)
    try:
        message, end = compiled_decoder(cls, version)(data, 0, current().elements, memory)
    except Exception:
        return None
    return message if end == len(data) else None


def native_decode(cls: type[Message], version: int, data: bytes) -> Any:
    """What the native engine says, as `fast_decode`; without it, the compiled decoder again."""
    program = message_program(cls, version)
    if program is None:
        assert native is None, f"{cls.__name__} v{version} has no program"
        return fast_decode(cls, version, data)
    message = program.decode(data, 0, current().elements, current().memory_for(len(data)) - 4 * len(data))
    return None if message is None or message[1] != len(data) else message[0]


def native_encode(cls: type[Message], version: int, message: object) -> bytes | None:
    """What the native engine says: None where it gives up; without it, the compiled encoder."""
    program = message_program(cls, version)
    if program is not None:
        return program.encode(message)
    assert native is None, f"{cls.__name__} v{version} has no program"
    try:
        return compiled_encoder(cls, version)(message)
    except Exception:
        return None


def check_bytes(cls: type[Message], version: int, wire: bytes) -> Message:
    """The message that all engines read, and from which all of them write the same bytes.

    They are those that came, but for tagged fields at their default, which only make them longer.
    """
    message = Reader(wire, 0, version).message(cls)
    assert cls.decode(wire, version=version) == message
    assert fast_decode(cls, version, wire) == message
    assert native_decode(cls, version, wire) == message
    assert schema_decode(cls, version, wire) == message
    data = message.encode(version=version)
    assert compiled_encoder(cls, version)(message) == data
    assert native_encode(cls, version, message) == data
    assert Writer(version).message(message) == data
    assert schema_encode(version, message) == data
    assert data == wire or (len(data) < len(wire) and cls.decode(data, version=version) == message)
    decoded: Message = message
    return decoded


def schema_decode(cls: type[Message], version: int, data: bytes) -> Any:
    """What construct says, running the declaration: a message, or None where it refuses."""
    try:
        by_name = declaration(cls).parse(data, version=version)
    except (ConstructError, UnicodeDecodeError):
        return None
    return from_container(cls, by_name)


def schema_encode(version: int, message: Message) -> bytes:
    """The bytes that construct builds."""
    wire: bytes = declaration(type(message)).build(to_container(message), version=version)
    return wire


def same(first: object, second: object) -> bool:
    """Equal, a NaN like another of the same bits."""
    return first == second or repr(_plain(first)) == repr(_plain(second))


def _plain(value: object) -> object:
    """The value as tuples, whose text says all of it; unknown tags have no order."""
    if isinstance(value, list):
        return [_plain(element) for element in value]
    if isinstance(value, dict):
        return sorted(value.items())
    if isinstance(value, float):
        return struct.pack(">d", value)
    if isinstance(value, Struct):
        names = [field.name for field in value._layout_.fields]
        return type(value), [_plain(getattr(value, name)) for name in (*names, "tags")]
    return value


def in_every_version(
    cls: type[Message],
    strategy: Callable[..., SearchStrategy[Any]],
    check: Callable[[type[Message], int, Any], None],
    *,
    share: int,
) -> None:
    """Check some values of each version: one `share`th of the profile's examples."""
    limited = settings(max_examples=max(settings().max_examples // share, 2), database=None)
    for version in cls.versions:
        _one_version(cls, version, strategy(cls, version=version), check, limited)


def _one_version(
    cls: type[Message],
    version: int,
    values: SearchStrategy[Any],
    check: Callable[[type[Message], int, Any], None],
    limited: settings,
) -> None:
    @limited
    @given(values)
    def run(value: Any) -> None:
        note(f"{cls.__name__} v{version}")
        check(cls, version, value)

    run()
