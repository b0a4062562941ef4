"""A client of a cluster with blocking sockets, for scripts.

    with connect_sync("broker-1:9092") as kafka:
        answer = kafka.request(ListGroupsRequest())

Strategy: the blocking driver of `coordwire.client.requests`: the deliveries of a step are sent to all brokers
before the first answer is read, or to as many as it may wait for. Rules: as those of
`coordwire.client.async_client`; a connection has one request at a time, and a client is for one thread.
"""

from __future__ import annotations

import ssl
import time
from collections import OrderedDict, deque
from types import TracebackType
from typing import Any, Self, TypeVar

from coordwire.client.async_client import MOST_DELIVERIES
from coordwire.client.authentication import Sasl
from coordwire.client.cluster import KnownCluster
from coordwire.client.errors import BrokerUnreachable, ClientError, DeadlineExceeded, joined
from coordwire.client.link import surplus_links
from coordwire.client.opening import Session
from coordwire.client.requests import Deliver, Delivered, Delivery, LastTry, NodeAnswer, perform, whole_answer
from coordwire.client.settings import Address, ClientSettings, addresses, shown_address
from coordwire.client.socket_link import Remaining, SocketLink, time_limit
from coordwire.codec import Request, Response
from coordwire.errors import counted

R = TypeVar("R", bound=Response)


def connect_sync(
    bootstrap: str | ClientSettings,
    *,
    tls: ssl.SSLContext | None = None,
    sasl: Sasl | None = None,
    **settings: Any,
) -> SyncClient:
    """A client that blocks, to be used in `with`; arguments as those of `connect`."""
    if isinstance(bootstrap, str):
        bootstrap = ClientSettings(bootstrap=addresses(bootstrap), tls=tls, sasl=sasl, **settings)
    return SyncClient(bootstrap)


class SyncClient:
    """Sends requests to a cluster, and blocks until they are answered. The arguments, results and errors of
    its methods are those of `Client`.

        >>> from coordwire.broker import Broker
        >>> from coordwire.client import connect_sync
        >>> from coordwire.messages import ListGroupsRequest
        >>> with Broker.in_thread() as broker, connect_sync(broker.bootstrap) as client:
        ...     client.request(ListGroupsRequest()).error_code
        0
    """

    def __init__(self, settings: ClientSettings) -> None:
        self.settings = settings
        self.cluster = KnownCluster()
        self._links: OrderedDict[Address, SocketLink] = OrderedDict()
        """The one used last is the last."""

    def __repr__(self) -> str:
        brokers = ",".join(map(shown_address, self.settings.bootstrap))
        return f"<SyncClient of {brokers}: {counted(len(self._links), 'connection')}>"

    def __enter__(self) -> Self:
        try:
            self.session()
        except BaseException:
            self.close()
            raise
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def close(self) -> None:
        """End every connection."""
        links, self._links = list(self._links.values()), OrderedDict()
        for link in links:
            link.close()

    def session(self) -> Session:
        """What the connection to any broker began with: its versions, for one."""
        limit = self.settings.timeout_ms
        try:
            return self._any_link(time_limit(limit / 1000)).session
        except TimeoutError:
            raise DeadlineExceeded(f"no connection within {limit} ms") from None

    def request(
        self,
        message: Request[R],
        *,
        to: int | str | None = None,
        version: int | None = None,
        timeout_ms: int | None = None,
    ) -> R:
        """The answer to a request, from where it belongs: see `Client.request`."""
        result: Any = whole_answer(self.answers(message, to=to, version=version, timeout_ms=timeout_ms), to)
        return result  # type: ignore[no-any-return]

    def request_each(
        self, message: Request[R], *, version: int | None = None, timeout_ms: int | None = None
    ) -> dict[int, R]:
        """The answers of all brokers to the same request, by their ids."""
        answers = self.answers(message, to="every", version=version, timeout_ms=timeout_ms)
        by_node: Any = {answer.node_id: answer.answer for answer in answers}
        return by_node  # type: ignore[no-any-return]

    def answers(
        self,
        message: Request[Any],
        *,
        to: int | str | None = None,
        version: int | None = None,
        timeout_ms: int | None = None,
    ) -> list[NodeAnswer]:
        """The answers of the nodes that a request went to, before they become one."""
        limit = timeout_ms or self.settings.timeout_ms
        remaining = time_limit(limit / 1000)
        last_try = LastTry()
        steps = perform(message, self.cluster, self.settings, to=to, version=version, last_try=last_try)
        try:
            step = next(steps)
            while True:
                if isinstance(step, Deliver):
                    step = steps.send(self._deliver(step.deliveries, remaining))
                else:
                    time.sleep(min(step.ms / 1000, remaining()))
                    step = next(steps)
        except StopIteration as finish:
            answers: list[NodeAnswer] = finish.value
            return answers
        except TimeoutError:
            raise last_try.deadline_exceeded(message, limit) from None

    def _deliver(self, deliveries: list[Delivery], remaining: Remaining) -> list[Delivered | ClientError]:
        """Send all, then read the answers. A connection that gets several has one at a time."""
        results: list[Delivered | ClientError | None] = [None] * len(deliveries)
        sent: deque[tuple[int, SocketLink]] = deque()

        def receive() -> None:
            index, link = sent[0]
            try:
                results[index] = link.receive(remaining)
            except ClientError as error:
                results[index] = error
            sent.popleft()

        try:
            for index, delivery in enumerate(deliveries):
                try:
                    if len(sent) == MOST_DELIVERIES:
                        receive()
                    address = delivery.address
                    link = self._any_link(remaining) if address is None else self._link(address, remaining)
                    while not link.is_idle:
                        receive()
                    link.send(delivery.message, delivery.version, remaining)
                    sent.append((index, link))
                except ClientError as error:
                    results[index] = error
            while sent:
                receive()
        except BaseException:
            for _, link in sent:  # whose answers may still come
                link.close()
            raise
        return [result for result in results if result is not None]

    # --- connections ---

    def _link(self, address: Address, remaining: Remaining) -> SocketLink:
        link = self._links.get(address)
        if link is not None and link.is_open:
            self._links.move_to_end(address)
            return link
        for surplus in surplus_links(self._links, self.settings, self.cluster):
            self._links.pop(surplus).close()
        link = self._links[address] = SocketLink.open(address, self.settings, remaining)
        return link

    def _any_link(self, remaining: Remaining) -> SocketLink:
        for link in self._links.values():
            if link.is_open:
                return link
        reasons = []
        for address in dict.fromkeys((*self.settings.bootstrap, *self.cluster.nodes.values())):
            try:
                return self._link(address, remaining)
            except BrokerUnreachable as error:
                reasons.append(error.reason)
        raise BrokerUnreachable(f"no broker can be reached: {joined(reasons, '; ')}")
