"""Hostile bytes: one verdict by all engines, only DecodeError, and every refusal says where and why."""

from __future__ import annotations

import pytest

from coordwire.codec import Message
from coordwire.codec.interpreter.decoder import Reader
from coordwire.errors import DecodeError, Deviation, LimitExceeded, Malformed, Truncated
from coordwire.testing import strategies
from tests.conformance.engines import (
    MESSAGES,
    fast_decode,
    in_every_version,
    name_of,
    native_decode,
    same,
    schema_decode,
)


@pytest.mark.parametrize("cls", MESSAGES, ids=name_of)
def test_engines_agree_about_hostile_bytes(cls: type[Message]) -> None:
    in_every_version(cls, strategies.hostile_bytes, check, share=25)


def check(cls: type[Message], version: int, data: bytes) -> None:
    fast = fast_decode(cls, version, data)
    assert same(native_decode(cls, version, data), fast), "native and compiled decoders disagree"
    try:
        exact: Message = Reader(data, 0, version).message(cls)
    except DecodeError as error:
        assert fast is None, f"the fast path accepts: {error}"
        place(error, data)
        assert schema_decode(cls, version, data) is None, f"construct accepts: {error}"
        with pytest.raises(DecodeError) as error_info:
            cls.decode(data, version=version)
        assert str(error_info.value) == str(error)
        assert type(error_info.value) is type(error)
    else:
        assert same(fast, exact)
        assert same(schema_decode(cls, version, data), exact)
        again = exact.encode(version=version)
        assert same(cls.decode(again, version=version), exact)
        assert len(again) <= len(data)  # less where a tagged field stood at its default
    lenient(cls, version, data, fast)


def lenient(cls: type[Message], version: int, data: bytes, strict: Message | None) -> None:
    """Accepts at least what a strict decode accepts, and then finds nothing odd."""
    deviations: list[Deviation] = []
    try:
        message = cls.decode(data, version=version, strict=False, deviations=deviations)
    except DecodeError as error:
        assert strict is None
        place(error, data)
        return
    assert bool(deviations) == (strict is None)
    assert strict is None or same(message, strict)
    for deviation in deviations:
        assert 0 <= deviation.position <= len(data)
        assert deviation.reason


def place(error: DecodeError, data: bytes) -> None:
    assert type(error) in (Truncated, Malformed, LimitExceeded)
    assert 0 <= error.position <= len(data)
    assert error.reason
    assert isinstance(error.path, str)
    assert error.partial is None or isinstance(error.partial, Message)
