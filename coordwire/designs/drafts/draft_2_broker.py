"""A broker of the detailed design, with its coordinator.

Source: "Kafka Detailed Consumer Coordinator Design". Its section 2 describes another protocol (a rebalance
closes connections, and the registration's answer lists partitions: overview.py) than sections 5 to 12;
this is the latter, whose messages have layouts. Rules: Stop to all, wait for all, commit, Start to all, wait
for all, then write the ownership; an answer is due within 2/3 of the session timeout; a new coordinator waits
for the consumers that ZooKeeper's owners name. What the text leaves open, and what was decided, is listed in
docs/history/drafts.md.
"""

from __future__ import annotations

from collections.abc import Mapping

from coordwire.codec import Message
from coordwire.connection.events import RequestReceived
from coordwire.designs.drafts.actions import DraftPartition
from coordwire.designs.drafts.draft_1_broker import starting_offset
from coordwire.designs.drafts.draft_settings import BrokerSettings, DraftError
from coordwire.designs.drafts.machine import Steps, Wait
from coordwire.designs.drafts.pinging_coordinator import (
    ConsumerRegistry,
    GroupRegistry,
    PingingCoordinator,
    split_plan,
)
from coordwire.designs.drafts.topic_interest import TopicInterest
from coordwire.designs.drafts.zookeeper_operations import GetChildren
from coordwire.designs.drafts.zookeeper_steps import read_offsets, read_owners, rebalance_reason, write_owners
from coordwire.dialects.zookeeper import Registration
from coordwire.errors import DecodeError, EncodeError
from coordwire.messages.draft_2 import (
    Draft2Broker,
    Draft2ClusterMetadataRequest,
    Draft2ClusterMetadataResponse,
    Draft2CommitOffsetRequest,
    Draft2CommitOffsetResponse,
    Draft2Ownership,
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


class DetailedDesignBroker(PingingCoordinator):
    """A broker that speaks draft-2.

    literal: rebalance only for the four reasons of section 9; else a consumer that has registered since the
    last rebalance is one too, and so is an attempt that has stopped the consumers and failed: without them
    they would never be started where the plan stays the same.
    """

    closed_fails = True  # section 12.7, sendStopFetcherRequest and sendStartFetcherRequest

    def __init__(self, settings: BrokerSettings, *, now: int = 0, literal: bool = False) -> None:
        super().__init__(settings, now=now)
        self.literal = literal
        self._next_handler = 0

    # --- any broker ---

    def _cluster(self) -> list[Draft2Broker]:
        return [
            Draft2Broker(id=number, host=address.host, port=address.port)
            for number, address in sorted(self.brokers.items())
        ]

    def _on_Draft2ClusterMetadataRequest(
        self, connection: int, event: RequestReceived, request: Draft2ClusterMetadataRequest
    ) -> None:
        coordinator_id = self.coordinator_of(request.group_id)
        known = coordinator_id >= 0
        response = Draft2ClusterMetadataResponse(
            error_code=DraftError.NONE if known else DraftError.COORDINATOR_NOT_AVAILABLE,
            coordinator_id=coordinator_id,
            brokers_info=self._cluster(),
        )
        self.send(connection, response, event)

    # --- startup (section 5), failover (sections 2 and 10) ---

    def on_startup(self, office: int, group_ids: list[str]) -> Steps:
        """Wait for the consumers that the owners' nodes name, as section 2 wants it of those known."""
        elected_at = self.now
        lists = (
            yield tuple(GetChildren(f"/consumers/{name}/owners") for name in group_ids)
        ) if group_ids else ()  # fmt: skip
        for name, outcome in zip(group_ids, lists, strict=True):
            owners = yield from read_owners(name, outcome.children)
            group = self.groups.setdefault(name, GroupRegistry(name))
            group.topics |= set(outcome.children)
            group.awaited = {thread.rpartition("-")[0] for thread in owners.values()} - set(group.members)
            group.awaited_since = elected_at
            if group.awaited:
                self._await_until(group)
        for group in self.groups_of(office):
            if not group.awaited:
                self._wait_is_over(group)
        self.start_committer()

    def _await_until(self, group: GroupRegistry) -> None:
        """A consumer that lives notices within its session timeout that the coordinator is gone, and
        registers; how long that is follows from the others' registrations alone."""
        sessions = (3 * member.ping_ms for member in group.members.values())
        longest = max(*sessions, group.awaited_ms, self.settings.min_session_timeout_ms)
        until = group.awaited_since + longest
        self.at(("recovery", group.group_id), max(until, self.now), lambda: self._wait_is_over(group))

    def _wait_is_over(self, group: GroupRegistry) -> None:
        self.cancel_timer(("recovery", group.group_id))
        group.awaited = set()
        if group.members:
            self.try_rebalance(group)

    def on_resigned(self, office: int) -> None:
        for group in self.groups_of(office):
            self.cancel_timer(("recovery", group.group_id))
        super().on_resigned(office)

    # --- registration (section 7) ---

    def _on_Draft2RegisterConsumerRequest(
        self, connection: int, event: RequestReceived, request: Draft2RegisterConsumerRequest
    ) -> None:
        """The checks, in the document's order; the consumer closes where it is refused."""
        error = self._check(connection, request)
        if error:
            self.send(connection, Draft2RegisterConsumerResponse(error_code=error), event)
            self.note("RegistrationRefused", f"{request.group_id}/{request.consumer_id}: {error.name}")
            return
        third = request.session_timeout_ms // 3
        group = self.register(connection, ConsumerRegistry(
            request.group_id or "", request.consumer_id or "", connection,
            TopicInterest.parse(request.topic_count), request.auto_commit,
            starting_offset(request.auto_offset_rest), max(third, 1), max(2 * third, 1),
            self.settings.max_ping_retries,
        ))  # fmt: skip
        self.on_accepted(connection, event)
        if self.starts_up(group.group_id) and not group.awaited:
            return  # whom to wait for is not known yet; `on_startup` goes on
        if not group.awaited:
            self.try_rebalance(group)
            return
        group.awaited.discard(request.consumer_id or "")
        if group.awaited:
            self._await_until(group)
        else:
            self._wait_is_over(group)

    def on_accepted(self, connection: int, event: RequestReceived) -> None:
        """A consumer was registered: its answer."""
        self.send(connection, Draft2RegisterConsumerResponse(), event)

    def _check(self, connection: int, request: Draft2RegisterConsumerRequest) -> DraftError:
        if not self.coordinates_group(request.group_id):
            return DraftError.NOT_COORDINATOR
        group = self.groups.get(request.group_id or "")
        known = group is not None and (request.consumer_id or "") in group.members
        if known or connection in self._consumers:
            return DraftError.DUPLICATE_CONSUMER
        if request.session_timeout_ms <= max(self.settings.min_session_timeout_ms, 1):
            return DraftError.INVALID_SESSION_TIMEOUT
        try:
            Registration.path(request.group_id or "", request.consumer_id or "")
        except EncodeError:
            return DraftError.INVALID_GROUP_ID
        try:
            TopicInterest.parse(request.topic_count)
        except DecodeError:
            return DraftError.INVALID_REGISTRATION
        return DraftError.NONE

    # --- failure detection (section 8) ---

    def ping_request(self, consumer: ConsumerRegistry) -> Message:
        return Draft2PingRequest(consumer_id=consumer.consumer_id, num_retries=consumer.failures)

    def _on_Draft2PingResponse(
        self, consumer: ConsumerRegistry, response: Draft2PingResponse, request: Message
    ) -> None:
        self.answered_ping(consumer, response)

    def _on_Draft2CommitOffsetRequest(
        self, connection: int, event: RequestReceived, request: Draft2CommitOffsetRequest
    ) -> None:
        """Section 13, "Active CommitOffset on Consumers": as if the offsets had come with a ping, and written
        at once."""
        consumer = self._consumers.get(connection)
        known = consumer is not None and consumer.consumer_id == request.consumer_id
        error = DraftError.NONE if known else DraftError.UNKNOWN_CONSUMER
        if consumer is not None and known:
            self.record_offsets(self.groups[consumer.group_id], request)
            self.start_commit(self.groups[consumer.group_id])
        response = Draft2CommitOffsetResponse(error_code=error, consumer_id=request.consumer_id)
        self.send(connection, response, event)

    def on_consumer_closed(self, consumer: ConsumerRegistry) -> None:
        """A consumer that closes its connection has left: section 11 lets it reconnect "in order to trigger
        rebalance", which a registration that is still there would prevent."""
        if self.is_known(consumer):
            self.note("ConsumerClosed", f"{consumer.group_id}/{consumer.consumer_id}")
            self.on_consumer_failed(consumer)

    def on_consumer_failed(self, consumer: ConsumerRegistry) -> None:
        """handleConsumerFailure; step 4: an ongoing rebalance fails directly."""
        self.fail_attempt(consumer)
        super().on_consumer_failed(consumer)

    # --- rebalances (section 9) ---

    def find_handler(self, group: GroupRegistry) -> int:
        """The handler that has the group already, else the next in turn (addRebalanceRequest)."""
        if group.handler is None:
            group.handler = self._next_handler
            self._next_handler = (self._next_handler + 1) % len(self._queues)
        return group.handler

    def on_dequeued(self, group: GroupRegistry) -> None:
        group.queued = False

    def on_rebalanced(self, group: GroupRegistry, succeeded: bool) -> None:
        if not group.queued:
            group.handler = None

    def back_off(self, group: GroupRegistry) -> Steps:
        """Step 5, or by section 13 a third of the longest session timeout of the group."""
        wait_ms = self.settings.rebalance_backoff_ms
        if self.settings.endless_retries:
            wait_ms = max((member.ping_ms for member in group.members.values()), default=wait_ms)
        until = self.now + wait_ms
        while self.now < until:
            yield Wait(until)

    def rebalance(self, group: GroupRegistry) -> Steps:
        members = dict(group.members)
        if not members or group.awaited:
            return True
        registered = group.registered & set(members)
        plan, owners, partitions = yield from self.plan(members)
        necessary = rebalance_reason(plan, owners, partitions) is not None
        if not necessary and (self.literal or not (registered or group.stopped)):
            return not group.failed
        stop = {name: Draft2StopFetcherRequest(consumer_id=name) for name in members}
        if group.failed:
            return False
        group.stopped = True
        if not (yield from self.broadcast(group, members, stop)):
            return False
        yield from self.commit(group)
        offsets = yield from read_offsets(group.group_id, plan)
        if group.failed:
            return False
        start = self._starts(members, plan, offsets)
        if not (yield from self.broadcast(group, members, start)):
            return False
        yield from write_owners(group.group_id, plan, owners)
        group.registered -= registered
        group.stopped = group.failed
        return not group.failed

    def _starts(
        self,
        members: Mapping[str, ConsumerRegistry],
        plan: Mapping[DraftPartition, str],
        offsets: Mapping[DraftPartition, int],
    ) -> dict[str, Message]:
        owned = split_plan(plan)
        cluster = self._cluster()
        return {
            name: Draft2StartFetcherRequest(
                consumer_id=name,
                ownership_info=[
                    Draft2Ownership(consumer_thread_id=thread, assigned_parts=[
                        Draft2PartitionOffset(
                            topic=partition.topic, partition=partition.partition,
                            offset=offsets.get(partition, consumer.starts_at),
                        )
                        for partition in parts
                    ])
                    for thread, parts in owned.get(name, {}).items()
                ],
                brokers_info=cluster,
            )
            for name, consumer in members.items()
        }  # fmt: skip

    def _on_Draft2StopFetcherResponse(
        self, consumer: ConsumerRegistry, response: Draft2StopFetcherResponse, request: Message
    ) -> None:
        self.keep_offsets(consumer, response)
        self.answered(consumer, response, request)

    def _on_Draft2StartFetcherResponse(
        self, consumer: ConsumerRegistry, response: Draft2StartFetcherResponse, request: Message
    ) -> None:
        self.answered(consumer, response, request)
