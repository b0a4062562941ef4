"""No silent all-clear: what was looked at where nothing matches, what a capture holds instead of Kafka."""

from __future__ import annotations

import gzip
import shutil
from pathlib import Path
from typing import Any

import pytest

from coordwire.cli.selection.names import Names
from coordwire.cli.selection.survey import MOST_KEPT, Survey
from coordwire.frames import encode_request
from coordwire.messages import HeartbeatRequest, MetadataRequest
from coordwire.records import Record, encode_batch
from tests.timeline.logs import TIME, commit, plain

from ..capture import build
from .conftest import Run

HELLO = b"\x16\x03\x01\x00\x2f\x01\x00\x00\x2b\x03\x03" + bytes(40)
DATA = b"\x17\x03\x03\x00\x20" + b"\xa5" * 32


def heartbeat(group: str, member: str = "m", client: str = "till", number: int = 1) -> bytes:
    request = HeartbeatRequest(group_id=group, generation_id=3, member_id=member)
    return encode_request(request, version=4, correlation_id=number, client_id=client)


@pytest.fixture
def capture(captures: Path) -> Path:
    return captures / "confluent__rdmock__group-range.pcap"


@pytest.fixture
def frames(tmp_path: Path) -> Path:
    path = tmp_path / "frames"
    members = ["till-3-abcdef0123456789", "till-4-abcdef0123456789", "0123456789abcdef", "till"]
    groups = ["payments-eu", "payments", "pay[1]", "orders"]
    data = [
        heartbeat(group, member, f"c{number}", number)
        for number, (group, member) in enumerate(zip(groups, members, strict=True))
    ]
    path.write_bytes(b"".join(data))
    return path


# --- names ---


@pytest.mark.parametrize(
    ("flags", "expected"),
    [
        (["--group", "payments"], ["payments"]),  # not payments-eu: one equals it
        (["--group", "paym"], ["payments-eu", "payments"]),
        (["--group", "payments-"], ["payments-eu"]),
        (["--group", "payments…"], ["payments-eu", "payments"]),
        (["--group", "payments..."], ["payments-eu", "payments"]),
        (["--group", "*s"], ["payments", "orders"]),
        (["--group", "pay[1]"], ["pay[1]"]),
        (["--group", "PAY"], []),
        (["--group", "paym", "--group", "orders"], ["payments-eu", "payments", "orders"]),
        (["--member", "till"], ["orders"]),
        (["--member", "till-"], ["payments-eu", "payments"]),
        (["--member", "till-3-abcdef01…"], ["payments-eu"]),
        (["--member", "c2/01234567…"], ["pay[1]"]),
        (["--member", "?ill-4*"], ["payments"]),
        (["--client-id", "c"], ["payments-eu", "payments", "pay[1]", "orders"]),
        (["--client-id", "c[12]"], ["payments", "pay[1]"]),
    ],
)
def test_exact_values_beginnings_and_globs(
    run: Run, frames: Path, flags: list[str], expected: list[str]
) -> None:
    result = run("decode", "--format", "json", "--input", "frames", *flags, frames)
    assert [form["body"]["groupId"] for form in result.forms] == expected
    assert bool(result.err) is not bool(expected)


def test_what_can_be_read_only_once(run: Run, frames: Path) -> None:
    """A beginning matches until an equal value comes."""
    forms = run(
        "decode",
        "--format",
        "json",
        "--group",
        "payments",
        "-",
        stdin=frames.read_bytes() + heartbeat("payments-us"),
    ).forms
    assert [form["body"]["groupId"] for form in forms] == ["payments-eu", "payments"]


def test_the_second_reading_is_asked_for_once() -> None:
    request: list[tuple[str, ...]] = []

    def find(texts: object) -> list[str]:
        request.append(tuple(texts))  # type: ignore[arg-type]
        return ["b"]

    names = Names(["a", "b", "c*"], find)
    assert not names("x")
    assert names("b")
    assert names("c1")
    assert not request
    assert [names("a1"), names("b1"), names("a2"), names("b")] == [True, False, True, True]
    assert request == [("a",)]
    assert not Names(None)
    assert not Names([""])("x")
    assert Names([""])("")


