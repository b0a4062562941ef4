"""`--deep`: what opens, at any depth, and what stays hidden in it."""

from __future__ import annotations

import json
import struct
from uuid import UUID

import pytest

from coordwire.capture.redaction import secret_fields
from coordwire.cli import embedded_json
from coordwire.codec import Message
from coordwire.frames import encode_request, encode_response
from coordwire.logs import LogRecord, encode_log_record, open_log_record
from coordwire.messages import (
    ConfigRecord,
    ConsumerProtocolSubscription,
    CooperativeStickyAssignorUserData,
    FetchRequest,
    FetchResponse,
    FetchSnapshotResponse,
    GroupMetadataKey,
    GroupMetadataValue,
    JoinGroupRequest,
    SaslAuthenticateRequest,
    SaslAuthenticateResponse,
    SaslHandshakeRequest,
    SaslHandshakeResponse,
    TopicRecord,
    UserScramCredentialRecord,
)
from coordwire.messages.classic_group_records import MemberMetadata
from coordwire.messages.fetch import FetchableTopicResponse, FetchTopic, PartitionData
from coordwire.messages.fetch_snapshot import (
    FetchSnapshotResponsePartitionSnapshot,
    FetchSnapshotResponseTopicSnapshot,
)
from coordwire.messages.join_group import JoinGroupRequestProtocol
from coordwire.records import Record, encode_batch

from .conftest import Run

FIRST = b"n,,n=ann,r=test-only-nonce"
CHALLENGE = b"r=test-only-nonce+more,s=c2FsdC1zZWNyZXQ=,i=4096"
PROOF = b"c=biws,r=test-only-nonce+more,p=c2VjcmV0LXByb29m"
SECRETS = ("test-only-nonce", "c2FsdC1zZWNyZXQ", "c2VjcmV0LXByb29m", "salt-secret", "secret-proof")


def request_bytes(message: Message, version: int, number: int) -> bytes:
    return encode_request(message, version=version, correlation_id=number, client_id="c")


def authentication() -> bytes:
    """A SCRAM exchange as frames, one after the other."""
    return b"".join(
        (
            request_bytes(SaslHandshakeRequest(mechanism="SCRAM-SHA-256"), 1, 1),
            encode_response(SaslHandshakeResponse(mechanisms=["x"]), version=1, correlation_id=1),
            request_bytes(SaslAuthenticateRequest(auth_bytes=FIRST), 2, 2),
            encode_response(SaslAuthenticateResponse(auth_bytes=CHALLENGE), version=2, correlation_id=2),
            request_bytes(SaslAuthenticateRequest(auth_bytes=PROOF), 2, 3),
            encode_response(
                SaslAuthenticateResponse(error_code=58, auth_bytes=b"e=invalid-proof"),
                version=2,
                correlation_id=3,
            ),
        )
    )


def test_scram(run: Run) -> None:
    forms = run("decode", "--format", "json", "--deep", "--show-secrets", "-", stdin=authentication()).forms
    message = [form["embedded"]["auth_bytes"] for form in forms[2:]]
    assert [item["type"] for item in message] == [
        "ScramClientFirst",
        "ScramServerFirst",
        "ScramClientFinal",
        "ScramServerFinal",
    ]
    assert message[0]["value"]["user"] == "ann"
    assert message[1]["value"]["iterations"] == 4096
    assert message[1]["value"]["salt"] == b"salt-secret".hex()
    assert message[3]["value"]["error"] == "invalid-proof"
    text = run("decode", "--deep", "--show-secrets", "--format", "tree", "-", stdin=authentication()).text
    assert "contains ScramServerFirst" in text
    assert "iterations: 4096" in text


@pytest.mark.parametrize("form", ["json", "tree", "hex"])
def test_scram_is_hidden(run: Run, form: str) -> None:
    result = run("decode", "--deep", "--format", form, "-", stdin=authentication())
    assert not any(secret in result.text or secret.encode().hex() in result.text for secret in SECRETS)
    if form == "json":
        response = [item["embedded"]["auth_bytes"] for item in result.forms[2:]]
        assert response[0] == {"type": "ScramClientFirst", "value": None}
    if form == "tree":
        assert "contains ScramClientFirst (secret, not shown)" in result.text


