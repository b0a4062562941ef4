"""`--format line`, `--fields`, `--packets`, and what `--errors` takes for routine."""

from __future__ import annotations

import csv
import io
import random
from contextlib import redirect_stdout
from pathlib import Path
from uuid import UUID

import pytest

from coordwire._speedups import native
from coordwire.capture.body_text import body_text
from coordwire.capture.entries import FrameEntry
from coordwire.capture.formats.pcap import as_pcap
from coordwire.capture.frame_decoding import UNDECODED
from coordwire.capture.reader import Capture
from coordwire.capture.redaction.entry_secrets import NOTHING, withheld
from coordwire.cli.decode.line import LineFormat, plain_subject
from coordwire.cli.selection.fields import EntryFields
from coordwire.cli.selection.filters import PacketRanges
from coordwire.cli.selection.names import TopicNames
from coordwire.frames import encode_request, encode_response
from coordwire.messages import (
    ApiVersionsRequest,
    ApiVersionsResponse,
    FetchRequest,
    HeartbeatRequest,
    HeartbeatResponse,
    JoinGroupRequest,
    JoinGroupResponse,
    MetadataRequest,
    MetadataResponse,
    SyncGroupRequest,
    SyncGroupResponse,
)
from coordwire.messages.fetch import FetchTopic
from coordwire.messages.metadata import MetadataResponseTopic

from ..capture import build
from ..capture.samples import CAPTURES, traffic, traffic_rows
from ..capture.test_lazy import broken, read
from ..capture.test_walks import damaged
from .conftest import Run


@pytest.fixture
def group(captures: Path) -> Path:
    return captures / "kpy__tansu__group-range.pcap"


def conversation() -> bytes:
    """A capture of a group's beginning, with routine answers and others."""
    exchanges = [
        (ApiVersionsRequest(), 3, ApiVersionsResponse(error_code=35), 0),
        (JoinGroupRequest(group_id="payments"), 9, JoinGroupResponse(error_code=79, member_id="m"), 9),
        (JoinGroupRequest(group_id="payments", member_id="m"), 9, JoinGroupResponse(error_code=16), 9),
        (HeartbeatRequest(group_id="a\tb\x1b[2J", member_id="m"), 4, HeartbeatResponse(error_code=27), 4),
        (SyncGroupRequest(group_id="payments"), 5, SyncGroupResponse(), 5),
    ]
    packets = [build.packet(flags=build.SYN, seq=99)]
    position, back = 100, 500
    for number, (sent_request, version, reply, answered) in enumerate(exchanges):
        request = encode_request(sent_request, version=version, correlation_id=number, client_id='=cmd,"x"')
        body = reply.encode(version=answered)
        response = encode_response(reply, version=answered, correlation_id=number)
        if answered != version:  # a broker that doesn't know the version answers in version 0
            response = (4 + len(body)).to_bytes(4, "big") + number.to_bytes(4, "big") + body
        packets.append(build.packet(request, seq=position, ack=back))
        packets.append(build.packet(response, back=True, seq=back, ack=position + len(request)))
        position, back = position + len(request), back + len(response)
    return build.pcap([(10**9 + index * 5_000_000, item) for index, item in enumerate(packets)])


def test_a_frame_is_a_line_with_all_that_is_looked_for(run: Run) -> None:
    result = run("decode", "-", "--format", "line", stdin=conversation())
    flow = "10.0.0.1:53412 → 10.0.0.2:9092"
    back = flow.replace("→", "←")
    assert [" ".join(line.split()) for line in result.text.splitlines()] == [
        f"00:00:01.005000 2 {flow} ApiVersions v3",
        f"00:00:01.010000 3 {back} ApiVersions v3 5.000 ms UNSUPPORTED_VERSION",
        f"00:00:01.015000 4 {flow} JoinGroup v9 payments",
        f"00:00:01.020000 5 {back} JoinGroup v9 payments 5.000 ms MEMBER_ID_REQUIRED",
        f"00:00:01.025000 6 {flow} JoinGroup v9 payments",
        f"00:00:01.030000 7 {back} JoinGroup v9 payments 5.000 ms NOT_COORDINATOR",
        rf"00:00:01.035000 8 {flow} Heartbeat v4 a\tb\x1b[2J",
        rf"00:00:01.040000 9 {back} Heartbeat v4 a\tb\x1b[2J 5.000 ms REBALANCE_IN_PROGRESS",
        f"00:00:01.045000 10 {flow} SyncGroup v5 payments",
        f"00:00:01.050000 11 {back} SyncGroup v5 payments 5.000 ms",
    ]
    lines = result.text.splitlines()
    assert len({line.index("5.000 ms") for line in lines[7::2]}) == 1


