"""Clients that only the first request of a connection names (request header version 3, KIP-1313).

Strategy: the frames are written with the header's own class; no API of a released Kafka has that header, so a
process of its own reads them, in which Heartbeat v4 has it, or all flexible requests.
"""

from __future__ import annotations

import json
import struct
import subprocess
import sys
from collections.abc import Iterable
from itertools import islice
from pathlib import Path
from typing import Any
from uuid import UUID

import pytest

from coordwire.capture.entries import FrameEntry
from coordwire.capture.formats.pcap import as_pcap
from coordwire.capture.reader import Capture
from coordwire.codec import Message
from coordwire.messages import ApiVersionsRequest, HeartbeatRequest, HeartbeatResponse, RequestHeader
from coordwire.versions import INSTANCE_ID, LASTING_CLIENT_KEYS, known_versions, omits_client
from schemas import headers
from tests.bench import lasting_clients
from tests.bench.group_traffic import traffic
from tests.bench.lasting_clients import without_clients
from tests.capture.build import BROKER, PSH, Address, ethernet, ipv4, pcap, tcp
from tests.connections import in_python

ID = UUID(int=0x1F2E)
HEARTBEAT = HeartbeatRequest(group_id="g", member_id="m", generation_id=1)
SWITCH = """
from coordwire import versions
versions.FACTS[12] = versions.FACTS[12]._replace(request_headers={0: 1, 4: 3})
versions.LASTING_CLIENT_KEYS = frozenset({12})
"""
"""Gives Heartbeat v4 the header of version 3, as a later release of Kafka may."""

Call = tuple[Message, int, int, str | None, UUID | None]
CALLS: dict[str, list[Call]] = {
    "named": [(HEARTBEAT, 4, 3, "till-3", ID), (HEARTBEAT, 4, 3, None, None)],
    "nameless": [(HEARTBEAT, 4, 3, None, ID), (HEARTBEAT, 4, 3, None, None)],
    "begun before": [(HEARTBEAT, 4, 3, None, None), (HEARTBEAT, 4, 3, None, None)],
    "older first": [(ApiVersionsRequest(), 3, 2, "till-4", None), (HEARTBEAT, 4, 3, None, None)],
    "older": [(HEARTBEAT, 3, 1, None, None)],
}
"""Connections by what is known of their clients. A call: message, version, header's version, client id,
instance id."""


def _frame(header: bytes, body: bytes) -> bytes:
    return struct.pack(">i", len(header) + len(body)) + header + body


def _packets(port: int, calls: Iterable[Call]) -> Iterable[bytes]:
    """A connection: each request, and the answer to each Heartbeat."""
    client: Address = ("10.0.0.1", port)
    seq = ack = 1
    for number, (message, version, header, client_id, instance_id) in enumerate(calls):
        assert message.api_key is not None
        fields = RequestHeader(
            request_api_key=message.api_key, request_api_version=version, correlation_id=number,
            client_id=client_id,
        )  # fmt: skip
        if instance_id is not None:
            fields.tags = {INSTANCE_ID: instance_id.bytes}
        request = _frame(fields.encode(version=header), message.encode(version=version))
        yield ethernet(ipv4(tcp(request, seq=seq, ack=ack, flags=PSH, source=client), source=client))
        seq += len(request)
        if isinstance(message, HeartbeatRequest):
            head = struct.pack(">i", number) + b"\0" * (version >= 4)
            answer = _frame(head, HeartbeatResponse().encode(version=version))
            segment = tcp(answer, seq=ack, ack=seq, flags=PSH, source=BROKER, destination=client)
            yield ethernet(ipv4(segment, source=BROKER, destination=client))
            ack += len(answer)


