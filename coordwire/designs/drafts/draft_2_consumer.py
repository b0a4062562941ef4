"""A consumer of the detailed design.

Source: "Kafka Detailed Consumer Coordinator Design", sections 7, 8.5, 10, 11 and 13. Rules of this draft:
brokers are tried in turn for ever; fetchers stop as soon as the connection is lost, or nothing was received
for the session timeout (section 10; a third of it by section 8.5); a refused registration closes the
connection and leads back to step 1.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace

from coordwire.codec import Message
from coordwire.connection.events import RequestReceived
from coordwire.designs.drafts.actions import DraftPartition
from coordwire.designs.drafts.consumer_streams import ConsumerStreams
from coordwire.designs.drafts.discovering_consumer import ConsumerState, DiscoveringConsumer
from coordwire.designs.drafts.draft_settings import BrokerAddress, DraftError
from coordwire.designs.drafts.topic_interest import TopicInterest
from coordwire.dialects.zookeeper import StaticTopics
from coordwire.messages.draft_2 import (
    Draft2ClusterMetadataRequest,
    Draft2ClusterMetadataResponse,
    Draft2CommitOffsetRequest,
    Draft2CommitOffsetResponse,
    Draft2PartitionOffset,
    Draft2PingRequest,
    Draft2PingResponse,
    Draft2RegisterConsumerRequest,
    Draft2RegisterConsumerResponse,
    Draft2StartFetcherRequest,
    Draft2StartFetcherResponse,
    Draft2StopFetcherRequest,
    Draft2StopFetcherResponse,
)


@dataclass(frozen=True, slots=True, kw_only=True)
class DetailedDesignConsumerConfig:
    """A consumer's settings, times in milliseconds."""

    group_id: str
    consumer_id: str
    topic_count: str
    auto_commit: bool = True
    auto_offset_reset: str = "smallest"
    session_timeout_ms: int = 6_000
    retry_backoff_ms: int = 500
    silent_thirds: int = 3
    """After how many thirds of the session timeout without a request the coordinator counts as failed: 3 by
    section 10, 1 by section 8.5."""
    group_coordinators: bool = False
    """Whether each subset of the groups has its coordinator, so that the request names the group."""

    @property
    def silence_ms(self) -> int:
        return self.session_timeout_ms * self.silent_thirds // 3


