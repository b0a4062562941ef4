"""ZooKeeper on the wire against Apache ZooKeeper: its records, and what its client and kazoo were told."""

from __future__ import annotations

import base64
import io
import itertools
import json
import lzma
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

import coordwire
from coordwire import Connection, Role
from coordwire.capture import Capture, FrameEntry
from coordwire.capture.jsonlines import line
from coordwire.capture.pending_requests import PendingRequests
from coordwire.cli.encode import encode_line
from coordwire.codec import Message
from coordwire.connection.events import RequestReceived
from coordwire.dialects import AlternativeDialect, ConnectionDialect, DraftFrame
from coordwire.dialects.zookeeper_multi import encode_operations, read_operations
from coordwire.errors import DecodeError, Deviation, UnreadableRange
from tests.conformance.engines import (
    declaration,
    fast_decode,
    from_container,
    native_decode,
    native_encode,
    same,
)
from tests.interop.zookeeper_records import message_of

DATA = Path(__file__).parents[1] / "data" / "zookeeper"
CAPTURES = sorted(path.name.removesuffix(".pcap.xz") for path in DATA.glob("*-3.*.pcap.xz"))
VECTORS = sorted(path.name for path in DATA.glob("vectors-*.jsonl.xz"))
"""Of Apache ZooKeeper 3.4.14 and 3.9.3."""


def lines(name: str) -> Iterator[Any]:
    return map(json.loads, lzma.decompress((DATA / name).read_bytes()).splitlines())


def entries(name: str, **options: Any) -> list[FrameEntry]:
    beside = ConnectionDialect("zookeeper") if "dialect" not in options else None
    data = io.BytesIO(lzma.decompress((DATA / f"{name}.pcap.xz").read_bytes()))
    results = list(Capture(data, name, alternative=beside, **options).entries())
    assert not [entry for entry in results if isinstance(entry, UnreadableRange)]
    return [entry for entry in results if isinstance(entry, FrameEntry)]


# --- Apache's records ---


SURROGATES = b"\xed\xa0\xb5\xed\xb4\xa8"
"""How jute writes a character beyond the first 65,536: each half by itself, which isn't UTF-8. It doesn't
read that as the same character either."""


def read_by_neither(cls: type[Message], version: int, data: bytes) -> None:
    with pytest.raises(DecodeError, match="invalid UTF-8"):
        cls.decode(data, version=version)
    deviations: list[Deviation] = []
    assert isinstance(cls.decode(data, version=version, strict=False, deviations=deviations), cls)
    assert all(deviation.reason.startswith("invalid UTF-8") for deviation in deviations)
    assert deviations


@pytest.mark.parametrize("name", VECTORS)
def test_messages_are_apaches_records(name: str) -> None:
    classes = set()
    for vector in lines(name):
        pair = message_of(vector["classes"], vector["fields"])
        if pair is None:
            continue
        message, version = pair
        data = bytes.fromhex(vector["hex"])
        if SURROGATES in data:
            read_by_neither(type(message), version, data)
            continue
        assert message.encode(version=version) == data, vector
        assert type(message).decode(data, version=version) == message, vector
        cls = type(message)
        assert same(from_container(cls, declaration(cls).parse(data, version=version)), message)
        assert same(fast_decode(cls, version, data), message)
        if coordwire.implementation == "c":
            assert same(native_decode(cls, version, data), message)
            assert native_encode(cls, version, message) == data
        classes.add(cls.__name__)
    assert len(classes) >= 39


# --- what clients were told ---

