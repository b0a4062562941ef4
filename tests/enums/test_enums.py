"""Enums that keep unknown numbers, and the fields that hold them."""

from __future__ import annotations

import copy
import pickle
from collections.abc import Iterator
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import coordwire
from coordwire import enums, messages
from coordwire.codec import Field, Message, Struct
from coordwire.enums import AclOperation, ErrorCode, OpenEnum, allowed_operations, enum_of, meaning
from coordwire.enums.field_enums import BY_CLASS, BY_NAME
from coordwire.messages import HeartbeatResponse, find_message

ENUMS = sorted(
    (value for value in (getattr(enums, name) for name in enums.__all__) if isinstance(value, type)),
    key=lambda enum: enum.__name__,
)
ENUMS.remove(OpenEnum)
SMALL = ("int8", "int16", "int32")


def test_an_error_code() -> None:
    code = ErrorCode(HeartbeatResponse(error_code=27).error_code)
    assert code is coordwire.ErrorCode.REBALANCE_IN_PROGRESS
    assert (code.name, code.known, code.retriable) == ("REBALANCE_IN_PROGRESS", True, False)
    assert code.description == "The group rebalances: the member must join again."
    assert ErrorCode.COORDINATOR_LOAD_IN_PROGRESS.retriable
    assert sorted(ErrorCode) == list(range(-1, 137))
    assert all(code.description.endswith(".") for code in ErrorCode)


@settings(max_examples=500)
@given(st.sampled_from(ENUMS), st.integers() | st.integers(-3, 200))
def test_any_number_is_kept(enum: type[OpenEnum], number: int) -> None:
    result = enum(number)
    assert isinstance(result, enum)
    assert result == number
    assert hash(result) == hash(number)
    assert result.known is (number in set(enum))
    assert result.name == f"UNKNOWN_{number}" or result.known
    pickled = [
        pickle.loads(pickle.dumps(result, protocol)) for protocol in range(pickle.HIGHEST_PROTOCOL + 1)
    ]
    for again in (enum(number), copy.copy(result), copy.deepcopy(result), *pickled):
        assert (again, again.name, type(again)) == (result, result.name, enum)
        assert again is result or not result.known


def test_nothing_is_remembered() -> None:
    before = len(ErrorCode._value2member_map_)
    assert (ErrorCode(9999).known, ErrorCode(9999).retriable) == (False, False)
    assert len(ErrorCode._value2member_map_) == before
    assert 9999 not in list(ErrorCode)
    with pytest.raises(ValueError, match="'x' is not a valid ErrorCode"):
        ErrorCode("x")  # type: ignore[arg-type]


def test_an_unknown_number_can_be_sent() -> None:
    body = HeartbeatResponse(error_code=ErrorCode(999)).encode(version=4)
    assert HeartbeatResponse.decode(body, version=4).error_code == ErrorCode(999)


def test_allowed_operations() -> None:
    assert allowed_operations(-(1 << 31)) is None
    assert allowed_operations(0) == []
    assert allowed_operations(1 << 3 | 1 << 6) == [AclOperation.READ, AclOperation.DELETE]
    assert [one.name for one in allowed_operations(1 << 30) or ()] == ["UNKNOWN_30"]


# --- the fields ---


def fields() -> Iterator[tuple[str, Field]]:
    """All fields of all messages, with the classes that have them."""
    result: set[type[Struct]] = set()

    def inside(cls: Any) -> Iterator[tuple[str, Field]]:
        if cls in result:
            return
        result.add(cls)
        for field in cls._layout_.fields:
            yield cls.__name__, field
            if field.struct is not None:
                yield from inside(field.struct)

    for name in messages.__all__:
        if name != "find_message":
            cls: type[Message] = find_message(name)
            yield from inside(cls)


FIELDS = list(fields())


def test_every_row_is_a_field() -> None:
    numbers = {(cls, field.name) for cls, field in FIELDS if field.type in SMALL}
    assert set(BY_CLASS) <= numbers
    assert set(BY_NAME) <= {name for _, name in numbers}
    assert not [(cls, f.name) for cls, f in FIELDS if enum_of(cls, f.name) and f.type not in SMALL]


def test_no_error_code_is_forgotten() -> None:
    names = {field.name for _, field in FIELDS if field.name.endswith("error_code")}
    assert all(BY_NAME[name] is ErrorCode for name in names)


def test_defaults_have_names() -> None:
    """A field's default is a number of its enum, or means that there is none."""
    for cls, field in FIELDS:
        enum = enum_of(cls, field.name) if field.type in SMALL and not field.array else None
        if enum is not None and field.default != -1:
            assert enum(field.default).known or enum in NO_ZERO, (cls, field.name)


NO_ZERO = {enums.StreamsMemberState, enums.StreamsNodeType, enums.ZooKeeperEvent, enums.ZooKeeperWatcherType}


@pytest.mark.parametrize(
    ("cls", "field", "value", "name"),
    [
        ("HeartbeatResponse", "error_code", 27, "REBALANCE_IN_PROGRESS"),
        ("HeartbeatResponse", "error_code", 0, "NONE"),
        ("BrokerRegistrationChangeRecord", "fenced", -1, "UNFENCE"),
        ("BrokerRegistrationChangeRecord", "in_controlled_shutdown", 1, "IN_CONTROLLED_SHUTDOWN"),
        ("TopologyDescriptionNode", "node_type", 2, "PROCESSOR"),
        ("DescribedGroup", "topology_description_status", 3, "AVAILABLE"),
        ("HeartbeatResponse", "error_code", 9999, "an unknown code"),
        ("AclCreation", "resource_type", 3, "GROUP"),
        ("DescribeConfigsResource", "resource_type", 4, "BROKER"),
        ("DescribeConfigsResource", "resource_type", 5, None),
        ("DescribedGroup", "authorized_operations", 1 << 3 | 1 << 8, "READ, DESCRIBE"),
        ("DescribedGroup", "authorized_operations", 0, "none"),
        ("DescribedGroup", "authorized_operations", -(1 << 31), "not asked for"),
        ("HeartbeatResponse", "throttle_time_ms", 3, None),
        ("Draft2PingResponse", "error_code", 3, None),
    ],
)
def test_what_a_number_says(cls: str, field: str, value: int, name: str | None) -> None:
    assert meaning(cls, field, value) == name
