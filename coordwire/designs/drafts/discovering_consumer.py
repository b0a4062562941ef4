"""A consumer of drafts 1 and 2 up to its registration: it finds the coordinator by asking known brokers.

Source: "On Consumer Startup" of the first draft, and section 7 of the detailed design. Strategy: one
connection to a known broker, then one to the coordinator; whatever ends one of them early leads back to the
next broker, and each broker that cannot be reached is noted. Rules: the coordinator sends the requests from
then on. A consumer that receives nothing for its time rediscovers the coordinator. Fetchers are what
`FetchersStarted` and `FetchersStopped` say; where a Start names no threads, the consumer divides each topic's
partitions among its own, in ranges.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from enum import Enum
from typing import Any

from coordwire.codec import Message
from coordwire.connection.events import RequestReceived, ResponseReceived
from coordwire.designs.drafts.actions import DraftPartition, FetchersStarted, FetchersStopped
from coordwire.designs.drafts.consumer_streams import (
    ConsumerFetcherManager,
    ConsumerStreams,
    StreamingConsumer,
)
from coordwire.designs.drafts.draft_settings import BrokerAddress
from coordwire.designs.drafts.machine import Machine
from coordwire.designs.drafts.topic_interest import TopicInterest, plan_ownership
from coordwire.dialects.zookeeper import StaticTopics

_SILENCE = "silence"
_RETRY = "retry"


class ConsumerState(Enum):
    """Where a consumer is in its life."""

    NEW = "new"
    CONNECTING = "connecting to a known broker"
    ASKING = "asking for the coordinator"
    WAITING = "waiting before the next attempt"
    REACHING = "connecting to the coordinator"
    REGISTERING = "waiting to be accepted"
    REGISTERED = "registered"
    CLOSED = "closed"


class DiscoveringConsumer(Machine, StreamingConsumer):
    """The common part of consumers of drafts 1 and 2. known: the brokers of the properties file."""

    def __init__(self, known: Mapping[int, BrokerAddress], silence_ms: int, retry_ms: int, now: int) -> None:
        super().__init__(now=now)
        self.state = ConsumerState.NEW
        self.cluster = dict(known)
        self.owned: dict[DraftPartition, int] = {}
        """What it owns (the topic registry), each with how far it has consumed."""
        self.threads: dict[DraftPartition, str] = {}
        self.streams = ConsumerStreams(StaticTopics({}), "")
        self.fetchers = ConsumerFetcherManager()
        self.fetching = False
        self._known = dict(known)
        self._silence_ms = silence_ms
        self._retry_ms = retry_ms
        self._connection: int | None = None
        self._address = BrokerAddress("", 0)

    # --- what each draft has of its own ---

    def choose_broker(self) -> BrokerAddress | None:
        """The broker to ask next; None if all of them were tried."""
        raise NotImplementedError

    def discovery_request(self) -> Message:
        raise NotImplementedError

    def registration(self) -> Message:
        raise NotImplementedError

    @property
    def subscription(self) -> tuple[str, TopicInterest | None]:
        """Its id, and what it reads; None for a topic_count that every coordinator refuses."""
        raise NotImplementedError

    def on_no_broker(self) -> None:
        """All known brokers were tried in vain."""

    def on_lost(self) -> None:
        """The coordinator is gone, or counts as such."""

    # --- discovery ---

    def on_start(self) -> None:
        self.discover()

    def discover(self) -> None:
        """consumerStartup, step 1."""
        self._leave_connection()
        address = self.choose_broker()
        if address is None:
            self.on_no_broker()
            return
        self.state = ConsumerState.CONNECTING
        self._address = address
        self._connection = self.connect(*address)
        self._expect_sound()

    def retry(self) -> None:
        """Ask again after a while."""
        self._leave_connection()
        self.state = ConsumerState.WAITING
        self.after(_RETRY, self._retry_ms, self.discover)

    def _leave_connection(self) -> None:
        self.cancel_timer(_SILENCE)
        self.cancel_timer(_RETRY)
        if self._connection is not None:
            self.disconnect(self._connection)
            self._connection = None

    def opened(self, connection: int) -> None:
        if connection != self._connection:
            return
        self._expect_sound()
        if self.state is ConsumerState.CONNECTING:
            self.state = ConsumerState.ASKING
            request = self.discovery_request()
            self.send(connection, request, version=int(bool(getattr(request, "group_id", ""))))
        elif self.state is ConsumerState.REACHING:
            self.state = ConsumerState.REGISTERING
            self.send(connection, self.registration())
            self.on_registration_sent()

    def on_registration_sent(self) -> None:
        """The registration is on its way."""

    def closed(self, connection: int) -> None:
        if connection != self._connection:
            return
        self._connection = None
        self._lost()

    def _lost(self) -> None:
        """The connection is gone: the next broker, or the coordinator again."""
        had = self.state
        if had in (ConsumerState.REGISTERING, ConsumerState.REGISTERED):
            self.on_lost()
        if self.state is ConsumerState.CLOSED:  # perhaps by `on_lost`
            self._leave_connection()
        elif had is ConsumerState.CONNECTING:
            self.note("BrokerUnreachable", f"{self._address.host}:{self._address.port}")
            self.discover()
        else:
            self.retry()

    def reach_coordinator(
        self, error_code: int, coordinator_id: int, brokers: Mapping[int, BrokerAddress]
    ) -> None:
        """consumerStartup, steps 3 and 4: update the cluster, and connect to the coordinator."""
        if brokers:
            self.cluster = dict(brokers)
        address = self.cluster.get(coordinator_id)
        if error_code or address is None:
            self.retry()
            return
        self._leave_connection()
        self.state = ConsumerState.REACHING
        self._connection = self.connect(*address)
        self._expect_sound()

    # --- silence ---

    def _expect_sound(self) -> None:
        self.expect_sound_within(self._silence_ms)

    def expect_sound_within(self, limit_ms: int) -> None:
        """The connection counts as lost if nothing is received for this time."""
        self.after(_SILENCE, limit_ms, self._fall_silent)

    def _fall_silent(self) -> None:
        self.note("Silence", self.state.value)
        self._leave_connection()
        self._lost()

    # --- what is received ---

    def on_request(self, connection: int, event: RequestReceived) -> None:
        if connection != self._connection:
            return
        self._expect_sound()
        request: Any = event.request
        handler = getattr(self, f"_on_{type(request).__name__}", None)
        if handler is None or self.state is not ConsumerState.REGISTERED:
            self._out_of_state(connection, request)
        else:
            handler(event, request)

    def on_response(self, connection: int, event: ResponseReceived[Any]) -> None:
        if connection != self._connection:
            return
        self._expect_sound()
        getattr(self, f"_on_{type(event.response).__name__}")(event.response)

    # --- fetchers ---

    def start_fetchers(
        self, partitions: Mapping[DraftPartition, int], threads: Mapping[DraftPartition, str] | None = None
    ) -> None:
        """threads: which of its threads reads each partition, where the Start says so."""
        self._create_streams()
        self.owned = dict(partitions)
        self.threads = dict(threads or self._divide(partitions))
        self.fetchers.start({partition: max(offset, 0) for partition, offset in partitions.items()})
        self.fetching = True
        self.do(FetchersStarted(dict(partitions), dict(threads or {})))

    def _create_streams(self) -> None:
        """Make the streams, at the first Start, and of a wildcard at each."""
        consumer_id, interest = self.subscription
        if interest is not None and (interest.is_wildcard or not self.streams.all()):
            self.streams = ConsumerStreams(interest.count, consumer_id)

    def _divide(self, partitions: Iterable[DraftPartition]) -> dict[DraftPartition, str]:
        """Ranges of each topic's partitions, to its own threads."""
        consumer_id, interest = self.subscription
        names: dict[str, list[str]] = {}
        for topic, name in partitions:
            names.setdefault(topic, []).append(name)
        return plan_ownership({consumer_id: interest.streams(names)}, names) if interest else {}

    def stop_fetchers(self) -> None:
        """Close all fetchers, and clean the queues: what waits in them was not consumed."""
        if self.fetching:
            self.fetching = False
            self.fetchers.stop()
            self.streams.clear()
            self.do(FetchersStopped(dict(self.owned)))

    def close(self) -> None:
        """End: no fetchers, no connection."""
        self.stop_fetchers()
        self.state = ConsumerState.CLOSED
        self._leave_connection()
