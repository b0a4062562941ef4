"""The JSON form: Kafka's, both ways; every form that isn't one is refused with its path."""

from __future__ import annotations

import json
import math
import struct
from dataclasses import dataclass, field
from typing import Any, ClassVar
from uuid import UUID

import pytest

from coordwire import EncodeError, NotInVersion, OutOfRange, WrongType, from_json, to_json
from coordwire.codec import Field, FieldTable, Message, Struct
from coordwire.messages import (
    FetchRequest,
    HeartbeatRequest,
    JoinGroupRequest,
    JoinGroupResponse,
    RequestHeader,
    StreamsGroupHeartbeatRequest,
)
from coordwire.messages.fetch import FetchTopic, ReplicaState
from coordwire.messages.join_group import JoinGroupRequestProtocol

MANY_DIGITS = 10**5000


@dataclass(slots=True, kw_only=True)
class Inner(Struct):
    """One of each kind that is rare in Kafka's messages."""

    ratio: float = 0.0
    mask: int = 0
    tags: dict[int, bytes] | None = None


@dataclass(slots=True, kw_only=True)
class Outer(Message):
    """A message of no Kafka."""

    api_key: ClassVar[int | None] = None
    direction: ClassVar[str] = "data"
    versions: ClassVar[range] = range(3)
    flexible_versions: ClassVar[range] = range(1, 3)

    inners: list[Inner] = field(default_factory=list)
    flags: list[bool] = field(default_factory=list)
    ids: list[UUID] | None = None
    data: bytes | None = b""
    dropped: int = 0
    kept: int = 0
    tagged: float = 0.0
    sub: Inner | None = None
    tags: dict[int, bytes] | None = None


Inner._layout_ = FieldTable(
    Inner, Field("ratio", "float64", default=0.0), Field("mask", "uint32"), flexible=1
)
Outer._layout_ = FieldTable(
    Outer,
    Field("inners", "struct", array=True, struct=Inner, default=()),
    Field("flags", "bool", array=True, default=()),
    Field("ids", "uuid", array=True, null=0, default=None),
    Field("data", "records", null=1, default=b""),
    Field("dropped", "int8", 1, ignorable=True),
    Field("kept", "int8", 1),
    Field("tagged", "float64", 2, default=0.0, tag=0),
    Field("sub", "struct", struct=Inner, null=0, default=None),
    flexible=1,
)


def form(**changes: Any) -> dict[str, Any]:
    result: dict[str, Any] = {
        "inners": [], "flags": [], "ids": None, "data": None, "dropped": 0, "kept": 0, "sub": None,
    }  # fmt: skip
    return result | changes


def bits(number: float) -> str:
    return struct.pack(">d", number).hex()


# --- what it looks like ---


def test_kafka_s_form() -> None:
    request = JoinGroupRequest(
        group_id="payments",
        session_timeout_ms=30_000,
        protocol_type="consumer",
        protocols=[JoinGroupRequestProtocol(name="range", metadata=b"\0\xff\xfe", tags={300: b"?"})],
        tags={7: b"", 4_294_967_295: b"\1"},
    )
    assert to_json(request, version=9) == {
        "groupId": "payments",
        "sessionTimeoutMs": 30_000,
        "rebalanceTimeoutMs": -1,
        "memberId": "",
        "groupInstanceId": None,
        "protocolType": "consumer",
        "protocols": [{"name": "range", "metadata": "AP/+", "_tags": {"300": "Pw=="}}],
        "reason": None,
        "_tags": {"7": "", "4294967295": "AQ=="},
    }
    assert from_json(JoinGroupRequest, to_json(request, version=9), version=9) == request


def test_fields_outside_the_version_are_absent_and_have_their_defaults_again() -> None:
    result = to_json(JoinGroupRequest(group_id="g"), version=0)
    assert list(result) == ["groupId", "sessionTimeoutMs", "memberId", "protocolType", "protocols"]
    assert from_json(JoinGroupRequest, result, version=0) == JoinGroupRequest(group_id="g")