class DetailedDesignConsumer(DiscoveringConsumer):
    """One consumer. known: its bootstrap brokers."""

    def __init__(
        self, config: DetailedDesignConsumerConfig, known: Mapping[int, BrokerAddress], *, now: int = 0
    ) -> None:
        super().__init__(known, config.silence_ms, config.retry_backoff_ms, now)
        self.config = config
        self._turn = 0
        self._refused_in_a_row = 0
        self._shutting_down = False
        self._last_offsets_sent = False
        self._out_of_range = False

    @property
    def subscription(self) -> tuple[str, TopicInterest | None]:
        return self.config.consumer_id, TopicInterest.valid(self.config.topic_count)

    # --- startup ---

    def choose_broker(self) -> BrokerAddress | None:
        """Step 1: round robin; after a round in vain it waits before the next."""
        if self._refused_in_a_row >= len(self.cluster):
            self._refused_in_a_row = 0
            return None
        self._refused_in_a_row += 1
        numbers = sorted(self.cluster)
        self._turn += 1
        return self.cluster[numbers[(self._turn - 1) % len(numbers)]]

    def on_no_broker(self) -> None:
        """Step 1.2: it keeps retrying; brokers that it has learnt of may be gone, so it begins with those of
        its list."""
        self.note("NoBrokerAvailable", ", ".join(map(str, sorted(self.cluster))))
        self.cluster = dict(self._known)
        self.retry()

    def discovery_request(self) -> Message:
        if self.config.group_coordinators:
            return Draft2ClusterMetadataRequest(group_id=self.config.group_id)
        return Draft2ClusterMetadataRequest()

    def _on_Draft2ClusterMetadataResponse(self, response: Draft2ClusterMetadataResponse) -> None:
        self._refused_in_a_row = 0
        self.reach_coordinator(
            response.error_code, response.coordinator_id,
            {broker.id: BrokerAddress(broker.host or "", broker.port) for broker in response.brokers_info},
        )  # fmt: skip

    def registration(self) -> Message:
        config = self.config
        return Draft2RegisterConsumerRequest(
            group_id=config.group_id, consumer_id=config.consumer_id, topic_count=config.topic_count,
            auto_commit=config.auto_commit, auto_offset_rest=config.auto_offset_reset,
            session_timeout_ms=config.session_timeout_ms,
        )  # fmt: skip

    def _on_Draft2RegisterConsumerResponse(self, response: Draft2RegisterConsumerResponse) -> None:
        """Step 5: go on, or close and go back to step 1."""
        if response.error_code:
            self.note("RegistrationRefused", f"error {response.error_code}")
            self.retry()
        else:
            self.state = ConsumerState.REGISTERED

    def on_lost(self) -> None:
        """Section 8.5 and 10: fetchers stop until it is registered and started again. What it owned may be
        another's by then, whose offsets it must not report over."""
        self.stop_fetchers()
        self.owned = {}
        if self._shutting_down:
            self.close()

    # --- the coordinator's requests ---

    def _offsets(self) -> list[Draft2PartitionOffset]:
        return self._consumed_offsets() if self.config.auto_commit else []

    def _consumed_offsets(self) -> list[Draft2PartitionOffset]:
        return [
            Draft2PartitionOffset(topic=partition.topic, partition=partition.partition, offset=offset)
            for partition, offset in self.owned.items()
        ]

    def _error(self, consumer_id: str | None) -> DraftError:
        """A request that names another consumer."""
        return DraftError.NONE if consumer_id == self.config.consumer_id else DraftError.UNKNOWN_CONSUMER

    def _on_Draft2PingRequest(self, event: RequestReceived, request: Draft2PingRequest) -> None:
        """Step 1 comes first: a consumer that shuts down answers, whatever its fetchers do."""
        assert self._connection is not None
        if self._out_of_range and not self._shutting_down:  # step 2
            self._out_of_range = False
            self.on_lost()
            self.retry()
            return
        response = Draft2PingResponse(
            error_code=self._error(request.consumer_id), consumer_id=self.config.consumer_id,
            offset_info=self._offsets(),
        )  # fmt: skip
        self.send(self._connection, response, event)
        if self._shutting_down:  # step 1
            if not self.config.auto_commit or self._last_offsets_sent:
                self.close()
            self._last_offsets_sent = True

    def _on_Draft2StopFetcherRequest(self, event: RequestReceived, request: Draft2StopFetcherRequest) -> None:
        assert self._connection is not None
        error = self._error(request.consumer_id)
        if not error:
            self.stop_fetchers()
        response = Draft2StopFetcherResponse(
            error_code=error, consumer_id=self.config.consumer_id, offset_info=self._offsets()
        )
        self.send(self._connection, response, event)

    def _on_Draft2StartFetcherRequest(
        self, event: RequestReceived, request: Draft2StartFetcherRequest
    ) -> None:
        """Fetchers that still run are stopped first: the document has no error for them."""
        assert self._connection is not None
        error = self._error(request.consumer_id)
        if not error:
            if request.brokers_info:
                self.cluster = {
                    broker.id: BrokerAddress(broker.host or "", broker.port)
                    for broker in request.brokers_info
                }  # fmt: skip
            self.stop_fetchers()
            by_thread = partitions_by_thread(request)
            self.start_fetchers(
                {partition: offset for parts in by_thread.values() for partition, offset in parts.items()},
                {partition: thread for thread, parts in by_thread.items() for partition in parts},
            )
        response = Draft2StartFetcherResponse(error_code=error, consumer_id=self.config.consumer_id)
        self.send(self._connection, response, event)

    # --- the application ---

    def fail_fetchers(self) -> None:
        """The fetchers have stopped by themselves, by an offset out of range: the next ping reveals it."""
        self.stop_fetchers()
        self._out_of_range = True

    def commit_offsets(self) -> None:
        """Write what it has consumed, without waiting for a ping (section 13)."""
        if self.state is ConsumerState.REGISTERED and self._connection is not None:
            self.send(self._connection, Draft2CommitOffsetRequest(
                consumer_id=self.config.consumer_id, offset_info=self._consumed_offsets()
            ))  # fmt: skip

    def _on_Draft2CommitOffsetResponse(self, response: Draft2CommitOffsetResponse) -> None:
        if response.error_code:
            self.note("CommitRefused", f"error {response.error_code}")

    def subscribe(self, topic_count: str) -> None:
        """createMessageStreams once more: commit what it has consumed, if it does so by itself, and register
        again, so that each partition goes on where it was."""
        if self.config.auto_commit:
            self.commit_offsets()
        self.config = replace(self.config, topic_count=topic_count)
        self.on_lost()
        self.streams = ConsumerStreams(StaticTopics({}), "")
        if self.state in (ConsumerState.REGISTERING, ConsumerState.REGISTERED):
            self.retry()

    def shut_down(self) -> None:
        """End after the next ping, with auto-commit after the one after it (section 11)."""
        self._shutting_down = True
        if self.state is not ConsumerState.REGISTERED:
            self.close()


def partitions_by_thread(request: Draft2StartFetcherRequest) -> dict[str, dict[DraftPartition, int]]:
    """The partitions of each thread, with the offsets at which it begins."""
    return {
        thread.consumer_thread_id or "": {
            DraftPartition(part.topic or "", part.partition or ""): part.offset
            for part in thread.assigned_parts
        }
        for thread in request.ownership_info
    }
