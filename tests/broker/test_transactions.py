"""Transactions on a cluster without sockets: what readers see, what is refused, restarts, what tools ask."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from coordwire.broker.cluster.cluster_state import ClusterState
from coordwire.broker.cluster.disk_logs import DiskLogs, open_cluster
from coordwire.broker.settings.broker_config import BrokerConfig
from coordwire.coordinator.transactions import TransactionConfig
from coordwire.enums import ErrorCode
from coordwire.messages import (
    AddPartitionsToTxnRequest,
    DescribeProducersRequest,
    DescribeTransactionsRequest,
    FindCoordinatorRequest,
    InitProducerIdRequest,
    ListTransactionsRequest,
    ListTransactionsResponse,
    MetadataRequest,
    ProduceRequest,
    WriteTxnMarkersRequest,
    add_partitions_to_txn,
    describe_producers,
    produce,
    write_txn_markers,
)
from coordwire.segments import Segment
from coordwire.segments.segment import logs
from tests.broker.core import Core, batch
from tests.broker.transaction_client import TransactionClient, committed_offset, read

TOPICS = {"orders": 2}
FEW = {"offsets_partitions": 2, "transactions_partitions": 2}


def core_with(**config: Any) -> Core:
    return Core(topics=TOPICS, **(FEW | config))


def described(core: Core, name: str = "t", node: int = 1) -> Any:
    request = DescribeTransactionsRequest(transactional_ids=[name])
    return core.ask(request, 0, node).transaction_states[0]


@pytest.mark.parametrize("old", [False, True])
def test_committed_records_are_read_when_they_are_committed_and_aborted_ones_never(old: bool) -> None:
    core = core_with()
    client = TransactionClient(core, old=old)
    assert client.init() == 0
    expected: list[bytes] = []
    for number in range(6):
        value = b"%d" % number
        if old:
            assert client.add("orders", 0) == client.add("orders", 1) == 0
        start = read(core)[1]
        assert client.produce(value) == client.produce(value) == client.produce(value, index=1) == 0
        assert read(core) == (expected, start)
        assert client.end(number % 2 == 0) == 0
        if number % 2 == 0:
            expected += [value, value]
        assert read(core) == (expected, start + 3)
    assert read(core, index=1)[0] == expected[::2]
    assert client.epoch == (0 if old else 6)


@pytest.mark.parametrize("old", [False, True])
def test_offsets_of_a_transaction_hold_when_it_commits(old: bool) -> None:
    core = core_with()
    client = TransactionClient(core, old=old)
    client.init()
    assert client.commit_offset(5) == 0
    assert committed_offset(core) == (-1, 0)
    assert committed_offset(core, stable=True) == (-1, ErrorCode.UNSTABLE_OFFSET_COMMIT)
    assert client.end() == 0
    assert committed_offset(core, stable=True) == (5, 0)
    assert client.commit_offset(9) == client.end(False) == 0
    assert committed_offset(core, stable=True) == (5, 0)


def test_the_older_producer_of_an_id_is_fenced() -> None:
    core = core_with()
    first, second = TransactionClient(core), TransactionClient(core)
    first.init()
    assert first.produce(b"lost") == 0
    assert second.init() == ErrorCode.CONCURRENT_TRANSACTIONS  # the transaction is aborted by this
    assert second.init() == 0
    assert read(core) == ([], 2)
    assert first.produce(b"late") == ErrorCode.INVALID_PRODUCER_EPOCH
    assert first.produce(b"late", index=1) == ErrorCode.INVALID_PRODUCER_EPOCH
    assert first.commit_offset(1) == ErrorCode.INVALID_PRODUCER_EPOCH
    assert first.end() == ErrorCode.PRODUCER_FENCED
    first.old = True
    assert first.add("orders", 0) == ErrorCode.PRODUCER_FENCED
    assert second.produce(b"kept") == second.end() == 0
    assert read(core)[0] == [b"kept"]


def test_a_replaced_epoch_is_refused_before_the_coordinator_is_asked() -> None:
    """With another transactional id: the partition's leader knows the producer in a newer epoch."""
    core = core_with()
    first, other_client = TransactionClient(core), TransactionClient(core, "u")
    for client in (first, other_client):
        client.init()
    old = first.epoch
    for value in (b"one", b"two"):
        assert first.produce(value) == first.commit_offset(1) == first.end() == 0
    other_client.producer_id, other_client.epoch = first.producer_id, old
    assert other_client.produce(b"late") == other_client.commit_offset(2) == ErrorCode.INVALID_PRODUCER_EPOCH
    assert other_client.produce(b"late", index=1) == ErrorCode.INVALID_PRODUCER_ID_MAPPING
    other_client.epoch = first.epoch
    assert (
        other_client.produce(b"late")
        == other_client.commit_offset(2)
        == ErrorCode.INVALID_PRODUCER_ID_MAPPING
    )
    assert read(core)[0] == [b"one", b"two"]