def test_tagged_fields_are_absent_at_their_default() -> None:
    request = FetchRequest(cluster_id=None, topics=[FetchTopic(topic_id=UUID(int=1))])
    result = to_json(request, version=15)
    assert "clusterId" not in result
    assert "replicaState" not in result
    set_ = FetchRequest(cluster_id="c", replica_state=ReplicaState(replica_id=3))
    result = to_json(set_, version=15)
    assert result["clusterId"] == "c"
    assert result["replicaState"] == {"replicaId": 3, "replicaEpoch": -1}
    assert from_json(FetchRequest, result, version=15) == set_


def test_header_fields_and_uuids() -> None:
    header = RequestHeader(request_api_key=3, request_api_version=1, correlation_id=2, client_id=None)
    assert list(to_json(header, version=2)) == [
        "requestApiKey", "requestApiVersion", "correlationId", "clientId",
    ]  # fmt: skip
    ids = [UUID(int=0), UUID(int=(1 << 128) - 1), UUID(bytes=b"\xfb\xef\xbe" * 5 + b"\0")]
    result = to_json(Outer(ids=ids), version=1)
    assert result["ids"] == [
        "AAAAAAAAAAAAAAAAAAAAAA",
        "_____________________w",
        "--------------------AA"[:22],
    ]
    assert from_json(Outer, result, version=1).ids == ids


@pytest.mark.parametrize(
    ("number", "written"),
    [
        (1.5, 1.5),
        (-0.0, -0.0),
        (1.7976931348623157e308, 1.7976931348623157e308),
        (5e-324, 5e-324),
        (3, 3.0),
        (math.inf, "Infinity"),
        (-math.inf, "-Infinity"),
        (math.nan, "NaN"),
        (struct.unpack(">d", bytes.fromhex("fff8000000000000"))[0], "NaN:fff8000000000000"),
        (struct.unpack(">d", bytes.fromhex("7ff0000000000001"))[0], "NaN:7ff0000000000001"),
    ],
)
def test_floats_keep_their_bits(number: float, written: float | str) -> None:
    message = Outer(inners=[Inner(ratio=number)], tagged=number)
    text = json.dumps(to_json(message, version=2), allow_nan=False)
    result = json.loads(text)
    assert result["inners"][0]["ratio"] == written
    again = from_json(Outer, result, version=2)
    assert bits(again.inners[0].ratio) == bits(float(number))
    if number:
        assert bits(again.tagged) == bits(float(number))
    else:  # at its default
        assert "tagged" not in result


def test_large_integers_are_numbers() -> None:
    result = json.loads(json.dumps(to_json(Outer(inners=[Inner(mask=0xFFFF_FFFF)]), version=1)))
    assert result["inners"] == [{"ratio": 0.0, "mask": 4_294_967_295}]


# --- what to_json refuses ---