def test_the_handshakes_mechanism_counts(run: Run) -> None:
    """The same bytes mean nothing under another mechanism."""
    frames = request_bytes(SaslHandshakeRequest(mechanism="GSSAPI"), 1, 1) + request_bytes(
        SaslAuthenticateRequest(auth_bytes=FIRST), 2, 2
    )
    forms = run("decode", "--format", "json", "--deep", "--show-secrets", "-", stdin=frames).forms
    assert "embedded" not in forms[1]


def test_a_bare_token(run: Run) -> None:
    token = b"\0ann\0test-only-nonce"
    frames = (
        request_bytes(SaslHandshakeRequest(mechanism="PLAIN"), 0, 1)
        + encode_response(SaslHandshakeResponse(mechanisms=["PLAIN"]), version=0, correlation_id=1)
        + struct.pack(">i", len(token))
        + token
    )
    hidden = run("decode", "--format", "json", "--deep", "-", stdin=frames)
    assert "test-only-nonce" not in hidden.text
    assert hidden.forms[2]["embedded"] == {"token": {"type": "PlainCredentials", "value": None}}
    output = run("decode", "--format", "json", "--deep", "--show-secrets", "-", stdin=frames).forms[2][
        "embedded"
    ]["token"]
    assert output["value"] == {"user": "ann", "password": "test-only-nonce", "authzid": ""}


def test_user_data_inside_a_subscription(run: Run) -> None:
    data = CooperativeStickyAssignorUserData(generation=41).encode(version=0)
    metadata = b"\0\3" + ConsumerProtocolSubscription(topics=["t"], user_data=data).encode(version=3)
    offer = JoinGroupRequestProtocol(name="cooperative-sticky", metadata=metadata)
    frame = request_bytes(JoinGroupRequest(group_id="g", protocol_type="consumer", protocols=[offer]), 9, 1)
    (form,) = run("decode", "--format", "json", "--deep", "-", stdin=frame).forms
    assert list(form["embedded"]) == ["protocols[0].metadata", "protocols[0].metadata.user_data"]
    assert form["embedded"]["protocols[0].metadata.user_data"] == {
        "type": "CooperativeStickyAssignorUserData",
        "version": 0,
        "value": {"generation": 41},
    }
    text = run("decode", "--deep", "--format", "tree", "-", stdin=frame).text
    assert "user_data: 4 bytes, CooperativeStickyAssignorUserData v0" in text
    assert "generation: 41" in text


# --- records of the brokers' own logs ---

SCRAM = UserScramCredentialRecord(
    name="ann", mechanism=1, salt=b"salt", stored_key=b"stored", iterations=4096
)
CONFIG = ConfigRecord(resource_type=4, resource_name="1", name="ssl.key.password", value="test-only-nonce")
OPEN = ConfigRecord(resource_type=2, resource_name="t", name="retention.ms", value="1")


def metadata(value: Message, number: int) -> Record:
    return Record(value=encode_log_record(LogRecord(log="metadata", type=number, value=value, version=0))[1])


def test_secrets_of_the_metadata_log() -> None:
    opened = open_log_record("__cluster_metadata", metadata(SCRAM, 11))
    assert opened is not None
    form = embedded_json.log_record(opened, show_secrets=False)
    assert form["value"]["type"] == "UserScramCredentialRecord"
    assert (form["value"]["value"]["name"], form["value"]["value"]["iterations"]) == ("ann", 4096)
    assert form["redacted"] == ["value.salt", "value.stored_key"]
    assert all(form["value"]["value"][key] is None for key in ("salt", "storedKey"))
    assert embedded_json.log_record(opened, show_secrets=True)["value"]["value"]["salt"] == "c2FsdA=="
    opened = open_log_record("__cluster_metadata", metadata(CONFIG, 4))
    assert opened is not None
    assert "test-only-nonce" not in json.dumps(embedded_json.log_record(opened, show_secrets=False))
    assert "test-only-nonce" in json.dumps(embedded_json.log_record(opened, show_secrets=True))


def test_what_nobody_knows_in_the_metadata_log_is_hidden() -> None:
    opened = open_log_record("__cluster_metadata", Record(value=b"\1\xac\2\0test-only-nonce"))
    assert opened is not None
    form = embedded_json.log_record(opened, show_secrets=False)
    assert (form["value"], form["redacted"]) == (None, ["value"])
    assert form["unknown"] == "record type 300 is unknown"
    assert embedded_json.log_record(opened, show_secrets=True)["value"] == b"\0test-only-nonce".hex()