OPS = {
    "create": "Create", "delete": "Delete", "exists": "Exists", "getData": "GetData", "setData": "SetData",
    "getChildren": "GetChildren", "getChildren2": "GetChildren2", "multi": "Multi", "multiRead": "MultiRead",
    "getACL": "GetAcl", "setACL": "SetAcl", "sync": "Sync", "create2": "Create2",
    "createContainer": "CreateContainer", "createTtl": "CreateTtl", "checkWatches": "CheckWatches",
    "removeWatches": "RemoveWatches", "addWatch": "AddWatch", "getEphemerals": "GetEphemerals",
    "getAllChildrenNumber": "GetAllChildrenNumber", "whoAmI": "WhoAmI", "getConfig": "GetData",
}  # fmt: skip


def stat_of(stat: Any) -> list[int]:
    names = "czxid mzxid ctime mtime version cversion aversion ephemeral_owner data_length num_children pzxid"
    return [getattr(stat, name) for name in names.split()]


def text_of(data: bytes | None) -> str | None:
    return None if data is None else base64.b64encode(data).decode()


def acl_of(acl: Any) -> list[Any]:
    return [[entry.perms, entry.scheme, entry.id] for entry in acl]


def results_of(operations: bytes) -> list[Any]:
    results: list[Any] = []
    for result in read_operations(operations, results=True):
        message: Any = result.message
        match result.name:
            case "Create" | "Create2":
                results.append(message.path)
            case "SetData":
                results.append(stat_of(message.stat))
            case "GetData":
                results.append(text_of(message.data))
            case "GetChildren":
                results.append(message.children)
            case "Error":
                results.append(message.error_code)
            case _:
                results.append(True)
    return results


def told(entry: FrameEntry) -> Any:
    """What an answer tells its client, in the form of the kept lines."""
    answer: Any = entry.message
    match entry.api_name:
        case "Create":
            return answer.path
        case "Create2" | "CreateContainer" | "CreateTtl":
            return [answer.path, stat_of(answer.stat)]
        case "Exists" | "SetData" | "SetAcl":
            return stat_of(answer.stat)
        case "GetData":
            return [text_of(answer.data), stat_of(answer.stat)]
        case "GetChildren":
            return answer.children
        case "GetChildren2":
            return [answer.children, stat_of(answer.stat)]
        case "GetAcl":
            return [acl_of(answer.acl), stat_of(answer.stat)]
        case "Multi" | "MultiRead":
            return results_of(answer.operations)
        case "GetEphemerals":
            return answer.ephemerals
        case "GetAllChildrenNumber":
            return answer.total_number
        case "WhoAmI":
            return len(answer.client_info)
    return None


@pytest.mark.parametrize("name", CAPTURES)
def test_answers_are_what_the_client_was_told(name: str) -> None:
    result = entries(name)
    assert not [entry for entry in result if entry.error is not None or entry.deviations]
    answers = [entry for entry in result if entry.direction == "response" and entry.api_name in OPS.values()]
    expected = [line for line in lines(f"{name}.jsonl.xz") if line.get("op") in OPS]
    assert len(answers) == len(expected) >= 150
    for entry, fact in zip(answers, expected, strict=True):
        answer: Any = entry.message
        assert entry.api_name == OPS[fact["op"]], fact
        request: Any = entry.request and entry.request.message
        if fact["path"] is not None and hasattr(request, "path"):
            assert request.path == fact["path"], fact
        code = answer.error_code
        if fact["op"] == "exists" and code == -101:  # Java's client gives null, kazoo too
            assert fact["error"] == 0, fact
            assert not fact["result"], fact
            continue
        assert code == fact["error"], fact
        if code or fact["op"] == "getConfig":
            continue
        if name.startswith("kazoo") and fact["op"] == "multi":
            assert len(results_of(answer.operations)) == fact["result"]
        else:
            assert told(entry) == fact["result"], fact


