"""Whatever a message's fields or a line of JSON hold, it is encoded or refused with an `EncodeError`: in
every version of every message, by the native engine as by Python.

Strategy: an input is a seed from which BURST cases follow. Half of them are messages with values of wrong
types, ranges and depths in their fields, or in the lists in them; the others are lines of `coordwire decode`
for `coordwire encode`, as text, with such values, keys twice, escapes and numbers that JSON alone can hold,
or with bytes changed. Rules: a message is written by Python, by the engine, which may leave values of unusual
types to Python, and by `encode`; a line's frame is written with the engine and without, and decoded again.
"""

from __future__ import annotations

import json
from copy import deepcopy
from enum import IntEnum
from random import Random
from typing import Any
from uuid import UUID

from hypothesis import given
from hypothesis import strategies as st

from coordwire import decode_request, decode_response, frames, to_json
from coordwire.cli.encode import _NotAFrame, encode_line
from coordwire.codec import Field, Struct, VersionLayout
from coordwire.codec.program import message_program
from coordwire.errors import CoordwireError, EncodeError
from coordwire.messages import find_message
from coordwire.messages.keys import FACTS
from fuzz._run import main
from fuzz.native import outcome, python_encode
from tests.conformance.engines import MESSAGES

BURST = 200
VERSIONS = [(cls, version) for cls in MESSAGES for version in cls.versions]
KEYS = sorted(FACTS)


class Int(int):
    """Another class of ints."""


class Text(str):
    """Another class of strings."""


class Items(list[Any]):
    """Another class of lists."""


class Code(IntEnum):
    NONE = 0
    LARGE = 1 << 40


class Index:
    """What an index can be, and no field."""

    def __index__(self) -> int:
        return 7


CIRCLE: list[Any] = []
CIRCLE.append(CIRCLE)
NUMBERS = sorted({sign * (1 << bits) + step for bits in (0, 7, 8, 15, 16, 31, 32, 63, 64) for sign in (1, -1)
                  for step in (-1, 0)} | {0, 10**400, -(10**400)})  # fmt: skip
ODD: list[Any] = [
    *NUMBERS, None, True, False, Int(5), Int(1 << 70), Code.NONE, Code.LARGE, Index(), 0.0, -0.0, 1.5,
    1e308, 1e400, float("nan"), "", "a", Text("b"), "\ud800", "\udcff", "é\0", "x" * 127, "x" * 40_000, b"",
    b"a", bytearray(b"c"), memoryview(b"d"), b"y" * 130, [], [None], [[]], (), (1,), Items(), Items([1]),
    {}, {1: b""}, set(), CIRCLE, object(), UUID(int=0), UUID(int=(1 << 128) - 1), range(3), int, Struct,
    iter([]), Ellipsis,
]  # fmt: skip
TAGS: list[Any] = [
    None, [], {}, {7: b"x"}, {9999: b""}, {-1: b""}, {1 << 31: b""}, {(1 << 32) - 1: b""}, {1 << 32: b""},
    {10**400: b""}, {"7": b""}, {True: b""}, {7: "x"}, {7: None}, {7: bytearray(b"z")}, {0: b"", 1: b"", 2:
    b""}, {9: b"", 8: b""}, {None: b""}, {1.5: b""}, {Int(7): b"x"}, "tags", 7,
]  # fmt: skip
"""What the attribute `tags` may hold."""

FORMS: list[Any] = [
    *NUMBERS, None, True, False, 0.5, 1e308, float("nan"), float("inf"), "", "NaN", "NaN:7ff8000000000001",
    "AA==", "AA=", "A", "é", "\ud800", "\udfff\ud800", "A" * 22, "A" * 40_000, [], [None], [[]], [{}], {},
    {"_tags": {"7": ""}}, {"7": "AA=="}, {"07": ""}, {"-1": ""}, {"4294967296": ""}, {"9" * 5000: ""}, {"٣":
    ""}, {"7": 1}, {"7": None},
]  # fmt: skip
"""What a line's JSON may hold."""

TOKENS = (
    "NaN", "-Infinity", "1e400", "1e-400", "-0", "1" * 41, "9" * 5000, "1." + "0" * 500, "[" * 500, "[" *
    100_000, '{"a":' * 2000, '"\\ud800"', '"\\u0000"', '{"a":1,"a":2}', '{"_tags":{"1":"","1":""}}', "tru",
    "\x00", "\x1f", '{"_tags":{"_tags":{}}}', "\ufeff{}", "[1,]", '""""', "\ud800",
)  # fmt: skip
"""Text in the place of a value."""


# --- messages ---


def value(random: Random, field: Field, layout: VersionLayout, harm: float) -> Any:
    """A field's value. harm: how often it is another thing."""
    if random.random() < harm:
        return random.choice(ODD)
    if field.nullable(layout.version) and random.random() < 0.1:
        return None
    if field.array:
        return [element(random, field, layout, harm) for _ in range(random.choice((0, 1, 1, 2)))]
    return element(random, field, layout, harm)


def element(random: Random, field: Field, layout: VersionLayout, harm: float) -> Any:
    if random.random() < harm:
        return random.choice(ODD)
    inner = layout.inner(field)
    if inner is not None:
        return struct(random, inner, harm)
    match field.type:
        case "bool":
            return random.random() < 0.5
        case "string":
            return random.choice(("", "a", "é", "x" * 20))
        case "bytes" | "records":
            return random.choice((b"", b"a", b"y" * 20))
        case "uuid":
            return UUID(int=random.getrandbits(128))
        case "float64":
            return random.choice((0.0, 1.5, float("inf")))
        case _:
            return random.choice((0, 1, 100))


