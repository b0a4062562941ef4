"""SASL's DIGEST-MD5 on a ZooKeeper connection: Apache's client at Apache's server of 3.9.3, with success.

What judges the decoded tokens is the mechanism itself: the client's response is computed again from the
fields that were read, and so is the server's confirmation.
"""

from __future__ import annotations

import base64
import io
import lzma
import re
from functools import cache
from hashlib import md5
from pathlib import Path

from coordwire.capture import Capture, FrameEntry
from coordwire.capture.jsonlines import line
from coordwire.cli.encode import encode_line
from coordwire.dialects import AlternativeDialect

DATA = Path(__file__).parents[1] / "data" / "zookeeper"
PASSWORD = b"pass-word-of-the-till"


@cache
def entries() -> list[FrameEntry]:
    data = io.BytesIO(lzma.decompress((DATA / "sasl.pcap.xz").read_bytes()))
    all_entries = list(Capture(data, "sasl", alternative=AlternativeDialect()).entries())
    assert all(isinstance(entry, FrameEntry) and entry.error is None for entry in all_entries)
    return [entry for entry in all_entries if isinstance(entry, FrameEntry)]


def tokens() -> list[list[bytes]]:
    """Of each exchange the tokens: the client's first, the challenge, the response, what the server says."""
    exchanges: dict[str, list[bytes]] = {}
    for entry in entries():
        if entry.api_name == "Sasl":
            ends = " ".join(sorted(entry.flow.split(" > ")))
            exchanges.setdefault(ends, []).append(getattr(entry.message, "token", None) or b"")
    return list(exchanges.values())


def fields(token: bytes) -> dict[bytes, bytes]:
    pairs = re.findall(rb'([\w-]+)=(?:"([^"]*)"|([^,]*))', token)
    return {name: quoted or plain for name, quoted, plain in pairs}


def digest(answer: dict[bytes, bytes], password: bytes, method: bytes) -> bytes:
    """RFC 2831's, of quality of protection "auth"; method: the client's, or none for the server's."""
    user = md5(b":".join((answer[b"username"], answer[b"realm"], password))).digest()
    session = md5(
        b":".join((user, *(answer[name] for name in (b"nonce", b"cnonce", b"authzid"))))
    ).hexdigest()
    uri = md5(method + b":" + answer[b"digest-uri"]).hexdigest().encode()
    parts = (session.encode(), answer[b"nonce"], answer[b"nc"], answer[b"cnonce"], answer[b"qop"], uri)
    return md5(b":".join(parts)).hexdigest().encode()


def test_the_exchange_is_that_of_the_mechanism() -> None:
    (exchange,) = tokens()
    asked, challenge, response, confirmation = exchange
    answer = fields(response)
    assert (asked, answer[b"username"]) == (b"", b"till")
    assert fields(challenge)[b"nonce"] == answer[b"nonce"]
    assert answer[b"response"] == digest(answer, PASSWORD, b"AUTHENTICATE")
    assert fields(confirmation)[b"rspauth"] == digest(answer, PASSWORD, b"")
    assert answer[b"response"] != digest(answer, b"another-word", b"AUTHENTICATE")


def test_tokens_are_withheld() -> None:
    shown = "".join(line(entry, 6, show_secrets=False) for entry in entries())
    whole = "".join(line(entry, 6, show_secrets=True) for entry in entries())
    for exchange in tokens():
        for token in filter(None, exchange):
            text = base64.b64encode(token).decode()
            assert text in whole
            assert text not in shown
    for entry in entries():
        assert encode_line(line(entry, 6, show_secrets=True).encode())[4:] == entry.body
