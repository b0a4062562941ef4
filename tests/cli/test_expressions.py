"""Filter expressions: what they mean, what they refuse and where, and that they do not see secrets."""

from __future__ import annotations

import argparse
import random
import re
import sys
from collections.abc import Iterator
from io import BytesIO
from pathlib import Path
from typing import Any
from uuid import UUID

import pytest

from coordwire.capture.entries import FrameEntry
from coordwire.capture.reader import Capture
from coordwire.cli.selection import filters
from coordwire.cli.selection.conditions import condition, precondition
from coordwire.cli.selection.expressions import DEEPEST, LONGEST, FilterError, parse
from coordwire.cli.selection.fields import FIELDS, EntryFields, _of_body, _walk
from coordwire.cli.selection.names import TopicNames
from coordwire.codec.walk import fields_of
from coordwire.frames import encode_request, encode_response
from coordwire.messages import (
    ApiVersionsRequest,
    DescribeConfigsRequest,
    DescribeConfigsResponse,
    FetchRequest,
    HeartbeatRequest,
    HeartbeatResponse,
    JoinGroupRequest,
    JoinGroupResponse,
    MetadataRequest,
    MetadataResponse,
    OffsetCommitRequest,
    OffsetCommitResponse,
    SaslAuthenticateRequest,
)
from coordwire.messages.describe_configs import DescribeConfigsResourceResult, DescribeConfigsResult
from coordwire.messages.fetch import FetchTopic
from coordwire.messages.join_group import JoinGroupRequestProtocol
from coordwire.messages.metadata import MetadataResponseTopic
from coordwire.messages.offset_commit import (
    OffsetCommitRequestPartition,
    OffsetCommitRequestTopic,
    OffsetCommitResponsePartition,
    OffsetCommitResponseTopic,
)
from coordwire.patterns import RegularExpression

from ..capture.samples import CAPTURES
from ..capture.test_lazy import read
from ..capture.test_walks import damaged
from ..growth import work
from .conftest import Run

TOPIC_ID = UUID(int=77)


def commit(topic: str, *partitions: int) -> OffsetCommitRequestTopic:
    return OffsetCommitRequestTopic(
        name=topic, partitions=[OffsetCommitRequestPartition(partition_index=item) for item in partitions]
    )


def committed(topic: str, *codes: int) -> OffsetCommitResponseTopic:
    return OffsetCommitResponseTopic(
        name=topic,
        partitions=[
            OffsetCommitResponsePartition(partition_index=index, error_code=code)
            for index, code in enumerate(codes)
        ],
    )


PROTOCOLS = [JoinGroupRequestProtocol(name="range"), JoinGroupRequestProtocol(name="sticky")]
FRAMES = b"".join([
    encode_request(  # 1
        JoinGroupRequest(group_id="payments", member_id="", protocols=PROTOCOLS, reason=None),
        version=9, correlation_id=1, client_id="till-1",
    ),
    encode_response(JoinGroupResponse(error_code=79, member_id="m-1"), version=9, correlation_id=1),  # 2
    encode_request(  # 3
        HeartbeatRequest(group_id="payments", generation_id=3, member_id="m-1", group_instance_id="till"),
        version=4, correlation_id=2, client_id="till-1",
    ),
    encode_response(HeartbeatResponse(error_code=27), version=4, correlation_id=2),  # 4
    encode_request(  # 5
        OffsetCommitRequest(group_id="refunds", topics=[commit("orders", 0, 1), commit("returns", 7)]),
        version=8, correlation_id=3, client_id="Übersee",
    ),
    encode_response(  # 6
        OffsetCommitResponse(topics=[committed("orders", 0, 22), committed("returns", 22)]),
        version=8, correlation_id=3,
    ),
    encode_request(MetadataRequest(topics=None), version=12, correlation_id=4),  # 7, without a client id
    encode_response(  # 8
        MetadataResponse(topics=[MetadataResponseTopic(name="orders", topic_id=TOPIC_ID)]),
        version=12, correlation_id=4,
    ),
    encode_request(  # 9
        FetchRequest(topics=[FetchTopic(topic_id=TOPIC_ID)]), version=13, correlation_id=5, client_id="till-2"
    ),
])  # fmt: skip


