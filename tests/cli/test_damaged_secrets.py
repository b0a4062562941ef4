"""Damaged connections with secrets: no output shows any part of one, in C and in Python alike; with each case
in which one did."""

from __future__ import annotations

import hashlib
import io
import os
import struct
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from uuid import UUID

import pytest

import coordwire
from coordwire.capture.entries import FrameEntry
from coordwire.capture.formats.pcap import as_pcap
from coordwire.capture.reader import Capture
from coordwire.capture.redaction.entry_secrets import Withheld, is_fully_decoded, withheld
from coordwire.capture.redaction.secret_fields import find
from coordwire.codec import Message
from coordwire.errors import UnreadableRange
from coordwire.frames import encode_request, encode_response
from coordwire.messages import (
    ConfigRecord,
    DescribeConfigsRequest,
    DescribeConfigsResponse,
    DescribeDelegationTokenRequest,
    DescribeDelegationTokenResponse,
    EnvelopeRequest,
    ExpireDelegationTokenRequest,
    FetchRequest,
    FetchResponse,
    HeartbeatRequest,
    HeartbeatResponse,
    ListGroupsRequest,
    MetadataRequest,
    MetadataResponse,
    RenewDelegationTokenRequest,
    SaslAuthenticateRequest,
    SaslAuthenticateResponse,
    find_message,
)
from coordwire.messages.describe_configs import DescribeConfigsResourceResult, DescribeConfigsResult
from coordwire.messages.describe_delegation_token import DescribedDelegationToken
from coordwire.messages.fetch import FetchableTopicResponse, FetchTopic, PartitionData
from coordwire.messages.keys import FACTS
from coordwire.records import Record, encode_batch
from tests.damaged_conversations import (
    METADATA_ID,
    OUTPUTS,
    PIECES,
    SECRET,
    TEXT,
    Conversation,
    conversation,
    leaked,
    outputs,
)

from .conftest import Run

_DATA = Path(__file__).parent.parent / "data" / "secrets"
ANSWERS_ONLY, EQUAL_IDS = _DATA / "answers-only.pcap", _DATA / "equal-ids.pcap"
BLOCKS, BLOCK = 10, 30
FOUND_SEEDS = (
    299,
    1285,
    4986,
    1004592,
    1008740,
    1047825,
    1069239,
    1088016,
    1095268,
    2009101,
    549755813889,
)
"""Seeds by which a part of a secret was shown once: records of the metadata log under a name with one letter
changed, the end of a token in the number after it, a value that swallowed what follows it, bytes that are
read as a group's name and as a transactional id, a damaged batch of the metadata log that reads as a control
batch, an alteration of configs as telemetry and as
ACLs, SASL's bytes as a member that leaves."""


@pytest.mark.parametrize("block", range(BLOCKS))
def test_no_damaged_conversation_shows_a_secret(block: int) -> None:
    for seed in range(block * BLOCK, (block + 1) * BLOCK):
        assert leaked(conversation(seed)) is None, seed


@pytest.mark.parametrize("seed", FOUND_SEEDS)
def test_conversations_that_once_did(seed: int) -> None:
    assert leaked(conversation(seed)) is None


def test_the_search_finds_secrets_that_are_shown() -> None:
    values = set()
    for seed in range(60):
        for name, written in outputs(conversation(seed, damages=0), show_secrets=True):
            if any(piece in written for piece in PIECES):
                values.add(name)
    assert values == {*OUTPUTS} - {"timeline", "notebook", "repr", "line"}  # these never show any


DIGESTS = f"""
import hashlib
from tests.damaged_conversations import conversation, outputs
for seed in range({2 * BLOCK}):
    written = "".join(text for _, text in outputs(conversation(seed)))
    print(seed, hashlib.sha256(written.encode()).hexdigest())
"""


