"""Offsets in transactions: invisible until the marker, gone after an abort, held back for who asks for it."""

from __future__ import annotations

from uuid import UUID

import pytest

from coordwire.coordinator import Append, LogEntry, Shard, TopicImage, TopicsImage, log_entries
from coordwire.enums import ErrorCode
from coordwire.messages import (
    DeleteGroupsRequest,
    OffsetDeleteRequest,
    OffsetFetchRequest,
    TxnOffsetCommitRequest,
)
from coordwire.messages.offset_delete import OffsetDeleteRequestPartition, OffsetDeleteRequestTopic
from coordwire.messages.offset_fetch import OffsetFetchRequestGroup, OffsetFetchRequestTopics
from coordwire.messages.txn_offset_commit import TxnOffsetCommitRequestPartition, TxnOffsetCommitRequestTopic
from coordwire.records import Record, RecordBatch, batches, encode_batch
from tests.coordinator.test_shard import ORDERS, Bench, commit, committed

UNSTABLE = int(ErrorCode.UNSTABLE_OFFSET_COMMIT)
HOUR = 3_600_000


class Bank(Bench):
    """A bench whose log keeps batches, as a broker's does."""

    def __init__(self) -> None:
        super().__init__()
        self.batches: list[Append] = []

    def confirm(self) -> None:
        self.batches += self.appends
        super().confirm()

    def end(self, producer: int, *, committed: bool, epoch: int = 0) -> int:
        ticket = self.shard.complete_transaction(producer, epoch, committed=committed, now=self.now)
        self.take()
        self.confirm()
        return self.ended[ticket]

    def entries(self) -> list[LogEntry]:
        """The log as a broker reads it back from its batches."""
        return list(log_entries(batch for append in self.batches for batch in written(append)))


def written(append: Append) -> list[RecordBatch]:
    records = [Record(key=key, value=value) for key, value in append.encoded()]
    data = encode_batch(
        records, base_offset=append.base_offset, producer_id=append.producer_id,
        producer_epoch=append.producer_epoch, base_sequence=-1, transactional=append.producer_id != -1,
        control=append.marker is not None,
    )  # fmt: skip
    return [batch for batch in batches(data) if isinstance(batch, RecordBatch)]


def transactional(
    offset: int, *, producer: int = 7, epoch: int = 0, partition: int = 1
) -> TxnOffsetCommitRequest:
    committed = TxnOffsetCommitRequestPartition(
        partition_index=partition, committed_offset=offset, committed_metadata=""
    )
    return TxnOffsetCommitRequest(
        transactional_id="tx", group_id="simple", producer_id=producer, producer_epoch=epoch,
        topics=[TxnOffsetCommitRequestTopic(name="orders", partitions=[committed])],
    )  # fmt: skip


def sent(bench: Bench, request: TxnOffsetCommitRequest, version: int = 3) -> int:
    code: int = bench.ask(request, version).topics[0].partitions[0].error_code
    return code


def stable_codes(bench: Bench) -> dict[int, int]:
    """Each partition's error for a client that reads stable offsets only."""
    topic = OffsetFetchRequestTopics(name="orders", partition_indexes=[0, 1])
    group = OffsetFetchRequestGroup(group_id="simple", topics=[topic])
    answer = bench.ask(OffsetFetchRequest(groups=[group], require_stable=True), 8).groups[0]
    return {
        partition.partition_index: partition.error_code
        for topic in answer.topics
        for partition in topic.partitions
    }


def test_offsets_of_a_transaction_are_read_after_its_commit_only() -> None:
    bank = Bank()
    bank.ask(commit(1), 8)
    assert sent(bank, transactional(5)) == 0
    assert committed(bank) == {1: 1}
    assert stable_codes(bank) == {0: 0, 1: UNSTABLE}
    assert bank.end(7, committed=True) == 0
    assert committed(bank) == {1: 5}
    assert stable_codes(bank) == {0: 0, 1: 0}


def test_an_aborted_transaction_leaves_nothing() -> None:
    bank = Bank()
    bank.ask(commit(1), 8)
    sent(bank, transactional(5))
    bank.end(7, committed=False)
    assert committed(bank) == {1: 1}
    assert stable_codes(bank) == {0: 0, 1: 0}


def test_a_commit_outside_that_came_later_holds() -> None:
    bank = Bank()
    sent(bank, transactional(5))
    bank.ask(commit(9), 8)
    bank.end(7, committed=True)
    assert committed(bank) == {1: 9}


def test_the_batch_says_whose_transaction_it_is() -> None:
    bank = Bank()
    sent(bank, transactional(5, producer=7, epoch=2))
    bank.end(7, committed=True, epoch=2)
    assert [(entry.producer_id, entry.producer_epoch, entry.end_offset) for entry in bank.batches] == [
        (7, 2, 1),
        (7, 2, 2),
    ]
    (batch,) = written(bank.batches[1])
    assert (batch.is_control, batch.transactional) == (True, True)