def matched(run: Run, expression: str, data: bytes = FRAMES) -> list[int]:
    """The numbers of the frames that meet an expression."""
    result = run("decode", "-", "--input", "frames", "--format", "json", "--filter", expression, stdin=data)
    assert result.status == 0, result.err
    return [form["frame"] for form in result.forms]


def refused(run: Run, expression: str) -> tuple[str, str]:
    """What is said of an expression, and what of it is marked."""
    result = run("decode", "-", "--filter", expression, stdin=FRAMES)
    assert (result.status, result.out) == (2, b"")
    reason, line, carets = result.err.splitlines()
    assert line == f"  {expression}"
    start = carets.index("^")
    assert set(carets[start:]) == {"^"}
    return reason.removeprefix("coordwire: --filter: "), line[start : len(carets)]


@pytest.mark.parametrize(
    ("expression", "frames"),
    [
        ('api == "JoinGroup"', [1, 2]),
        ('api == "joingroup"', [1, 2]),
        ('api != "JoinGroup" and direction == "request"', [3, 5, 7, 9]),
        ("apiKey == 12", [3, 4]),
        ("apiKey >= 11 and apiKey < 12 or frame == 5", [1, 2, 5]),
        ("apiKey == 11 and (frame == 5 or frame == 2)", [2]),
        ("not apiKey == 11 and frame < 4", [3]),
        ("!(apiKey == 11) && frame < 4 || frame == 9", [3, 9]),
        ("frame in (1, 3, 5..7)", [1, 3, 5, 6, 7]),
        ("frame in {1, 3}", [1, 3]),
        ("frame not in [1, 2..8]", [9]),
        ("frame eq 1 or frame gt 8", [1, 9]),
        ("size > 0.1kB", [5]),
        ("size > 0.06KiB", [5, 9]),
        # error codes, by number and by name
        ("error != 0", [2, 4, 6]),
        ("error == 0", [8]),
        ("error == 27", [4]),
        ('error == "REBALANCE_IN_PROGRESS"', [4]),
        ('error in ("MEMBER_ID_REQUIRED", 22)', [2, 6]),
        ('error =~ "^REBAL"', [4]),
        ("error", [2, 4, 6, 8]),
        # the body, with and without body. and in both spellings
        ('body.groupId == "payments"', [1, 3]),
        ('body.group_id == "payments"', [1, 3]),
        ('groupId == "payments"', [1, 3]),
        ("generationId > 2", [3]),
        ("body.errorCode == 27", [4]),
        ('body.errorCode == "REBALANCE_IN_PROGRESS"', [4]),
        ('body.errorCode != "NONE"', [2, 4]),
        # arrays: any value
        ('body.protocols[].name == "sticky"', [1]),
        ('body.protocols.name == "sticky"', [1]),
        ('body.protocols[0].name == "sticky"', []),
        ('body.protocols[1].name == "sticky"', [1]),
        ('body.protocols[].name != "sticky"', [1]),
        ('not body.protocols[].name == "sticky" and api == "JoinGroup"', [2]),
        ("body.topics[].partitions[].partitionIndex == 7", [5]),
        ("body.topics[].partitions[].errorCode == 22", [6]),
        ('body.topics[].partitions[].errorCode =~ "ILLEGAL|STALE"', [6]),
        # groups, members and topics, of the request too
        ('group == "payments"', [1, 2, 3, 4]),
        ('member == "m-1"', [2, 3, 4]),
        ('topic == "returns"', [5, 6]),
        ('topic == "orders"', [5, 6, 8, 9]),  # 9 has the id alone
        ('request.body.groupId == "payments"', [2, 4]),
        ('request.api == "Heartbeat"', [4]),
        ("request == 5", [6]),
        ("request", [2, 4, 6, 8]),
        # texts
        ('clientId contains "till"', [1, 2, 3, 4, 9]),
        ('clientId =~ "till-\\d$"', [1, 2, 3, 4, 9]),
        ("clientId matches '(?i)^ÜBER'", [5, 6]),
        ('clientId == "Übersee"', [5, 6]),
        ('clientId < "till-2"', [1, 2, 3, 4]),
        # null, and what isn't there
        ("clientId == null", [7, 8]),
        ("clientId != null", [1, 2, 3, 4, 5, 6, 9]),
        ("clientId", [1, 2, 3, 4, 5, 6, 9]),
        ("not clientId", [7, 8]),
        ('clientId != "till-1"', [5, 6, 9]),
        ("body.groupInstanceId", [3]),
        ('body.groupInstanceId != "x"', [3]),
        ('api == "Heartbeat" and body.groupInstanceId == null', [4]),
        ("token", []),
        ("token == false", [1, 2, 3, 4, 5, 6, 7, 8, 9]),
        ("latency > 1ms", []),
        ("latency == null and packet == null and time == null", [1, 2, 3, 4, 5, 6, 7, 8, 9]),
        # headers
        ("header.requestApiKey == 12", [3]),
        ('header.client_id == "till-2"', [9]),
        ("header.correlationId == 3", [5, 6]),
        ("body.allowAutoTopicCreation == true", [7]),
    ],
)
def test_what_an_expression_means(run: Run, expression: str, frames: list[int]) -> None:
    assert matched(run, expression) == frames


