"""`coordwire timeline`: formats, filters, several files, logs, and how it ends."""

from __future__ import annotations

import json
import re
import struct
from dataclasses import replace
from pathlib import Path

import pytest

from coordwire import encode_request, encode_response
from coordwire.messages import HeartbeatRequest, HeartbeatResponse
from coordwire.timeline.events import EVENTS
from tests.broker_sample import broker_sample
from tests.cli.conftest import Run
from tests.timeline.logs import commit, plain

GROUP = "kpy__tansu__group-range.pcap"
BASE = ["event", "group", "time", "source", "number", "packet"]
KEYS = {
    "clusterFound": [],
    "producerFenced": ["transactionalId", "clientId", "memberId", "byClientId", "since", "packets"],
    "coordinatorFound": ["nodeId", "host", "port", "moved"],
    "captureHole": ["memberId", "flow", "size"],
    "brokerAway": ["broker", "until", "answeredBy", "connections", "packets"],
    "coordinatorStalled": ["broker", "until", "answeredBy", "requests", "packets"],
    "memberJoined": [
        "kind", "memberId", "clientId", "host", "instanceId", "topics", "protocols", "sessionTimeoutMs",
        "reason", "rejoined", "wasIn", "formerId", "software",
    ],
    "memberLeft": ["memberId", "clientId", "instanceId", "how", "reason", "inferred", "ending"],
    "rebalanceBegan": ["kind", "cause", "memberId", "inferred", "detail", "clientId"],
    "rebalanceEnded": [
        "kind", "outcome", "cause", "memberId", "inferred", "detail", "began", "joined", "ended", "lengthMs",
        "generationBefore", "generation", "protocol", "leader", "members", "lastToJoin", "assignments",
        "moved", "idle", "clientId", "waitingFor", "standby", "lost",
    ],
    "rebalanceCost": ["generation", "partitions", "lagBefore", "lagAfter"],
    "groupConverted": ["kindBefore", "kind", "memberId", "inferred"],
    "groupDeleted": ["clientId", "inferred"],
    "offsetCommitted": [
        "memberId", "clientId", "generation", "topic", "partition", "offset", "leaderEpoch", "metadata",
        "errorCode", "error", "transactionalId", "removed",
    ],
    "topicChanged": ["clientId", "topic", "deed", "partitions"],
    "groupConfigured": ["clientId", "settings"],
    "offsetReset": ["clientId", "topic", "partition", "before", "offset"],
    "lagMeasured": ["topic", "partition", "committed", "endOffset", "lag", "reason"],
    "errorMet": [
        "api", "errorCode", "error", "memberId", "clientId", "topic", "partition", "message",
    ],
    "unanswered": ["api", "memberId", "clientId", "unreadable"],
    "transactionStep": [
        "transactionalId", "step", "producerId", "producerEpoch", "errorCode", "error", "partitions",
    ],
}  # fmt: skip


def test_every_event_has_its_line(run: Run, captures: Path) -> None:
    result = run("timeline", "--format=json", captures / GROUP)
    assert (result.status, result.err) == (0, "")
    values = {form["event"] for form in result.forms}
    assert {"memberJoined", "rebalanceEnded", "offsetCommitted", "lagMeasured", "memberLeft"} <= values
    for form in result.forms:
        assert list(form) == BASE + KEYS[form["event"]]
    assert set(KEYS) == set(EVENTS.values())


def test_deviations_are_counted_and_strict_refuses_them(run: Run) -> None:
    request = HeartbeatRequest(group_id="g", generation_id=1, member_id="m")
    frames = []
    for number in (1, 2):
        sent_request = encode_request(request, version=1, correlation_id=number)
        response = encode_response(HeartbeatResponse(error_code=27), version=1, correlation_id=number)
        frames += [
            sent_request,
            struct.pack(">i", len(response) - 3) + response[4:] + b"?",
        ]  # a stray byte at the end
    data = b"".join(frames)
    result = run("timeline", "--format=json", "--input", "frames", "-", stdin=data)
    errors = [form["error"] for form in result.forms if form["event"] == "errorMet"]
    assert errors == ["REBALANCE_IN_PROGRESS"] * 2
    assert result.status == 0
    assert "2 frames deviate from the protocol" in result.err
    strict = run("timeline", "--format=json", "--strict", "--input", "frames", "-", stdin=data)
    assert strict.status == 1
    assert "2 parts of the input" in strict.err