def test_a_marker_that_could_not_be_written_ends_nothing() -> None:
    bank = Bank()
    sent(bank, transactional(5))
    ticket = bank.shard.complete_transaction(7, 0, committed=True, now=bank.now)
    bank.take()
    bank.shard.failed(bank.appends.pop().number, int(ErrorCode.NOT_ENOUGH_REPLICAS), now=bank.now)
    bank.take()
    assert bank.ended[ticket] == ErrorCode.NOT_ENOUGH_REPLICAS
    assert (committed(bank), stable_codes(bank)) == ({}, {0: 0, 1: UNSTABLE})
    bank.end(7, committed=True)
    assert committed(bank) == {1: 5}


def test_a_transaction_without_offsets_here_ends_too() -> None:
    bank = Bank()
    assert [bank.end(99, committed=committed) for committed in (True, False)] == [0, 0]
    assert len(bank.batches) == 2


@pytest.mark.parametrize(("producer", "epoch"), [(7, -1), (-1, 0)])
def test_there_is_no_marker_without_a_producer(producer: int, epoch: int) -> None:
    bank = Bank()
    assert bank.end(producer, committed=True, epoch=epoch) == ErrorCode.UNKNOWN_SERVER_ERROR
    assert bank.batches == []


def test_a_marker_needs_the_partition() -> None:
    shard = Shard()
    shard.complete_transaction(7, 0, committed=True, now=0)
    shard.begin_loading()
    shard.complete_transaction(7, 0, committed=True, now=0)
    codes = [effect.error_code for effect in shard.effects()]  # type: ignore[union-attr]
    assert codes == [ErrorCode.NOT_COORDINATOR, ErrorCode.COORDINATOR_LOAD_IN_PROGRESS]


def test_a_loaded_log_goes_on_in_the_middle_of_a_transaction() -> None:
    bank = Bank()
    sent(bank, transactional(4, producer=6))
    bank.end(6, committed=False)
    sent(bank, transactional(3, producer=6, partition=0))
    bank.end(6, committed=True)
    sent(bank, transactional(5))
    other = Bank()
    other.shard.load(bank.entries(), now=other.now)
    assert committed(other) == {0: 3}
    assert stable_codes(other) == {0: 0, 1: UNSTABLE}
    other.end(7, committed=True)
    assert committed(other) == {0: 3, 1: 5}


def test_deleting_an_offset_deletes_the_pending_one() -> None:
    bank = Bank()
    sent(bank, transactional(5))
    partition = OffsetDeleteRequestPartition(partition_index=1)
    topic = OffsetDeleteRequestTopic(name="orders", partitions=[partition])
    assert bank.ask(OffsetDeleteRequest(group_id="simple", topics=[topic]), 0).error_code == 0
    assert stable_codes(bank) == {0: 0, 1: 0}
    bank.end(7, committed=True)
    assert committed(bank) == {}


def test_deleting_a_group_deletes_its_pending_offsets() -> None:
    bank = Bank()
    sent(bank, transactional(5))
    assert bank.ask(DeleteGroupsRequest(groups_names=["simple"]), 2).results[0].error_code == 0
    bank.end(7, committed=True)
    assert committed(bank) == {}
    assert "simple" not in bank.shard.groups


def test_a_deleted_topic_takes_its_pending_offsets_with_it() -> None:
    bank = Bank()
    sent(bank, transactional(5))
    bank.shard.set_topics(TopicsImage([TopicImage(UUID(int=8), "payments", 1)]), now=bank.now)
    bank.take()
    bank.confirm()
    bank.shard.set_topics(TopicsImage([ORDERS]), now=bank.now)
    bank.end(7, committed=True)
    assert committed(bank) == {}


def test_expiry_leaves_what_a_transaction_may_still_commit() -> None:
    bank = Bank()
    bank.ask(commit(1), 8)
    sent(bank, transactional(5))
    bank.advance(8 * 24 * HOUR)
    assert committed(bank) == {1: 1}
    bank.end(7, committed=False)
    bank.advance(9 * 24 * HOUR)
    assert committed(bank) == {}


@pytest.mark.parametrize("version", range(7))
def test_every_version_commits(version: int) -> None:
    bank = Bank()
    request = transactional(5)
    if version == 6:
        request.topics[0].name, request.topics[0].topic_id = "", ORDERS.id
    assert sent(bank, request, version) == 0
    bank.end(7, committed=True)
    assert committed(bank) == {1: 5}


def test_a_topic_id_that_is_unknown_is_refused() -> None:
    request = transactional(5)
    request.topics[0].name, request.topics[0].topic_id = "", UUID(int=99)
    assert sent(Bank(), request, 6) == ErrorCode.UNKNOWN_TOPIC_ID