@pytest.mark.parametrize(
    ("message", "version", "kind", "path"),
    [
        (JoinGroupRequest(group_instance_id="x"), 4, NotInVersion, "group_instance_id"),
        (JoinGroupRequest(), 10, NotInVersion, ""),
        (JoinGroupRequest(tags={1: b""}), 5, NotInVersion, "tags"),
        (
            JoinGroupRequest(protocols=[JoinGroupRequestProtocol(tags={1: b""})]),
            5,
            NotInVersion,
            "protocols[0].tags",
        ),
        (JoinGroupResponse(protocol_name=None), 6, NotInVersion, "protocol_name"),
        (Outer(kept=1), 0, NotInVersion, "kept"),
        (Outer(data=None), 0, NotInVersion, "data"),
        (FetchRequest(topics=None), 4, WrongType, "topics"),  # type: ignore[arg-type]
        (JoinGroupRequest(group_id=5), 9, WrongType, "group_id"),  # type: ignore[arg-type]
        (JoinGroupRequest(protocols={}), 9, WrongType, "protocols"),  # type: ignore[arg-type]
        (JoinGroupRequest(protocols=[None]), 9, WrongType, "protocols[0]"),  # type: ignore[list-item]
        (Outer(flags=[True, 1]), 0, WrongType, "flags[1]"),  # type: ignore[list-item]
        (Outer(sub=JoinGroupRequest()), 0, WrongType, "sub"),  # type: ignore[arg-type]
        (Outer(sub=Inner(ratio="1")), 0, WrongType, "sub.ratio"),  # type: ignore[arg-type]
        (Outer(inners=[Inner(ratio=10**400)]), 0, OutOfRange, "inners[0].ratio"),
        (Outer(tags={0: b""}), 2, OutOfRange, "tags"),
        (Outer(tags={1 << 32: b""}), 2, OutOfRange, "tags"),
        (Outer(tags={5: "x"}), 2, WrongType, "tags[5]"),  # type: ignore[dict-item]
        (Outer(tags=[5]), 2, WrongType, "tags"),  # type: ignore[arg-type]
        (Outer(tags={"5": b""}), 2, WrongType, "tags"),  # type: ignore[dict-item]
        (Outer(tags={True: b""}), 2, WrongType, "tags"),
        (JoinGroupRequest(session_timeout_ms="5"), 9, WrongType, "session_timeout_ms"),  # type: ignore[arg-type]
        (FetchRequest(topics=[FetchTopic(topic_id=5)]), 13, WrongType, "topics[0].topic_id"),  # type: ignore[arg-type]
    ],
)
def test_to_json_refuses_as_encode_does(
    message: Message, version: int, kind: type[EncodeError], path: str
) -> None:
    with pytest.raises(kind) as error_info:
        to_json(message, version=version)
    assert (type(error_info.value), error_info.value.path) == (kind, path)
    assert error_info.value.reason


def test_an_ignorable_field_is_dropped() -> None:
    assert "dropped" not in to_json(Outer(dropped=3), version=0)


# --- what from_json refuses ---


@pytest.mark.parametrize(
    ("wrong", "version", "kind", "path"),
    [
        (form(inners=[{"ratio": 1, "mask": 0, "maks": 0}]), 1, WrongType, "inners[0].maks"),
        (form(inners=[{"ratio": 1}]), 1, WrongType, "inners[0].mask"),
        (form(inners=[{"ratio": 1, "mask": 1 << 32}]), 1, OutOfRange, "inners[0].mask"),
        (form(inners=[{"ratio": 1, "mask": -1}]), 1, OutOfRange, "inners[0].mask"),
        (form(inners=[{"ratio": 1, "mask": True}]), 1, WrongType, "inners[0].mask"),
        (form(inners=[{"ratio": 1, "mask": 1.0}]), 1, WrongType, "inners[0].mask"),
        (form(inners=[{"ratio": True, "mask": 1}]), 1, WrongType, "inners[0].ratio"),
        (form(inners=[{"ratio": MANY_DIGITS, "mask": 1}]), 1, OutOfRange, "inners[0].ratio"),
        (form(inners=[{"ratio": "nan", "mask": 1}]), 1, OutOfRange, "inners[0].ratio"),
        (form(inners=[{"ratio": "NaN:7ff0000000000000", "mask": 1}]), 1, OutOfRange, "inners[0].ratio"),
        (form(inners=[{"ratio": "NaN:7ff800000000000x", "mask": 1}]), 1, OutOfRange, "inners[0].ratio"),
        (form(inners=[{"ratio": [], "mask": 1}]), 1, WrongType, "inners[0].ratio"),
        (form(inners=[[]]), 1, WrongType, "inners[0]"),
        (form(inners={}), 1, WrongType, "inners"),
        (form(inners=None), 1, WrongType, "inners"),
        (form(flags=[0]), 1, WrongType, "flags[0]"),
        (form(flags=[None]), 1, WrongType, "flags[0]"),
        (form(flags="true"), 1, WrongType, "flags"),
        (form(ids=[""]), 1, OutOfRange, "ids[0]"),
        (form(ids=["A" * 21 + "B"]), 1, OutOfRange, "ids[0]"),
        (form(ids=["A" * 20 + "+A"]), 1, OutOfRange, "ids[0]"),
        (form(ids=["A" * 20 + "=="]), 1, OutOfRange, "ids[0]"),
        (form(ids=["é" * 21 + "A"]), 1, OutOfRange, "ids[0]"),
        (form(ids=[str(UUID(int=1))]), 1, OutOfRange, "ids[0]"),
        (form(ids=[7]), 1, WrongType, "ids[0]"),
        (form(data="AA"), 1, OutOfRange, "data"),
        (form(data="AA==\n"), 1, OutOfRange, "data"),
        (form(data="A-=="), 1, OutOfRange, "data"),
        (form(data="é"), 1, OutOfRange, "data"),
        (form(data=[1, 2]), 1, WrongType, "data"),
        (form(kept=MANY_DIGITS), 1, OutOfRange, "kept"),
        (form(kept=float("nan")), 1, WrongType, "kept"),
        (form(kept="1"), 1, WrongType, "kept"),
        (form(sub=[]), 1, WrongType, "sub"),
        (form(sub={"ratio": 0, "mask": 0, "_tags": {"x": ""}}), 1, WrongType, "sub.tags"),
        (form(_tags={"07": ""}), 1, OutOfRange, "tags"),
        (form(_tags={"4294967296": ""}), 1, OutOfRange, "tags"),
        (form(_tags={"9" * 6000: ""}), 1, OutOfRange, "tags"),
        (form(_tags={"٣": ""}), 1, WrongType, "tags"),
        (form(_tags={"3": "x"}), 1, OutOfRange, "tags[3]"),
        (form(_tags={"3": None}), 1, WrongType, "tags[3]"),
        (form(_tags={"0": ""}), 2, OutOfRange, "tags"),
        (form(_tags=[]), 1, WrongType, "tags"),
        (form(_tags=None), 1, WrongType, "tags"),
        (form(tagged=0.5), 1, NotInVersion, "tagged"),
        (form(tagged=None), 2, WrongType, "tagged"),
        (form(Kept=0), 1, WrongType, "Kept"),
        (form() | {3: 0}, 1, WrongType, "int"),
        ({}, 1, WrongType, "inners"),
        ([], 1, WrongType, ""),
        (None, 1, WrongType, ""),
        ("{}", 1, WrongType, ""),
        (form(), 3, NotInVersion, ""),
        (form(), 0, NotInVersion, "data"),
    ],
)
def test_from_json_refuses_with_a_path(wrong: Any, version: int, kind: type[EncodeError], path: str) -> None:
    with pytest.raises(kind) as error_info:
        from_json(Outer, wrong, version=version)
    assert (type(error_info.value), error_info.value.path) == (kind, path)
    assert error_info.value.reason
    assert len(str(error_info.value)) < 300


