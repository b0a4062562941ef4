"""A broker of the detailed design's overview (section 2), whose rebalance breaks the consumers' connections.

Source: "Kafka Detailed Consumer Coordinator Design", section 2; registrations, failure detection and failover
are those of the sections after it. Strategy: a registration is answered when the rebalance that it belongs to
is complete, with the partitions that the consumer owns. A rebalance ends the connections of all that have
their answer; these register again, and once all that are known have done so, or 4/3 of the longest session
timeout are over (a consumer stops after one, and had its last request a third before at most), the ownership
is written and every registration is answered. Rules: no message stops a consumer; the response's list has no
layout in the document (version 1 of RegisterConsumerResponse).

A consumer of the detailed design's overview (section 2): its registration's answer lists what it owns.

Source: "Kafka Detailed Consumer Coordinator Design", section 2, "Consumer" and "Co-ordinator". Rules: a
connection that breaks stops its fetchers and leads to a discovery at once; pings are answered while the
registration waits for its answer.
"""

from __future__ import annotations

from coordwire.connection.events import RequestReceived
from coordwire.designs.drafts.actions import DraftPartition
from coordwire.designs.drafts.discovering_consumer import ConsumerState
from coordwire.designs.drafts.draft_2_broker import DetailedDesignBroker
from coordwire.designs.drafts.draft_2_consumer import DetailedDesignConsumer
from coordwire.designs.drafts.draft_settings import BrokerSettings
from coordwire.designs.drafts.machine import Steps
from coordwire.designs.drafts.pinging_coordinator import ConsumerRegistry, GroupRegistry, split_plan
from coordwire.designs.drafts.zookeeper_steps import read_offsets, rebalance_reason, write_owners
from coordwire.messages.draft_2 import (
    Draft2PartitionOffset,
    Draft2PingRequest,
    Draft2RegisterConsumerResponse,
)


class OverviewBroker(DetailedDesignBroker):
    """A broker that speaks draft-2 as its overview has it."""

    def __init__(self, settings: BrokerSettings, *, now: int = 0) -> None:
        super().__init__(settings, now=now)
        self._unanswered_registrations: dict[ConsumerRegistry, RequestReceived] = {}

    def on_accepted(self, connection: int, event: RequestReceived) -> None:
        """The answer waits for the rebalance."""
        consumer = self._consumers[connection]
        self._unanswered_registrations[consumer] = event

    def remove(self, consumer: ConsumerRegistry) -> None:
        self._unanswered_registrations.pop(consumer, None)
        super().remove(consumer)

    def on_resigned(self, office: int) -> None:
        super().on_resigned(office)
        self._unanswered_registrations = {
            consumer: event
            for consumer, event in self._unanswered_registrations.items()
            if self.is_known(consumer)
        }

    # --- rebalances (section 2, steps 5 and 6) ---

    def try_rebalance(self, group: GroupRegistry) -> None:
        """Break the connections of all that have their partitions, and wait until they register again."""
        if self.postpones(group):
            return
        self._break_connections(group)
        if not group.awaited:
            super().try_rebalance(group)

    def _break_connections(self, group: GroupRegistry) -> None:
        served = [
            consumer for consumer in group.members.values() if consumer not in self._unanswered_registrations
        ]
        if not served:
            return
        group.awaited_since = self.now
        group.awaited_ms = max(4 * consumer.ping_ms for consumer in served)
        for consumer in served:
            self.note("ConnectionBroken", f"{consumer.group_id}/{consumer.consumer_id}")
            self.remove(consumer)
            group.awaited.add(consumer.consumer_id)
        self._await_until(group)

    def rebalance(self, group: GroupRegistry) -> Steps:
        """Answer every registration with what its consumer owns; that is the rebalance's end."""
        while group.members and not group.awaited:
            members = dict(group.members)
            plan, owners, partitions = yield from self.plan(members)
            if not self._unanswered_registrations.keys() & set(members.values()):
                if rebalance_reason(plan, owners, partitions) is not None:
                    self._break_connections(group)
                return True
            yield from self.commit(group)
            offsets = yield from read_offsets(group.group_id, plan)
            yield from write_owners(group.group_id, plan, owners)
            if members == group.members and not group.awaited:
                self._answer(members, plan, offsets)
                return True
        return True

    def _answer(
        self,
        members: dict[str, ConsumerRegistry],
        plan: dict[DraftPartition, str],
        offsets: dict[DraftPartition, int],
    ) -> None:
        owned = split_plan(plan)
        for name, consumer in members.items():
            event = self._unanswered_registrations.pop(consumer)
            assert consumer.connection is not None
            response = Draft2RegisterConsumerResponse(assigned_parts=[
                Draft2PartitionOffset(
                    topic=partition.topic, partition=partition.partition,
                    offset=offsets.get(partition, consumer.starts_at),
                )
                for parts in owned.get(name, {}).values() for partition in parts
            ])  # fmt: skip
            self.send(consumer.connection, response, event, version=1)


# --- the consumer ---


class OverviewConsumer(DetailedDesignConsumer):
    """One consumer."""

    def _on_Draft2RegisterConsumerResponse(self, response: Draft2RegisterConsumerResponse) -> None:
        super()._on_Draft2RegisterConsumerResponse(response)
        if not response.error_code:
            self.start_fetchers({
                DraftPartition(part.topic or "", part.partition or ""): part.offset
                for part in response.assigned_parts
            })  # fmt: skip

    def on_request(self, connection: int, event: RequestReceived) -> None:
        request = event.request
        waits = connection == self._connection and self.state is ConsumerState.REGISTERING
        if waits and isinstance(request, Draft2PingRequest):
            self._expect_sound()
            self._on_Draft2PingRequest(event, request)
        else:
            super().on_request(connection, event)

    def _lost(self) -> None:
        """Consumers notice the broken connection and discover the coordinator: the first time at once."""
        was_registered = self.state is ConsumerState.REGISTERED
        super()._lost()
        if was_registered and self.state is ConsumerState.WAITING:
            self.discover()
