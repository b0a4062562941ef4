"""Commits in transactions whose topics have ids instead of names (TxnOffsetCommit v6, KIP-1319)."""

from __future__ import annotations

from uuid import UUID

import pytest

from coordwire.messages import (
    AddOffsetsToTxnRequest,
    AddOffsetsToTxnResponse,
    InitProducerIdRequest,
    InitProducerIdResponse,
    MetadataRequest,
    MetadataResponse,
    TxnOffsetCommitRequest,
    TxnOffsetCommitResponse,
)
from coordwire.messages.metadata import MetadataResponseTopic
from coordwire.messages.txn_offset_commit import (
    TxnOffsetCommitRequestPartition,
    TxnOffsetCommitRequestTopic,
    TxnOffsetCommitResponsePartition,
    TxnOffsetCommitResponseTopic,
)
from coordwire.timeline.events import OffsetCommitted, ProducerFenced
from coordwire.timeline.story import story_lines
from tests.timeline.script import Script, only

TOPIC = UUID("6f1a8c54-0a0b-4c4d-8e8f-000000000001")


@pytest.mark.parametrize(("told", "name"), [(True, "orders"), (False, "bxqMVAoLTE2OjwAAAAAAAQ")])
def test_a_topic_id_is_told_by_its_name(told: bool, name: str) -> None:
    script = Script()
    if told:
        topics = [MetadataResponseTopic(name="orders", topic_id=TOPIC)]
        script.answer(script.ask(MetadataRequest(), "p"), MetadataResponse(topics=topics))
    asked = [TxnOffsetCommitRequestPartition(partition_index=n, committed_offset=5 + n) for n in (0, 1)]
    request = TxnOffsetCommitRequest(
        transactional_id="x", group_id="g", generation_id_or_member_epoch=4, member_id="m",
        group_instance_id=None, topics=[TxnOffsetCommitRequestTopic(topic_id=TOPIC, partitions=asked)],
    )  # fmt: skip
    request = TxnOffsetCommitRequest.decode(request.encode(version=6), version=6)
    codes = [TxnOffsetCommitResponsePartition(partition_index=n, error_code=113 * n) for n in (1, 0)]
    answer = TxnOffsetCommitResponse(topics=[TxnOffsetCommitResponseTopic(topic_id=TOPIC, partitions=codes)])
    script.answer(script.ask(request, "p"), answer)
    events = [event for event in script.events() if isinstance(event, OffsetCommitted)]
    assert [(event.topic, event.partition, event.offset, event.error_code) for event in events] == [
        (name, 0, 5, 0),
        (name, 1, 6, 113),
    ]
    assert {(event.generation, event.member_id, event.transactional_id) for event in events} == {
        (4, "m", "x")
    }


# --- producers whose transactional id another one has ---

INVALID_EPOCH, FENCED = 47, 90


def init(script: Script, client: str, epoch: int) -> None:
    """InitProducerId, answered with this epoch."""
    answer = InitProducerIdResponse(producer_id=7, producer_epoch=epoch)
    script.answer(script.ask(InitProducerIdRequest(transactional_id="x"), client), answer)
    script.now += 1


def commit(script: Script, client: str, epoch: int, code: int) -> None:
    """TxnOffsetCommit in the group g, answered with this code."""
    part = TxnOffsetCommitRequestPartition(partition_index=0, committed_offset=5)
    request = TxnOffsetCommitRequest(
        transactional_id="x", group_id="g", producer_id=7, producer_epoch=epoch, member_id="m",
        generation_id_or_member_epoch=1, topics=[TxnOffsetCommitRequestTopic(name="t", partitions=[part])],
    )  # fmt: skip
    parts = [TxnOffsetCommitResponsePartition(partition_index=0, error_code=code)]
    answer = TxnOffsetCommitResponse(topics=[TxnOffsetCommitResponseTopic(name="t", partitions=parts)])
    script.answer(script.ask(request, client, version=5), answer)
    script.now += 1


@pytest.mark.parametrize("code", [INVALID_EPOCH, FENCED])
def test_who_took_the_transactional_id_of_a_fenced_producer_is_named(code: int) -> None:
    script = Script()
    init(script, "old", 0)
    commit(script, "old", 0, 0)
    init(script, "new", 1)
    for _ in range(3):
        commit(script, "old", 0, code)
    commit(script, "new", 1, 0)
    events = script.events()
    (event,) = only(events, ProducerFenced)
    assert (event.group, event.client_id, event.member_id, event.by_client_id) == ("g", "old", "m", "new")
    text = "\n".join(story_lines(events))
    assert "old was fenced: new has the transactional id x since 22:13:2" in text
    assert "; offsets of m are refused" in text


def test_a_producer_whose_offsets_are_not_added_is_fenced_too() -> None:
    script = Script()
    init(script, "old", 0)
    init(script, "new", 1)
    request = AddOffsetsToTxnRequest(transactional_id="x", producer_id=7, producer_epoch=0, group_id="g")
    script.answer(script.ask(request, "old"), AddOffsetsToTxnResponse(error_code=FENCED))
    (event,) = only(script.events(), ProducerFenced)
    assert (event.client_id, event.member_id, event.by_client_id) == ("old", None, "new")


@pytest.mark.parametrize(("epoch", "code"), [(1, FENCED), (0, 25), (0, 0)])
def test_a_producer_is_not_fenced_by_itself_or_for_another_reason(epoch: int, code: int) -> None:
    """With its own epoch its transaction may have been too long; 25 is of its group's member."""
    script = Script()
    init(script, "old", 0)
    init(script, "new", 1)
    commit(script, "old", epoch, code)
    assert only(script.events(), ProducerFenced) == []