def test_a_rebalance_in_json(run: Run, captures: Path) -> None:
    forms = run("timeline", "--format=json", captures / GROUP).forms
    steady = next(form for form in forms if form["event"] == "rebalanceEnded" and form["outcome"] == "steady")
    assert steady["group"] == "g-kpy-range"
    assert steady["lengthMs"] > 0
    assert steady["time"] == steady["ended"] > steady["began"]
    assert {part["topic"] for item in steady["assignments"] for part in item["partitions"]} == {
        "t-group",
        "t-group2",
    }
    error = next(form for form in forms if form["event"] == "errorMet")
    assert (error["errorCode"], error["error"]) == (27, "REBALANCE_IN_PROGRESS")


def test_the_story(run: Run, captures: Path) -> None:
    result = run("timeline", "--format", "story", "--events", captures / GROUP)
    assert result.status == 0
    span, head, *lines = result.text.splitlines()
    assert re.fullmatch(r"   .*group-range\.pcap: [-0-9]+ [:.0-9]+ to [:.0-9]+ UTC, [.0-9]+ s", span)
    assert head.startswith("── g-kpy-range · classic group ")
    assert any("3 members joined, 3 generations, 3 commits in" in line for line in lines)
    assert any("is the first member" in line for line in lines)
    assert any("✓ generation" in line and "steady after" in line for line in lines)
    assert any("commits t-group-" in line and "(lag " in line for line in lines)


