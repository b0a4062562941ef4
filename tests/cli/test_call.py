"""`coordwire call`: requests of words, JSON and lines; where they go; what comes back and ends how."""

from __future__ import annotations

import io
import json
import os
import pty
import re
import subprocess
import sys
from collections.abc import Iterator
from itertools import takewhile
from pathlib import Path
from typing import Any

import pytest

from coordwire import from_json, to_json
from coordwire.broker import Broker, BrokerConfig
from coordwire.broker.thread import BrokerThread
from coordwire.cli import Failure
from coordwire.cli.__main__ import main, whole_parser
from coordwire.cli.call.answer_output import write_versions
from coordwire.cli.call.request_defaults import MEANT, fresh, switch_of
from coordwire.cli.call.request_fields import field_names, filled, request_of
from coordwire.cli.completion import words_of
from coordwire.cli.encode import encode_line
from coordwire.client import connect_sync
from coordwire.client.opening import Session
from coordwire.codec.walk import fields_of
from coordwire.errors import NotInVersion
from coordwire.messages import (
    AlterUserScramCredentialsRequest,
    ApiVersionsResponse,
    CreateTopicsRequest,
    DescribeConfigsRequest,
    DescribeGroupsRequest,
    FetchRequest,
    FindCoordinatorRequest,
    ListOffsetsRequest,
    MetadataRequest,
    ProduceRequest,
    SaslAuthenticateRequest,
    find_message,
)
from coordwire.messages.api_versions import FinalizedFeatureKey
from coordwire.messages.describe_configs import DescribeConfigsResource
from coordwire.messages.keys import FACTS
from coordwire.messages.list_offsets import ListOffsetsPartition, ListOffsetsTopic
from coordwire.messages.metadata import MetadataRequestTopic
from coordwire.versions import VersionRange, known_versions
from tests.client.test_deadlines import silent


@pytest.fixture(scope="module")
def broker() -> Iterator[BrokerThread]:
    with Broker.in_thread(topics={"orders": 6}, nodes=3) as three_nodes:
        with connect_sync(three_nodes.bootstrap) as client:
            client.request(FindCoordinatorRequest(coordinator_keys=["g"]))  # which makes their topic
        yield three_nodes


def call(capsys: pytest.CaptureFixture[str], *words: str) -> tuple[int, str, str]:
    """Exit status, standard output and standard error, the answers as JSON unless a format is given."""
    status = main(["call", "--format=json", *words])
    captured = capsys.readouterr()
    return status, captured.out, captured.err


def answers(out: str) -> list[dict[str, Any]]:
    return [json.loads(line) for line in out.splitlines()]


def test_the_timeout_covers_all_brokers_that_are_tried(capsys: pytest.CaptureFixture[str]) -> None:
    with silent(3) as (bootstrap, _):
        status, _, err = call(capsys, bootstrap, "ListGroups", "--timeout", "0.2")
    assert (status, err) == (2, "coordwire: call: no connection within 200 ms\n")
    for wrong in ("nan", "inf", "0", "-1", "x"):
        status, _, err = call(capsys, "localhost:1", "ListGroups", f"--timeout={wrong}")
        assert status == 2
        assert "expected seconds above 0" in err


# --- requests of words ---


