"""The strategies: what they give is what they say, and they do give it."""

from __future__ import annotations

import math
import re
import subprocess
import sys
from collections.abc import Callable
from typing import Any, TypeVar

import pytest
from hypothesis import Phase, find, given, seed, settings
from hypothesis import strategies as st

from coordwire import CoordwireError, DecodeError, decode_request, decode_response
from coordwire.codec import Message
from coordwire.messages import (
    AlterClientQuotasRequest,
    ApiVersionsResponse,
    FetchRequest,
    HeartbeatRequest,
    HeartbeatResponse,
    JoinGroupRequest,
    JoinGroupResponse,
    LeaderChangeMessage,
    RequestHeader,
    StreamsGroupHeartbeatRequest,
)
from coordwire.messages.fetch import ReplicaState
from coordwire.messages.join_group import JoinGroupRequestProtocol
from coordwire.records import batches
from coordwire.testing import strategies

FEW = settings(max_examples=30, database=None)
SEEDS = 20
M = TypeVar("M")


@FEW
@given(st.data(), strategies.versions_of(JoinGroupRequest))
def test_messages_encode_and_come_back(data: st.DataObject, version: int) -> None:
    message = data.draw(strategies.messages(JoinGroupRequest, version=version))
    assert version in JoinGroupRequest.versions
    assert JoinGroupRequest.decode(message.encode(version=version), version=version) == message


@FEW
@given(strategies.versioned(JoinGroupRequest, HeartbeatResponse))
def test_versioned_messages_encode_in_their_version(
    drawn: strategies.Versioned[JoinGroupRequest | HeartbeatResponse],
) -> None:
    message, version = drawn
    assert type(message).decode(message.encode(version=version), version=version) == message


def test_messages_of_all_versions() -> None:
    joins = drawn(strategies.messages(JoinGroupRequest), 100)
    assert {type(join) for join in joins} == {JoinGroupRequest}
    assert {join.reason is None for join in joins} == {True, False}  # since version 8
    assert {join.rebalance_timeout_ms == -1 for join in joins} == {True, False}  # since version 1
    versions = {version for _, version in drawn(strategies.versioned(JoinGroupRequest), 60)}
    assert len(versions) > len(JoinGroupRequest.versions) // 2


def test_requests_of_some_classes_and_of_all() -> None:
    some = drawn(strategies.requests(JoinGroupRequest, HeartbeatRequest), 40)
    assert {type(request) for request in some} == {JoinGroupRequest, HeartbeatRequest}
    every = drawn(strategies.requests(), 40)
    assert {request.direction for request in every} == {"request"}
    assert len({type(request) for request in every}) > 10


def test_messages_shrink() -> None:
    version: Any
    message, version = least(strategies.versioned(JoinGroupRequest), lambda found: bool(found[0].protocols))
    assert (message, version) == (JoinGroupRequest(protocols=[JoinGroupRequestProtocol()]), 0)


@FEW
@given(strategies.messages(JoinGroupRequest, version=4))
def test_absent_fields_stay_at_their_default(message: JoinGroupRequest) -> None:
    assert message.reason is None
    assert message.group_instance_id is None
    assert message.tags is None
    assert all(protocol.tags is None for protocol in message.protocols)


@FEW
@given(strategies.messages(JoinGroupResponse, version=6))
def test_null_comes_only_where_it_may(message: JoinGroupResponse) -> None:
    assert message.protocol_name is not None


@FEW
@given(strategies.messages(JoinGroupRequest, version=9, unknown_tags=False))
def test_unknown_tags_can_be_left_out(message: JoinGroupRequest) -> None:
    assert message.tags is None


@FEW
@given(strategies.structs(JoinGroupRequestProtocol, version=9))
def test_structs(struct: JoinGroupRequestProtocol) -> None:
    JoinGroupRequest(protocols=[struct]).encode(version=9)


