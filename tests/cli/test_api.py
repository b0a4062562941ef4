"""`coordwire api`: lists, field tables, differences."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from typing import Any
from uuid import UUID

import pytest

from coordwire import messages
from coordwire.cli.api.contents import entries
from coordwire.cli.api.fields import rows
from coordwire.cli.api.wire_layout import layout
from coordwire.codec import Struct
from coordwire.codec.class_docs import field_docs
from coordwire.frames import encode_request, encode_response
from coordwire.messages import find_message
from coordwire.messages.keys import FACTS
from coordwire.spans import explain

from .conftest import Run


def test_the_list(run: Run) -> None:
    result = run("api")
    assert result.status == 0
    lines = result.text.splitlines()
    rows = [line.split() for line in lines if re.match(r" {0,2}\d+  \w", line)]
    assert len(rows) == len(FACTS)
    assert rows[11] == ["11", "JoinGroup", "0-9", "6+", "group"]
    assert max(map(len, lines)) <= 100
    forms = json.loads(run("api", "--format", "json").out)
    assert forms[11] | {"about": ""} == {
        "key": 11, "name": "JoinGroup", "versions": [0, 9], "flexible": 6, "coordinator": "group",
        "answeredBy": "coordinator", "partitions": None, "modifies": True,
            "listeners": ["broker"], "deprecated": None, "unstable": None, "about": "",
        "requestHeaders": [{"version": 1, "versions": [0, 5]}, {"version": 2, "versions": [6, 9]}],
        "responseHeaders": [{"version": 0, "versions": [0, 5]}, {"version": 1, "versions": [6, 9]}],
    }  # fmt: skip


@pytest.mark.parametrize("width", [80, 100, 140])
@pytest.mark.parametrize(
    "words",
    [
        (), ("--all",), ("Fetch",), ("JoinGroup",), ("OffsetFetch",), ("FetchRequest", "17"),
        ("JoinGroupRequest", "9"), ("Fetch", "--diff", "3", "17"),
    ],
)  # fmt: skip
def test_a_screen_fits_and_lacks_no_description(
    run: Run, monkeypatch: pytest.MonkeyPatch, words: tuple[str, ...], width: int
) -> None:
    monkeypatch.setenv("COLUMNS", str(width))
    text = run("api", *words).text
    assert [line for line in text.splitlines() if len(line) > width] == []
    shown = " ".join(text.split())
    descriptions = list(descriptions_of(json.loads(run("api", *words, "--format", "json").out)))
    assert descriptions
    assert [text for text in descriptions if text not in shown] == []


def descriptions_of(form: Any) -> Iterator[str]:
    """The descriptions in a form, with one blank between words."""
    if isinstance(form, list):
        for element in form:
            yield from descriptions_of(element)
    elif isinstance(form, dict):
        for name, value in form.items():
            if name in ("about", "doc") and value:
                yield " ".join(value.split())
            elif isinstance(value, dict | list):
                yield from descriptions_of(value)


@pytest.mark.parametrize("name", ["JoinGroup", "joingroup", "11"])
def test_an_api(run: Run, name: str) -> None:
    text = run("api", name).text
    assert text.startswith("JoinGroup, api key 11, versions 0-9, flexible from 6, to the group coordinator\n")
    assert "  v5   Static members: group_instance_id (KIP-345)." in text
    assert "\n  group_id              string                      0+     The group to join.\n" in text
    assert "[nullable 7+]" in text
    assert "[default -1]" in text
    assert "[holds ConsumerProtocolSubscription]" in text
    assert "\n    name  " in text
    assert max(map(len, text.splitlines())) <= 100


def test_an_api_as_json(run: Run) -> None:
    form = json.loads(run("api", "JoinGroup", "--format", "json").out)
    assert form["changes"]["5"].startswith("Static members")
    request, response = form["messages"]
    fields = {field["path"]: field for field in request["fields"]}
    assert fields["group_instance_id"]["versions"] == "5+"
    assert fields["group_instance_id"]["nullable"] == "5+"
    assert fields["protocols.metadata"]["embedded"] == "ConsumerProtocolSubscription"
    assert fields["group_id"]["doc"] == "The group to join."
    assert response["name"] == "JoinGroupResponse"
    condition = "The group does not exist, or does not have the member."
    assert {"code": 25, "name": "UNKNOWN_MEMBER_ID", "condition": condition} in form["errors"]
    assert {"code": 35, "name": "UNSUPPORTED_VERSION", "condition": None} in form["errors"]
    assert {path: field["entity"] for path, field in fields.items() if field["entity"]} == {
        "group_id": "group_id", "member_id": "member_id", "group_instance_id": "instance_id",
    }  # fmt: skip
    assert not any(field["secret"] for field in fields.values())


def test_defaults_that_a_reader_could_not_guess(run: Run) -> None:
    """All but 0, false and empty ones; where null is one of two guesses, any."""
    text = run("api", "FindCoordinator").text
    assert '4+ [nullable] [default ""] More about the error' in " ".join(text.split())
    described = run("api", "DescribeGroups").text
    assert "[nullable] [default null] More about the error" in " ".join(described.split())
    assert "[nullable] [default []] " in run("api", "CreatePartitions").text
    form = json.loads(run("api", "FindCoordinatorResponse", "--format", "json").out)
    fields = {field["path"]: field for field in form["messages"][0]["fields"]}
    assert {path: field["default"] for path, field in fields.items()} == {
        "throttle_time_ms": 0, "error_code": 0, "error_message": "", "node_id": 0, "host": "", "port": 0,
        "coordinators": [], "coordinators.key": "", "coordinators.node_id": 0, "coordinators.host": "",
        "coordinators.port": 0, "coordinators.error_code": 0, "coordinators.error_message": "",
    }  # fmt: skip


def test_defaults_are_those_of_the_classes() -> None:
    """What JSON says a field has, when nothing set it, is what it has."""

    def plain(value: Any) -> Any:
        match value:
            case bytes():
                return value.hex()
            case UUID():
                return str(value)
            case Struct():
                return {}
            case _:
                return value

    for entry in entries():
        for cls in entry.classes:
            product = cls()
            for row in rows(cls):
                if row.depth == 0:
                    assert row.default == plain(getattr(product, row.name)), (cls, row.path)


def test_where_an_api_is_served_and_what_it_may_answer(run: Run) -> None:
    text = run("api", "CreateTopics").text
    assert "\n  Listeners: broker, controller. Deprecated: versions 0-1.\n" in text
    assert (
        "\nErrors\n  7    REQUEST_TIMED_OUT: The controller did not create the topic within timeout_ms.\n"
        in text
    )
    assert "\nErrors\n  3 UNKNOWN_TOPIC_OR_PARTITION, " in run("api", "CreatePartitions").text
    assert "[topic name] The topic" in text  # its field is called "name"
    assert "[group id]" not in run("api", "JoinGroup").text
    assert "Unstable: version 6." in run("api", "InitProducerId").text
    assert "Deprecated: version 0." in run("api", "ListOffsets").text
    assert "Listeners" not in run("api", "ConsumerProtocolSubscription").text


def test_secrets_are_marked(run: Run) -> None:
    form = json.loads(run("api", "SaslAuthenticateRequest", "--format", "json").out)
    (message,) = form["messages"]
    assert {field["path"]: field["secret"] for field in message["fields"]} == {"auth_bytes": True}
    assert "[secret]" in run("api", "SaslAuthenticate").text


def test_messages_headers_and_data_types(run: Run) -> None:
    text = run("api", "ConsumerProtocolSubscription").text
    assert text.startswith("ConsumerProtocolSubscription, versions 0-3\n")
    assert "owned_partitions" in text
    assert "client_id" in run("api", "requestheader").text
    item = run("api", "JoinGroupResponse").text
    assert "JoinGroupRequest" not in item.replace("JoinGroupRequestProtocol", "")


def test_drafts_and_records(run: Run) -> None:
    text = run("api", "draft2ping").text
    assert text.startswith("Draft2Ping, type id 2003 (reconstructed), asked by the server, dialect draft-2")
    assert "\nDraft2PingRequest, in coordwire.messages.draft_2\n" in text
    assert "\nDraft2PingResponse, in coordwire.messages.draft_2\n" in text
    text = run("api", "OffsetCommitValue").text
    assert text.startswith("OffsetCommitValue, record type 1 in __consumer_offsets, versions 0-4")
    assert "[tag 0] [ignorable] Id of the topic" in text
    assert "+ leader_epoch" in run("api", "offsetcommitvalue", "--diff", "1", "3").text


def test_all_that_has_a_name(run: Run) -> None:
    text = run("api", "--all").text
    assert text.startswith(run("api").text)
    names = {form["name"] for form in json.loads(run("api", "--all", "--format", "json").out)}
    assert {"JoinGroup", "RequestHeader", "TopicRecord", "Draft3Ping", "Kafka07Fetch"} <= names
    assert all(f" {name} " in text for name in names)
    output = {word for entry in entries() for word in entry.messages}
    assert output == set(messages.__all__) - {"find_message"}


def test_every_api_can_be_shown(run: Run) -> None:
    for facts in FACTS.values():
        assert run("api", facts.name).status == 0
        assert run("api", facts.name, "--diff", facts.first, facts.last).status == 0


def test_differences(run: Run) -> None:
    text = run("api", "JoinGroup", "--diff", "4", "7").text
    assert text.startswith("JoinGroup, from version 4 to 7\n  v5   Static members")
    assert "  ~ header 1 becomes header 2\n" in text
    assert "  ~ compact lengths and tagged fields\n" in text
    assert "  + group_instance_id: string (nullable, default null)  " in text
    assert "  ~ protocol_name: now nullable" in text
    assert "v4 " not in text
    assert "v8 " not in text
    back = run("api", "JoinGroup", "--diff", "7", "4").text
    assert "  - group_instance_id: string" in back
    assert "fixed lengths" in back
    assert "= the same layout" in run("api", "JoinGroup", "--diff", "2", "3").text


def test_differences_say_what_an_unset_field_has(run: Run) -> None:
    def changes(name: str, old: int, new: int) -> str:
        return run("api", name, "--diff", old, new).text

    assert "  + topics.partitions.log_start_offset: int64 (default -1, ignorable)  " in changes("Fetch", 4, 5)
    assert "  + group_instance_id: string (nullable, default null)  " in changes("Heartbeat", 2, 3)
    assert "  + throttle_time_ms: int32 (ignorable)  " in changes("Heartbeat", 0, 1)
    form = json.loads(run("api", "Fetch", "--diff", "4", "5", "--format", "json").out)
    (added,) = form["messages"][0]["fields"]
    assert (added["default"], added["ignorable"]) == (-1, True)


def test_differences_in_json(run: Run) -> None:
    form = json.loads(run("api", "Fetch", "--diff", "12", "13", "--format", "json").out)
    request = form["messages"][0]["fields"]
    assert [(change["change"], change["path"]) for change in request] == [
        ("removed", "topics.topic"), ("added", "topics.topic_id"),
        ("removed", "forgotten_topics_data.topic"), ("added", "forgotten_topics_data.topic_id"),
    ]  # fmt: skip
    assert list(form["changes"]) == ["13"]


def test_a_new_struct_is_told_once(run: Run) -> None:
    form = json.loads(run("api", "OffsetFetch", "--diff", "7", "8", "--format", "json").out)
    added = [change for change in form["messages"][0]["fields"] if change["change"] == "added"]
    assert [change["path"] for change in added] == ["groups"]
    assert added[0]["default"] == []
    assert added[0]["fields"] > 3


@pytest.mark.parametrize(
    "arguments",
    [
        ["JoinGrop"],
        ["999"],
        ["JoinGroup", "--diff", "1", "99"],
        ["--diff", "1", "2"],
        ["JoinGroup", "--diff", "1"],
    ],
)
def test_usage(run: Run, arguments: list[str]) -> None:
    result = run("api", *arguments)
    assert result.status == 2
    assert result.err
    assert result.out == b""
    assert "did you mean JoinGroup?" in run("api", "JoinGrop").err


# --- one version ---


def test_the_wire_layout_of_a_version(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "120")
    result = run("api", "FetchRequest", "17")
    assert result.status == 0
    lines = [" ".join(line.split()) for line in result.text.splitlines()]
    assert lines[0] == "FetchRequest v17, flexible"
    for line in (
        "size INT32 The bytes that follow.",
        "header v2",
        "client_id NULLABLE_STRING What the client calls itself,",
        "topics COMPACT_ARRAY of STRUCT What to read; in a session, only what is",
        "tags TAG_SECTION",
        "0 replica_directory_id UUID Log directory of the KRaft follower; zero if",
        "COMPACT_STRING UVARINT of the bytes + 1, then UTF-8; not null",
    ):
        assert any(entry.startswith(line) for entry in lines), line
    assert not any(line.startswith("high_watermark") for line in lines)  # since 18
    for arguments in (["FetchRequest", "--version", "17"], ["fetchrequest", "v17"]):
        assert run("api", *arguments).out == result.out


def test_both_messages_of_an_api(run: Run) -> None:
    result = run("api", "12", "3", "--format", "json")
    form = json.loads(result.out)
    assert (form["name"], form["version"]) == ("Heartbeat", 3)
    request, response = form["messages"]
    assert (request["header"]["version"], response["header"]["version"]) == (1, 0)
    assert [(field["name"], field["wire"]) for field in request["fields"]] == [
        ("group_id", ["STRING"]), ("generation_id", ["INT32"]), ("member_id", ["STRING"]),
        ("group_instance_id", ["NULLABLE_STRING"]),
    ]  # fmt: skip
    assert [field["name"] for field in response["fields"]] == ["throttle_time_ms", "error_code"]


@pytest.mark.parametrize("width", ["60", "80", "120"])
def test_a_layout_fits_its_terminal(run: Run, monkeypatch: pytest.MonkeyPatch, width: str) -> None:
    monkeypatch.setenv("COLUMNS", width)
    text = run("api", "Heartbeat", "4").text
    assert max(map(len, text.splitlines())) <= int(width)


@pytest.mark.parametrize(
    ("key", "direction"), [(key, way) for key in FACTS for way in ("request", "response")]
)
def test_layouts_are_in_the_order_of_the_bytes(key: int, direction: str) -> None:
    """Header and fields of a message of defaults, as its bytes have them."""
    cls = find_message(key, direction)
    for version in cls.versions:
        form = layout(cls, version)
        if direction == "request":
            raw = encode_request(cls(), version=version, correlation_id=1, client_id="c")
            spans = explain(raw)
        else:
            raw = encode_response(cls(), version=version, correlation_id=1)
            spans = explain(raw, api_key=key, version=version)
        places = (re.split(r"[.\[]", span.path)[0] for span in spans if span.path not in ("", "size"))
        fields = [*form["header"]["fields"], *form["fields"]]
        names = [field["name"] for field in fields if not field["depth"] and field["name"] != "tags"]
        assert list(dict.fromkeys(places)) == list(dict.fromkeys(names))


@pytest.mark.parametrize(
    ("arguments", "reason"),
    [
        (["Heartbeat", "9"], "Heartbeat: expected a version from 0 to 4, got 9"),
        (["Heartbeat", "x"], "expected a version, a number, got 'x'"),
        (["Heartbeat", "1", "--version", "2"], "expected one version, got two"),
        (["Heartbeat", "1", "--diff", "1", "2"], "--diff names its versions"),
        (["--version", "2"], "--version needs the name of an API"),
    ],
)
def test_versions_that_cannot_be(run: Run, arguments: list[str], reason: str) -> None:
    result = run("api", *arguments)
    assert (result.status, result.out) == (2, b"")
    assert reason in result.err


def test_every_field_has_its_words() -> None:
    for key in FACTS:
        for direction in ("request", "response"):
            cls = find_message(key, direction)
            assert all(row.doc for row in rows(cls)), cls
    join: Any = find_message(11, "request")
    assert field_docs(join)["group_id"] == "The group to join."
