"""Fetch: whole batches from logs, at once or when there are enough of them.

API keys and versions: Fetch 1 v4-18.

Strategy: read all partitions; if that is too little, and nothing is wrong, listen to their logs and read
again when enough was appended, or when the client's time is over. Rules: the byte limits are Kafka's, with
whole batches only: the first partition that has records gives at least one, whatever its size; the others
keep to what is left. From version 11 on followers are read too, and a leader names the follower in the
consumer's rack, where the broker is set so.
"""

from __future__ import annotations

from collections.abc import Coroutine, Iterable
from functools import partial
from typing import Any
from uuid import UUID

from coordwire.broker.cluster.fetch_sessions import FINAL_EPOCH, FetchKey, FetchSession
from coordwire.broker.cluster.promise import Promise
from coordwire.broker.handlers.api_call import ApiCall, led_partition
from coordwire.broker.log.partition_log import PartitionLog
from coordwire.broker.log.validation import RefusedRecords
from coordwire.enums import ErrorCode, IsolationLevel
from coordwire.messages import FetchRequest, FetchResponse
from coordwire.messages.fetch import (
    AbortedTransaction,
    EpochEndOffset,
    FetchableTopicResponse,
    FetchPartition,
    LeaderIdAndEpoch,
    NodeEndpoint,
    PartitionData,
)

_TOPIC_IDS = 13
_REPLICA_STATE = 15
_NODE_ENDPOINTS = 16
_FOLLOWERS = 11
"""The version from which on consumers may read from followers (KIP-392)."""

_NO_ID = UUID(int=0)
_MOVED = frozenset({ErrorCode.NOT_LEADER_OR_FOLLOWER, ErrorCode.FENCED_LEADER_EPOCH})
"""Errors beside which the leader is named (KIP-951)."""

_NOT_READ = frozenset({ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, ErrorCode.TOPIC_AUTHORIZATION_FAILED})
"""Errors for which no log is looked at."""

WantedPartitions = list[tuple[FetchKey, FetchPartition]]


def fetch(call: ApiCall) -> FetchResponse | Coroutine[Any, None, FetchResponse]:
    request: FetchRequest = call.request
    if request.isolation_level not in (IsolationLevel.READ_UNCOMMITTED, IsolationLevel.READ_COMMITTED):
        return _failed(request, call.version)
    # A partition that is named twice counts once, as last named: Kafka puts them into a map.
    partitions: WantedPartitions = list(dict(_positions(request, call.version)).items())
    session, error = _session(call, request, partitions)
    if error:
        return FetchResponse(error_code=int(error))
    if session is not None:
        partitions = session.partitions()
    attempt = _Attempt(call, request, session, partitions)
    response = attempt.read(final=request.max_wait_ms <= 0 or not partitions)
    return attempt.wait() if response is None else response


def _positions(request: FetchRequest, version: int) -> Iterable[tuple[FetchKey, FetchPartition]]:
    for topic in request.topics:
        name, topic_id = ("", topic.topic_id) if version >= _TOPIC_IDS else (topic.topic, _NO_ID)
        for partition in topic.partitions:
            yield (name, topic_id, partition.partition), partition


def _forgotten(request: FetchRequest, version: int) -> Iterable[FetchKey]:
    for topic in request.forgotten_topics_data:
        name, topic_id = ("", topic.topic_id) if version >= _TOPIC_IDS else (topic.topic, _NO_ID)
        for partition in topic.partitions:
            yield name, topic_id, partition


def _session(
    call: ApiCall, request: FetchRequest, partitions: WantedPartitions
) -> tuple[FetchSession | None, ErrorCode | None]:
    """The session that a request belongs to or begins; None without one."""
    sessions = call.cluster.fetch_sessions[call.node]
    uses_ids = call.version >= _TOPIC_IDS
    now = call.cluster.clock()
    if request.session_epoch in (0, FINAL_EPOCH):
        if request.session_id:
            sessions.remove(request.session_id)
        if request.session_epoch == FINAL_EPOCH:
            return None, None
        session = sessions.create(uses_ids, now)
        if session is not None:
            session.update(partitions, ())
        return session, None
    session = sessions.find(request.session_id)
    if session is None:
        return None, ErrorCode.FETCH_SESSION_ID_NOT_FOUND
    if session.epoch != request.session_epoch:
        return None, ErrorCode.INVALID_FETCH_SESSION_EPOCH
    if session.uses_ids != uses_ids:
        return None, ErrorCode.FETCH_SESSION_TOPIC_ID_ERROR
    session.update(partitions, _forgotten(request, call.version))
    if not len(session):
        sessions.remove(session.id)
    session.advance(now)
    return session, None


