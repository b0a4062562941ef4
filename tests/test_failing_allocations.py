"""Memory that runs out, at each allocation of what the extension does: the right answer or MemoryError.

Strategy: CPython's own `_testcapi` lets the n-th allocation fail, alone or with those after it. A call is
made once to count its allocations, then again for each of them. Where the native half declines for want of
memory and Python then serves, the answer is the same. Rules: what a call is given is made anew before each
time, and what it gave is judged when memory is there again; a failed call leaves what it was given usable.
Memory fails in the extension's own calls, as far as they can be made without Python's part: CPython itself
does not outlive it everywhere (3.12 and 3.13 crash in generators, 3.13 also where a type is made, 3.11 raises
`SystemError`; without the extension, too).
"""

from __future__ import annotations

import importlib.util
import io
import sys
from collections import deque
from collections.abc import Callable
from dataclasses import fields
from functools import partial
from itertools import count as numbers
from types import SimpleNamespace
from typing import Any, cast
from unittest.mock import patch
from uuid import UUID

import pytest

from coordwire import Connection
from coordwire._speedups import native
from coordwire._speedups.rows import row_maker
from coordwire.capture.entries import FrameEntry
from coordwire.capture.jsonlines import line
from coordwire.capture.plain_lines import PlainJsonLines
from coordwire.capture.reader import Capture
from coordwire.codec import Message, program
from coordwire.codec.fields import LEAF_FACTOR, Field
from coordwire.codec.primitives import ELEMENT_COST, ZERO_UUID
from coordwire.codec.program import layout_transcriber, message_program
from coordwire.connection.events import RequestReceived, ResponseReceived, SentRequest
from coordwire.connection.receive_buffer import ReceiveBuffer
from coordwire.frames import (
    RequestFrame,
    decode_request,
    decode_response,
    encode_request,
    encode_response,
    request_framer,
    response_framer,
)
from coordwire.limits import Limits, context
from coordwire.messages import (
    HeartbeatRequest,
    HeartbeatResponse,
    JoinGroupRequest,
    ProduceRequest,
    RequestHeader,
)
from coordwire.records import Record, RecordBatchBuilder, backend, batches, encode_batch
from coordwire.timeline.events import OffsetCommitted
from fuzz._columns import EVERYTHING, Table
from fuzz.hardening.leaks import CASES
from tests.capture.samples import CAPTURES, said, traffic
from tests.codec import test_native_exchange as exchange
from tests.conformance.engines import MESSAGES, name_of
from tests.failing import allocations, failing
from tests.filled_requests import KEEP, Path, filled

pytestmark = pytest.mark.skipif(native is None, reason="no native extension, whose memory this is")

Call = Callable[[], Any]

DECLINING = "text"
"""Calls of the extension itself, which then declines, so that Python serves."""

MOST = 400
"""So many places of failure are tried of a call with more allocations."""

COUNTER = numbers()

HELD = 4000
"""More answers than the extension keeps spare objects for (`freelist.h`)."""

ROWS = [Record(n, 1000 + n, b"k%d" % n, b"v" * 9 * n, (("h", b"x"), ("é", None))[: n % 3]) for n in range(12)]
BATCH = encode_batch(ROWS)
HEARTBEAT = HeartbeatRequest(group_id="payments", generation_id=1 << 20, member_id="m" * 40, tags={7: b"x"})
REQUEST = encode_request(HEARTBEAT, version=4, correlation_id=7, client_id="till-3")
LARGE = encode_request(HEARTBEAT, version=4, correlation_id=7, client_id="till" * 100)
LARGE_RESPONSE = encode_response(HeartbeatResponse(tags={7: b"x" * 400}), version=4, correlation_id=7)
RESPONSE = encode_response(HeartbeatResponse(error_code=27), version=4, correlation_id=7)
CAPTURE = min(CAPTURES, key=lambda path: path.stat().st_size).read_bytes()
TRAFFIC = traffic(5)


def iterate(data: bytes) -> Call:
    return lambda: [(batch.base_offset, list(batch)) for batch in batches(data)]


