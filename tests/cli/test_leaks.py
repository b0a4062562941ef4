"""Frames with secrets, damaged and taken out of their conversations: no format shows any part of a secret.

Strategy: every message that holds secrets, in several versions, is written with one password; frames are cut,
lengthened, changed in a bit, given another API, robbed of their request or given another's, by a seeded
generator. What is written is searched for every eight bytes of the password, as text, in hex and in base64.
"""

from __future__ import annotations

import base64
import random
import struct
from collections.abc import Callable
from typing import Any

import pytest

from coordwire.capture.redaction.secret_fields import find, is_secret_name
from coordwire.cli.selection.fields import FIELDS
from coordwire.codec import Message
from coordwire.frames import encode_request, encode_response
from coordwire.messages import (
    AlterConfigsRequest,
    AlterConfigsResponse,
    AlterUserScramCredentialsRequest,
    AlterUserScramCredentialsResponse,
    ApiVersionsRequest,
    CreateDelegationTokenRequest,
    CreateDelegationTokenResponse,
    CreateTopicsRequest,
    CreateTopicsResponse,
    DescribeConfigsRequest,
    DescribeConfigsResponse,
    DescribeDelegationTokenRequest,
    DescribeDelegationTokenResponse,
    EnvelopeRequest,
    EnvelopeResponse,
    ExpireDelegationTokenRequest,
    ExpireDelegationTokenResponse,
    FetchRequest,
    FindCoordinatorRequest,
    HeartbeatRequest,
    HeartbeatResponse,
    IncrementalAlterConfigsRequest,
    IncrementalAlterConfigsResponse,
    JoinGroupRequest,
    ListGroupsRequest,
    MetadataRequest,
    MetadataResponse,
    RenewDelegationTokenRequest,
    RenewDelegationTokenResponse,
    SaslAuthenticateRequest,
    SaslAuthenticateResponse,
    SyncGroupRequest,
    alter_configs,
    incremental_alter_configs,
)
from coordwire.messages.alter_user_scram_credentials import ScramCredentialUpsertion
from coordwire.messages.create_topics import CreatableTopic, CreatableTopicConfig
from coordwire.messages.describe_configs import (
    DescribeConfigsResourceResult,
    DescribeConfigsResult,
    DescribeConfigsSynonym,
)
from coordwire.messages.describe_delegation_token import DescribedDelegationToken
from coordwire.messages.keys import FACTS
from coordwire.messages.metadata import MetadataResponseBroker

from .conftest import Run

SECRET = b"test-only-PASSword"
TEXT = SECRET.decode()
KEPT = 8
"""Bytes of a secret in a row that nothing may show."""

FLAGS = (
    ("--format", "json"), ("--format", "tree"), ("--format", "hex"),
    ("--format", "json", "--strict"), ("--format", "tree", "--strict"), ("--format", "hex", "--strict"),
    ("--format", "json", "--deep"), ("--format", "tree", "--deep"),
)  # fmt: skip
COLUMNS = (
    ("--format", "line"), ("--fields", f"{','.join(FIELDS)},header,body,raw,errors,deviations,request.body"),
)  # fmt: skip
SEEDS = 60


def config(kind: Any, name: str) -> Any:
    return kind(name=name, value=TEXT)


