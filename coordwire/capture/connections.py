"""The streams of a capture to entries: which connections speak Kafka, and who is the client.

Strategy: where a SYN was seen, its sender is the client and its stream begins with a frame; otherwise the
direction in which a whole request can be found is the client's. A connection that shows none within a window
isn't Kafka and is left alone, unless its port was named. Rules: a connection is decided once; what was held
back until then is read in the order in which it came; memory per undecided connection is bounded.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Collection, Iterable, Iterator
from dataclasses import dataclass, field

from coordwire.capture.drafts import AnyConversation
from coordwire.capture.entries import Entry, FrameEntry, Stretch
from coordwire.capture.framing import Body, Cutter, Skipped
from coordwire.capture.model import Chunk, Closed, Endpoint, Event, Flow, Lost, Opened, Unreadable

WINDOW = 256 << 10
"""Bytes of an undecided connection that are held back; more without a request, and it isn't Kafka."""

EARLY_FRAMES, EARLY_BYTES, EARLY_NS = 64, 8 << 20, 5_000_000_000
"""How many answers may wait for a request that comes late out of the reassembly, and how long."""


@dataclass(slots=True)
class Summary:
    """Counts over a capture, kept while its entries are drawn.

    connections: TCP connections with data; kafka: those of them that were read; frames: whole frames.
    """

    connections: int = 0
    kafka: int = 0
    frames: int = 0

    def next_frame(self) -> int:
        self.frames += 1
        return self.frames


@dataclass(slots=True)
class _Link:
    """One TCP connection. `cutters` is there once it is decided; `ignored` where it isn't Kafka."""

    conversation: AnyConversation
    client: Endpoint | None = None
    opened: bool = False
    ignored: bool = False
    held: list[Chunk | Lost] = field(default_factory=list)
    size: int = 0
    cutters: dict[Endpoint, Cutter] = field(default_factory=dict)
    early: deque[Body] = field(default_factory=deque)
    early_size: int = 0
    open_flows: set[Endpoint] = field(default_factory=set)


