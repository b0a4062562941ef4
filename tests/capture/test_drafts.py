"""Conversations of dialects other than Kafka's, recorded: captures, hex and frames, and the command line."""

from __future__ import annotations

import io
import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from coordwire.capture.entries import Entry, FrameEntry
from coordwire.capture.reader import Capture
from coordwire.cli.__main__ import main
from coordwire.codec import Message
from coordwire.dialects import CALLS, Dialect, find_dialect
from tests.capture.build import ACK, FIN, PSH, SYN, packet, pcap
from tests.conversations import CONVERSATIONS, is_request, spoken

Said = list[tuple[str, Message, bytes]]


def recorded(said: Said, *, syn: bool = True, skip: int = 0) -> bytes:
    """A pcap of one connection; `skip`: frames from the start that it lacks."""
    at = {"client": 100, "server": 900}
    packets = []
    if syn:
        packets = [packet(seq=99, flags=SYN), packet(back=True, seq=899, ack=100, flags=SYN | ACK)]
    for index, (sender, _, data) in enumerate(said):
        if index >= skip:
            packets.append(packet(data, back=sender == "server", seq=at[sender], flags=PSH | ACK))
        at[sender] += len(data)
    packets.append(packet(seq=at["client"], flags=FIN | ACK))
    packets.append(packet(back=True, seq=at["server"], flags=FIN | ACK))
    return pcap(packets)


def entries(
    data: bytes,
    dialect: Dialect,
    *,
    type_ids: dict[str, int] | None = None,
    auto_commit: bool | None = None,
    **options: Any,
) -> list[Entry]:
    chosen = find_dialect(dialect, type_ids=type_ids, auto_commit=auto_commit)
    return list(Capture(io.BytesIO(data), "test", dialect=chosen, **options).entries())


def frames(data: bytes, dialect: Dialect, **options: Any) -> list[FrameEntry]:
    result = entries(data, dialect, **options)
    assert all(isinstance(entry, FrameEntry) for entry in result)
    return [entry for entry in result if isinstance(entry, FrameEntry)]


@pytest.mark.parametrize("name", CONVERSATIONS)
@pytest.mark.parametrize("syn", [True, False])
def test_a_recorded_conversation(name: str, syn: bool) -> None:
    dialect, lines = CONVERSATIONS[name]
    messages = spoken(dialect, lines)
    result = frames(recorded(messages, syn=syn), dialect)
    assert [entry.message for entry in result] == [message for _, message, _ in messages]
    for entry, (sender, message, data) in zip(result, messages, strict=True):
        assert entry.error is None
        assert entry.body == data[4:]
        assert entry.flow.startswith("10.0.0.1" if sender == "client" else "10.0.0.2")
        assert entry.direction == ("request" if is_request(dialect, message) else "response")
        assert entry.call is not None
        assert entry.api_name == entry.call.name
        assert (entry.direction == "response") is (entry.request is not None)
        if entry.request is not None:
            assert entry.request.call == entry.call
            assert entry.latency_ns == entry.time_ns - entry.request.time_ns  # type: ignore[operator]


@pytest.mark.parametrize("name", CONVERSATIONS)
@pytest.mark.parametrize("form", ["hex", "frames"])
def test_frames_of_which_nobody_says_who_sent_them(name: str, form: str) -> None:
    dialect, lines = CONVERSATIONS[name]
    messages = spoken(dialect, lines)
    data = b"".join(wire for _, _, wire in messages)
    if form == "hex":
        data = "\n".join(wire.hex() for _, _, wire in messages).encode()
    result = frames(data, dialect, input=form)
    assert [entry.message for entry in result] == [message for _, message, _ in messages]


def test_a_capture_from_mid_stream() -> None:
    dialect, lines = CONVERSATIONS["draft-2 with auto_commit"]
    messages = spoken(dialect, lines)
    result = frames(recorded(messages, syn=False, skip=5), dialect)
    assert [entry.message for entry in result] == [message for _, message, _ in messages[5:]]
    assert result[0].direction == "response"
    assert result[0].request is None
    dialect, lines = CONVERSATIONS["draft-1 without auto_commit"]
    messages = spoken(dialect, lines)
    result = frames(recorded(messages, syn=False, skip=3), dialect)
    assert [entry.message for entry in result] == [message for _, message, _ in messages[3:]]


def test_type_ids_and_auto_commit_are_the_callers() -> None:
    dialect, lines = CONVERSATIONS["draft-1 without auto_commit"]
    messages = spoken(dialect, lines)
    decoded = frames(recorded(messages, syn=False, skip=3), dialect, auto_commit=False)
    assert all(entry.error is None for entry in decoded)
    wrong = frames(recorded(messages, syn=False, skip=3), dialect, auto_commit=True)
    assert [entry.error is None for entry in wrong[:5]] == [True, True, True, True, False]
    assert wrong[4].error is not None
    assert wrong[4].error.reason == "the count of an array needs 2 bytes, 0 left"
    ids = {call.name: call.type_id + 5000 for call in CALLS[dialect]}
    unknown = entries(recorded(messages, syn=False), dialect, type_ids=ids)
    assert unknown == []
    with pytest.raises(ValueError, match="draft-1 has no Fetch"):
        frames(recorded(messages), dialect, type_ids={"Fetch": 1})
    with pytest.raises(ValueError, match="dialects other than"):
        frames(recorded(messages), Dialect.KAFKA, auto_commit=True)