@pytest.mark.skipif(coordwire.implementation != "c", reason="the native extension is not there")
def test_c_and_python_withhold_the_same() -> None:
    run = subprocess.run(
        [sys.executable, "-c", DIGESTS], capture_output=True, text=True, check=True,
        env=os.environ | {"COORDWIRE_IMPL": "python"}, cwd=Path(__file__).parents[2],
    )  # fmt: skip
    for line in run.stdout.splitlines():
        seed, digest = line.split()
        written = "".join(text for _, text in outputs(conversation(int(seed))))
        assert hashlib.sha256(written.encode()).hexdigest() == digest, seed


# --- cases ---


def framed(body: bytes) -> bytes:
    return struct.pack(">i", len(body)) + body


def changed(message: Message, version: int, *, key: int | None = None, to: int | None = None) -> bytes:
    """A request with another API or version."""
    frame = bytearray(encode_request(message, version=version, correlation_id=7, client_id="c"))
    if key is not None:
        frame[4:6] = struct.pack(">h", key)
    if to is not None:
        frame[6:8] = struct.pack(">h", to)
    return bytes(frame)


def is_hidden(*frames: bytes) -> bool:
    return all(
        leaked(Conversation(b"".join(frames), "frames", strict, lazy, ())) is None
        for strict in (False, True)
        for lazy in (False, True)
    )


def test_answers_alone_from_the_middle_of_a_connection(run: Run) -> None:
    """A correlation id is read as a size, and the answer with the token as a Produce request."""
    for format in ("json", "tree", "hex", "line"):
        result = run("decode", "--format", format, ANSWERS_ONLY)
        for output in (b"S3CR3T", b"S3CR3T".hex().encode(), b"S3CR3T".hex(" ").encode()):
            assert output not in result.out
    (frame,) = (form for form in run("decode", "--format", "json", ANSWERS_ONLY).forms if form["frame"])
    assert frame["redacted"] == ["body", "client_id", "raw"]
    assert frame["withheld"] == "59 bytes withheld, which may hold a secret"
    assert "raw" in run("decode", "--format", "json", "--show-secrets", ANSWERS_ONLY).forms[1]


@pytest.mark.parametrize("format", ["json", "tree", "line", "csv", "hex"])
def test_an_answer_to_any_of_two_requests_is_withheld(format: str, run: Run) -> None:
    result = run("decode", "--format", format, EQUAL_IDS)
    for output in (b"S3CR3T", b"S3CR3T".hex().encode(), b"S3CR3T".hex(" ").encode()):
        assert output not in result.out
    assert b"S3CR3T" in run("decode", "--format", "json", "--show-secrets", EQUAL_IDS).out


@pytest.mark.parametrize("lazy", [False, True])
def test_only_answers_whose_secrets_may_be_elsewhere_are_withheld(lazy: bool) -> None:
    """Requests of one id: two of one API are alike, and so are two whose APIs have no secrets."""
    beat = encode_request(HeartbeatRequest(group_id="g", member_id="m"), version=4, correlation_id=5)
    beaten = encode_response(HeartbeatResponse(), version=4, correlation_id=5)
    ask = encode_request(MetadataRequest(topics=[]), version=12, correlation_id=5)
    answer = encode_response(MetadataResponse(cluster_id="c"), version=12, correlation_id=5)
    token = encode_request(DescribeDelegationTokenRequest(), version=2, correlation_id=5)
    for requests, answers, is_withheld in (
        ((beat, beat), (beaten, beaten), False),
        ((beat, ask), (beaten, answer), False),
        ((beat, token), (beaten,), True),
        ((token, beat, beat), (answer, beaten), True),
    ):
        wires = [(10**18, 0, wire in answers, wire) for wire in (*requests, *answers)]
        entries = list(Capture(io.BytesIO(as_pcap(wires)), "x", lazy=lazy).entries())
        for entry in entries[len(requests) :]:
            assert isinstance(entry, FrameEntry)
            assert withheld(entry).raw is is_withheld
            assert is_fully_decoded(entry) is not is_withheld


