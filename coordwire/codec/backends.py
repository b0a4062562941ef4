"""The back ends of a field table, and which of them serves: the only place where that is decided.

    C engine         `coordwire._speedups`, where it was built; runs the rows that `program.py` makes
    compiled Python  `compiler/`: straight-line code, one function a version and direction
    interpreter      `interpreter/`: exact, and alone in wording what is wrong

Strategy: with the C engine, each class has native objects as its `decode`, `_decode_at` and `encode`, which
hand on what they decline to the Python functions of `Message`; nothing is compiled. Without it, those
functions run compiled Python. What the fast back end declines goes to the interpreter, which decides. Rules:
codecs are made when a version is first used, and kept in the class: there are at most as many codecs as
versions. Two threads that make the same one do no harm: the first one kept serves both.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, TypeVar

from coordwire._speedups import native
from coordwire.codec.declarations import owner
from coordwire.codec.primitives import Refused
from coordwire.codec.program import message_program

if TYPE_CHECKING:
    from coordwire.codec.message import Message

Decode = Callable[[bytes, int, int, int], tuple[Any, int]]
"""(data, position, elements, memory) to the message and the position after it. elements, memory: budgets.
After any exception the interpreter has to look at the bytes."""

Encode = Callable[[Any], bytes]
"""A message to its bytes. After any exception the interpreter has to look at the message."""

F = TypeVar("F", bound=Callable[..., Any])

_MOST_VERSIONS = 256
"""Versions beyond, which no message has, are left to the Python functions."""


class _Programs(dict[int, F]):
    """What runs a class's native programs. It is pickled without them, where a class is pickled by value."""

    def __reduce__(self) -> Any:
        return type(self), ()


def serve(cls: type[Message], base: type[Message]) -> None:
    """Give a new class its back ends. base: `Message`, whose functions a native object replaces unless a
    subclass has its own."""
    if native is None:
        if not hasattr(cls, "_decoders_"):  # users' subclasses have the codecs of the generated class
            cls._decoders_, cls._encoders_ = {}, {}
        return
    cls._decoders_, cls._encoders_ = _Programs(), _Programs()
    stop = min(cls.versions.stop, _MOST_VERSIONS)
    for name, make, exact in (
        ("decode", native.Decoder, "_read_exactly"),
        ("_decode_at", native.Decoder, "_read_exactly"),
        ("encode", native.Encoder, "_write_exactly"),
    ):
        python = vars(base)[name]
        function = next(vars(ancestor)[name] for ancestor in cls.__mro__ if name in vars(ancestor))
        if function is python or isinstance(function, make):
            functions = (getattr(method, "__func__", method) for method in (python, vars(base)[exact]))
            setattr(cls, name, make(cls, message_program, *functions, stop, name == "_decode_at"))


def decoder(cls: type[Message], version: int) -> Decode:
    """The decoder that the functions of `Message` use, made if need be; `KeyError` if there is none."""
    return _cached_codec(
        cls, version, cls._decoders_, _compiled_decoder if native is None else _native_decoder
    )


def encoder(cls: type[Message], version: int) -> Encode:
    """The encoder, likewise."""
    return _cached_codec(
        cls, version, cls._encoders_, _compiled_encoder if native is None else _native_encoder
    )


def _cached_codec(
    cls: type[Message], version: int, codecs: dict[int, F], make: Callable[[type[Message], int], F]
) -> F:
    if version not in codecs:
        versions = owner(cls).versions
        if version not in versions:
            raise KeyError(version)
        version = versions[versions.index(version)]  # an int, whatever equals it
        codecs.setdefault(version, make(cls, version))
    return codecs[version]


def _compiled_decoder(cls: type[Message], version: int) -> Decode:
    from coordwire.codec import compiler

    return compiler.decoder(owner(cls), version)


def _compiled_encoder(cls: type[Message], version: int) -> Encode:
    from coordwire.codec import compiler

    return compiler.encoder(owner(cls), version)


# For what the native objects hand on although a program can do it: other buffers, calls by `super()`.


def _native_decoder(cls: type[Message], version: int) -> Decode:
    program = message_program(cls, version) or message_program(owner(cls), version)
    if program is None:
        raise KeyError(version)

    def decode(data: bytes, start: int, elements: int, memory: int) -> tuple[Any, int]:
        result = program.decode(data, start, elements, memory)
        if result is None:
            raise Refused
        return result

    return decode


def _native_encoder(cls: type[Message], version: int) -> Encode:
    program = message_program(cls, version)
    if program is None:
        raise KeyError(version)

    def encode(message: object) -> bytes:
        wire = program.encode(message)
        if wire is None:
            raise Refused
        return wire

    return encode
