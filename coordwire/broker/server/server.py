"""`Server`: functions that answer requests become a Kafka server.

    async with Server({MetadataRequest: metadata, DescribeGroupsRequest: describe_groups}) as server:
        ... server.bootstrap ...

Strategy: one listener, one `ServerLink` a connection. What any client asks first is answered from the table
of handlers and the coordinator's topics. Rule: a handler that is given goes before an answer of the server's
own.
"""

from __future__ import annotations

import asyncio
import inspect
import ssl
from collections.abc import Callable, Coroutine, Mapping
from types import TracebackType
from typing import Any, Self, TypeAlias

from coordwire.broker.connections.connection_memory import READ_SIZE, ConnectionMemory
from coordwire.broker.connections.other_protocols import reporting
from coordwire.broker.connections.tls_handshakes import accept_tls, close_after, listening
from coordwire.broker.server import node_answers
from coordwire.broker.server.groups import GROUP_REQUESTS, GroupService
from coordwire.broker.server.link import Handler, ServedApi, ServerCall, ServerLink
from coordwire.broker.settings.offered_versions import refused_versions
from coordwire.codec import Request
from coordwire.coordinator import GroupCoordinator, TopicsImage
from coordwire.errors import counted
from coordwire.messages import (
    ApiVersionsRequest,
    ApiVersionsResponse,
    FindCoordinatorRequest,
    FindCoordinatorResponse,
    MetadataRequest,
    MetadataResponse,
)
from coordwire.versions import ApiKey, api_name

Handlers: TypeAlias = Mapping[type[Request[Any]], Handler]
"""Functions or coroutine functions by the class of the requests that they answer."""

_ITERATIONS = 10
"""Iterations of the loop that `stop` waits for connections to end."""


