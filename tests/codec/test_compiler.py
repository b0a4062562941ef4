"""The compiler: when it runs, what it makes, what it takes, and how its code is shown."""

from __future__ import annotations

import functools
import inspect
import linecache
import os
import subprocess
import sys
import traceback
from dataclasses import dataclass
from dataclasses import field as dataclass_field
from pathlib import Path
from types import CodeType
from typing import Any, ClassVar, get_args

import pytest

from coordwire._speedups import native
from coordwire.codec import NEVER, Field, FieldTable, Message, Struct, VersionLayout, compiler
from coordwire.codec.compiler.__main__ import main
from coordwire.codec.interpreter.decoder import Reader
from coordwire.codec.interpreter.encoder import Writer
from coordwire.codec.primitives import Refused
from coordwire.messages import JoinGroupRequest
from tests.compiled import compiled_decoder, compiled_encoder
from tests.conformance.engines import MESSAGES

ROOT = Path(__file__).parent.parent.parent


def kinds(layout: VersionLayout) -> set[object]:
    """The kinds of fields in a struct and in those inside it: what the text of a codec depends on."""
    result: set[object] = {(bool(layout.tagged), bool(layout.reserved), layout.flexible)}
    for field in [*layout.inline, *layout.tagged.values()]:
        null, compact = (field.null < NEVER, field.nullable(layout.version)), layout.compact(field)
        result.add((field.type, field.array, field.tag is None, field.unprefixed, null, compact))
        inner = layout.inner(field)
        result |= kinds(inner) if inner is not None else set()
    return result | {
        (field.type, field.array, field.ignorable, field.default is None) for field in layout.absent
    }


@functools.cache
def sample() -> list[tuple[type[Message], int]]:
    """Messages and versions in which every kind of field occurs."""
    seen: set[object] = set()
    cells = []
    for cls in MESSAGES:
        for version in cls.versions:
            result = kinds(cls._layout_.at(version))
            if not result <= seen:
                seen |= result
                cells.append((cls, version))
    return cells


def run(script: str, implementation: str) -> str:
    """What a script prints in a process of its own."""
    result = subprocess.run(
        [sys.executable, "-c", script],
        env={**os.environ, "COORDWIRE_IMPL": implementation},
        cwd=ROOT,
        capture_output=True,
        text=True,
    )
    assert result.returncode == 0, result.stderr
    return result.stdout


EVERYTHING = """
import linecache, sys
from coordwire import CoordwireError, decode_request, encode_request
from coordwire.messages import HeartbeatRequest, __all__ as names, find_message

class Mine(HeartbeatRequest):
    def encode(self, *, version):
        return super().encode(version=version)

class Odd(HeartbeatRequest):
    @property
    def group_id(self): return "g"
    @group_id.setter
    def group_id(self, value): pass

for cls in [find_message(name) for name in names if name != "find_message"] + [Mine, Odd]:
    for version in cls.versions:
        wire = cls().encode(version=version)
        for data in (wire, bytearray(wire), memoryview(wire), wire + b"x", wire[:-1]):
            for strict in (True, False):
                try:
                    cls.decode(data, version=version, strict=strict)
                except CoordwireError:
                    pass
        try:
            cls(tags={"no": "tag"}).encode(version=version)
        except CoordwireError:
            pass
        if cls.direction == "request" and cls.api_key is not None:
            decode_request(bytearray(encode_request(cls(), version=version, correlation_id=1)))
print("coordwire.codec.compiler" in sys.modules, any("(version=" in name for name in linecache.cache))
"""


@pytest.mark.skipif(native is None, reason="the native engine isn't built, or Python is forced")
def test_nothing_is_compiled_where_the_native_engine_serves() -> None:
    assert run(EVERYTHING, "c") == "False False\n"


def test_a_codec_is_compiled_when_it_is_first_used() -> None:
    script = """
from coordwire.codec import compiler
from coordwire.messages import HeartbeatRequest
made = []
original = compiler._compiled
def counted(*arguments):
    made.append(arguments[1:])
    return original(*arguments)
compiler._compiled = counted
class Mine(HeartbeatRequest): pass
wire = HeartbeatRequest().encode(version=4)
for _ in range(3):
    HeartbeatRequest.decode(wire, version=4), HeartbeatRequest.decode(wire, version=4.0)
    Mine.decode(bytearray(wire), version=4), Mine().encode(version=4)
HeartbeatRequest().encode(version=True)
for version in (-1, HeartbeatRequest.versions[-1] + 1, 999, None, "4", 1 << 70):
    for call in (
        lambda: HeartbeatRequest.decode(wire, version=version), lambda: Mine().encode(version=version)
    ):
        try:
            call()
            print("not refused")
        except Exception as error:
            assert "version" in str(error), error
print(made, [len(HeartbeatRequest._decoders_), len(HeartbeatRequest._encoders_)])
"""
    assert run(script, "python") == "[(4, 'encode'), (4, 'decode'), (1, 'encode')] [1, 2]\n"