def test_times_and_durations(run: Run, captures: Path) -> None:
    path = captures / "confluent__rdmock__group-range.pcap"
    full_output = run("decode", path, "--format", "json").forms

    def frames(expression: str) -> list[int]:
        return [
            form["frame"] for form in run("decode", path, "--format", "json", "--filter", expression).forms
        ]

    slow = [form["frame"] for form in full_output if form.get("latencyMs", 0) > 100]
    assert frames("latency > 100ms") == frames("latency > 0.1s") == frames("latency > 100000us") == slow
    assert slow
    assert frames("latencyMs > 100") == slow
    early = [form["frame"] for form in full_output if form["time"] and form["time"] < "2026-11-21T02:46:21"]
    assert frames('time < "2026-11-21T02:46:21"') == frames('time < "02:46:21"') == early
    assert 0 < len(early) < len(full_output)
    refused = [form["frame"] for form in full_output if form["error"]]
    assert frames("refused") == refused
    claimed = [
        form["frame"] for form in full_output if form["error"] and "claimed" in form["error"]["reason"]
    ]
    assert frames('error.reason contains "claimed"') == claimed
    assert 0 < len(claimed) < len(refused)
    assert frames("deviations.reason and not refused") == [
        f["frame"] for f in full_output if "deviations" in f
    ]


def test_unreadable_ranges_are_judged_by_what_is_known(run: Run, captures: Path, tmp_path: Path) -> None:
    cut = tmp_path / "cut.pcap"
    cut.write_bytes((captures / "kpy__tansu__group-range.pcap").read_bytes()[:10_000])
    result = run("decode", cut, "--format", "json", "--filter", "refused")
    assert result.forms
    assert all(form["frame"] is None for form in result.forms)
    assert result.err == ""
    hidden = run("decode", cut, "--format", "json", "--filter", 'api == "Heartbeat"')
    assert all(form["api"] == "Heartbeat" for form in hidden.forms)
    assert f"{len(result.forms)} unreadable or undated part" in hidden.err