class Server:
    """A server with one node; an async context manager, or `start` and `stop`.

        >>> import asyncio
        >>> from coordwire.broker import ServerCall, Server
        >>> from coordwire.client import connect
        >>> from coordwire.messages import ListGroupsRequest, ListGroupsResponse
        >>> from coordwire.messages.list_groups import ListedGroup
        >>> def list_groups(request: ListGroupsRequest, call: ServerCall) -> ListGroupsResponse:
        ...     return ListGroupsResponse(groups=[ListedGroup(group_id=f"of {call.client_id}")])
        >>> async def main() -> str:
        ...     async with Server({ListGroupsRequest: list_groups}) as server:
        ...         async with connect(server.bootstrap, client_id="till-3") as client:
        ...             answer = await client.request(ListGroupsRequest())
        ...     return answer.groups[0].group_id
        >>> asyncio.run(main())
        'of till-3'

    handlers: for each class of requests a function or coroutine function, which is called with the request
    and a `ServerCall`. It returns the response, whose fields that the request's version lacks are left out,
    or None for a request that is not to be answered: that ends the connection, unless the request expects no
    answer. An exception is logged and ends the connection. A connection's requests are handled one after the
    other; when the client is gone, the handler is cancelled. A client that closes its side gets the answers
    to what it has sent, but not over TLS; it counts as gone after 10 seconds. `Handlers` is the type of such
    a table.

    versions: those that are offered of a class, where it is not all of them. A request in another version
    ends the connection; an ApiVersions request is answered with UNSUPPORTED_VERSION, as by Kafka's brokers.

    Unless there is a handler for it, ApiVersions is answered with what is offered, and Metadata with one
    broker, the server itself as `node_id`, which leads all partitions of the coordinator's topics.

    coordinator: answers the requests about classic and consumer groups, in real time, and has every group
    that FindCoordinator asks for. `set_topics` gives it its topics; it begins without groups unless it has
    loaded its partitions before, at the time of the clock (`time.time_ns() // 1_000_000`). append: called
    with a partition's number and each batch of its log, bytes of magic 2, before the requests that made it
    are answered.

    host, port: where to listen, port 0 for any that is free. tls: for all connections. max_frame: the bytes
    of a request; a connection that announces more is closed. memory: the bytes that all connections hold
    together; what exceeds it waits, or a client that makes no progress is closed. max_connections: None for
    any number; others are closed.

    Whatever ends a connection early is logged by "coordwire.server", with the client's address. Raises
    `TypeError` for a key that is not a class of requests and for a handler that does not take a request and a
    call, `ValueError` for versions that a class does not
    have.
    `start` raises `OSError` where it cannot listen, and `ValueError` for a coordinator with another time.
    """

    def __init__(
        self,
        handlers: Handlers | None = None,
        *,
        versions: Mapping[type[Request[Any]], range] | None = None,
        coordinator: GroupCoordinator | None = None,
        append: Callable[[int, bytes], object] | None = None,
        node_id: int = 1,
        host: str = "127.0.0.1",
        port: int = 0,
        tls: ssl.SSLContext | None = None,
        max_frame: int = 100 << 20,
        memory: int = 256 << 20,
        max_connections: int | None = None,
    ) -> None:
        self._groups = None if coordinator is None else GroupService(coordinator, append)
        self._node_id = node_id
        self._coordinator = coordinator
        served: dict[type[Request[Any]], Handler] = {
            ApiVersionsRequest: self._api_versions,
            MetadataRequest: self._metadata,
        }
        if self._groups is not None:
            served |= dict.fromkeys(GROUP_REQUESTS, self._ask_coordinator)
            served[FindCoordinatorRequest] = self._find_coordinator
        served |= handlers or {}
        limited = dict(versions or {})
        self.apis: dict[int, ServedApi] = {}
        """What is offered, by API key."""
        for cls, handler in served.items():
            if not (isinstance(cls, type) and issubclass(cls, Request)):
                raise TypeError(f"expected a class of requests as the key of a handler, got {cls!r}")
            _check_handler(cls, handler)
            offered = limited.pop(cls, cls.versions)
            if not offered or not set(offered) <= set(cls.versions):
                first, last = cls.versions[0], cls.versions[-1]
                raise ValueError(f"expected versions of {cls.__name__} from {first} to {last}, got {offered}")
            self.apis[cls.api_key] = ServedApi(cls, offered, handler)
        for cls in limited:
            raise ValueError(f"expected versions of classes that have a handler, got {cls.__name__}")
        self._host, self._port, self._tls = host, port, reporting(tls)
        self.max_frame = max_frame
        self._max_connections = max_connections
        self._listener: asyncio.Server | None = None
        self._links: dict[ServerLink, None] = {}
        self._tasks: set[asyncio.Task[None]] = set()
        self._accepting: set[asyncio.Task[None]] = set()
        self.memory = ConnectionMemory(memory, lambda delay, action: self._loop.call_later(delay, action))
        self.read_buffer = memoryview(bytearray(READ_SIZE))

    def __repr__(self) -> str:
        address = "not running" if self._listener is None else self.bootstrap
        names = ", ".join(sorted(api_name(key) or f"{key}" for key in self.apis))
        return f"<Server {address}: {names}; {counted(len(self._links), 'connection')}>"

    # --- where it is ---

    @property
    def address(self) -> tuple[str, int]:
        """Where the server listens. Raises `RuntimeError` if it is not running."""
        if self._listener is None:
            raise RuntimeError("the server is not running")
        return self._host, self._listener.sockets[0].getsockname()[1]

    @property
    def bootstrap(self) -> str:
        """The address as clients' `bootstrap.servers`. Raises as `address`."""
        host, port = self.address
        return f"[{host}]:{port}" if ":" in host else f"{host}:{port}"

    # --- start and stop ---

    async def __aenter__(self) -> Self:
        await self.start()
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.stop()

    async def start(self) -> None:
        """Listen."""
        if self._listener is not None:
            raise RuntimeError("the server is running")
        self._loop = asyncio.get_running_loop()
        tls = self._tls
        self._listener = await self._loop.create_server(
            lambda: ServerLink(self), self._host, self._port, start_serving=False
        )
        try:
            if self._groups is not None:
                self._groups.start()
            if tls is None:
                await self._listener.start_serving()
                return
        except BaseException:  # also where it is cancelled
            await self.stop()
            raise
        for bound in map(listening, self._listener.sockets):
            accepting = self.begin(accept_tls(bound, tls, self._admitted, self.leave))
            close_after(accepting, bound)
            self._accepting.add(accepting)

    async def stop(self) -> None:
        """End all connections and handshakes; cancel the handlers that wait, and wait for their end. Nothing
        happens if it is not running."""
        if self._listener is None:
            return
        self._listener.close()
        self._listener = None
        for task in self._accepting:
            task.cancel()
        self._accepting.clear()
        for link in list(self._links):
            link.abort()
        try:
            for _ in range(_ITERATIONS):  # a transport reports its end on the loop's next turn
                if not self._links:
                    break
                await asyncio.sleep(0)
            if waiting := self._tasks - {asyncio.current_task()}:
                await asyncio.wait(waiting)
        finally:
            self._links.clear()
            self.memory.close()
            if self._groups is not None:
                self._groups.stop()

    # --- for the links ---

    def begin(self, work: Coroutine[None, None, None]) -> asyncio.Task[None]:
        task = self._loop.create_task(work)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)
        return task

    def join(self, link: ServerLink) -> bool:
        is_full = self._max_connections is not None and len(self._links) >= self._max_connections
        if is_full and link not in self._links:
            return False
        self._links[link] = None
        return True

    def leave(self, link: ServerLink) -> None:
        self._links.pop(link, None)

    def _admitted(self) -> ServerLink | None:
        """The link of a connection whose handshake begins, which counts from then on."""
        link = ServerLink(self)
        return link if self.join(link) else None

    def refused_versions(self) -> ApiVersionsResponse:
        offered = self.apis[ApiKey.API_VERSIONS].versions
        return refused_versions((offered[0], offered[-1]))

    # --- answers of the server's own ---

    def _api_versions(self, request: ApiVersionsRequest, call: ServerCall) -> ApiVersionsResponse:
        offered = ((key, api.versions[0], api.versions[-1]) for key, api in self.apis.items())
        return node_answers.api_versions(request, call, offered)

    def _metadata(self, request: MetadataRequest, call: ServerCall) -> MetadataResponse:
        topics = TopicsImage() if self._coordinator is None else self._coordinator.topics
        return node_answers.metadata(request, call, self._node_id, topics)

    def _find_coordinator(self, request: FindCoordinatorRequest, call: ServerCall) -> FindCoordinatorResponse:
        return node_answers.find_coordinator(request, call, self._node_id)

    async def _ask_coordinator(self, request: Request[Any], call: ServerCall) -> Any:
        assert self._groups is not None
        return await self._groups.handle(request, call.version, call.client_id, call.peer[0])


def _check_handler(cls: type[Request[Any]], handler: Handler) -> None:
    """Raise `TypeError` for a handler that can't be called as it will be."""
    name = f"the handler of {cls.__name__}"
    if not callable(handler):
        raise TypeError(f"expected {name} to be a function, got {handler!r}")
    try:
        inspect.signature(handler).bind(None, None)
    except TypeError as error:
        raise TypeError(f"expected {name} to take a request and a call: {error}") from None
    except ValueError:  # a function in C without a signature
        return