def test_two_threads_may_compile_the_same_codec() -> None:
    script = """
import threading
from coordwire.codec import compiler
from coordwire.messages import JoinGroupRequest
together = threading.Barrier(8)
made, found = [], []
def together_compiled(*arguments, original=compiler._compiled):
    together.wait(10)  # each has found no decoder by now
    made.append(original(*arguments))
    return made[-1]
compiler._compiled = together_compiled
def decode():
    found.append(JoinGroupRequest.decode(b"\\0\\1g" + bytes(12), version=0))
threads = [threading.Thread(target=decode) for _ in range(8)]
for thread in threads:
    thread.start()
for thread in threads:
    thread.join()
print(len(made), len(found), JoinGroupRequest._decoders_[0] in made, all(
    message.group_id == "g" for message in found))
"""
    assert run(script, "python") == "8 8 True True\n"


def test_a_subclass_is_pickled_by_value_without_its_codecs() -> None:
    pytest.importorskip("pyspark")
    script = """
import pickle
from pyspark import cloudpickle
from coordwire.messages import HeartbeatRequest
class Mine(HeartbeatRequest):
    versions = range(3)
    def encode(self, *, version): return super().encode(version=version)
wire = Mine(group_id="g").encode(version=2)
Mine.decode(wire, version=2), Mine.decode(bytearray(wire), version=2)
Other = pickle.loads(cloudpickle.dumps(Mine))
again = Other.decode(bytearray(wire), version=2)
print(Other(group_id="g").encode(version=2) == wire, again == Other(group_id="g"))
"""
    assert run(script, "python") == run(script, "") == "True True\n"


# --- what is shown of it ---


def test_tracebacks_and_debuggers_show_the_source() -> None:
    decode = compiler.decoder(JoinGroupRequest, 0)
    assert inspect.getsource(decode).startswith("def decode_JoinGroupRequest_v0(")
    file = decode.__code__.co_filename
    assert file == "coordwire.messages.join_group.JoinGroupRequest.decode(version=0)"
    assert linecache.getline(file, 1).startswith("def decode_JoinGroupRequest_v0(")
    for _ in range(2):
        with pytest.raises(Refused) as error_info:
            decode(b"\xff\xff", 0, 1, 1)
        (*_, frame) = traceback.extract_tb(error_info.value.__traceback__)
        assert (frame.filename, frame.line) == (file, "raise Refused")
        linecache.clearcache()


def instructions(code: CodeType) -> list[object]:
    """What a function does, wherever it is in its file."""
    consts = [
        instructions(code_type) if isinstance(code_type, CodeType) else (type(code_type), code_type)
        for code_type in code.co_consts
    ]
    return [code.co_code, code.co_names, code.co_varnames, consts]


@pytest.mark.parametrize(
    ("direction", "compiled"), [("decode", compiled_decoder), ("encode", compiled_encoder)]
)
def test_what_is_printed_is_what_runs(direction: compiler.Direction, compiled: Any) -> None:
    for cls, version in sample():
        made = compiled(cls, version)
        namespace: dict[str, Any] = {}
        exec(compiler.module_text(cls, version, direction), namespace)
        printed = namespace[made.__name__].__code__
        assert instructions(printed) == instructions(made.__code__)
        for name in printed.co_names:
            if name in namespace and not name.startswith(("_pack_", "_unpack_")):
                assert namespace[name] is made.__globals__[name]


def test_its_code_is_typed(tmp_path: Path) -> None:
    pytest.importorskip("mypy", reason="mypy checks it, and is not installed")
    for cls, version in sample():
        for direction in get_args(compiler.Direction):
            path = tmp_path / f"{direction}_{cls.__name__}_v{version}.py"
            path.write_text(compiler.module_text(cls, version, direction))
    command = [sys.executable, "-m", "mypy", "--strict", "--cache-dir", str(tmp_path / "cache")]
    checked = subprocess.run(
        [*command, "--follow-imports=silent", str(tmp_path)], cwd=ROOT, capture_output=True, text=True
    )
    assert checked.returncode == 0, checked.stdout + checked.stderr


EMPTY = [
    (cls, version, field)
    for cls in MESSAGES
    for version in cls.versions
    for field in cls._layout_.at(version).tagged.values()
    if field.array and field.default is not None
]


@pytest.mark.parametrize(
    ("cls", "version", "field"), EMPTY, ids=[f"{cls.__name__}-{v}-{field.name}" for cls, v, field in EMPTY]
)
def test_an_empty_tuple_in_a_tagged_array_is_its_default(
    cls: type[Message], version: int, field: Field
) -> None:
    message = cls()
    setattr(message, field.name, ())
    wire = cls().encode(version=version)
    assert compiled_encoder(cls, version)(message) == wire
    assert Writer(version).message(message) == wire
    assert message.encode(version=version) == wire