@pytest.fixture(scope="module")
def capture(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("clients") / "clients.pcap"
    connections = (_packets(1024 + index, calls) for index, calls in enumerate(CALLS.values()))
    path.write_bytes(pcap(packet for packets in connections for packet in packets))
    return path


def _decode(capture: Path, *arguments: str, command: str = "decode", python: bool = False) -> tuple[str, str]:
    """What a command writes of the capture once the header is in use."""
    script = f"{SWITCH}\nimport sys\nfrom coordwire.cli.__main__ import main\nsys.exit(main())"
    process = [sys.executable, "-c", script, command, *arguments, str(capture)]
    environment = {"COORDWIRE_IMPL": "python"} if python else {}
    result = subprocess.run(
        process, capture_output=True, text=True, check=False, env=environment | {"PATH": "/usr/bin:/bin"}
    )
    assert result.returncode == 0, result.stderr
    return result.stdout, result.stderr


def test_no_released_api_has_the_header() -> None:
    assert not LASTING_CLIENT_KEYS
    assert not any(omits_client(12, version) for version in known_versions(12))


def test_the_header() -> None:
    """Kafka's own sizes: without the instance id, which is a tagged field, it is that of version 2."""
    header = RequestHeader(request_api_key=47, request_api_version=1, correlation_id=10, client_id="")
    assert len(header.encode(version=3)) == 11
    assert header.encode(version=3) == header.encode(version=2)
    header.tags = {INSTANCE_ID: ID.bytes}
    wire = header.encode(version=3)
    assert wire[10:] == bytes((1, 0, 16)) + ID.bytes
    assert RequestHeader.decode(wire, version=3) == header
    assert RequestHeader.decode(wire, version=2) == header
    with in_python():
        assert RequestHeader.decode(wire, version=3) == header
    assert headers.RequestHeader.parse(wire, version=3).tags == header.tags


@pytest.mark.parametrize("python", [False, True])
def test_requests_have_their_connections_client(capture: Path, python: bool) -> None:
    output, errors = _decode(capture, "--format", "json", python=python)
    lines = [json.loads(line) for line in output.splitlines()]
    by_port: dict[int, list[object]] = {}
    for line in lines:
        known = "unknown" if line.get("clientIsUnknown") else line["clientId"]
        by_port.setdefault(int(line["client"].rpartition(":")[2]), []).append(known)
    assert dict(zip(CALLS, by_port.values(), strict=True)) == {
        "named": ["till-3"] * 4,
        "nameless": [""] * 4,
        "begun before": ["unknown"] * 4,
        "older first": ["till-4"] * 3,
        "older": [None] * 2,
    }
    assert "the client of 2 requests is unknown" in errors


def test_a_line_loses_nothing(capture: Path) -> None:
    """It says which client id the header has not."""
    output, _ = _decode(capture, "--format", "json", "--show-secrets")
    requests = [line for line in map(json.loads, output.splitlines()) if line["direction"] == "request"]
    inherited = [line.get("clientIsInherited", False) for line in requests]
    assert inherited == [False, True, True, True, False, False, False, True, False]
    assert requests[0]["headerTags"] == {"0": "AAAAAAAAAAAAAAAAAAAfLg=="}


def test_a_filter_finds_later_requests(capture: Path) -> None:
    output, errors = _decode(capture, "--format", "json", "--client-id", "till-3")
    assert len(output.splitlines()) == 4
    assert "the client of 2 requests is unknown" in errors


def test_text_says_so(capture: Path) -> None:
    output, _ = _decode(capture)
    assert output.count("client unknown") == 2
    assert output.count("till-3") == 2


def test_a_timeline_says_so(capture: Path) -> None:
    _, errors = _decode(capture, "--format", "json", command="timeline")
    assert "the client of 2 requests is unknown" in errors


# --- all requests of a capture ---

_IN_PROCESS = """
import io, json, random, sys
from pathlib import Path
{switch}
from coordwire._speedups import native
from coordwire.capture.conversation import Conversation
from coordwire.capture.jsonlines import line
from coordwire.capture.plain_lines import PlainJsonLines
from coordwire.capture.reader import Capture
from tests.capture.test_frame_walks import check
from tests.capture.test_walks import damaged

data, result = Path(sys.argv[1]).read_bytes(), {{"eager": 0}}
eager = Conversation._request
def counted(*arguments):
    result["eager"] += 1
    return eager(*arguments)
for is_lazy in (False, True):
    Conversation._request = counted if is_lazy else eager
    reader, plain = Capture(io.BytesIO(data), "x", lazy=is_lazy), PlainJsonLines(show_secrets=True)
    lines = [
        plain.line(entry, 6) or line(entry, 6, show_secrets=True) for entry in reader.entries()
    ]
    result["lazily" if is_lazy else "at once"] = lines, reader.waiting.unnamed
Conversation._request = eager
if native is not None:
    for content in (data, data[:24] + data[24:][len(data) // 3 :], damaged(data, random.Random(7))):
        check(content)
        check(content, strict=True)
print(json.dumps(result))
"""


def _lines(path: Path, *, switch: str, python: bool) -> dict[str, Any]:
    """All lines of a capture, read at once and lazily, and how many requests a lazy reader decodes."""
    environment = {"COORDWIRE_IMPL": "python"} if python else {}
    process = [sys.executable, "-c", _IN_PROCESS.format(switch=switch), str(path)]
    result = subprocess.run(
        process, capture_output=True, text=True, check=False, env=environment | {"PATH": "/usr/bin:/bin"}
    )
    assert result.returncode == 0, result.stderr
    lines: dict[str, Any] = json.loads(result.stdout)
    return lines


@pytest.mark.parametrize("all_named", [False, True], ids=["first", "all"])
def test_lines_are_those_of_named_requests(tmp_path: Path, all_named: bool) -> None:
    """Whether only the first request of a connection has the client's ids, or all have."""
    frames = list(islice(traffic("joins"), 1500))
    named, unnamed = tmp_path / "named.pcap", tmp_path / "unnamed.pcap"
    named.write_bytes(as_pcap(frames))
    unnamed.write_bytes(as_pcap(without_clients(iter(frames), all_named=all_named)))
    expected = [json.loads(each) for each in _lines(named, switch="", python=False)["at once"][0]]
    for python in (False, True):
        found = _lines(unnamed, switch=lasting_clients.SWITCH, python=python)
        assert found["lazily"] == found["at once"]
        lines, unnamed_requests = found["at once"]
        connections = {each["connection"] for each in expected}
        assert found["eager"] <= len(connections) + sum(each["api"] == "ApiVersions" for each in expected)
        assert unnamed_requests == 0
        for each, other in zip(expected, map(json.loads, lines), strict=True):
            size = {"size": each["size"], "headerTags": None, "clientIsInherited": None}
            assert other | size == each | size


def test_requests_begun_before_are_counted(tmp_path: Path) -> None:
    """No request of these connections names the client."""
    path = tmp_path / "begun.pcap"
    frames = list(without_clients(islice(traffic("joins"), 1500)))
    path.write_bytes(as_pcap(frame for frame in frames if b"\0\x10" + bytes(16) not in frame[3]))
    for python in (False, True):
        found = _lines(path, switch=lasting_clients.SWITCH, python=python)
        assert found["lazily"] == found["at once"]
        assert found["lazily"][1] > 100
        assert found["eager"] < 20


def test_lines_become_the_same_bytes(capture: Path, tmp_path: Path) -> None:
    lines, _ = _decode(capture, "--format", "json", "--show-secrets")
    path = tmp_path / "lines.jsonl"
    path.write_text(lines)
    encoded, _ = _decode(path, command="encode")
    with capture.open("rb") as file:
        bodies = [entry.body for entry in Capture(file, "x").entries() if isinstance(entry, FrameEntry)]
    assert encoded.split() == [(len(body).to_bytes(4) + body).hex() for body in bodies]
