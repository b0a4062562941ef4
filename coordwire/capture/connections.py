"""The streams of a capture to entries: which connections speak Kafka, and who is the client.

Strategy: where a SYN was seen, its sender is the client and its stream begins with a frame; otherwise the
direction in which a whole request can be found is the client's. A connection that shows none within a window
isn't Kafka and is left alone, unless its port was named (`undecided`). Rules: a connection is decided once;
what was held back until then is read in the order in which it came; what is held is bounded for each
connection and for all of a capture, and what is given up for that is reported.
"""

from __future__ import annotations

from collections import Counter, OrderedDict, deque
from collections.abc import Callable, Collection, Iterable, Iterator
from dataclasses import dataclass, field
from struct import Struct
from typing import NamedTuple

from coordwire.capture.client_search import UNDECIDED, Finder, Held
from coordwire.capture.conversation import AnyConversation
from coordwire.capture.entries import ConnectionEnd, Entry, FrameEntry
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
from coordwire.capture.other_protocols import find_protocol, is_tls
from coordwire.capture.share import Share
from coordwire.errors import UnreadableRange
from coordwire.frames import PREFIX
from coordwire.limits import current

EARLY_FRAMES, EARLY_BYTES, EARLY_NS = 64, 8 << 20, 5_000_000_000
"""How many answers of a connection may wait for a request that comes late out of the reassembly, how long."""

EARLY = 64 << 20
"""Bytes of such answers, of all connections of a capture."""

BEGUN = 256 << 20
"""Bytes of frames that have begun and aren't whole, of all connections of a capture, or the budget of one
frame where that is more. Beyond them, the one that began first is given up, and its bytes are reported."""


_SIZE = Struct(">i").unpack_from
_ID = Struct(">4xi").unpack_from

ENCRYPTED = "encrypted with TLS, which is not decrypted here"


@dataclass(slots=True)
class Summary:
    """Counts over a capture, kept while its entries are drawn.

    connections: TCP connections with data; kafka: those of them that were read; frames: whole frames.
    others: of the connections that were not read, how many by what they spoke ("TLS", "HTTP", … or "") and
    the port of their server, or the lower of both where their beginning was not seen. tls: connections that
    were read since their port was named, and spoke TLS, by that port.
    """

    connections: int = 0
    kafka: int = 0
    frames: int = 0
    others: Counter[tuple[str, int]] = field(default_factory=Counter)
    tls: Counter[int] = field(default_factory=Counter)

    def next_frame(self) -> int:
        self.frames += 1
        return self.frames


class _Route(NamedTuple):
    """One direction of a connection that has been decided. flow: kept so that its id stays its own; cutter:
    None where the connection isn't read; early: the link's; talk: its conversation, None where frames aren't
    counted in the summary's `frames`. As the native walk reads them."""

    flow: Flow
    link: _Link
    cutter: FrameSplitter | None
    is_client: bool
    name: str
    early: deque[FrameBody]
    talk: AnyConversation | None


@dataclass(slots=True)
class _Link:
    """One TCP connection. `cutters` is there once it is decided; `ignored` where it isn't Kafka."""

    conversation: AnyConversation
    held: Held
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
        found = self.names.get(flow.source)
        if found is None:
            found = self.names[flow.source] = str(flow)
        return found