def append() -> Call:
    builder = RecordBatchBuilder(limit=300)

    def call() -> Any:
        taken = [builder.append(row) for row in ROWS]
        return taken, builder.build()

    return call


def fill(view: bool) -> Call:
    assert backend.columns is not None
    columns = backend.columns(EVERYTHING, 1 << 16, view, True)

    def call() -> Any:
        columns.run(BATCH, 0, None, 0)
        return columns.take()

    return call


def table_rows(view: bool, taken: Any) -> Any:
    rows, headers, memories = taken
    return Table(rows, headers, memories, [BATCH] if view else None).rows(EVERYTHING)


def entries(data: bytes) -> Call:
    found = Capture(io.BytesIO(data), "x", lazy=True).entries()
    begun = next(found)  # with memory, since Python makes there what the extension walks with
    return lambda: [begun, *found]


def entries_said(found: list[Any]) -> Any:
    return [said(entry) if isinstance(entry, FrameEntry) else entry for entry in found]


def lines(data: bytes) -> tuple[Callable[[], Call], Callable[[Any], Any]]:
    """The lines of entries, whose tables are filled; for what declines Python's own are taken afterwards."""
    found = list(Capture(io.BytesIO(data), "x", lazy=True).entries())
    writer = PlainJsonLines(show_secrets=True)
    served = [line(entry, 6, show_secrets=True) for entry in found]

    def call() -> list[str | None]:
        return [writer.line(entry, 6) for entry in found]

    assert [text for text in call() if text is not None]
    return always(call), lambda texts: [text or known for text, known in zip(texts, served, strict=True)]


def server() -> Call:
    connection = Connection("server")

    def call() -> Any:
        connection.receive_data(REQUEST + REQUEST[:9])
        event: Any = connection.next_event()
        return [event.request, connection.send(HeartbeatResponse(error_code=27), request=event)]

    return call


def client() -> Call:
    connection = Connection("client", client_id="till-3")

    def call() -> Any:
        sent = connection.send(HEARTBEAT, version=4)
        connection.receive_data(encode_response(HeartbeatResponse(), version=4, correlation_id=0))
        event: Any = connection.next_event()
        return sent, event.response

    return call


def steps() -> dict[str, Callable[[], tuple[Call, Call]]]:
    """The native steps of a connection, each with what it may have changed."""
    native_steps = exchange.exchange

    def receive(native_step: Any, data: bytes, kept: Any) -> tuple[Call, Call]:
        buffer = exchange.holding(data)
        kept = kept.copy()
        state = lambda: (buffer.position, len(buffer), list(kept))  # noqa: E731
        return partial(native_step, buffer, kept), state

    def send(native_step: Any, kept: Any, *values: Any) -> tuple[Call, Call]:
        kept = kept.copy()
        return partial(native_step, *values, kept), lambda: list(kept)

    asked = native_steps.next_request(exchange.holding(LARGE), deque())
    owed = deque([asked.frame.header])
    number = 1 << 20
    return {
        "next-request": partial(receive, native_steps.next_request, 2 * LARGE, deque()),
        "next-response": partial(receive, native_steps.next_response, 2 * LARGE_RESPONSE, {7: exchange.SENT}),
        "write-request": partial(send, native_steps.write_request, {}, HEARTBEAT, 4, number, "till"),
        "write-response": partial(
            send, native_steps.write_response, owed, HeartbeatResponse(), 4, asked
        ),
    }  # fmt: skip


def transcribe(message: Message, version: int) -> Call:
    writer = layout_transcriber(type(message)._layout_.at(version))
    assert writer is not None
    return partial(writer.transcribe, message.encode(version=version))


def load() -> Call:
    """Another module of the extension, with all its types."""
    assert native is not None
    spec = importlib.util.spec_from_file_location(native.__name__, native.__file__)
    assert spec is not None
    module = importlib.util.module_from_spec(spec)
    loader: Any = spec.loader
    return lambda: loader.exec_module(module)


def bind() -> Call:
    assert native is not None
    spec = importlib.util.spec_from_file_location(native.__name__, native.__file__)
    assert spec is not None
    module: Any = importlib.util.module_from_spec(spec)
    loader: Any = spec.loader
    loader.exec_module(module)
    return partial(module.bind, UUID, ZERO_UUID.is_safe, Limits, context, LEAF_FACTOR, ELEMENT_COST)


