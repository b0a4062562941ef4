"""ShareFetch and ShareAcknowledge (KIP-932): records of share groups, and what members did with them.

API keys and versions: ShareFetch 78 v1-2, ShareAcknowledge 79 v1-2, InitializeShareGroupState 83 v0,
ReadShareGroupState 84 v0, WriteShareGroupState 85 v0-1, DeleteShareGroupState 86 v0,
ReadShareGroupStateSummary 87 v0-1.

Strategy: a request is checked as by Kafka's `KafkaApis`; its acknowledgements are done first, then records
are acquired: at once, or when there are some, or when the client's time is over. Rules: a log is read up to a
uniform part of the bytes; the first partition that has records gives at least one batch.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from functools import partial
from typing import Any
from uuid import UUID

from coordwire._dataclasses import dataclass
from coordwire.broker.cluster.promise import Promise
from coordwire.broker.cluster.share_partitions import SharePartitionEntry, SharePartitionFailed
from coordwire.broker.cluster.share_sessions import FINAL_EPOCH, ShareSession
from coordwire.broker.cluster.topics import ClusterPartition
from coordwire.broker.handlers.api_call import ApiCall, led_partition
from coordwire.broker.log.partition_log import PartitionLog
from coordwire.broker.log.validation import RefusedRecords
from coordwire.codec import Message
from coordwire.coordinator.share_partition import AcknowledgementBatch, AcquisitionFailed
from coordwire.coordinator.share_partition.effects import FetchedBatch, aborted_ranges
from coordwire.enums import ErrorCode
from coordwire.messages import (
    ShareAcknowledgeRequest,
    ShareAcknowledgeResponse,
    ShareFetchRequest,
    ShareFetchResponse,
)
from coordwire.messages import share_acknowledge as acknowledging
from coordwire.messages.share_fetch import (
    AcquiredRecords,
    LeaderIdAndEpoch,
    NodeEndpoint,
    PartitionData,
    ShareFetchableTopicResponse,
)
from coordwire.records import ControlType, RecordBatch, batches

_RENEWS_SINCE = 2
_RENEW = 4
_LONGEST_MEMBER_ID = 36
_BATCH_LIMIT, _RECORD_LIMIT = 0, 1
_MOVED = frozenset({ErrorCode.NOT_LEADER_OR_FOLLOWER, ErrorCode.FENCED_LEADER_EPOCH})

Place = tuple[UUID, int]
_Refusal = tuple[int, str | None]
"""An error code, and its text."""


def share_state(call: ApiCall) -> Message:
    """The requests to share coordinators that other brokers send."""
    return call.cluster.share_states.ask(call.request, call.node)


def _invalid_request(call: ApiCall) -> str | None:
    """Why a request is invalid whatever the group is like."""
    request = call.request
    if request.group_id is None:
        return "Invalid group id in the request."
    if not request.member_id or len(request.member_id) > _LONGEST_MEMBER_ID:
        return "Invalid member id in the request."
    return None


def _refused(call: ApiCall, error: ErrorCode, message: str | None = None) -> Any:
    response: Any = type(call.request).response_class(error_code=int(error))
    response.error_message = message
    return response


# --- ShareAcknowledge ---


def share_acknowledge(call: ApiCall) -> Message:
    request: ShareAcknowledgeRequest = call.request
    problem = _invalid_request(call)
    if problem is not None:
        return _refused(call, ErrorCode.INVALID_REQUEST, problem)  # type: ignore[no-any-return]
    shares = call.cluster.share_partitions
    key = request.group_id or "", request.member_id or ""
    session = shares.sessions[call.node].find(key)
    epoch = request.share_session_epoch
    if epoch == 0:
        return _refused(call, ErrorCode.INVALID_SHARE_SESSION_EPOCH)  # type: ignore[no-any-return]
    if session is None:
        return _refused(call, ErrorCode.SHARE_SESSION_NOT_FOUND)  # type: ignore[no-any-return]
    if epoch != FINAL_EPOCH:
        if session.epoch != epoch:
            return _refused(call, ErrorCode.INVALID_SHARE_SESSION_EPOCH)  # type: ignore[no-any-return]
        session.advance()
    results = _acknowledged(call, request)
    if epoch == FINAL_EPOCH:
        shares.release_session(call.node, key)
    response = ShareAcknowledgeResponse(acquisition_lock_timeout_ms=shares.config_of(key[0]).lock_duration_ms)
    topics: dict[UUID, acknowledging.ShareAcknowledgeTopicResponse] = {}
    for (topic_id, index), (code, message) in results.items():
        topic = topics.get(topic_id)
        if topic is None:
            topic = topics[topic_id] = acknowledging.ShareAcknowledgeTopicResponse(topic_id=topic_id)
            response.responses.append(topic)
        data = acknowledging.PartitionData(partition_index=index, error_code=code, error_message=message)
        topic.partitions.append(data)
        partition = _known_partition(call, topic_id, index)
        if code in _MOVED and partition is not None:
            data.current_leader = acknowledging.LeaderIdAndEpoch(
                leader_id=partition.leader, leader_epoch=partition.leader_epoch
            )
    return response


def _known_partition(call: ApiCall, topic_id: UUID, index: int) -> ClusterPartition | None:
    topic = call.cluster.topics_by_id.get(topic_id)
    return None if topic is None else topic.partition(index)


def _acknowledged(call: ApiCall, request: Any) -> dict[Place, _Refusal]:
    """Do what a request acknowledges; an error code and its text for each partition."""
    results: dict[Place, _Refusal] = {}
    shares = call.cluster.share_partitions
    renews = call.version >= _RENEWS_SINCE
    is_renewal = renews and request.is_renew_ack
    for topic in request.topics:
        known = call.cluster.topics_by_id.get(topic.topic_id)
        for partition in topic.partitions:
            place = topic.topic_id, partition.partition_index
            if known is None:
                results[place] = int(ErrorCode.UNKNOWN_TOPIC_ID), None
                continue
            acknowledged = [
                AcknowledgementBatch(batch.first_offset, batch.last_offset, batch.acknowledge_types)
                for batch in partition.acknowledgement_batches
            ]
            if not _are_valid(acknowledged, _RENEW if renews else _RENEW - 1, is_renewal):
                results[place] = int(ErrorCode.INVALID_REQUEST), None
            elif call.forbids is not None and call.forbids(known.name):
                results[place] = int(ErrorCode.TOPIC_AUTHORIZATION_FAILED), None
            elif known.partition(partition.partition_index) is None:
                results[place] = int(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION), None
            elif not acknowledged:
                results[place] = 0, None
            else:
                entry = shares.find(request.group_id, *place)
                if entry is None:
                    results[place] = int(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION), None
                else:
                    results[place] = shares.acknowledge(entry, request.member_id, acknowledged)
    return results


def _are_valid(acknowledged: Iterable[AcknowledgementBatch], highest: int, is_renewal: bool) -> bool:
    end = -1
    for first, last, types in acknowledged:
        if first > last or first < end or not types:
            return False
        if len(types) > 1 and last - first != len(types) - 1:
            return False
        if not all(0 <= kind <= highest for kind in types) or (_RENEW in types and not is_renewal):
            return False
        end = last
    return True


# --- ShareFetch ---


async def share_fetch(call: ApiCall) -> ShareFetchResponse:
    request: ShareFetchRequest = call.request
    problem = _invalid_request(call) or _invalid_renewal(call)
    if problem is not None:
        return _refused(call, ErrorCode.INVALID_REQUEST, problem)  # type: ignore[no-any-return]
    acknowledges = any(
        partition.acknowledgement_batches for topic in request.topics for partition in topic.partitions
    )
    session, error = _session(call, request, acknowledges)
    if error is ErrorCode.SHARE_SESSION_LIMIT_REACHED:
        await _idle(call, request.max_wait_ms)
    if error is not None:
        return _refused(call, error)  # type: ignore[no-any-return]
    acknowledged = _acknowledged(call, request) if acknowledges else {}
    fetched: dict[Place, PartitionData] = {}
    if session is not None and not (call.version >= _RENEWS_SINCE and request.is_renew_ack):
        if request.share_acquire_mode not in (_BATCH_LIMIT, _RECORD_LIMIT):
            return _refused(call, ErrorCode.UNKNOWN_SERVER_ERROR)  # type: ignore[no-any-return]
        attempt = _Attempt(call, request, session)
        data = attempt.read(final=request.max_wait_ms <= 0)
        if data is None:
            await attempt.wait()
            data = attempt.take()
        fetched = data
    is_subsequent = request.share_session_epoch > 0
    if session is not None and is_subsequent:
        fetched = {place: data for place, data in fetched.items() if session.must_answer(place, data)}
    for (topic_id, index), (code, message) in acknowledged.items():
        data_of = fetched.setdefault((topic_id, index), PartitionData(partition_index=index))
        data_of.acknowledge_error_code, data_of.acknowledge_error_message = code, message
    if request.share_session_epoch == FINAL_EPOCH:
        call.cluster.share_partitions.release_session(
            call.node, (request.group_id or "", request.member_id or "")
        )
    return _response(call, request, fetched)


def _invalid_renewal(call: ApiCall) -> str | None:
    request = call.request
    if call.version < _RENEWS_SINCE or not request.is_renew_ack:
        return None
    wrong = [
        f"{name} must be set to 0, "
        for name, value in (
            ("maxBytes", request.max_bytes), ("minBytes", request.min_bytes),
            ("maxRecords", request.max_records), ("maxWaitMs", request.max_wait_ms),
        )
        if value
    ]  # fmt: skip
    return "".join([*wrong, "if isRenewAck is true."]) if wrong else None


def _session(
    call: ApiCall, request: ShareFetchRequest, acknowledges: bool
) -> tuple[ShareSession | None, ErrorCode | None]:
    """The session that a request belongs to or begins; None for one that ends it."""
    sessions = call.cluster.share_partitions.sessions[call.node]
    key = request.group_id or "", request.member_id or ""
    places = [
        (topic.topic_id, partition.partition_index)
        for topic in request.topics
        for partition in topic.partitions
    ]
    session = sessions.find(key)
    if request.share_session_epoch == FINAL_EPOCH:
        return None, None if session is not None else ErrorCode.SHARE_SESSION_NOT_FOUND
    if request.share_session_epoch == 0:
        if acknowledges:
            return None, ErrorCode.INVALID_REQUEST
        sessions.remove(key)
        session = sessions.create(key, call.connection)
        if session is None:
            return None, ErrorCode.SHARE_SESSION_LIMIT_REACHED
        session.begin(places)
        return session, None
    if session is None:
        return None, ErrorCode.SHARE_SESSION_NOT_FOUND
    if session.epoch != request.share_session_epoch:
        return None, ErrorCode.INVALID_SHARE_SESSION_EPOCH
    session.update(
        places,
        ((topic.topic_id, index) for topic in request.forgotten_topics_data for index in topic.partitions),
    )
    session.advance()
    return session, None


async def _idle(call: ApiCall, wait_ms: int) -> None:
    """Let a client wait that has no session, so that it does not ask again at once."""
    if wait_ms > 0:
        end: Promise[None] = Promise()
        timer = f"share-idle-{id(end)}"
        timers = call.cluster.timers
        timers.set(timer, call.cluster.clock() + wait_ms, lambda: end.fulfil(None))
        try:
            await end
        finally:
            timers.cancel(timer)


def _response(
    call: ApiCall, request: ShareFetchRequest, fetched: dict[Place, PartitionData]
) -> ShareFetchResponse:
    lock_ms = call.cluster.share_partitions.config_of(request.group_id or "").lock_duration_ms
    response = ShareFetchResponse(acquisition_lock_timeout_ms=lock_ms)
    topics: dict[UUID, ShareFetchableTopicResponse] = {}
    moved: set[int] = set()
    for (topic_id, index), data in fetched.items():
        topic = topics.get(topic_id)
        if topic is None:
            topic = topics[topic_id] = ShareFetchableTopicResponse(topic_id=topic_id)
            response.responses.append(topic)
        topic.partitions.append(data)
        partition = _known_partition(call, topic_id, index)
        if data.error_code in _MOVED and partition is not None:
            data.current_leader = LeaderIdAndEpoch(
                leader_id=partition.leader, leader_epoch=partition.leader_epoch
            )
            moved.add(partition.leader)
    nodes = call.cluster.nodes
    response.node_endpoints = [
        NodeEndpoint(node_id=node.id, host=node.host, port=node.port, rack=node.rack)
        for node in (nodes[number] for number in sorted(moved) if number in nodes)
    ]
    return response


@dataclass(slots=True)
class _Source:
    """A partition that records may be acquired from, at `offset`. available: bytes when it was last seen."""

    place: Place
    entry: SharePartitionEntry
    offset: int = 0
    available: int = 0


class _Attempt:
    """One fetch, tried once or more."""

    def __init__(self, call: ApiCall, request: ShareFetchRequest, session: ShareSession) -> None:
        self.call = call
        self.request = request
        self.committed = call.cluster.share_partitions.reads_committed(request.group_id or "")
        self.errors: dict[Place, PartitionData] = {}
        self.sources: list[_Source] = []
        self._min_bytes = max(request.min_bytes, 1)
        self._available = 0
        self._end: Promise[None] = Promise()
        self._data: dict[Place, PartitionData] | None = None
        self._reading = False
        places = session.places()
        turn = request.share_session_epoch % len(places) if places and request.share_session_epoch > 0 else 0
        for place in [*places[turn:], *places[:turn]]:
            self._add(place)

    def _add(self, place: Place) -> None:
        topic_id, index = place
        call = self.call
        topic = call.cluster.topics_by_id.get(topic_id)
        if topic is None:
            self._refuse(place, int(ErrorCode.UNKNOWN_TOPIC_ID))
            return
        partition = led_partition(call, topic.name, index)
        if isinstance(partition, ErrorCode):
            self._refuse(place, int(partition))
            return
        if not self.request.max_records or not self.request.max_bytes:
            return
        try:
            entry = call.cluster.share_partitions.find_or_load(
                self.request.group_id or "", topic_id, partition
            )
        except SharePartitionFailed as failure:
            self._refuse(place, failure.code, failure.message)
        else:
            self.sources.append(_Source(place, entry))

    def _refuse(self, place: Place, code: int, message: str | None = None) -> None:
        self.errors[place] = PartitionData(partition_index=place[1], error_code=code, error_message=message)

    # --- reading ---

    def read(self, *, final: bool) -> dict[Place, PartitionData] | None:
        """What there is now; None if the fetch is to wait for more. final: give whatever there is."""
        if not self.sources:
            return self.errors
        cluster = self.call.cluster
        ready = [source for source in self.sources if self._is_ready(source)]
        self._available = sum(source.available for source in self.sources)
        if not final and (not ready or self._available < self._min_bytes):
            return None
        results = dict(self.errors)
        budget = min(self.request.max_bytes, cluster.config.max_fetch_bytes, self.call.room)
        share = max(budget // len(ready), 1) if ready else 0
        remaining = self.request.max_records
        total = 0
        for source in ready:
            data, count = self._acquire(source, share, remaining, first=not total)
            total += len(data.records or b"")
            remaining -= count
            results[source.place] = data
        return results

    def _is_ready(self, source: _Source) -> bool:
        """Whether records of a partition may be acquired; sees what is available."""
        shared, log = source.entry.shared, source.entry.partition.log
        source.available = 0
        if not shared.can_acquire():
            return False
        source.offset = shared.next_fetch_offset()
        source.available = log.bytes_after(source.offset, log.limit(self.committed))
        if source.offset < log.start_offset:
            source.available += self._min_bytes
        return True

    def _acquire(
        self, source: _Source, most: int, max_records: int, *, first: bool
    ) -> tuple[PartitionData, int]:
        """Acquire records of one partition, and count them."""
        entry, log = source.entry, source.entry.partition.log
        data = PartitionData(partition_index=source.place[1], records=b"")
        shares = self.call.cluster.share_partitions
        try:
            read = log.read(source.offset, most, committed=self.committed, at_least_one=first)
        except RefusedRecords as refusal:
            if refusal.code == ErrorCode.OFFSET_OUT_OF_RANGE:
                entry.shared.move_start(log.start_offset)
            else:
                data.error_code = int(refusal.code)
            return data, 0
        except OSError:
            log.storage_failed()
            data.error_code = int(ErrorCode.KAFKA_STORAGE_ERROR)
            return data, 0
        if not read.data:
            return data, 0
        read_batches = list(batches(read.data, check_records=False))
        ranges = [(batch.base_offset, batch.last_offset) for batch in read_batches]
        aborted = [(transaction.first_offset, transaction.producer_id) for transaction in read.aborted or ()]
        request = self.request
        try:
            acquired = entry.shared.acquire(
                request.member_id or "",
                ranges,
                fetch_offset=source.offset,
                max_records=max_records,
                batch_size=request.batch_size,
                record_limit=request.share_acquire_mode == _RECORD_LIMIT,
                aborted=aborted_ranges(map(_facts, read_batches), aborted) if aborted else (),
            )
        except AcquisitionFailed:
            data.error_code = int(ErrorCode.UNKNOWN_SERVER_ERROR)
            return data, 0
        finally:
            shares.settle(entry)
        if acquired:
            data.records = _slice(read.data, read_batches, acquired[0].first_offset, acquired[-1].last_offset)
            data.acquired_records = [
                AcquiredRecords(first_offset=run[0], last_offset=run[1], delivery_count=run[2])
                for run in acquired
            ]
        return data, sum(run[1] - run[0] + 1 for run in acquired)

    # --- waiting ---

    async def wait(self) -> None:
        """Wait until there are records, or the client's time is over."""
        cluster, timer = self.call.cluster, f"share-fetch-{id(self)}"
        logs: list[PartitionLog] = []
        try:
            for source in self.sources:
                log = source.entry.partition.log
                log.listeners[self] = partial(self._look, source)
                logs.append(log)
                source.entry.listeners[self] = partial(self._look, source)
            cluster.timers.set(
                timer, cluster.clock() + self.request.max_wait_ms, lambda: self._end.fulfil(None)
            )
            await self._end
        finally:
            cluster.timers.cancel(timer)
            for log in logs:
                log.listeners.pop(self, None)
            for source in self.sources:
                source.entry.listeners.pop(self, None)

    def _look(self, source: _Source, size: int = 0) -> None:
        """Take what there is now, before another fetch does. source: where there may be more; others are
        looked at only when that is enough."""
        if self._data is not None or self._reading or self._end.is_fulfilled:
            return
        before = source.available
        self._is_ready(source)
        self._available += source.available - before
        if self._available < self._min_bytes:
            return
        self._reading = True
        self._data = self.read(final=False)
        self._reading = False
        if self._data is not None:
            self._end.fulfil(None)

    def take(self) -> dict[Place, PartitionData]:
        """What the fetch has after it waited."""
        if self._data is not None:
            return self._data
        return self.read(final=True) or {}


def _facts(batch: RecordBatch) -> FetchedBatch:
    ends = batch.is_control and any(control.type is ControlType.ABORT for control in batch.control_records())
    return batch.base_offset, batch.last_offset, batch.producer_id, batch.transactional, ends


def _slice(data: bytes, read_batches: Sequence[RecordBatch], first: int, last: int) -> bytes:
    """The batches that have acquired records, out of those that were read."""
    if len(read_batches) == 1:
        return data
    start, position = 0, 0
    end = len(data)
    for number, batch in enumerate(read_batches):
        if number and batch.base_offset <= first:
            start = position
        elif number and batch.base_offset > last:
            end = position
            break
        position += len(batch.raw)
    return data if (start, end) == (0, len(data)) else data[start:end]
