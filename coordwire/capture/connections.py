"""The streams of a capture to entries: which connections speak Kafka, and who is the client.

Strategy: where a SYN was seen, its sender is the client and its stream begins with a frame; otherwise the
direction in which a whole request can be found is the client's. A connection that shows none within a window
isn't Kafka and is left alone, unless its port was named (`undecided`). Rules: a connection is decided once;
what was held back until then is read in the order in which it came; what is held is bounded for each
connection and for all of a capture, and bytes that are given up for that are reported.
"""

from __future__ import annotations

from collections import Counter, OrderedDict, deque
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from struct import Struct
from typing import Any, NamedTuple

from coordwire._speedups.rows import row_maker
from coordwire.capture.client_search import OPENING, UNDECIDED, Backlog, Finder, find_protocol, is_tls
from coordwire.capture.conversation import AnyConversation
from coordwire.capture.entries import AnswerHeld, ConnectionEnd, ConnectionSign, Entry, FrameEntry
from coordwire.capture.flows import (
    Chunk,
    Closed,
    Event,
    Flow,
    Gap,
    NetworkAddress,
    Opened,
    TcpConnection,
)
from coordwire.capture.frame_walks import frame_walk
from coordwire.capture.framing import FrameBody, FrameSplitter
from coordwire.errors import UnreadableRange
from coordwire.frames import PREFIX
from coordwire.limits import current

EARLY_FRAMES, EARLY_BYTES, EARLY_NS = 64, 8 << 20, 5_000_000_000
"""How many answers of a connection may wait for a request that comes late out of the reassembly, how long."""

EARLY = 64 << 20
"""Bytes of such answers, of all connections of a capture."""

OPEN_FRAMES = 256 << 20
"""Bytes of frames that have begun and aren't whole, of all connections of a capture, or the budget of one
frame where that is more. Beyond them, the one that began first is given up, and its bytes are reported."""


_SIZE = Struct(">i").unpack_from

_connection_end = row_maker(ConnectionEnd)

ENCRYPTED = "encrypted with TLS, which is not decrypted here"


@dataclass(slots=True)
class Summary:
    """Counts over a capture, kept while its entries are drawn.

    connections: TCP connections with data; kafka: those of them that were read; frames: whole frames.
    other_protocols: connections that were not read, by protocol ("TLS", "HTTP", … or "") and the port of
    their server, or the lower of both ports where their beginning was not seen. tls: connections that were
    read because their port was named, and that spoke TLS, by that port.
    """

    connections: int = 0
    kafka: int = 0
    frames: int = 0
    other_protocols: Counter[tuple[str, int]] = field(default_factory=Counter)
    tls: Counter[int] = field(default_factory=Counter)

    def next_frame(self) -> int:
        self.frames += 1
        return self.frames


class _Route(NamedTuple):
    """One direction of a connection that has been decided; the native walk reads its members by their order.

    flow: kept so that its id stays its own; cutter: None where the connection isn't read; early: the link's;
    conversation: the link's, None where its frames aren't counted in the summary's `frames`.
    """

    flow: Flow
    link: _Link
    cutter: FrameSplitter | None
    is_client: bool
    name: str
    early: deque[FrameBody]
    conversation: AnyConversation | None


@dataclass(slots=True)
class _Opening:
    """A TCP connection of which only SYNs were seen, as of most that are refused. open_flows: the sources of
    those that haven't ended."""

    client: NetworkAddress
    open_flows: set[NetworkAddress]


@dataclass(slots=True)
class _Link:
    """One TCP connection with data. `cutters` is there once it is decided; `ignored` where it isn't Kafka."""

    conversation: AnyConversation
    backlog: Backlog
    client: NetworkAddress | None = None
    opened: bool = False
    ignored: bool = False
    encrypted: bool = False
    cutters: dict[NetworkAddress, FrameSplitter] = field(default_factory=dict)
    names: dict[NetworkAddress, str] = field(default_factory=dict)
    early: deque[FrameBody] = field(default_factory=deque)
    early_size: int = 0
    open_flows: set[NetworkAddress] = field(default_factory=set)

    def name(self, flow: Flow) -> str:
        """The flow in words."""
        name = self.names.get(flow.source)
        if name is None:
            source, destination = str(flow.source), str(flow.destination)
            name = self.names[flow.source] = f"{source} > {destination}"
            self.names[flow.destination] = f"{destination} > {source}"
        return name


