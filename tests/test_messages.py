"""Messages are plain dataclasses: equality, repr, pickle, patterns, keywords, slots; versions."""

from __future__ import annotations

import copy
import dataclasses
import importlib
import pickle
from typing import Any

import pytest

from coordwire import (
    NotInVersion,
    UnknownApi,
    UnsupportedVersion,
    WrongType,
    decode_response,
    encode_request,
    encode_response,
    find_message,
    from_json,
    to_json,
)
from coordwire import messages as package
from coordwire.codec import Message, Request, Response, Struct
from coordwire.messages import HeartbeatRequest, HeartbeatResponse, JoinGroupRequest, RequestHeader
from coordwire.messages.join_group import JoinGroupRequestProtocol

ALL = [find_message(name) for name in package.__all__ if name != "find_message"]


def join() -> JoinGroupRequest:
    return JoinGroupRequest(
        group_id="payments",
        session_timeout_ms=30_000,
        protocols=[JoinGroupRequestProtocol(name="range", metadata=b"\0", tags={7: b"x"})],
    )


def test_equality_goes_by_value_and_class() -> None:
    assert join() == join()
    assert join() != JoinGroupRequest(group_id="payments")
    changed = join()
    changed.protocols[0].metadata = b"\1"
    assert join() != changed
    assert find_message("EndTxnResponse")() != find_message("AddOffsetsToTxnResponse")()


def test_repr_is_python_that_gives_the_message_back() -> None:
    space = {"JoinGroupRequest": JoinGroupRequest, "JoinGroupRequestProtocol": JoinGroupRequestProtocol}
    assert eval(repr(join()), space) == join()


@pytest.mark.parametrize("protocol", range(2, pickle.HIGHEST_PROTOCOL + 1))
def test_pickle_and_copies(protocol: int) -> None:
    assert pickle.loads(pickle.dumps(join(), protocol)) == join()
    deep = copy.deepcopy(join())
    assert deep == join()
    shallow = copy.copy(deep)
    shallow.group_id = "other"
    assert deep.group_id == "payments"
    assert dataclasses.replace(deep, group_id="third").protocols is deep.protocols


def test_a_request_class_names_its_response_class() -> None:
    assert JoinGroupRequest.response_class is find_message("JoinGroupResponse")
    for cls in ALL:
        direction = None if cls.api_key is None else cls.direction
        assert issubclass(cls, Request) == (direction == "request")
        assert issubclass(cls, Response) == (direction == "response")
        if issubclass(cls, Request):
            assert cls.response_class is find_message(cls.__name__.removesuffix("Request") + "Response")
            (base,) = cls.__orig_bases__  # type: ignore[attr-defined]
            assert base.__args__[0].__forward_arg__ == cls.response_class.__name__
        assert not hasattr(cls(), "__dict__")


def test_decoded_messages_are_whole_objects() -> None:
    message = JoinGroupRequest.decode(join().encode(version=9), version=9)
    assert type(message) is JoinGroupRequest
    assert pickle.loads(pickle.dumps(message)) == message == join()
    assert dataclasses.asdict(message) == dataclasses.asdict(join())
    older = HeartbeatRequest.decode(HeartbeatRequest(group_id="g").encode(version=0), version=0)
    assert older.group_instance_id is None  # not on the wire, and there all the same


def test_pattern_matching() -> None:
    match join():
        case JoinGroupRequest(group_id="payments", protocols=[JoinGroupRequestProtocol(name=name)]):
            assert name == "range"
        case _:
            raise AssertionError


def test_keywords_only() -> None:
    with pytest.raises(TypeError):
        HeartbeatRequest("payments")  # type: ignore[call-arg]
    with pytest.raises(TypeError):
        HeartbeatRequest(group="payments")  # type: ignore[call-arg]


def test_slots() -> None:
    with pytest.raises(AttributeError):
        join().groupid = "x"  # type: ignore[attr-defined]
    assert not hasattr(join(), "__dict__")


def test_defaults_are_not_shared() -> None:
    request, other = JoinGroupRequest(), JoinGroupRequest()
    request.protocols.append(JoinGroupRequestProtocol())
    assert other.protocols == []


@pytest.mark.parametrize("cls", ALL, ids=lambda cls: cls.__name__)
def test_each_class(cls: type[Message]) -> None:
    assert dataclasses.is_dataclass(cls)
    assert set(cls.flexible_versions) <= set(cls.versions)
    names = [field.name for field in dataclasses.fields(cls)]
    assert names == [*(field.name for field in cls._layout_.fields), "tags"]
    assert cls() == cls()
    for field in cls._layout_.fields:
        assert getattr(cls(), field.name) == field.fresh_default()
        assert not field.is_set(getattr(cls(), field.name))
    for version in cls.versions:
        assert cls.decode(cls().encode(version=version), version=version) == cls()
    for version in (cls.versions[0] - 1, cls.versions[-1] + 1):
        with pytest.raises(NotInVersion):
            cls().encode(version=version)
        with pytest.raises(UnsupportedVersion):
            cls.decode(b"", version=version)


