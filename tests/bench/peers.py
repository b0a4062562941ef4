"""The libraries that are compared: each as two calls without arguments, one decodes and one encodes.

Rules: every library gets the same bytes, and the shortest way through its public API that leads from a body's
bytes to its own object and back; readers and writers that it would cache are made beforehand. `work` proves
both calls before anybody times them: the decoded fields are those of our message, the encoded bytes are its
bytes. What it then hands out has run, so that lazily generated code exists.
"""

from __future__ import annotations

import importlib
import io
from collections.abc import Callable
from datetime import timedelta
from importlib import metadata
from typing import Any

import coordwire
from coordwire import Connection
from coordwire.codec import Message, Struct
from coordwire.connection.events import RequestReceived, ResponseReceived
from coordwire.frames import encode_response
from coordwire.messages.heartbeat import HeartbeatRequest, HeartbeatResponse
from tests.bench.cases import Case
from tests.bench.reading import reader
from tests.compiled import compiled_decoder, compiled_encoder

Call = Callable[[], Any]

PYTHON = "our Python"
PEERS = ("coordwire", PYTHON, "kafka-python", "kio", "construct")
"""By the names of their distributions; ours comes first, then our own Python code."""

_REPEATS = 3
"""Runs before timing: the first may generate code, the second may fill caches."""


class Missing(Exception):
    """A library that isn't installed."""


def release(peer: str) -> str:
    """The version of an installed library, nothing for our own Python. Raises `Missing`."""
    if peer == PYTHON:
        return ""
    try:
        return metadata.version(peer)
    except metadata.PackageNotFoundError:
        if peer == "coordwire":
            return "(source tree)"
        raise Missing(f"{peer} is not installed") from None


def work(peer: str, case: Case) -> tuple[Call, Call]:
    """A library's decode and encode of one message, proven right and warm. Raises `Missing`."""
    release(peer)
    decode, encode = _MAKERS[peer](case)
    ours = plain(case.message, case.message, case.version)
    for _ in range(_REPEATS):
        value, wire = decode(), encode()
        if wire != case.wire:
            raise AssertionError(f"{peer} encodes {case.label} to other bytes")
        if plain(value, case.message, case.version) != ours:
            raise AssertionError(f"{peer} decodes {case.label} to another value")
    return decode, encode


def reading(peer: str, case: Case, decode: Call) -> Call:
    """A library's decode, and then every attribute."""
    release(peer)
    read = reader(case.message, decode(), case.version, _name_there)
    return lambda: read(decode())


# --- one maker a library ---


def _coordwire(case: Case) -> tuple[Call, Call]:
    cls, message, version, wire = type(case.message), case.message, case.version, case.wire
    return lambda: cls.decode(wire, version=version), lambda: message.encode(version=version)


def _python(case: Case) -> tuple[Call, Call]:
    cls, message, version, wire = type(case.message), case.message, case.version, case.wire
    decode, encode = vars(Message)["decode"].__func__, Message.encode
    cls._decoders_ = {version: compiled_decoder(cls, version)}  # which only these two functions look at
    cls._encoders_ = {version: compiled_encoder(cls, version)}
    return lambda: decode(cls, wire, version=version), lambda: encode(message, version=version)


def _kafka_python(case: Case) -> tuple[Call, Call]:
    version, wire = case.version, case.wire
    modules = (importlib.import_module(f"kafka.protocol.{name}") for name in ("consumer", "metadata"))
    cls = next(vars(module)[_name(case)] for module in modules if _name(case) in vars(module))
    message = cls.decode(wire, version=version)  # it remembers its version, and can't be given another
    return lambda: cls.decode(wire, version=version), message.encode


def _kio(case: Case) -> tuple[Call, Call]:
    serial = importlib.import_module("kio.serial")
    module = type(case.message).__module__.rpartition(".")[2]
    cls = getattr(
        importlib.import_module(f"kio.schema.{module}.v{case.version}.{case.message.direction}"), _name(case)
    )
    read, write, wire = serial.entity_reader(cls), serial.entity_writer(cls), case.wire
    message, _ = read(wire, 0)

    def encode() -> bytes:
        out = io.BytesIO()
        write(out, message)
        return out.getvalue()

    return lambda: read(wire, 0)[0], encode


