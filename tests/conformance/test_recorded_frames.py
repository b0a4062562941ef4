"""Every API in every version, as real brokers spoke it: all engines read each frame alike and
write its bytes again, its JSON is Apache Kafka's, and no version is missing without a reason."""

from __future__ import annotations

import pytest

from coordwire import decode_request, decode_response, encode_request, encode_response, to_json
from coordwire.messages import find_message
from coordwire.messages.headers import RequestHeader
from coordwire.messages.keys import FACTS
from tests.conformance.engines import check_bytes
from tests.interop.cells import as_kafka
from tests.recorded import RecordedFrame, coverage, recorded_frames

apis = pytest.mark.parametrize("api_key", FACTS, ids=lambda key: FACTS[key].name)


def frames_of(api_key: int) -> list[RecordedFrame]:
    return [frame for frame in recorded_frames() if frame.api_key == api_key]


@apis
def test_all_engines_agree(api_key: int) -> None:
    for frame in frames_of(api_key):
        message = check_bytes(frame.message_class, frame.version, frame.body)
        assert message.encode(version=frame.version) == frame.body


@apis
def test_the_json_is_kafkas(api_key: int) -> None:
    for frame in frames_of(api_key):
        cls = frame.message_class
        message = cls.decode(frame.body, version=frame.version)
        assert as_kafka(cls, to_json(message, version=frame.version)) == frame.json


@apis
def test_whole_frames_come_back(api_key: int) -> None:
    for frame in frames_of(api_key):
        if frame.direction == "request":
            read = decode_request(frame.data)
            assert isinstance(read.header, RequestHeader)
            assert read.api_key == api_key
            data = encode_request(
                read.message, version=read.api_version, correlation_id=read.correlation_id,
                client_id=read.header.client_id,
            )  # fmt: skip
        else:
            answer = decode_response(frame.data, api_key=api_key, version=frame.version)
            data = encode_response(
                answer.message, version=frame.version, correlation_id=answer.correlation_id
            )
        assert data == frame.data


def test_kafka_writes_each_body_again() -> None:
    assert recorded_frames()
    assert [frame for frame in recorded_frames() if not frame.equal] == []


def test_no_version_is_missing_without_a_reason() -> None:
    facts = coverage()
    recorded = {frame.cell for frame in recorded_frames()}
    reasons = facts["reasons"]
    cells = {
        (key, version, direction)
        for key in FACTS
        for direction in ("request", "response")
        for version in find_message(key, direction).versions
    }
    assert len(cells) == 736
    unspoken = {cell for cell in cells if reasons.get(f"{FACTS[cell[0]].name} v{cell[1]} {cell[2]}")}
    assert recorded | unspoken == cells
    assert not recorded & unspoken
    assert len(reasons) == len(unspoken)


def test_the_table_names_the_releases_that_are_recorded() -> None:
    facts = coverage()
    releases = list(facts["spoken"])
    kept: dict[tuple[int, int, str], set[str]] = {}
    for frame in recorded_frames():
        kept.setdefault(frame.cell, set()).add(frame.release)
        first, last = facts["spoken"][frame.release][FACTS[frame.api_key].name]
        assert first <= frame.version <= last
    for key in FACTS:
        for direction, versions in facts["cells"][FACTS[key].name].items():
            assert list(map(int, versions)) == list(find_message(key, direction).versions)
            for version, named in versions.items():
                assert named == sorted(kept.get((key, int(version), direction), ()), key=releases.index)


WITHOUT_SUCCESS = {
    "AddRaftVoter", "AlterPartition", "AssignReplicasToDirs", "BeginQuorumEpoch", "ControlledShutdown",
    "ElectLeaders", "EndQuorumEpoch", "Envelope", "RemoveRaftVoter", "StreamsGroupTopologyDescriptionUpdate",
    "UnregisterBroker", "UnregisterController", "UpdateRaftVoter",
}  # fmt: skip
"""APIs that need a second broker, would end the only one, or need a plugin of it."""

VERSIONS_WITHOUT_SUCCESS = {
    *((f"{action}DelegationToken", 0) for action in ("Create", "Describe", "Expire", "Renew")),
    *(("BrokerRegistration", version) for version in (0, 1)),
    ("UpdateFeatures", 0),
}
"""Tokens of a release that is recorded without SASL; brokers that name no folder; no feature to raise."""


def test_answers_are_more_than_errors() -> None:
    """Each other version has an answer without an error."""
    answers = [frame for frame in recorded_frames() if frame.direction == "response"]
    served = {frame.cell for frame in answers if not frame.kind.split(": ")[-1].isupper()}
    refused = {(FACTS[key].name, version) for key, version, _ in {frame.cell for frame in answers} - served}
    assert {api for api, version in refused if (api, version) not in VERSIONS_WITHOUT_SUCCESS} == (
        WITHOUT_SUCCESS
    )
    assert refused >= VERSIONS_WITHOUT_SUCCESS
