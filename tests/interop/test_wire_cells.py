"""The recorder of every API: rounds use every version, requests lack what their version lacks, and
Apache Kafka's classes say of the recorded frames today what is kept of them."""

from __future__ import annotations

import json

import pytest

from coordwire.messages import JoinGroupRequest, OffsetCommitRequest
from coordwire.messages.keys import FACTS
from tests.interop.conftest import give_up
from tests.interop.maven import Unavailable
from tests.interop.wire_administration import ADMINISTERING_ROUNDS
from tests.interop.wire_cells import Frame, row_of
from tests.interop.wire_rounds import KEYS, Round, build
from tests.interop.wire_scenarios import ROUNDS
from tests.recorded import coverage, recorded_frames


@pytest.mark.parametrize("release", coverage()["spoken"])
def test_rounds_use_every_version(release: str) -> None:
    spoken = {KEYS[api]: (first, last) for api, (first, last) in coverage()["spoken"][release].items()}
    for key, (first, last) in spoken.items():
        (api,) = (name for name, number in KEYS.items() if number == key)
        rounds = ROUNDS if FACTS[key].coordinator else ADMINISTERING_ROUNDS
        used = [Round.version_at(spoken, api, number) for number in range(rounds)]
        assert sorted(set(used)) == list(range(first, last + 1))


def test_a_request_lacks_what_its_version_lacks() -> None:
    values = {"group_id": "g", "topics": [{"name": "t", "topic_id": None, "partitions": []}]}
    message = build(OffsetCommitRequest, values, 9)
    assert message.topics[0].name == "t"
    assert message.topics[0].topic_id.int == 0
    assert build(JoinGroupRequest, {"group_instance_id": "i"}, 4).group_instance_id is None
    assert build(JoinGroupRequest, {"group_instance_id": "i"}, 5).group_instance_id == "i"
    with pytest.raises(TypeError, match="no field 'group'"):
        build(JoinGroupRequest, {"group": "g"}, 5)


@pytest.mark.maven
def test_kafkas_classes_read_the_frames_as_it_is_kept() -> None:
    for frame in recorded_frames():
        kept = Frame(frame.api_key, frame.version, frame.direction, frame.kind, frame.release, frame.data)
        try:
            row = row_of(kept)
        except Unavailable as error:
            give_up(error)
        assert row["equal"]
        assert json.dumps(row["json"]) == json.dumps(frame.json)
