"""`coordwire decode`: formats, flags, filters, and how it ends."""

from __future__ import annotations

import json
import os
import struct
import sys
from datetime import datetime, timedelta
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pytest

from coordwire.cli.__main__ import main
from coordwire.frames import encode_request, encode_response
from coordwire.messages import (
    AddPartitionsToTxnRequest,
    AddPartitionsToTxnResponse,
    CreateAclsRequest,
    DescribeGroupsRequest,
    FindCoordinatorRequest,
    HeartbeatRequest,
    HeartbeatResponse,
    JoinGroupRequest,
    JoinGroupResponse,
    MetadataRequest,
    ProduceRequest,
)
from coordwire.messages.add_partitions_to_txn import (
    AddPartitionsToTxnPartitionResult,
    AddPartitionsToTxnTopicResult,
)
from coordwire.messages.create_acls import AclCreation

from ..capture import build
from .conftest import Run

KEYS = [
    "capture", "frame", "flow", "time", "direction", "apiKey", "api", "apiVersion", "correlationId",
    "clientId", "size", "body", "error",
]  # fmt: skip
MORE = [
    "packet", "firstPacket", "connection", "client", "broker", "request", "requestPacket", "bodyVersion",
    "latencyMs", "errors", "raw", "redacted", "withheld", "deviations",
]  # fmt: skip
HEARTBEAT = encode_request(
    HeartbeatRequest(group_id="payments", generation_id=3, member_id="m"),
    version=4,
    correlation_id=7,
    client_id="till",
)
ANSWER = encode_response(HeartbeatResponse(error_code=27), version=4, correlation_id=7)


@pytest.fixture
def group(captures: Path) -> Path:
    return captures / "confluent__rdmock__group-range.pcap"


# --- json ---


def test_a_line_has_the_keys_in_their_order(run: Run, group: Path) -> None:
    result = run("decode", "--format", "json", group)
    assert result.status == 1  # the mock broker's ApiVersions response is cut off
    assert result.err == ""
    forms = result.forms
    for form in forms:
        assert [key for key in form if key in KEYS] == KEYS
        assert set(form) <= {*KEYS, *MORE}
    join = next(form for form in forms if form["api"] == "JoinGroup")
    assert join["capture"] == str(group)
    assert join["time"] == "2026-11-21T02:46:20.663935Z"
    assert join["direction"] == "request"
    assert join["body"]["groupId"] == "g-range"
    assert [form["frame"] for form in forms] == list(range(1, len(forms) + 1))
    assert all(line.isascii() for line in result.out.splitlines())


def test_a_refused_frame_holds_what_came_before(run: Run, group: Path) -> None:
    form = run("decode", "--format", "json", group, "--api", "ApiVersions").forms[1]
    assert form["apiVersion"] == 3
    assert form["bodyVersion"] == 0
    assert form["body"] == {"errorCode": 35}  # and no word of the fields that weren't decoded
    assert form["error"]["path"] == "api_keys"
    assert form["error"]["position"] == 6
    assert "claimed" in form["error"]["reason"]
    assert len(form["raw"]) == 2 * form["size"]


def test_half_a_struct_is_cut_where_the_decoder_stopped(run: Run) -> None:
    message = DescribeGroupsRequest(groups=["a", "b"])
    frame = encode_request(message, version=0, correlation_id=1, client_id="c")
    cut = frame[:-1]
    form = run(
        "decode",
        "--format",
        "json",
        "-",
        "--show-secrets",
        "--input",
        "hex",
        stdin=(struct.pack(">i", len(cut) - 4) + cut[4:]).hex().encode(),
    ).forms
    assert form[0]["body"] == {"groups": ["a"]}
    assert form[0]["error"]["path"] == "groups[1]"


def test_request_and_response_pair_in_hex(run: Run) -> None:
    result = run("decode", "--format", "json", "-", stdin=f"{HEARTBEAT.hex()}\n{ANSWER.hex()}\n".encode())
    request, response = result.forms
    assert result.status == 0
    assert request["clientId"] == response["clientId"] == "till"
    assert response["body"] == {"throttleTimeMs": 0, "errorCode": 27}
    assert request["time"] is None