def test_words_become_requests() -> None:
    groups = filled(DescribeGroupsRequest(), ["groups=a", "groups=b", "includeAuthorizedOperations=true"])
    assert groups == DescribeGroupsRequest(groups=["a", "b"], include_authorized_operations=True)
    offsets = filled(
        ListOffsetsRequest(),
        [
            "topics.name=a", "topics.partitions.partition_index=0", "topics.partitions.timestamp=-1",
            "topics.partitions.partition_index=4", "topics.name=b", "topics.partitions.partition_index=1",
            "topics[0].partitions[1].timestamp=-2", "isolation_level=read-committed",
        ],
    )  # fmt: skip
    assert offsets == ListOffsetsRequest(
        isolation_level=1,
        topics=[
            ListOffsetsTopic(
                name="a",
                partitions=[
                    ListOffsetsPartition(partition_index=0, timestamp=-1),
                    ListOffsetsPartition(partition_index=4, timestamp=-2),
                ],
            ),
            ListOffsetsTopic(name="b", partitions=[ListOffsetsPartition(partition_index=1)]),
        ],
    )
    assert filled(MetadataRequest(), ["topics=a"]).topics == [MetadataRequestTopic(name="a")]  # type: ignore[attr-defined]
    assert filled(MetadataRequest(topics=[]), ["topics=null"]).topics is None  # type: ignore[attr-defined]
    configs = filled(
        DescribeConfigsRequest(),
        ["resources.resource_type=broker", "resources.resource_name=2", "resources.configuration_keys=x"],
    )
    resource = DescribeConfigsResource(resource_type=4, resource_name="2", configuration_keys=["x"])
    assert configs == DescribeConfigsRequest(resources=[resource])
    uuid = filled(FetchRequest(), ["topics.topic_id=AAAAAAAAAAAAAAAAAAAABw"])
    assert uuid.topics[0].topic_id.int == 7  # type: ignore[attr-defined]


def test_bytes_come_from_files(tmp_path: Path) -> None:
    file = tmp_path / "records"
    file.write_bytes(b"\0\1")
    produce: Any = filled(
        ProduceRequest(), ["topic_data=orders", f"topic_data.partition_data.records=@{file}"]
    )
    assert produce.topic_data[0].partition_data[0].records == b"\0\1"
    secret: Any = filled(SaslAuthenticateRequest(), [f"auth_bytes=@{file}"])
    assert secret.auth_bytes == b"\0\1"
    with pytest.raises(Failure, match="auth_bytes is a secret: expected @FILE"):
        filled(SaslAuthenticateRequest(), ["auth_bytes=password"])
    with pytest.raises(Failure, match="is a secret"):
        filled(AlterUserScramCredentialsRequest(), ["upsertions.salted_password=password"])


@pytest.mark.parametrize(
    ("word", "reason"),
    [
        ("groups", "expected FIELD=VALUE"),
        ("group=a", "no field group; did you mean groups"),
        ("groups.name=a", "has no fields of its own"),
        ("groups[3]=a", "expected an index up to 0"),
        ("groups[=a", "expected a field"),
        ("include_authorized_operations=yes", "expected true or false"),
    ],
)
def test_words_that_are_not_fields_are_named(word: str, reason: str) -> None:
    with pytest.raises(Failure, match=reason):
        filled(DescribeGroupsRequest(), [word])


@pytest.mark.parametrize(
    ("word", "reason"),
    [
        ("replica_id=x", "expected a whole number"),
        ("isolation_level=none", "expected one of read_uncommitted, read_committed"),
        ("topics.partitions[2].timestamp=1", "expected an index up to 0"),
        ("topics.partitions=1", "expected a field of it: partition_index"),
        ("topics.partitions=null", "may not be null"),
    ],
)
def test_values_that_do_not_fit_are_named(word: str, reason: str) -> None:
    with pytest.raises(Failure, match=reason):
        filled(ListOffsetsRequest(), [word])


@pytest.mark.parametrize("key", FACTS)
def test_each_field_of_each_request_can_be_given(key: int, tmp_path: Path) -> None:
    cls: Any = find_message(key, "request")
    values = {
        "string": "a",
        "bytes": "@",
        "records": "@",
        "bool": "true",
        "uuid": "A" * 21 + "Q",
        "float64": "1.5",
    }
    file = tmp_path / "bytes"
    file.write_bytes(b"b")
    for name in field_names(cls):
        field: Any = None
        owner = cls
        for part in name.split("."):
            field = next(each for each in owner._layout_.fields if each.name == part)
            owner = field.struct
        if field.struct is not None:
            continue
        text = "false" if field.fresh_default() is True else values.get(field.type, "7")
        message = filled(cls(), [f"{name}={f'@{file}' if text == '@' or field.secret else text}"])
        assert message != cls(), name


