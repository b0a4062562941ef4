"""A consumer of the detailed design's overview (section 2): its registration's answer lists what it owns.

Source: "Kafka Detailed Consumer Coordinator Design", section 2, "Consumer" and "Co-ordinator". Rules: a
connection that breaks stops its fetchers and leads to a discovery at once; pings are answered while the
registration waits for its answer.
"""

from __future__ import annotations

from coordwire.connection.events import RequestReceived
from coordwire.designs.drafts.actions import DraftPartition
from coordwire.designs.drafts.discovering_consumer import ConsumerState
from coordwire.designs.drafts.draft_2_consumer import DetailedDesignConsumer
from coordwire.messages.draft_2 import Draft2PingRequest, Draft2RegisterConsumerResponse

__all__ = ["OverviewConsumer"]


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
