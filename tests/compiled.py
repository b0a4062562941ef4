"""The compiler's functions by class and version, kept as `Message` keeps them where Python serves."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from coordwire.layout import Message, compiler
from coordwire.layout.backends import Codecs, Decode

_decoders: dict[type[Message], Codecs[Decode]] = {}
_encoders: dict[type[Message], Codecs[Callable[[Any], bytes]]] = {}


def compiled_decoder(cls: type[Message], version: int) -> Decode:
    """The decoder in Python, also where the native engine serves."""
    return _decoders.setdefault(cls, Codecs(cls, compiler.decoder))[version]


def compiled_encoder(cls: type[Message], version: int) -> Callable[[Any], bytes]:
    """The encoder in Python, likewise."""
    return _encoders.setdefault(cls, Codecs(cls, compiler.encoder))[version]
