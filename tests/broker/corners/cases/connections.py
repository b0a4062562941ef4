"""Frames that are odd: sizes, headers, versions and keys that no broker has."""

from __future__ import annotations

from struct import pack

from tests.broker.corners.script import ask, case, raw

_ASK = ask("ApiVersions", 2)


def _header(key: int, version: int, correlation: int = 7, client: bytes | None = b"c") -> bytes:
    name = pack(">h", -1) if client is None else pack(">h", len(client)) + client
    return pack(">hhi", key, version, correlation) + name


def _frame(data: bytes) -> bytes:
    return pack(">i", len(data)) + data


case("frame-of-no-bytes", raw(_frame(b"")))
case("frame-of-negative-size", raw(pack(">i", -1)))
case("frame-too-large", raw(pack(">i", (1 << 31) - 1)))
case("frame-of-2-bytes", raw(_frame(b"\0\x12")))
case("frame-of-7-bytes", raw(_frame(b"\0\x12\0\0\0\0\0")))
case("frame-of-8-bytes", raw(_frame(b"\0\x12\0\0\0\0\0\x07"), answer=(18, 0)))
case("frame-cut", raw(_frame(_header(18, 0))[:-1]))
case("frame-of-text", raw(b"GET / HTTP/1.1\r\n\r\n"))
case(
    "null-client-id",
    raw(_frame(_header(18, 5, client=None)), answer=(18, 0)),
    raw(_frame(_header(12, 0, client=None) + b"\0\1g\0\0\0\1\0\1m"), answer=(12, 0)),
)
case("client-id-too-long", raw(_frame(_header(18, 0)[:8] + pack(">h", 500) + b"c")))
case("client-id-length-negative", raw(_frame(_header(18, 0)[:8] + pack(">h", -2))))
case("bytes-left-over", raw(_frame(_header(18, 0) + b"more")), raw(b""))
case(
    "bytes-left-over-in-heartbeat",
    raw(_frame(_header(12, 0) + b"\0\1g\0\0\0\1\0\1m" + b"more"), answer=(12, 0)),
)
case("bytes-missing-in-heartbeat", raw(_frame(_header(12, 0) + b"\0\1g\0\0")))
case("negative-array", raw(_frame(_header(3, 0) + pack(">i", -2))))
case("huge-array", raw(_frame(_header(3, 0) + pack(">i", 1 << 30))))
case("negative-string", raw(_frame(_header(12, 0) + pack(">h", -1) + b"\0\0\0\1\0\1m")))
case("unknown-key", raw(_frame(_header(999, 0))))
case("negative-key", raw(_frame(_header(-1, 0))))
for key in (4, 5, 6, 7):
    case(f"dropped-key-{key}", raw(_frame(_header(key, 0))))
case("version-too-new", raw(_frame(_header(3, 99))))
case("version-negative", raw(_frame(_header(3, -1))))
case(
    "dropped-version",
    raw(_frame(_header(0, 0) + b"\0\1\0\0\0\0\0\0\0\0")),
    raw(_frame(_header(1, 0) + b"\0" * 16)),
    raw(_frame(_header(2, 0) + b"\xff\xff\xff\xff\0\0\0\0")),
)
case(
    "versions-too-new",
    raw(_frame(_header(18, 99)), answer=(18, 0)),
    raw(_frame(_header(18, 99)), answer=(18, 0)),
)
case(
    "versions-too-new-with-tags",
    raw(_frame(_header(18, 99) + b"\0"), answer=(18, 0)),
    raw(_frame(_header(18, 99) + b"\0" + b"\xff" * 20), answer=(18, 0)),
)
case("versions-negative", raw(_frame(_header(18, -1)), answer=(18, 0)))
case("versions-too-new-with-garbage", raw(_frame(_header(18, 99) + b"\xff" * 20), answer=(18, 0)))
case("versions-without-body", raw(_frame(_header(18, 3))))
for number, (name, version) in enumerate(
    [("", "1"), ("a", ""), ("a b", "1"), ("-a", "1"), ("a", "1/2"), ("a.b-c", "1.0-x")]
):
    case(
        f"software-name-{number}",
        ask("ApiVersions", 3, client_software_name=name, client_software_version=version, patience=2.0),
    )
for number, (cluster, node) in enumerate(
    [("other", 1), ("other", -1), (None, 1), ("", -1), ("", 1), (None, -1), (None, -2)]
):
    case(
        f"versions-of-a-node-{number}",
        ask(
            "ApiVersions",
            5,
            client_software_name="a",
            client_software_version="1",
            cluster_id=cluster,
            node_id=node,
        ),
    )
case(
    "versions-of-another-node-without-software",
    ask("ApiVersions", 5, client_software_name="", cluster_id="other", node_id=1),
)
case(
    "two-requests-at-once",
    raw(_frame(_header(12, 0) + b"\0\1g\0\0\0\1\0\1m") * 2, answer=(12, 0)),
    raw(b"", answer=(12, 0)),
)
case(
    "request-of-brokers",
    *(
        raw(_frame(_header(key, 0) + b"\0" * 40), link=str(key))
        for key in (52, 53, 54, 56, 58, 59, 62, 63, 67, 70, 73, 82)
    ),
)