class Connections:
    """Reads the events of one capture. `conversations`: makes those that a new connection may be, first the
    one that it is if its port was named; `ports`: those of brokers, whatever their connections carry;
    `lazy`: whether entries are lazy where they can be; `ended`: called with each FIN and RST of connections
    that are read, and with answers that are held back."""

    def __init__(
        self,
        capture: str,
        summary: Summary,
        conversations: Callable[[], Sequence[AnyConversation]],
        *,
        ports: Collection[int] = (),
        lazy: bool = False,
        ended: Callable[[ConnectionSign], None] | None = None,
    ) -> None:
        self.capture = capture
        self._ended = ended
        self.lazy = lazy
        self.summary = summary
        self.conversations = conversations
        self.ports = frozenset(ports)
        self._openings: dict[int, _Opening] = {}
        self._links: dict[int, _Link] = {}
        self._undecided: OrderedDict[int, _Link] = OrderedDict()
        self._undecided_cost = 0
        self._open_frames: OrderedDict[FrameSplitter, tuple[_Link, Flow]] = OrderedDict()
        self._open_frames_size = 0
        self._early_size = 0
        self._routes: dict[int, _Route] = {}
        self._walk = frame_walk(_Route, self._routes, summary) if lazy else None

    def go_on(
        self,
        conversations: Callable[[], Sequence[AnyConversation]],
        ended: Callable[[ConnectionSign], None] | None,
    ) -> None:
        """Read further events, for another reader of the capture."""
        self.conversations, self._ended = conversations, ended

    def __getstate__(self) -> dict[str, Any]:
        """What a reader in another process needs to go on: routes are found by ids, and walks are native."""
        own = {"conversations": None, "_ended": None, "_walk": None, "_routes": [*self._routes.values()]}
        return vars(self) | own

    def __setstate__(self, state: dict[str, Any]) -> None:
        vars(self).update(state)
        self._routes = {id(route.flow): route for route in state["_routes"]}
        self._walk = frame_walk(_Route, self._routes, self.summary) if self.lazy else None

    def batches(
        self, events: Iterable[Event | list[Chunk]], signs: list[ConnectionSign]
    ) -> Iterator[list[Entry | ConnectionSign]]:
        """The entries of all events in their order, those of chunks that were read at once in one list, with
        the signs that `ended` has put into another meanwhile, each before the entry that follows it."""
        take_run = None if self._walk is None else self._walk.take_run
        for event in events:
            batch: list[Entry | ConnectionSign] = []
            if isinstance(event, (list, Chunk)):
                chunks, at, limit = event if isinstance(event, list) else [event], 0, current().frame
                while True:
                    if take_run is not None:
                        at = take_run(chunks, at, limit, batch)
                    at = self._continue_run(chunks, at)
                    if at == len(chunks):
                        break
                    _add(batch, self._of_chunk(chunks[at]), signs)
                    at += 1
            else:
                _add(batch, self._of_event(event), signs)
            if batch:
                yield batch

    def _continue_run(self, chunks: list[Chunk], at: int) -> int:
        """Take the chunks from an index on that only continue a frame; the index after them."""
        if at < len(chunks):
            flow = chunks[at].flow
            route = self._routes.get(id(flow))
            cutter = None if route is None else route.cutter
            while cutter is not None and self._only_continues(cutter, chunks[at]):
                at += 1
                if at == len(chunks) or chunks[at].flow is not flow:
                    break
        return at

    def _only_continues(self, cutter: FrameSplitter, chunk: Chunk) -> bool:
        """Whether a chunk only continues a frame, which the cutter has taken it for then."""
        size = len(chunk.data)
        if self._open_frames_size + size > OPEN_FRAMES or not cutter.only_continues(chunk.data, chunk.packet):
            return False
        self._open_frames_size += size
        cutter.counted += size
        return True

    def _of_chunk(self, chunk: Chunk) -> Iterable[Entry]:
        """The entries of a chunk, without the native walk."""
        route = self._routes.get(id(chunk.flow))
        if route is None:
            return self._of_undecided(chunk)
        if route.cutter is None:
            return ()
        if chunk.packet and _is_one_frame(route.cutter, chunk.data):
            return self._frame(route, route.cutter, chunk)
        return self._read(route.link, chunk)

    def _of_undecided(self, chunk: Chunk) -> Iterable[Entry]:
        """The entries of a chunk whose direction has no route yet."""
        link = self._link(chunk.flow)
        if not link.cutters and not link.ignored and not self._is_opened_by(link, chunk):
            return self._of_held_back(chunk)
        self._decided(chunk.flow)
        walked = None if self._walk is None else self._walk.take(chunk, current().frame)
        if walked is None:
            return self._of_chunk(chunk)
        return () if walked is True else (walked,)

    def _of_held_back(self, chunk: Chunk) -> Iterator[Entry]:
        yield from self._data(chunk)
        self._decided(chunk.flow)

    def _of_event(self, event: Event) -> Iterable[Entry]:
        """The entries of an event without bytes."""
        match event:
            case Opened():
                self._open(event)
                return ()
            case Closed():
                return self._close(event)
            case UnreadableRange():
                return (event._replace(file=self.capture),)
            case _:
                return self._data(event)

    def _open(self, event: Opened) -> None:
        """Note whose SYN was seen."""
        flow = event.flow
        client = flow.destination if event.server == flow.source else flow.source
        link = self._links.get(flow.connection)
        if link is not None:  # in a capture that is out of order, data came before
            link.opened = True
            link.open_flows.add(flow.source)
            if not link.cutters:
                link.client = client
            return
        opening = self._openings.get(flow.connection)
        if opening is None:
            self._openings[flow.connection] = _Opening(client, {flow.source})
        else:
            opening.client = client
            opening.open_flows.add(flow.source)

    def _frame(self, route: _Route, cutter: FrameSplitter, chunk: Chunk) -> Iterable[Entry]:
        """The entries of a chunk that is one frame, as most are: as `_read`, without its buffer."""
        position, packet = cutter.position, chunk.packet
        cutter.position = position + len(chunk.data)
        body = FrameBody(chunk.data[PREFIX:], position, chunk.time_ns, packet, packet)
        return self._of_frame(route.link, route.flow, body)

    def _of_frame(self, link: _Link, flow: Flow, body: FrameBody) -> Iterable[Entry]:
        """The entries of a frame: as `_parts`, of those that come one by one."""
        conversation, is_client = link.conversation, flow.source == link.client
        if link.early or not (is_client or conversation.expects(body.data)):
            return self._parts(link, flow, (body,))
        read = self._request if is_client else self._response
        entry = read(conversation, body, link.name(flow))
        return (entry,)

    def _decided(self, flow: Flow) -> None:
        """Note where a direction's bytes go from now on, if that is known."""
        link = self._links[flow.connection]
        if link.cutters or link.ignored:
            cutter = link.cutters.get(flow.source)
            is_client = flow.source == link.client
            conversation = link.conversation
            counted = conversation if conversation.number == self.summary.next_frame else None
            self._routes[id(flow)] = _Route(
                flow, link, cutter, is_client, link.name(flow), link.early, counted
            )

    def _link(self, flow: Flow) -> _Link:
        link = self._links.get(flow.connection)
        if link is None:
            conversations = self.conversations()
            link = self._links[flow.connection] = _Link(conversations[0], Backlog(conversations))
            opening = self._openings.pop(flow.connection, None)
            if opening is not None:
                link.opened, link.client, link.open_flows = True, opening.client, opening.open_flows
        link.open_flows.add(flow.source)
        return link

    def _data(self, event: Chunk | Gap) -> Iterable[Entry]:
        link = self._link(event.flow)
        if link.ignored:
            return ()
        return self._read(link, event) if link.cutters else self._hold(link, event)

    def _hold(self, link: _Link, event: Chunk | Gap) -> Iterator[Entry]:
        """Hold back what comes of a connection that isn't decided yet; the entries, where this decides it."""
        backlog, number = link.backlog, event.flow.connection
        if not backlog.events:
            self.summary.connections += 1
            self._undecided[number] = link
        before = backlog.cost
        finder = backlog.add(event)
        self._undecided_cost += backlog.cost - before
        if self._decide(link, event.flow, finder):
            yield from self._release(link, number)
        elif link.ignored or backlog.is_full:
            self._ignore(link, number)
        while self._undecided_cost > UNDECIDED:
            yield from self._give_up(*next(iter(self._undecided.items())), event.time_ns)

    # --- who is who ---

    def _decide(self, link: _Link, flow: Flow, finder: Finder) -> bool:
        """Find the client; True if the connection can be read from here on. Ignores what isn't Kafka's."""
        if self.ports:
            return self._decide_by_port(link, flow)
        if link.opened and link.client:
            is_open = self._find_opened(link, link.backlog.head(link.client))
            link.ignored = is_open is False
            return bool(is_open)
        match = finder.search()
        if match is None:
            return False
        conversation, sender = match
        link.conversation = conversation.resolve()
        link.client = flow.source if sender == "client" else flow.destination
        return True

    def _find_opened(self, link: _Link, head: bytes) -> bool | None:
        """Which protocol a client's first bytes are in; False for none, None where more of them decide that.
        Kafka's, the first of those that may be, is asked last: of its frames few bytes are known, of
        another's opening all."""
        if len(head) < link.conversation.head:
            return None
        for conversation in reversed(link.backlog.conversations):
            opens = conversation.opens(head)
            if opens is None:
                return None
            if opens:
                link.conversation = conversation.resolve()
                return True
        return False

    def _is_opened_by(self, link: _Link, chunk: Chunk) -> bool:
        """Whether a client's first chunk alone decides its connection, as most do: nothing is held back."""
        if self.ports or not link.opened or link.client != chunk.flow.source or link.backlog.events:
            return False
        if not self._find_opened(link, chunk.data[:OPENING]):
            return False
        link.backlog.conversations = (link.conversation,)
        self.summary.connections += 1
        self._begin(link, chunk.flow)
        return True

    def _decide_by_port(self, link: _Link, flow: Flow, *, closed: bool = False) -> bool:
        """Take a connection to a named port for the dialect that was asked for, or for another whose opening
        it has. closed: whether no more bytes come that could show that."""
        for server, client in ((flow.destination, flow.source), (flow.source, flow.destination)):
            if server.port in self.ports:
                if link.opened and (head := link.backlog.head(client)):
                    for conversation in link.backlog.conversations[1:]:
                        opens = conversation.opens(head)
                        if opens is None and not closed:
                            return False
                        if opens:
                            link.conversation = conversation.resolve()
                link.client = client
                return True
        link.ignored = True
        return False

    def _ignore(self, link: _Link, number: int) -> None:
        link.ignored = True
        self._count_other(link)
        self._let_go(link, number)

    def _count_other(self, link: _Link) -> None:
        """Note what a connection speaks that isn't read, by what is held of it."""
        flow = link.backlog.events[0].flow
        ends = flow.source, flow.destination
        port = min(end.port for end in ends)
        if link.opened and link.client in ends:
            port = next((end.port for end in ends if end != link.client), port)
        protocol = find_protocol(finder.buffer for finder in link.backlog.finders.values())
        self.summary.other_protocols[protocol or "", port] += 1

    def _let_go(self, link: _Link, number: int) -> list[Chunk | Gap]:
        """Return the events that were held back, and hold none from now on."""
        backlog, link.backlog = link.backlog, Backlog((link.conversation,))
        if self._undecided.pop(number, None) is not None:
            self._undecided_cost -= backlog.cost
        return backlog.events

    def _give_up(self, number: int, link: _Link, time_ns: int) -> Iterator[Entry]:
        """Give up a connection that is not decided yet, for lack of memory; report what was held."""
        link.ignored = True
        self._count_other(link)
        lengths: dict[Flow, int] = {}
        for event in self._let_go(link, number):
            length = len(event.data) if isinstance(event, Chunk) else event.length
            lengths[event.flow] = lengths.get(event.flow, 0) + length
        for flow, length in lengths.items():
            reason = (
                "abandoned, with the rest of its connection: too many connections begin in mid-stream at once"
            )
            yield UnreadableRange(
                0, length, reason, file=self.capture, flow=link.name(flow), time_ns=time_ns,
                tcp_stream=flow.stream,
            )  # fmt: skip

    def _begin(self, link: _Link, flow: Flow) -> None:
        """Begin to read a connection."""
        self.summary.kafka += 1
        conversation = link.conversation
        assert link.client is not None
        broker = flow.destination if flow.source == link.client else flow.source
        conversation.connection = TcpConnection(flow.stream, link.client, broker)
        for source in (flow.source, flow.destination):
            is_client = source == link.client
            fits = conversation.fits_request if is_client else conversation.fits_response
            may_fit = None if is_client else conversation.may_answer
            link.cutters[source] = FrameSplitter(
                fits, in_step=link.opened, head=conversation.head, may_fit=may_fit
            )

    def _release(self, link: _Link, number: int) -> Iterator[Entry]:
        """Read the events that were held back."""
        events = self._let_go(link, number)
        self._begin(link, events[0].flow)
        if self.ports and any(is_tls(event.data) for event in events if isinstance(event, Chunk)):
            link.encrypted = True
            self.summary.tls[next((end.port for end in link.cutters if end != link.client), 0)] += 1
        for event in events:
            yield from self._read(link, event)

    # --- reading ---

    def _read(self, link: _Link, event: Chunk | Gap) -> Iterable[Entry]:
        flow = event.flow
        cutter = link.cutters[flow.source]
        if isinstance(event, Chunk):
            completed = cutter.feed(event.data, event.time_ns, event.packet)
        else:
            completed = cutter.lose(event.length, event.time_ns, event.reason)
        if len(cutter.buffer) != cutter.counted:
            self._count(cutter, link, flow, begins=bool(completed))
        if self._open_frames_size > OPEN_FRAMES:
            return self._within_budget(link, event, completed)
        if len(completed) == 1 and isinstance(completed[0], FrameBody):
            return self._of_frame(link, flow, completed[0])
        return self._parts(link, flow, completed) if completed else ()

    def _within_budget(
        self, link: _Link, event: Chunk | Gap, completed: Iterable[FrameBody | UnreadableRange]
    ) -> Iterator[Entry]:
        """The entries of what was completed, and of frames that are given up for lack of memory."""
        yield from self._parts(link, event.flow, completed)
        while self._open_frames_size > OPEN_FRAMES and self._open_frames_size > current().frame + PREFIX:
            cutter, (link, flow) = next(iter(self._open_frames.items()))
            parts = cutter.give_up(event.time_ns, "abandoned: too many incomplete frames at once")
            self._count(cutter, link, flow)
            yield from self._parts(link, flow, parts)

    def _count(self, cutter: FrameSplitter, link: _Link, flow: Flow, *, begins: bool = False) -> None:
        """Note what a cutter holds now."""
        size = len(cutter.buffer)
        self._open_frames_size += size - cutter.counted
        cutter.counted = size
        if not size:
            self._open_frames.pop(cutter, None)
            return
        self._open_frames[cutter] = link, flow
        if begins:
            self._open_frames.move_to_end(cutter)

    def _parts(
        self, link: _Link, flow: Flow, parts: Iterable[FrameBody | UnreadableRange]
    ) -> Iterator[Entry]:
        conversation, name = link.conversation, link.name(flow)
        for part in parts:
            if isinstance(part, UnreadableRange):
                while link.early and flow.source != link.client:
                    yield from self._early(link, flow)
                reason = f"{ENCRYPTED}: {part.reason}" if link.encrypted else part.reason
                yield UnreadableRange(
                    part.position, part.length, reason, part.data, self.capture, name, part.time_ns,
                    packet=part.packet, first_packet=part.first_packet, tcp_stream=flow.stream,
                )  # fmt: skip
            elif flow.source == link.client:
                yield self._request(conversation, part, name)
                while link.early and conversation.expects(link.early[0].data):
                    yield from self._early(link, flow.reverse)
            elif link.early or not conversation.expects(part.data):
                # A hole in the client's direction holds its requests back a little: let the answer wait too.
                link.early.append(part)
                link.early_size += len(part.data)
                self._early_size += len(part.data)
                if self._ended is not None:
                    self._ended(self._answer_held(link, flow, part))
                while link.early and self._is_due(link, part.time_ns or 0):
                    yield from self._early(link, flow)
            else:
                yield self._response(conversation, part, name)

    def _request(self, conversation: AnyConversation, body: FrameBody, name: str) -> FrameEntry:
        entry = conversation.lazy_request(body, name) if self.lazy else None
        return conversation.request(body, name) if entry is None else entry

    def _response(self, conversation: AnyConversation, body: FrameBody, name: str) -> FrameEntry:
        entry = conversation.lazy_response(body, name) if self.lazy else None
        return conversation.response(body, name) if entry is None else entry

    def _is_due(self, link: _Link, now: int) -> bool:
        first = link.early[0]
        return (
            len(link.early) > EARLY_FRAMES
            or link.early_size > EARLY_BYTES
            or self._early_size > EARLY
            or now - (first.time_ns or 0) > EARLY_NS
            or link.conversation.expects(first.data)
        )

    def _early(self, link: _Link, flow: Flow) -> Iterator[FrameEntry]:
        body = link.early.popleft()
        link.early_size -= len(body.data)
        self._early_size -= len(body.data)
        yield self._response(link.conversation, body, link.name(flow))

    def _answer_held(self, link: _Link, flow: Flow, body: FrameBody) -> AnswerHeld:
        return AnswerHeld(
            capture=self.capture, flow=link.name(flow.reverse), time_ns=body.time_ns or 0, packet=body.packet
        )

    def _end(self, link: _Link, event: Closed) -> ConnectionEnd:
        by_client = event.flow.source == link.client
        name = link.name(event.flow if by_client else event.flow.reverse)
        sender, packet = "client" if by_client else "broker", event.packet or None
        return _connection_end(self.capture, name, event.time_ns, sender, event.ending, packet)

    def _close(self, event: Closed) -> Iterable[Entry]:
        number = event.flow.connection
        link = self._links.get(number)
        if link is not None:
            return self._close_link(link, number, event)
        opening = self._openings.get(number)
        if opening is not None:
            opening.open_flows.discard(event.flow.source)
            if not opening.open_flows:
                del self._openings[number]
        return ()

    def _close_link(self, link: _Link, number: int, event: Closed) -> Iterator[Entry]:
        self._routes.pop(id(event.flow), None)
        is_last = event.flow.source == link.client or link.open_flows == {event.flow.source}
        if self.ports and is_last and number in self._undecided:
            self._decide_by_port(link, event.flow, closed=True)
            yield from self._release(link, number)
        cutter = link.cutters.get(event.flow.source)
        if cutter is not None:
            parts = cutter.finish(event.time_ns)
            if cutter.counted:
                self._count(cutter, link, event.flow)
            if parts:
                yield from self._parts(link, event.flow, parts)
            if self._ended is not None and event.ending in ("fin", "rst"):
                self._ended(self._end(link, event))
        link.open_flows.discard(event.flow.source)
        if not link.open_flows:
            while link.early:
                client = event.flow.source == link.client
                yield from self._early(link, event.flow.reverse if client else event.flow)
            if number in self._undecided:
                self._count_other(link)
                self._let_go(link, number)
            link.conversation.close()
            del self._links[number]


def _add(batch: list[Entry | ConnectionSign], entries: Iterable[Entry], signs: list[ConnectionSign]) -> None:
    """Add entries to a batch, with the signs that came before and between them."""
    for entry in entries:
        batch += signs
        signs.clear()
        batch.append(entry)
    batch += signs
    signs.clear()


def _is_one_frame(cutter: FrameSplitter, data: bytes) -> bool:
    """Whether a direction's next bytes are exactly one frame."""
    size = len(data) - PREFIX
    return (
        size >= 0
        and cutter.in_step
        and not cutter.buffer
        and _SIZE(data)[0] == size
        and size <= current().frame
    )
