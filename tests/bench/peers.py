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

from coordwire.layout import Struct
from tests.bench.cases import Case

Call = Callable[[], Any]

PEERS = ("coordwire", "kafka-python", "kio", "construct")
"""By the names of their distributions; ours comes first."""

_REPEATS = 3
"""Runs before timing: the first may generate code, the second may fill caches."""


class Missing(Exception):
    """A library that isn't installed."""


def release(peer: str) -> str:
    """The version of an installed library. Raises `Missing`."""
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


# --- one maker a library ---


def _coordwire(case: Case) -> tuple[Call, Call]:
    cls, message, version, wire = type(case.message), case.message, case.version, case.wire
    return lambda: cls.decode(wire, version=version), lambda: message.encode(version)


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
    if (
        not hasattr(value, name) and name == "topic_authorized_operations"
    ):  # kafka-python: a set of bits, or None
        bits = value.authorized_operations
        return -(1 << 31) if bits is None else sum(1 << bit for bit in bits)
    return getattr(value, name if hasattr(value, name) else name.removesuffix("_ms"))
