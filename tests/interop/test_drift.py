"""The drift check: silent about what agrees, precise about a definition that was doctored."""

from __future__ import annotations

import copy
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any
from zipfile import ZipFile

import pytest

from tests.interop.conftest import give_up
from tests.interop.definitions import definition, definition_of
from tests.interop.drift import drift, main, meant
from tests.interop.java_oracle import oracle
from tests.interop.log_drift import log_drift
from tests.interop.maven import CURRENT, FIRST_LOGS, PREVIOUS, Unavailable, jars

LEAVE: dict[str, Any] = {
    "apiKey": 13, "type": "request", "name": "LeaveGroupRequest",
    "validVersions": "0-5", "flexibleVersions": "4+",
    "fields": [
        {"name": "GroupId", "type": "string", "versions": "0+"},
        {"name": "MemberId", "type": "string", "versions": "0-2"},
        {"name": "Members", "type": "[]MemberIdentity", "versions": "3+", "fields": [
            {"name": "MemberId", "type": "string", "versions": "3+"},
            {"name": "GroupInstanceId", "type": "string", "versions": "3+", "nullableVersions": "3+",
             "default": "null"},
            {"name": "Reason", "type": "string", "versions": "5+", "nullableVersions": "5+",
             "default": "null", "ignorable": True},
        ]},
    ],
}  # fmt: skip
Doctor = Callable[[dict[str, Any]], object]


def lines(doctor: Doctor) -> list[str]:
    raw = copy.deepcopy(LEAVE)
    doctor(raw)
    return list(drift(definition(raw)))


def member(raw: dict[str, Any], place: int) -> dict[str, Any]:
    result: dict[str, Any] = raw["fields"][2]["fields"][place]
    return result


def test_a_version_that_waits_for_its_release_is_said_to_be_declared() -> None:
    raw = {"apiKey": 47, "type": "request", "name": "OffsetDeleteRequest", "validVersions": "0-1",
           "flexibleVersions": "1+", "fields": []}  # fmt: skip
    assert "OffsetDeleteRequest: lacks versions 1, declared as unreleased" in next(drift(definition(raw)))
    raw["validVersions"] = "0-2"
    assert "declared as unreleased" in next(drift(definition(raw)))


NEW = {"name": "Why", "type": "int8", "versions": "5+", "taggedVersions": "5+", "tag": 0}
DOCTORED: list[tuple[Doctor, str]] = [
    (lambda raw: raw.update(validVersions="0-7"), "lacks versions 6-7"),
    (lambda raw: raw.update(name="QuitRequest"), "QuitRequest (api key 13): unknown to us; versions 0-5"),
    (lambda raw: raw.update(apiKey=14), "api key 14, ours 13"),
    (lambda raw: raw.update(flexibleVersions="3+"), "flexible in 3-5, ours in 4-5"),
    (lambda raw: raw["fields"].append(NEW), "LeaveGroupRequest.why: lacking"),
    (lambda raw: raw["fields"].pop(1), "LeaveGroupRequest.memberId: not in the release"),
    (lambda raw: raw["fields"].reverse(), "fields in another order"),
    (lambda raw: raw["fields"][0].update(type="bytes"), "groupId: type 'bytes', ours 'string'"),
    (lambda raw: raw["fields"][0].update(default="x"), "groupId: default 'x', ours ''"),
    (lambda raw: raw["fields"][0].update(flexibleVersions="none"), "groupId: classic True, ours False"),
    (lambda raw: raw["fields"][1].update(versions="0-3"), "memberId: versions 0-3, ours 0-2"),
    (lambda raw: raw["fields"][1].update(ignorable=True), "memberId: ignorable True, ours False"),
    (lambda raw: member(raw, 2).update(taggedVersions="5+", tag=1), "members.reason: tag 1, ours None"),
    (lambda raw: member(raw, 1).update(nullableVersions="4+"), "nullable in 4-5, ours 3-5"),
    (lambda raw: raw["fields"][0].update(entityType="topicName"), "entity 'topic_name', ours 'group_id'"),
    (lambda raw: raw.update(listeners=["controller"]), "listeners controller, ours broker"),
    (lambda raw: raw.update(deprecatedVersions="0-1"), "deprecated in 0-1, ours in none"),
    (lambda raw: raw.update(latestVersionUnstable=True), "unstable in 5, ours in none"),
]


