"""The text of trees: plain frames as the slow path writes them, for any message and in captures."""

from __future__ import annotations

import io
import random
from contextlib import redirect_stdout
from pathlib import Path
from typing import Any
from uuid import UUID

import pytest
from hypothesis import given
from hypothesis import strategies as st

from coordwire._speedups import native
from coordwire.capture.entries import Entry, FrameEntry
from coordwire.capture.flows import TcpConnection
from coordwire.capture.formats.pcap import as_pcap
from coordwire.capture.printable import Pieces
from coordwire.cli import message_lines
from coordwire.cli.decode.tree import PlainFrameTexts, TreeFormat
from coordwire.cli.terminal import plain_text
from coordwire.codec import Message
from coordwire.frames import encode_request, encode_response
from coordwire.messages import (
    FetchRequest,
    HeartbeatRequest,
    HeartbeatResponse,
    JoinGroupRequest,
    MetadataRequest,
    MetadataResponse,
)
from coordwire.messages.fetch import ReplicaState
from coordwire.messages.join_group import JoinGroupRequestProtocol
from coordwire.messages.metadata import MetadataRequestTopic, MetadataResponseTopic
from coordwire.testing import strategies
from tests.capture.test_lazy import broken, read
from tests.capture.test_share import CAPTURES, traffic, traffic_rows
from tests.capture.test_walks import damaged
from tests.conformance.engines import MESSAGES

WIDTHS = (40, 80, 200)
APIS = [cls for cls in MESSAGES if getattr(cls, "api_key", None) is not None and hasattr(cls, "direction")]
NATIVE = {width: PlainFrameTexts(width, show_secrets=True) for width in WIDTHS}
CONNECTION = TcpConnection(7, "10.0.0.1:5", "10.0.0.2:9092")  # type: ignore[arg-type]

with_texts = pytest.mark.skipif(native is None, reason="no native extension, which makes the texts")


def entry_of(
    message: Message,
    version: int,
    data: bytes | None = None,
    *,
    client: str | None = "c",
    latency_ns: int = 5_000,
) -> FrameEntry:
    """A frame. data: its bytes, if they are not those of its message."""
    cls: Any = type(message)
    request = None
    if cls.direction == "request":
        whole = encode_request(message, version=version, correlation_id=3, client_id=client)
    else:
        whole = encode_response(message, version=version, correlation_id=3)
        request = FrameEntry(
            capture="x", number=1, flow="a > b", time_ns=10**18 - latency_ns, direction="request", body=b""
        )
    return FrameEntry(
        capture="x", number=2, flow="10.0.0.1:5 > 10.0.0.2:9092", time_ns=10**18, direction=cls.direction,
        body=whole[4:] if data is None else data, api_key=cls.api_key, api_version=version,
        body_version=version, correlation_id=3, client_id=client, message=message, request=request, packet=9,
        first_packet=8, connection=CONNECTION,
    )  # fmt: skip


def check(entry: FrameEntry, width: int = 80) -> bool:
    """Whether a frame is plain; its text is that of the slow path then."""
    output = TreeFormat(show_secrets=True, deep=False)
    output._width = width
    text = NATIVE[width].line(entry, 6)
    assert text in (None, "".join(map(plain_text, output._frame(entry))))
    return text is not None


@given(st.data(), st.sampled_from(APIS), st.sampled_from(WIDTHS))
def test_texts_are_those_of_the_slow_path(data: st.DataObject, cls: Any, width: int) -> None:
    version = data.draw(st.sampled_from(list(cls.versions)))
    check(entry_of(data.draw(strategies.messages(cls, version=version)), version), width)


def values(rng: random.Random, struct: Any, version: int, depth: int = 0) -> Any:
    """A struct of values that lines have as they are, of any length."""
    fields = {}
    for field in struct._layout_.fields:
        if field.exists(version):
            count = rng.choice((0, 1, 2, 3, 9)) if field.array else 1
            content = [value_of(rng, field, version, depth) for _ in range(count)]
            fields[field.name] = content if field.array else content[0]
    return struct(**fields)


def value_of(rng: random.Random, field: Any, version: int, depth: int) -> Any:
    if field.struct is not None:
        return values(rng, field.struct, version, depth + 1)
    size = rng.choice((0, 1, 3, 8, 20, 33, 70))
    match field.type:
        case "string" | "long_string":
            return None if not field.array and field.nullable(version) and size == 1 else "x" * size
        case "bytes" | "records":
            return bytes(range(size)) * rng.choice((1, 1, 40))
        case "uuid":
            return UUID(int=rng.getrandbits(128))
        case "bool":
            return rng.random() < 0.5
        case "float64":
            return 0.0
        case "uint16":
            return rng.choice((0, 65535))
        case "uint32":
            return rng.choice((0, 1 << 31))
    bits = int(field.type.removeprefix("int"))
    return rng.choice((0, -1, 1, 3, 35, (1 << (bits - 1)) - 1, -(1 << (bits - 1))))


def _floats(cls: Any) -> bool:
    """Whether a message or struct has float64s."""
    fields = cls._layout_.fields
    return any(
        field.type == "float64" or (field.struct is not None and _floats(field.struct)) for field in fields
    )


@with_texts
def test_all_messages_in_all_versions_have_texts() -> None:
    rng = random.Random(8)
    for cls in APIS:
        for version in cls.versions:
            entry = entry_of(values(rng, cls, version), version)
            assert check(entry, rng.choice(WIDTHS)) or _floats(cls), f"{cls.__name__} v{version}"


