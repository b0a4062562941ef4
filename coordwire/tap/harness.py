"""`KafkaTap`: a tap as a test gets it by the fixture `kafka_tap`, before a cluster of the test's choice.

Rules: as for `coordwire.broker.harness`: `check` reports what a test must not leave unseen.
"""

from __future__ import annotations

from types import TracebackType
from typing import Any, Self

from coordwire.broker.harness.kafka_harness import ObservedTraffic
from coordwire.broker.harness.traffic import Traffic
from coordwire.client.settings import ClientSettings
from coordwire.tap.counts import TapCounts
from coordwire.tap.tap import Tap, TapThread


class KafkaTap(ObservedTraffic):
    """A tap for tests; a context manager. upstream, settings: as for `Tap`. tap: it, on its thread.

    >>> from coordwire.broker import Broker
    >>> from coordwire.client import connect_sync
    >>> from coordwire.messages import ListGroupsRequest
    >>> from coordwire.tap import KafkaTap
    >>> with Broker.in_thread() as broker, KafkaTap(broker.bootstrap) as tap:
    ...     with connect_sync(tap.bootstrap) as client:
    ...         _ = client.request(ListGroupsRequest())
    ...     len(tap.exchange.all(ListGroupsRequest))
    1
    """

    def __init__(self, upstream: str | ClientSettings, **settings: Any) -> None:
        traffic = Traffic()
        tap = Tap(upstream, traffic=traffic, **settings)
        self.tap = TapThread(tap)
        super().__init__(tap.faults, traffic)

    def __repr__(self) -> str:
        return f"<KafkaTap {self.tap!r}>"

    def __enter__(self) -> Self:
        self.tap.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.tap.stop()

    @property
    def bootstrap(self) -> str:
        """The bootstrap servers for clients."""
        return self.tap.bootstrap

    @property
    def counts(self) -> TapCounts:
        """Frames in, out, changed and why."""
        return self.tap.counts
