"""Values that no field takes: the fast encoders, the interpreter and the JSON form refuse them alike."""

from __future__ import annotations

import copy
from typing import Any
from uuid import UUID

import pytest
from hypothesis import note
from hypothesis import strategies as st

from coordwire import from_json, to_json
from coordwire.codec import Message, Struct
from coordwire.codec.interpreter.encoder import Writer
from coordwire.errors import EncodeError, NotInVersion
from coordwire.messages.leave_group import MemberIdentity
from coordwire.testing import strategies
from tests.compiled import compiled_encoder
from tests.conformance.engines import (
    MESSAGES,
    in_every_version,
    name_of,
    native_encode,
    same,
)

WRONG: list[Any] = [
    None, True, -1, 0, 200, 1 << 15, 1 << 31, 1 << 63, -(1 << 63) - 1, 10**400, 10**5000, 1.5, 10.0**300,
    "x", "\ud800", "x" * 32767, "x" * 32768, "é" * 16384, b"x", bytearray(b"xy"), memoryview(b"xyz"),
    [], (), [None], [1, "a"], ["\ud800"], ["x" * 40000], [True], [b""], [[]], (1, 2), {}, {1: b""}, {-1: b""},
    {1 << 32: b""}, {10**5000: b""}, {"a": b""}, {40: None}, {True: b""}, {40: "x"}, {41: bytearray(b"x")},
    {0: b""}, {0: b"", 1: b"", 2: b""}, UUID(int=5), UUID, MemberIdentity(), [MemberIdentity()], {5},
    iter([]), object(),
]  # fmt: skip


def structs(value: Any) -> list[Struct]:
    """The struct, and all inside it."""
    results = [value]
    for field in type(value)._layout_.fields:
        content = getattr(value, field.name)
        for element in content if isinstance(content, list) else [content]:
            if isinstance(element, Struct):
                results += structs(element)
    return results


@st.composite
def spoiled(draw: st.DrawFn, cls: type[Message], *, version: int) -> Message:
    """A message of which one value is another than its type allows, perhaps."""
    message = draw(strategies.messages(cls, version=version))
    struct = draw(st.sampled_from(structs(message)))
    name = draw(st.sampled_from([field.name for field in type(struct)._layout_.fields] + ["tags"]))
    number = draw(st.integers(0, len(WRONG) - 1))
    note(f"{type(struct).__name__}.{name} or an element: WRONG[{number}]")
    wrong = copy.copy(WRONG[number]) if isinstance(WRONG[number], (list, dict)) else WRONG[number]
    content = getattr(struct, name)
    if isinstance(content, list) and content and draw(st.booleans()):
        content[draw(st.integers(0, len(content) - 1))] = wrong
    else:
        setattr(struct, name, wrong)
    return message


@pytest.mark.parametrize("cls", MESSAGES, ids=name_of)
def test_engines_agree_about_wrong_values(cls: type[Message]) -> None:
    in_every_version(cls, spoiled, check, share=25)


def check(cls: type[Message], version: int, message: Message) -> None:
    try:
        wire = Writer(version).message(message)
    except EncodeError as error:
        refused(cls, version, message, error)
        return
    assert message.encode(version=version) == wire
    assert native_encode(cls, version, message) in (None, wire)
    try:
        assert compiled_encoder(cls, version)(message) == wire
    except AssertionError:
        raise
    except Exception:
        pass  # the interpreter is the judge
    assert from_json(cls, to_json(message, version=version), version=version).encode(version=version) == wire


def refused(cls: type[Message], version: int, message: Message, error: EncodeError) -> None:
    assert error.reason
    assert native_encode(cls, version, message) is None, f"the native engine takes it: {error}"
    with pytest.raises(EncodeError) as error_info:
        message.encode(version=version)
    assert (type(error_info.value), error_info.value.reason, error_info.value.path) == (
        type(error),
        error.reason,
        error.path,
    )
    try:
        form = to_json(message, version=version)
    except EncodeError as other:
        assert (type(other), other.path) == (type(error), error.path)
    else:  # numbers and lengths are left to from_json and encode
        assert not isinstance(error, NotInVersion)
        with pytest.raises(EncodeError) as error_info:
            from_json(cls, form, version=version).encode(version=version)
        assert same(error_info.value.path, error.path)
        assert type(error_info.value) is type(error)
