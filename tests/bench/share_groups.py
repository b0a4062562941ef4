"""`python -m tests.bench.share_groups [ROUNDS]`: records that a share group accepts, over loopback.

Strategy: `coordwire serve` in a process of its own; a member of a share group fetches 500 records at a time
and accepts the last ones with each ShareFetch, with its answers decoded but not their records. Prints the
records a second by the wall, and by a second of the server's processor. Rules: the best round; each round
reads a topic of its own.
"""

from __future__ import annotations

import sys
import time
from typing import Any
from uuid import UUID

from coordwire.messages import (
    CreateTopicsRequest,
    FindCoordinatorRequest,
    IncrementalAlterConfigsRequest,
    MetadataRequest,
    ProduceRequest,
    ShareFetchRequest,
    ShareGroupHeartbeatRequest,
)
from coordwire.messages.create_topics import CreatableTopic
from coordwire.messages.incremental_alter_configs import AlterableConfig, AlterConfigsResource
from coordwire.messages.produce import PartitionProduceData, TopicProduceData
from coordwire.messages.share_fetch import AcknowledgementBatch, FetchPartition, FetchTopic
from coordwire.records import Record, encode_batch
from tests.bench.broker import TICK, Client, Server
from tests.interop.broker import free_port

_BATCHES, _RECORDS = 200, 500
_VALUE = bytes(100)
_ACCEPT = 1
_GROUP_RESOURCE = 32


def _topic(client: Client, name: str) -> UUID:
    """A topic of one partition with all records."""
    topic = CreatableTopic(name=name, num_partitions=1, replication_factor=1)
    client.ask(CreateTopicsRequest(topics=[topic], timeout_ms=9_000), 7)
    records = [Record(timestamp=int(time.time() * 1000), value=_VALUE) for _ in range(_RECORDS)]
    part = PartitionProduceData(index=0, records=encode_batch(records, base_offset=0))
    produce = ProduceRequest(
        acks=-1, timeout_ms=9_000, topic_data=[TopicProduceData(name=name, partition_data=[part])]
    )
    for _ in range(_BATCHES):
        client.ask(produce, 9)
    listed: Any = client.ask(MetadataRequest(topics=None), 12)
    topic_id: UUID = next(topic.topic_id for topic in listed.topics if topic.name == name)
    return topic_id


def _join(client: Client, group: str, topic: str) -> None:
    config = AlterableConfig(name="share.auto.offset.reset", value="earliest")
    resource = AlterConfigsResource(resource_type=_GROUP_RESOURCE, resource_name=group, configs=[config])
    client.ask(IncrementalAlterConfigsRequest(resources=[resource]), 1)
    client.ask(FindCoordinatorRequest(key_type=0, coordinator_keys=[group]), 6)
    epoch, deadline = 0, time.monotonic() + 30
    while time.monotonic() < deadline:
        names = [topic] if epoch == 0 else None
        request = ShareGroupHeartbeatRequest(
            group_id=group, member_id="m", member_epoch=epoch, subscribed_topic_names=names
        )
        answer = client.ask(request, 1)
        epoch = answer.member_epoch
        if answer.assignment is not None and answer.assignment.topic_partitions:
            return
        time.sleep(0.02)
    raise TimeoutError("the member was not assigned its partition within 30 s")


def _read(client: Client, group: str, topic_id: UUID) -> int:
    """Fetch and accept all records; their number."""
    accepted = number = session = 0
    acknowledged: list[AcknowledgementBatch] = []
    while accepted < _BATCHES * _RECORDS:
        part = FetchPartition(partition_index=0, acknowledgement_batches=acknowledged)
        request = ShareFetchRequest(
            group_id=group, member_id="m", share_session_epoch=session, max_wait_ms=500, min_bytes=1,
            max_bytes=1 << 20, max_records=_RECORDS, batch_size=_RECORDS,
            topics=[FetchTopic(topic_id=topic_id, partitions=[part])],
        )  # fmt: skip
        answer = client.ask(request, 1)
        accepted += number
        parts = [part for topic in answer.responses for part in topic.partitions]
        codes = {code for part in parts for code in (part.error_code, part.acknowledge_error_code)}
        if answer.error_code or codes - {0}:
            raise AssertionError(f"expected no errors, got {answer.error_code} and {sorted(codes)}")
        runs = [run for part in parts for run in part.acquired_records]
        session += 1
        acknowledged = [
            AcknowledgementBatch(
                first_offset=run.first_offset, last_offset=run.last_offset, acknowledge_types=[_ACCEPT]
            )
            for run in runs
        ]
        number = sum(run.last_offset - run.first_offset + 1 for run in runs)
    return accepted


def main(rounds: int = 3) -> int:
    server = Server([sys.executable, "-m", "coordwire.cli", "serve", f"--port={free_port()}"])
    best = best_by_processor = 0.0
    try:
        for number in range(rounds):
            client = Client(server.address)
            name = f"orders-{number}"
            topic_id = _topic(client, name)
            _join(client, f"g-{number}", name)
            start, spent = time.perf_counter(), server.spent()
            records = _read(client, f"g-{number}", topic_id)
            best = max(best, records / (time.perf_counter() - start))
            best_by_processor = max(best_by_processor, records / max(server.spent() - spent, 1 / TICK))
            client.close()
    finally:
        server.end()
    print(
        f"{_BATCHES * _RECORDS:,} records of {len(_VALUE)} bytes, fetched and accepted {_RECORDS} at a time:"
    )
    print(f"{best:,.0f} records/s by the wall, {best_by_processor:,.0f} a second of the server's processor")
    return 0


if __name__ == "__main__":
    sys.exit(main(*map(int, sys.argv[1:])))
