"""Classes whose fields say their wire form: the tables that are made of them."""

from __future__ import annotations

import copy
import dataclasses
import inspect
import subprocess
import sys
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any
from uuid import UUID

import pytest

from coordwire.codec import (
    FOREVER,
    NEVER,
    ZERO_UUID,
    Field,
    Message,
    Struct,
    array,
    field,
    struct,
    wire_class,
)  # fmt: skip
from coordwire.codec.declarations import DataclassAttribute, positional
from coordwire.messages import HeartbeatRequest, HeartbeatResponse, StreamsGroupHeartbeatResponse
from coordwire.messages.streams_group_heartbeat import Status


@wire_class
class Part(Struct, flexible=2):
    number: int = field("int32", default=0)
    tags: dict[int, bytes] | None = None


@wire_class
class Whole(Message, versions=(1, 3), flexible=2):
    flag: bool = field("bool", default=False)
    ratio: float = field("float64", default=0.0, since=2, until=2)
    id: UUID = field("uuid", default=ZERO_UUID)
    name: str | None = field("string", null=1, default=None, entity="group_id")
    key: bytes = field("bytes", default=b"", secret=True)
    least: int = field("int8", default=-1, ignorable=True)
    numbers: list[int] = array("int64", default=[], fixed=True)
    parts: list[Part] | None = array(Part, null=0, null_until=2, default=None)
    part: Part = struct(Part, default=Part(), since=2, tag=0)
    perhaps: Part | None = struct(Part, null=0, default=None)
    tags: dict[int, bytes] | None = None


@wire_class
class Empty(Message, versions=(0, 0), direction="request", short_counts=True):
    tags: dict[int, bytes] | None = None


def test_the_rows_of_a_table() -> None:
    table = Whole._layout_
    assert table.cls is Whole
    assert (table.flexible, table.short_counts) == (2, False)
    assert table.fields == (
        Field("flag", "bool", default=False),
        Field("ratio", "float64", 2, 2, default=0.0),
        Field("id", "uuid", default=ZERO_UUID),
        Field("name", "string", null=1, default=None, entity="group_id"),
        Field("key", "bytes", default=b"", secret=True),
        Field("least", "int8", default=-1, ignorable=True),
        Field("numbers", "int64", array=True, default=(), fixed=True),
        Field("parts", "struct", array=True, struct=Part, null=0, null_until=2, default=None),
        Field("part", "struct", 2, struct=Part, tag=0),
        Field("perhaps", "struct", struct=Part, null=0, default=None),
    )
    assert table.fields[0].last == FOREVER
    assert Empty._layout_.fields == ()
    assert (Empty._layout_.flexible, Empty._layout_.short_counts) == (NEVER, True)


def test_the_facts_of_a_class() -> None:
    assert (Whole.api_key, Whole.direction) == (None, "data")
    assert (Whole.versions, Whole.flexible_versions) == (range(1, 4), range(2, 4))
    assert (Empty.direction, list(Empty.flexible_versions)) == ("request", [])


def test_the_defaults_of_a_message() -> None:
    made = Whole()
    assert made == Whole(
        flag=False, ratio=0.0, id=ZERO_UUID, name=None, key=b"", least=-1, numbers=[], parts=None,
        part=Part(number=0), perhaps=None, tags=None,
    )  # fmt: skip
    assert made.numbers is not Whole().numbers
    assert made.part is not Whole().part


def fresh() -> Any:
    """A class of which nothing has been used yet."""

    @wire_class
    class Fresh(Message, versions=(0, 0)):
        name: str = field("string", default="")
        parts: list[Part] = array(Part, default=[])
        tags: dict[int, bytes] | None = None

    return Fresh


@dataclass(slots=True, kw_only=True)
class Plain:
    """The same fields as a dataclass has them."""

    name: str = ""
    parts: list[Part] = dataclasses.field(default_factory=list)
    tags: dict[int, bytes] | None = None


WIRE = b"\0\1n\0\0\0\1\0\0\0\5"


def read(cls: Any) -> Any:
    """An object that no `__init__` made."""
    return cls.decode(WIRE, version=0)


def test_reading_and_writing_bytes_makes_no_dataclass() -> None:
    cls = fresh()
    assert read(cls).encode(version=0) == WIRE
    assert "__init__" not in vars(cls)
    assert cls().parts == []
    assert "__init__" in vars(cls)


def test_a_whole_class_has_what_dataclass_makes() -> None:
    cls, ways = fresh(), ("__init__", "__repr__", "__eq__")
    cls()
    names = vars(Plain).keys() - {"__annotations__", "__doc__", "__module__"}
    for name in names:
        assert type(vars(cls)[name]) is type(vars(Plain)[name]), name
    assert {name for name in vars(Struct) if isinstance(vars(Struct)[name], DataclassAttribute)} == {
        *ways, "__dataclass_fields__", "__dataclass_params__", "__match_args__",
        *(("__replace__",) if sys.version_info >= (3, 13) else ()),
    }  # fmt: skip
    for name in ways:
        made, plain = (inspect.unwrap(vars(each)[name]) for each in (cls, Plain))
        assert made.__code__.co_code == plain.__code__.co_code
        assert made.__qualname__ == plain.__qualname__.replace("Plain", cls.__qualname__)
        assert str(inspect.signature(made)) == str(inspect.signature(plain))
    assert repr(cls.__dataclass_params__) == repr(vars(Plain)["__dataclass_params__"])
    for made, plain in zip(dataclasses.fields(cls), dataclasses.fields(Plain), strict=True):
        for fact in ("name", "type", "default", "default_factory", "init", "repr", "compare", "kw_only"):
            assert getattr(made, fact) == getattr(plain, fact)


