"""The native engine with each kind of field, alone in a struct: also what no message has is read and written.

Strategy: programs of one field are made by hand, inline and tagged, alone and as an array, each with values
at its edges; bytes are compared with `struct`'s, values with what they were, and every cut and many changes
of the bytes are declined or read to something that is written again. Allocations fail one after the other.
"""

from __future__ import annotations

import struct
from collections.abc import Callable
from contextlib import suppress
from functools import partial
from itertools import product
from typing import Any
from uuid import UUID

import pytest

from coordwire._speedups import native
from coordwire.errors import CoordwireError
from coordwire.limits import context
from coordwire.messages.heartbeat import HeartbeatRequest
from tests.failing import allocations, failing

if native is None:
    pytest.skip("no native extension", allow_module_level=True)

ARRAY, NULLABLE, COMPACT, SHORT = 1, 2, 4, 8
STRUCT, STRING, BYTES = 11, 9, 10

NUMBERS: dict[int, tuple[str, list[Any]]] = {
    0: (">b", [-128, 127]),
    1: (">h", [-(1 << 15), 3000]),
    2: (">i", [-(1 << 31), 1 << 30]),
    3: (">q", [-(1 << 63), 1 << 62]),
    4: (">H", [0, 65535]),
    5: (">I", [0, (1 << 32) - 1]),
    6: (">d", [0.5, -1e300]),
    7: (">?", [True, False]),
}
"""By kind: the form of `struct`, and values."""

SIZED: dict[int, list[Any]] = {
    8: [UUID(int=1 << 100), UUID(int=5)],
    STRING: ["", "text", "é" * 70],
    BYTES: [b"", b"bytes", b"x" * 300],
    12: ["", "long" * 40_000],
}
VALUES = {kind: values for kind, (_, values) in NUMBERS.items()} | SIZED
LEAST = {0: 1, 1: 2, 2: 4, 3: 8, 4: 2, 5: 4, 6: 8, 7: 1, 8: 16}
OTHERS: dict[int, list[Any]] = {
    0: [128, -129], 1: [1 << 15], 2: [1 << 31], 3: [1 << 63], 4: [-1, 1 << 16], 5: [-1, 1 << 32], 6: [5],
    7: [1], 8: [5], STRING: [b"", "\ud800", "x" * 32768], BYTES: ["", 5], 12: [b""],
}  # fmt: skip


class Held:
    """A struct of one field."""

    __slots__ = ("group_id", "tags")

    def __init__(self, group_id: Any = "") -> None:
        self.group_id = group_id
        self.tags: Any = None

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Held) and (self.group_id, self.tags) == (other.group_id, other.tags)

    __hash__ = None  # type: ignore[assignment]


def program(kind: int, flags: int, *, tag: int = -1, inner: Any = None, default: Any = None) -> Any:
    row = ("group_id", kind, flags, tag, LEAST.get(kind, 1), 8, inner, default)
    sections = ((), (row,)) if tag >= 0 else ((row,), ())
    return native.Program(Held, bool(flags & COMPACT) or tag >= 0, *sections, ())  # type: ignore[union-attr]


def read(one: Any, wire: bytes, elements: int = 1000, memory: int = 1 << 30) -> Any:
    """The value, or None where the engine declines."""
    found = one.decode(wire, 0, elements, memory)
    return None if found is None else (found[0].group_id, found[1])


def check(one: Any, value: Any) -> bytes:
    """Write and read a value, also with less of its bytes, others, and no memory; its bytes."""
    made = Held(value)
    wire: bytes = one.encode(made)
    assert wire is not None
    assert read(one, wire + b"more") == (value, len(wire))
    for cut in {*range(min(len(wire), 40)), len(wire) - 1}:
        found = one.decode(wire[:cut], 0, 1000, 1 << 30)
        assert found is None or found[1] <= cut
    for at, byte in product(range(min(len(wire), 12)), (0, 1, 2, 127, 128, 255)):
        found = one.decode(wire[:at] + bytes([byte]) + wire[at + 1 :], 0, 1000, 1 << 30)
        if found is not None:
            assert read(one, one.encode(found[0])) == (found[0].group_id, len(one.encode(found[0])))
    calls: list[tuple[Callable[[], Any], Any]] = [
        (partial(read, one, wire), (value, len(wire))), (partial(one.encode, made), wire)
    ]  # fmt: skip
    for call, expected in calls:
        for first in range(allocations(call) + 2):
            assert failing(call, first, 1) in (None, MemoryError, expected)
    return wire


@pytest.mark.parametrize("kind", VALUES)
def test_each_kind_alone(kind: int) -> None:
    for flags in (0, COMPACT):
        one = program(kind, flags)
        for value in VALUES[kind]:
            wire = check(one, value)
            if kind in NUMBERS:
                assert wire.startswith(struct.pack(NUMBERS[kind][0], value))
        for wrong in [*OTHERS[kind], None, object()]:
            assert one.encode(Held(wrong)) is None


