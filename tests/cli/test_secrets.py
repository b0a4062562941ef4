"""No secret leaves unless it is asked for, in no format, and not by the back door of a refusal."""

from __future__ import annotations

import base64
import json
import struct
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from coordwire.capture.redaction import secret_fields
from coordwire.codec import Message
from coordwire.frames import encode_request, encode_response
from coordwire.messages import (
    AlterConfigsRequest,
    AlterUserScramCredentialsRequest,
    ApiVersionsRequest,
    CreateDelegationTokenResponse,
    CreateTopicsRequest,
    DescribeConfigsRequest,
    DescribeConfigsResponse,
    EnvelopeRequest,
    IncrementalAlterConfigsRequest,
    RenewDelegationTokenRequest,
    SaslAuthenticateRequest,
    SaslAuthenticateResponse,
    SaslHandshakeRequest,
    SaslHandshakeResponse,
    find_message,
)
from coordwire.messages.alter_configs import AlterableConfig, AlterConfigsResource
from coordwire.messages.alter_user_scram_credentials import ScramCredentialUpsertion
from coordwire.messages.create_topics import CreatableTopic, CreatableTopicConfig
from coordwire.messages.describe_configs import (
    DescribeConfigsResourceResult,
    DescribeConfigsResult,
    DescribeConfigsSynonym,
)
from coordwire.messages.keys import FACTS

from .conftest import Result, Run

PASSWORD = b"test-only-pw"
FORMATS = ("json", "tree", "hex", "line", "csv")


def leaks(result: Result) -> bool:
    """Whether the password is in an output: as text, in hex, in the columns of a dump, or in base64."""
    out = result.out + result.err.encode()
    columns = "".join(
        line[10:33] for line in result.text.splitlines() if line[:8].strip().lstrip("-").isdigit()
    )
    texts = [
        out,
        bytes.fromhex("".join(ch for ch in columns if ch in "0123456789abcdef"))
        if "**" not in columns
        else b"",
    ]
    if out.startswith(b"{"):
        texts += [part for form in result.forms for part in strings(form)]
    return any(PASSWORD in text or PASSWORD.hex().encode() in text for text in texts)


def strings(value: Any) -> list[bytes]:
    if isinstance(value, dict):
        return [part for content in value.values() for part in strings(content)]
    if isinstance(value, list):
        return [part for content in value for part in strings(content)]
    if not isinstance(value, str):
        return []
    results = [value.encode()]
    for decode in (base64.b64decode, bytes.fromhex):
        try:
            results.append(decode(value))
        except ValueError:
            continue
    return results


def request(message: Message, version: int) -> bytes:
    return encode_request(message, version=version, correlation_id=1, client_id="c")


def hexed(*frames: bytes) -> bytes:
    return "\n".join(frame.hex() for frame in frames).encode()


@pytest.mark.parametrize("form", FORMATS)
def test_a_captured_password_stays_hidden(run: Run, captures: Path, form: str) -> None:
    path = captures / "confluent__noida__sasl.pcap"
    hidden = run("decode", path, "--format", form)
    assert hidden.status == 0
    assert not leaks(hidden)
    output = run("decode", path, "--format", form, "--show-secrets")
    if form == "json":
        assert leaks(output)  # so that the search above means something
        assert "redacted" not in output.text
        redacted = [form for form in hidden.forms if "redacted" in form]
        assert {form["api"] for form in redacted} == {"SaslAuthenticate"}
        assert all(form["body"]["authBytes"] is None for form in redacted)
        assert redacted[0]["redacted"] == ["auth_bytes"]


AUTH = request(SaslAuthenticateRequest(auth_bytes=b"\0u\0" + PASSWORD), 2)
SECRET = [
    AUTH,
    request(RenewDelegationTokenRequest(hmac=PASSWORD, renew_period_ms=1), 2),
    request(EnvelopeRequest(request_data=PASSWORD, request_principal=None, client_host_address=b"1234"), 0),
    request(
        AlterUserScramCredentialsRequest(
            deletions=[],
            upsertions=[
                ScramCredentialUpsertion(
                    name="u", mechanism=1, iterations=1, salt=PASSWORD, salted_password=PASSWORD
                )
            ],
        ),
        0,
    ),
    request(
        AlterConfigsRequest(
            resources=[
                AlterConfigsResource(
                    resource_type=4,
                    resource_name="1",
                    configs=[AlterableConfig(name="ssl.keystore.password", value=PASSWORD.decode())],
                )
            ]
        ),
        2,
    ),
    request(
        CreateTopicsRequest(
            topics=[
                CreatableTopic(
                    name="t",
                    configs=[
                        CreatableTopicConfig(name="sasl.jaas.config", value=PASSWORD.decode()),
                        CreatableTopicConfig(name="retention.ms", value="1"),
                    ],
                )
            ],
            timeout_ms=1,
        ),
        7,
    ),
]