@pytest.mark.parametrize(
    ("expression", "reason", "marked"),
    [
        ('apii == "x"', "did you mean api?", "apii"),
        ('body.grupId == "x"', "did you mean groupId?", "body.grupId"),
        ("body.protocols[].nam", "did you mean name?", "body.protocols[].nam"),
        ('body.protocols == "range"', "not a single value", "body.protocols"),
        ('body == "x"', "not a single value", "body"),
        ("request.frme == 1", "did you mean frame?", "frme"),
        ("header.groupId", "no header has", "header.groupId"),
        ("group.id", "has nothing inside", "group.id"),
        ("error.code == 1", "has the fields reason, position, path", "error.code"),
        ("frame = 1", "equality is written ==", "="),
        ("frame == 1 & api", "expected &&", "&"),
        ("frame == 1 frame == 2", "expected 'and', 'or' or the end", "frame"),
        ("frame ==", "expected a value", ""),
        ("frame", "", ""),
        ("", "expected a field", ""),
        ("frame == 1 and", "expected a field", ""),
        ("(frame == 1", "expected ) for the ( at character 1", ""),
        ("frame == 1)", "without an opening one", ")"),
        ("not", "expected a field", ""),
        ("1 == frame", "begins with a field", "1"),
        ("api == JoinGroup", 'text goes in quotes: "JoinGroup"', "JoinGroup"),
        ('api == "JionGroup"', "did you mean JoinGroup?", '"JionGroup"'),
        ('api == "11"', "apiKey has the number", '"11"'),
        ("api == 11", "compared with a text in quotes", "11"),
        ('error == "REBALANCE"', "no error is called", '"REBALANCE"'),
        ('body.errorCode == "NOT_CORDINATOR"', "did you mean NOT_COORDINATOR?", '"NOT_CORDINATOR"'),
        ("latency > 100", "needs a unit", "100"),
        ("latency > 100parsecs", "is not a unit", "parsecs"),
        ("frame > 100ms", "is not a duration", "100ms"),
        ('frame == "1"', "compared with a number", '"1"'),
        ("frame == true", "compared with a number", "true"),
        ("frame contains 1", "takes a text", "1"),
        ('frame contains "1"', "no text to search", '"1"'),
        ("frame > null", "== and != only", "null"),
        ("frame in (1, null)", "null cannot be in a list", "null"),
        ("frame in 1", "expected a list", "1"),
        ("frame in (1, 2", "expected , or )", ""),
        ("frame in (1 2)", "expected , or )", "2"),
        ('frame in ("a".."b")', "from a number to a number", '"a"'),
        ('time > "yesterday"', "expected a time", '"yesterday"'),
        ("time > 5", "a time in quotes", "5"),
        ('group =~ "a(b"', "a ( without its )", "("),
        ('group =~ "x[b"', "a [ without its ]", "["),
        (r'group =~ "a\yc"', "invalid escape sequence", "\\"),
        ('group =~ "*a"', "nothing to repeat", "*"),
        ('group == "a', 'without its closing "', '"'),
        ("frame == 1 # no", "has no meaning here", "#"),
        ("frame == 99999999999999999999999999999999999999999", "a number of more than", "9" * 41),
    ],
)
def test_what_is_wrong_is_pointed_at(run: Run, expression: str, reason: str, marked: str) -> None:
    if expression == "frame":
        assert matched(run, expression) == list(range(1, 10))
        return
    if not expression:
        assert run("decode", "-", "--filter", "", stdin=FRAMES).status == 2
        return
    response, place = refused(run, expression)
    assert reason in response
    assert place == marked


def test_an_error_far_out_and_beside_wide_signs_is_still_pointed_at() -> None:
    long = " or ".join(["frame == 1"] * 200) + " or frme"
    with pytest.raises(FilterError) as error_info:
        parse(long + " frame")
    _, line, carets = error_info.value.pointed(long + " frame").splitlines()
    assert len(line) < 110
    assert line[carets.index("^") :] == "frame"
    wide = 'clientId == "日本" x'
    with pytest.raises(FilterError) as error_info:
        parse(wide)
    assert error_info.value.pointed(wide).splitlines()[2] == "  " + " " * (len(wide) - 1 + 2) + "^"
    evil = 'clientId == "\x1b[2J" x'
    with pytest.raises(FilterError) as error_info:
        parse(evil)
    assert "\x1b" not in error_info.value.pointed(evil)