# --- requests of JSON ---


@pytest.mark.parametrize("key", FACTS)
def test_an_incomplete_form_has_defaults(key: int) -> None:
    cls: Any = find_message(key, "request")
    assert request_of(cls, {}, None, 7_000) == fresh(cls, 7_000)
    switch = switch_of(cls)
    for version in cls.versions:
        form = to_json(cls(), version=version)
        expected = from_json(cls, form, version=version)
        if switch is not None and switch not in {field.name for field in fields_of(cls, version)}:
            setattr(expected, switch, False)
        assert request_of(cls, form, version) == expected


def test_a_form_of_older_fields_takes_an_older_version() -> None:
    request: Any = request_of(
        FetchRequest, {"topics": [{"topic": "a", "partitions": [{"partition": 3}]}]}, None
    )
    assert request.topics[0].topic == "a"
    assert request.topics[0].partitions[0].partition == 3
    for form, reason in (
        ({"topcs": []}, "did you mean topics"),
        ([], "expected an object, got list"),
        ({"topics": 5}, "topics"),
        ({"topics": [5]}, "topics"),
    ):
        with pytest.raises(Failure, match=reason):
            request_of(FetchRequest, form, None)


# --- what is not given ---


def test_what_a_table_means_is_in_the_schema() -> None:
    """Each field is there, and takes the value, on the wire of the newest version that has it."""
    requests = [cls for key in FACTS if (cls := find_message(key, "request")).api_key is not None]
    structs = {struct.__name__: struct for cls in requests for struct in with_structs(cls)}
    assert MEANT.keys() <= structs.keys()
    for name, values in MEANT.items():
        fields = {field.name: field for field in fields_of(structs[name])}
        assert values.keys() <= fields.keys()
        for field_name, value in values.items():
            field = fields[field_name]
            assert value != field.fresh_default()
            assert value is not None or field.nullable(min(field.last, 1_000)), field_name


def with_structs(cls: Any) -> Iterator[Any]:
    yield cls
    for field in fields_of(cls):
        if field.struct is not None:
            yield from with_structs(field.struct)


@pytest.mark.parametrize("key", FACTS)
def test_a_broker_has_the_time_that_the_command_has(key: int) -> None:
    cls: Any = find_message(key, "request")
    request = fresh(cls, 7_000)
    assert getattr(request, "timeout_ms", 7_000) == 7_000
    request.encode(version=cls.versions[-1])
    switch = switch_of(cls)
    for version in cls.versions:
        try:
            cls().encode(version=version)
        except NotInVersion:  # it has to be given something
            continue
        request = fresh(cls, 7_000, version)
        if switch is not None and switch not in {field.name for field in fields_of(cls, version)}:
            setattr(request, switch, True)  # which is what such a version means
        request.encode(version=version)


def test_what_is_not_given_means_all(capsys: pytest.CaptureFixture[str]) -> None:
    place = ["topics.partitions.partition_index=1", "topics.partitions.committed_offset=7"]
    with Broker.in_thread(topics={"orders": 2}) as broker:
        commit = ["OffsetCommit", "group_id=g", "topics=orders", *place, "--yes"]
        assert call(capsys, broker.bootstrap, *commit)[0] == 0

        def body(*words: str) -> Any:
            status, out, err = call(capsys, broker.bootstrap, *words)
            assert (status, err) == (0, "")
            return answers(out)[0]["body"]

        assert "orders" in [topic["name"] for topic in body("Metadata")["topics"]]
        (group,) = body("OffsetFetch", "groups=g")["groups"]
        assert [topic["partitions"][0]["committedOffset"] for topic in group["topics"]] == [7]
        assert body("DescribeShareGroupOffsets", "groups=g")["groups"][0]["errorCode"] == 0
        assert body("ApiVersions")["apiKeys"]
        assert body("InitProducerId", "--yes")["producerId"] >= 0
        grown = body("CreatePartitions", "topics=orders", "topics.count=3", "--yes")
        assert [result["errorCode"] for result in grown["results"]] == [0]
        gone = body("DeleteTopics", "topics=orders", "--yes")
        assert [topic["errorCode"] for topic in gone["responses"]] == [0]


