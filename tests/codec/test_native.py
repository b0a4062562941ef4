"""The native engine where the conformance tests don't reach: calls, subclasses, what it leaves to Python."""

from __future__ import annotations

import enum
import inspect
from collections.abc import Callable
from functools import partial
from typing import Any, cast
from uuid import UUID

import pytest

from coordwire import CoordwireError, limits
from coordwire._speedups import native
from coordwire.codec import Message
from coordwire.codec.program import message_program
from coordwire.messages.fetch import FetchableTopicResponse, FetchResponse
from coordwire.messages.heartbeat import HeartbeatRequest, HeartbeatResponse
from coordwire.messages.join_group import JoinGroupRequest, JoinGroupRequestProtocol
from coordwire.messages.metadata import MetadataRequest, MetadataResponse
from tests.compiled import compiled_decoder, compiled_encoder
from tests.conformance.engines import MESSAGES

pytestmark = pytest.mark.skipif(native is None, reason="the native engine isn't built, or Python is forced")

REQUEST = HeartbeatRequest(group_id="payments", generation_id=300, member_id="till-3", tags={7: b"x"})
WIRE = REQUEST.encode(version=4)


@pytest.fixture(autouse=True)
def _python_functions_run_compiled_code(monkeypatch: pytest.MonkeyPatch) -> None:
    """As where there is no native engine: else they use it too, for what it doesn't accept."""
    for cls in (
        FetchResponse,
        HeartbeatRequest,
        HeartbeatResponse,
        JoinGroupRequest,
        MetadataRequest,
        MetadataResponse,
        Slotted,
        Loose,
        Own,
        Doubling,
    ):
        made = {version: compiled_decoder(cls, version) for version in cls.versions}
        monkeypatch.setattr(cls, "_decoders_", made)
        monkeypatch.setattr(cls, "_encoders_", {version: compiled_encoder(cls, version) for version in made})


def python_decode(cls: type[Message], data: Any, **arguments: Any) -> Any:
    """What the Python code alone makes of it."""
    return vars(Message)["decode"].__func__(cls, data, **arguments)


def outcome(call: Callable[[], object]) -> object:
    try:
        return call()
    except (CoordwireError, TypeError) as error:
        return type(error), str(error)


def program(cls: type[Message], version: int) -> Any:
    result = message_program(cls, version)
    assert result is not None
    return result


def test_every_message_has_a_program() -> None:
    for cls in MESSAGES:
        for version in cls.versions:
            assert message_program(cls, version) is not None, f"{cls.__name__} v{version}"


def test_what_stands_in_a_class_tells_of_itself() -> None:
    assert str(inspect.signature(HeartbeatRequest.decode)).startswith(
        "(data: 'Buffer', *, version: 'int', strict"
    )
    assert str(inspect.signature(HeartbeatRequest().encode)) == "(*, version: 'int') -> 'bytes'"
    assert str(inspect.signature(HeartbeatRequest.encode)) == "(self, *, version: 'int') -> 'bytes'"
    for name in ("decode", "encode"):
        here, there = getattr(HeartbeatRequest, name), getattr(Message, name)
        assert (here.__doc__, here.__name__, here.__qualname__) == (
            there.__doc__,
            there.__name__,
            there.__qualname__,
        )
        assert inspect.isroutine(here)


@pytest.mark.parametrize(
    "arguments",
    [
        {"version": 4}, {"version": 4, "strict": False}, {"deviations": [], "version": 4}, {"version": True},
        {"version": 99}, {"version": -1}, {"version": 1 << 70}, {"version": "4"}, {"version": None}, {},
        {"version": 4, "other": 1}, {"version": 4.0},
    ],
)  # fmt: skip
@pytest.mark.parametrize(
    "data", [WIRE, bytearray(WIRE), memoryview(WIRE), memoryview(WIRE + WIRE)[::2], b"", "x", None]
)
def test_any_call_has_the_outcome_of_python(data: Any, arguments: dict[str, Any]) -> None:
    expected = outcome(lambda: python_decode(HeartbeatRequest, data, **arguments))
    assert outcome(lambda: HeartbeatRequest.decode(data, **arguments)) == expected
    if "version" in arguments:
        version = arguments["version"]
        expected = outcome(lambda: Message.encode(REQUEST, version=version))
        assert outcome(lambda: REQUEST.encode(version=version)) == expected
        assert outcome(lambda: HeartbeatRequest.encode(REQUEST, version=version)) == expected