def test_groups_of_a_timeline_and_of_logs(run: Run, capture: Path, tmp_path: Path) -> None:
    every = run("timeline", "--format=json", capture).forms
    for text in ("g-r", "g-*", "g-range"):
        assert run("timeline", "--format", "json", "--group", text, capture).forms == every
    log = tmp_path / "__consumer_offsets-3.log"
    log.write_bytes(plain(0, commit("g-2", 1), commit("g", 2), commit("h", 3, topic="other")))
    for command in ("timeline", "offsets"):
        assert {form["group"] for form in run(command, "--format", "json", "--group", "g", log).forms} == {
            "g"
        }
        assert {form["group"] for form in run(command, "--format", "json", "--group", "g*", log).forms} == {
            "g",
            "g-2",
        }
    assert [form["group"] for form in run("offsets", "--format=json", "--topic", "oth", log).forms] == ["h"]


# --- nothing matches ---


@pytest.mark.parametrize(
    ("flags", "expected"),
    [
        (["--group", "g-rnage"], "0 of 230 frames matched; groups seen: g-range; did you mean g-range?"),
        (["--member", "nobody"], "members seen: 0x7fc98c"),
        (["--client-id", "x", "--api", "Fetch"], "client ids seen: ck-m1, "),
        (["--api", "DeleteTopics"], "0 of 230 frames matched; APIs seen: ApiVersions, "),
        (["--since", "2030-01-01"], "times seen: 2026-11-21T02:46:20.615677Z to 2026-11-21T02:46:37.729409Z"),
        (["--errors", "--api", "Produce"], "0 of 230 frames matched; APIs seen: "),
    ],
)
def test_decode_says_what_it_looked_at(run: Run, capture: Path, flags: list[str], expected: str) -> None:
    result = run("decode", "--format", "json", capture, *flags)
    assert result.text == ""
    assert expected in result.err
    assert f"{capture}: 0 of 230 frames matched" in result.err


def test_one_line_for_several_files(run: Run, capture: Path, captures: Path) -> None:
    other = captures / "kpy__tansu__group-range.pcap"
    result = run("decode", "--format", "json", "--group", "nobody", capture, other)
    assert result.err.count("matched") == 1
    assert "2 inputs: 0 of " in result.err
    assert "g-range" in result.err
    assert "g-kpy-range" in result.err
    assert "matched" not in run("decode", "--format", "json", "--group", "g-range", capture, other).err


def test_timeline_and_offsets_say_it_too(run: Run, capture: Path, tmp_path: Path) -> None:
    assert "events matched; groups seen: g-range" in run("timeline", "--group", "x", capture).err
    assert "times seen: 2026-11-21T" in run("timeline", "--until", "2020-01-01", capture).err
    log = tmp_path / "__consumer_offsets-3.log"
    log.write_bytes(plain(0, commit("g", 1), commit("h", 2)))
    for flags in ([], ["--latest"]):
        err = run("offsets", "--group", "x", *flags, log).err
        assert "0 of 2 records matched; groups seen: g, h" in err
        assert (
            "0 of 2 records matched; times seen: " in run("offsets", "--until", "1999-01-01", *flags, log).err
        )


def test_a_dump_says_which_offsets_there_are(run: Run, tmp_path: Path) -> None:
    log = tmp_path / "orders-0" / "00000000000000000000.log"
    log.parent.mkdir()
    log.write_bytes(encode_batch([Record(number, timestamp=TIME, value=b"v") for number in range(7)]))
    for command in (("segment", "dump"), ("decode",)):
        result = run(*command, "--since", "2030-01-01", log)
        assert (
            "no record matched in 1 batch; offsets seen: 0 to 6; the latest time is 2023-11-14" in result.err
        )
    assert "no record matched" in run("segment", "dump", "--from-offset", "9", log.parent).err
    assert run("segment", "dump", "--from-offset", "6", log).err == ""


def test_a_capture_without_groups_is_said(run: Run, tmp_path: Path) -> None:
    path = tmp_path / "frames"
    path.write_bytes(encode_request(MetadataRequest(topics=None), version=9, correlation_id=1))
    assert "no group in 1 frames: Metadata (1)" in run("timeline", path).err.replace(",", "")


def test_what_is_seen_is_bounded() -> None:
    survey = Survey("frames", {"groups": lambda item: (item,)}, {"groups": ["x"]})
    for number in range(3 * MOST_KEPT):
        survey.saw(f"g{number}", False)
    assert survey.counts.total == 3 * MOST_KEPT
    assert len(survey.counts.values["groups"]) == MOST_KEPT
    later = survey.take()
    assert not survey.counts.total
    survey.saw("h", False)
    survey.counts.add(later)
    assert survey.counts.total == 3 * MOST_KEPT + 1
    assert [*survey.counts.values["groups"]] == ["h", *(f"g{number}" for number in range(MOST_KEPT - 1))]