def test_every_entry_is_a_line_and_columns_stay_aligned(run: Run, group: Path, tmp_path: Path) -> None:
    cut = tmp_path / "cut.pcap"
    cut.write_bytes(group.read_bytes()[:20_000])
    for path in (group, cut):
        lines = run("decode", path, "--format", "line").text.splitlines()
        forms = run("decode", path, "--format", "json").forms
        assert len(lines) == len(forms)
        for line, form in zip(lines, forms, strict=True):
            if form["frame"] is None:
                assert "✗" in line
                assert "bytes not read" in line
                continue
            arrow = "→" if form["direction"] == "request" else "←"
            time, packet, client, sign, broker, api, version, *_ = line.split()
            assert (time, int(packet)) == (form["time"][11:-1], form["packet"])
            assert (client, sign, broker) == (form["client"], arrow, form["broker"])
            assert (api, version) == (form["api"], f"v{form['apiVersion']}")
        assert len({line.index(" → ") for line in lines[20:] if " → " in line}) == 1
        assert all(line == line.rstrip() for line in lines)


def test_lines_of_an_input_without_packets_have_frames_numbers(run: Run) -> None:
    data = encode_request(HeartbeatRequest(group_id="g"), version=4, correlation_id=1)
    (line,) = run("decode", "-", "--format", "line", "--input", "frames", stdin=data).text.splitlines()
    assert line.split() == ["#1", "→", "Heartbeat", "v4", "g"]


def test_lines_show_the_date_from_the_second_day_on(run: Run) -> None:
    request = encode_request(HeartbeatRequest(group_id="g"), version=4, correlation_id=1)
    packets = [
        (10**9, build.packet(request, seq=1)),
        (86_400 * 10**9, build.packet(request, seq=1 + len(request))),
    ]
    first, second = run("decode", "-", "--format", "line", stdin=build.pcap(packets)).text.splitlines()
    assert first.startswith("00:00:01.000000 ")
    assert second.startswith("1970-01-02 00:00:00.000000 ")


def test_refusals_and_deviations_end_their_lines(run: Run, captures: Path) -> None:
    path = captures / "confluent__rdmock__group-range.pcap"
    text = run("decode", path, "--format", "line").text
    assert "  UNSUPPORTED_VERSION  ✗ refused at byte 6, api_keys: " in text
    assert "  ! " in text


# --- columns ---


def test_fields_are_columns_between_tabs(run: Run) -> None:
    fields = "frame,packet,api,body.group_id,request.body.groupId,error,latency,latencyMs,token"
    result = run("decode", "-", "--fields", fields, "--packets", "4-5,8-", stdin=conversation())
    assert [line.split("\t") for line in result.text.splitlines()] == [
        ["3", "4", "JoinGroup", "payments", "", "", "", "", "false"],
        ["4", "5", "JoinGroup", "", "payments", "MEMBER_ID_REQUIRED", "5ms", "5.0", "false"],
        ["7", "8", "Heartbeat", r"a\tb\x1b[2J", "", "", "", "", "false"],
        ["8", "9", "Heartbeat", "", r"a\tb\x1b[2J", "REBALANCE_IN_PROGRESS", "5ms", "5.0", "false"],
        ["9", "10", "SyncGroup", "payments", "", "", "", "", "false"],
        ["10", "11", "SyncGroup", "", "payments", "NONE", "5ms", "5.0", "false"],
    ]
    result = run("decode", "-", "--fields", "time", "--packets", "4", stdin=conversation())
    assert result.text == "1970-01-01T00:00:01.015000Z\n"


def test_csv_has_names_and_quotes(run: Run, group: Path) -> None:
    text = run("decode", "-", "--format", "csv", "--fields", "api, clientId", stdin=conversation()).text
    rows = list(csv.reader(io.StringIO(text)))
    assert rows[0] == ["api", "clientId"]
    assert rows[1] == ["ApiVersions", """'=cmd,"x\""""]  # no formula
    full_output = list(csv.DictReader(io.StringIO(run("decode", group, "--format", "csv").text)))
    forms = run("decode", group, "--format", "json").forms
    assert [(row["time"], row["packet"], row["api"]) for row in full_output] == [
        (form["time"], str(form["packet"]), form["api"]) for form in forms
    ]