@pytest.mark.parametrize("form", FORMATS)
@pytest.mark.parametrize("frame", SECRET, ids=lambda frame: str(frame[5]))
def test_every_kind_of_secret(run: Run, frame: bytes, form: str) -> None:
    assert PASSWORD in frame
    result = run("decode", "-", "--format", form, stdin=hexed(frame))
    assert result.status == 0
    assert not leaks(result)
    if form == "json":
        assert result.forms[0]["redacted"]
        back = run("encode", "-", stdin=result.out)
        assert back.status == 1
        assert back.out == b""
        assert back.err.startswith("coordwire: line 1: redacted: ")
        assert result.forms[0]["redacted"][0] in back.err
        full_output = run("decode", "--format", "json", "-", "--show-secrets", stdin=hexed(frame))
        assert run("encode", "-", stdin=full_output.out).text.strip() == frame.hex()


def test_configs_that_are_no_secret_stay(run: Run) -> None:
    form = run("decode", "--format", "json", "-", stdin=hexed(SECRET[-1])).forms[0]
    assert form["redacted"] == ["topics[0].configs[0].value"]
    assert [config["value"] for config in form["body"]["topics"][0]["configs"]] == [None, "1"]


@pytest.mark.parametrize("form", FORMATS)
def test_secrets_of_answers(run: Run, form: str) -> None:
    text = PASSWORD.decode()
    answer = DescribeConfigsResponse(
        results=[
            DescribeConfigsResult(
                resource_type=2,
                resource_name="t",
                error_message=None,
                configs=[
                    DescribeConfigsResourceResult(
                        name="ssl.key.password",
                        value=text,
                        synonyms=[DescribeConfigsSynonym(name="ssl.key.password", value=text, source=1)],
                    ),
                    DescribeConfigsResourceResult(name="x", value=text, is_sensitive=True),
                    DescribeConfigsResourceResult(name="cleanup.policy", value="compact"),
                ],
            )
        ]
    )
    sent_request = request(DescribeConfigsRequest(resources=[]), 4)
    response = encode_response(answer, version=4, correlation_id=1)
    result = run("decode", "-", "--format", form, stdin=hexed(sent_request, response))
    assert result.status == 0
    assert not leaks(result)
    assert "compact" in result.text or form in ("line", "csv")
    orphan = run(
        "decode",
        "-",
        "--format",
        form,
        "--input",
        "hex",
        stdin=hexed(request(ApiVersionsRequest(), 0))
        + b"\n"
        + response[:4].hex().encode()
        + b"00000099"
        + response[8:].hex().encode(),
    )
    assert orphan.status == 1
    assert not leaks(orphan)  # without its request, and still it reads as what it is


@pytest.mark.parametrize("form", FORMATS)
@pytest.mark.parametrize(
    "spoil", [lambda body: body + b"\7", lambda body: body[:-4], lambda body: b"\0\x24\0\x09" + body[4:]]
)
def test_a_refused_frame_hides_its_bytes(run: Run, form: str, spoil: Callable[[bytes], bytes]) -> None:
    body = spoil(AUTH[4:])
    frame = struct.pack(">i", len(body)) + body
    tolerant = run("decode", "-", "--format", form, stdin=hexed(frame))
    assert not leaks(tolerant)
    assert PASSWORD[:8].hex() not in tolerant.text
    result = run("decode", "-", "--strict", "--format", form, stdin=hexed(frame))
    assert result.status == 1
    assert not leaks(result)
    assert PASSWORD[:8].hex() not in result.text
    if form == "json":
        assert "raw" in result.forms[0]["redacted"]
        assert "raw" not in result.forms[0]
        output = run("decode", "--format", "json", "-", "--show-secrets", stdin=hexed(frame)).forms[0]
        assert output["raw"] == body.hex()