@with_texts
def test_what_is_not_shown_as_it_is_has_no_text() -> None:
    for name in ("é", "a\n", "\x7f", "x" * 401):
        assert not check(entry_of(HeartbeatRequest(group_id=name), 4))
        assert not check(entry_of(HeartbeatRequest(), 4, client=name))
    assert check(entry_of(HeartbeatRequest(group_id="x" * 400), 4, client="c" * 80))
    assert not check(entry_of(HeartbeatRequest(), 4, client="c" * 81))
    assert check(entry_of(HeartbeatRequest(), 4, client=None))
    assert not check(entry_of(HeartbeatRequest(tags={7: b"x"}), 4))


@with_texts
def test_tagged_fields_at_their_defaults_are_not_shown() -> None:
    wire = encode_request(FetchRequest(), version=15, correlation_id=3, client_id="c")[4:-1]
    replica_state = bytes.fromhex("ffffffffffffffffffffffff00")
    for section in (b"\0", b"\1\0\1\0", b"\1\1\x0d" + replica_state, b"\2\0\1\0\1\x0d" + replica_state):
        assert check(entry_of(FetchRequest(), 15, wire + section))
    asked = FetchRequest(cluster_id="k", replica_state=ReplicaState(replica_id=4))
    assert check(entry_of(asked, 15))
    assert "replica_state: {replica_id: 4, replica_epoch: -1}\n" in str(
        NATIVE[80].line(entry_of(asked, 15), 6)
    )


@with_texts
def test_numbers_have_names(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(message_lines, "MOST_NUMBERS", 3)
    for code in (0, 27, -1, 9999, 1, 2, 3, 0, 27):
        assert check(entry_of(HeartbeatResponse(error_code=code), 4))
    for operations in (-(1 << 31), 0, 264, 65535):
        topic = MetadataResponseTopic(topic_authorized_operations=operations)
        assert check(entry_of(MetadataResponse(topics=[topic]), 12))


@with_texts
def test_latencies_are_rounded_as_floats_are() -> None:
    answer = HeartbeatResponse()
    for latency_ns in (0, 1, 499, 501, 999_999, 9_999_999, 10_000_000, 10_049_999, 123_456_789_012, 10**15):
        check(entry_of(answer, 4, latency_ns=latency_ns))
    assert check(entry_of(answer, 4, latency_ns=9_999_499))
    assert check(entry_of(answer, 4, latency_ns=1_234_567_890_123))
    for latency_ns in (-1, 500, 1_500, 10_050_000, 10**15):
        assert not check(entry_of(answer, 4, latency_ns=latency_ns))


@with_texts
@pytest.mark.parametrize("beyond", [-1, 0, 1, 1_000])
def test_lines_beyond_a_number_are_counted(beyond: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """The text is not laid out again for that."""
    topics = [MetadataRequestTopic(name="t" * 60)] * (message_lines.MOST_LINES - 1 + beyond)
    entry = entry_of(MetadataRequest(topics=topics), 1)
    output = TreeFormat(show_secrets=True, deep=False)
    lines = "".join(map(plain_text, output._frame(entry)))
    assert ("more lines" in lines) == (beyond > 0)
    monkeypatch.delattr(TreeFormat, "_frame")
    out = io.StringIO()
    output._plain_frame(entry, 6, out)
    assert out.getvalue() == lines


@with_texts
def test_a_line_may_be_as_wide_as_a_terminal_says() -> None:
    protocols = [JoinGroupRequestProtocol(name=f"{n}" * 30, metadata=b"x" * n) for n in range(99)]
    entry = entry_of(JoinGroupRequest(group_id="g", protocols=protocols), 9)
    output = TreeFormat(show_secrets=True, deep=False)
    output._width = 999_999_999
    texts = PlainFrameTexts(999_999_999, show_secrets=True)
    assert texts.line(entry, 6) == "".join(map(plain_text, output._frame(entry)))


def written(data: bytes, *, lazy: bool, show_secrets: bool, is_plain: bool) -> str:
    output = TreeFormat(show_secrets=show_secrets, deep=False)
    output._is_plain = is_plain
    with redirect_stdout(io.StringIO()) as out:
        for entry in read(data, lazy=lazy):
            output.write(entry, 6)
        output.finish()
    return out.getvalue()


def compare(data: bytes, *, show_secrets: bool) -> None:
    expected = written(data, lazy=False, show_secrets=show_secrets, is_plain=False)
    assert written(data, lazy=True, show_secrets=show_secrets, is_plain=True) == expected
    assert written(data, lazy=False, show_secrets=show_secrets, is_plain=True) == expected


@pytest.mark.parametrize("path", CAPTURES, ids=lambda path: path.stem)
def test_trees_of_captures(path: Path) -> None:
    data = path.read_bytes()
    compare(data, show_secrets=False)
    compare(damaged(data, random.Random(path.name)), show_secrets=True)


@pytest.mark.parametrize("seed", range(10))
def test_trees_of_frames_that_are_refused(seed: int) -> None:
    chance = random.Random(seed)
    frames = [(n, c, back, broken(chance, data)) for n, c, back, data in traffic_rows(20)]
    compare(as_pcap(frames), show_secrets=bool(seed % 2))


@with_texts
def test_most_blocks_are_plain(monkeypatch: pytest.MonkeyPatch) -> None:
    slow: list[Pieces] = []
    rule = TreeFormat._rule

    def counted(output: TreeFormat, entry: Entry, digits: int, number: str) -> Pieces:
        slow.append(rule(output, entry, digits, number))
        return slow[-1]

    monkeypatch.setattr(TreeFormat, "_rule", counted)
    text = written(traffic(300), lazy=True, show_secrets=False, is_plain=True)
    assert len(slow) < text.count("── #") / 10