def test_what_agrees_is_no_drift() -> None:
    assert lines(lambda raw: None) == []
    assert lines(lambda raw: raw["fields"][0].update(versions="0-5", ignorable=True)) == []  # says no more
    assert lines(lambda raw: raw.update(validVersions="2-4")) == []
    assert lines(lambda raw: raw["fields"][0].update(entityType="groupId")) == []
    assert lines(lambda raw: raw.update(listeners=["zkBroker", "broker"])) == []
    assert lines(lambda raw: raw.update(validVersions="0-4", latestVersionUnstable=True)) == []


def test_deprecated_and_unstable_versions_of_ours_are_checked() -> None:
    raw: dict[str, Any] = {
        "apiKey": 8, "type": "request", "name": "OffsetCommitRequest", "listeners": ["broker"],
        "validVersions": "0-9", "flexibleVersions": "8+", "fields": [],
    }  # fmt: skip
    assert "OffsetCommitRequest: deprecated in none, ours in 0-1" in drift(definition(raw))
    raw |= {"apiKey": 22, "name": "InitProducerIdRequest", "validVersions": "0-6", "flexibleVersions": "2+"}
    assert "InitProducerIdRequest: unstable in none, ours in 6" in drift(definition(raw))


@pytest.mark.parametrize(("doctor", "words"), DOCTORED, ids=[words for _, words in DOCTORED])
def test_a_doctored_definition(doctor: Doctor, words: str) -> None:
    assert any(words in line for line in lines(doctor))


NAME = "common/message/LeaveGroupRequest.json"


def jar(folder: Path, text: str) -> Path:
    """A release of one message."""
    path = folder / "kafka-clients.jar"
    with ZipFile(path, "w") as made:
        made.writestr(NAME, text)
    return path


def source(folder: Path, text: str) -> Path:
    """A tree of the source, with one message, and one that is the tests' own."""
    for module, name in (("clients/src/main", NAME), ("clients/src/test", "common/message/Simple.json")):
        path = folder / module / "resources" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    return folder


@pytest.mark.parametrize("make", [jar, source])
def test_the_exit_status(
    make: Callable[[Path, str], Path], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    for raw, status in ((LEAVE, 0), (LEAVE | {"apiKey": 14}, 1)):
        assert main(["--at", str(make(tmp_path, f"// Licence\n{json.dumps(raw)}"))]) == status
    path = make(tmp_path, json.dumps(LEAVE))
    assert capsys.readouterr().out.splitlines() == [
        f"{path}: 1 messages, 0 differences, 0 meant",
        "LeaveGroupRequest: api key 14, ours 13",
        f"{path}: 1 messages, 1 differences, 0 meant",
    ]


def test_what_has_no_definitions(tmp_path: Path) -> None:
    assert main(["--at", str(tmp_path)]) == 2
    assert main(["--at", str(tmp_path / "absent")]) == 2
    (tmp_path / "text").write_text("no jar")
    assert main(["--at", str(tmp_path / "text")]) == 2


def test_a_meant_difference_has_its_reason() -> None:
    line = "VoteRequest.topics.partitions.candidateId: lacking"
    assert meant("3.9.2", line)
    assert meant(CURRENT, line) is None


def test_a_name_that_changed_later_is_meant_for_older_releases_only() -> None:
    line = "TxnOffsetCommitRequest.generationId: lacking"
    assert all(meant(release, line) for release in ("3.9.2", "4.0.0", "4.3.1"))
    assert meant("4.4.0", line) is None


def test_errors_in_comments() -> None:
    errors = "  // - UNKNOWN_SERVER_ERROR (version 0+)\n  // - NOT_COORDINATOR (version 0+)\n"
    text = json.dumps(LEAVE | {"type": "response", "name": "LeaveGroupResponse", "fields": []})
    assert definition_of(f"// Licence\n{errors}{text}").errors == ("UNKNOWN_SERVER_ERROR", "NOT_COORDINATOR")
    results = list(drift(definition_of(f"{errors}  // - NO_SUCH_ERROR (version 5+)\n{text}")))
    assert [line for line in results if " error " in line] == [
        "LeaveGroupResponse: error NO_SUCH_ERROR: lacking"
    ]


@pytest.mark.maven
@pytest.mark.parametrize("release", [CURRENT, PREVIOUS])
def test_no_drift(release: str) -> None:
    try:
        jars(release)
    except Unavailable as error:
        give_up(error)
    assert main(["--release", release]) == 0


@pytest.mark.maven
def test_a_changed_record_is_told() -> None:
    try:
        kafka = oracle(FIRST_LOGS)
    except Unavailable as error:
        give_up(error)
    results = list(log_drift(jars(FIRST_LOGS), kafka))
    assert "ShareSnapshotValue v0.snapshot_epoch: UINT16, ours INT32" in results
    assert not any(line.startswith("OffsetCommit") for line in results)