def secret_exchanges() -> list[tuple[Message, int, Message]]:
    token = DescribedDelegationToken(token_id="t", hmac=SECRET)
    upsertion = ScramCredentialUpsertion(
        name="u", mechanism=1, iterations=4096, salt=SECRET, salted_password=SECRET
    )
    jaas = "listener.name.x.sasl.jaas.config"
    altered = alter_configs.AlterConfigsResource(
        resource_type=4,
        resource_name="0",
        configs=[config(alter_configs.AlterableConfig, "ssl.key.password")],
    )
    increment = incremental_alter_configs.AlterConfigsResource(
        resource_type=4, resource_name="0", configs=[config(incremental_alter_configs.AlterableConfig, jaas)]
    )
    synonym = DescribeConfigsSynonym(name="ssl.key.password", value=TEXT, source=1)
    described = DescribeConfigsResult(
        resource_type=2, resource_name="t",
        configs=[
            DescribeConfigsResourceResult(name="ssl.key.password", value=TEXT, synonyms=[synonym]),
            DescribeConfigsResourceResult(name="x", value=TEXT, is_sensitive=True),
        ],
    )  # fmt: skip
    topic = CreatableTopic(name="t", configs=[config(CreatableTopicConfig, "x.secret")])
    plain = SaslAuthenticateRequest(auth_bytes=b"\0u\0" + SECRET)
    scram = SaslAuthenticateRequest(auth_bytes=b"n,,n=u,r=" + SECRET)
    response = SaslAuthenticateResponse(auth_bytes=SECRET, session_lifetime_ms=3_600_000)
    request = EnvelopeRequest(
        request_data=b"\0\x24\0\2" + SECRET, request_principal=b"p", client_host_address=b"\1\2\3\4"
    )
    return [
        (plain, 0, response), (scram, 1, response), (plain, 2, response),
        (AlterUserScramCredentialsRequest(upsertions=[upsertion]), 0, AlterUserScramCredentialsResponse()),
        (RenewDelegationTokenRequest(hmac=SECRET), 0, RenewDelegationTokenResponse()),
        (RenewDelegationTokenRequest(hmac=SECRET), 2, RenewDelegationTokenResponse()),
        (ExpireDelegationTokenRequest(hmac=SECRET), 2, ExpireDelegationTokenResponse()),
        (CreateDelegationTokenRequest(), 1, CreateDelegationTokenResponse(hmac=SECRET, token_id="t")),
        (CreateDelegationTokenRequest(), 3, CreateDelegationTokenResponse(hmac=SECRET, token_id="t")),
        (DescribeDelegationTokenRequest(), 3, DescribeDelegationTokenResponse(tokens=[token, token])),
        (request, 0, EnvelopeResponse(response_data=SECRET)),
        (IncrementalAlterConfigsRequest(resources=[increment]), 1, IncrementalAlterConfigsResponse()),
        (AlterConfigsRequest(resources=[altered]), 1, AlterConfigsResponse()),
        (CreateTopicsRequest(topics=[topic]), 5, CreateTopicsResponse()),
        (DescribeConfigsRequest(), 1, DescribeConfigsResponse(results=[described])),
        (DescribeConfigsRequest(), 4, DescribeConfigsResponse(results=[described])),
    ]  # fmt: skip


OTHERS: list[tuple[Message, int]] = [
    (HeartbeatRequest(group_id="g"), 4), (MetadataRequest(), 1), (ListGroupsRequest(), 0),
    (JoinGroupRequest(group_id="g"), 0), (SyncGroupRequest(group_id="g"), 4),
    (FindCoordinatorRequest(key="g"), 1), (FetchRequest(), 4), (ApiVersionsRequest(), 0),
]  # fmt: skip


def framed(body: bytes) -> bytes:
    return struct.pack(">i", len(body)) + body


def damaged(frame: bytes, draw: random.Random, *, request: bool) -> bytes:
    """A frame with one thing wrong, or nothing."""
    body = bytearray(frame[4:])
    match draw.choice(("nothing", "cut", "longer", "bit", "bit", "bit", "api", "size")):
        case "cut":
            del body[max(8, len(body) - draw.randrange(1, 12)) :]
        case "longer":
            body += bytes(draw.randrange(1, 5))
        case "bit":
            body[draw.randrange(len(body))] ^= 1 << draw.randrange(8)
        case "api" if request:
            body[1] ^= 1 << draw.randrange(7)
        case "size":
            return struct.pack(">i", max(len(body) + draw.randrange(-3, 4), 0)) + body
    return framed(bytes(body))


def conversation(seed: int) -> bytes:
    draw = random.Random(seed)
    frames = []
    for number, (sent_request, version, response) in enumerate(secret_exchanges()):
        if draw.random() < 0.5:
            continue
        answer = encode_response(response, version=version, correlation_id=number)
        if draw.random() < 0.15:  # as if it answered something else
            other, other_version = draw.choice(OTHERS)
            frames += [encode_request(other, version=other_version, correlation_id=number), answer]
            continue
        request = encode_request(sent_request, version=version, correlation_id=number, client_id="c")
        if draw.random() < 0.7:
            frames.append(damaged(request, draw, request=True))
        frames.append(damaged(answer, draw, request=False))
    return b"".join(frames)


