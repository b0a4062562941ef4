"""What users do with message classes and their subclasses: the same whichever half runs."""

from __future__ import annotations

import copy
import inspect
import pickle
import sys
from collections.abc import Callable
from functools import partial
from typing import Any, get_type_hints
from uuid import UUID

import pytest

from coordwire.messages.heartbeat import HeartbeatRequest
from coordwire.messages.metadata import MetadataRequest, MetadataResponse, MetadataResponseTopic

REQUEST = HeartbeatRequest(group_id="payments", generation_id=300, member_id="till-3", tags={7: b"x"})
WIRE = REQUEST.encode(version=4)


class Setting(HeartbeatRequest):
    __slots__ = ()

    def __setattr__(self, name: str, value: Any) -> None:
        super().__setattr__(name, f"<{value}>" if name == "member_id" else value)


class Getting(HeartbeatRequest):
    __slots__ = ()

    def __getattribute__(self, name: str) -> Any:
        return "till-9" if name == "member_id" else super().__getattribute__(name)


class Lacking(HeartbeatRequest):
    __slots__ = ()

    def __getattr__(self, name: str) -> Any:
        return {"member_id": "till-9"}[name]


def test_a_subclass_may_have_its_own_way_to_its_attributes() -> None:
    assert Setting.decode(WIRE, version=4).member_id == "<till-3>"
    data = HeartbeatRequest(group_id="g", member_id="till-9").encode(version=4)
    assert Getting(group_id="g").encode(version=4) == data
    lacking = Lacking(group_id="g")
    del lacking.member_id
    assert lacking.encode(version=4) == data


@pytest.mark.skipif(sys.implementation.name != "cpython", reason="references are counted in CPython alone")
def test_a_long_chain_of_messages_in_lists_is_freed() -> None:
    class Slotted(MetadataRequest):
        __slots__ = ()

    class Finalized(MetadataRequest):
        __slots__ = ()

        def __del__(self) -> None:
            freed.append(1)

    freed: list[int] = []
    for kinds in ((MetadataRequest,), (Slotted,), (MetadataRequest, Slotted), (MetadataRequest, Finalized)):
        for kind in kinds:
            kind.decode(kind().encode(version=12), version=12)
        freed.clear()
        head: Any = None
        for place in range(300_000):
            head = kinds[place % len(kinds)](topics=[head])
        del head
        assert len(freed) == (150_000 if Finalized in kinds else 0)


def test_the_class_of_a_uuid_that_somebody_changed_stays_its_own() -> None:
    class Other(UUID):
        __slots__ = ()

    many = MetadataResponse(topics=[MetadataResponseTopic(topic_id=UUID(int=78)) for _ in range(9)])
    wire = many.encode(version=12)
    changed = MetadataResponse.decode(wire, version=12).topics[-1].topic_id
    object.__setattr__(changed, "__class__", Other)
    assert type(changed) is Other
    topics = MetadataResponse.decode(wire, version=12).topics
    assert {type(topic.topic_id) for topic in topics} == {UUID}


@pytest.mark.parametrize(
    "call", [HeartbeatRequest.decode, HeartbeatRequest._decode_at, HeartbeatRequest.encode]
)
def test_what_stands_in_a_class_is_pickled_and_copied(call: Callable[..., Any]) -> None:
    for results in (pickle.loads(pickle.dumps(call)), copy.copy(call), copy.deepcopy(call)):
        assert results == call
    assert pickle.loads(pickle.dumps(REQUEST.encode))(version=4) == WIRE
    decode = pickle.loads(pickle.dumps(partial(HeartbeatRequest.decode, version=4)))
    assert decode(WIRE) == REQUEST


def test_what_stands_in_a_class_tells_of_its_class_and_types() -> None:
    assert get_type_hints(HeartbeatRequest.encode) == {"version": int, "return": bytes}
    assert inspect.get_annotations(HeartbeatRequest.decode)["version"] == "int"
    assert getattr(HeartbeatRequest.decode, "__self__", None) is HeartbeatRequest
    assert not hasattr(HeartbeatRequest.encode, "__self__")


class Silent:
    """A mixin that doesn't pass on what it is given."""

    def __init_subclass__(cls) -> None:
        pass


def test_a_subclass_that_nobody_was_told_of_reads_its_own_objects() -> None:
    class Untold(Silent, HeartbeatRequest):
        __slots__ = ()

    class Below(Untold):
        __slots__ = ()

    for cls in (Untold, Below, HeartbeatRequest):
        for _ in range(100):  # so that the interpreter specializes the calls
            assert type(cls.decode(WIRE, version=4)) is cls
            assert type(cls._decode_at(WIRE, 0, 4, True, None)) is cls
            assert type(super(Untold, Below).decode(WIRE, version=4)) is Below
            assert cls(group_id="g").encode(version=4) == HeartbeatRequest(group_id="g").encode(version=4)
    for _ in range(100):
        assert type(Untold.decode(WIRE, version=4)) is Untold
        assert type(Below.decode(WIRE, version=4)) is Below