@pytest.mark.parametrize(
    "flags", [ARRAY, ARRAY | COMPACT, ARRAY | SHORT, ARRAY | NULLABLE, ARRAY | COMPACT | NULLABLE]
)
@pytest.mark.parametrize("kind", VALUES)
def test_each_kind_as_an_array(kind: int, flags: int) -> None:
    one = program(kind, flags)
    for value in ([], VALUES[kind], VALUES[kind] * 60):
        check(one, value)
    wire = one.encode(Held(VALUES[kind] * 20))
    assert read(one, wire, elements=3) is None
    assert read(one, wire, memory=8) is None
    for wrong in [*([one] for one in OTHERS[kind]), [None], "", 5]:
        assert one.encode(Held(wrong)) is None
    assert (one.encode(Held(None)) is None) is not bool(flags & NULLABLE)


@pytest.mark.parametrize("kind", [STRING, BYTES, 12])
def test_what_may_be_null(kind: int) -> None:
    for flags in (NULLABLE, NULLABLE | COMPACT):
        one = program(kind, flags)
        for value in (None, *VALUES[kind]):
            check(one, value)
    for flags in (0, COMPACT):
        null = program(kind, flags | NULLABLE).encode(Held(None))
        assert read(program(kind, flags), null) is None


@pytest.mark.parametrize("kind", VALUES)
def test_each_kind_tagged(kind: int) -> None:
    default = VALUES[kind][0]
    one = program(kind, COMPACT, tag=3, default=default)
    for value in VALUES[kind]:
        wire = check(one, value)
        assert (wire == b"\0") is (value == default)
    many = program(kind, COMPACT | ARRAY | 64, tag=3)  # a new list each time
    for values in ([], VALUES[kind], VALUES[kind] * 40):
        check(many, values)
    made = Held(VALUES[kind][-1])
    unknown: list[Any] = [
        {1: b"before", 9: b"after"}, {3: b"known"}, {1: "text"}, {"1": b""}, {-1: b""}, {1 << 32: b""}, []
    ]  # fmt: skip
    for tags in unknown:
        made.tags = tags
        wire = one.encode(made)
        if wire is not None:
            assert one.decode(wire, 0, 1000, 1 << 20)[0].tags == tags
        for first in range(allocations(partial(one.encode, made)) + 2):
            assert failing(partial(one.encode, made), first, 1) in (None, MemoryError, wire)


@pytest.mark.parametrize("flags", [0, NULLABLE, ARRAY, ARRAY | COMPACT | NULLABLE])
@pytest.mark.parametrize("tag", [-1, 0])
def test_structs(flags: int, tag: int) -> None:
    inner = program(2, COMPACT)
    flags = flags | COMPACT if tag >= 0 else flags
    one = program(STRUCT, flags, tag=tag, inner=inner)
    value = Held(1 << 20)
    for struct_value in [[value, value], []] if flags & ARRAY else [value]:
        check(one, struct_value)
    for wrong in (5, [5], Held, [None]):
        assert one.encode(Held(wrong)) is None


def test_budgets_that_are_none() -> None:
    """Limits that are not of their class, or out of all bounds, are Python's to judge."""
    wire = HeartbeatRequest(group_id="g" * 300).encode(version=4)
    for limits in (None, "limits", 5):
        token = context.set(limits)  # type: ignore[arg-type]
        try:
            with suppress(AttributeError):
                assert HeartbeatRequest.decode(wire, version=4).encode(version=4) == wire
        finally:
            context.reset(token)


def test_decoders_are_called_as_methods_are() -> None:
    wire = HeartbeatRequest(group_id="g").encode(version=4)
    for name, arguments, keywords in (
        ("decode", (wire,), {"version": 4}),
        ("_decode_at", (wire, 0, 4, True, None), {}),
    ):
        function = vars(HeartbeatRequest)[name]
        for first in (HeartbeatRequest, HeartbeatRequest()):
            assert function(first, *arguments, **keywords) == HeartbeatRequest(group_id="g")
    at = HeartbeatRequest._decode_at
    for start in (-1, 1 << 70, len(wire) + 1):
        with pytest.raises(CoordwireError):
            at(wire, start, 4, True, None)
    encode = vars(HeartbeatRequest)["encode"]
    wrong: list[tuple[tuple[Any, ...], dict[str, int]]] = [
        ((), {}), ((5,), {"version": 4}), ((HeartbeatRequest(),), {"other": 4})
    ]  # fmt: skip
    for given, names in wrong:
        with pytest.raises((TypeError, AttributeError)):
            encode(*given, **names)
    for version in (object(), "4", 1 << 70, None, 4.5):
        with pytest.raises(CoordwireError):
            HeartbeatRequest().encode(version=version)  # type: ignore[arg-type]
