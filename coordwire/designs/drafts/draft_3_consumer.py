"""A consumer of the new consumer's draft: it sends everything, pings included.

Source: the draft of the new consumer's protocol. Strategy: one connection at a time; to any broker for
metadata, then to the coordinator, over which it joins and then pings. Rules: one that has an id starts with a
ping at a new coordinator, and joins if it is unknown there, or does not know what it owns. Fetchers stop
before a join is sent, and when the session timeout has passed since the last ping or join was *sent* that was
answered without an error: so a consumer has stopped before its coordinator counts it as failed. Metadata are
refreshed in turn from the known brokers, without end.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from enum import Enum
from typing import Any

from coordwire.connection.events import ResponseReceived
from coordwire.designs.drafts.actions import DraftPartition, FetchersStarted, FetchersStopped
from coordwire.designs.drafts.draft_settings import BrokerAddress, DraftError
from coordwire.designs.drafts.machine import Machine
from coordwire.messages.draft_3 import (
    Draft3JoinGroupRequest,
    Draft3JoinGroupResponse,
    Draft3MetadataRequest,
    Draft3MetadataResponse,
    Draft3PingRequest,
    Draft3PingResponse,
)


class NewConsumerState(Enum):
    """Where a consumer is in its life."""

    NEW = "new"
    CONNECTING = "connecting to a known broker"
    REFRESHING = "waiting for metadata"
    WAITING = "waiting before the next attempt"
    REACHING = "connecting to the coordinator"
    JOINING = "waiting for its partitions"
    PINGING = "consuming"
    CLOSED = "closed"


@dataclass(frozen=True, slots=True, kw_only=True)
class NewConsumerConfig:
    """A consumer's settings, times in milliseconds."""

    group_id: str
    client_id: str
    topics: tuple[str, ...]
    session_timeout_ms: int = 6_000
    ping_interval_ms: int = 2_000
    metadata_refresh_ms: int = 30_000
    retry_backoff_ms: int = 500


