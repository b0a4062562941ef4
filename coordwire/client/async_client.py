"""A client of a cluster with asyncio.

    async with connect("broker-1:9092", sasl=Scram("till", password), tls=tls_context()) as kafka:
        answer = await kafka.request(DescribeGroupsRequest(groups=["payments"]))

Strategy: the driver of `coordwire.client.requests`: it sends the deliveries of a step at the same time, each
over the connection to its broker, which is opened when it is first needed. Rules: one connection a broker,
and at most `MOST_LINKS`; the time of a request covers look-ups, connections and retries; leaving the context
ends every connection and task, whatever a broker does, and opens no other.
"""

from __future__ import annotations

import asyncio
import ssl
from collections import OrderedDict
from collections.abc import Iterable
from types import TracebackType
from typing import Any, Self, TypeVar

from coordwire.client.authentication import Sasl
from coordwire.client.cluster import KnownCluster
from coordwire.client.errors import BrokerUnreachable, ClientError, DeadlineExceeded, joined
from coordwire.client.link import MOST_RECEIVED, BrokerLink, Window, surplus_links
from coordwire.client.opening import Session
from coordwire.client.requests import Deliver, Delivered, Delivery, LastTry, NodeAnswer, perform, whole_answer
from coordwire.client.settings import Address, ClientSettings, addresses, shown_address
from coordwire.codec import Request, Response
from coordwire.errors import counted

R = TypeVar("R", bound=Response)

MOST_DELIVERIES = 100
"""Requests of one step that are on their way at the same time."""


def connect(
    bootstrap: str | ClientSettings,
    *,
    tls: ssl.SSLContext | None = None,
    sasl: Sasl | None = None,
    **settings: Any,
) -> Client:
    """A client of a cluster, to be used in `async with`.

    bootstrap: addresses of brokers ("broker-1:9092,broker-2:9092"), or all settings. tls, sasl, settings: as
    in `ClientSettings`. Raises `SettingsError`.
    """
    if isinstance(bootstrap, str):
        bootstrap = ClientSettings(bootstrap=addresses(bootstrap), tls=tls, sasl=sasl, **settings)
    return Client(bootstrap)