FIRST_USES: dict[str, Callable[[Any], object]] = {
    "making": lambda cls: cls(name="n") == cls(name="n") and cls(name="n", tags={}).tags == {},
    "keywords": lambda cls: [*inspect.signature(cls).parameters] == ["name", "parts", "tags"],
    "equality": lambda cls: read(cls) == read(cls) and not read(cls) != read(cls),  # noqa: SIM202
    "difference": lambda cls: read(cls) != read(fresh()),
    "text": lambda cls: repr(read(cls)).endswith(
        "Fresh(name='n', parts=[Part(number=5, tags=None)], tags=None)"
    ),
    "hash": lambda cls: cls.__hash__ is None,
    "fields": lambda cls: [row.name for row in dataclasses.fields(read(cls))] == ["name", "parts", "tags"],
    "known": lambda cls: dataclasses.is_dataclass(cls) and dataclasses.is_dataclass(read(fresh())),
    "replace": lambda cls: dataclasses.replace(read(cls), name="m").name == "m",
    "asdict": lambda cls: dataclasses.asdict(read(cls))["parts"] == [{"number": 5, "tags": None}],
    "match": lambda cls: cls.__match_args__ == (),
    "copy": lambda cls: copy.copy(read(cls)) == copy.deepcopy(read(cls)),
    "slots": lambda cls: cls.__slots__ == ("name", "parts", "tags") and not hasattr(read(cls), "__dict__"),
    "subclass": lambda cls: (
        [row.name for row in dataclasses.fields(dataclass(type("Sub", (cls,), {})))][2] == "tags"
    ),
}


@pytest.mark.parametrize("use", FIRST_USES)
def test_the_first_use_of_a_class(use: str) -> None:
    assert FIRST_USES[use](fresh())


def test_a_subclass_calls_the_constructor_first() -> None:
    cls = fresh()

    class Made(cls):  # type: ignore[misc, valid-type]
        def __init__(self, name: str) -> None:
            super().__init__(name=name)

        def __eq__(self, other: object) -> bool:
            return bool(super().__eq__(other))

    assert Made("n") == Made("n")
    assert Made("n").parts == []


def test_objects_are_pickled_before_their_class_is_whole() -> None:
    code = (
        "import pickle; from coordwire.messages import HeartbeatRequest as Request; "
        "message = Request.decode(bytes(8), version=0); wire = pickle.dumps(message); "
        "assert '__eq__' not in vars(Request); assert pickle.loads(wire) == message"
    )
    subprocess.run([sys.executable, "-c", code], check=True)


def test_the_base_classes_are_no_dataclasses() -> None:
    for cls in (Struct, Message):
        assert not dataclasses.is_dataclass(cls)
        assert repr(cls()).startswith("<coordwire.")
        assert cls() != cls()


@pytest.mark.parametrize("version", Whole.versions)
def test_what_is_declared_is_encoded(version: int) -> None:
    message = Whole(flag=True, name="n", numbers=[1], parts=[Part(number=5)], perhaps=Part(number=7))
    message.part.number = 6 if version > 1 else 0
    assert Whole.decode(message.encode(version=version), version=version) == message


@dataclass(slots=True, kw_only=True)
class Noted(HeartbeatRequest):
    note: str = ""


@dataclass(kw_only=True)
class NotedInADict(HeartbeatRequest):
    note: str = ""


@pytest.mark.parametrize("cls", [Noted, NotedInADict])
def test_a_subclass_keeps_the_table(cls: type[HeartbeatRequest]) -> None:
    assert cls._layout_ is HeartbeatRequest._layout_
    assert cls.response_class is HeartbeatResponse
    wire = cls(group_id="g").encode(version=4)
    message = cls.decode(wire, version=4)
    assert (type(message), message.group_id) == (cls, "g")


def test_a_subclass_of_a_response_is_not_the_response_of_its_request() -> None:
    class Other(HeartbeatResponse):
        pass

    assert HeartbeatRequest.response_class is HeartbeatResponse


@pytest.mark.parametrize("made", [field, array, struct])
def test_an_unknown_word_is_refused(made: Any) -> None:
    with pytest.raises(TypeError, match="defualt"):
        made("string", default=None, defualt="")


@pytest.mark.parametrize("made", [field, array, struct])
def test_a_default_must_be_named(made: Any) -> None:
    with pytest.raises(TypeError, match="default"):
        made("string")


def test_type_checkers_know_the_fields() -> None:
    """Editors show the defaults that the calls name, since these are specifiers of fields for them."""
    facts: Any = wire_class
    assert facts.__dataclass_transform__["field_specifiers"] == (field, array, struct)
    assert facts.__dataclass_transform__["kw_only_default"]


def test_a_positional_constructor_makes_what_the_class_makes() -> None:
    make = positional(StreamsGroupHeartbeatResponse, "member_epoch", "member_id")
    made = make(3, "m")
    assert made == StreamsGroupHeartbeatResponse(member_id="m", member_epoch=3)
    assert type(made) is StreamsGroupHeartbeatResponse
    assert made.status is not None
    made.status.append(Status())
    assert make(3, "m").status == []  # each has a list of its own
    assert positional(HeartbeatResponse)() == HeartbeatResponse()
    with pytest.raises(TypeError):
        make(3)
