"""The compiler's functions by class and version, kept as `Message` keeps them where Python serves."""

from __future__ import annotations

from coordwire.codec import Message, compiler
from coordwire.codec.backends import Decode, Encode

_decoders: dict[tuple[type[Message], int], Decode] = {}
_encoders: dict[tuple[type[Message], int], Encode] = {}


def compiled_decoder(cls: type[Message], version: int) -> Decode:
    """The decoder in Python, also where the native engine serves."""
    if (cls, version) not in _decoders:
        _decoders[cls, version] = compiler.decoder(cls, version)
    return _decoders[cls, version]


def compiled_encoder(cls: type[Message], version: int) -> Encode:
    """The encoder in Python, likewise."""
    if (cls, version) not in _encoders:
        _encoders[cls, version] = compiler.encoder(cls, version)
    return _encoders[cls, version]