class Connections:
    """Reads the events of one capture. `conversation`: makes that of a new connection; `ports`: those of
    brokers, whatever is said on them; `share`: of the frames that are given out; `lazy`: whether entries are
    lazy where they can be; `ended`: called with each FIN and RST of connections that are read."""

    def __init__(
        self,
        capture: str,
        summary: Summary,
        conversation: Callable[[], AnyConversation],
        *,
        ports: Collection[int] = (),
        share: Share | None = None,
        lazy: bool = False,
        ended: Callable[[ConnectionEnd], None] | None = None,
    ) -> None:
        self.capture = capture
        self._ended = ended
        self.share = share
        self.lazy = lazy
        self.summary = summary
        self.conversation = conversation
        self.ports = frozenset(ports)
        self._links: dict[int, _Link] = {}
        self._undecided: OrderedDict[int, _Link] = OrderedDict()
        self._undecided_cost = 0
        self._begun: OrderedDict[FrameSplitter, tuple[_Link, Flow]] = OrderedDict()
        self._begun_size = 0
        self._early_size = 0
        self._routes: dict[int, _Route] = {}
        self._walk = frame_walk(_Route, self._routes, summary, share) if lazy else None

    def entries(self, events: Iterable[Event]) -> Iterator[Entry]:
        """The entries of all events, in their order."""
        find, share, lazy = self._routes.get, self.share, self.lazy
        take = None if self._walk is None else self._walk.take
        for event in events:
            if type(event) is Chunk:
                if take is not None and (taken := take(event, current().frame)) is not None:
                    if taken is not True:
                        yield taken
                    continue
                flow, time_ns, _, data, packet = event
                route = find(id(flow))
                if route is None:
                    yield from self._data(event)
                    self._decided(flow)
                    continue
                _, link, cutter, is_client, name, _, _ = route
                if cutter is None:
                    continue
                size = len(data) - PREFIX
                whole = size >= 0 and packet and cutter.in_step and not cutter.buffer
                if not whole or _SIZE(data)[0] != size or size > current().frame:
                    yield from self._read(link, event)
                    continue
                # One segment with one frame, as most are: what `_read` would do with it.
                position = cutter.position
                cutter.position = position + PREFIX + size
                talk, inside = link.conversation, data[PREFIX:]
                if not link.early and (lazy or (share is not None and not share.is_next)):
                    entry = None
                    if is_client:
                        entry = talk.lazy_request(inside, time_ns, packet, name)
                    elif lazy:
                        entry = talk.lazy_response(inside, time_ns, packet, name)
                    elif share and size >= PREFIX and (asked := talk.awaited(_ID(data)[0])) is not None:
                        share.takes(size)  # of another share: noted without being made
                        talk.pass_answer(asked)
                        continue
                    if entry is not None:
                        if share is None or share.takes(size):
                            yield entry
                        continue
                body = FrameBody(inside, position, time_ns, packet, packet)
                if link.early or not (is_client or talk.expects(inside)):
                    yield from self._parts(link, flow, (body,))
                elif share is None or share.takes(size):
                    yield talk.request(body, name) if is_client else talk.response(body, name)
                elif is_client:
                    talk.pass_request(body, name)
                else:
                    talk.pass_response(body, name)
                continue
            match event:
                case Gap():
                    yield from self._data(event)
                case Opened():
                    link = self._link(event.flow)
                    link.opened = True
                    if not link.cutters:
                        source, target = event.flow.source, event.flow.destination
                        link.client = target if event.server == source else source
                case Closed():
                    yield from self._close(event)
                case UnreadableRange():
                    yield event._replace(file=self.capture)

    def _decided(self, flow: Flow) -> None:
        """Note where a direction's bytes go from now on, if that is known."""
        link = self._links[flow.connection]
        if link.cutters or link.ignored:
            cutter = link.cutters.get(flow.source)
            is_client = flow.source == link.client
            talk = link.conversation
            counted = talk if talk.number == self.summary.next_frame else None
            self._routes[id(flow)] = _Route(
                flow, link, cutter, is_client, link.name(flow), link.early, counted
            )

    def _link(self, flow: Flow) -> _Link:
        link = self._links.get(flow.connection)
        if link is None:
            talk = self.conversation()
            link = self._links[flow.connection] = _Link(talk, Held(talk))
        link.open_flows.add(flow.source)
        return link

    def _data(self, event: Chunk | Gap) -> Iterator[Entry]:
        link = self._link(event.flow)
        if link.ignored:
            return
        if link.cutters:
            yield from self._read(link, event)
            return
        held, number = link.held, event.flow.connection
        if not held.events:
            self.summary.connections += 1
            self._undecided[number] = link
        before = held.cost
        finder = held.add(event)
        self._undecided_cost += held.cost - before
        if self._decide(link, event.flow, finder):
            yield from self._release(link, number)
        elif link.ignored or held.is_full:
            self._ignore(link, number)
        while self._undecided_cost > UNDECIDED:
            yield from self._give_up(*next(iter(self._undecided.items())), event.time_ns)

    # --- who is who ---

    def _decide(self, link: _Link, flow: Flow, finder: Finder) -> bool:
        """Find the client; True if the connection can be read from here on. Ignores what isn't Kafka's."""
        if self.ports:
            return self._decide_by_port(link, flow)
        talk = link.conversation
        if link.opened and link.client:
            head = link.held.head(link.client)
            if len(head) < talk.head:
                return False
            link.ignored = not talk.opens(head)
            return not link.ignored
        sender = finder.search()
        if sender is None:
            return False
        link.client = flow.source if sender == "client" else flow.destination
        return True

    def _decide_by_port(self, link: _Link, flow: Flow) -> bool:
        for server, client in ((flow.destination, flow.source), (flow.source, flow.destination)):
            if server.port in self.ports:
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
        flow = link.held.events[0].flow
        ends = flow.source, flow.destination
        port = min(end.port for end in ends)
        if link.opened and link.client in ends:
            port = next((end.port for end in ends if end != link.client), port)
        spoken = find_protocol(finder.buffer for finder in link.held.finders.values())
        self.summary.others[spoken or "", port] += 1

    def _let_go(self, link: _Link, number: int) -> list[Chunk | Gap]:
        """Hold nothing back any longer."""
        held, link.held = link.held, Held(link.conversation)
        if self._undecided.pop(number, None) is not None:
            self._undecided_cost -= held.cost
        return held.events

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

    def _release(self, link: _Link, number: int) -> Iterator[Entry]:
        """Read what was held back."""
        self.summary.kafka += 1
        events = self._let_go(link, number)
        flow, talk = events[0].flow, link.conversation
        assert link.client is not None
        broker = flow.destination if flow.source == link.client else flow.source
        talk.connection = TcpConnection(flow.stream, link.client, broker)
        for source in (flow.source, flow.destination):
            fits = talk.fits_request if source == link.client else talk.fits_response
            link.cutters[source] = FrameSplitter(fits, in_step=link.opened, head=talk.head)
        if self.ports and any(is_tls(event.data) for event in events if isinstance(event, Chunk)):
            link.encrypted = True
            self.summary.tls[next((end.port for end in link.cutters if end != link.client), 0)] += 1
        for event in events:
            yield from self._read(link, event)

    # --- reading ---

    def _read(self, link: _Link, event: Chunk | Gap) -> Iterator[Entry]:
        cutter = link.cutters[event.flow.source]
        if isinstance(event, Chunk):
            found = cutter.feed(event.data, event.time_ns, event.packet)
        else:
            found = cutter.lose(event.length, event.time_ns, event.reason)
        if len(cutter.buffer) != cutter.counted:
            self._count(cutter, link, event.flow, begins=bool(found))
        if found:
            yield from self._parts(link, event.flow, found)
        while self._begun_size > BEGUN and self._begun_size > current().frame + PREFIX:
            cutter, (link, flow) = next(iter(self._begun.items()))
            parts = cutter.give_up(event.time_ns, "abandoned: too many incomplete frames at once")
            self._count(cutter, link, flow)
            yield from self._parts(link, flow, parts)

    def _count(self, cutter: FrameSplitter, link: _Link, flow: Flow, *, begins: bool = False) -> None:
        """Note what a cutter holds now."""
        size = len(cutter.buffer)
        self._begun_size += size - cutter.counted
        cutter.counted = size
        if not size:
            self._begun.pop(cutter, None)
            return
        self._begun[cutter] = link, flow
        if begins:
            self._begun.move_to_end(cutter)

    def _parts(
        self, link: _Link, flow: Flow, found: Iterable[FrameBody | UnreadableRange]
    ) -> Iterator[Entry]:
        talk, name = link.conversation, link.name(flow)
        for part in found:
            if isinstance(part, UnreadableRange):
                while link.early and flow.source != link.client:
                    yield from self._early(link, flow)
                if link.encrypted:
                    part = part._replace(reason=f"{ENCRYPTED}: {part.reason}")
                yield part._replace(file=self.capture, flow=name, tcp_stream=flow.stream)
            elif flow.source == link.client:
                if (entry := self._request(talk, part, name)) is not None:
                    yield entry
                while link.early and talk.expects(link.early[0].data):
                    yield from self._early(link, flow.reverse)
            elif link.early or not talk.expects(part.data):
                # A hole in the client's direction holds its requests back a little: let the answer wait too.
                link.early.append(part)
                link.early_size += len(part.data)
                self._early_size += len(part.data)
                while link.early and self._is_due(link, part.time_ns or 0):
                    yield from self._early(link, flow)
            elif (entry := self._response(talk, part, name)) is not None:
                yield entry

    def _request(self, talk: AnyConversation, body: FrameBody, name: str) -> FrameEntry | None:
        if self.share is None or self.share.takes(len(body.data)):
            return talk.request(body, name)
        talk.pass_request(body, name)
        return None

    def _response(self, talk: AnyConversation, body: FrameBody, name: str) -> FrameEntry | None:
        if self.share is None or self.share.takes(len(body.data)):
            return talk.response(body, name)
        talk.pass_response(body, name)
        return None

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
        if (entry := self._response(link.conversation, body, link.name(flow))) is not None:
            yield entry

    def _end(self, link: _Link, event: Closed) -> ConnectionEnd:
        by_client = event.flow.source == link.client
        return ConnectionEnd(
            capture=self.capture, flow=link.name(event.flow if by_client else event.flow.reverse),
            time_ns=event.time_ns, sender="client" if by_client else "broker",
            how="rst" if event.how == "rst" else "fin", packet=event.packet or None,
        )  # fmt: skip

    def _close(self, event: Closed) -> Iterator[Entry]:
        link = self._links.get(event.flow.connection)
        if link is None:
            return
        self._routes.pop(id(event.flow), None)
        cutter = link.cutters.get(event.flow.source)
        if cutter is not None:
            parts = cutter.finish(event.time_ns)
            self._count(cutter, link, event.flow)
            yield from self._parts(link, event.flow, parts)
            if self._ended is not None and event.how in ("fin", "rst"):
                self._ended(self._end(link, event))
        link.open_flows.discard(event.flow.source)
        if not link.open_flows:
            while link.early:
                client = event.flow.source == link.client
                yield from self._early(link, event.flow.reverse if client else event.flow)
            if event.flow.connection in self._undecided:
                self._count_other(link)
            self._let_go(link, event.flow.connection)
            link.conversation.close()
            del self._links[event.flow.connection]
