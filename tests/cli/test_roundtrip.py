"""`decode | encode` gives the bytes back: of every frame, decoded or refused."""

from __future__ import annotations

import json
import struct
from pathlib import Path

import pytest

from coordwire.capture.entries import FrameEntry
from coordwire.capture.reader import Capture
from coordwire.frames import encode_request, encode_response
from coordwire.messages import ApiVersionsRequest, ApiVersionsResponse, FetchRequest, FetchResponse
from coordwire.messages.fetch import EpochEndOffset, FetchableTopicResponse, PartitionData

from .conftest import CAPTURES, Run

FILES = sorted(CAPTURES.glob("*.pcap"))
SIZE = struct.Struct(">i").pack


def bodies(path: Path) -> list[bytes]:
    with path.open("rb") as stream:
        return [entry.body for entry in Capture(stream, "").entries() if isinstance(entry, FrameEntry)]


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.stem)
def test_every_frame_comes_back(path: Path, run: Run) -> None:
    lines = run("decode", "--format", "json", path, "--show-secrets").out
    frames = bodies(path)
    assert len(frames) > 10
    back = run("encode", "-", stdin=lines)
    assert back.status == 0
    assert back.text.split() == [(SIZE(len(body)) + body).hex() for body in frames]
    binary = run("encode", "--to", "frames", "-", stdin=lines)
    assert binary.out == b"".join(SIZE(len(body)) + body for body in frames)


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.stem)
def test_strict_lines_come_back_too(path: Path, run: Run) -> None:
    result = run("decode", "--format", "json", path, "--show-secrets", "--strict")
    back = run("encode", "-", stdin=result.out)
    assert back.text.split() == [(SIZE(len(body)) + body).hex() for body in bodies(path)]


def test_bodies_of_sound_frames_say_their_bytes(run: Run, captures: Path) -> None:
    """Without `raw`, so that the body alone must do."""
    path = captures / "confluent__rdmock__group-range.pcap"
    frames = bodies(path)
    for form in run("decode", "--format", "json", path, "--deep", "--strict").forms:
        if form["error"] is None:
            assert "raw" not in form
            back = run("encode", "-", stdin=json.dumps(form).encode())
            assert back.text.strip() == (SIZE(form["size"]) + frames[form["frame"] - 1]).hex()


def test_hex_and_frames_are_read_again(run: Run, captures: Path) -> None:
    lines = run("decode", "--format", "json", captures / "aio__tansu__txn.pcap").out
    fields = ("api", "apiVersion", "correlationId", "direction", "body", "error", "clientId", "size")
    want = [{key: form[key] for key in fields} for form in map(json.loads, lines.splitlines())]
    for to in ("hex", "frames"):
        data = run("encode", "--to", to, "-", stdin=lines).out
        second_run = run("decode", "--format", "json", "-", stdin=data)
        assert second_run.status == 0
        assert [{key: form[key] for key in fields} for form in second_run.forms] == want


def test_a_tagged_default_written_out_comes_back(run: Run) -> None:
    """Valid, though we would leave it away: an ApiVersions answer whose finalized features' epoch is -1."""
    request = encode_request(
        ApiVersionsRequest(client_software_name="x", client_software_version="1"),
        version=3,
        correlation_id=1,
        client_id="c",
    )
    response = encode_response(ApiVersionsResponse(api_keys=[]), version=3, correlation_id=1)
    assert response.endswith(b"\0")  # no tagged fields
    body = response[4:-1] + bytes.fromhex("01 01 08 ffffffffffffffff")
    longer = SIZE(len(body)) + body
    lines = run("decode", "--format", "json", "-", "--input", "frames", stdin=request + longer)
    assert lines.status == 0
    assert lines.forms[1]["raw"] == body.hex()
    assert run("encode", "-", stdin=lines.out).text.split() == [request.hex(), longer.hex()]


def test_half_a_tagged_struct_comes_back(run: Run) -> None:
    """A Fetch answer that ends inside a tagged struct, of which nothing is in the JSON form."""
    part = FetchableTopicResponse(
        topic="t", partitions=[PartitionData(diverging_epoch=EpochEndOffset(epoch=1))]
    )
    request = encode_request(FetchRequest(), version=12, correlation_id=0x11110001, client_id="c")
    response = encode_response(FetchResponse(responses=[part]), version=12, correlation_id=0x11110001)
    at = response.index(bytes.fromhex("00000001 ffffffffffffffff"))
    body = response[4:at] + b"\xff\xff\xff"
    frame = SIZE(len(body)) + body
    lines = run(
        "decode", "--format", "json", "-", "--show-secrets", "--input", "hex",
        stdin=f"{request.hex()}\n{frame.hex()}".encode(),
    )  # fmt: skip
    assert lines.status == 1
    assert "diverging_epoch" in lines.forms[1]["error"]["path"]
    assert run("encode", "-", stdin=lines.out).text.split() == [request.hex(), frame.hex()]
