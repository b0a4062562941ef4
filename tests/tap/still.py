"""A tap without sockets and without a loop: what a test gives a link's sides is taken at once."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from coordwire.broker.connections.turns import Turns
from coordwire.limits import limits
from coordwire.tap import Tap
from coordwire.tap.addresses import BrokerAddresses
from coordwire.tap.link import TapLink
from tests.broker.test_hostile import Sink


class _NoTimer:
    def cancel(self) -> None:
        pass


class StillTap(Tap):
    """Links that are connected to nothing: `linked` gives one, with a sink on each side."""

    def __init__(self, **settings: Any) -> None:
        super().__init__("broker.example:9092", **settings)
        self._due: list[Callable[[], None]] = []
        self.turns = Turns(self._due.append)
        self.addresses = BrokerAddresses(
            lambda broker: ("127.0.0.1", broker[1]), lambda broker: None, most=30
        )

    def connect(self, link: TapLink) -> Any:
        return _NoTimer()

    def call_later(self, seconds: float, action: Callable[[], None]) -> Any:
        return _NoTimer()

    def linked(self) -> tuple[TapLink, Sink, Sink]:
        """A link, and what is written to its client and to its broker."""
        link, client, broker = TapLink(self, self.upstream[0]), Sink(), Sink()
        link.client.connection_made(client)
        link.broker.connection_made(broker)
        link.coupled()
        return link, client, broker

    def in_context(self, action: Callable[[bytes], None], data: bytes) -> None:
        """Give bytes to a side, with the tap's budget of frames."""
        with limits(frame=self._max_frame):
            action(data)

    def run(self) -> None:
        """Give all turns that wait."""
        while self._due:
            with limits(frame=self._max_frame):
                self._due.pop(0)()