def test_several_values_are_joined_and_structs_are_json(run: Run, group: Path) -> None:
    filter_flags = ("--filter", 'api == "JoinGroup" and direction == "request"')
    fields = "body.protocols[].name,body.protocols,body.protocols[0]"
    names, full_output, first = (
        run("decode", group, *filter_flags, "--fields", fields).text.splitlines()[0].split("\t")
    )
    assert names == "range,roundrobin"
    assert first.startswith('{"name":"range","metadata":"')
    assert full_output.startswith(first + ',{"name":"roundrobin",')


def test_fields_go_with_columns_only(run: Run, group: Path) -> None:
    for name in ("json", "tree", "line", "hex"):
        result = run("decode", group, "--fields", "api", "--format", name)
        assert result.status == 2
        assert "--fields" in result.err
    result = run("decode", group, "--fields", "api,body.grupId,x y")
    assert (result.status, result.out) == (2, b"")
    assert result.err.splitlines()[1:] == ["  api,body.grupId,x y", "      ^^^^^^^^^^^"]


# --- packets ---


@pytest.mark.parametrize(
    ("text", "overlapping", "apart"),
    [
        ("5", [(5, 5), (1, 9)], [(4, 4), (6, 9)]),
        ("5-7,9", [(5, 5), (7, 8), (9, 9), (1, 5)], [(8, 8), (10, 11), (1, 4)]),
        ("9-,-2", [(1, 1), (2, 3), (9, 9), (10**9, 10**9)], [(3, 8)]),
        (" 3 - 4 , 1-2", [(1, 1), (4, 9)], [(5, 5)]),
        ("1-10,2-3", [(9, 9)], [(11, 11)]),
    ],
)
def test_ranges(text: str, overlapping: list[tuple[int, int]], apart: list[tuple[int, int]]) -> None:
    ranges = PacketRanges(text)
    assert all(ranges.overlap(*item) for item in overlapping)
    assert not any(ranges.overlap(*item) for item in apart)


def test_packets_select_frames_that_lie_in_them(run: Run, group: Path) -> None:
    full_output = run("decode", group, "--format", "json").forms
    results = run("decode", group, "--format", "json", "--packets", "30-60,100").forms
    expected = {*range(30, 61), 100}
    assert results == [
        form for form in full_output if expected & set(range(form["firstPacket"], form["packet"] + 1))
    ]
    assert 10 < len(results) < len(full_output)


@pytest.mark.parametrize("text", ["", "0", "5-3", "a", "1,,2", "-", "1-2-3", "1.5"])
def test_what_is_no_range_is_refused(run: Run, group: Path, text: str) -> None:
    result = run("decode", group, f"--packets={text}")
    assert (result.status, result.out) == (2, b"")
    assert "--packets" in result.err


def test_where_there_are_no_packets_it_is_said(run: Run) -> None:
    data = encode_request(HeartbeatRequest(), version=4, correlation_id=1)
    result = run("decode", "-", "--input", "frames", "--packets", "1", stdin=data)
    assert (result.status, result.out) == (2, b"")
    assert "-: --packets selects from pcap and pcapng" in result.err


# --- errors ---


def test_routine_answers_are_no_errors(run: Run) -> None:
    result = run("decode", "-", "--errors", "--fields", "api,error", stdin=conversation())
    assert result.text.splitlines() == ["JoinGroup\tNOT_COORDINATOR", "Heartbeat\tREBALANCE_IN_PROGRESS"]
    assert "MEMBER_ID_REQUIRED" in run("decode", "--help").text


def test_json_names_the_errors_beside_the_codes(run: Run) -> None:
    forms = run("decode", "-", "--format", "json", stdin=conversation()).forms
    assert [form.get("errors") for form in forms if form["direction"] == "response"] == [
        [{"errorCode": 35, "error": "UNSUPPORTED_VERSION", "path": "error_code"}],
        [{"errorCode": 79, "error": "MEMBER_ID_REQUIRED", "path": "error_code"}],
        [{"errorCode": 16, "error": "NOT_COORDINATOR", "path": "error_code"}],
        [{"errorCode": 27, "error": "REBALANCE_IN_PROGRESS", "path": "error_code"}],
        None,
    ]
    assert not any(form["error"] for form in forms)


