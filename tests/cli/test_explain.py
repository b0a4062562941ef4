"""`coordwire explain`: frames in hex, byte for byte."""

from __future__ import annotations

import pytest

from coordwire.frames import encode_request, encode_response
from coordwire.messages import HeartbeatRequest, HeartbeatResponse, SaslAuthenticateRequest

from ..capture import build
from .conftest import Run

REQUEST = encode_request(
    HeartbeatRequest(group_id="payments", generation_id=3, member_id="m"),
    version=4,
    correlation_id=7,
    client_id="till",
)
RESPONSE = encode_response(HeartbeatResponse(error_code=27), version=4, correlation_id=7)


def test_a_response_behind_its_request_is_read_as_its_answer(run: Run) -> None:
    for arguments, stdin in (
        ([REQUEST.hex(), RESPONSE.hex()], b""),
        ([(REQUEST + RESPONSE).hex()], b""),
        (["-"], f"{REQUEST.hex()}\n{RESPONSE.hex()}".encode()),
        (["-"], REQUEST + RESPONSE),
        (REQUEST.hex(" ").split() + RESPONSE.hex(" ").split(), b""),
        ([REQUEST.hex(":"), "0x" + RESPONSE.hex()], b""),
    ):
        result = run("explain", *arguments, stdin=stdin)
        assert result.status == 0, arguments
        assert "group_id = 'payments'" in result.text
        assert "error_code = 27 REBALANCE_IN_PROGRESS" in result.text
        assert "request_api_key = 12 Heartbeat" in result.text


def test_a_response_alone(run: Run) -> None:
    assert run("explain", RESPONSE.hex()).status == 1
    result = run("explain", "--response-to", "heartbeat", "--version", "4", RESPONSE.hex())
    assert result.status == 0
    assert "Heartbeat v4 response" in result.text
    assert "error_code = 27" in result.text
    assert run("explain", "--response-to", "12", "--version", "4", RESPONSE[4:].hex()).status == 0
    wrong = run("explain", "--response-to", "11", "--version", "4", RESPONSE.hex())
    assert wrong.status == 1
    assert "!! " in wrong.text


def test_a_response_alone_names_the_option_that_reads_it(run: Run) -> None:
    first = encode_response(HeartbeatResponse(error_code=27), version=4, correlation_id=3)
    late = encode_response(HeartbeatResponse(error_code=27), version=4, correlation_id=0x30000)
    for frame in (RESPONSE, RESPONSE[4:], first, late):
        result = run("explain", frame.hex())
        assert "give --response-to API --version N, or its request before it" in result.err
        assert "--response-to API --version N" in run("decode", "-", stdin=frame.hex().encode()).err
        assert run("explain", "--response-to", "12", "--version", "4", frame.hex()).err == ""
    damaged = run("explain", REQUEST[4:-1].hex())
    assert damaged.status == 1
    assert damaged.err == ""


def test_a_packet(run: Run) -> None:
    request, answer = build.packet(REQUEST), build.packet(RESPONSE, back=True)
    result = run("explain", request.hex(), answer.hex())
    assert result.status == 0
    assert "10.0.0.2:9092 > 10.0.0.1:53412  frame 2: Heartbeat v4 response" in result.text
    assert run("explain", answer.hex(), "--response-to", "heartbeat", "--version", "4").status == 0
    dump = "".join(f"{at:04x}  {request[at : at + 16].hex(' ')}\n" for at in range(0, len(request), 16))
    for text in (request.hex(), dump):
        result = run("decode", "--format", "line", "-", stdin=text.encode())
        assert "→ Heartbeat v4" in result.text
    empty = run("explain", build.packet(flags=build.SYN).hex())
    assert empty.status == 2
    assert empty.err == "coordwire: explain: a TCP packet without data, 10.0.0.1:53412 > 10.0.0.2:9092\n"


def test_a_refusal_has_its_line(run: Run) -> None:
    result = run("explain", (REQUEST[:3] + bytes([REQUEST[3] - 1]) + REQUEST[4:-1]).hex())
    assert result.status == 1
    assert "!! " in result.text


def test_nothing_is_hidden(run: Run) -> None:
    secret = SaslAuthenticateRequest(auth_bytes=b"\0u\0test-only-pw")
    frame = encode_request(secret, version=2, correlation_id=1, client_id="c")
    assert "withheld" not in run("explain", frame.hex()).text


@pytest.mark.parametrize(
    "arguments",
    [["zz"], [""], [], ["--version", "4", "00"], ["--response-to", "Nope", "--version", "1", "00"]],
)
def test_usage(run: Run, arguments: list[str]) -> None:
    result = run("explain", *arguments)
    assert result.status == 2
    assert result.err
    assert result.out == b""


def test_strict(run: Run) -> None:
    body = RESPONSE[4:] + b"\0"
    strict = run("explain", "--strict", REQUEST.hex(), (len(body).to_bytes(4, "big") + body).hex())
    tolerant = run("explain", REQUEST.hex(), (len(body).to_bytes(4, "big") + body).hex())
    assert (strict.status, tolerant.status) == (1, 0)
    assert "! deviation: -: 1 trailing byte" in tolerant.text
    assert "! deviation" not in strict.text
