"""The native engine and the Python code say the same of any bytes and any message: equal values, the same
bytes, the same JSON text, or the same refusal, within any budgets; and the engine looks at no byte after
those given to it. Half of the bytes are real brokers' and clients', changed."""

from __future__ import annotations

from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from coordwire.capture.jsonlines import encode
from coordwire.codec import Message
from coordwire.codec.fields import LEAF_FACTOR
from coordwire.codec.interpreter.decoder import Reader
from coordwire.codec.interpreter.encoder import Writer
from coordwire.codec.program import HAS_CODES, HAS_ZEROS, OTHERWISE, layout_transcriber, message_program
from coordwire.codec.walk import entity_values
from coordwire.errors import CoordwireError
from coordwire.jsonform import to_json
from coordwire.limits import current, limits
from coordwire.testing import strategies
from fuzz._guard import Guard
from fuzz._run import compares_native, main
from fuzz.seeds import mutated_messages
from tests.compiled import compiled_decoder, compiled_encoder
from tests.conformance.engines import MESSAGES

GUARD = Guard()


@st.composite
def inputs(draw: st.DrawFn) -> tuple[type[Message], int, bytes, Message, int, int]:
    """Which message, in which version, what it is said to be, a true one, and the budgets."""
    if draw(st.booleans()):
        cls, version, data = draw(mutated_messages())
    else:
        cls = draw(st.sampled_from(MESSAGES))
        version = draw(st.sampled_from(cls.versions))
        data = draw(strategies.hostile_bytes(cls, version=version))
    message = draw(strategies.messages(cls, version=version, nan=True))
    elements = draw(st.sampled_from((10**6, 0, 1, 2, 3, 5, 10)))
    memory = draw(st.sampled_from((1 << 26, 0, 100, 200, 500, 1000, 3000)))
    return cls, version, data, message, elements, memory


@compares_native
@given(inputs())
def fuzz(given_: tuple[type[Message], int, bytes, Message, int, int]) -> None:
    check(*given_)


def check(
    cls: type[Message], version: int, data: bytes, message: Message, elements: int, memory: int
) -> None:
    wire = written(cls, version, message)
    if isinstance(wire, bytes):
        read(cls, version, wire)
    read(cls, version, data)
    with limits(elements=elements, memory=memory, memory_factor=LEAF_FACTOR):
        read(cls, version, data)
        if isinstance(wire, bytes):
            read(cls, version, wire)


def read(cls: type[Message], version: int, data: bytes) -> None:
    """Decode it by the engine alone, by Python alone, and as anybody does."""
    python = outcome(lambda: python_decode(cls, version, data))
    assert outcome(lambda: cls.decode(data, version=version)) == python
    transcribed(cls, version, data)
    program = message_program(cls, version)
    if program is None:
        return
    budget = current()
    room = budget.memory + (budget.memory_factor - LEAF_FACTOR) * len(data)
    message = program.decode(GUARD.place(data), 0, budget.elements, room)
    if message is None or message[1] != len(data):
        assert isinstance(python, tuple), "the engine refuses what Python accepts"
    else:
        assert repr(message[0]) == python, "the engine accepts what Python refuses, or reads another value"
        written(cls, version, message[0])


def transcribed(cls: type[Message], version: int, data: bytes) -> None:
    """Write its JSON text by the engine, and by Python."""
    transcriber = layout_transcriber(cls._layout_.at(version))
    if transcriber is None:
        return
    result = transcriber.transcribe(GUARD.place(data))
    try:
        message = python_decode(cls, version, data)
    except CoordwireError:
        assert result is None, "the engine writes what Python refuses"
        return
    text = encode(to_json(message, version=version))
    if '"_tags":' in text:  # of unknown tagged fields: in a string the quotes would be escaped
        assert result is None
        return
    assert result is not None, "the engine leaves what Python writes"
    codes = any(entity_values(message, "error_code"))
    otherwise = len(python_encode(version, message)) != len(data)
    facts = HAS_CODES * codes | OTHERWISE * otherwise | HAS_ZEROS * ("\\u0000" in text)
    assert result == (text, facts)


def written(cls: type[Message], version: int, message: Message) -> Any:
    """Encode it by each likewise."""
    python = outcome(lambda: python_encode(version, message))
    assert outcome(lambda: message.encode(version=version)) == python
    program = message_program(cls, version)
    assert program is None or program.encode(message) == (None if isinstance(python, tuple) else python)
    return python


def python_decode(cls: type[Message], version: int, data: bytes) -> Message:
    """What Python makes of it where it has to: compiled code, and the interpreter after it."""
    budget = current()
    room = budget.memory + (budget.memory_factor - LEAF_FACTOR) * len(data)
    try:
        message, end = compiled_decoder(cls, version)(data, 0, budget.elements, room)
    except Exception:
        end = -1
    decoded: Message = message if end == len(data) else Reader(data, 0, version).message(cls)
    return decoded


def python_encode(version: int, message: Message) -> bytes:
    """What Python makes of it, likewise."""
    try:
        return compiled_encoder(type(message), version)(message)
    except Exception:
        return Writer(version).message(message)


def outcome(call: Any) -> Any:
    """The bytes or the value's text, or the refusal as a tuple."""
    try:
        result = call()
    except CoordwireError as error:
        return type(error), str(error), repr(getattr(error, "partial", None))
    return result if isinstance(result, bytes) else repr(result)


if __name__ == "__main__":
    main(fuzz)