def test_clients_that_do_not_know_an_error_get_an_older_one() -> None:
    core = core_with()
    first = TransactionClient(core)
    first.init()
    TransactionClient(core).init()
    request = InitProducerIdRequest(
        transactional_id="t", transaction_timeout_ms=1, producer_id=first.producer_id, producer_epoch=5
    )
    old, fenced = ErrorCode.INVALID_PRODUCER_EPOCH, ErrorCode.PRODUCER_FENCED
    assert [core.ask(request, version).error_code for version in (3, 4)] == [old, fenced]
    topic = add_partitions_to_txn.AddPartitionsToTxnTopic(name="orders", partitions=[0])
    added = AddPartitionsToTxnRequest(
        v3_and_below_transactional_id="t",
        v3_and_below_producer_id=first.producer_id,
        v3_and_below_producer_epoch=first.epoch,
        v3_and_below_topics=[topic],
    )
    for version, expected in ((1, old), (2, fenced)):
        (result,) = core.ask(added, version).results_by_topic_v3_and_below
        assert result.results_by_partition[0].partition_error_code == expected
    half = InitProducerIdRequest(transactional_id="t", transaction_timeout_ms=1, producer_id=1)
    assert core.ask(half, 5).error_code == ErrorCode.INVALID_REQUEST


def test_records_outside_of_a_transaction_are_refused() -> None:
    core = core_with()
    client = TransactionClient(core, old=True)
    client.init()
    assert client.produce(b"x") == ErrorCode.TRANSACTION_ABORTABLE  # the partition was not added
    assert client.add("missing", 0) == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    client.add("orders", 0)
    assert client.produce(b"x") == 0
    assert client.produce(b"y", transactional=False) == ErrorCode.INVALID_TXN_STATE
    other_client = TransactionClient(core, "u")
    other_client.producer_id, other_client.epoch = client.producer_id, client.epoch
    assert other_client.produce(b"x", index=1) == ErrorCode.INVALID_PRODUCER_ID_MAPPING
    other_client.name = ""
    assert other_client.produce(b"x", index=1) == ErrorCode.INVALID_TXN_STATE
    newer = TransactionClient(core, "v")
    newer.init()
    assert newer.produce(b"x", base_sequence=3) == ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER


def test_partitions_of_one_request_are_one_record() -> None:
    core = core_with(transactions_partitions=1)
    client = TransactionClient(core)
    client.init()
    state = core.cluster.transactions_topic().partitions[0].log
    before = state.end_offset
    data = batch(b"x", producer_id=client.producer_id, producer_epoch=0, base_sequence=0, transactional=True)
    parts = [produce.PartitionProduceData(index=index, records=data) for index in (0, 1, 2)]
    request = ProduceRequest(
        transactional_id="t",
        acks=-1,
        timeout_ms=1_000,
        topic_data=[
            produce.TopicProduceData(name=name, partition_data=parts) for name in ("orders", "missing")
        ],
    )
    codes = [
        [part.error_code for part in topic.partition_responses] for topic in core.ask(request, 12).responses
    ]
    unknown = ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    assert codes == [[0, 0, unknown], [unknown] * 3]
    assert state.end_offset == before + 1
    assert described(core).topics[0].partitions == [0, 1]


def test_what_is_prepared_can_be_seen() -> None:
    """With a delay, markers come after EndTxn's answer, and the next transaction has to wait for them."""
    core = core_with(marker_delay_ms=50)
    client = TransactionClient(core)
    client.init()
    assert client.produce(b"x") == client.commit_offset(3) == client.end() == 0
    assert described(core).transaction_state == "PrepareCommit"
    assert read(core) == ([], 0)
    assert client.produce(b"y") == ErrorCode.CONCURRENT_TRANSACTIONS
    assert client.init() == ErrorCode.CONCURRENT_TRANSACTIONS
    client.old = True
    assert client.produce(b"y") == ErrorCode.NOT_ENOUGH_REPLICAS  # which an older producer tries again
    assert core.cluster.next_deadline() == core.now + 50
    core.pass_time(50)
    assert described(core).transaction_state == "CompleteCommit"
    assert read(core) == ([b"x"], 2)
    assert committed_offset(core, stable=True) == (3, 0)