def test_length_and_depth_are_bounded() -> None:
    for text in ("(" * 50_000, "not " * 50_000, "x" * (LONGEST + 1), "(" * (DEEPEST + 2)):
        with pytest.raises(FilterError):
            parse(text)
    parse("(" * DEEPEST + "frame" + ")" * DEEPEST)
    parse(" and ".join(["frame"] * 1000))


def test_every_field_has_a_word_in_the_help(run: Run) -> None:
    help = run("decode", "--help-all").text
    for name, field in FIELDS.items():
        assert re.search(rf"\b{name}\b", help)
        assert field.summary


# --- patterns ---


def random_pattern(rng: random.Random, depth: int = 0) -> str:
    kind = rng.random()

    def inner() -> str:
        return random_pattern(rng, depth + 1)

    if depth > 3 or kind < 0.35:
        return rng.choice(["a", "b", "c", ".", "[ab]", "[^a]", r"\d", "[a-c]", "1", r"\w", r"[^\d]"])
    if kind < 0.6:
        return inner() + inner()
    if kind < 0.7:
        return f"({inner()}|{inner()})"
    if kind < 0.85:
        return f"(?:{inner()}){rng.choice(['*', '+', '?', '{1,2}', '{2}', '{2,}', '*?'])}"
    return "^" + inner() if kind < 0.92 else inner() + "$"


@pytest.mark.skipif(sys.implementation.name == "pypy", reason="PyPy's re takes all memory for some of these")
def test_patterns_search_as_re_does() -> None:
    rng = random.Random(3)
    tried = 0
    while tried < 3000:
        text = random_pattern(rng)
        try:
            expected = re.compile(text)
        except re.error:
            continue
        pattern = RegularExpression(text, anywhere=True)
        for _ in range(3):
            subject = "".join(rng.choice("abc1") for _ in range(rng.randrange(8)))
            assert pattern.matches(subject) == bool(expected.search(subject)), (text, subject)
        tried += 1
    for text in ("(?i)JoIn[a-z]*", "(?i)[A-C]x", r"\x41\t", "a{x}", "a{"):
        for subject in ("join", "JOINED", "bX", "Bx", "A\t", "a{x}", "a{", "a"):
            matches = RegularExpression(text, anywhere=True).matches(subject)
            assert matches == bool(re.search(text, subject)), (text, subject)


@pytest.mark.parametrize(
    ("text", "position", "reason"),
    [
        ("((a{100}){100}){100}", 9, "expression too large"),
        ("ab{2000}", 2, "invalid repeat count"),
        ("a{3,2}", 1, "invalid repeat count"),
        ("ab(?=a)", 2, "invalid or unsupported Perl syntax"),
        (r"(a)\1", 3, "invalid escape sequence"),
        ("a**", 2, "invalid nested repetition operator"),
        ("*a", 0, "nothing to repeat"),
        ("x[b-a]", 2, "invalid character class range"),
        ("x[ba", 1, "a [ without its ]"),
        ("x(ba", 1, "a ( without its )"),
        ("xba)", 3, "a ) without its ("),
        ("(?:a{999}){3}" + "b{999}" * 3, 31, "expression too large"),
        ("(" * 1_001 + ")" * 1_001, 1_000, "expression nests too deeply"),
    ],
)
def test_a_wrong_regular_expression_is_refused_with_its_place(text: str, position: int, reason: str) -> None:
    before = 'clientId =~ "'
    with pytest.raises(FilterError) as error_info:
        condition(f'{before}{text}"')
    assert error_info.value.reason == f"in the regular expression: {reason}"
    assert error_info.value.start == len(before) + position