@settings(max_examples=60, deadline=None)
@given(st.sampled_from(sorted(CONVERSATIONS)), st.data())
def test_every_byte_is_in_one_entry(name: str, data: st.DataObject) -> None:
    dialect, lines = CONVERSATIONS[name]
    said = [(sender, message, bytearray(wire)) for sender, message, wire in spoken(dialect, lines)]
    for _ in range(data.draw(st.integers(0, 4))):
        wire = data.draw(st.sampled_from([wire for _, _, wire in said]))
        wire[data.draw(st.integers(0, len(wire) - 1))] = data.draw(st.integers(0, 255))
    changed = [(sender, message, bytes(wire)) for sender, message, wire in said]
    result = entries(recorded(changed), dialect, strict=data.draw(st.booleans()), ports=(9092,))
    size = sum(entry.size + 4 if isinstance(entry, FrameEntry) else entry.length for entry in result)
    assert size == sum(len(wire) for _, _, wire in changed)


# --- the command line ---


def run(capsys: pytest.CaptureFixture[str], *words: str) -> tuple[int, str]:
    status = main(list(words))
    return status, capsys.readouterr().out


@pytest.mark.parametrize("name", CONVERSATIONS)
def test_decode_and_encode(name: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    dialect, lines = CONVERSATIONS[name]
    messages = spoken(dialect, lines)
    path = tmp_path / "drafts.pcap"
    path.write_bytes(recorded(messages))
    status, text = run(capsys, "decode", "--dialect", str(dialect), "--format", "json", str(path))
    forms = [json.loads(line) for line in text.splitlines()]
    assert status == 0
    assert len(forms) == len(messages)
    assert {form["dialect"] for form in forms} == {str(dialect)}
    assert all(form["error"] is None and form["body"] is not None for form in forms)
    (tmp_path / "lines").write_text(text)
    status, text = run(capsys, "encode", str(tmp_path / "lines"))
    assert status == 0
    assert text.split() == [data.hex() for _, _, data in messages]
    for form in ("tree", "hex"):
        status, text = run(capsys, "decode", "--dialect", str(dialect), "--format", form, str(path))
        assert status == 0
        assert all(call.name in text for call in CALLS[dialect])
        assert "refused" not in text


def test_decode_shows_who_pings(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    dialect, lines = CONVERSATIONS["draft-2 with auto_commit"]
    path = tmp_path / "drafts.pcap"
    path.write_bytes(recorded(spoken(dialect, lines)))
    words = ("decode", "--dialect", "draft-2", "--format", "json", "--api", "2003", str(path))
    status, text = run(capsys, *words)
    first, second, *_ = [json.loads(line) for line in text.splitlines()]
    assert status == 0
    assert (first["api"], first["apiKey"], first["direction"]) == ("Ping", 2003, "request")
    assert first["flow"] == "10.0.0.2:9092 > 10.0.0.1:53412"
    assert first["body"] == {"consumerId": "till-3", "numRetries": 0}
    assert second["apiVersion"] == 1
    assert second["body"]["offsetInfo"] == [{"topic": "orders", "partition": "0-1", "offset": 42}]
    status, _ = run(capsys, "decode", "--dialect", "draft-2", "--type-id", "Hello=1", str(path))
    assert status == 2
    status, _ = run(capsys, "decode", "--dialect", "draft-2", "--type-id", "Ping", str(path))
    assert status == 2
    line = tmp_path / "line"
    line.write_text(json.dumps(first | {"api": "Hello"}))
    assert main(["encode", str(line)]) == 1


def test_filters_know_the_drafts_names(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    dialect, lines = CONVERSATIONS["draft-2 with auto_commit"]
    path = tmp_path / "drafts.pcap"
    path.write_bytes(recorded(spoken(dialect, lines)))
    words = ("decode", "--dialect", "draft-2", "--format", "json", "--api", "ping,StopFetcher", str(path))
    status, text = run(capsys, *words)
    assert status == 0
    assert {json.loads(line)["api"] for line in text.splitlines()} == {"Ping", "StopFetcher"}
    dialect, lines = CONVERSATIONS["draft-3"]
    path.write_bytes(recorded(spoken(dialect, lines)))
    status, text = run(
        capsys, "decode", "--dialect", "draft-3", "--format", "json", "--api", "Metadata", str(path)
    )
    assert {json.loads(line)["api"] for line in text.splitlines()} == {"Metadata"}


@pytest.mark.parametrize("name", CONVERSATIONS)
def test_explain(name: str, capsys: pytest.CaptureFixture[str]) -> None:
    dialect, lines = CONVERSATIONS[name]
    said = [data.hex() for _, _, data in spoken(dialect, lines)]
    status, text = run(capsys, "explain", "--dialect", str(dialect), *said)
    assert status == 0
    assert "!!" not in text
    assert "(not read)" not in text
    assert text.count("# ") == len(said)
    field = "request_api_key" if dialect is Dialect.DRAFT_2_IN_08 else "request_type_id"
    assert text.count(f"{field} = ") >= len(CALLS[dialect])


def test_explain_with_other_type_ids(capsys: pytest.CaptureFixture[str]) -> None:
    ping = "00000004 0007 0001"
    status, text = run(capsys, "explain", "--dialect", "draft-1", "--type-id", "Ping=7", ping)
    assert status == 0
    assert "num_retries = 1" in text
    assert main(["explain", "--dialect", "draft-1", "--type-id", "Hello=7", ping]) == 2
    assert main(["explain", "--dialect", "draft-1", "--response-to", "12", "--version", "0", ping]) == 2