def test_a_transaction_straight_after_another_meets_it() -> None:
    """By default, as on a Kafka broker."""
    core = core_with(marker_delay_ms=BrokerConfig().marker_delay_ms)
    client = TransactionClient(core)
    client.init()
    assert client.produce(b"x") == client.end() == 0
    assert client.add("orders", 0) == ErrorCode.CONCURRENT_TRANSACTIONS
    assert described(core).transaction_state == "PrepareCommit"
    core.pass_time(BrokerConfig.kafka().marker_delay_ms)
    assert client.add("orders", 0) == 0


def test_a_transaction_that_is_over_its_time_is_aborted() -> None:
    core = core_with()
    client = TransactionClient(core, timeout=5_000)
    client.init()
    client.produce(b"x")
    core.pass_time(5_000)
    assert read(core) == ([], 0)
    core.pass_time(1)
    assert read(core) == ([], 2)
    assert described(core).transaction_state == "CompleteAbort"
    assert client.produce(b"y") == ErrorCode.INVALID_PRODUCER_EPOCH
    assert client.end() == ErrorCode.INVALID_TXN_STATE  # a retry, as far as its epoch says


def test_a_topic_that_is_deleted_does_not_hold_up_its_transactions() -> None:
    core = core_with()
    core.cluster.create_topic("gone", 1)
    client = TransactionClient(core)
    client.init()
    assert client.produce(b"x", "gone") == client.produce(b"x") == 0
    core.cluster.delete_topic(core.cluster.topics["gone"])
    assert client.end() == 0
    assert described(core).transaction_state == "CompleteCommit"


def test_each_node_answers_for_its_own_ids() -> None:
    core = Core(topics=TOPICS, nodes=3)
    for number in range(9):
        name = f"t{number}"
        request = FindCoordinatorRequest(key_type=1, coordinator_keys=[name])
        (coordinator,) = core.ask(request, 4).coordinators
        assert coordinator.error_code == 0
        init = InitProducerIdRequest(transactional_id=name, transaction_timeout_ms=1)
        for node in (1, 2, 3):
            error = 0 if node == coordinator.node_id else ErrorCode.NOT_COORDINATOR
            assert core.ask(init, 5, node).error_code == error
            assert described(core, name, node).error_code == error
            states = core.ask(ListTransactionsRequest(), 1, node).transaction_states
            assert (name in [state.transactional_id for state in states]) is not error


def test_a_slow_pattern_is_matched_with_transactional_ids_in_turns() -> None:
    core = core_with()
    long = "ab" * 2_000
    for name in (long, "idle"):
        TransactionClient(core, name).init()
    slow = ListTransactionsRequest(transactional_id_pattern="(a|b)*a(a|b){400}|idle")
    answers, _ = core.begin(slow, 2)
    turns = 0
    while not answers:
        turns += 1
        assert core.ask(MetadataRequest(topics=[]), 9).error_code == 0  # another request, between
        core.pass_time(1)
    assert turns > 5
    (answer,) = answers
    assert isinstance(answer, ListTransactionsResponse)
    assert sorted(state.transactional_id for state in answer.transaction_states) == ["idle"]
    answers, run = core.begin(slow, 2)
    run.close()  # the client goes away
    core.pass_time(1_000)
    assert not answers


def test_what_tools_ask() -> None:
    core = core_with()
    client, idle = TransactionClient(core), TransactionClient(core, "idle")
    client.init()
    idle.init()
    client.produce(b"x", index=1)
    client.commit_offset(1)
    description = described(core)
    assert (description.transaction_state, description.producer_id, description.producer_epoch) == (
        "Ongoing", client.producer_id, 0,
    )  # fmt: skip
    assert [(topic.topic, len(topic.partitions)) for topic in description.topics] == [
        ("__consumer_offsets", 1), ("orders", 1),
    ]  # fmt: skip
    assert described(core, "none").error_code == ErrorCode.TRANSACTIONAL_ID_NOT_FOUND
    assert described(core, "").error_code == ErrorCode.INVALID_REQUEST
    core.pass_time(10)

    def listed(version: int = 2, **filters: Any) -> list[str]:
        answer = core.ask(ListTransactionsRequest(**filters), version)
        return sorted(state.transactional_id for state in answer.transaction_states)

    assert listed() == ["idle", "t"]
    assert listed(state_filters=["Ongoing"]) == listed(producer_id_filters=[client.producer_id]) == ["t"]
    assert listed(state_filters=["Odd"]) == []
    assert listed(duration_filter=10) == ["idle"]  # an id without a transaction has the start -1
    assert listed(transactional_id_pattern="id.*") == ["idle"]
    answer = core.ask(ListTransactionsRequest(state_filters=["Odd"], transactional_id_pattern="("), 2)
    assert answer.error_code == ErrorCode.INVALID_REGULAR_EXPRESSION
    assert answer.unknown_state_filters == ["Odd"]
    topic = describe_producers.TopicRequest(name="orders", partition_indexes=[0, 1, 2])
    parts = core.ask(DescribeProducersRequest(topics=[topic]), 0).topics[0].partitions
    assert [part.error_code for part in parts] == [0, 0, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION]
    assert [
        (producer.producer_id, producer.current_txn_start_offset) for producer in parts[1].active_producers
    ] == [(client.producer_id, 0)]


