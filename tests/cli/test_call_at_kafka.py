"""`coordwire call` at real brokers: each of their APIs once, with nothing but its name.

Rules: what a bare request means is an answer, if only a refusal that Kafka words by an error code; where a
bare request can mean nothing, the command says so before it is sent.
"""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from coordwire.cli.__main__ import main
from tests.interop.broker import Broker, Java
from tests.interop.conftest import give_up
from tests.interop.maven import CURRENT, PREVIOUS, Unavailable

pytestmark = pytest.mark.maven

UNSENT = {
    "AddPartitionsToTxn": "expected transactions or v3_and_below_transactional_id",
    "AlterReplicaLogDirs": "expected a node to send it to",
    "OffsetFetch": "expected groups or group_id",
}
"""APIs whose bare request is not sent, and why."""

CODES: dict[str, str | dict[str, str]] = {
    "AddOffsetsToTxn": "INVALID_REQUEST",
    "AddRaftVoter": "INCONSISTENT_CLUSTER_ID",
    "AlterShareGroupOffsets": "INVALID_GROUP_ID",
    "ConsumerGroupHeartbeat": {PREVIOUS: "UNSUPPORTED_VERSION", CURRENT: "INVALID_REQUEST"},
    "CreateDelegationToken": "DELEGATION_TOKEN_REQUEST_NOT_ALLOWED",
    "DeleteShareGroupOffsets": "INVALID_GROUP_ID",
    "DescribeAcls": "SECURITY_DISABLED",
    "DescribeDelegationToken": "DELEGATION_TOKEN_REQUEST_NOT_ALLOWED",
    "EndTxn": "INVALID_REQUEST",
    "ExpireDelegationToken": "DELEGATION_TOKEN_REQUEST_NOT_ALLOWED",
    "Heartbeat": "INVALID_GROUP_ID",
    "JoinGroup": "INVALID_GROUP_ID",
    "LeaveGroup": "INVALID_GROUP_ID",
    "OffsetDelete": "INVALID_GROUP_ID",
    "RemoveRaftVoter": "INCONSISTENT_CLUSTER_ID",
    "RenewDelegationToken": "DELEGATION_TOKEN_REQUEST_NOT_ALLOWED",
    "SaslAuthenticate": "ILLEGAL_SASL_STATE",
    "SaslHandshake": "ILLEGAL_SASL_STATE",
    "ShareAcknowledge": "INVALID_REQUEST",
    "ShareFetch": "INVALID_REQUEST",
    "ShareGroupHeartbeat": "INVALID_REQUEST",
    "StreamsGroupHeartbeat": "INVALID_REQUEST",
    "StreamsGroupTopologyDescriptionUpdate": "UNSUPPORTED_VERSION",
    "SyncGroup": "INCONSISTENT_GROUP_PROTOCOL",
    "UnregisterBroker": "BROKER_ID_NOT_REGISTERED",
    "UnregisterController": "CONTROLLER_ID_NOT_REGISTERED",
}
"""The error codes with which Kafka refuses, by release where they differ: no group or transaction is named,
or a broker without SASL, authorizer, tokens or consumer groups is asked about them."""

SETTINGS = {
    f"{topic}.{setting}": "1"
    for topic in ("offsets.topic", "transaction.state.log", "share.coordinator.state.topic")
    for setting in ("replication.factor", "num.partitions", "min.isr")
    if (topic, setting) != ("offsets.topic", "min.isr")
}


def called(capsys: pytest.CaptureFixture[str], *words: str) -> tuple[int, str, str]:
    status = main(["call", *words, "--timeout", "20", "--yes"])
    captured = capsys.readouterr()
    return status, captured.out, captured.err


@pytest.mark.parametrize("release", [PREVIOUS, CURRENT])
def test_each_api_answers_to_its_name(
    release: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    folder = tmp_path / "logs"
    folder.mkdir()
    wrong: dict[str, str] = {}
    try:
        with Broker(Java(release, "broker"), folder, SETTINGS) as broker:
            _, direct, _ = called(capsys, broker.address, "DescribeGroups", "groups=g", "--to", "any")
            _, listed, _ = called(capsys, broker.address, "--format", "json")
            for api in map(json.loads, listed.splitlines()):
                name = api["api"]
                status, output, errors = called(capsys, broker.address, name)
                code = CODES.get(name, "")
                expected = UNSENT.get(name) or (code if isinstance(code, str) else code[release])
                if (status, bool(output)) != ((2, False) if name in UNSENT else (1 if expected else 0, True)):
                    wrong[name] = f"{status}: {errors}"
                elif expected not in errors:
                    wrong[name] = errors
            for verb in (["topics"], ["groups"], ["lag"], ["brokers"], ["configs", "broker:1"]):
                status, _, errors = called(capsys, broker.address, *verb)
                if status:
                    wrong[verb[0]] = errors
    except Unavailable as error:
        give_up(error)
    assert "NOT_COORDINATOR" in direct  # while there is no topic of coordinators
    assert wrong == {}