def test_the_text_of_an_error_without_an_error_is_a_secret() -> None:
    """The bytes of a SaslAuthenticate, of whose answer some are missing."""
    assert find(SaslAuthenticateResponse(error_message=TEXT)) == ["error_message"]
    assert find(SaslAuthenticateResponse(error_code=58, error_message="Authentication failed")) == []


@pytest.mark.parametrize("client_id", ["till-3", None])
def test_requests_without_answer_are_shown(client_id: str | None) -> None:
    """No default request of any API and version is withheld, since it holds no secret."""
    for key, facts in FACTS.items():
        for version in range(facts.first, facts.last + 1):
            message = find_message(key, "request")()
            wire = encode_request(message, version=version, correlation_id=1, client_id=client_id)
            (entry,) = Capture(io.BytesIO(as_pcap([(10**18, 0, False, wire)])), "x").entries()
            assert isinstance(entry, FrameEntry)
            assert withheld(entry) == Withheld(), (entry.api_name, version)


CASES: dict[str, Callable[[], tuple[bytes, ...]]] = {
    "a token's renewal as Produce v17": lambda: (
        changed(RenewDelegationTokenRequest(hmac=SECRET, renew_period_ms=1), 2, key=0, to=17),
    ),
    "a token's end as an unknown API": lambda: (
        changed(ExpireDelegationTokenRequest(hmac=SECRET, expiry_time_period_ms=1), 2, key=0x1027),
    ),
    "an Envelope as SaslHandshake": lambda: (
        changed(
            EnvelopeRequest(request_data=SECRET, request_principal=b"p", client_host_address=b"\1\2\3\4"),
            0, key=17,
        ),
    ),
    "an Envelope as FindCoordinator": lambda: (
        changed(
            EnvelopeRequest(request_data=SECRET, request_principal=b"p", client_host_address=b"\1\2\3\4"),
            0, key=10,
        ),
    ),
    "SaslAuthenticate as SaslHandshake, to its end": lambda: (
        changed(SaslAuthenticateRequest(auth_bytes=b"\0u\0" + SECRET), 2, key=17, to=1),
    ),
    "SaslAuthenticate as FindCoordinator, to its end": lambda: (
        changed(SaslAuthenticateRequest(auth_bytes=b"n,,n=u,r=" + SECRET), 2, key=10, to=0),
    ),
    "SaslAuthenticate as LeaveGroup": lambda: (
        changed(SaslAuthenticateRequest(auth_bytes=b"n,,n=u,r=" + SECRET), 0, key=13),
    ),
    "an answer of tokens to what is read as Metadata": lambda: (
        changed(DescribeDelegationTokenRequest(), 0, key=3, to=1),
        encode_response(
            DescribeDelegationTokenResponse(tokens=[DescribedDelegationToken(token_id="t", hmac=SECRET)]),
            version=0, correlation_id=7,
        ),
    ),
    "an answer under the correlation id of another": lambda: (
        encode_request(MetadataRequest(), version=1, correlation_id=7),
        encode_response(
            DescribeDelegationTokenResponse(tokens=[DescribedDelegationToken(token_id="t", hmac=SECRET)]),
            version=0, correlation_id=7,
        ),
    ),
    "a value that lands where a client id is": lambda: (
        framed(struct.pack(">hhih", 3, 1, 7, len(SECRET)) + SECRET + b"\x7f" * 5),
    ),
    "a value in an unknown tagged field": lambda: (
        encode_request(ListGroupsRequest(tags={77: SECRET}), version=4, correlation_id=7, client_id="c"),
    ),
    "a value in an unknown tagged field of a header": lambda: (
        encode_request(
            HeartbeatRequest(), version=4, correlation_id=7, client_id="c", header_tags={77: SECRET}
        ),
    ),
    "a sensitive config that isn't marked": lambda: (
        encode_request(DescribeConfigsRequest(), version=4, correlation_id=7, client_id="c"),
        encode_response(
            DescribeConfigsResponse(
                results=[DescribeConfigsResult(
                    configs=[DescribeConfigsResourceResult(name="some.setting", value=TEXT)]
                )]
            ),
            version=4, correlation_id=7,
        ),
    ),
    "a size that is a piece of the secret": lambda: (SECRET * 2,),
}  # fmt: skip