class Connections:
    """Reads the events of one capture. `conversation`: makes that of a new connection; `ports`: those of
    brokers, whatever is said on them."""

    def __init__(
        self,
        capture: str,
        summary: Summary,
        conversation: Callable[[], AnyConversation],
        *,
        ports: Collection[int] = (),
    ) -> None:
        self.capture = capture
        self.summary = summary
        self.conversation = conversation
        self.ports = frozenset(ports)
        self._links: dict[int, _Link] = {}

    def entries(self, events: Iterable[Event]) -> Iterator[Entry]:
        """The entries of all events, in their order."""
        for event in events:
            match event:
                case Chunk() | Lost():
                    yield from self._data(event)
                case Opened():
                    link = self._link(event.flow)
                    link.opened = True
                    if not link.cutters:
                        source, target = event.flow.source, event.flow.destination
                        link.client = target if event.server == source else source
                case Closed():
                    yield from self._close(event)
                case Unreadable():
                    yield Stretch(
                        capture=self.capture, flow="", time_ns=None, position=event.position,
                        length=event.length, reason=event.reason,
                    )  # fmt: skip

    def _link(self, flow: Flow) -> _Link:
        link = self._links.get(flow.connection)
        if link is None:
            link = self._links[flow.connection] = _Link(self.conversation())
        link.open_flows.add(flow.source)
        return link

    def _data(self, event: Chunk | Lost) -> Iterator[Entry]:
        link = self._link(event.flow)
        if link.ignored:
            return
        if link.cutters:
            yield from self._read(link, event)
            return
        if not link.held:
            self.summary.connections += 1
        link.held.append(event)
        link.size += len(event.data) if isinstance(event, Chunk) else 0
        if self._decide(link, event.flow):
            yield from self._release(link)
        elif link.size > WINDOW:
            self._ignore(link)

    # --- who is who ---

    def _decide(self, link: _Link, flow: Flow) -> bool:
        """Find the client; True if the connection can be read from here on."""
        if self.ports:
            return self._decide_by_port(link, flow)
        for source in [link.client] if link.client else [flow.source, flow.destination]:
            head = _head(link, source)
            if link.opened and link.client:
                if len(head) < link.conversation.head:
                    return False
                if not link.conversation.opens(head):
                    self._ignore(link)
                    return False
                return True
            sender = link.conversation.sender(head)
            if sender is not None:
                ends = flow.source, flow.destination
                link.client = source if sender == "client" else ends[source == ends[0]]
                return True
        return False

    def _decide_by_port(self, link: _Link, flow: Flow) -> bool:
        for server, client in ((flow.destination, flow.source), (flow.source, flow.destination)):
            if server.port in self.ports:
                link.client = client
                return True
        self._ignore(link)
        return False

    def _ignore(self, link: _Link) -> None:
        link.ignored = True
        link.held.clear()

    def _release(self, link: _Link) -> Iterator[Entry]:
        """Read what was held back."""
        self.summary.kafka += 1
        flow = link.held[0].flow
        for source in (flow.source, flow.destination):
            talk = link.conversation
            fits = talk.fits_request if source == link.client else talk.fits_response
            link.cutters[source] = Cutter(fits, in_step=link.opened, head=talk.head)
        held, link.held = link.held, []
        for event in held:
            yield from self._read(link, event)

    # --- reading ---

    def _read(self, link: _Link, event: Chunk | Lost) -> Iterator[Entry]:
        cutter = link.cutters[event.flow.source]
        if isinstance(event, Chunk):
            found = cutter.feed(event.data, event.time_ns)
        else:
            found = cutter.lose(event.length, event.time_ns, event.reason)
        yield from self._parts(link, event.flow, found)

    def _parts(self, link: _Link, flow: Flow, found: Iterable[Body | Skipped]) -> Iterator[Entry]:
        talk = link.conversation
        for part in found:
            if isinstance(part, Skipped):
                while link.early and flow.source != link.client:
                    yield self._early(link, flow)
                yield stretch(self.capture, str(flow), part)
            elif flow.source == link.client:
                yield talk.request(part, str(flow))
                while link.early and talk.expects(link.early[0].data):
                    yield self._early(link, flow.reverse)
            elif link.early or not talk.expects(part.data):
                # A hole in the client's direction holds its requests back a little: let the answer wait too.
                link.early.append(part)
                link.early_size += len(part.data)
                while link.early and self._is_due(link, part.time_ns or 0):
                    yield self._early(link, flow)
            else:
                yield talk.response(part, str(flow))

    def _is_due(self, link: _Link, now: int) -> bool:
        first = link.early[0]
        return (
            len(link.early) > EARLY_FRAMES
            or link.early_size > EARLY_BYTES
            or now - (first.time_ns or 0) > EARLY_NS
            or link.conversation.expects(first.data)
        )

    def _early(self, link: _Link, flow: Flow) -> FrameEntry:
        body = link.early.popleft()
        link.early_size -= len(body.data)
        return link.conversation.response(body, str(flow))

    def _close(self, event: Closed) -> Iterator[Entry]:
        link = self._links.get(event.flow.connection)
        if link is None:
            return
        cutter = link.cutters.get(event.flow.source)
        if cutter is not None:
            yield from self._parts(link, event.flow, cutter.finish(event.time_ns))
        link.open_flows.discard(event.flow.source)
        if not link.open_flows:
            while link.early:
                client = event.flow.source == link.client
                yield self._early(link, event.flow.reverse if client else event.flow)
            del self._links[event.flow.connection]


def stretch(capture: str, flow: str, part: Skipped) -> Stretch:
    return Stretch(
        capture=capture, flow=flow, time_ns=part.time_ns, position=part.position, length=part.length,
        reason=part.reason, data=part.data,
    )  # fmt: skip


def _head(link: _Link, source: Endpoint) -> bytes:
    """What was held back of one direction, up to a loss."""
    parts: list[bytes] = []
    for event in link.held:
        if event.flow.source == source:
            if isinstance(event, Lost):
                parts.clear()
            else:
                parts.append(event.data)
    return b"".join(parts)