@pytest.mark.parametrize("name", CAPTURES)
def test_watches_are_the_events_that_the_client_got(name: str) -> None:
    kinds = {1: "NodeCreated", 2: "NodeDeleted", 3: "NodeDataChanged", 4: "NodeChildrenChanged"}
    events: list[Any] = [entry.message for entry in entries(name) if entry.api_name == "WatcherEvent"]
    expected = [(line["event"], line["path"]) for line in lines(f"{name}.jsonl.xz") if "event" in line]
    got = [(kinds[event.type], event.path) for event in events]
    assert len(expected) >= 4
    if name.startswith("kazoo"):  # which calls each watcher by itself, and from two clients' threads
        assert set(got) == set(expected)
    else:
        assert sorted(got) == sorted(expected)


@pytest.mark.parametrize("name", CAPTURES)
def test_frames_are_written_again_as_they_were(name: str) -> None:
    for entry in entries(name):
        assert entry.call is not None
        assert entry.message is not None
        written = entry.call.encode(entry.message, entry.direction, version=entry.body_version or 0)
        assert written[4:] == entry.body, entry
        if entry.api_name in ("Multi", "MultiRead"):
            message: Any = entry.message
            is_answer = entry.direction == "response"
            operations = read_operations(message.operations, results=is_answer)
            assert encode_operations(operations) == message.operations


@pytest.mark.parametrize("name", CAPTURES)
def test_sessions_and_reconnects(name: str) -> None:
    connects = [entry for entry in entries(name) if entry.api_name == "CreateSession"]
    answers: list[Any] = [entry.message for entry in connects if entry.direction == "response"]
    sessions = [line["session"] for line in lines(f"{name}.jsonl.xz") if line.get("op") == "connect"]
    assert list(
        dict.fromkeys(answer.session_id for answer in answers if answer.time_out > 0)
    ) == sessions or set(sessions) <= {answer.session_id for answer in answers}
    if name.startswith("java"):  # one connects again, and one learns that its session is over
        assert len(answers) > len(sessions)
        assert any(answer.time_out <= 0 or not answer.session_id for answer in answers)


# --- what is shown, found and refused ---


def decoded_lines(name: str, *, show_secrets: bool) -> list[dict[str, Any]]:
    return [json.loads(line(entry, 6, show_secrets=show_secrets)) for entry in entries(name)]


@pytest.mark.parametrize("name", CAPTURES)
def test_passwords_and_digests_are_hidden(name: str) -> None:
    secrets = [b"user:pass-word", b"user:ZGlnZXN0LW9mLXVzZXI="]
    shown = json.dumps(decoded_lines(name, show_secrets=False))
    whole = json.dumps(decoded_lines(name, show_secrets=True))
    assert base64.b64encode(secrets[0]).decode() in whole
    for secret in secrets:
        assert secret.decode() not in shown
        assert base64.b64encode(secret).decode() not in shown
    for entry in entries(name):
        password = getattr(entry.message, "passwd", None)
        if password and any(password):
            assert base64.b64encode(password).decode() not in shown


@pytest.mark.parametrize("name", CAPTURES)
def test_lines_are_encoded_again(name: str) -> None:
    for entry, form in zip(entries(name), decoded_lines(name, show_secrets=True), strict=True):
        assert encode_line(json.dumps(form).encode())[4:] == entry.body


def test_a_connection_is_found_in_mid_stream_by_its_requests() -> None:
    """All packets up to some are lost, each number of which is tried."""
    records = packets_of(lzma.decompress((DATA / "kazoo-3.9.3.pcap.xz").read_bytes()))
    for lost in (10, 40, 111):
        data = io.BytesIO(b"".join([records[0], *records[1 + lost :]]))
        results = list(Capture(data, "cut", alternative=ConnectionDialect("zookeeper")).entries())
        frames = [entry for entry in results if isinstance(entry, FrameEntry)]
        assert {entry.dialect for entry in frames} == {"zookeeper"}
        whole = [entry for entry in entries("kazoo-3.9.3") if (entry.packet or 0) > lost]
        read = {entry.body for entry in frames if entry.error is None}
        assert sum(entry.body in read for entry in whole) >= len(whole) - 6


