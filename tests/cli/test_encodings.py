"""Whatever the encoding of a terminal or pipe, and whatever names a capture holds, no command fails to write,
and nothing from outside reaches the terminal as a control character."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from coordwire.capture.printable import shown
from coordwire.codec import Message
from coordwire.frames import encode_request, encode_response
from coordwire.messages import (
    ConsumerProtocolAssignment,
    ConsumerProtocolSubscription,
    FindCoordinatorRequest,
    FindCoordinatorResponse,
    JoinGroupRequest,
    JoinGroupResponse,
    LeaveGroupRequest,
    LeaveGroupResponse,
    OffsetCommitKey,
    OffsetCommitRequest,
    OffsetCommitResponse,
    OffsetCommitValue,
    ProduceRequest,
    ProduceResponse,
    SyncGroupRequest,
    SyncGroupResponse,
)
from coordwire.messages.consumer_protocol import ConsumerProtocolAssignmentTopicPartition
from coordwire.messages.join_group import JoinGroupRequestProtocol, JoinGroupResponseMember
from coordwire.messages.leave_group import MemberIdentity, MemberResponse
from coordwire.messages.offset_commit import (
    OffsetCommitRequestPartition,
    OffsetCommitRequestTopic,
    OffsetCommitResponsePartition,
    OffsetCommitResponseTopic,
)
from coordwire.messages.produce import (
    PartitionProduceData,
    PartitionProduceResponse,
    TopicProduceData,
    TopicProduceResponse,
)
from coordwire.messages.sync_group import SyncGroupRequestAssignment
from coordwire.records import Record, encode_batch
from coordwire.tables.report import plots
from coordwire.timeline.story.markup import table

from ..capture import build
from .conftest import Run

EVIL = "\x1b]0;pwn\x07\x1b[31m\r\n\u202e\u2066\x9b31m<script>alert(1)</script>\"'>&\u2028\0\x7f\ue000"
BAD = {
    chr(code)
    for code in (*range(10), *range(11, 32), *range(127, 160), 0x2028, 0x2029, *range(0x202A, 0x202F), 0x2066)
}
"""Control characters but for the end of a line, and what changes the direction of text."""


def exchanges() -> list[tuple[Message, int, Message]]:
    """A member's life; every name in it is hostile."""
    subscription = b"\0\1" + ConsumerProtocolSubscription(topics=[EVIL], user_data=b"\x1b[31m").encode(
        version=1
    )
    owned = ConsumerProtocolAssignmentTopicPartition(topic=EVIL, partitions=[0, 1])
    assignment = b"\0\1" + ConsumerProtocolAssignment(assigned_partitions=[owned]).encode(version=1)
    member = f"{EVIL}m"
    records = encode_batch([Record(key=EVIL.encode(), value=EVIL.encode(), headers=((EVIL, EVIL.encode()),))])
    return [
        (
            FindCoordinatorRequest(key=EVIL), 1,
            FindCoordinatorResponse(error_message=EVIL, node_id=1, host=EVIL, port=9092),
        ),
        (
            JoinGroupRequest(
                group_id=EVIL, session_timeout_ms=1, group_instance_id=EVIL, protocol_type="consumer",
                protocols=[JoinGroupRequestProtocol(name=EVIL, metadata=subscription)], reason=EVIL,
            ), 9,
            JoinGroupResponse(
                generation_id=1, protocol_type="consumer", protocol_name=EVIL, leader=member,
                member_id=member,
                members=[
                    JoinGroupResponseMember(
                        member_id=member, group_instance_id=EVIL, metadata=subscription
                    )
                ],
            ),
        ),
        (
            SyncGroupRequest(
                group_id=EVIL, generation_id=1, member_id=member, group_instance_id=EVIL,
                protocol_type="consumer", protocol_name=EVIL,
                assignments=[SyncGroupRequestAssignment(member_id=member, assignment=assignment)],
            ), 5,
            SyncGroupResponse(protocol_type="consumer", protocol_name=EVIL, assignment=assignment),
        ),
        (
            OffsetCommitRequest(
                group_id=EVIL, generation_id_or_member_epoch=1, member_id=member,
                topics=[
                    OffsetCommitRequestTopic(
                        name=EVIL,
                        partitions=[
                            OffsetCommitRequestPartition(committed_offset=5, committed_metadata=EVIL)
                        ],
                    )
                ],
            ), 8,
            OffsetCommitResponse(
                topics=[
                    OffsetCommitResponseTopic(
                        name=EVIL, partitions=[OffsetCommitResponsePartition(error_code=27)]
                    )
                ]
            ),
        ),
        (
            ProduceRequest(
                transactional_id=EVIL, acks=1,
                topic_data=[
                    TopicProduceData(name=EVIL, partition_data=[PartitionProduceData(records=records)])
                ],
            ), 9,
            ProduceResponse(
                responses=[
                    TopicProduceResponse(
                        name=EVIL,
                        partition_responses=[PartitionProduceResponse(error_code=5, error_message=EVIL)],
                    )
                ]
            ),
        ),
        (
            LeaveGroupRequest(
                group_id=EVIL, members=[MemberIdentity(member_id=member, reason=EVIL)]
            ), 5,
            LeaveGroupResponse(members=[MemberResponse(member_id=member, error_code=25)]),
        ),
    ]  # fmt: skip


