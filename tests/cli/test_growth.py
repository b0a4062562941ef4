"""What a command does grows no faster than its input, in every form of output, whatever the input's shape.

Strategy: adversarial inputs of n, 2n and 4n are read by the command in this process, and its work is counted.
"""

from __future__ import annotations

import io
import json
import struct
from collections import deque
from collections.abc import Callable
from pathlib import Path

import pytest

from coordwire import explain
from coordwire.capture.entries import FrameEntry
from coordwire.capture.reader import Capture
from coordwire.capture.redaction.entry_secrets import withheld
from coordwire.cli.encode import encode_line
from coordwire.cli.message_lines import Inside, MessageLines
from coordwire.cli.record_sets import layouts
from coordwire.cli.timeline.story import StoryFormat
from coordwire.cli.watch.group_board import GroupBoard
from coordwire.cli.watch.problems import Problems, ProblemSubject
from coordwire.embedded import open_embedded
from coordwire.errors import EncodeError, Malformed
from coordwire.frames import encode_request, encode_response
from coordwire.jsonform import from_json, to_json
from coordwire.messages import (
    ApiVersionsRequest,
    ConsumerProtocolSubscription,
    CreateTopicsRequest,
    DeleteRecordsRequest,
    DeleteTopicsRequest,
    DescribeGroupsRequest,
    DescribeGroupsResponse,
    HeartbeatRequest,
    JoinGroupRequest,
    JoinGroupResponse,
    OffsetCommitKey,
    OffsetCommitRequest,
    OffsetCommitResponse,
    OffsetCommitValue,
    ProduceRequest,
)
from coordwire.messages.create_topics import CreatableTopic, CreatableTopicConfig
from coordwire.messages.delete_records import DeleteRecordsPartition, DeleteRecordsTopic
from coordwire.messages.describe_groups import DescribedGroup, DescribedGroupMember
from coordwire.messages.join_group import JoinGroupResponseMember
from coordwire.messages.offset_commit import (
    OffsetCommitRequestPartition,
    OffsetCommitRequestTopic,
    OffsetCommitResponsePartition,
    OffsetCommitResponseTopic,
)
from coordwire.messages.produce import PartitionProduceData, TopicProduceData
from coordwire.records import Record, encode_batch
from coordwire.timeline.events import MemberJoined, MemberLeft, OffsetCommitted

from ..growth import assert_linear, work
from .conftest import Run

Make = Callable[[int], bytes]

SIZE = 120


def record_sets(n: int) -> bytes:
    """Partitions with a record set each."""
    records = encode_batch([Record(value=b"")])
    parts = [PartitionProduceData(index=index, records=records) for index in range(n)]
    message = ProduceRequest(acks=1, topic_data=[TopicProduceData(name="t", partition_data=parts)])
    return encode_request(message, version=9, correlation_id=1, client_id="c")


def records(n: int) -> bytes:
    """One record set of many batches."""
    data = encode_batch([Record(value=b"v")]) * n
    topic = TopicProduceData(name="t", partition_data=[PartitionProduceData(index=0, records=data)])
    return encode_request(ProduceRequest(acks=1, topic_data=[topic]), version=9, correlation_id=1)


def members(n: int) -> bytes:
    """Members with a subscription each."""
    metadata = b"\0\1" + ConsumerProtocolSubscription(topics=["t"], user_data=b"").encode(version=1)
    results = [DescribedGroupMember(member_id=f"m{index}", member_metadata=metadata) for index in range(n)]
    group = DescribedGroup(group_id="g", protocol_type="consumer", protocol_data="range", members=results)
    request = encode_request(DescribeGroupsRequest(groups=["g"]), version=5, correlation_id=1)
    return request + encode_response(DescribeGroupsResponse(groups=[group]), version=5, correlation_id=1)


def elements(n: int) -> bytes:
    parts = [DeleteRecordsPartition(partition_index=index, offset=index) for index in range(n)]
    message = DeleteRecordsRequest(topics=[DeleteRecordsTopic(name="t", partitions=parts)])
    return encode_request(message, version=2, correlation_id=1)