def packets_of(data: bytes) -> list[bytes]:
    """A pcap's header, and each record."""
    parts, at = [data[:24]], 24
    while at < len(data):
        size = int.from_bytes(data[at + 8 : at + 12], "little")
        parts.append(data[at : at + 16 + size])
        at += 16 + size
    return parts


def test_four_letter_words_are_named_as_another_protocol() -> None:
    data = io.BytesIO(lzma.decompress((DATA / "java-3.9.3.pcap.xz").read_bytes()))
    capture = Capture(data, "x", alternative=ConnectionDialect("zookeeper"))
    assert list(capture.entries())
    names = {name for name, _ in capture.summary.other_protocols}
    assert names == {"ZooKeeper's four-letter words"}


def test_kafkas_captures_have_no_zookeeper() -> None:
    captures = sorted((DATA.parent / "captures").glob("*.pcap"))
    assert captures
    for path in captures:
        with path.open("rb") as stream:
            capture = Capture(stream, path.name, alternative=AlternativeDialect())
            frames = [entry for entry in capture.entries() if isinstance(entry, FrameEntry)]
        assert {entry.dialect for entry in frames} == {"kafka"}, path.name


@given(st.binary(max_size=120), st.booleans())
def test_hostile_operations_raise_nothing_but_ours(data: bytes, results: bool) -> None:
    with suppress(DecodeError):
        operations = read_operations(data, results=results)
        assert read_operations(encode_operations(operations), results=results) == operations


@given(st.data())
def test_changed_frames_raise_nothing_but_ours(data: st.DataObject) -> None:
    """Both sides' frames, some bytes changed, as a connection's and as a capture's."""
    frames = data.draw(st.lists(st.sampled_from(FRAMES), max_size=6))
    stream = bytearray(b"".join(frames))
    for _ in range(data.draw(st.integers(0, 4))):
        at = data.draw(st.integers(0, len(stream)))
        stream[at : at + data.draw(st.integers(0, 4))] = data.draw(st.binary(max_size=4))
    for entry in Capture(io.BytesIO(bytes(stream) or b"\0"), "x", input="frames",
                         dialect=ConnectionDialect("zookeeper")).entries():  # fmt: skip
        line(entry, 6, show_secrets=False)
    connection = Connection(Role.SERVER, dialect=ConnectionDialect("zookeeper"))
    connection.receive_data(bytes(stream))
    for event in connection.events():
        if isinstance(event, RequestReceived) and event.expects_response:
            assert isinstance(event.frame, DraftFrame)
            answer = event.frame.call.message("response")()
            assert connection.send(answer, request=event)


FRAMES = [
    len(entry.body).to_bytes(4, "big") + entry.body
    for entry in entries("java-3.9.3")
    if len(entry.body) < 400
][::7]


@given(st.lists(st.sampled_from(FRAMES), min_size=1, max_size=3), st.data())
def test_the_first_look_at_a_frame_misses_none_that_shows_zookeeper(
    frames: list[bytes], data: st.DataObject
) -> None:
    """`AlternativeDialect` looks at a few bytes; what it does not claim, the dialect does not claim either,
    or gives no sender."""
    stream = bytearray(b"".join(frames))
    for _ in range(data.draw(st.integers(0, 3))):
        stream[data.draw(st.integers(0, len(stream) - 1))] = data.draw(
            st.sampled_from(b"\0\1\x08\x0b\x0c\r/\xff")
        )
    look, dialect = (
        alternative.conversation("x", itertools.count().__next__, strict=True, waiting=PendingRequests())
        for alternative in (AlternativeDialect(), ConnectionDialect("zookeeper"))
    )
    for at in range(len(stream) - dialect.head + 1):
        end = dialect.claims(stream, at)
        if look.claims(stream, at) != end:
            assert look.claims(stream, at) == -1
            missing = max(end - len(stream), 0)
            assert missing > 1_000 or dialect.sender(stream + bytes(missing), at, end) is None
