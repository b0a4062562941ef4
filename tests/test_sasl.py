"""SASL's texts: Kafka's own, RFC 5802's example, round trips, and what isn't understood."""

from __future__ import annotations

import dataclasses

import pytest
from hypothesis import given
from hypothesis import strategies as st

from coordwire.messages import HeartbeatRequest, SaslAuthenticateRequest, SaslAuthenticateResponse
from coordwire.sasl import (
    OAuthBearerToken,
    PlainCredentials,
    SaslMessage,
    ScramClientFinal,
    ScramClientFirst,
    ScramServerFinal,
    ScramServerFirst,
    Sender,
    open_sasl,
    read_sasl,
)
from tests.test_embedded import samples

SENDERS: list[Sender] = ["client", "server"]
TEXTS = [sample for sample in samples() if sample.name.startswith(("Scram", "OAuth"))]


@pytest.mark.parametrize("sample", TEXTS, ids=lambda sample: sample.name)
def test_kafkas_own(sample: tuple[str, int, bytes]) -> None:
    name, _, data = sample
    result = read_sasl(data, "server" if "Server" in name else "client")
    assert result is not None
    assert type(result).__name__ == name
    assert result.encode() == data


def test_rfc_5802s_example() -> None:
    """RFC 5802, section 5."""
    said = [
        read_sasl(b"n,,n=user,r=fyko+d2lbbFgONRv9qkxdawL", "client"),
        read_sasl(b"r=fyko+d2lbbFgONRv9qkxdawL3rfcNHYJY1ZVvWVs7j,s=QSXCR+Q6sek8bf92,i=4096", "server"),
        read_sasl(
            b"c=biws,r=fyko+d2lbbFgONRv9qkxdawL3rfcNHYJY1ZVvWVs7j,p=v0X8v3Bz2T0CJGbJQyF0X+HI4Ts=", "client"
        ),
        read_sasl(b"v=rmF9pqV8S7suAoZWja4dJRkFsKQ=", "server"),
    ]
    first, challenge, final, end = said
    assert first == ScramClientFirst(user="user", nonce="fyko+d2lbbFgONRv9qkxdawL")
    assert isinstance(challenge, ScramServerFirst)
    assert (challenge.iterations, len(challenge.salt)) == (4096, 12)
    assert isinstance(final, ScramClientFinal)
    assert (final.header, len(final.proof)) == (b"n,,", 20)
    assert isinstance(end, ScramServerFinal)
    assert end.signature is not None
    assert len(end.signature) == 20


def test_names_are_unescaped() -> None:
    result = read_sasl(b"y,a=a=3Db,n=x=2Cy,r=n,tokenauth=true", "client")
    assert result == ScramClientFirst(
        user="x,y", nonce="n", authzid="a=b", binding="y", extensions=(("tokenauth", "true"),)
    )


def test_plain_and_bearer() -> None:
    assert read_sasl(b"\0ann\0pass", "client") == PlainCredentials(user="ann", password="pass")
    token = b"n,,\1auth=Bearer aGVhZA.cGF5.c2ln\1traceId=7\1\1"
    assert read_sasl(token, "client", "OAUTHBEARER") == OAuthBearerToken(
        token="aGVhZA.cGF5.c2ln", extensions=(("traceId", "7"),)
    )


NAMES = st.text(st.characters(exclude_characters="\0", exclude_categories=["Cs"]), min_size=1, max_size=8)
WORDS = st.text("abcXYZ019+/", min_size=1, max_size=9)
EXTENSIONS = st.lists(st.tuples(st.text("abZ", min_size=1), WORDS), max_size=2).map(tuple)
CLIENTS = st.one_of(
    st.builds(
        ScramClientFirst, user=NAMES, nonce=WORDS, authzid=NAMES | st.just(""), extensions=EXTENSIONS,
        binding=st.sampled_from(["n", "y", "p=tls-unique"]),
    ),
    st.builds(ScramClientFinal, header=st.binary(), nonce=WORDS, proof=st.binary(), extensions=EXTENSIONS),
    st.builds(OAuthBearerToken, token=WORDS, authzid=NAMES | st.just(""), extensions=EXTENSIONS),
    st.builds(PlainCredentials, user=NAMES, password=NAMES, authzid=NAMES | st.just("")),
)  # fmt: skip
SERVERS = st.one_of(
    st.builds(
        ScramServerFirst, nonce=WORDS, salt=st.binary(), extensions=EXTENSIONS,
        iterations=st.integers(0, 10**9 - 1),
    ),
    st.builds(ScramServerFinal, signature=st.binary(), extensions=EXTENSIONS),
    st.builds(ScramServerFinal, error=WORDS, extensions=EXTENSIONS),
)  # fmt: skip


@given(CLIENTS)
def test_a_clients_comes_back(message: SaslMessage) -> None:
    mechanism = {PlainCredentials: "PLAIN", OAuthBearerToken: "OAUTHBEARER"}.get(
        type(message), "SCRAM-SHA-512"
    )
    assert read_sasl(message.encode(), "client", mechanism) == message


@given(SERVERS)
def test_a_servers_comes_back(message: SaslMessage) -> None:
    assert read_sasl(message.encode(), "server") == message


@given(
    st.binary(max_size=60) | st.text("nrcpviea=,0\0\1", max_size=40).map(str.encode), st.sampled_from(SENDERS)
)
def test_no_bytes_make_it_raise(data: bytes, sender: Sender) -> None:
    result = read_sasl(data, sender)
    assert result is None or read_sasl(result.encode(), sender) == result


def test_what_is_not_understood() -> None:
    assert read_sasl(b"`\x82\x02\xff", "client") is None  # GSSAPI's
    assert read_sasl(b"\0ann\0pass", "client", "SCRAM-SHA-256") is None
    assert read_sasl(b"\0ann\0pass", "client", "GSSAPI") is None
    assert read_sasl(b"n,,n=user,r=x", "server") is None
    assert read_sasl(b"r=x,s=QQ==,i=" + b"9" * 99, "server") is None
    assert read_sasl(b"", "server") is None


def test_inside_sasl_authenticate() -> None:
    request = SaslAuthenticateRequest(auth_bytes=b"\0ann\0pass")
    assert open_sasl(request) == PlainCredentials(user="ann", password="pass")
    assert open_sasl(request, "SCRAM-SHA-256") is None
    response = SaslAuthenticateResponse(auth_bytes=b"e=other-error")
    assert open_sasl(response) == ScramServerFinal(error="other-error")
    assert open_sasl(HeartbeatRequest()) is None


@pytest.mark.parametrize("cls", SaslMessage.__args__)
def test_secrets_are_fields(cls: type[SaslMessage]) -> None:
    assert set(cls.secret) <= {field.name for field in dataclasses.fields(cls)}
    assert cls.secret