def test_the_version_is_a_keyword() -> None:
    for encode in (cast(Any, REQUEST.encode), partial(cast(Any, Message.encode), REQUEST)):
        for positional in ((4,), (4, 4)):
            with pytest.raises(TypeError, match="takes 1 positional argument"):
                encode(*positional)
        with pytest.raises(TypeError, match="version"):
            encode()


def test_the_keyword_need_not_be_interned() -> None:
    arguments: Any = {"".join(["ver", "sion"]): 4}
    assert HeartbeatRequest.decode(WIRE, **arguments) == REQUEST


class Code(enum.IntEnum):
    REBALANCE = 27


class Text(str):
    pass


class Items(list[Any]):
    def __iter__(self) -> Any:
        return iter(["other"])


class Id(UUID):
    pass


class Indexed:
    def __index__(self) -> int:
        return 5


NUMBERS: list[Any] = [Code.REBALANCE, True, Indexed(), 1.0, "1", None, 32767, 32768, -32768, -32769, 1 << 70]
TEXTS: list[Any] = [Text("g"), "é", "\ud800", "x" * 32767, "x" * 32768, "é" * 16384, b"g", None, 1]
TAGS: list[Any] = [
    {}, {5: b"b", 3: b"a"}, {300: b"x" * 300}, {True: b""}, {1: bytearray(b"x")}, {1: None}, {-1: b""},
    {1 << 32: b""}, {(1 << 32) - 1: b""}, {Code.REBALANCE: b""}, [], (), 0, "", [1],
]  # fmt: skip
METADATA: list[Any] = [b"1", bytearray(b"2"), memoryview(b"3"), memoryview(b"123456")[::2], "text", None]
PROTOCOLS: list[Any] = [
    (), [], Items([1]), (JoinGroupRequestProtocol(name="n"),), [HeartbeatRequest()], [None], None, "", {},
    *([JoinGroupRequestProtocol(metadata=value)] for value in METADATA),
]  # fmt: skip
UNUSUAL: list[tuple[type[Message], str, list[Any]]] = [
    (HeartbeatResponse, "error_code", NUMBERS),
    (HeartbeatRequest, "group_id", TEXTS),
    (HeartbeatRequest, "tags", TAGS),
    (JoinGroupRequest, "protocols", PROTOCOLS),
    (MetadataRequest, "topics", [None, [], ()]),
    (MetadataResponse, "cluster_id", [None, "", "c", 5]),
]


@pytest.mark.parametrize(
    ("cls", "name", "value"), [(cls, name, value) for cls, name, values in UNUSUAL for value in values]
)
def test_any_value_has_the_outcome_of_python(cls: type[Message], name: str, value: Any) -> None:
    message = cls()
    setattr(message, name, value)
    for version in cls.versions:
        expected = outcome(lambda: Message.encode(message, version=version))  # noqa: B023
        assert outcome(lambda: message.encode(version=version)) == expected  # noqa: B023
        assert program(cls, version).encode(message) in (None, expected)


IDS: list[Any] = [UUID(int=5), Id(int=5), UUID(int=0), None, "x", UUID(int=(1 << 128) - 1)]


@pytest.mark.parametrize("topic_id", IDS)
def test_uuids(topic_id: Any) -> None:
    message = FetchResponse(responses=[FetchableTopicResponse(topic_id=topic_id)])
    for version in (12, 13):
        expected = outcome(lambda: Message.encode(message, version=version))  # noqa: B023
        assert outcome(lambda: message.encode(version=version)) == expected  # noqa: B023


def test_a_uuid_that_is_none() -> None:
    broken = UUID(int=5)
    object.__setattr__(broken, "int", -1)
    message = FetchResponse(responses=[FetchableTopicResponse(topic_id=broken)])
    assert program(FetchResponse, 13).encode(message) is None