@pytest.mark.parametrize("text", ["(){1000}", "(((){1000}){1000}){4}", "((){1000}){1000}" * 50])
def test_empty_groups_of_a_regular_expression_cost_nothing(text: str) -> None:
    expression = f'clientId =~ "{text}"'
    condition(expression)
    assert work(lambda: condition(expression)) < 500 * len(expression)


# --- secrets ---


def test_filters_do_not_see_secrets(run: Run) -> None:
    secret = "s3cr3t-pw"
    config = DescribeConfigsResourceResult(name="ssl.key.password", value=secret)
    plain = DescribeConfigsResourceResult(name="cleanup.policy", value="compact")
    result = DescribeConfigsResult(
        resource_type=2, resource_name="t", error_message=None, configs=[config, plain]
    )
    data = b"".join([
        encode_request(
            SaslAuthenticateRequest(auth_bytes=b"\0user\0" + secret.encode()), version=2, correlation_id=1
        ),
        encode_request(DescribeConfigsRequest(resources=[]), version=4, correlation_id=2),
        encode_response(DescribeConfigsResponse(results=[result]), version=4, correlation_id=2),
        encode_request(ApiVersionsRequest(), version=0, correlation_id=3),
    ])  # fmt: skip
    value = "body.results[].configs[].value"
    for guess in ("s3", "", "s", "pw"):
        assert matched(run, f'{value} =~ "^{guess}" and {value} != "compact"', data) == []
        assert matched(run, f'body.authBytes contains "{guess}"', data) == []
        assert matched(run, f'request.body.authBytes =~ "{guess}"', data) == []
    assert matched(run, f'{value} == "compact"', data) == [3]
    assert matched(run, "body.authBytes", data) == []
    assert matched(run, "body.authBytes == null and apiKey == 36", data) == [1]
    response = run(
        "decode", "-", "--input", "frames", "--show-secrets", "--format", "json", "--filter",
        f'{value} == "{secret}" or body.authBytes', stdin=data,
    )  # fmt: skip
    assert [form["frame"] for form in response.forms] == [1, 3]


def paths(cls: Any, *before: str | int) -> Iterator[list[str | int]]:
    """Paths to all fields of a class, with `[]` after each array, without, and to an element."""
    for field in fields_of(cls):
        steps = [*before, field.json_name]
        ways: list[list[str | int]] = [steps, [*steps, -1], [*steps, "none"]]
        for way in [*ways, [*steps, 1]] if field.array else ways:
            yield way
            if field.struct is not None and way[-1] != "none":
                yield from paths(field.struct, *way)


@pytest.mark.parametrize("path", CAPTURES, ids=lambda path: path.stem)
@pytest.mark.parametrize("show_secrets", [False, True])
def test_values_of_plain_frames_are_those_of_their_lines(path: Path, show_secrets: bool) -> None:
    data = path.read_bytes()
    shown = set[tuple[object, ...]]()
    for entry in read(damaged(data, random.Random(path.name)), lazy=True):
        if not isinstance(entry, FrameEntry) or entry.api_key is None:
            continue
        kind = entry.api_key, entry.direction, entry.api_version, entry.error is None
        if kind in shown and hash(entry.number) % 10:  # of what comes often, each tenth
            continue
        shown.add(kind)
        fields = EntryFields(entry, 6, show_secrets=show_secrets)
        classes = {cls for cls in (type(entry.message), HeartbeatRequest) if cls is not type(None)}
        for steps in (steps for cls in classes for steps in paths(cls)):
            way: list[str | int] = ["body", *steps]
            assert list(_of_body(way)(fields)) == list(_walk(way)(fields)), way