def native_call(name: str, build: Call) -> Call:
    """The call of one of the extension's classes with which Python ends `build`."""
    taken: list[tuple[Any, ...]] = []
    cls = getattr(native, name)

    def take(*arguments: Any) -> Any:
        taken.append(arguments)
        return cls(*arguments)

    with patch.object(program, "native", SimpleNamespace(**{name: take})):
        build()
    (arguments,) = taken
    return partial(cls, *arguments)


def makers() -> dict[str, Call]:
    """What makes the extension's objects, whose kind alone is compared."""
    assert native is not None
    layout = JoinGroupRequest._layout_.at(9)
    layout_transcriber(layout)
    framers = request_framer, response_framer
    slots = ReceiveBuffer, SentRequest, RequestReceived, ResponseReceived
    message = CASES[0][0]
    found: dict[str, Call] = {
        "program": native_call("Program", partial(program.compiled, layout, layout.cls)),
        "transcriber": native_call("Transcriber", partial(program._build, layout)),
        "framer": partial(native.Framer, RequestFrame, RequestHeader(), True, list),
        "exchange": partial(native.Exchange, *framers, *slots),
        "codec": partial(native.Codec, Record),
        "columns-object": partial(native.Columns, EVERYTHING, 1 << 16, False, True),
        "slots": partial(native.SlotMaker, OffsetCommitted, ("group", "topic")),
        "lists": partial(native.SlotMaker(type(message), ("group_id", "member_id")).lists, [message] * 9),
        "lines-object": partial(PlainJsonLines, show_secrets=False),
        "decoder": partial(native.Decoder, type(message), list, len, len, 5),
    }
    return {name: partial(lambda call: type(call()), call) for name, call in found.items()}


def always(call: Call) -> Callable[[], Call]:
    return lambda: call


def without_spares(call: Call) -> Callable[[], Call]:
    """As many answers are held as the extension keeps spare objects: a call makes its own."""
    held: list[Any] = []

    def make() -> Call:
        held.extend(call() for _ in range(HELD - len(held)))
        return call

    return make


def unchanged(value: Any) -> Any:
    return value


def cases() -> dict[str, tuple[Callable[[], Call], Callable[[Any], Any]]]:
    """What makes a call, and what makes its answer comparable."""
    found: dict[str, tuple[Callable[[], Call], Callable[[Any], Any]]] = {}
    for number, (message, version) in enumerate(CASES):
        name, wire = f"{type(message).__name__}-{number}", message.encode(version=version)
        found[f"decode-{name}"] = always(partial(type(message).decode, wire, version=version)), unchanged
        found[f"decode-new-{name}"] = (
            without_spares(partial(type(message).decode, wire, version=version)),
            unchanged,
        )
        found[f"encode-{name}"] = always(partial(message.encode, version=version)), unchanged
        found[f"text-{name}"] = partial(transcribe, message, version), unchanged
    framed: dict[str, Call] = {
        "request": partial(decode_request, REQUEST),
        "response": partial(decode_response, RESPONSE, api_key=12, version=4),
        "write-request": partial(encode_request, HEARTBEAT, version=4, correlation_id=7, client_id="till"),
        "write-response": partial(encode_response, HeartbeatResponse(), version=4, correlation_id=7),
        "produce": partial(encode_request, ProduceRequest(), version=9, correlation_id=7),
        "batch": partial(encode_batch, ROWS),
        "row": partial(row_maker(OffsetCommitted), *range(len(fields(OffsetCommitted)))),
    }
    found |= {name: (always(call), unchanged) for name, call in (framed | makers()).items()}
    found |= {
        "load": (load, unchanged),
        "bind": (bind, unchanged),
        "server": (server, unchanged),
        "client": (client, unchanged),
        "records": (partial(iterate, BATCH), unchanged),
        "builder": (append, unchanged),
        "columns": (partial(fill, False), partial(table_rows, False)),
        "views": (partial(fill, True), partial(table_rows, True)),
        "capture": (partial(entries, CAPTURE), entries_said),
        "traffic": (partial(entries, TRAFFIC), entries_said),
        "lines": lines(TRAFFIC),
        "lines-of-a-recording": lines(CAPTURE),
    }
    return found