def drawn(strategy: st.SearchStrategy[M], count: int = 600) -> list[M]:
    """Some of what a strategy gives, from several seeds: within one, what is drawn is alike."""
    results: list[M] = []
    for number in range(SEEDS):

        @seed(number)
        @settings(max_examples=-(-count // SEEDS), database=None)
        @given(strategy)
        def gather(value: M) -> None:
            results.append(value)

        gather()
    return results


def least(strategy: st.SearchStrategy[M], wanted: Callable[[M], bool], most: int = 100) -> M:
    """What a strategy's value that is wanted shrinks to; it is one of the first `most`."""
    phases = (Phase.generate, Phase.shrink)
    few = settings(database=None, derandomize=True, phases=phases, max_examples=most)
    return find(strategy, wanted, settings=few)


@pytest.mark.slow
def test_what_is_rare_is_there() -> None:
    joins = drawn(strategies.messages(JoinGroupRequest, version=9))
    assert {join.reason is None for join in joins} == {True, False}
    assert {join.tags is None for join in joins} == {True, False}
    assert any(protocol.tags for join in joins for protocol in join.protocols)
    assert any(len(join.group_id.encode()) > 127 for join in joins)
    fetches = drawn(strategies.messages(FetchRequest, version=17))
    assert {fetch.cluster_id is None for fetch in fetches} == {True, False}
    assert {fetch.replica_state == ReplicaState() for fetch in fetches} == {True, False}
    streams = drawn(strategies.messages(StreamsGroupHeartbeatRequest, version=0))
    assert any(stream.topology and stream.topology.subtopologies for stream in streams)
    assert any(stream.topology is None for stream in streams)


@pytest.mark.slow
@pytest.mark.parametrize("nan", [True, False])
def test_nan_is_configurable(nan: bool) -> None:
    quotas = drawn(strategies.messages(AlterClientQuotasRequest, version=1, nan=nan), 400)
    ratios = [op.value for message in quotas for entry in message.entries for op in entry.ops]
    assert any(map(math.isnan, ratios)) == nan


@FEW
@given(strategies.frames(HeartbeatRequest))
def test_request_frames(raw: bytes) -> None:
    frame = decode_request(raw)
    assert isinstance(frame.message, HeartbeatRequest)


@FEW
@given(strategies.frames(HeartbeatResponse, version=4), strategies.frames(ApiVersionsResponse, version=3))
def test_response_frames(raw: bytes, versions: bytes) -> None:
    assert isinstance(decode_response(raw, api_key=12, version=4).message, HeartbeatResponse)
    assert len(versions) > 8


def test_frames_of_anything() -> None:
    frames = drawn(strategies.frames(), 60)
    assert all(int.from_bytes(raw[:4], "big") == len(raw) - 4 for raw in frames)
    assert len(set(frames)) > 40


def test_hostile_bytes_are_both_refused_and_accepted() -> None:
    verdicts: set[str] = set()
    for data in drawn(strategies.hostile_bytes(JoinGroupRequest, version=9), 1000):
        try:
            JoinGroupRequest.decode(data, version=9)
        except DecodeError as error:
            verdicts.add(error.reason)
        else:
            verdicts.add("accepted")
    for words in ("accepted", "needs", "claimed", "over-long", "UTF-8", "after tag", "trailing", "null"):
        assert any(words in verdict for verdict in verdicts), words


def test_what_can_not_be_asked_for() -> None:
    for ask in (strategies.messages, strategies.hostile_bytes, strategies.frames):
        with pytest.raises(ValueError, match="HeartbeatRequest has no version 99"):
            ask(HeartbeatRequest, version=99)
    with pytest.raises(ValueError, match="neither a request nor a response"):
        strategies.frames(RequestHeader)
    with pytest.raises(ValueError, match="neither"):
        strategies.frames(LeaderChangeMessage, version=0)
    with pytest.raises(ValueError, match="class too"):
        strategies.frames(version=1)
    with pytest.raises(ValueError, match="HeartbeatResponse is not a request"):
        strategies.requests(HeartbeatResponse)  # type: ignore[type-var]
    with pytest.raises(ValueError, match="at least one class"):
        strategies.versioned()


def test_without_hypothesis_the_error_says_what_to_install() -> None:
    script = (
        "import sys; sys.modules['hypothesis'] = None\n"
        "import coordwire.testing\n"
        "try: import coordwire.testing.strategies\n"
        "except ImportError as error: print(error)\n"
    )
    result = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    assert "coordwire[hypothesis]" in result.stdout


def test_what_is_drawn_is_printed_with_its_version() -> None:
    @settings(FEW, phases=[Phase.generate, Phase.shrink])
    @given(strategies.versioned(JoinGroupRequest))
    def older_than_5(drawn: strategies.Versioned[JoinGroupRequest]) -> None:
        assert drawn.version < 5

    with pytest.raises(AssertionError) as error_info:
        older_than_5()
    assert re.search(r"\b5,?\s*\)", "".join(error_info.value.__notes__))


@pytest.mark.slow
@pytest.mark.parametrize("cls", [JoinGroupRequest, HeartbeatResponse])
def test_hostile_frames_are_read_or_refused(cls: type[Message]) -> None:
    seen = set()

    @settings(max_examples=500, database=None)
    @given(strategies.hostile_frames(cls, version=4))
    def read(data: bytes) -> None:
        try:
            if cls.direction == "request":
                decode_request(data)
            else:
                decode_response(data, api_key=12, version=4)
            seen.add("whole")
        except DecodeError as error:
            seen.add(type(error).__name__)

    read()
    assert {"whole", "Malformed", "Truncated"} <= seen


@pytest.mark.slow
@pytest.mark.parametrize("magic", [0, 1, 2])
def test_hostile_record_sets_get_past_the_checksum(magic: int) -> None:
    reasons = set()

    @settings(max_examples=500, database=None)
    @given(strategies.hostile_record_sets(magics=(magic,)))
    def read(data: bytes) -> None:
        try:
            for batch in batches(data):
                list(batch)
            reasons.add("valid")
        except CoordwireError as error:
            reasons.add(error.reason)

    read()
    past = {
        reason
        for reason in reasons
        if "CRC" not in reason and "length of" not in reason and reason != "valid"
    }
    assert "valid" in reasons
    assert len(past) > 2
