"""The back ends of a field table, and which of them serves: the only place where that is decided.

    C engine         `coordwire._speedups`, where it was built; runs the rows that `program.py` makes
    compiled Python  `compiler/`: straight-line code, one function a version and direction
    interpreter      `reader.py` and `writer.py`: exact, and alone in wording what is wrong

Strategy: with the C engine, each class has native objects as its `decode`, `_decode_at` and `encode`, which
hand on what they decline to the Python functions of `Message`; nothing is compiled. Without it, those
functions run compiled Python. What the fast back end declines goes to the interpreter, whose verdict stands.
Rules: what a version needs is made when the version is first used, and kept with the class: there are at most
as many codecs as versions. Two threads that make the same one do no harm: the first one kept serves both.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any, Generic, TypeVar, cast

from coordwire._speedups import native
from coordwire.layout.program import message_program

if TYPE_CHECKING:
    from coordwire.layout.message import Message

Decode = Callable[[bytes, int, int, int], tuple[Any, int]]
"""(data, position, elements, memory) to the message and the position after it. elements, memory: budgets.
Whatever else comes out of it, exceptions included, says that the interpreter has to look at the bytes."""

Encode = Callable[[Any], bytes | None]
"""A message to its bytes; None and any exception say that the interpreter has to look at the message."""

F = TypeVar("F", bound=Callable[..., Any])

_MOST_VERSIONS = 256
"""Versions beyond, which no message has, are left to the Python functions."""


def owner(cls: type[Message]) -> type[Message]:
    """The generated class: the class itself, or what a user's subclass inherits from."""
    return cast("type[Message]", cls._layout_.cls)


class Codecs(dict[int, F], Generic[F]):
    """What decodes a class, or encodes it, by version; each made when it is first asked for.

    Raises `KeyError` for a version that the class doesn't have or that no fast back end serves.
    """

    def __init__(self, cls: type[Message], make: Callable[[type[Message], int], F | None]) -> None:
        super().__init__()
        self._cls = cls
        self._make = make

    def __missing__(self, version: int) -> F:
        versions = owner(self._cls).versions
        if version not in versions:
            raise KeyError(version)
        version = versions[versions.index(version)]  # an int, whatever equals it
        made = self._make(self._cls, version)
        if made is None:
            raise KeyError(version)
        return self.setdefault(version, made)

    def __reduce__(self) -> Any:
        """Part of a class that is pickled by value; the class has new ones by then."""
        return getattr, (self._cls, "_decoders_" if self._cls._decoders_ is self else "_encoders_")


def serve(cls: type[Message], functions: Mapping[str, Any]) -> None:
    """Give a new class its back ends. functions: those of `Message`, which a native object stands before
    only where a subclass hasn't its own."""
    if native is None:
        cls._decoders_ = Codecs(cls, _compiled_decoder)
        cls._encoders_ = Codecs(cls, _compiled_encoder)
        return
    cls._decoders_ = Codecs(cls, _native_decoder)
    cls._encoders_ = Codecs(cls, _native_encoder)
    stop = min(cls.versions.stop, _MOST_VERSIONS)
    for name, make in (
        ("decode", native.Decoder),
        ("_decode_at", native.Decoder),
        ("encode", native.Encoder),
    ):
        python = functions[name]
        held = next(vars(each)[name] for each in cls.__mro__ if name in vars(each))
        if held is python or isinstance(held, make):
            function = getattr(python, "__func__", python)
            setattr(cls, name, make(cls, message_program, function, stop, name == "_decode_at"))


# For the Python functions, which get what the native objects don't take: other buffers, calls by `super()`.


def _native_decoder(cls: type[Message], version: int) -> Decode | None:
    program = message_program(cls, version) or message_program(owner(cls), version)
    return None if program is None else cast("Decode", program.decode)


def _native_encoder(cls: type[Message], version: int) -> Encode | None:
    program = message_program(cls, version)
    return None if program is None else program.encode


# A user's subclass has the codecs of the generated class.


def _compiled_decoder(cls: type[Message], version: int) -> Decode:
    from coordwire.layout import compiler

    made_for = owner(cls)
    return compiler.decoder(cls, version) if made_for is cls else made_for._decoders_[version]


def _compiled_encoder(cls: type[Message], version: int) -> Encode:
    from coordwire.layout import compiler

    made_for = owner(cls)
    return compiler.encoder(cls, version) if made_for is cls else made_for._encoders_[version]
