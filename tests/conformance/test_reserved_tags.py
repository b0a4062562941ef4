"""The number of a tagged field that only other versions have: refused by every engine, strict or lenient.

Strategy: every struct that has such a field, in every version without it; the struct gets an unknown tagged
field of no bytes, and its number is exchanged in the encoded message. `tests/interop` asks Apache Kafka's own
classes the same.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
from construct import ConstructError

from coordwire.codec import Message, Struct
from coordwire.codec.primitives import uvarint
from coordwire.errors import Malformed, NotInVersion
from coordwire.messages import BrokerHeartbeatRequest
from tests.conformance.engines import MESSAGES, declaration, fast_decode, to_container

PLACEHOLDER = 5000


def filled(cls: type[Struct], version: int) -> Any:
    """A value with one element in every array of structs, and no tagged field set."""
    value = cls()
    for field in cls._layout_.at(version).inline:
        if field.struct is not None:
            one = filled(field.struct, version)
            setattr(value, field.name, [one] if field.array else one)
    return value


def structs(value: Any, version: int) -> Iterator[Any]:
    yield value
    for field in value._layout_.at(version).inline:
        if field.struct is not None:
            content = getattr(value, field.name)
            yield from structs(content[0] if field.array else content, version)


def reserved() -> Iterator[tuple[type[Message], int, int, list[int], bytes]]:
    """Message, version, tag, its field's versions, and bytes in which some struct has this tag."""
    for cls in MESSAGES:
        for version in cls.flexible_versions:
            count = sum(1 for _ in structs(filled(cls, version), version))
            for index in range(count):
                message = filled(cls, version)
                struct = list(structs(message, version))[index]
                struct.tags = {PLACEHOLDER: b""}
                section = b"\1" + uvarint(PLACEHOLDER) + b"\0"
                for tag, field in struct._layout_.at(version).reserved.items():
                    having = [version for version in cls.versions if field.exists(version)]
                    wire = message.encode(version=version)
                    assert wire.count(section) == 1
                    yield cls, version, tag, having, wire.replace(section, b"\1" + uvarint(tag) + b"\0")


CASES = [
    pytest.param(*case, id=f"{case[0].__name__}-v{case[1]}-{number}")
    for number, case in enumerate(reserved())
]


def test_there_are_such_fields() -> None:
    assert len(CASES) > 40


@pytest.mark.parametrize(("cls", "version", "tag", "having", "wire"), CASES)
def test_every_engine_refuses_it(
    cls: type[Message], version: int, tag: int, having: list[int], wire: bytes
) -> None:
    assert version not in having
    assert fast_decode(cls, version, wire) is None
    for strict in (True, False):
        with pytest.raises(Malformed, match=f"tag {tag} is .*, which version {version} lacks"):
            cls.decode(wire, version=version, strict=strict)
    with pytest.raises(ConstructError, match=f"tag {tag} is"):
        declaration(cls).parse(wire, version=version)


def test_it_is_not_written_either() -> None:
    message = BrokerHeartbeatRequest(tags={1: b""})
    for version in (0, 1):
        with pytest.raises(
            NotInVersion, match=f"tag 1 is the field cordoned_log_dirs, which version {version}"
        ):
            message.encode(version=version)
        with pytest.raises(ConstructError, match="tag 1 is"):
            declaration(BrokerHeartbeatRequest).build(to_container(message), version=version)