def test_tags_where_there_are_none() -> None:
    good = to_json(HeartbeatRequest(), version=0)
    assert from_json(HeartbeatRequest, good | {"_tags": {}}, version=0) == HeartbeatRequest()
    with pytest.raises(NotInVersion) as error_info:
        from_json(HeartbeatRequest, good | {"_tags": {"1": ""}}, version=0)
    assert error_info.value.path == "tags"


def test_a_misspelt_field_is_told_what_was_meant() -> None:
    wrong = to_json(HeartbeatRequest(), version=4) | {"groupID": "x"}
    with pytest.raises(
        WrongType, match="HeartbeatRequest has no such field; did you mean groupId\\?"
    ) as error_info:
        from_json(HeartbeatRequest, wrong, version=4)
    assert error_info.value.path == "groupID"


def test_deep_forms_are_refused_at_once() -> None:
    deep: Any = []
    for _ in range(100_000):
        deep = [deep]
    with pytest.raises(WrongType) as error_info:
        from_json(StreamsGroupHeartbeatRequest, {"groupId": deep}, version=0)
    assert error_info.value.path == "group_id"
    with pytest.raises(WrongType) as error_info:
        from_json(Outer, form(inners=[deep]), version=1)
    assert error_info.value.path == "inners[0]"


def test_reading_a_form_leaves_it_alone() -> None:
    given = to_json(JoinGroupRequest(protocols=[JoinGroupRequestProtocol()], tags={1: b"x"}), version=9)
    text = json.dumps(given)
    message = from_json(JoinGroupRequest, given, version=9)
    message.protocols.append(JoinGroupRequestProtocol())
    assert json.dumps(given) == text
