"""Any value of any message and version: construct = compiled Python = native = interpreter, both
ways, byte for byte;
and its JSON form comes back."""

from __future__ import annotations

import functools
import json

import pytest

from coordwire import from_json, to_json
from coordwire.codec import Message
from coordwire.codec.interpreter.decoder import Reader
from coordwire.codec.interpreter.encoder import Writer
from coordwire.testing import strategies
from tests.compiled import compiled_encoder
from tests.conformance.engines import (
    MESSAGES,
    fast_decode,
    in_every_version,
    name_of,
    native_decode,
    native_encode,
    same,
    schema_decode,
    schema_encode,
)

any_message = functools.partial(strategies.messages, nan=True)


@pytest.mark.parametrize("cls", MESSAGES, ids=name_of)
def test_engines_agree_and_json_comes_back(cls: type[Message]) -> None:
    in_every_version(cls, any_message, check, share=25)


def check(cls: type[Message], version: int, message: Message) -> None:
    wire = compiled_encoder(cls, version)(message)
    assert Writer(version).message(message) == wire
    assert schema_encode(version, message) == wire
    assert native_encode(cls, version, message) == wire
    assert message.encode(version=version) == wire

    assert same(fast_decode(cls, version, wire), message)
    assert same(native_decode(cls, version, wire), message)
    assert same(Reader(wire, 0, version).message(cls), message)
    assert same(schema_decode(cls, version, wire), message)
    assert same(cls.decode(wire, version=version, strict=False), message)

    form = json.loads(json.dumps(to_json(message, version=version), allow_nan=False))
    assert same(from_json(cls, form, version=version), message)