@pytest.mark.parametrize("case", CASES)
def test_cases(case: str) -> None:
    assert is_hidden(*CASES[case]())


def test_the_metadata_log_under_a_damaged_name_or_id() -> None:
    """The topic's name or id is damaged in the answer, and the request of a fetch session names none."""
    value = b"\1\4\0" + ConfigRecord(
        resource_type=4, resource_name="0", name="ssl.key.password", value=TEXT
    ).encode(version=0)
    records = encode_batch([Record(value=value)], base_offset=0)
    number = METADATA_ID.bytes
    damaged_ids = (number, b"\0\7" + number[2:], number[:-2] + b"\x80\xff")
    damaged_names = ("__cluster_metadata", "__clusder_meta\1ata", "_cluster_metadata", "__cluster__metadata")
    for id_bytes in damaged_ids:
        for name in damaged_names:
            topic_id = UUID(bytes=id_bytes)
            part = PartitionData(partition_index=0, records=records)
            response = FetchableTopicResponse(topic=name, topic_id=topic_id, partitions=[part])
            for version in (7, 12, 13, 17):
                sent_request = FetchRequest(topics=[FetchTopic(topic="other", topic_id=topic_id)])
                for request in (FetchRequest(), sent_request):
                    assert is_hidden(
                        encode_request(request, version=version, correlation_id=7, client_id="c"),
                        encode_response(
                            FetchResponse(responses=[response]), version=version, correlation_id=7
                        ),
                    )


def test_an_answer_to_who_asked_for_the_metadata_log(run: Run) -> None:
    """Whatever topic it names: its records are neither shown nor opened."""
    value = b"\1\4\0" + ConfigRecord(resource_type=4, resource_name="0", name="x", value=TEXT).encode(
        version=0
    )
    part = PartitionData(partition_index=0, records=encode_batch([Record(value=value)], base_offset=0))
    request = FetchRequest(topics=[FetchTopic(topic="__cluster_metadata", partitions=[])])
    response = FetchResponse(responses=[FetchableTopicResponse(topic="another", partitions=[part])])
    assert is_hidden(
        encode_request(request, version=7, correlation_id=7, client_id="c"),
        encode_response(response, version=7, correlation_id=7),
    )


def test_reasons_quote_no_number_of_four_bytes(run: Run) -> None:
    body = struct.pack(">hhih", 36, 0, 7, -1) + struct.pack(">i", 0x7A513758) + b"abcd"
    result = run("decode", "--format", "json", "--input", "frames", "-", stdin=framed(body))
    assert str(0x7A513758) not in result.text
    assert result.forms[0]["error"]["reason"] == "bytes needs more than 9999999 bytes, 4 left"


def test_reprs_have_no_content() -> None:
    (entry,) = Capture(
        io.BytesIO(encode_request(SaslAuthenticateRequest(auth_bytes=SECRET), version=2, correlation_id=7)),
        "some", input="frames",
    ).entries()  # fmt: skip
    assert isinstance(entry, FrameEntry)
    assert repr(entry) == "<FrameEntry #1 of 'some': SaslAuthenticate v2 request, 31 bytes>"
    lost = UnreadableRange(3, 18, "a reason", SECRET, file="some")
    assert repr(lost) == "<UnreadableRange of 'some': 18 bytes at byte 3: a reason>"


@pytest.mark.parametrize("stray", range(6))
def test_stray_bytes_are_shown_while_they_are_too_few_for_a_secret(stray: int) -> None:
    body = encode_request(MetadataRequest(), version=1, correlation_id=7)[4:] + b"x" * stray
    for strict in (False, True):
        (entry,) = Capture(io.BytesIO(framed(body)), "", input="frames", strict=strict).entries()
        assert isinstance(entry, FrameEntry)
        assert is_fully_decoded(entry) == (stray < 4)
        assert withheld(entry).raw == (stray >= 4)