def test_an_attribute_that_was_deleted_is_an_error_as_in_python() -> None:
    message = HeartbeatRequest()
    del message.group_id
    assert program(HeartbeatRequest, 4).encode(message) is None
    with pytest.raises(AttributeError):
        message.encode(version=4)


@pytest.mark.parametrize("elements", [0, 1, 2, 3, 10**30])
@pytest.mark.parametrize("memory", [0, 199, 200, 400, 10**30])
@pytest.mark.parametrize("factor", [0, 9, 10, 11, 10**30])
def test_budgets_are_those_of_python_to_the_last_byte(elements: int, memory: int, factor: int) -> None:
    two = HeartbeatRequest(tags={1: b"", 2: b"y"}).encode(version=4)
    many = JoinGroupRequest(protocols=[JoinGroupRequestProtocol()] * 2).encode(version=9)
    with limits(elements=elements, memory=memory, memory_factor=factor):
        for cls, data, version in (
            (HeartbeatRequest, two, 4),
            (HeartbeatRequest, WIRE, 4),
            (JoinGroupRequest, many, 9),
        ):
            expected = outcome(lambda: python_decode(cls, data, version=version))  # noqa: B023
            assert outcome(lambda: cls.decode(data, version=version)) == expected  # noqa: B023


# --- subclasses ---


class Slotted(HeartbeatRequest):
    __slots__ = ("extra",)


class Loose(HeartbeatRequest):
    """Has a dictionary and weak references."""


class Own(HeartbeatRequest):
    group_id = property(lambda self: "own", lambda self, value: None)


class Doubling(HeartbeatRequest):
    @classmethod
    def decode(cls, data: Any, **arguments: Any) -> Any:
        return [super().decode(data, **arguments)] * 2

    def encode(self, *, version: int) -> bytes:
        return super().encode(version=version) * 2


@pytest.mark.parametrize("cls", [Slotted, Loose])
def test_a_subclass_is_read_and_written(cls: type[HeartbeatRequest]) -> None:
    message = cls.decode(WIRE, version=4)
    assert type(message) is cls
    assert type(python_decode(cls, WIRE, version=4)) is cls
    assert type(cls.decode(WIRE + b"?", version=4, strict=False)) is cls
    assert (message.group_id, message.tags) == (REQUEST.group_id, REQUEST.tags)
    assert message.encode(version=4) == WIRE
    with pytest.raises(AttributeError):
        message.extra  # type: ignore[attr-defined] # noqa: B018


def test_what_a_subclass_overrides_is_kept() -> None:
    assert Own.decode(WIRE, version=4).group_id == "own"
    assert Own().encode(version=4) == HeartbeatRequest(group_id="own").encode(version=4)
    one, two = cast(Any, Doubling.decode(WIRE, version=4))
    assert type(one) is Doubling
    assert one == two
    assert one.encode(version=4) == WIRE * 2

    class Deeper(Doubling):
        pass

    assert len(cast(Any, Deeper.decode(WIRE, version=4))) == 2


def test_a_decoder_is_found_on_objects_and_classes_alike() -> None:
    message, loose, own = HeartbeatRequest(), Loose(), Doubling()
    for _ in range(100):  # so that the interpreter specializes the calls
        assert message.decode(WIRE, version=4) == REQUEST
        assert type(loose.decode(WIRE, version=4)) is Loose
        assert message._decode_at(b"?" + WIRE, 1, 4, True, None) == REQUEST
        assert type(loose._decode_at(WIRE, 0, 4, True, None)) is Loose
        assert len(cast(Any, own.decode(WIRE, version=4))) == 2
        assert type(super(Loose, loose).decode(WIRE, version=4)) is Loose
        assert type(super(Loose, Loose).decode(WIRE, version=4)) is Loose
    for first in (message, loose, HeartbeatRequest, HeartbeatResponse(), None, WIRE):
        for cls in (HeartbeatRequest, Loose):
            if not isinstance(first, cls) and first is not cls:
                with pytest.raises(TypeError):
                    cast(Any, cls).decode(first, WIRE, version=4)


# --- programs that don't hold ---

ROW = ("group_id", 9, 4, 0, 1, 88, None, "")