# --- what is no Kafka ---


def session(*payloads: bytes, opened: bool = True) -> list[bytes]:
    """A connection's packets, client and broker in turn."""
    packets = []
    if opened:
        packets = [
            build.packet(flags=build.SYN),
            build.packet(back=True, seq=100, ack=1, flags=build.SYN | build.ACK),
        ]
    at = [1, 101]
    for number, payload in enumerate(payloads):
        back = number % 2
        packets.append(build.packet(payload, back=bool(back), seq=at[back], ack=at[1 - back]))
        at[back] += len(payload)
    return packets


@pytest.mark.parametrize("command", ["decode", "timeline"])
@pytest.mark.parametrize(
    "packets",
    [
        session(HELLO, DATA * 2),
        session(b"\x99" * 17 + DATA * 3, DATA * 3, opened=False),
        session(DATA, opened=False),
    ],
    ids=["ClientHello", "mid-record", "mid-stream"],
)
def test_tls_is_named_with_what_to_do(run: Run, tmp_path: Path, command: str, packets: list[bytes]) -> None:
    path = tmp_path / "x.pcap"
    path.write_bytes(build.pcap(packets))
    result = run(command, "--format", "json", path)
    assert (result.status, result.text) == (0, "")
    assert "1 connection encrypted with TLS, to port 9092 (1)" in result.err
    for word in ("SSLKEYLOGFILE", "editcap --inject-secrets", "PLAINTEXT"):
        assert word in result.err


def test_tls_on_a_named_port_is_refused_as_that(run: Run, tmp_path: Path) -> None:
    path = tmp_path / "x.pcap"
    path.write_bytes(build.pcap(session(HELLO, DATA)))
    result = run("decode", "--format", "json", "--port", "9092", path)
    assert result.status == 1
    assert all("encrypted with TLS" in form["error"]["reason"] for form in result.forms)
    assert "SSLKEYLOGFILE" in result.err


def test_tls_beside_kafka_is_noted_on_a_brokers_port_only(run: Run, tmp_path: Path) -> None:
    kafka = session(heartbeat("g"))
    for port, is_noted in ((443, False), (9093, True), (19093, True)):
        ends = {"source": ("10.0.0.9", 5000), "destination": ("10.0.0.8", port)}
        segments = [build.tcp(flags=build.SYN, **ends), build.tcp(HELLO, seq=1, **ends)]  # type: ignore[arg-type]
        tls = [build.ethernet(build.ipv4(segment, *ends.values())) for segment in segments]
        path = tmp_path / "x.pcap"
        path.write_bytes(build.pcap([*kafka, *tls]))
        assert ("TLS" in run("decode", "--format", "json", path).err) is is_noted


@pytest.mark.parametrize(
    ("packets", "expected"),
    [
        ([], "the capture holds no packets"),
        (
            [build.ethernet(build.ipv4(b"\0\x35\x10\0" + bytes(8), protocol=17))] * 3
            + [build.ethernet(bytes(28), b"\x08\x06"), build.packet(flags=build.SYN)],
            "no Kafka in 5 packets: no TCP data, 1 TCP segment without data: UDP port 53 (3), ARP (1)",
        ),
        (session(b"GET / HTTP/1.1\r\n\r\n"), "none of them recognised as Kafka: port 9092, HTTP (1)"),
        (
            session(b"\x99" * 64),
            "1 TCP connection, none of them recognised as Kafka: port 9092 (1); if one is, name",
        ),
    ],
    ids=["empty", "no TCP", "HTTP", "unknown"],
)
def test_what_a_capture_holds_instead(run: Run, tmp_path: Path, packets: list[bytes], expected: str) -> None:
    path = tmp_path / "x.pcap"
    path.write_bytes(build.pcap(packets))
    for command in ("decode", "timeline"):
        result = run(command, "--format", "json", path)
        assert (result.status, result.text) == (0, "")
        assert expected in result.err


def test_a_port_that_nobody_uses(run: Run, capture: Path) -> None:
    err = run("decode", "--format", "json", "--port", "9092", capture).err
    assert "none to port 9092, the one named with --port; there are: port " in err