class Client:
    """Sends requests to a cluster. settings: where it is, and how to reach it.

    cluster: what is known of it. The context is entered when a broker has accepted a connection.

        >>> import asyncio
        >>> from coordwire.broker import Broker
        >>> from coordwire.client import connect
        >>> from coordwire.messages import ListGroupsRequest
        >>> async def main() -> int:
        ...     async with Broker() as broker, connect(broker.bootstrap) as client:
        ...         return (await client.request(ListGroupsRequest())).error_code
        >>> asyncio.run(main())
        0
    """

    def __init__(self, settings: ClientSettings) -> None:
        self.settings = settings
        self.cluster = KnownCluster()
        self._links: OrderedDict[Address, BrokerLink] = OrderedDict()
        """The one used last is the last."""
        self._opening: dict[Address, asyncio.Task[BrokerLink]] = {}
        self._is_closed = False
        self._window = Window(settings.max_in_flight_bytes)
        self._received = Window(MOST_RECEIVED)

    def __repr__(self) -> str:
        brokers = ",".join(map(shown_address, self.settings.bootstrap))
        return f"<Client of {brokers}: {counted(len(self._links), 'connection')}>"

    async def __aenter__(self) -> Self:
        self._is_closed = False
        try:
            await self.session()
        except BaseException:
            await self.close()
            raise
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.close()

    async def close(self) -> None:
        """End every connection; requests that wait get a `ClientError`."""
        self._is_closed = True
        links, self._links = list(self._links.values()), OrderedDict()
        opening = list(self._opening.values())
        for task in opening:
            task.cancel()
        await _closed(links, *opening)

    async def session(self) -> Session:
        """What the connection to any broker began with: its versions, for one. Raises `ClientError`."""
        try:
            async with asyncio.timeout(self.settings.timeout_ms / 1000):
                return (await self._any_link()).session
        except TimeoutError:
            raise DeadlineExceeded(f"no connection within {self.settings.timeout_ms} ms") from None

    async def request(
        self,
        message: Request[R],
        *,
        to: int | str | None = None,
        version: int | None = None,
        timeout_ms: int | None = None,
    ) -> R:
        """The answer to a request, from where it belongs; the answers of several brokers as one.

        to: a node's id, "any", "every", "controller", "leader" or "coordinator" instead of what the schema
        has. version: instead of the newest that fits. timeout_ms: instead of the client's. An answer with an
        error code is returned. Produce with acks=0 has no answer, and gets an empty one.

        Raises `ClientError`, or `EncodeError` for a value that no version takes.
        """
        answers = await self.answers(message, to=to, version=version, timeout_ms=timeout_ms)
        result: Any = whole_answer(answers, to)
        return result  # type: ignore[no-any-return]

    async def request_each(
        self, message: Request[R], *, version: int | None = None, timeout_ms: int | None = None
    ) -> dict[int, R]:
        """The answers of all brokers to the same request, by their ids. Raises as `request` does."""
        answers = await self.answers(message, to="every", version=version, timeout_ms=timeout_ms)
        by_node: Any = {answer.node_id: answer.answer for answer in answers}
        return by_node  # type: ignore[no-any-return]

    async def answers(
        self,
        message: Request[Any],
        *,
        to: int | str | None = None,
        version: int | None = None,
        timeout_ms: int | None = None,
    ) -> list[NodeAnswer]:
        """The answers of the nodes that a request went to, before they become one; as `request`."""
        limit = timeout_ms or self.settings.timeout_ms
        last_try = LastTry()
        try:
            async with asyncio.timeout(limit / 1000):
                return await self._run(message, to, version, last_try)
        except TimeoutError:
            raise last_try.deadline_exceeded(message, limit) from None

    async def _run(
        self, message: Request[R], to: int | str | None, version: int | None, last_try: LastTry
    ) -> list[NodeAnswer]:
        steps = perform(message, self.cluster, self.settings, to=to, version=version, last_try=last_try)
        try:
            step = next(steps)
            while True:
                if isinstance(step, Deliver):
                    step = steps.send(await self._deliver_all(step.deliveries))
                else:
                    await asyncio.sleep(step.ms / 1000)
                    step = next(steps)
        except StopIteration as end:
            answers: list[NodeAnswer] = end.value
            return answers
        except BaseExceptionGroup as failures:  # of one delivery: a value that cannot be encoded
            raise failures.exceptions[0] from None

    async def _deliver_all(self, deliveries: list[Delivery]) -> list[Delivered | ClientError | None]:
        results: list[Delivered | ClientError | None] = [None] * len(deliveries)
        unsent = iter(enumerate(deliveries))

        async def send() -> None:
            for index, delivery in unsent:
                results[index] = await self._deliver(delivery)

        async with asyncio.TaskGroup() as group:
            for _ in deliveries[:MOST_DELIVERIES]:
                group.create_task(send())
        return results

    async def _deliver(self, delivery: Delivery) -> Delivered | ClientError:
        try:
            if delivery.address is None:
                link = await self._any_link()
            else:
                link = await self._link(delivery.address)
            return await link.request(delivery.message, delivery.version)
        except ClientError as error:
            return error

    # --- connections ---

    async def _link(self, address: Address) -> BrokerLink:
        """The connection to a broker, opened if there is none."""
        link = self._links.get(address)
        if link is not None and link.is_open:
            self._links.move_to_end(address)
            return link
        if self._is_closed:
            raise ClientError(_CLOSED)
        opening = self._opening.get(address)
        if opening is None:
            opening = self._opening[address] = asyncio.create_task(self._open(address))
            opening.add_done_callback(lambda _: self._opening.pop(address))
        try:
            return await asyncio.shield(opening)  # others may wait for it, too
        except asyncio.CancelledError:
            task = asyncio.current_task()
            if opening.cancelled() and not (task and task.cancelling()):
                raise ClientError(_CLOSED) from None
            raise

    async def _open(self, address: Address) -> BrokerLink:
        surplus = surplus_links(self._links, self.settings, self.cluster)
        await _closed([self._links.pop(address) for address in surplus])
        link = await BrokerLink.open(address, self.settings, self._window, self._received)
        self._links[address] = link
        return link

    async def _any_link(self) -> BrokerLink:
        """A connection to any broker: one that is open, or the first that can be opened."""
        for link in self._links.values():
            if link.is_open:
                return link
        reasons = []
        for address in dict.fromkeys((*self.settings.bootstrap, *self.cluster.nodes.values())):
            try:
                return await self._link(address)
            except BrokerUnreachable as error:
                reasons.append(error.reason)
        raise BrokerUnreachable(f"no broker can be reached: {joined(reasons, '; ')}")


_CLOSED = "the client is closed"


async def _closed(links: Iterable[BrokerLink], *opening: asyncio.Task[BrokerLink]) -> None:
    """End connections, and wait for tasks that end. One that is cancelled ends them at once."""
    links = list(links)
    try:
        await asyncio.gather(*(link.close() for link in links), *opening, return_exceptions=True)
    except asyncio.CancelledError:
        for link in links:
            link.abort()
        raise