@pytest.mark.parametrize(
    "rows",
    [
        ("group_id",), ROW, [ROW], (("group_id",),), (("nothing", *ROW[1:]),), (("api_key", *ROW[1:]),),
        (("tags", *ROW[1:]),), (ROW, ROW), (("group_id", 13, *ROW[2:]),), (("group_id", -1, *ROW[2:]),),
        (("group_id", 9, 256, *ROW[3:]),), ((*ROW[:3], -2, *ROW[4:]),), ((*ROW[:3], 1 << 32, *ROW[4:]),),
        ((*ROW[:4], 0, *ROW[5:]),), ((*ROW[:4], 1 << 40, *ROW[5:]),),
        ((*ROW[:5], -1, *ROW[6:]),), ((*ROW[:6], object(), ""),), (("group_id", 11, *ROW[2:]),),
        (("group_id", 9, 16, *ROW[3:]),), (("group_id", 9, 64, *ROW[3:]),), (("group_id", 10, 17, *ROW[3:]),),
    ],
)  # fmt: skip
def test_rows_that_are_wrong_are_refused(rows: Any) -> None:
    assert native is not None
    with pytest.raises((TypeError, ValueError, AttributeError)):
        native.Program(HeartbeatRequest, True, rows, (), ())


def test_programs_that_are_wrong_are_refused() -> None:
    assert native is not None
    other = ("member_id", *ROW[1:3], 5, *ROW[4:])
    same = (*ROW[:3], 5, *ROW[4:])
    for tagged in ((other, same), ((*other[:3], 6, *other[4:]), same)):
        with pytest.raises(ValueError, match="go together"):
            native.Program(HeartbeatRequest, True, (), tagged, ())
    with pytest.raises(ValueError, match="go together"):
        native.Program(HeartbeatRequest, False, (), (other,), ())
    for cls in (int, list, type, object):
        with pytest.raises((TypeError, ValueError, AttributeError)):
            native.Program(cls, True, (), (), ())
    inner = native.Program(HeartbeatRequest, True, (), (), ())
    for _ in range(31):
        inner = native.Program(HeartbeatRequest, True, (("group_id", 11, 0, 0, 1, 0, inner, None),), (), ())
    with pytest.raises(ValueError, match="go together"):
        native.Program(HeartbeatRequest, True, (("group_id", 11, 0, 0, 1, 0, inner, None),), (), ())
    for arguments in (
        (HeartbeatRequest, None, None, None, 257),
        (HeartbeatRequest, None, None, None, -1),
        (5, None, None, None, 1),
    ):
        with pytest.raises((TypeError, ValueError)):
            native.Decoder(*arguments)
    for versions in (0, 256):
        assert native.Decoder(HeartbeatRequest, None, None, None, versions)


def test_what_the_engine_declines_goes_straight_to_the_interpreter() -> None:
    assert native is not None
    calls: list[tuple[Any, ...]] = []

    def exact(*args: Any) -> str:
        calls.append(args)
        return "exactly"

    def python(*args: Any, **named: Any) -> None:
        pytest.fail("the engine would run again")

    wire = HeartbeatRequest(group_id="g").encode(version=4)
    request = HeartbeatRequest(generation_id=1 << 40)
    decode = native.Decoder(HeartbeatRequest, message_program, python, exact, 5)
    decode_at = native.Decoder(HeartbeatRequest, message_program, python, exact, 5, True)
    encode = native.Encoder(HeartbeatRequest, message_program, python, exact, 5)
    assert decode(wire, version=4) == HeartbeatRequest(group_id="g")
    assert calls == []
    assert decode(wire[:-1], version=4) == "exactly"
    assert decode(wire[:-1], deviations=[], version=4, strict=False) == "exactly"
    assert decode_at(b"xx" + wire[:-1], 2, 4, True, None) == "exactly"
    assert encode(request, version=4) == "exactly"
    assert calls == [
        (HeartbeatRequest, wire[:-1], 0, 4, True, None),
        (HeartbeatRequest, wire[:-1], 0, 4, False, []),
        (HeartbeatRequest, b"xx" + wire[:-1], 2, 4, True, None),
        (request, 4),
    ]