# --- the right command ---


def test_hints_at_the_right_command(run: Run, capture: Path, tmp_path: Path) -> None:
    log = tmp_path / "orders-0" / "00000000000000000000.log"
    log.parent.mkdir()
    log.write_bytes(encode_batch([Record(0, value=b"v")]))
    squeezed = tmp_path / "x.pcap.gz"
    squeezed.write_bytes(gzip.compress(capture.read_bytes()))
    for command, path, message in (
        (["offsets"], capture, "coordwire timeline"),
        (["offsets"], squeezed, "a capture (pcap)"),
        (["segment", "dump"], capture, "coordwire decode"),
        (["segment", "verify"], capture, "coordwire decode"),
        (["explain"], capture, "coordwire decode --format hex"),
        (["encode"], capture, "decode --format json"),
        (["timeline"], log, "coordwire segment dump"),
        (["decode"], log.parent, "coordwire segment dump"),
        (["timeline"], log.parent.parent / "none", "No such file"),
    ):
        result = run(*command, path)
        assert (result.status, result.text) == (2, ""), command
        assert message in result.err
    result = run("explain", "00000001ff")
    assert "is a file" not in result.err


def test_a_folder_of_captures(run: Run, capture: Path, captures: Path, tmp_path: Path) -> None:
    data = capture.read_bytes()
    ends, at = [24], 24
    while at < len(data):
        at += 16 + int.from_bytes(data[at + 8 : at + 12], "little")
        ends.append(at)
    middle = ends[len(ends) // 2]
    folder = tmp_path / "incident"
    (folder / "other").mkdir(parents=True)
    (folder / "b.pcap").write_bytes(data[:middle])
    (folder / "b.pcap1.gz").write_bytes(gzip.compress(data[:24] + data[middle:]))
    shutil.copy(captures / "kpy__tansu__group-range.pcap", folder / "other" / "anything")
    (folder / "server.log").write_text("[2026-11-21] INFO started\n")
    offsets = folder / "__consumer_offsets-3"
    offsets.mkdir()
    (offsets / "00000000000000000000.log").write_bytes(plain(0, commit("logged", 1)))
    result = run("timeline", "--format=json", folder)
    forms = result.forms
    assert {form["group"] for form in forms} == {"g-range", "g-kpy-range", "logged"}
    full_output = run("timeline", "--format=json", capture).forms
    group_forms = [form for form in forms if form["group"] == "g-range"]
    assert {form["cluster"] for form in group_forms} == {
        "mockCluster155a73496938"
    }  # not the folder's only one
    assert _rebalances(group_forms) == _rebalances(full_output)
    assert forms[0]["group"] == "logged"  # the earliest


def _rebalances(forms: list[dict[str, Any]]) -> list[dict[str, Any]]:
    of_both = {"source": "", "cluster": ""}
    return [form | of_both for form in forms if form["event"] == "rebalanceEnded"]


def test_a_folder_without_any(run: Run, tmp_path: Path) -> None:
    (tmp_path / "notes.txt").write_text("nothing")
    result = run("timeline", "--format=json", tmp_path)
    assert result.status == 2
    assert "no capture and no segment of __consumer_offsets in 1 file" in result.err


# --- logs ---


def test_a_bootstrap_checkpoint_has_no_topic(run: Run, tmp_path: Path) -> None:
    """Its folder is a broker's, whatever its name."""
    folder = tmp_path / "d39-1"
    folder.mkdir()
    for name, topic in (("bootstrap.checkpoint", None), ("00000000000000000000.log", "d39")):
        (folder / name).write_bytes(encode_batch([Record(0, value=b"v")]))
        (form,) = run("segment", "dump", "--format=json", folder / name).forms
        assert form["topic"] == topic


def test_the_latest_of_the_metadata_log_has_no_no_ops(run: Run, tmp_path: Path) -> None:
    log = tmp_path / "__cluster_metadata-0.log"
    no_op = b"\x01\x14\x00\x00"  # frame 1, type 20, version 0, no tags
    log.write_bytes(plain(0, *(Record(timestamp=TIME, key=None, value=no_op) for _ in range(3))))
    assert [form["kind"] for form in run("offsets", "--format=json", log).forms] == ["NoOp"] * 3
    assert run("offsets", "--format=json", "--latest", log).forms == []
