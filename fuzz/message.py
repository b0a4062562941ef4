"""Any bytes are a message that survives encoding or a DecodeError that says where; the fast decoder, the
interpreter and construct, running the declarations, agree which, and write the same bytes; a lenient decode
refuses nothing that a strict one accepts. Half of the bytes are real brokers' and clients', changed."""

from __future__ import annotations

from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from coordwire import to_json
from coordwire.codec import Message
from coordwire.codec.interpreter.decoder import Reader
from coordwire.errors import DecodeError
from coordwire.testing.strategies import hostile_bytes
from fuzz._run import main
from fuzz.seeds import mutated_messages
from tests.compiled import compiled_decoder
from tests.conformance.engines import MESSAGES, same, schema_decode, schema_encode

ELEMENTS, MEMORY = 10**6, 1 << 26


@st.composite
def inputs(draw: st.DrawFn) -> tuple[type[Message], int, bytes]:
    """Which message, in which version, and what it is said to be."""
    cls = draw(st.sampled_from(MESSAGES))
    version = draw(st.sampled_from(cls.versions))
    return cls, version, draw(hostile_bytes(cls, version=version))


@given(st.one_of(inputs(), mutated_messages()))
def fuzz(given_: tuple[type[Message], int, bytes]) -> None:
    check(*given_)


def check(cls: type[Message], version: int, data: bytes) -> None:
    strict = verdict(cls, version, data, strict=True)
    lenient = verdict(cls, version, data, strict=False)
    if strict is not None:
        wire = strict.encode(version=version)
        assert schema_encode(version, strict) == wire
        assert len(wire) <= len(data)  # less only where tagged fields stood at their default
        assert repr(cls.decode(wire, version=version)) == repr(strict) == repr(lenient)
    schema = schema_decode(cls, version, data)
    assert (schema is None) == (strict is None), "construct and interpreter disagree"
    assert schema is None or same(schema, strict)
    assert (fast(cls, version, data) is None) == (strict is None), "fast path and interpreter disagree"


def verdict(cls: type[Message], version: int, data: bytes, *, strict: bool) -> Message | None:
    """The interpreter's message; None where it refuses, after a look at how."""
    try:
        message: Message = Reader(data, 0, version, strict=strict).message(cls)
    except DecodeError as error:
        assert 0 <= error.position <= len(data)
        assert error.reason
        assert isinstance(error.path, str)
        if isinstance(error.partial, Message):
            to_json(error.partial, version=version)
        return None
    to_json(message, version=version)
    return message


def fast(cls: type[Message], version: int, data: bytes) -> Any:
    """The compiled decoder's message; None where it refuses, in whatever way."""
    try:
        message, end = compiled_decoder(cls, version)(data, 0, ELEMENTS, MEMORY)
    except Exception:
        return None
    return message if end == len(data) else None


if __name__ == "__main__":
    main(fuzz)