@pytest.mark.parametrize("form", FORMATS)
def test_bare_tokens(run: Run, form: str) -> None:
    token = b"\0user\0" + PASSWORD
    frames = [
        request(SaslHandshakeRequest(mechanism="PLAIN"), 0),
        encode_response(
            SaslHandshakeResponse(error_code=0, mechanisms=["PLAIN"]), version=0, correlation_id=1
        ),
        struct.pack(">i", len(token)) + token,
    ]
    for flags in ([], ["--strict"]):
        assert not leaks(run("decode", "-", "--format", form, *flags, stdin=b"".join(frames)))
        assert not leaks(run("decode", "-", "--format", form, *flags, stdin=hexed(*frames)))
    alone = run("decode", "-", "--format", form, "--input", "frames", stdin=frames[2])
    assert not leaks(alone)  # the handshake wasn't captured


@pytest.mark.parametrize("form", FORMATS)
def test_stretches(run: Run, form: str) -> None:
    """A connection that ends inside a frame with a password."""
    frames = request(ApiVersionsRequest(), 0) + AUTH[:-2]
    result = run("decode", "-", "--format", form, "--input", "frames", stdin=frames)
    assert result.status == 1
    assert not leaks(result)


@pytest.mark.parametrize("form", FORMATS)
def test_unknown_apis(run: Run, form: str) -> None:
    frame = struct.pack(">ihhih", 10 + len(PASSWORD), 999, 0, 1, -1) + PASSWORD
    result = run("decode", "-", "--format", form, "--input", "hex", stdin=hexed(frame))
    assert result.status == 1
    assert not leaks(result)


def test_empty_secrets_can_be_encoded_again(run: Run) -> None:
    sent_request = request(SaslAuthenticateRequest(auth_bytes=b""), 2)
    response = encode_response(
        SaslAuthenticateResponse(error_message=None, auth_bytes=b""), version=2, correlation_id=1
    )
    lines = run("decode", "--format", "json", "-", stdin=hexed(sent_request, response)).out
    assert run("encode", "-", stdin=lines).text.split() == [sent_request.hex(), response.hex()]


def test_the_table_names_fields_that_exist() -> None:
    for name, paths in secret_fields.FIELDS.items():
        for path in paths:
            cls: Any = find_message(name)
            for step in path.replace("[]", "").split("."):
                field = next(field for field in cls._layout_.fields if field.name == step)
                cls = field.struct


def test_no_field_named_like_a_secret_is_forgotten() -> None:
    words = ("auth_bytes", "hmac", "salt", "password", "request_data", "response_data")

    def walk(cls: Any, path: str) -> list[str]:
        results = []
        for field in cls._layout_.fields:
            place = f"{path}{field.name}{'[]' if field.array else ''}"
            if field.struct:
                results += walk(field.struct, f"{place}.")
            elif any(word in field.name for word in words):
                results.append(place)
        return results

    for key, facts in FACTS.items():
        for direction in ("request", "response"):
            cls = find_message(key, direction)
            for path in walk(cls, ""):
                assert path in secret_fields.FIELDS[facts.name + direction.capitalize()]


SECRET_NAMES = [
    "ssl.keystore.password",
    "sasl.jaas.config",
    "listener.name.x.scram.sasl.jaas.config",
    "delegation.token.master.key",
    "delegation.token.secret.key",
    "ssl.keystore.key",
    "ssl.truststore.certificates",
    "aws.secret.access.key",
    "basic.auth.credentials",
]
OPEN_NAMES = [
    "retention.ms",
    "cleanup.policy",
    "compression.type",
    "ssl.protocol",
    "listener.name.plain-1.ssl.protocol",
    "listener.name.sasl.plain.sasl.server.callback.handler.class",
]


@pytest.mark.parametrize("name", [*SECRET_NAMES, *OPEN_NAMES])
def test_names_of_secret_configs(name: str) -> None:
    assert secret_fields.is_secret_name(name) == (name in SECRET_NAMES)


def test_tokens_and_increments_are_covered() -> None:
    token = CreateDelegationTokenResponse(hmac=b"x")
    assert secret_fields.find(token) == ["hmac"]
    assert secret_fields.find(IncrementalAlterConfigsRequest(resources=[])) == []
    assert json.dumps(secret_fields.find(None)) == "[]"