def _construct(case: Case) -> tuple[Call, Call]:
    version, wire = case.version, case.wire
    walk = importlib.import_module("schemas._generate.walk")
    schema = next(
        row.message for module in walk.modules() for row in module.messages if row.name == _name(case)
    )
    message = schema.parse(wire, version=version)
    return lambda: schema.parse(wire, version=version), lambda: schema.build(message, version=version)


_MAKERS: dict[str, Callable[[Case], tuple[Call, Call]]] = {
    "coordwire": _coordwire,
    PYTHON: _python,
    "kafka-python": _kafka_python,
    "kio": _kio,
    "construct": _construct,
}


def _name(case: Case) -> str:
    return type(case.message).__name__


# --- equality across libraries ---


def plain(value: Any, like: Any, version: int) -> Any:
    """A library's value in the shape of ours: a tuple of the fields that our class has in the version."""
    if isinstance(like, list):
        return [plain(item, one, version) for item, one in zip(value, like, strict=True)]
    if isinstance(like, Struct):
        shape = like._layout_.at(version)
        names = [field.name for field in (*shape.inline, *shape.tagged.values())]
        return tuple(plain(_get(value, name), getattr(like, name), version) for name in names)
    if isinstance(value, timedelta):
        return value // timedelta(milliseconds=1)
    return value


def _get(value: Any, name: str) -> Any:
    """A field by our name, or by the one that a library gives it."""
    result = getattr(value, _name_there(value, name))
    if _name_there(value, name) == "authorized_operations":  # kafka-python: a set of bits, or None
        return -(1 << 31) if result is None else sum(1 << bit for bit in result)
    return result


def _name_there(value: Any, name: str) -> str:
    for known in (name, name.removesuffix("_ms"), name.removeprefix("topic_")):
        if hasattr(value, known):
            return known
    raise AttributeError(name)


# --- a server ---


def server(peer: str, request: bytes, response: bytes) -> Call | None:
    """A heartbeat's frame read with its header, and its answer's written; None where a library can't."""
    if peer not in _SERVERS:
        return None
    call = _SERVERS[peer](request)
    for _ in range(_REPEATS):
        if call() != response:
            raise AssertionError(f"{peer} answers otherwise")
    return call


def _our_server(request: bytes) -> Call:
    def answer() -> bytes:
        frame = coordwire.decode_request(request)
        return encode_response(
            HeartbeatResponse(error_code=0), version=frame.api_version, correlation_id=frame.correlation_id
        )

    return answer


def _kio_server(request: bytes) -> Call:
    serial = importlib.import_module("kio.serial")
    head = importlib.import_module("kio.schema.request_header.v2.header").RequestHeader
    body = importlib.import_module("kio.schema.heartbeat.v4.request").HeartbeatRequest
    module = importlib.import_module("kio.schema.heartbeat.v4.response")
    zero, none = timedelta(0), module.ErrorCode.none
    read_head, read_body = serial.entity_reader(head), serial.entity_reader(body)
    write_head, write_body = (
        serial.entity_writer(module.ResponseHeader),
        serial.entity_writer(module.HeartbeatResponse),
    )

    def answer() -> bytes:
        header, size = read_head(request, 4)
        read_body(request, 4 + size)
        out = io.BytesIO()
        write_head(out, module.ResponseHeader(correlation_id=header.correlation_id))
        write_body(out, module.HeartbeatResponse(throttle_time=zero, error_code=none))
        answered = out.getvalue()
        return len(answered).to_bytes(4, "big") + answered

    return answer


_SERVERS: dict[str, Callable[[bytes], Call]] = {"coordwire": _our_server, "kio": _kio_server}


# --- connections ---


def connections(peer: str) -> Call | None:
    """A heartbeat sent, received, answered and its answer received, by two connections without a socket; None
    where a library has none."""
    if peer != PEERS[0]:
        return None
    request = HeartbeatRequest(group_id="payments", generation_id=3, member_id="m" * 40)
    response = HeartbeatResponse()
    client, broker = Connection("client", client_id="till-3"), Connection("server")

    def beat() -> Message:
        broker.receive_data(client.send(request, version=4))
        for event in broker.events():
            assert isinstance(event, RequestReceived)
            client.receive_data(broker.send(response, request=event))
        (answer,) = client.events()
        assert isinstance(answer, ResponseReceived)
        return answer.response

    for _ in range(_REPEATS):
        if beat() != response:
            raise AssertionError("another answer came")
    return beat
