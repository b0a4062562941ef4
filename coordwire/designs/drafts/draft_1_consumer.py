"""A consumer of the first draft.

Source: the consumer coordinator's first draft, "On Consumer Startup" and "On Consumer Handling Coordinator
Request". Rules of this draft: known brokers are tried in random order, each once; the first request is
expected within one ping interval; a consumer that receives nothing rediscovers the coordinator, but its
fetchers run on until a Stop, since the text lets nothing else stop them.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from random import Random

from coordwire.codec import Message
from coordwire.connection.events import RequestReceived
from coordwire.designs.drafts.actions import DraftPartition
from coordwire.designs.drafts.discovering_consumer import ConsumerState, DiscoveringConsumer
from coordwire.designs.drafts.draft_settings import BrokerAddress, DraftError
from coordwire.designs.drafts.topic_interest import TopicInterest
from coordwire.messages.draft_1 import (
    Draft1ConsultRequest,
    Draft1ConsultResponse,
    Draft1PartitionOffset,
    Draft1PingRequest,
    Draft1PingResponse,
    Draft1RegisterRequest,
    Draft1StartRequest,
    Draft1StartResponse,
    Draft1StopRequest,
)


@dataclass(frozen=True, slots=True, kw_only=True)
class FirstDraftConsumerConfig:
    """A consumer's settings. idle_timeout_ms: the "configurable amount of time" without a request after which
    the connection counts as lost; None: as long as the coordinator pings in vain."""

    group_id: str
    consumer_id: str
    topic_count: str
    auto_commit: bool = True
    auto_offset_reset: str = "smallest"
    ping_interval_ms: int = 2_000
    max_ping_retries: int = 3
    idle_timeout_ms: int | None = None
    retry_backoff_ms: int = 500

    @property
    def silence_ms(self) -> int:
        if self.idle_timeout_ms is not None:
            return self.idle_timeout_ms
        return self.ping_interval_ms * (self.max_ping_retries + 1)


class FirstDraftConsumer(DiscoveringConsumer):
    """One consumer. known: the brokers of its properties file; random: chooses among them."""

    def __init__(
        self,
        config: FirstDraftConsumerConfig,
        known: Mapping[int, BrokerAddress],
        *,
        random: Random,
        now: int = 0,
    ) -> None:
        super().__init__(known, config.silence_ms, config.retry_backoff_ms, now)
        self.config = config
        self._random = random
        self._untried: list[int] | None = None

    @property
    def subscription(self) -> tuple[str, TopicInterest | None]:
        return self.config.consumer_id, TopicInterest.valid(self.config.topic_count)

    # --- startup ---

    def choose_broker(self) -> BrokerAddress | None:
        if self._untried is None:
            self._untried = sorted(self._known)
        if not self._untried:
            self._untried = None
            return None
        number = self._untried.pop(self._random.randrange(len(self._untried)))
        return self._known[number]

    def on_no_broker(self) -> None:
        """Step 1.2: throw and return; the application may start it again."""
        self.note("AllKnownBrokersNotAvailable", ", ".join(map(str, sorted(self._known))))
        self.close()

    def discovery_request(self) -> Message:
        return Draft1ConsultRequest()

    def _on_Draft1ConsultResponse(self, response: Draft1ConsultResponse) -> None:
        self._untried = None
        self.reach_coordinator(
            response.error_code, response.coordinator_id,
            {broker.id: BrokerAddress(broker.host or "", broker.port) for broker in response.brokers_info},
        )  # fmt: skip

    def registration(self) -> Message:
        config = self.config
        return Draft1RegisterRequest(
            group_id=config.group_id, consumer_id=config.consumer_id, topic_count=config.topic_count,
            auto_commit=config.auto_commit, auto_offset_rest=config.auto_offset_reset,
            ping_interval_ms=config.ping_interval_ms, max_ping_retries=config.max_ping_retries,
        )  # fmt: skip

    def on_registration_sent(self) -> None:
        """There is no answer: from now on it reads requests, the first one within ping_interval_ms."""
        self.state = ConsumerState.REGISTERED
        self.expect_sound_within(min(self.config.ping_interval_ms, self.config.silence_ms))

    # --- the coordinator's requests ---

    def _on_Draft1PingRequest(self, event: RequestReceived, request: Draft1PingRequest) -> None:
        assert self._connection is not None
        offsets = [
            Draft1PartitionOffset(topic=partition.topic, partition=partition.partition, offset=offset)
            for partition, offset in self.owned.items()
        ]
        response = Draft1PingResponse(offset_info=offsets if self.config.auto_commit else [])
        self.send(self._connection, response, event)

    def _on_Draft1StopRequest(self, event: RequestReceived, request: Draft1StopRequest) -> None:
        """Steps 1.1 and 1.2; it is not answered."""
        self.stop_fetchers()

    def _on_Draft1StartRequest(self, event: RequestReceived, request: Draft1StartRequest) -> None:
        """handleStartRequest; step 3: other partitions while fetchers run are an IllegalStateException."""
        assert self._connection is not None
        assigned = {
            DraftPartition(part.topic or "", part.partition or ""): part.offset
            for part in request.assigned_parts
        }
        if self.fetching and assigned.keys() != self.owned.keys():
            self.note("IllegalStateException", "Start with other partitions while fetchers run")
            self.send(self._connection, Draft1StartResponse(error_code=DraftError.ILLEGAL_STATE), event)
            return
        if not self.fetching:
            self.start_fetchers(assigned)
        self.send(self._connection, Draft1StartResponse(error_code=DraftError.NONE), event)
