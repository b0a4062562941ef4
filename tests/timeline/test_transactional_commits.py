"""Commits in transactions whose topics have ids instead of names (TxnOffsetCommit v6, KIP-1319)."""

from __future__ import annotations

from uuid import UUID

import pytest

from coordwire.messages import (
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
from coordwire.timeline.events import OffsetCommitted
from tests.timeline.script import Script

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