def test_the_command_prints_a_codec(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["JoinGroupRequest", "9"]) == 0
    printed = capsys.readouterr().out
    for direction in ("decode", "encode"):
        assert f"# JoinGroupRequest.{direction}(version=9)\n" in printed
        assert f"def {direction}_JoinGroupRequest_v9(" in printed
    assert main(["JoinGroupRequest", "9", "encode"]) == 0
    assert "decode" not in capsys.readouterr().out
    for arguments, reason in (
        (["JoinGrupRequest", "9"], "JoinGrupRequest is not a message; did you mean JoinGroupRequest?"),
        (["JoinGroupRequest", "10"], "JoinGroupRequest has versions 0 to 9"),
    ):
        with pytest.raises(SystemExit, match="2"):
            main(arguments)
        assert reason in capsys.readouterr().err


# --- what it takes ---


@dataclass(slots=True, kw_only=True)
class Len(Struct):
    end: int = 0
    text: str | None = None
    tags: dict[int, bytes] | None = None


@dataclass(slots=True, kw_only=True)
class Names(Message):
    """Fields that are called as the code calls its own names, Python's and the wire's."""

    api_key: ClassVar[int | None] = None
    direction: ClassVar[str] = "data"
    versions: ClassVar[range] = range(2)
    flexible_versions: ClassVar[range] = range(1, 2)

    data: list[Len] | None = None
    len: list[Len] = dataclass_field(default_factory=list)
    lens: list[bytes] = dataclass_field(default_factory=list)
    map: bool = False
    range: bool = True
    bytes: Any = b""
    new: Any = dataclass_field(default_factory=Len)
    s: Any = dataclass_field(default_factory=list)
    this_tag: bool = False
    tag_stop: str = ""
    m: int = 0
    pos: int = 0
    text: Any = dataclass_field(default_factory=list)
    value: Any = dataclass_field(default_factory=list)
    elements: Any = dataclass_field(default_factory=list)
    tags: dict[int, Any] | None = None


Len._layout_ = FieldTable(
    Len, Field("end", "int32"), Field("text", "string", null=0, default=None), flexible=1
)
Names._layout_ = FieldTable(
    Names,
    Field("data", "struct", array=True, struct=Len, null=0, default=None),
    Field("len", "struct", array=True, struct=Len, default=()),
    Field("lens", "bytes", array=True, default=()),
    Field("map", "bool", default=False),
    Field("range", "bool", default=True),
    Field("bytes", "bytes", default=b""),
    Field("new", "struct", struct=Len),
    Field("s", "string", array=True, default=()),
    Field("this_tag", "bool", 1, default=False, tag=0),
    Field("tag_stop", "string", 1, default="", tag=1),
    Field("m", "int16"),
    Field("pos", "int64"),
    Field("text", "uint16", array=True, default=()),
    Field("value", "uint32", array=True, default=()),
    Field("elements", "float64", array=True, default=()),
    flexible=1,
)


@pytest.mark.parametrize("version", [0, 1])
def test_fields_may_have_the_names_of_locals_builtins_and_helpers(version: int) -> None:
    tagged: dict[str, Any] = {"this_tag": True, "tag_stop": "t"} if version else {}
    message = Names(
        data=[Len(end=1, text="a"), Len(end=2)],
        len=[Len(text="b")],
        lens=[b"c", b""],
        map=True,
        range=False,
        bytes=b"d",
        new=Len(end=3, text="e"),
        s=["f", "g"],
        m=4,
        pos=5,
        text=[0, 0xFFFF],
        value=[0xFFFF_FFFF],
        elements=[1.5, -2.0],
        **tagged,
    )
    wire = compiled_encoder(Names, version)(message)
    assert wire == Writer(version).message(message) == message.encode(version=version)
    assert compiled_decoder(Names, version)(wire, 0, 1000, 1 << 20) == (message, len(wire))
    assert Reader(wire, 0, version).message(Names) == Names.decode(wire, version=version) == message


def made_up(name: str, *fields: Field) -> type[Message]:
    """A message with a table that no schema gives."""
    facts = {"api_key": None, "direction": "data", "versions": range(1), "flexible_versions": range(0)}
    cls: type[Message] = type(name, (Message,), facts)
    cls._layout_ = FieldTable(cls, *fields)
    return cls


class Sly(str):
    def __repr__(self) -> str:
        return "exit()"


@pytest.mark.parametrize(
    ("cls", "complaint"),
    [
        (made_up("MadeUp", Field("x = 1; m.y", "int8")), "a field can't be called"),
        (made_up("MadeUp", Field("x", "int8", 1, default=Path())), "a default can't be"),
        (made_up("MadeUp", Field("x", "string", 1, default=Sly())), "a default can't be"),
        (made_up("MadeUp", Field("x", "float64", 1, default=float("inf"))), "a default can't be inf"),
        (made_up("os.system", Field("x", "int8")), "a class can't be called 'os.system'"),
        (made_up("Refused", Field("x", "int8")), "a class can't be called 'Refused'"),
        (made_up("list", Field("x", "int8")), "a class can't be called 'list'"),
    ],
)
def test_nothing_but_names_and_plain_defaults_becomes_source(cls: type[Message], complaint: str) -> None:
    for make in (compiler.decoder, compiler.encoder):
        with pytest.raises(ValueError, match=complaint):
            make(cls, 0)