def test_markers_with_an_epoch_that_was_replaced_are_refused() -> None:
    core = core_with()
    client = TransactionClient(core)
    client.init()
    client.init()
    assert client.epoch == 1
    client.produce(b"x")

    def write(epoch: int, coordinator_epoch: int, version: int) -> int:
        marker = write_txn_markers.WritableTxnMarker(
            producer_id=client.producer_id,
            producer_epoch=epoch,
            transaction_result=False,
            coordinator_epoch=coordinator_epoch,
            transaction_version=version,
            topics=[write_txn_markers.WritableTxnMarkerTopic(name="orders", partition_indexes=[0])],
        )
        (result,) = core.ask(WriteTxnMarkersRequest(markers=[marker]), 2).markers
        return result.topics[0].partitions[0].error_code

    fenced = ErrorCode.TRANSACTION_COORDINATOR_FENCED
    assert write(-1, 0, 0) == ErrorCode.UNKNOWN_SERVER_ERROR
    assert write(0, 0, 0) == write(1, 0, 2) == ErrorCode.INVALID_PRODUCER_EPOCH
    assert [write(1, 3, 0), write(1, 2, 0), write(2, 3, 2), write(2, 3, 2)] == [0, fenced, 0, 0]
    assert read(core) == ([], 4)


class DiskCore(Core):
    """A cluster on disk."""

    def __init__(self, path: Path, now: int = 1_700_000_000_000, **config: Any) -> None:
        self.now = now
        options: Any = {"marker_delay_ms": 0} | FEW | config
        self.cluster: ClusterState = open_cluster(
            path, clock=lambda: self.now, config=BrokerConfig(**options), nodes=(1,)
        )
        if "orders" not in self.cluster.topics:
            self.cluster.create_topic("orders", 2)

    def stop(self, kill: bool) -> None:
        assert isinstance(self.cluster.logs, DiskLogs)
        if kill:
            self.cluster.logs.abandon()
        else:
            self.cluster.close()


@pytest.mark.parametrize("kill", [False, True])
def test_a_restart_goes_on_with_a_transaction_and_completes_one_that_was_prepared(
    tmp_path: Path, kill: bool
) -> None:
    core = DiskCore(tmp_path, marker_delay_ms=1_000)
    going, decided = TransactionClient(core), TransactionClient(core, "u")
    going.init()
    decided.init()
    assert decided.produce(b"decided") == going.produce(b"going") == decided.commit_offset(4) == 0
    assert decided.end() == 0
    assert described(core, "u").transaction_state == "PrepareCommit"
    core.stop(kill)
    core = DiskCore(tmp_path)
    assert described(core, "u").transaction_state == "CompleteCommit"
    assert read(core) == ([b"decided"], 1)
    assert committed_offset(core, stable=True) == (4, 0)
    going.core = decided.core = core
    assert going.produce(b"on") == going.end() == 0
    assert read(core)[0] == [b"decided", b"going", b"on"]
    assert decided.produce(b"next") == decided.end(False) == 0
    core.stop(kill)
    core = DiskCore(tmp_path)
    assert read(core)[0] == [b"decided", b"going", b"on"]
    fresh = TransactionClient(core)
    assert fresh.init() == 0
    assert (fresh.producer_id, fresh.epoch) == (going.producer_id, going.epoch + 1)
    core.stop(False)
    for path in logs(tmp_path):
        with Segment(path) as segment:
            assert list(segment.verify()) == []


def test_a_transaction_times_out_after_a_restart_without_a_request(tmp_path: Path) -> None:
    core = DiskCore(tmp_path)
    client = TransactionClient(core, timeout=1_000)
    client.init()
    client.produce(b"x")
    core.stop(True)
    core = DiskCore(tmp_path, core.now + 5_000, transactions=TransactionConfig(abort_interval_ms=10))
    due = core.cluster.next_deadline()
    assert due is not None
    core.pass_time(due - core.now)
    assert read(core) == ([], 2)
    core.stop(False)