def _refused(index: int, error: ErrorCode) -> PartitionData:
    return PartitionData(partition_index=index, error_code=int(error), high_watermark=-1, records=b"")


def _refused_read(index: int, error: int) -> PartitionData:
    """A partition that is there and cannot be read so; it has no list of aborted transactions."""
    return PartitionData(
        partition_index=index,
        error_code=int(error),
        high_watermark=-1,
        aborted_transactions=None,
        records=b"",
    )


def _failed(request: FetchRequest, version: int) -> FetchResponse:
    """What Kafka answers to a request that its code throws an error for."""
    response = FetchResponse(error_code=int(ErrorCode.UNKNOWN_SERVER_ERROR), responses=[])
    for topic in request.topics:
        named = {"topic": topic.topic} if version < _TOPIC_IDS else {"topic_id": topic.topic_id}
        partitions = [
            _refused(partition.partition, ErrorCode.UNKNOWN_SERVER_ERROR) for partition in topic.partitions
        ]
        response.responses.append(FetchableTopicResponse(**named, partitions=partitions))
    return response


class _Attempt:
    """One request, read once or more."""

    def __init__(
        self, call: ApiCall, request: FetchRequest, session: FetchSession | None, partitions: WantedPartitions
    ) -> None:
        self.call = call
        self.request = request
        self.session = session
        self.incremental = session is not None and request.session_epoch > 0
        self.positions = partitions
        self.replica = (
            request.replica_id if call.version < _REPLICA_STATE else request.replica_state.replica_id
        )
        self.committed = request.isolation_level == IsolationLevel.READ_COMMITTED
        self._available: dict[PartitionLog, int] = {}
        self._total = 0

    # --- reading ---

    def read(self, *, final: bool) -> FetchResponse | None:
        """The answer; None if it is to wait for more. final: answer whatever there is."""
        budget = min(self.request.max_bytes, self.call.cluster.config.max_fetch_bytes, self.call.room)
        results: list[tuple[FetchKey, PartitionData]] = []
        total, urgent = 0, final
        for key, partition in self.positions:
            name = self._name(key)
            data = self._partition(name, key, partition, budget - total, total == 0)
            total += len(data.records or b"")
            urgent = (
                urgent
                or bool(data.error_code)
                or data.diverging_epoch.epoch >= 0
                or data.preferred_read_replica >= 0
            )
            results.append((key, data))
        if not urgent and total < self.request.min_bytes:
            return None
        return self._response(results)

    def _name(self, key: FetchKey) -> str | None:
        if key[1].int == 0:
            return key[0]
        topic = self.call.cluster.topics_by_id.get(key[1])
        return None if topic is None else topic.name

    def _partition(
        self, name: str | None, key: FetchKey, position: FetchPartition, budget: int, first: bool
    ) -> PartitionData:
        index = position.partition
        if name is None:
            return _refused(index, ErrorCode.UNKNOWN_TOPIC_ID)
        follower = self.call.version >= _FOLLOWERS
        epoch = max(position.current_leader_epoch, -1)
        partition = led_partition(self.call, name, index, epoch, follower=follower)
        if isinstance(partition, ErrorCode):
            if partition in _NOT_READ:
                return _refused(index, partition)
            data = _refused_read(index, partition)
            known = self.call.cluster.partition(name, index)
            if known is not None and partition in _MOVED and self.call.version >= _NODE_ENDPOINTS:
                data.current_leader = LeaderIdAndEpoch(
                    leader_id=known.leader, leader_epoch=known.leader_epoch
                )
            return data
        log = partition.log
        if self.replica >= 0 and self.replica not in partition.replicas:
            return _refused_read(index, ErrorCode.NOT_LEADER_OR_FOLLOWER)
        if min(position.partition_max_bytes, self.request.max_bytes) < 0:
            return _refused_read(index, ErrorCode.UNKNOWN_SERVER_ERROR)
        data = PartitionData(
            partition_index=index,
            high_watermark=log.high_watermark,
            last_stable_offset=log.last_stable_offset,
            log_start_offset=log.start_offset,
            aborted_transactions=[] if self.committed else None,
            records=b"",
        )
        if partition.leader == self.call.node:
            replication, rack = self.call.cluster.replication, self.request.rack_id
            replica = replication.read_replica(partition, rack, position.fetch_offset)
            if replica is not None:
                data.preferred_read_replica = replica
                return data
        if position.last_fetched_epoch >= 0:
            epoch, end = log.epoch_end(position.last_fetched_epoch)
            if epoch < 0:  # a later epoch than any here
                return _refused_read(index, ErrorCode.OFFSET_OUT_OF_RANGE)
            if epoch < position.last_fetched_epoch or end < position.fetch_offset:
                data.diverging_epoch = EpochEndOffset(epoch=epoch, end_offset=end)
                return data
        most = min(position.partition_max_bytes, budget)
        try:
            read = log.read(position.fetch_offset, most, committed=self.committed, at_least_one=first)
        except RefusedRecords as refusal:
            return _refused_read(index, refusal.code)
        except OSError:
            log.storage_failed()
            return _refused(index, ErrorCode.KAFKA_STORAGE_ERROR)
        data.records = read.data
        if read.aborted is not None:
            data.aborted_transactions = [
                AbortedTransaction(producer_id=transaction.producer_id, first_offset=transaction.first_offset)
                for transaction in read.aborted
            ]
        return data

    def _response(self, results: list[tuple[FetchKey, PartitionData]]) -> FetchResponse:
        session = self.session
        ended = session is None or (self.incremental and not len(session))
        response = FetchResponse(session_id=0 if session is None or ended else session.id, responses=[])
        topics: dict[tuple[str, UUID], FetchableTopicResponse] = {}
        moved: set[int] = set()
        for key, data in results:
            if session is not None and not session.changed(key, data) and self.incremental:
                continue
            topic = topics.get(key[:2])
            if topic is None:
                topic = topics[key[:2]] = FetchableTopicResponse(topic=key[0], topic_id=key[1], partitions=[])
                response.responses.append(topic)
            topic.partitions.append(data)
            if data.error_code in (ErrorCode.NOT_LEADER_OR_FOLLOWER, ErrorCode.FENCED_LEADER_EPOCH):
                moved.add(data.current_leader.leader_id)
        if moved and self.call.version >= _NODE_ENDPOINTS:
            known = self.call.cluster.nodes
            nodes = (known[number] for number in sorted(moved) if number in known)
            response.node_endpoints = [
                NodeEndpoint(node_id=node.id, host=node.host, port=node.port, rack=node.rack)
                for node in nodes
            ]
        return response

    # --- waiting ---

    async def wait(self) -> FetchResponse:
        """Wait until there is enough, or the client's time is over, and read again."""
        cluster, timer = self.call.cluster, f"fetch-{id(self)}"
        end: Promise[None] = Promise()
        try:
            for key, position in self.positions:
                name = self._name(key)
                partition = None if name is None else cluster.partition(name, key[2])
                if partition is not None:
                    self._count(partition.log, position)
                    partition.log.listeners[self] = partial(self._appended, end, partition.log, position)
            due = cluster.clock() + self.request.max_wait_ms
            cluster.timers.set(timer, due, lambda: end.fulfil(None))
            await end
        finally:
            cluster.timers.cancel(timer)
            for log in self._available:
                log.listeners.pop(self, None)
        response = self.read(final=True)
        assert response is not None
        return response

    def _appended(self, end: Promise[None], log: PartitionLog, position: FetchPartition, size: int) -> None:
        if size:
            self._count(log, position)
        if not size or self._total >= self.request.min_bytes:
            end.fulfil(None)

    def _count(self, log: PartitionLog, position: FetchPartition) -> None:
        """Count the bytes of a partition that there are now, which is known without reading them."""
        available = log.bytes_after(position.fetch_offset, log.limit(self.committed))
        available = min(available, position.partition_max_bytes)
        self._total += available - self._available.get(log, 0)
        self._available[log] = available