def test_a_response_to_nobody_keeps_its_bytes(run: Run) -> None:
    result = run(
        "decode",
        "--format",
        "json",
        "-",
        "--input",
        "frames",
        stdin=HEARTBEAT + ANSWER[:4] + b"\x7f\0\0\x08" + ANSWER[8:],
    )
    form = result.forms[1]
    assert result.status == 1
    assert form["apiKey"] is None
    assert form["direction"] == "response"
    assert form["raw"] == "7f000008" + ANSWER[8:].hex()


def test_deviations_are_listed_and_strict_refuses_them(run: Run, group: Path) -> None:
    result = run("decode", "--format", "json", group, "--api", "Metadata")
    assert result.status == 0
    strict = run("decode", "--format", "json", group, "--api", "Metadata", "--strict")
    assert strict.status == 1
    refused = [form for form in strict.forms if form["error"]]
    assert refused
    forms = {form["frame"]: form for form in result.forms}
    for form in refused:
        accepted = forms.pop(form["frame"])
        assert accepted["error"] is None
        assert accepted["body"] == form["body"]
        assert accepted["deviations"] == [form["error"]]
    assert not any("deviations" in form for form in forms.values())


def test_a_cut_capture_says_what_is_missing(run: Run, group: Path, tmp_path: Path) -> None:
    cut = tmp_path / "cut.pcap"
    cut.write_bytes(group.read_bytes()[:30_000])
    result = run("decode", "--format", "json", cut)
    assert result.status == 1
    forms = result.forms
    stretch = next(form for form in forms if form["frame"] is None)
    assert stretch["error"]["reason"]
    assert stretch["error"]["path"] == ""
    assert stretch["error"]["position"] > 0
    assert stretch["size"] > 0
    assert sum(form["frame"] is not None for form in forms) > 50


# --- the other formats ---


def test_tree_shows_exchanges(run: Run, group: Path) -> None:
    result = run("decode", group, "--format", "tree")
    assert result.status == 1
    text = result.text
    assert "\x1b" not in text  # no terminal, no colour
    assert "→ JoinGroup v5  id 4" in text
    assert '  group_id: "g-range"' in text
    assert "error_code: 0 NONE" in text
    assert "35 UNSUPPORTED_VERSION" in text
    assert "✗ refused at byte 6, api_keys: " in text
    assert max(map(len, text.splitlines())) <= 130
    block = next(part for part in text.split("\n\n") if "→ Heartbeat" in part)
    assert "← Heartbeat" in block
    assert " ms" in block


def test_tree_names_numbers(run: Run) -> None:
    acl = AclCreation(resource_type=3, resource_name="g", principal="User:a", operation=3, permission_type=3)
    frame = encode_request(CreateAclsRequest(creations=[acl]), version=3, correlation_id=1)
    text = run("decode", "--format", "tree", "-", stdin=frame).text
    assert "resource_type: 3 GROUP" in text
    assert "resource_pattern_type: 3 LITERAL" in text
    assert "permission_type: 3 ALLOW" in text


def test_tree_has_every_frame_once(run: Run, group: Path) -> None:
    text = run("decode", group, "--format", "tree").text
    heads = [line for line in text.splitlines() if line.startswith(("→ ", "← "))]
    assert len(heads) == len(run("decode", "--format", "json", group).forms)


def test_tree_tells_unanswered_requests_and_deviations(run: Run, group: Path) -> None:
    tree = run("decode", "-", "--format", "tree", stdin=HEARTBEAT.hex().encode()).text
    assert "no response shown" in tree
    assert "! deviation at byte" in run("decode", group, "--format", "tree").text
    assert "! deviation: " in run("decode", group, "--format", "hex").text
    for form in ("tree", "hex"):
        text = run("decode", group, "--format", form, "--strict").text
        assert "! deviation" not in text