def test_a_groups_record_opens() -> None:
    metadata = b"\0\1" + ConsumerProtocolSubscription(topics=["t"]).encode(version=1)
    group = GroupMetadataValue(
        protocol_type="consumer", protocol="range", members=[MemberMetadata(subscription=metadata)]
    )
    key, value = encode_log_record(
        LogRecord(log="consumer_offsets", type=2, key=GroupMetadataKey(group="g"), value=group, version=3)
    )
    opened = open_log_record("__consumer_offsets", Record(key=key, value=value))
    assert opened is not None
    form = embedded_json.log_record(opened, show_secrets=False)
    assert form["key"] == {"type": "GroupMetadataKey", "value": {"group": "g"}}
    assert form["embedded"]["members[0].subscription"]["value"]["topics"] == ["t"]
    assert "redacted" not in form
    tombstone = open_log_record("__consumer_offsets", Record(key=key))
    assert tombstone is not None
    assert embedded_json.log_record(tombstone, show_secrets=False)["value"] is None


def test_what_has_no_json_form_says_so() -> None:
    record = LogRecord(
        log="consumer_offsets",
        type=2,
        key=GroupMetadataKey(group="g"),
        value=GroupMetadataValue(protocol_type="\ud800", leader=b"x"),  # type: ignore[arg-type]
        version=3,
    )
    form = embedded_json.log_record(record, show_secrets=False)
    assert form["value"]["value"] is None
    assert form["value"]["unknown"].startswith("no JSON form: ")


def fetched(records: bytes, **topic: object) -> FetchResponse:
    parts = [PartitionData(records=records)]
    return FetchResponse(responses=[FetchableTopicResponse(partitions=parts, **topic)])  # type: ignore[arg-type]


def test_record_sets_of_the_metadata_log() -> None:
    valid = encode_batch([metadata(TopicRecord(name="t"), 2), metadata(OPEN, 4)], base_offset=0)
    secret = encode_batch([metadata(SCRAM, 11)], base_offset=0)
    path = ["responses[0].partitions[0].records"]
    for topic in ({"topic": "__cluster_metadata"}, {"topic_id": UUID(int=1)}):
        assert secret_fields.find(fetched(valid, **topic)) == []
        assert secret_fields.find(fetched(secret, **topic)) == path
        assert secret_fields.find(fetched(secret[:-1], **topic)) == path
        assert secret_fields.find(fetched(b"junk" * 30, **topic)) == path
        assert secret_fields.find(fetched(b"", **topic)) == []
    assert secret_fields.find(fetched(secret, topic="orders")) == []


def test_a_fetched_secret_is_hidden(run: Run) -> None:
    secret = encode_batch([metadata(CONFIG, 4)], base_offset=0)
    answer = fetched(secret, topic="__cluster_metadata")
    frames = request_bytes(FetchRequest(), 12, 1) + encode_response(answer, version=12, correlation_id=1)
    for form in ("json", "tree", "hex"):
        for flags in ([], ["--deep"]):
            result = run("decode", "--format", form, *flags, "-", stdin=frames)
            assert result.status == 0
            assert b"test-only-nonce".hex() not in result.text.replace(" ", "")
            assert "dGVzdC1vbmx5" not in result.text
    assert result.text.count("withheld") == 1


def test_a_refused_fetch_hides_its_bytes(run: Run) -> None:
    secret = encode_batch([metadata(CONFIG, 4)], base_offset=0)
    wire = encode_response(fetched(secret, topic="__cluster_metadata"), version=11, correlation_id=1)
    body = wire[4:-3]
    asks = FetchRequest(topics=[FetchTopic(topic="__cluster_metadata")])
    frames = request_bytes(asks, 11, 1) + len(body).to_bytes(4, "big") + body
    for form in ("json", "tree", "hex"):
        result = run("decode", "--deep", "--format", form, "-", stdin=frames)
        assert result.status == 1
        assert b"test-only-nonce".hex() not in result.text.replace(" ", "")
        assert "dGVzdC1vbmx5" not in result.text
    assert (
        run("decode", "--format", "json", "--show-secrets", "-", stdin=frames).forms[1]["raw"] == body.hex()
    )


def test_snapshots_are_hidden() -> None:
    part = FetchSnapshotResponsePartitionSnapshot(unaligned_records=b"x")
    answer = FetchSnapshotResponse(topics=[FetchSnapshotResponseTopicSnapshot(partitions=[part])])
    assert secret_fields.find(answer) == ["topics[0].partitions[0].unaligned_records"]