def test_filters(run: Run, captures: Path) -> None:
    path = captures / GROUP
    every = run("timeline", "--format=json", path).forms
    assert run("timeline", "--format=json", "--group", "another", path).forms == []
    assert run("timeline", "--format=json", "--group", "g-kpy-range", path).forms == every
    middle = every[len(every) // 2]["time"]
    before = run("timeline", "--format=json", "--until", middle, path).forms
    after = run("timeline", "--format=json", "--since", middle, path).forms
    assert len(every) <= len(before) + len(after) < 2 * len(every)
    assert run("timeline", "--format=json", "--since", "-10min", path).forms == every
    assert 0 < len(run("timeline", "--format=json", "--until=+3s", path).forms) < len(every)
    wrong = run("timeline", "--format=json", "--errors", path).forms
    assert {form["event"] for form in wrong} == {"errorMet", "rebalanceEnded"}


def halves(path: Path, folder: Path) -> list[Path]:
    """A classic pcap cut in two files between packets, as a rotating capture leaves them."""
    data = path.read_bytes()
    packets, at = [], 24
    while at < len(data):
        (size,) = struct.unpack_from("<I", data, at + 8)
        packets.append(data[at : at + 16 + size])
        at += 16 + size
    middle = len(packets) // 2
    paths = []
    for number, part in enumerate((packets[:middle], packets[middle:])):
        paths.append(folder / f"part-{number}.pcap")
        paths[-1].write_bytes(data[:24] + b"".join(part))
    return paths


def test_a_rotated_capture_is_one_story_in_any_order_of_the_files(
    run: Run, captures: Path, tmp_path: Path
) -> None:
    first, second = halves(captures / GROUP, tmp_path)
    forms = run("timeline", "--format=json", second, first).forms
    assert forms == run("timeline", "--format=json", first, second).forms
    full_output = run("timeline", "--format=json", captures / GROUP).forms
    times = [form["time"] for form in forms if form["event"] == "memberJoined"]
    assert times == sorted(times)

    def generations(forms: list[dict[str, object]]) -> list[object]:
        return [form["generation"] for form in forms if form["event"] == "rebalanceEnded"]

    assert generations(forms) == generations(full_output)
    assert not any(form["event"] == "unanswered" for form in forms)


def test_standard_input(run: Run, captures: Path) -> None:
    path = captures / GROUP
    piped = run("timeline", "--format=json", "-", stdin=path.read_bytes()).forms
    assert [form | {"source": ""} for form in piped] == [
        form | {"source": ""} for form in run("timeline", "--format=json", path).forms
    ]


@pytest.mark.parametrize("words", [("--jobs", "2"), ("--jobs",)])
def test_one_process_makes_a_timeline(run: Run, captures: Path, words: tuple[str, ...]) -> None:
    result = run("timeline", "--format=json", captures / "kpy__tansu__group-range.pcap", *words)
    assert (result.status, result.out) == (2, b"")
    assert "argument --jobs: one process makes a timeline: leave --jobs out\n" in result.err


def test_a_brokers_logs(run: Run) -> None:
    folder = broker_sample() / "data"
    result = run("timeline", "--format=json", folder)
    assert (result.status, result.err) == (0, "")
    assert {"orders-classic", "orders-new", "shared", "counting"} <= {form["group"] for form in result.forms}
    times = [form["time"] for form in result.forms]
    assert times == sorted(times)
    story = run("timeline", "--format", "story", "--events", "--group", "orders-new", folder).text
    assert "several.segments-0..1" in story


def test_what_is_not_read_is_said(run: Run, captures: Path, tmp_path: Path) -> None:
    segment = tmp_path / "__consumer_offsets-3.log"
    segment.write_bytes(plain(0, commit("g", 1)) + plain(1, commit("g", 2))[:-3])
    result = run("timeline", "--format=json", segment, tmp_path / "nothing.pcap", captures / GROUP)
    assert result.status == 2
    assert "nothing.pcap: No such file" in result.err
    assert "1 part of the input couldn't be read" in result.err
    assert {"g", "g-kpy-range"} == {form["group"] for form in result.forms}
    assert run("timeline", segment).status == 1


def test_what_moves_a_cursor_is_not_shown(run: Run, tmp_path: Path) -> None:
    segment = tmp_path / "__consumer_offsets-3.log"
    segment.write_bytes(plain(0, commit("\x1b[2J", 1, topic="\x1b[31m")))
    story = run("timeline", "--format", "story", segment)
    assert "\x1b" not in story.text
    assert "\\x1b[2J" in story.text
    (form,) = run("timeline", "--format=json", segment).forms
    assert form["group"] == "\x1b[2J"


@pytest.mark.parametrize("name", ["offsets", "timeline"])
def test_help(run: Run, name: str) -> None:
    result = run(name, "--help")
    assert result.status == 0
    assert json.dumps(result.text).isascii()
    assert "--group" in result.text


def test_long_lines_hang_on_a_terminal(run: Run, captures: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """What goes on below stands under the event's words; nothing gets lost."""
    piped = run("timeline", "--format", "story", "--events", captures / GROUP).text
    monkeypatch.setenv("FORCE_COLOR", "1")
    monkeypatch.setenv("COLUMNS", "72")
    coloured = run("timeline", "--format", "story", "--events", captures / GROUP).text
    assert "\x1b[" in coloured
    lines = re.sub(r"\x1b\[[0-9;]*m", "", coloured).splitlines()
    assert max(map(len, lines)) <= 72 < max(map(len, piped.splitlines()))
    assert not [line for line in lines if line.endswith(" ")]
    letters = [re.sub(r"[\s─]", "", text) for text in ("".join(lines), piped)]
    assert letters[0] == letters[1]
    margins = {results.end() for line in lines if (results := re.match(r"   [\d:.]+ +\d+  \S ", line))}
    assert len(margins) == 1
    assert all(re.match(rf"──|Next: |   \S| {{{max(margins)}}}\S", line) for line in lines)


def test_members_that_joined_before_the_times_have_short_names(run: Run, captures: Path) -> None:
    path = captures / GROUP
    joined = [
        form for form in run("timeline", "--format=json", path).forms if form["event"] == "memberJoined"
    ]
    last = run("timeline", "--format", "story", "--events", "--since", joined[-1]["time"], path).text
    assert "#1 (kpy-m1)" in last
    assert joined[0]["memberId"] not in last


def documented() -> dict[str, list[str]]:
    """The fields that the page names, by event, in its order."""
    page = (Path(__file__).parent.parent.parent / "docs" / "reference" / "timeline-json.md").read_text()
    results = {}
    for part in page.split("\n## ")[1:]:
        rows = part.partition("`ending` has:")[0]
        cells = re.findall(r"^\| (`[^|]*) \|", rows, re.MULTILINE)
        results[part.split("\n", 1)[0].strip("`")] = re.findall(r"`(\w+)`", " ".join(cells))
    return results


def test_the_page_has_every_event_and_field(run: Run, captures: Path) -> None:
    pages = documented()
    assert pages.pop("Common fields") == BASE
    (summary,) = run("timeline", "--format=json", "--summary", captures / GROUP).forms
    assert ["event", *pages.pop("summary")] == list(summary)
    assert set(pages) == set(KEYS)
    assert pages == {name: list(KEYS[name]) for name in KEYS}


def test_a_summary_and_the_rebalances_alone(run: Run, captures: Path) -> None:
    every = run("timeline", "--format=json", captures / GROUP).forms
    (summary,) = run("timeline", "--format=json", "--summary", captures / GROUP).forms
    ended = [form for form in every if form["event"] == "rebalanceEnded"]
    assert summary["rebalances"] == len(ended) == sum(item["times"] for item in summary["causes"])
    assert summary["rebalancingMs"] == pytest.approx(sum(form["lengthMs"] for form in ended))
    assert summary["inputFirst"] < summary["first"] <= every[0]["time"]
    alone = run("timeline", "--format=json", "--rebalances", captures / GROUP).forms
    assert alone == [form for form in every if form["event"].startswith("rebalance")]
    *heads, footer = run("timeline", "--summary", "--format", "story", captures / GROUP).text.splitlines()
    assert footer == f"Next: coordwire timeline {captures / GROUP}"
    assert (
        heads
        == run("timeline", "--format", "story", "--events", captures / GROUP).text.splitlines()[: len(heads)]
    )
    assert not any("⟳" in line for line in heads)


STATIC = Path(__file__).parent.parent / "data" / "stories" / "classic-static.pcap.xz"


def test_the_story_says_how_a_silent_member_ended(run: Run) -> None:
    lines = run("timeline", "--format", "story", "--events", STATIC).text.splitlines()
    closed = "it closed its 3 connections at 06:56:21.653 (packets 783, 784, 787)"
    (began,) = (line for line in lines if "⟳" in line and "silent" in line)
    (remaining,) = (line for line in lines if "presumably timed out" in line)
    assert closed in began
    assert closed in remaining
    assert "packet 853 shows that it is out" in remaining


def test_a_rebalance_names_the_client_before_its_member_has_an_id(run: Run) -> None:
    forms = run("timeline", "--format=json", "--rebalances", STATIC).forms
    began = [form for form in forms if form["event"] == "rebalanceBegan" and form["clientId"] is not None]
    assert began
    assert all(form["memberId"] is None for form in began)
    ended = [form for form in forms if form["event"] == "rebalanceEnded"]
    for form in began:
        (end,) = (item for item in ended if item["began"] == form["time"])
        assert (end["memberId"], end["clientId"]) != (None, None)
    story = run("timeline", "--format", "story", "--rebalances", STATIC).text
    assert not any(f"⟳ rebalance: {form['clientId']} " in story for form in began)


def test_a_log_without_a_value_of_kafkas_is_told_of(run: Run, tmp_path: Path) -> None:
    """Its keys are those of commits; else nothing would be written, as of an empty one."""
    segment = tmp_path / "__consumer_offsets-3.log"
    foreign = [replace(commit("g", offset), value=b'{"offset": 1}') for offset in (1, 2)]
    segment.write_bytes(plain(0, *foreign))
    result = run("timeline", segment)
    assert (result.status, result.out) == (1, b"")
    assert "no value of its 2 records of __consumer_offsets is one of Kafka's (" in result.err
    segment.write_bytes(plain(0, commit("g", 1)) + plain(1, replace(commit("g", 2), value=b"\x7f\xff")))
    assert "no value" not in run("timeline", segment).err