def struct(random: Random, layout: VersionLayout, harm: float) -> Any:
    cls = layout.cls()
    for field in [*layout.inline, *layout.tagged.values()]:
        if not harm or random.random() < 0.7:
            setattr(cls, field.name, value(random, field, layout, harm))
    if layout.absent and random.random() < harm:
        setattr(cls, random.choice(layout.absent).name, random.choice(ODD))
    if random.random() < harm / 2:
        setattr(cls, "tags", random.choice(TAGS))  # noqa: B010 -- of any type
    return cls


def message(random: Random) -> None:
    """A message that is written by each encoder, and as JSON."""
    cls, version = random.choice(VERSIONS)
    made = struct(random, cls._layout_.at(version), random.choice((0, 0.02, 0.05, 0.2)))
    python = outcome(lambda: python_encode(version, made))
    assert outcome(lambda: made.encode(version=version)) == python
    program = message_program(cls, version)
    if program is not None:
        native = program.encode(made)
        assert native is None or native == python  # it may leave what is not of the plain types to Python
    try:
        to_json(made, version=version)
    except EncodeError as error:
        assert error.reason


# --- lines ---


def places(form: Any) -> list[tuple[Any, Any]]:
    """Every container inside a form, with each of its keys or indexes."""
    pairs = []
    waiting = [form]
    while waiting:
        container = waiting.pop()
        for step, content in list(container.items() if isinstance(container, dict) else enumerate(container)):
            pairs.append((container, step))
            if isinstance(content, (dict, list)):
                waiting.append(content)
    return pairs


def framed(random: Random) -> dict[str, Any]:
    """A line's form, valid."""
    key, direction = random.choice(KEYS), random.choice(("request", "response"))
    cls = find_message(key, direction)
    version = random.choice(cls.versions)
    body = to_json(struct(random, cls._layout_.at(version), 0), version=version)
    form = {"direction": direction, "apiKey": key, "apiVersion": version, "correlationId": 7, "body": body}
    if random.random() < 0.5:
        form["clientId"] = deepcopy(random.choice(("c", None, *FORMS)))
    if random.random() < 0.2:
        form["headerTags"] = deepcopy(random.choice(FORMS))
    if random.random() < 0.1:
        form[random.choice(("raw", "frame", "error", "dialect", "bodyVersion", "redacted", "api"))] = (
            deepcopy(random.choice((*FORMS, "0000", "draft-1", "kafka-0.7")))
        )
    return form


def text(random: Random, form: dict[str, Any]) -> bytes:
    """The line, with damage to its form, its text or its bytes."""
    marks = []
    for _ in range(random.choice((0, 1, 1, 2, 4))):
        container, step = random.choice(places(form))
        match random.randrange(6):
            case 0 | 1 | 2:
                container[step] = deepcopy(random.choice(FORMS))
            case 3:
                marks.append(random.choice(TOKENS))
                container[step] = f"mark {len(marks) - 1}"
            case 4 if isinstance(container, dict):
                container[random.choice(("_tags", "", "name", "Name", "\ud800"))] = deepcopy(
                    random.choice(FORMS)
                )
            case _ if isinstance(container, dict):
                container.pop(step)
            case _:
                container.append(container[0])
        if not form:
            break
    line = json.dumps(form, ensure_ascii=random.random() < 0.5)
    for number, token in enumerate(marks):
        line = line.replace(f'"mark {number}"', token)
    data = line.encode("utf-8", "surrogatepass")
    if random.random() < 0.1:
        at = random.randrange(len(data))
        data = data[:at] + random.choice((b"", b"\xff", b'"', b"{", b"\\", b",", b"\0")) + data[at + 1 :]
    return data


def encoded(line: bytes) -> Any:
    """A line's frame, or its refusal."""
    try:
        return encode_line(line)
    except CoordwireError as error:
        assert isinstance(error, EncodeError)
        assert error.reason
        assert isinstance(error.path, str)
        return type(error), str(error)
    except _NotAFrame:
        return None


def line(random: Random) -> None:
    """A line of JSON that is written, and read back, or refused."""
    data = text(random, framed(random))
    result = encoded(data)
    kept = frames._requests, frames._responses
    frames._requests = frames._responses = None
    try:
        assert encoded(data) == result
    finally:
        frames._requests, frames._responses = kept
    if not isinstance(result, bytes):
        return
    form = json.loads(data)
    if form.get("raw") is not None or form.get("dialect", "kafka") != "kafka":
        return
    key, version = form["apiKey"], form["apiVersion"]
    if form["direction"] == "request":
        assert result.endswith(decode_request(result).message.encode(version=version))
    elif form.get("bodyVersion") in (None, version):
        decoded = decode_response(result, api_key=key, version=version)
        assert result.endswith(decoded.message.encode(version=version))


CASES = (message, line)


@given(st.integers(0, (1 << 64) - 1))
def fuzz(seed: int) -> None:
    random = Random(seed)
    for _ in range(BURST):
        random.choice(CASES)(random)


if __name__ == "__main__":
    main(fuzz, examples=20, cases=BURST)
