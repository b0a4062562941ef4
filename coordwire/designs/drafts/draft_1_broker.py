"""A broker of the first draft, with its coordinator.

Source: the consumer coordinator's first draft. What the text leaves open, and what was decided, is listed in
docs/history/drafts.md. Rules of this draft: a registration has no answer, so a refusal closes the
connection; Stop has no answer either, and Start follows it at once; a group's bit is reset by a rebalance
that succeeds, and by nothing else.
"""

from __future__ import annotations

import zlib
from itertools import chain

from coordwire.codec import Message
from coordwire.connection.events import RequestReceived
from coordwire.designs.drafts.actions import DraftPartition
from coordwire.designs.drafts.draft_settings import DraftError
from coordwire.designs.drafts.machine import Steps
from coordwire.designs.drafts.pinging_coordinator import (
    ConsumerRegistry,
    GroupRegistry,
    PingingCoordinator,
    split_plan,
)
from coordwire.designs.drafts.topic_interest import TopicInterest
from coordwire.designs.drafts.zookeeper_operations import GetChildren
from coordwire.designs.drafts.zookeeper_steps import read_offsets, rebalance_reason, write_owners
from coordwire.dialects.zookeeper import Registration
from coordwire.errors import DecodeError, EncodeError
from coordwire.messages.draft_1 import (
    Draft1Broker,
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


class FirstDraftBroker(PingingCoordinator):
    """A broker that speaks draft-1."""

    pings_at_once = True  # a consumer expects its first request within its ping interval

    # --- any broker ---

    def _on_Draft1ConsultRequest(
        self, connection: int, event: RequestReceived, request: Draft1ConsultRequest
    ) -> None:
        coordinator_id = self.coordinator_of()
        known = coordinator_id >= 0
        response = Draft1ConsultResponse(
            error_code=DraftError.NONE if known else DraftError.COORDINATOR_NOT_AVAILABLE,
            coordinator_id=coordinator_id,
            brokers_info=[
                Draft1Broker(creator_id=str(number), id=number, host=address.host, port=address.port)
                for number, address in sorted(self.brokers.items())
            ],
        )
        self.send(connection, response, event)

    # --- registration ---

    def _on_Draft1RegisterRequest(
        self, connection: int, event: RequestReceived, request: Draft1RegisterRequest
    ) -> None:
        refusal = self._refusal(connection, request)
        if refusal is not None:
            self.note("RegistrationRefused", f"{request.group_id}/{request.consumer_id}: {refusal}")
            self.disconnect(connection)
            self.closed(connection)
            return
        group_id, consumer_id = request.group_id or "", request.consumer_id or ""
        old = self.groups[group_id].members.get(consumer_id) if group_id in self.groups else None
        if old is not None:
            self.remove(old)
        self.register(connection, ConsumerRegistry(
            group_id, consumer_id, connection, TopicInterest.parse(request.topic_count), request.auto_commit,
            starting_offset(request.auto_offset_rest), request.ping_interval_ms, request.ping_interval_ms,
            request.max_ping_retries,
        ))  # fmt: skip
        self.try_rebalance(self.groups[group_id])

    def _refusal(self, connection: int, request: Draft1RegisterRequest) -> str | None:
        if not self.coordinates_group(request.group_id):
            return "this broker is not the coordinator"
        if connection in self._consumers:
            return "a connection registers once"
        if request.ping_interval_ms <= 0 or request.max_ping_retries < 0:
            return "expected a positive ping interval, and retries from 0"
        try:
            Registration.path(request.group_id or "", request.consumer_id or "")
            TopicInterest.parse(request.topic_count)
        except (DecodeError, EncodeError) as error:
            return str(error)
        return None

    # --- pings ---

    def ping_request(self, consumer: ConsumerRegistry) -> Message:
        return Draft1PingRequest(num_retries=min(consumer.failures, 0x7FFF))

    def _on_Draft1PingResponse(
        self, consumer: ConsumerRegistry, response: Draft1PingResponse, request: Message
    ) -> None:
        self.answered_ping(consumer, response)
        if not self.settings.batch_offsets:
            self.start_commit(self.groups[consumer.group_id])

    # --- rebalances ---

    def find_handler(self, group: GroupRegistry) -> int:
        return zlib.crc32(group.group_id.encode()) % len(self._queues)

    def on_startup(self, office: int, group_ids: list[str]) -> Steps:
        """Step 2: the groups and their topics are those that have owners; every one is rebalanced."""
        lists = (
            yield tuple(GetChildren(f"/consumers/{name}/owners") for name in group_ids)
        ) if group_ids else ()  # fmt: skip
        for name, outcome in zip(group_ids, lists, strict=True):
            group = self.groups.setdefault(name, GroupRegistry(name))
            group.topics |= set(outcome.children)
            self.try_rebalance(group)
        if self.settings.batch_offsets:
            self.start_committer()

    def rebalance(self, group: GroupRegistry) -> Steps:
        members = dict(group.members)
        if not members:
            return True
        plan, owners, partitions = yield from self.plan(members)
        group.topics |= set(partitions)
        if rebalance_reason(plan, owners, partitions) is None:
            return True
        offsets = yield from read_offsets(group.group_id, plan)
        for consumer in members.values():
            consumer.is_rebalancing = True
            self.send_to(consumer, Draft1StopRequest())
        owned = split_plan(plan)
        outcomes = yield from self.broadcast(group, members, {
            name: _start(consumer, list(chain.from_iterable(owned.get(name, {}).values())), offsets)
            for name, consumer in members.items()
        })  # fmt: skip
        for consumer in members.values():
            consumer.is_rebalancing = False
        if not outcomes:
            return False
        yield from write_owners(group.group_id, plan, owners)
        return True

    def on_rebalanced(self, group: GroupRegistry, succeeded: bool) -> None:
        group.handler = None
        if succeeded:
            group.queued = False

    def on_answer_expired(self, consumer: ConsumerRegistry) -> None:
        """A Start that is not answered counts as a ping that is not: else a consumer that dies while its
        channel is held is never found out."""
        self.count_failure(consumer)

    def _on_Draft1StartResponse(
        self, consumer: ConsumerRegistry, response: Draft1StartResponse, request: Message
    ) -> None:
        """Whichever attempt's Start it answers, the consumer lives."""
        consumer.failures = 0
        if request is consumer.pending:
            consumer.is_rebalancing = False
        self.answered(consumer, response, request)


def _start(
    consumer: ConsumerRegistry, parts: list[DraftPartition], offsets: dict[DraftPartition, int]
) -> Message:
    return Draft1StartRequest(assigned_parts=[
        Draft1PartitionOffset(
            topic=partition.topic, partition=partition.partition,
            offset=offsets.get(partition, consumer.starts_at),
        )
        for partition in parts
    ])  # fmt: skip


def starting_offset(reset: str | None) -> int:
    """Where a partition without a committed offset begins: at 0, or with "largest" at the end (-1)."""
    return -1 if reset == "largest" else 0