def frames() -> list[tuple[bytes, bytes]]:
    return [
        (
            encode_request(request, version=version, correlation_id=number, client_id=EVIL),
            encode_response(response, version=version, correlation_id=number),
        )
        for number, (request, version, response) in enumerate(exchanges(), 70_000)
    ]


def capture() -> bytes:
    """The exchanges in one TCP connection."""
    packets = [build.packet(flags=build.SYN), build.packet(back=True, ack=1, flags=build.SYN | build.ACK)]
    sent, reply = 1, 1
    for request, response in frames():
        packets.append(build.packet(request, seq=sent, ack=reply))
        sent += len(request)
        packets.append(build.packet(response, back=True, seq=reply, ack=sent))
        reply += len(response)
    return build.pcap(packets)


@pytest.fixture(scope="module")
def hostile(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("hostile") / "evil\x1b[31m\u202e<b>.pcap"
    path.write_bytes(capture())
    return path


ALL = """
import json, sys
from coordwire.cli.__main__ import main
for arguments in json.load(sys.stdin):
    sys.stdout.write(chr(10) + "$" + ascii(arguments) + chr(10))
    sys.stdout.write(f"${main(arguments)}" + chr(10))
    sys.stdout.flush()
"""


def command(*lines: tuple[str, ...], **environment: str) -> subprocess.CompletedProcess[bytes]:
    """Command lines, one after the other in a process of their own, with these variables."""
    unset = ("LC_ALL", "LANG", "LC_CTYPE", "PYTHONUTF8", "PYTHONIOENCODING")
    inherited = {name: value for name, value in os.environ.items() if name not in unset}
    return subprocess.run(
        [sys.executable, "-c", ALL],
        input=json.dumps(lines).encode(),
        capture_output=True,
        env={**inherited, "COLUMNS": "100", **environment},
        timeout=300,
        check=False,
    )


def commands(path: Path, log: Path) -> list[tuple[str, ...]]:
    request, _ = frames()[1]
    reading = [
        ("decode", "--format", form, *extra, str(path))
        for form in ("tree", "json", "hex")
        for extra in ((), ("--deep",), ("--strict", "--show-secrets"))
    ]
    return [
        *reading,
        ("explain", request.hex()),
        ("timeline", "--format", "story", str(path)),
        ("timeline", "--format", "json", str(path)),
        ("offsets", "--format", "table", str(log)),
        ("offsets", "--format", "json", str(log)),
        ("segment", "dump", str(log)),
        ("segment", "verify", str(log)),
        ("api",),
        ("api", "JoinGroup"),
        ("api", "JoinGroup", "--diff", "0", "9"),
        ("decode", "--format", "json", f"/nowhere/{EVIL}"),
        ("decode", "--format", "json", "--group", EVIL, str(path)),
        ("decode", "--format", "json", "--api", EVIL, str(path)),
        ("decode", "--format", "json", "--since", EVIL, str(path)),
        ("decode", "--format", "json", str(path), f"--{EVIL}"),
        ("timeline", f"/nowhere/{EVIL}"),
        ("api", EVIL),
        (EVIL,),
    ]


@pytest.fixture(scope="module")
def log(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A segment of `__consumer_offsets` whose commits are of a hostile group."""
    key = OffsetCommitKey(group=EVIL, topic=EVIL, partition=1)
    value = OffsetCommitValue(offset=7, metadata=EVIL)
    record = Record(key=b"\0\1" + key.encode(version=0), value=b"\0\3" + value.encode(version=3))
    path = tmp_path_factory.mktemp("log") / "__consumer_offsets-0" / "00000000000000000000.log"
    path.parent.mkdir()
    path.write_bytes(encode_batch([record], base_offset=0))
    return path


ENCODINGS = {
    "utf-8": {"PYTHONIOENCODING": "utf-8"},
    "ascii": {"PYTHONIOENCODING": "ascii"},
    "latin-1": {"PYTHONIOENCODING": "latin-1"},
    "C": {"LC_ALL": "C", "PYTHONUTF8": "0", "PYTHONCOERCECLOCALE": "0"},
}


@pytest.mark.parametrize("encoding", ENCODINGS)
def test_every_command_writes(hostile: Path, log: Path, encoding: str) -> None:
    c_locale = "utf-8" if sys.implementation.name == "pypy" else "ascii"  # PyPy writes UTF-8 in any locale
    plain = c_locale if encoding == "C" else encoding
    lines = commands(hostile, log)
    ended = command(*lines, **ENCODINGS[encoding])
    assert ended.stderr.count(b"Traceback") == 0, ended.stderr[-1000:]
    assert ended.returncode == 0
    text = ended.stdout.decode(plain)
    statuses = [line[1:] for line in text.splitlines() if line[:1] == "$" and line[1:].isdecimal()]
    assert len(statuses) == len(lines)
    assert set(statuses) <= {"0", "1", "2"}
    for written in (text, ended.stderr.decode(plain)):
        assert not BAD & set(written)


def test_a_tree_in_ascii_has_likenesses(hostile: Path) -> None:
    ended = command(("decode", "--format", "tree", str(hostile)), PYTHONIOENCODING="ascii")
    _, _, first, second, *_ = ended.stdout.decode("ascii").splitlines()
    assert first.startswith("-- #1 #2 ")
    assert second.startswith("-> FindCoordinator v1")


def test_lone_surrogates(run: Run, tmp_path: Path) -> None:
    """A file's name that isn't UTF-8 reaches Python as lone surrogates."""
    for form in ("tree", "hex", "json"):
        result = run("decode", "--format", form, tmp_path / "a\udc9b31m")
        assert result.status == 2
        assert "\\udc9b31m" in result.err


@given(st.text())
def test_shown_is_printable(text: str) -> None:
    assert shown(text).isprintable()
    assert shown(text) == text or not text.isprintable()


def test_markup_of_hostile_names() -> None:
    lines = plots.lines(EVIL, {EVIL: [(1.0, 2.0), (2.0, 3.0)]}, "records", 1.0, 2.0)
    bars = plots.bars(EVIL, {EVIL: (1.0, 2.0)}, ["read", "refused"])
    for part in (lines, bars, plots.empty_plot(EVIL), table([EVIL], [[EVIL]])):
        assert not BAD & set(part)
        assert "\n" not in part
        assert "<script>" not in part
        assert "\\x1b]0;pwn" in part