class NewConsumer(Machine):
    """One consumer. known: its bootstrap brokers."""

    def __init__(
        self, config: NewConsumerConfig, known: Mapping[int, BrokerAddress], *, now: int = 0
    ) -> None:
        super().__init__(now=now)
        self.config = config
        self.topics = config.topics
        self.state = NewConsumerState.NEW
        self.consumer_id = ""
        self.generation = -1
        self.owned: dict[DraftPartition, int] = {}
        self.fetching = False
        self._knows_owned = False
        self.cluster = dict(known)
        self._known = dict(known)
        self._offsets: dict[DraftPartition, int] = {}
        self._shape: dict[str, int] = {}
        self._turn = 0
        self._connection: int | None = None
        self._sent_at = now

    # --- discovery ---

    def on_start(self) -> None:
        self._discover()

    def _discover(self) -> None:
        """Refresh the metadata from the existing known brokers, in turn, until one answers. Those of its list
        stay known: what it has learned since may be out of date."""
        self._leave_connection()
        brokers = self._known | self.cluster
        numbers = sorted(brokers)
        address = brokers[numbers[self._turn % len(numbers)]]
        self._turn += 1
        self.state = NewConsumerState.CONNECTING
        self._connection = self.connect(*address)
        self._expect_answer()

    def _retry(self) -> None:
        self._leave_connection()
        self.state = NewConsumerState.WAITING
        self.after("retry", self.config.retry_backoff_ms, self._discover)

    def _leave_connection(self) -> None:
        for key in ("answer", "ping", "refresh", "retry"):
            self.cancel_timer(key)
        if self._connection is not None:
            self.disconnect(self._connection)
            self._connection = None

    def _expect_answer(self) -> None:
        """What is asked now is answered within the session timeout, or the broker counts as failed."""
        self.after("answer", self.config.session_timeout_ms, self._retry)

    def opened(self, connection: int) -> None:
        if connection != self._connection:
            return
        if self.state is NewConsumerState.CONNECTING:
            self.state = NewConsumerState.REFRESHING
            self._ask_metadata()
        elif self.state is NewConsumerState.REACHING and self.consumer_id:
            self._start_pinging()
        elif self.state is NewConsumerState.REACHING:
            self._join()

    def closed(self, connection: int) -> None:
        if connection == self._connection:
            self._connection = None
            self._retry()

    def _ask_metadata(self) -> None:
        assert self._connection is not None
        self._expect_answer()
        self.send(self._connection, Draft3MetadataRequest(
            client_id=self.config.client_id, topics=list(self.topics), group_ids=[self.config.group_id]
        ))  # fmt: skip

    # --- responses ---

    def on_response(self, connection: int, event: ResponseReceived[Any]) -> None:
        """Only the answer that its state waits for ends that wait: metadata that were asked for beside a ping
        or a join may come first."""
        if connection != self._connection:
            return
        match event.response:
            case Draft3MetadataResponse():
                self._on_metadata(event.response)
            case Draft3JoinGroupResponse() if self.state is NewConsumerState.JOINING:
                self.cancel_timer("answer")
                self._on_joined(event.response)
            case Draft3PingResponse() if self.state is NewConsumerState.PINGING:
                self.cancel_timer("answer")
                self._on_ping(event.response)

    def _on_metadata(self, response: Draft3MetadataResponse) -> None:
        """Learn the cluster, and the coordinator; other partitions than before are a reason to join again."""
        if response.brokers:
            self.cluster = {
                broker.node_id: BrokerAddress(broker.host or "", broker.port) for broker in response.brokers
            }  # fmt: skip
        shape = {topic.name or "": len(topic.partitions) for topic in response.topics_metadata}
        changed, self._shape = shape != self._shape, shape
        if self.state is not NewConsumerState.REFRESHING:
            if changed and self.state is NewConsumerState.PINGING:
                self._join()
            return
        self.cancel_timer("answer")
        coordinator_id = response.coordinator_ids[0] if response.coordinator_ids else -1
        address = self.cluster.get(coordinator_id)
        if address is None:
            self._retry()
            return
        self._leave_connection()
        self.state = NewConsumerState.REACHING
        self._connection = self.connect(*address)
        self._expect_answer()

    # --- joining ---

    def _join(self) -> None:
        """Stop, and ask for partitions. The answer comes when the others have joined too."""
        assert self._connection is not None
        self._stop()
        for key in ("ping", "refresh", "answer"):
            self.cancel_timer(key)
        self.state = NewConsumerState.JOINING
        self._knows_owned = False
        config = self.config
        self._sent_at = self.now
        self.send(self._connection, Draft3JoinGroupRequest(
            group_id=config.group_id, consumer_addr=config.client_id,
            session_timeout=config.session_timeout_ms, subscribing=list(self.topics),
        ))  # fmt: skip
        self.after("answer", 2 * config.session_timeout_ms, self._retry)  # others have one to join in

    def _on_joined(self, response: Draft3JoinGroupResponse) -> None:
        if response.error_code:
            self.note("JoinRefused", f"error {response.error_code}")
            self._retry()
            return
        self.consumer_id = response.consumer_id or ""
        self.generation = response.generation
        self.state = NewConsumerState.PINGING
        owned = [
            DraftPartition(assigned.topic or "", str(assigned.partition))
            for assigned in response.partitions_to_own
        ]
        self._knows_owned = True
        self.owned = {partition: self._offsets.get(partition, 0) for partition in owned}
        self._hold_lease(self._sent_at)
        self._ping()
        self.after("refresh", self.config.metadata_refresh_ms, self._refresh)

    def _refresh(self) -> None:
        assert self._connection is not None
        self.send(self._connection, Draft3MetadataRequest(
            client_id=self.config.client_id, topics=list(self.topics), group_ids=[self.config.group_id]
        ))  # fmt: skip
        self.after("refresh", self.config.metadata_refresh_ms, self._refresh)

    # --- pings ---

    def _start_pinging(self) -> None:
        """Coordinator failure handling, step 3: start sending heartbeats to the coordinator."""
        self.state = NewConsumerState.PINGING
        self._ping()
        self.after("refresh", self.config.metadata_refresh_ms, self._refresh)

    def _ping(self) -> None:
        assert self._connection is not None
        self.send(self._connection, Draft3PingRequest(
            group_id=self.config.group_id, consumer_id=self.consumer_id
        ))  # fmt: skip
        self._sent_at = self.now
        self._expect_answer()

    def _on_ping(self, response: Draft3PingResponse) -> None:
        match response.error_code:
            case DraftError.NONE if not self._knows_owned:
                self._join()
            case DraftError.NONE:
                self._hold_lease(self._sent_at)
                self.after("ping", self._sent_at + self.config.ping_interval_ms - self.now, self._ping)
            case DraftError.REBALANCE_IN_PROGRESS:
                self._join()
            case DraftError.UNKNOWN_CONSUMER:
                self.consumer_id = ""
                self._join()
            case code:
                self.note("PingRefused", f"error {code}")
                self._stop()
                self._retry()

    def _hold_lease(self, since: int) -> None:
        """The coordinator knows that this consumer lived at that time, or later: it may fetch until its
        session would be over. An answer that took longer gives nothing; that to the next ping may."""
        until = since + self.config.session_timeout_ms
        if until <= self.now:
            return
        self._stop_at(until)
        if not self.fetching:
            self.fetching = True
            self.do(FetchersStarted(dict(self.owned)))

    def _stop_at(self, time: int) -> None:
        self.at("lease", time, self._stop)

    def _stop(self) -> None:
        self.cancel_timer("lease")
        if self.fetching:
            self.fetching = False
            self._offsets |= self.owned
            self.do(FetchersStopped(dict(self.owned)))

    # --- the application ---

    def consumed(self, partition: DraftPartition, offset: int) -> None:
        """The application has consumed a partition up to here."""
        if partition in self.owned:
            self.owned[partition] = offset

    def subscribe(self, topics: tuple[str, ...]) -> None:
        """A subscription that changes is a consumer that starts again."""
        self.topics = topics
        self._shape = {}
        if self.state is NewConsumerState.PINGING:
            self._join()

    def close(self) -> None:
        self._stop()
        self.state = NewConsumerState.CLOSED
        self._leave_connection()