def test_a_look_up_that_makes_a_topic_needs_a_yes(capsys: pytest.CaptureFixture[str]) -> None:
    with Broker.in_thread() as broker:
        for words in (
            ["FindCoordinator", "coordinator_keys=g"],
            ["OffsetFetch", "groups=g"],
            ["DescribeGroups", "groups=g"],
        ):
            status, out, err = call(capsys, broker.bootstrap, *words)
            assert (status, out) == (2, "")
            assert f"{words[0]} makes the topic __consumer_offsets, which does not exist yet, at " in err
        _, out, _ = call(capsys, broker.bootstrap, "Metadata")
        assert answers(out)[0]["body"]["topics"] == []  # so none was made
        assert call(capsys, broker.bootstrap, "FindCoordinator", "coordinator_keys=g", "--yes")[0] == 0
        assert call(capsys, broker.bootstrap, "OffsetFetch", "groups=g")[0] == 0
        transaction = ["FindCoordinator", "key_type=transaction", "coordinator_keys=t"]
        assert "makes the topic __transaction_state" in call(capsys, broker.bootstrap, *transaction)[2]


def test_a_look_up_asks_first_at_an_old_broker_too(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """One whose Metadata makes each topic that it is asked for, as before Kafka 0.11."""

    def versions(key: int) -> VersionRange:
        return VersionRange(0, 1) if key == MetadataRequest.api_key else known_versions(key)

    monkeypatch.setattr("coordwire.client.requests.known_versions", versions)
    with Broker.in_thread() as broker:
        words = [broker.bootstrap, "DescribeGroups", "groups=g"]
        status, out, err = call(capsys, *words)
        assert (status, out) == (2, "")
        assert "DescribeGroups makes the topic __consumer_offsets, which does not exist yet, at " in err
        assert call(capsys, *words, "--yes")[0] == 1
        assert "GROUP_ID_NOT_FOUND" in call(capsys, *words)[2]


@pytest.mark.parametrize("to", ["--all-brokers", "--to=any", "--to=node:1"])
def test_where_no_coordinator_is_looked_up_nobody_is_asked(
    capsys: pytest.CaptureFixture[str], to: str
) -> None:
    with Broker.in_thread() as broker:
        status, _, err = call(capsys, broker.bootstrap, "DescribeGroups", "groups=g", to)
        assert status == 1
        assert "NOT_COORDINATOR" in err  # as Kafka answers before its topic is there


# --- at a broker ---


def test_answers_are_lines_of_decode(broker: BrokerThread, capsys: pytest.CaptureFixture[str]) -> None:
    status, out, err = call(capsys, broker.bootstrap, "Metadata", "topics=orders")
    (answer,) = answers(out)
    assert (status, err) == (0, "")
    assert answer["api"] == "Metadata"
    assert [topic["name"] for topic in answer["body"]["topics"]] == ["orders"]
    assert len(encode_line(out.encode())) == answer["size"] + 4


def test_a_split_request_has_one_answer(broker: BrokerThread, capsys: pytest.CaptureFixture[str]) -> None:
    words = [f"topics.partitions.partition_index={number}" for number in range(6)]
    status, out, _ = call(capsys, broker.bootstrap, "ListOffsets", "topics.name=orders", *words)
    (answer,) = answers(out)
    assert status == 0
    assert answer["nodes"] == [1, 2, 3]
    assert len(answer["body"]["topics"][0]["partitions"]) == 6


def test_an_error_code_is_named_and_ends_with_1(
    broker: BrokerThread, capsys: pytest.CaptureFixture[str]
) -> None:
    status, out, err = call(capsys, broker.bootstrap, "DescribeGroups", "groups=a", "groups=b")
    assert status == 1
    assert answers(out)[0]["errors"][0]["error"] == "GROUP_ID_NOT_FOUND"
    assert err == "coordwire: groups[0].error_code: GROUP_ID_NOT_FOUND (2 times): There is no such group.\n"


def test_options_may_come_before_fields(broker: BrokerThread, capsys: pytest.CaptureFixture[str]) -> None:
    status, out, _ = call(capsys, broker.bootstrap, "Metadata", "--version", "9", "topics=orders")
    assert status == 0
    assert [topic["name"] for topic in answers(out)[0]["body"]["topics"]] == ["orders"]
    assert call(capsys, broker.bootstrap, "Metadata", "--version", "9", "topics=orders", "--none")[0] == 2
    status, out, _ = call(capsys, broker.bootstrap, "--version", "9", "Metadata", "topics=orders")
    assert status == 0
    assert [topic["name"] for topic in answers(out)[0]["body"]["topics"]] == ["orders"]


def test_a_tree_for_people(broker: BrokerThread, capsys: pytest.CaptureFixture[str]) -> None:
    status, out, _ = call(capsys, broker.bootstrap, "Metadata", "topics=orders", "--format", "tree")
    assert status == 0
    assert out.startswith("← Metadata v13  ")
    assert 'name: "orders"' in out


def test_each_broker_answers(broker: BrokerThread, capsys: pytest.CaptureFixture[str]) -> None:
    status, out, _ = call(capsys, broker.bootstrap, "ListGroups", "--all-brokers")
    assert status == 0
    assert [answer["nodes"] for answer in answers(out)] == [[1], [2], [3]]
    status, out, _ = call(capsys, broker.bootstrap, "ListGroups", "--to", "node:2", "--version", "3")
    (answer,) = answers(out)
    assert (answer["nodes"], answer["apiVersion"]) == ([2], 3)


def test_a_broker_alone_lists_its_apis(broker: BrokerThread, capsys: pytest.CaptureFixture[str]) -> None:
    status, out, _ = call(capsys, broker.bootstrap)
    assert status == 0
    metadata = next(form for form in answers(out) if form["api"] == "Metadata")
    assert metadata == {"apiKey": 3, "api": "Metadata", "versions": [0, 13], "known": [0, 13]}
    _, out, _ = call(capsys, broker.bootstrap, "--format", "tree")
    assert "  3  Metadata" in out
    assert "group coordinator" in " ".join(out.split())


def test_names_of_features_move_no_cursor(capsys: pytest.CaptureFixture[str]) -> None:
    feature = FinalizedFeatureKey(name="\x1b]0;title\x07\n\x9b", max_version_level=1, min_version_level=1)
    session = Session(versions={}, lifetime_ms=0, response=ApiVersionsResponse(finalized_features=[feature]))
    write_versions(session, "tree")
    assert r"features: \x1b]0;title\x07\n\x9b 1" in capsys.readouterr().out


@pytest.mark.parametrize("width", [80, 100, 140])
def test_the_apis_of_a_broker_fit_a_screen(
    broker: BrokerThread, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, width: int
) -> None:
    """No word is broken, and columns are aligned."""
    monkeypatch.setenv("COLUMNS", str(width))
    _, out, _ = call(capsys, broker.bootstrap, "--format", "tree")
    head, *lines = out.splitlines()
    assert [line for line in (head, *lines) if len(line) > width] == []
    notes = {facts.answered_by for facts in FACTS.values()} | {
        f"{facts.coordinator} coordinator" for facts in FACTS.values() if facts.coordinator
    }
    place, versions = head.index("answered by"), head.index("broker")
    rows: list[str] = []
    for line in takewhile(lambda line: not line.startswith("features"), lines):
        if line[:place].strip():
            assert re.match(r"\d+(-\d+)? ", line[versions:]), line
            rows.append(line[place:])
        elif line.startswith(" " * place):
            rows[-1] += f" {line[place:]}"
    assert len(rows) > 60
    assert set(rows) <= notes


def test_what_changes_something_needs_a_yes(broker: BrokerThread, capsys: pytest.CaptureFixture[str]) -> None:
    words = [broker.bootstrap, "CreateTopics", "topics=made"]  # with the broker's own defaults
    status, out, err = call(capsys, *words)
    assert (status, out) == (2, "")
    assert "CreateTopics changes something at 127.0.0.1" in err
    status, out, _ = call(capsys, *words, "validate_only=true")
    assert status == 0
    _, out, _ = call(capsys, broker.bootstrap, "Metadata", "topics=made")
    assert answers(out)[0]["errors"][0]["error"] == "UNKNOWN_TOPIC_OR_PARTITION"
    status, out, _ = call(capsys, *words, "--yes")
    assert status == 0
    status, _, _ = call(capsys, broker.bootstrap, "Metadata", "topics=made")
    assert status == 0


@pytest.mark.parametrize(("answer", "status"), [("y\n", 0), ("n\n", 2), ("\n", 2)])
def test_a_terminal_is_asked(broker: BrokerThread, answer: str, status: int) -> None:
    name = f"asked{status}{len(answer)}"
    command = [
        sys.executable, "-m", "coordwire", "call", broker.bootstrap, "CreateTopics", f"topics.name={name}",
        "topics.num_partitions=1", "topics.replication_factor=1", "--format", "json",
    ]  # fmt: skip
    ours, theirs = pty.openpty()
    with subprocess.Popen(command, stdin=theirs, stderr=theirs, stdout=subprocess.PIPE) as process:
        os.close(theirs)
        shown = b""
        while b"[y/N]" not in shown:
            shown += os.read(ours, 4096)
        os.write(ours, answer.encode())
        assert process.stdout is not None
        out = process.stdout.read()
        assert process.wait(30) == status
    os.close(ours)
    assert bool(out) is (status == 0)


def test_lines_of_decode_are_sent_as_they_are(
    broker: BrokerThread, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    body = to_json(MetadataRequest(topics=[], allow_auto_topic_creation=False), version=5)
    line = {
        "direction": "request",
        "apiKey": 3,
        "apiVersion": 5,
        "correlationId": 9,
        "clientId": "x",
        "body": body,
    }
    lines = [
        json.dumps(line),
        json.dumps({"direction": "response"}),
        "",
        "nonsense",
        json.dumps({"apiKey": 5}),
    ]

    class Input:
        buffer = io.BytesIO("\n".join(lines).encode())

        @staticmethod
        def isatty() -> bool:
            return False

    monkeypatch.setattr(sys, "stdin", Input)
    status, out, err = call(capsys, broker.bootstrap, "-", "--yes")
    (answer,) = answers(out)
    assert status == 1
    assert (answer["api"], answer["apiVersion"]) == ("Metadata", 5)
    assert err.count("coordwire: line 4: ") == 1
    assert err.count("coordwire: line 5: ") == 1
    status, _, err = call(capsys, broker.bootstrap, "-")
    assert status == 2
    assert "--yes" in err


def test_json_of_a_file(broker: BrokerThread, capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    file = tmp_path / "request.json"
    file.write_text('{"topics": [{"name": "not-there"}]}')
    status, out, _ = call(capsys, broker.bootstrap, "Metadata", "--json", f"@{file}")
    assert status == 1  # and it was not made
    assert answers(out)[0]["errors"][0]["error"] == "UNKNOWN_TOPIC_OR_PARTITION"
    file.write_text("{")
    assert call(capsys, broker.bootstrap, "Metadata", "--json", f"@{file}")[0] == 2


def test_settings_of_a_file(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    config = BrokerConfig(users={"ann": "a secret"})
    login = 'org.apache.kafka.common.security.scram.ScramLoginModule required username="ann" password="%s";'
    file = tmp_path / "client.properties"
    with Broker.in_thread(config=config) as guarded:
        lines = [
            "security.protocol=SASL_PLAINTEXT", "sasl.mechanism=SCRAM-SHA-512",
            f"bootstrap.servers={guarded.bootstrap}",
        ]  # fmt: skip
        file.write_text("\n".join([*lines, f"sasl.jaas.config={login % 'a secret'}"]))
        for words in (
            [guarded.bootstrap, "ListGroups"],
            ["ListGroups"],
            ["DescribeGroups", "groups=a", "--yes"],
        ):
            status, out, _ = call(capsys, *words, "--config", str(file))
            assert status == (1 if len(words) > 1 and words[1].startswith("groups") else 0)
            assert "a secret" not in out
        file.write_text("\n".join([*lines, f"sasl.jaas.config={login % 'a wrong one'}"]))
        status, out, err = call(capsys, "ListGroups", "--config", str(file))
        assert (status, out) == (2, "")
        assert "SASL_AUTHENTICATION_FAILED" in err
        assert "a wrong one" not in err


def test_secrets_in_answers_are_not_shown(capsys: pytest.CaptureFixture[str]) -> None:
    words = [
        "resources.resource_type=topic", "resources.resource_name=orders",
        "resources.configs.name=sasl.jaas.config", "resources.configs.value=hidden",
    ]  # fmt: skip
    with Broker.in_thread(topics=["orders"]) as broker:
        for style in ("json", "tree"):
            _, out, err = call(
                capsys, broker.bootstrap, "IncrementalAlterConfigs", *words, "--yes", "--format", style
            )
            assert "hidden" not in out + err


@pytest.mark.parametrize(
    ("words", "reason"),
    [
        (["Metdata"], "did you mean Metadata"),
        (["Metadata", "--to", "nowhere"], "expected node:ID, any, controller"),
        (["Metadata", "--to", "any", "--all-brokers"], "expected one of the two"),
        (["Metadata", "--version", "99"], "coordwire has 0-13; expected one of these, got 99"),
        (["AlterReplicaLogDirs", "--yes"], "expected a node to send it to"),
        (["Metadata", "--to", "node:9"], "expected a node of the cluster (1, 2, 3), got 9"),
        (["DescribeGroups", "--to", "leader"], "names no partition"),
        (["-", "topics=a"], "expected no fields"),
        (["Heartbeat", "generation_id=99999999999", "--yes"], "generation_id"),
    ],
)
def test_what_cannot_be_sent_says_why(
    broker: BrokerThread, capsys: pytest.CaptureFixture[str], words: list[str], reason: str
) -> None:
    status, out, err = call(capsys, broker.bootstrap, *words)
    assert (status, out) == (2, "")
    assert reason in err
    assert "Traceback" not in err


def test_no_broker_and_no_address(capsys: pytest.CaptureFixture[str]) -> None:
    assert "no broker can be reached" in call(capsys, "127.0.0.1:1", "Metadata")[2]
    assert "expected HOST:PORT, got 'a:b:c'" in call(capsys, "a:b:c", "Metadata")[2]
    assert "No such file" in call(capsys, "a", "Metadata", "--config", "/none/such")[2]


def test_apis_and_fields_complete() -> None:
    words = next(words for words in words_of(whole_parser()).commands if words.name[-1] == "call")
    assert {"Metadata", "DescribeGroups", "lag", "groups=", "topics="} <= set(words.choices)
    assert CreateTopicsRequest().validate_only is False