def names(n: int) -> bytes:
    return encode_request(DeleteTopicsRequest(topic_names=["t"] * n), version=3, correlation_id=1)


def tags(n: int) -> bytes:
    message = HeartbeatRequest(group_id="g", member_id="m", tags={10_000 + tag: b"" for tag in range(n)})
    header = {20_000 + tag: b"" for tag in range(n)}
    return encode_request(message, version=4, correlation_id=1, header_tags=header)


def configs(n: int) -> bytes:
    """Half of them secret."""
    results = [CreatableTopicConfig(name=("a", "password")[index % 2], value="v") for index in range(n)]
    message = CreateTopicsRequest(topics=[CreatableTopic(name="t", configs=results)])
    return encode_request(message, version=5, correlation_id=1)


def cut(n: int) -> bytes:
    """A frame that is refused at its end."""
    body = elements(n)[4:-1]
    return struct.pack(">i", len(body)) + body


def orphans(n: int) -> bytes:
    """Answers without requests."""
    response = encode_response(JoinGroupResponse(member_id="m"), version=9, correlation_id=0x7F00_0000)
    return encode_request(ApiVersionsRequest(), version=0, correlation_id=1) + response * (n // 20)


SHAPES = [record_sets, records, members, elements, names, tags, configs, cut, orphans]
FORMS = [
    ("--format", "json"),
    ("--format", "hex"),
    ("--format", "json", "--deep"),
    ("--format", "tree", "--deep"),
]
COLUMNS = "error,topic,member,body.protocols[].name,body.topic_data[].name"  # fmt: skip


@pytest.mark.parametrize("flags", FORMS, ids=" ".join)
@pytest.mark.parametrize("make", SHAPES)
def test_decode(run: Run, make: Make, flags: tuple[str, ...]) -> None:
    assert_linear(make, lambda data: run("decode", "--input", "frames", *flags, "-", stdin=data), n=SIZE)


@pytest.mark.parametrize("flags", [("--format", "line"), ("--fields", COLUMNS)], ids=["line", "fields"])
@pytest.mark.parametrize("make", [record_sets, elements])
def test_lines_and_columns(run: Run, make: Make, flags: tuple[str, ...]) -> None:
    assert_linear(make, lambda data: run("decode", "--input", "frames", *flags, "-", stdin=data), n=SIZE)


@pytest.mark.parametrize("make", [record_sets, members])
def test_what_is_embedded_is_found_at_once(make: Make) -> None:
    """Not by looking through all that is, for each element."""

    def laid_out(data: bytes) -> None:
        entry = list(Capture(io.BytesIO(data), "x", input="frames").entries())[-1]
        assert isinstance(entry, FrameEntry)
        assert entry.message is not None
        assert entry.body_version is not None
        content: dict[str, Inside] = {**open_embedded(entry.message)}
        content |= layouts(entry.message, show_secrets=False)
        deque(MessageLines(entry.message, entry.body_version, set(), 100, None, content).lines(), 0)

    assert_linear(make, laid_out, n=600)


FILTER = (
    'body.members[].memberId =~ "(x+x+)+y" or topic contains "no" or error in (1..9, 70..80) or '
    'body.topicData[].partitionData[].index > 100000 or body.protocols[].name == "none" or member == "no"'
)


@pytest.mark.parametrize(
    "flags",
    [
        ("--group", "x"),
        ("--member", "m1"),
        ("--api", "Produce,JoinGroup"),
        ("--errors",),
        ("--filter", FILTER),
    ],
)
@pytest.mark.parametrize("make", [members, record_sets, elements])
def test_filters(run: Run, make: Make, flags: tuple[str, ...]) -> None:
    assert_linear(make, lambda data: run("decode", "--input", "frames", *flags, "-", stdin=data), n=SIZE)


@pytest.mark.parametrize("make", [record_sets, elements, tags, cut])
def test_explain(run: Run, make: Make) -> None:
    assert_linear(make, lambda data: run("explain", "-", stdin=data), n=SIZE)
    assert_linear(make, explain, n=SIZE)


@pytest.mark.parametrize("make", [record_sets, elements, names, tags])
def test_encode(run: Run, make: Make) -> None:
    def lines(n: int) -> bytes:
        return run("decode", "--format", "json", "--input", "frames", "-", stdin=make(n)).out

    assert_linear(lines, lambda data: run("encode", "-", stdin=data), n=SIZE)


BODY = '{"direction":"request","apiKey":12,"apiVersion":4,"correlationId":%s,"clientId":null,"body":%s}'
MEMBERS = (
    '{"direction":"request","apiKey":13,"apiVersion":4,"correlationId":1,"clientId":null,'
    '"body":{"groupId":"g","members":[%s]}}'
)
MEMBER = '{"memberId":"m","groupInstanceId":null},'
LINES: list[Callable[[int], str]] = [
    lambda n: BODY % ("9" * n, "{}"),
    lambda n: BODY % ("1." + "9" * n, "{}"),
    lambda n: BODY % ("1", "[" * n + "]" * n),
    lambda n: BODY % ("1", '{"a":' * n + "1" + "}" * n),
    lambda n: BODY % ("1", "{" + ",".join(['"a":1'] * n) + "}"),
    lambda n: BODY % ("1", "{" + ",".join(f'"{index}":1' for index in range(n)) + "}"),
    lambda n: BODY % ("1", '{"' + "a" * n + '":1}'),
    lambda n: BODY % ("1", '{"_tags":{' + ",".join(f'"{index}":""' for index in range(n)) + "}}"),
    lambda n: BODY % ("1", f'{{"groupId":"{"g" * n}"}}'),
    lambda n: json.dumps({"redacted": ["x"] * n}),
    lambda n: json.dumps({"raw": "0" * (2 * n + 1)}),
    lambda n: "[" * n,
    lambda n: '"' + "\\ud800" * n,
    lambda n: MEMBERS % (MEMBER * n + "null"),
    lambda n: MEMBERS % (MEMBER * n + '{"memberId":"m","groupInstanceId":7}'),
    lambda n: MEMBERS % ('{"memberId":"m","extra":1},' * n + "{}"),
    lambda n: MEMBERS % ('{"groupInstanceId":null},' * n + "{}"),
    lambda n: MEMBERS % (MEMBER * n + '{"groupInstanceId":null,"memberId":"' + "\\ud800" * n + '"}'),
]


@pytest.mark.parametrize("line", LINES)
def test_lines_of_any_shape_are_refused(run: Run, line: Callable[[int], str]) -> None:
    """By an error of ours, in a message of bounded length, in time that is linear."""
    for size in (10, 990, 1000, 20_000):
        with pytest.raises(EncodeError):
            encode_line(line(size).encode())
    result = run("encode", "-", stdin=line(20_000).encode())
    assert result.status == 1
    assert len(result.err) < 700
    assert_linear(lambda n: line(n).encode(), lambda data: run("encode", "-", stdin=data), n=4000, slack=1.2)


@pytest.mark.parametrize("depth", range(900, 1010, 5))
def test_nesting_at_the_edge_of_recursion(depth: int) -> None:
    deep = "[" * depth + "]" * depth
    for name in ("dialect", "api", "redacted", "raw", "direction", "clientId", "headerTags", "error", "body"):
        with pytest.raises(EncodeError):
            encode_line(f'{{"direction":"request","dialect":"x","api":"x","{name}":{deep}}}'.encode())


def test_a_number_of_many_digits_is_ours_to_refuse() -> None:
    with pytest.raises(EncodeError, match="a number of 5000 digits"):
        encode_line((BODY % ("9" * 5000, "{}")).encode())


def test_a_key_that_is_there_twice_is_refused() -> None:
    with pytest.raises(EncodeError, match='the key "apiKey" occurs twice'):
        encode_line(b'{"apiKey":1,"apiKey":1}')


def test_json_forms_of_messages() -> None:
    message = HeartbeatRequest(group_id="g", member_id="m")

    def tagged(n: int) -> HeartbeatRequest:
        return HeartbeatRequest(group_id="g", member_id="m", tags={100 + tag: b"x" for tag in range(n)})

    def there_and_back(request: HeartbeatRequest) -> None:
        assert from_json(HeartbeatRequest, to_json(request, version=4), version=4) == request

    assert_linear(tagged, there_and_back, n=2000)
    form = to_json(message, version=4)

    def long_name(n: int) -> dict[str, object]:
        return {"x" * n: 1}

    def many_names(n: int) -> dict[str, object]:
        return {str(index): 1 for index in range(n)}

    def refuse(unknown: dict[str, object]) -> None:
        with pytest.raises(EncodeError):
            from_json(HeartbeatRequest, form | unknown, version=4)

    assert_linear(long_name, refuse, n=2000)
    assert_linear(many_names, refuse, n=2000)


def frame_entry(body: bytes) -> FrameEntry:
    """An answer without its request."""
    refusal = Malformed("no request of this correlation id was seen", 0, "correlation_id")
    return FrameEntry(
        capture="", number=1, flow="", time_ns=None, direction="response", body=body, error=refusal
    )


def test_what_no_message_accounts_for_is_judged_in_linear_time() -> None:
    def nearly(n: int) -> FrameEntry:
        metadata = [JoinGroupResponseMember(member_id="m", metadata=b"m")] * n
        answer = encode_response(JoinGroupResponse(members=metadata), version=5, correlation_id=1)[4:] + b"\0"
        return frame_entry(answer)

    assert_linear(nearly, withheld, n=1000)
    assert_linear(lambda n: frame_entry(bytes(n)), withheld, n=1000)
    answer = frame_entry(struct.pack(">i", 7))
    assert work(lambda: withheld(answer)) < 100  # and so is each of many small ones


def test_refused_frames_are_judged_at_the_cost_of_a_decode() -> None:
    """Frames that only a strict reading refuses are read once more."""

    def trailing(n: int) -> FrameEntry:
        request = DescribeGroupsRequest(groups=["g"] * n)
        body = encode_request(request, version=0, correlation_id=1)[4:] + b"\7"
        entries = Capture(io.BytesIO(struct.pack(">i", len(body)) + body), "", input="frames", strict=True)
        (entry,) = entries.entries()
        assert isinstance(entry, FrameEntry)
        assert entry.error is not None
        return entry

    assert_linear(trailing, withheld, n=1000)


def commits(n: int) -> bytes:
    parts = [
        OffsetCommitRequestPartition(partition_index=index, committed_offset=index) for index in range(n)
    ]
    process = [OffsetCommitResponsePartition(partition_index=index) for index in range(n)]
    request = OffsetCommitRequest(group_id="g", topics=[OffsetCommitRequestTopic(name="t", partitions=parts)])
    response = OffsetCommitResponse(topics=[OffsetCommitResponseTopic(name="t", partitions=process)])
    return encode_request(request, version=8, correlation_id=1) + encode_response(
        response, version=8, correlation_id=1
    )


def joins(n: int) -> bytes:
    return b"".join(
        encode_request(
            JoinGroupRequest(group_id=f"g{number % 7}", protocol_type="consumer"),
            version=5,
            correlation_id=number,
        )
        + encode_response(
            JoinGroupResponse(member_id=f"m{number}", generation_id=number), version=5, correlation_id=number
        )
        for number in range(n)
    )


@pytest.mark.parametrize("form", ["json", "story"])
@pytest.mark.parametrize("make", [commits, joins, elements])
def test_timeline(run: Run, make: Make, form: str) -> None:
    assert_linear(
        make, lambda data: run("timeline", "--input", "frames", "--format", form, "-", stdin=data), n=SIZE
    )


@pytest.mark.parametrize("flags", [("--format", "json"), ("--format", "table"), ("--latest",)])
def test_offsets(run: Run, tmp_path: Path, flags: tuple[str, ...]) -> None:
    path = tmp_path / "__consumer_offsets-0" / "00000000000000000000.log"
    path.parent.mkdir()

    def write(n: int) -> int:
        results = [
            Record(
                offset=index,
                key=b"\0\1"
                + OffsetCommitKey(group=f"g{index}", topic="t", partition=index).encode(version=0),
                value=b"\0\3" + OffsetCommitValue(offset=index).encode(version=3),
            )
            for index in range(n)
        ]
        path.write_bytes(encode_batch(results, base_offset=0))
        return n

    assert_linear(write, lambda _: run("offsets", *flags, path), n=SIZE)


# --- watch ---


def committed(group: str, *, removed: bool = False) -> OffsetCommitted:
    return OffsetCommitted(
        group=group, time_ns=1, source="", number=1, member_id=None, client_id=None, generation=-1,
        topic="t", partition=0, offset=3, leader_epoch=-1, metadata=None, removed=removed,
    )  # fmt: skip


def board_of(count: int) -> GroupBoard:
    board = GroupBoard()
    for number in range(count):
        board.add(committed(f"g{number}"))
        board.add(committed(f"gone-{number}"))
        board.add(committed(f"gone-{number}", removed=True))
    return board


def test_a_round_is_linear_in_groups() -> None:
    def look(board: GroupBoard) -> None:
        board.measure(dict.fromkeys(board.partitions(), 9))
        board.unread()
        list(board.lags())
        list(board.views())
        board.metrics()

    assert_linear(board_of, look, n=300)


def test_members_are_looked_at_once_when_they_change() -> None:
    """A refresh after which nothing has changed costs the same, however many members there are."""
    unchanged, changed = [], []
    for members in (1_000, 4_000):
        board = GroupBoard()
        for number in range(members):
            board.add(joined(f"m{number}", number))
        assert len(next(board.views()).members) == members
        board.add(committed("g"))
        unchanged.append(work(lambda: list(board.views())))  # noqa: B023 -- called at once
        board.add(left("m0", members))
        changed.append(work(lambda: list(board.views())))  # noqa: B023
        assert len(next(board.views()).members) == members - 1
    assert unchanged[0] == unchanged[1] < 200
    assert changed[0] > 1_000
    assert changed[1] < 4.4 * changed[0]


def test_a_live_story_is_linear_in_events(capsys: pytest.CaptureFixture[str]) -> None:
    """However few events are written at a time: who is in is not found again with each."""

    def write(count: int) -> None:
        story = StoryFormat()
        for number in range(count):
            for event in (joined(f"m{number}", 2 * number), left(f"m{number}", 2 * number + 1)):
                story.write(event)
                story.write_events("g", [event])
        assert capsys.readouterr().out.count(f"#{count} (c)") == 2

    assert_linear(lambda n: n, write, n=200)


def joined(member_id: str, time_ns: int) -> MemberJoined:
    return MemberJoined(
        group="g", time_ns=time_ns, source="c", number=time_ns, kind="classic", member_id=member_id,
        client_id="c", host=None,
    )  # fmt: skip


def left(member_id: str, time_ns: int) -> MemberLeft:
    return MemberLeft(
        group="g", time_ns=time_ns, source="c", number=time_ns, member_id=member_id, client_id="c",
        how="session_timeout", inferred=False,
    )  # fmt: skip


def test_problems_are_linear() -> None:
    def look(count: int) -> None:
        problems = Problems()
        subjects = [ProblemSubject("end", "orders", number) for number in range(count)]
        for subject in subjects:
            problems.begin(subject, "no leader")
        GroupBoard().metrics(problems)
        problems.end_others("end", set(subjects[::2]))
        problems.news()

    assert_linear(lambda n: n, look, n=1_000)