def parts() -> list[bytes]:
    """What a part of the secret looks like, in all that is written."""
    pieces = [SECRET[at : at + KEPT] for at in range(len(SECRET) - KEPT + 1)]
    encoded = [base64.b64encode(bytes(shift) + SECRET) for shift in range(3)]
    return [
        *pieces,
        *(piece.hex().encode() for piece in pieces),
        *(piece.hex(" ").encode() for piece in pieces),
        *(text[4:16] for text in encoded),
    ]


PARTS = parts()


@pytest.mark.parametrize("seed", range(SEEDS))
def test_no_damage_shows_a_secret(run: Run, seed: int) -> None:
    data = conversation(seed)
    for flags in (*FLAGS, *(COLUMNS if seed % 6 == 0 else ())):
        result = run("decode", "--input", "frames", *flags, "-", stdin=data)
        written = result.out + result.err.encode()
        results = [part for part in PARTS if part in written]
        assert not results, (flags, written[max(written.find(results[0]) - 300, 0) :][:400])


def test_the_search_finds_what_is_shown(run: Run) -> None:
    for flags in FLAGS[:3]:
        result = run("decode", "--input", "frames", "--show-secrets", *flags, "-", stdin=conversation(0))
        assert any(part in result.out for part in PARTS)


@pytest.mark.parametrize("change", [lambda body: body, lambda body: body + b"\0", lambda body: body[:-2]])
def test_answers_without_their_requests_are_withheld(run: Run, change: Callable[[bytes], bytes]) -> None:
    """Whatever they are: an answer without a secret reads as one that has one, and the other way round."""
    broker = MetadataResponseBroker(node_id=1, host="host-1", port=9092)
    answers: list[tuple[Message, int]] = [(MetadataResponse(brokers=[broker]), 9)]
    answers += [
        (response, version) for _, version, response in secret_exchanges() if response != type(response)()
    ]
    request = encode_request(ApiVersionsRequest(), version=0, correlation_id=1)
    for message, version in answers:
        body = change(encode_response(message, version=version, correlation_id=0x7F00_0001)[4:])
        result = run("decode", "--format", "json", "--input", "frames", "-", stdin=request + framed(body))
        form = result.forms[1]
        assert form["redacted"] == ["raw"]
        assert form["withheld"] == f"{len(body)} bytes withheld, which may hold a secret"
        assert body[8:].hex() not in result.text


@pytest.mark.parametrize("answer", [HeartbeatResponse(error_code=27), HeartbeatResponse()])
def test_an_answer_that_is_too_short_for_a_secret_is_shown(run: Run, answer: Message) -> None:
    request = encode_request(ApiVersionsRequest(), version=0, correlation_id=1)
    response = encode_response(answer, version=4, correlation_id=0x7F00_0001)
    result = run("decode", "--format", "json", "--input", "frames", "-", stdin=request + response)
    assert result.forms[1]["raw"] == response[4:].hex()
    assert "withheld" not in result.forms[1]


def test_requests_of_unknown_versions_are_withheld(run: Run) -> None:
    """One damaged byte makes such a request of any other."""
    last = FACTS[3].last
    for version in (last + 1, last + 9, -1):
        body = struct.pack(">hhih", 3, version, 0x11110001, -1) + b"\0\7topic-1\0\0\0\0\7"
        (form,) = run("decode", "--format", "json", "--input", "frames", "-", stdin=framed(body)).forms
        assert "raw" not in form
        assert form["error"]["position"] == 2
        assert form["error"]["path"] == "request_api_version"


def test_configs_that_are_not_known_are_secret() -> None:
    """As Kafka's brokers take them: a name that was damaged is among them."""
    for name in ("sasl.jbas.config", "ssl.kez.passuord", "x.sec\x12et", "a\0b", "some.setting", ""):
        assert is_secret_name(name)
    for name in ("retention.ms", "compression.type", "leader.replication.throttled.replicas"):
        assert not is_secret_name(name)


def test_levels_of_loggers_and_damaged_values_of_open_configs() -> None:
    level = DescribeConfigsResourceResult(name="kafka.server.X$Y", value="DEBUG")
    swallowed = DescribeConfigsResourceResult(name="retention.ms", value="1\0\0\1\5" + TEXT)
    lines = DescribeConfigsResourceResult(name="principal.builder.class", value="a\nb")
    result = DescribeConfigsResult(configs=[level, swallowed, lines])
    assert find(DescribeConfigsResponse(results=[result])) == ["results[0].configs[1].value"]
