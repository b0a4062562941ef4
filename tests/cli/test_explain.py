"""`coordwire explain`: frames in hex, byte for byte."""

from __future__ import annotations

import pytest

from coordwire.frames import encode_request, encode_response
from coordwire.messages import HeartbeatRequest, HeartbeatResponse, SaslAuthenticateRequest

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