def test_the_tree_and_hex_say_the_packets(run: Run) -> None:
    tree = run("decode", "-", stdin=conversation()).text
    assert "── #3 #4  tcp.stream 0  1970-01-01 00:00:01.015000 ─" in tree
    assert "→ JoinGroup v9  id 1" in tree
    assert " B  packet 4\n" in tree
    assert " B  5.000 ms  packet 5\n" in tree
    hexed = run("decode", "-", "--format", "hex", stdin=conversation()).text
    assert "  answers frame 3  packet 5\n" in hexed


@pytest.mark.parametrize("path", CAPTURES, ids=lambda path: path.stem)
def test_a_plain_subject_is_the_one_that_is_looked_for(path: Path) -> None:
    with path.open("rb") as stream:
        for entry in Capture(stream, "x", lazy=True).entries():
            if isinstance(entry, FrameEntry) and withheld(entry) == NOTHING and body_text(entry)[0]:
                subject = plain_subject(entry)
                fields = EntryFields(entry, 6, show_secrets=False)
                assert subject in (None, LineFormat(show_secrets=False, names=TopicNames())._subject(fields))


def written(data: bytes, *, lazy: bool, show_secrets: bool) -> str:
    """All lines of a capture."""
    output = LineFormat(show_secrets=show_secrets, names=TopicNames())
    with redirect_stdout(io.StringIO()) as out:
        for entry in read(data, lazy=lazy):
            output.write(entry, 6)
    return out.getvalue()


def compare(data: bytes, *, show_secrets: bool) -> None:
    """Compare the lines of frames that are decoded where a line needs it with those of decoded ones."""
    decoded = written(data, lazy=False, show_secrets=show_secrets)
    assert written(data, lazy=True, show_secrets=show_secrets) == decoded


@pytest.mark.parametrize("path", CAPTURES, ids=lambda path: path.stem)
def test_lines_are_those_of_decoded_frames(path: Path) -> None:
    data = path.read_bytes()
    compare(data, show_secrets=False)
    compare(damaged(data, random.Random(path.name)), show_secrets=True)


@pytest.mark.skipif(native is None, reason="no native extension, which makes the texts")
def test_frames_of_groups_are_not_decoded_for_their_lines() -> None:
    output = LineFormat(show_secrets=False, names=TopicNames())
    entries = read(traffic(300), lazy=True)
    with redirect_stdout(io.StringIO()):
        for entry in entries:
            output.write(entry, 6)
    assert sum(type(entry) in UNDECODED for entry in entries) > 0.9 * len(entries)


@pytest.mark.parametrize("seed", range(20))
def test_lines_of_frames_that_are_refused(seed: int) -> None:
    chance = random.Random(seed)
    frames = [(n, c, back, broken(chance, data)) for n, c, back, data in traffic_rows(20)]
    compare(as_pcap(frames), show_secrets=bool(seed % 2))


def test_names_of_topics_are_those_of_their_time(run: Run, tmp_path: Path) -> None:
    """Fetches by a topic's id, whose name comes with others' Metadata and changes."""
    topic_id, rows = UUID(int=1), list[tuple[int, int, bool, bytes]]()
    fetch = FetchRequest(topics=[FetchTopic(topic_id=topic_id, partitions=[])])
    for number in range(4):
        rows.append((number, 0, False, encode_request(fetch, version=13, correlation_id=number)))
        topics = [MetadataResponseTopic(topic_id=topic_id, name=f"topic-{number}", partitions=[])]
        rows.append((number, 1, False, encode_request(MetadataRequest(), version=12, correlation_id=number)))
        answer = MetadataResponse(topics=topics)
        rows.append((number, 1, True, encode_response(answer, version=12, correlation_id=number)))
    path = tmp_path / "named.pcap"
    path.write_bytes(as_pcap(rows))
    topics_of = run("decode", "--fields", "topic", "--api", "Fetch", path).text.splitlines()
    assert topics_of == ["AAAAAAAAAAAAAAAAAAAAAQ", "topic-0", "topic-1", "topic-2"]
    lines = run("decode", "--format", "line", "--api", "Fetch", path).text.splitlines()
    assert [name in line for name, line in zip(topics_of, lines, strict=True)] == [True] * 4
    found = run("decode", "--fields", "topic", "--filter", 'topic == "topic-1" and api == "Fetch"', path)
    assert found.text == "topic-1\n"