def test_tree_keeps_what_waits_bounded(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("coordwire.cli.decode.tree.WAITING", 2)
    message = MetadataRequest(topics=None)
    frames = [encode_request(message, version=4, correlation_id=n, client_id="c") for n in range(5)]
    text = run("decode", "-", "--format", "tree", stdin=b"\n".join(f.hex().encode() for f in frames)).text
    assert text.count("no response shown") == 5


def test_tree_escapes_what_moves_the_cursor(run: Run) -> None:
    evil = HeartbeatRequest(group_id="a\x1b[2Jb\u202e", generation_id=1, member_id="m")
    frame = encode_request(evil, version=4, correlation_id=1, client_id="\x1b]0;x\x07")
    for form in ("tree", "hex", "json"):
        out = run("decode", "-", "--format", form, stdin=frame.hex().encode()).text
        assert "\x1b" not in out
        assert "\x07" not in out
        assert "\u202e" not in out


def test_what_is_written_into_a_pipe_is_the_tree_too(run: Run, group: Path) -> None:
    assert run("decode", group).out == run("decode", "--format", "tree", group).out
    assert "→ JoinGroup v5" in run("decode", group).text


@pytest.mark.parametrize("forced", ["", "1"])
def test_every_format_does_without_rich(
    run: Run, group: Path, monkeypatch: pytest.MonkeyPatch, forced: str
) -> None:
    monkeypatch.setenv("FORCE_COLOR", forced)
    monkeypatch.delenv("NO_COLOR", raising=False)
    coloured = bool(forced) and find_spec("rich") is not None
    assert (b"\x1b[" in run("decode", group).out) == coloured
    monkeypatch.setitem(sys.modules, "rich.console", None)
    for name in ("tree", "line", "json", "hex", "tsv", "csv"):
        result = run("decode", group, "--format", name)
        assert (result.status, result.err) == (1, "")
        assert b"\x1b[" not in result.out


def test_hex_covers_every_byte(run: Run) -> None:
    text = run("decode", "-", "--format", "hex", stdin=HEARTBEAT.hex().encode()).text
    assert "group_id = 'payments'" in text
    output = "".join(line[10:33] for line in text.splitlines() if not line.startswith("#"))
    assert bytes.fromhex(output) == HEARTBEAT


# --- deep ---


def test_deep_opens_subscriptions_and_assignments(run: Run, group: Path) -> None:
    plain = run("decode", "--format", "json", group, "--api", "JoinGroup,SyncGroup").forms
    forms = run("decode", "--format", "json", group, "--api", "JoinGroup,SyncGroup", "--deep").forms
    assert [form.pop("embedded", None) and form for form in forms if form["api"] == "SyncGroup"]
    forms = run("decode", "--format", "json", group, "--api", "JoinGroup,SyncGroup", "--deep").forms
    join, sync = (
        next(f for f in forms if f["api"] == api and "embedded" in f) for api in ("JoinGroup", "SyncGroup")
    )
    content = join["embedded"]["protocols[0].metadata"]
    assert content["type"] == "ConsumerProtocolSubscription"
    assert content["version"] == 3
    assert content["value"]["topics"] == ["t-group", "t-group2"]
    assert {part["type"] for part in sync["embedded"].values()} == {"ConsumerProtocolAssignment"}
    assert [form["body"] for form in forms] == [form["body"] for form in plain]


def test_deep_tree(run: Run, group: Path) -> None:
    text = run("decode", group, "--format", "tree", "--deep").text
    assert "bytes, ConsumerProtocolSubscription v3" in text
    assert '  topics: ["t-group", "t-group2"]' in text


# --- filters ---


def test_api_filter(run: Run, group: Path) -> None:
    all_forms = run("decode", "--format", "json", group).forms
    for expected, keys in (("joingroup", {11}), ("11,12", {11, 12}), ("JoinGroup, Metadata", {3, 11})):
        forms = run("decode", "--format", "json", group, "--api", expected).forms
        assert forms == [form for form in all_forms if form["apiKey"] in keys]
    assert len(run("decode", "--format", "json", group, "--api", "11", "--api", "14").forms) > len(
        run("decode", "--format", "json", group, "--api", "11").forms
    )


def test_group_filter_finds_answers_by_their_request(run: Run, group: Path) -> None:
    forms = run("decode", "--format", "json", group, "--group", "g-range").forms
    assert {form["direction"] for form in forms} == {"request", "response"}
    assert {"JoinGroup", "FindCoordinator", "Heartbeat", "SyncGroup"} <= {form["api"] for form in forms}
    assert "Metadata" not in {form["api"] for form in forms}
    assert run("decode", "--format", "json", group, "--group", "no-such").out == b""
    assert run("decode", "--format", "json", group, "--group", "no-such").status == 0


def test_group_filter_looks_into_arrays_and_keys(run: Run) -> None:
    messages = [
        (DescribeGroupsRequest(groups=["a", "b"]), 5),
        (FindCoordinatorRequest(key="b", key_type=0), 3),
        (FindCoordinatorRequest(key="b", key_type=1), 3),
        (FindCoordinatorRequest(coordinator_keys=["a", "b"]), 4),
        (HeartbeatRequest(group_id="a"), 4),
    ]
    frames = [
        encode_request(message, version=version, correlation_id=n, client_id="")
        for n, (message, version) in enumerate(messages)
    ]
    text = "\n".join(frame.hex() for frame in frames).encode()
    forms = run("decode", "--format", "json", "-", "--group", "b", stdin=text).forms
    assert [form["correlationId"] for form in forms] == [0, 1, 3]


def test_member_and_client_filters(run: Run, group: Path) -> None:
    all_forms = run("decode", "--format", "json", group).forms
    join = next(form for form in all_forms if form["api"] == "JoinGroup" and form["direction"] == "response")
    member = join["body"]["memberId"]
    forms = run("decode", "--format", "json", group, "--member", member).forms
    assert join in forms
    assert all(member in json.dumps(form) for form in forms if form["direction"] == "request")
    forms = run("decode", "--format", "json", group, "--client-id", "ck-m1").forms
    assert forms == [form for form in all_forms if form["clientId"] == "ck-m1"]


def test_errors_filter(run: Run, group: Path) -> None:
    for form in run("decode", "--format", "json", group, "--errors").forms:
        codes = json.dumps(form["body"])
        assert form["error"] or '"errorCode": ' in codes.replace('"errorCode": 0', "")
    text = f"{HEARTBEAT.hex()}\n{ANSWER.hex()}".encode()
    assert [
        form["direction"] for form in run("decode", "--format", "json", "-", "--errors", stdin=text).forms
    ] == ["response"]


def test_errors_filter_knows_error_codes_of_every_name(run: Run) -> None:
    refused = AddPartitionsToTxnPartitionResult(partition_error_code=47)
    stored = AddPartitionsToTxnPartitionResult()
    frames = []
    for number, result in enumerate((stored, refused)):
        topic = AddPartitionsToTxnTopicResult(name="t", results_by_partition=[result])
        request = AddPartitionsToTxnRequest(v3_and_below_transactional_id="x")
        answer = AddPartitionsToTxnResponse(results_by_topic_v3_and_below=[topic])
        frames += [
            encode_request(request, version=3, correlation_id=number, client_id=""),
            encode_response(answer, version=3, correlation_id=number),
        ]
    text = "\n".join(frame.hex() for frame in frames).encode()
    (form,) = run("decode", "--format", "json", "-", "--errors", stdin=text).forms
    assert (form["direction"], form["correlationId"]) == ("response", 1)


def test_member_filter_finds_the_leader(run: Run) -> None:
    """What an answer says of another member names that member too."""
    request = encode_request(JoinGroupRequest(group_id="g"), version=5, correlation_id=1, client_id="")
    answer = encode_response(JoinGroupResponse(leader="l", member_id="m"), version=5, correlation_id=1)
    text = f"{request.hex()}\n{answer.hex()}".encode()
    for member in ("l", "m"):
        (form,) = run("decode", "--format", "json", "-", "--member", member, stdin=text).forms
        assert form["direction"] == "response"


@pytest.mark.parametrize(
    ("since", "until"),
    [
        ("2026-11-21T02:46:21Z", "2026-11-21T02:46:22.5Z"),
        ("02:46:21", "02:46:22.5"),
        ("2026-11-21T03:46:21+01:00", "2026-11-21 02:46:22.500"),
        ("1795229181", "1795229182.5"),
    ],
)
def test_time_filters(run: Run, group: Path, since: str, until: str) -> None:
    all_forms = run("decode", "--format", "json", group).forms
    forms = run("decode", "--format", "json", group, "--since", since, "--until", until).forms
    low, high = "2026-11-21T02:46:21.000000Z", "2026-11-21T02:46:22.500000Z"
    assert forms == [form for form in all_forms if low <= form["time"] <= high]
    assert 0 < len(forms) < len(all_forms)


@pytest.mark.parametrize("apart", [True, False])
def test_times_relative_to_the_input(run: Run, group: Path, apart: bool) -> None:
    all_forms = run("decode", "--format", "json", group).forms
    times = [datetime.fromisoformat(form["time"]) for form in all_forms]

    def matches(option: str, value: str) -> list[dict[str, Any]]:
        return run(
            "decode", "--format", "json", group, *([option, value] if apart else [f"{option}={value}"])
        ).forms

    second = timedelta(seconds=1)
    cases = [
        ("--since", "-1s", [time >= times[-1] - second for time in times]),
        ("--until", "-1000ms", [time <= times[-1] - second for time in times]),
        ("--since", "+0.5s", [time >= times[0] + second / 2 for time in times]),
        ("--until", "+1s", [time <= times[0] + second for time in times]),
    ]
    for option, value, expected_value in cases:
        expected = [form for form, is_in in zip(all_forms, expected_value, strict=True) if is_in]
        assert matches(option, value) == expected
        assert 0 < len(expected) < len(all_forms)
    assert matches("--since", "-10min") == all_forms


def test_relative_times_need_an_input_that_can_be_read_twice(run: Run, group: Path) -> None:
    result = run("decode", "--format", "json", "--since", "-1s", "-", stdin=group.read_bytes())
    assert (result.status, result.out) == (2, b"")
    assert "standard input and live captures are read once" in result.err


def test_what_no_filter_can_judge_is_told(run: Run) -> None:
    result = run("decode", "--format", "json", "-", "--since", "2026-01-01", stdin=HEARTBEAT.hex().encode())
    assert result.out == b""
    assert "1 unreadable or undated part" in result.err


@pytest.mark.parametrize(
    "flags",
    [["--api", "JoinGrop"], ["--since", "yesterday"], ["--until", "25:99"], ["--port", "0"], ["--port", "x"],
     ["--input", "nope"], ["--format", "xml"]],
)  # fmt: skip
def test_usage_errors(run: Run, flags: list[str]) -> None:
    result = run("decode", "--format", "json", *flags, "-")
    assert result.status == 2
    assert "usage" in result.err
    assert result.out == b""


# --- inputs ---


def test_pipes(run: Run, group: Path) -> None:
    item, result = (
        run("decode", "--format", "json", group),
        run("decode", "--format", "json", "-", stdin=group.read_bytes()),
    )
    assert result.out.replace(b'"capture":"-"', b"") == item.out.replace(f'"capture":"{group}"'.encode(), b"")


def test_several_files_each_count_alone(run: Run, group: Path, captures: Path) -> None:
    forms = run("decode", "--format", "json", group, captures / "aio__tansu__txn.pcap").forms
    assert [form["frame"] for form in forms if "aio__tansu" in form["capture"]][:2] == [1, 2]


def test_what_cannot_be_opened(run: Run, tmp_path: Path, group: Path) -> None:
    (tmp_path / "empty").touch()
    (tmp_path / "text").write_text("no capture at all\n")
    for name, words in (
        ("none", "No such file"),
        ("", "no capture in 2 files"),
        ("empty", "empty"),
        ("text", "not a readable"),
    ):
        result = run("decode", "--format", "json", tmp_path / name)
        assert result.status == 2
        assert words in result.err
        assert result.err.count("\n") == 1
    result_of_both = run("decode", "--format", "json", tmp_path / "none", group)
    assert result_of_both.status == 2
    assert result_of_both.forms  # the other is read all the same
    assert run("decode", "--format", "json", "-").status == 2
    assert run("decode", "--format", "json", "bad\0name").status == 2


@pytest.mark.skipif(os.geteuid() == 0, reason="root may read everything")
def test_no_permission(run: Run, tmp_path: Path) -> None:
    (tmp_path / "shut").touch(mode=0)
    assert "Permission denied" in run("decode", "--format", "json", tmp_path / "shut").err


def test_refused_permission_is_told(run: Run, monkeypatch: pytest.MonkeyPatch, group: Path) -> None:
    def refuse(*arguments: object, **options: object) -> None:
        raise PermissionError(13, "Permission denied")

    monkeypatch.setattr("builtins.open", refuse)
    result = run("decode", "--format", "json", group)
    assert result.status == 2
    assert "Permission denied" in result.err


def test_a_forced_format(run: Run, group: Path) -> None:
    assert (
        run("decode", "--format", "json", group, "--input", "pcap").forms
        == run("decode", "--format", "json", group).forms
    )
    wrong = run("decode", "--format", "json", "-", "--input", "pcapng", stdin=b"abc" * 50)
    assert (wrong.status, wrong.out) == (2, b"") or wrong.status == 1
    assert "Traceback" not in wrong.err


def test_ports(run: Run, group: Path) -> None:
    all_forms = run("decode", "--format", "json", group).forms
    port = all_forms[0]["flow"].rpartition(":")[2]
    forms = run("decode", "--format", "json", group, "--port", port).forms
    assert 0 < len(forms) < len(all_forms)
    assert all(f":{port}" in form["flow"] for form in forms)


def test_a_capture_without_kafka_says_so(run: Run, tmp_path: Path) -> None:
    web = tmp_path / "web.pcap"
    packets = [
        build.packet(seq=1, flags=build.SYN),
        build.packet(b"GET / HTTP/1.1\r\nHost: x\r\n\r\n", seq=2, flags=build.ACK),
    ]
    web.write_bytes(build.pcap(packets))
    result = run("decode", "--format", "json", web)
    assert result.status == 0
    assert "none of them recognised as Kafka" in result.err
    assert "--port" in result.err


def test_interrupt_is_quiet(run: Run, group: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def interrupt(*arguments: object, **options: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr("coordwire.capture.jsonlines.line", interrupt)
    result = run("decode", "--format", "json", group)
    assert (result.status, result.err) == (130, "")


def test_a_produce_without_acks_does_not_wait(run: Run) -> None:
    frames = [
        encode_request(ProduceRequest(acks=acks, timeout_ms=1), version=3, correlation_id=1, client_id="c")
        for acks in (1, 0)
    ]
    text = run("decode", "-", "--format", "tree", stdin=b"\n".join(f.hex().encode() for f in frames)).text
    assert text.index("acks: 0") < text.index("acks: 1")


def test_version_and_help(run: Run) -> None:
    assert run("--version").text.startswith("coordwire ")
    assert "decode" in run("--help").text
    for name in ("decode", "explain", "timeline", "pipeline"):
        text = run(name, "--help-all" if name == "decode" else "--help").text
        assert "--strict" in text
        assert "--lenient" not in text
    assert run("decode", "--format", "json", "--lenient", "-").status == 2
    assert run().status == 2
    assert main(["nonsense"]) == 2