def test_allocations_are_counted_and_fail() -> None:
    def three() -> list[object]:
        return [object(), object(), object()]

    assert allocations(three) - allocations(list) >= 3
    assert failing(three, 2, 1) is MemoryError
    assert len(failing(three, 100, 1)) == 3


CALLS = cases() if native is not None else {}


@pytest.mark.parametrize("width", [1, 3])
@pytest.mark.parametrize("name", CALLS)
def test_every_allocation_fails_once(name: str, width: int) -> None:
    if name == "load" and sys.version_info >= (3, 13):
        pytest.skip("CPython 3.13 itself crashes where a type with attributes is made without memory")
    make, shown = CALLS[name]
    make()()  # what is kept from the first time on
    expected = shown(make()())
    count = allocations(make())
    for first in range(0, count + 1, 1 + count // MOST):
        call = make()
        answer = failing(call, first, width)
        if answer is not MemoryError and not (answer is None and name.startswith(DECLINING)):
            assert shown(answer) == expected, first
        assert shown(make()()) == expected, first


def full(cls: type[Message], version: int) -> Message:
    """A message whose fields all have values that nothing keeps."""

    def value(path: Path, field: Field, number: int) -> Any:
        """Another one each time."""
        small, large, text = next(COUNTER) % 100, (1 << 30) + next(COUNTER), f"{field.name}{next(COUNTER)}"
        made: dict[str, Any] = {
            "int8": small,
            "int16": 300 + small,
            "uint16": 300 + small,
            "float64": 0.5 + large,
        }
        made |= {"int64": large << 20, "bool": True, "uuid": UUID(int=large << 60)}
        if field.struct is not None or field.type == "records":
            return KEEP
        if field.type in ("string", "long_string"):
            return text
        return text.encode() if field.type == "bytes" else made.get(field.type, large)

    message: Any = filled(cls, version, (), [1, 2], value)
    message.tags = {40: b"x", 50: b"y"} if cls._layout_.at(version).flexible else None
    return cast(Message, message)


@pytest.mark.slow
@pytest.mark.parametrize("cls", MESSAGES if native is not None else [], ids=name_of)
def test_messages_full_of_values(cls: type[Message]) -> None:
    for version in sorted({cls.versions[0], cls.versions[-1]}):
        message = full(cls, version)
        wire = message.encode(version=version)
        native_program = message_program(cls, version)
        assert native_program is not None
        held = [cls.decode(wire, version=version) for _ in range(40)]
        text = layout_transcriber(cls._layout_.at(version))
        decode = partial(native_program.decode, wire, 0, 1 << 20, 1 << 30)
        for first in range(allocations(decode) + 2):
            found = failing(decode, first, 1)
            assert found in (None, MemoryError) or found == (held[0], len(wire)), first
            assert failing(partial(cls.decode, wire, version=version), first, 1) in (MemoryError, held[0]), (
                first
            )
        for first in range(allocations(partial(native_program.encode, message)) + 2):
            assert failing(partial(native_program.encode, message), first, 1) in (None, MemoryError, wire)
            assert failing(partial(message.encode, version=version), first, 1) in (MemoryError, wire)
        if text is not None:
            writer = partial(text.transcribe, wire)
            written = writer()
            for first in range(allocations(writer) + 2):
                assert failing(writer, first, 1) in (None, MemoryError, written)


@pytest.mark.parametrize("name", ["next-request", "next-response", "write-request", "write-response"])
def test_a_step_that_fails_changes_nothing(name: str) -> None:
    make = steps()[name]
    served, after = make()
    expected = served()
    assert expected not in (None, False)
    done = after()
    for first in range(allocations(make()[0]) + 1):
        call, state = make()
        before = state()
        answer = failing(call, first, 1)
        if answer in (None, False, MemoryError):
            assert state() == before, first
            answer = call()
        assert answer == expected
        assert state() == done