def test_structs_are_found_in_their_modules_only() -> None:
    module = importlib.import_module("coordwire.messages.join_group")
    assert issubclass(module.JoinGroupRequestProtocol, Struct)
    assert not issubclass(module.JoinGroupRequestProtocol, Message)
    with pytest.raises(AttributeError):
        package.JoinGroupRequestProtocol  # noqa: B018


def test_what_there_is_no_message_for() -> None:
    for key, direction in ((9999, "request"), (11, "reply"), (11, None), ("JoinGroup", None)):
        with pytest.raises(KeyError):
            find_message(key, direction)


@pytest.mark.parametrize("version", ["4", None, 4.5, [4], b"4", {}])
def test_a_version_is_an_int(version: Any) -> None:
    request = HeartbeatRequest(group_id="g")
    wire = request.encode(version=4)
    reason = f"expected an int as version, got {type(version).__name__}"
    for write in (
        lambda: request.encode(version=version),
        lambda: to_json(request, version=version),
        lambda: from_json(HeartbeatRequest, {}, version=version),
        lambda: encode_request(request, version=version, correlation_id=1),
        lambda: encode_response(HeartbeatResponse(), version=version, correlation_id=1),
    ):
        with pytest.raises(WrongType, match=reason):
            write()
    answer = encode_response(HeartbeatResponse(), version=4, correlation_id=1)
    for read in (
        lambda: HeartbeatRequest.decode(wire, version=version),
        lambda: decode_response(answer, api_key=12, version=version),
    ):
        with pytest.raises(UnsupportedVersion, match=reason):
            read()


def test_a_message_is_found_by_key_and_by_name() -> None:
    assert find_message(11, "request") is JoinGroupRequest
    assert find_message("JoinGroupRequest") is find_message("JoinGroupRequest", "request") is JoinGroupRequest
    assert find_message("JoinGroup", "request") is JoinGroupRequest
    assert find_message("JoinGroup", "response") is find_message("JoinGroupResponse")
    assert find_message("Draft2Ping", "response") is find_message("Draft2PingResponse")
    assert find_message("RequestHeader").direction == "header"


@pytest.mark.parametrize(
    ("arguments", "reason"),
    [
        (("JoinGroup",), "JoinGroup is an API: its messages are JoinGroupRequest and JoinGroupResponse"),
        ((11,), "JoinGroup is an API: its messages are JoinGroupRequest and JoinGroupResponse"),
        (("JoinGrop",), "JoinGrop is not a message; did you mean JoinGroup?"),
        (("joingrouprequest",), "joingrouprequest is not a message; did you mean JoinGroupRequest?"),
        (("joingroup", "request"), "joingroup is not a message; did you mean JoinGroup?"),
        (("JoinGroupRequest", "response"), "JoinGroupRequest is a request"),
        (("JoinGroupResponse", "request"), "JoinGroupResponse is a response"),
        (("Kafka07Produce", "response"), "Kafka07Produce has no response"),
        (("x" * 1_000_000,), "x" * 100 + " is not a message"),
        ((999, "request"), "api key 999 is unknown"),
        ((11, "both"), "a direction is request or response, got 'both'"),
        (("",), " is not a message"),
    ],
)
def test_what_is_not_a_message(arguments: Any, reason: str) -> None:
    with pytest.raises(KeyError) as error_info:
        find_message(*arguments)
    assert error_info.value.args == (reason,)


def test_an_api_key_of_a_response_is_an_int() -> None:
    with pytest.raises(UnknownApi, match="expected an int as api key, got str"):
        decode_response(b"\0\0\0\4\0\0\0\1", api_key="JoinGroup", version=1)  # type: ignore[call-overload]


def test_a_response_is_decoded_by_the_class_of_its_request() -> None:
    wire = encode_response(find_message(12, "response")(), version=4, correlation_id=1)
    frame = decode_response(wire, request_class=HeartbeatRequest, version=4)
    assert frame == decode_response(wire, api_key=12, version=4)
    with pytest.raises(UnsupportedVersion):
        decode_response(wire, request_class=HeartbeatRequest, version=HeartbeatRequest.versions[-1] + 1)


@pytest.mark.parametrize(
    ("given", "reason"),
    [
        ({}, "expected either api_key or request_class"),
        ({"api_key": 12, "request_class": HeartbeatRequest}, "expected either api_key or request_class"),
        ({"request_class": RequestHeader}, "expected a request's class, got RequestHeader"),
        ({"request_class": HeartbeatResponse}, "expected a request's class, got HeartbeatResponse"),
        ({"request_class": Request}, "expected a request's class, got Request"),
        ({"request_class": HeartbeatRequest()}, "expected a request's class, got HeartbeatRequest"),
    ],
)
def test_a_response_is_decoded_by_one_of_both(given: dict[str, Any], reason: str) -> None:
    with pytest.raises(TypeError) as error_info:
        decode_response(b"", version=4, **given)
    assert str(error_info.value).startswith(reason)