def random_filter(rng: random.Random, constants: list[str], depth: int = 0) -> str:
    """A filter expression with texts that a capture has, parts of them, and others."""
    if depth < 3 and rng.random() < 0.4:
        parts = [random_filter(rng, constants, depth + 1) for _ in range(2)]
        return f"({rng.choice([' and ', ' or ']).join(parts)})"
    if rng.random() < 0.2:
        return f"not {random_filter(rng, constants, depth + 1)}"
    field = rng.choice(
        ["groupId", "memberId", "topics[].name", "topics.topicId", "protocolType", "host", "group",
         "request.groupId", "request.group", "key", "coordinators[].key", "topic", "members[].memberId",
         "groups[].groupId", "errorMessage", "clientId", "api", "header.clientId"]
    )  # fmt: skip
    if field == "api":
        return f'api {rng.choice(["==", "!="])} "{rng.choice(["Heartbeat", "joingroup"])}"'
    first, second = (f'"{rng.choice(constants)}"' for _ in range(2))
    return rng.choice(
        [f"{field} == {first}", f"{field} != {first}", f"{field} contains {first}", f"{field} == null",
         f"{field} in ({first}, {second})", field]
    )  # fmt: skip


@pytest.mark.parametrize("path", CAPTURES, ids=lambda path: path.stem)
def test_what_a_look_leaves_out_the_filters_leave_out(path: Path) -> None:
    rng = random.Random(path.name)
    entries = list(read(damaged(path.read_bytes(), rng), lazy=True))[:150]
    values = {
        value
        for entry in entries
        for name in ("group", "member", "topic", "clientId")
        for value in FIELDS[name].values(EntryFields(entry, 6, show_secrets=True))
        if value and value.isprintable() and not set(value) & set('"\\')
    }
    constants = ["", "é", "consumer", *sorted(values), *(value[1:4] for value in sorted(values))]
    parser = argparse.ArgumentParser()
    filters.configure(parser)
    for number in range(20):
        arguments = ["--filter", random_filter(rng, constants)] if number % 4 else []
        arguments += ["--api", rng.choice(["Heartbeat,8", "JoinGroup"])] if number % 3 == 0 else []
        options = parser.parse_args(arguments, argparse.Namespace(show_secrets=bool(number % 2)))
        names = TopicNames()
        filter_, selection = filters.Filter(options), filters.Selection(options, names)
        misses = selection.misses(filter_)
        for entry in entries if misses is not None else ():
            names.learn(entry)
            is_selected = filter_(entry) and selection(entry, 6)
            assert not (is_selected and misses and misses(entry)), arguments
            if arguments[0] == "--api" and len(arguments) == 2 and isinstance(entry, FrameEntry):
                assert misses is not None
                assert misses(entry) != is_selected


def test_a_look_at_the_bytes_leaves_out_what_lacks_the_text() -> None:
    frames = b"".join(
        encode_request(HeartbeatRequest(group_id=group), version=4, correlation_id=1)
        for group in ("a-1", "b")
    )
    first, second = Capture(BytesIO(frames), "x", input="frames").entries()
    assert isinstance(first, FrameEntry)
    assert isinstance(second, FrameEntry)
    for expression in (
        'groupId == "a-1"', 'groupId contains "a-"', 'groupId in ("a-1", "x")', 'group == "a-1"',
        'groupId == "a-1" and generationId != 3', 'groupId == "x" or group == "a-1"',
    ):  # fmt: skip
        look = precondition(expression)
        assert look is not None
        assert look(first)
        assert not look(second)
    for expression in (
        'groupId != "b"',
        'not groupId == "b"',
        "groupId",
        'groupId == "b" or generationId == 1',
    ):
        assert precondition(expression) is None


def test_a_first_text_is_read_from_the_bodys_text_or_its_message() -> None:
    for group in ("payments", "", 'a"b', "back\\slash", "wört", "\0"):
        request = encode_request(
            HeartbeatRequest(group_id=group, member_id="m"), version=4, correlation_id=1, client_id="c"
        )
        (entry,) = Capture(BytesIO(request), "x", input="frames").entries()
        fields = EntryFields(entry, 6, show_secrets=True)
        assert list(_of_body(["body", "groupId"])(fields)) == [group]
