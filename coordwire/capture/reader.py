"""Any recorded input to entries: pcap, pcapng, hex text, length-prefixed frames, distinguished by content;
each may be compressed with gzip, xz or zstd.

Strategy: look at the head, choose the reader, go on from there; the input is read forwards once, so that a
pipe serves. Where the native half runs, it walks over the packets that are ordinary (`PacketWalk`), and a
chain of generators reads the others; without it the chain reads all. Rules: an input that is none of these
raises `DecodeError`; all after that becomes entries; the time of an event is never beyond what was read so
far.
"""

from __future__ import annotations

import struct
from collections.abc import Callable, Collection, Iterator, Sequence
from dataclasses import dataclass, field
from itertools import chain
from typing import TYPE_CHECKING, BinaryIO, cast

from coordwire._speedups import native
from coordwire.capture.connections import Connections, Summary
from coordwire.capture.conversation import AnyConversation, CaptureDialect, Conversation
from coordwire.capture.entries import ConnectionSign, Entry
from coordwire.capture.flows import CaptureCounts, Chunk, Event
from coordwire.capture.formats.compressed import decompressed, fault_of, find_compression
from coordwire.capture.formats.pcap import read_packets
from coordwire.capture.formats.source import InputWindow, Readable, Walks
from coordwire.capture.framing import Effort, FrameBody, FrameSplitter
from coordwire.capture.input_format import HEAD, InputFormat, is_capture, sniff
from coordwire.capture.pending_requests import PendingRequests
from coordwire.capture.tcp.link import read_segments
from coordwire.capture.tcp.reassembly import FlowTable, HalfStream, reassemble
from coordwire.errors import Malformed, UnreadableRange
from coordwire.frames import PREFIX
from coordwire.limits import current

if TYPE_CHECKING:
    from coordwire.capture.tcp.lone_packets import PacketFrame

BLOCK = 256 << 10
PCAP_HEADER = 24
MAGIC = 4
"""Bytes that a capture's format is detected by."""
MOST_MAGIC = 8
"""Bytes that any compression is detected by, at most."""

MOST_CONNECTIONS = 1024
"""Connections of packets in a hex text whose requests are remembered."""

FORMATS: tuple[InputFormat, ...] = ("pcap", "pcapng", "hex", "frames")
_SIZE = struct.Struct(">i").unpack_from


@dataclass(slots=True)
class ReaderState:
    """What a reader knows between two packets of a capture, which the reader of what follows goes on from.

    header: of a pcap, which the files that follow may repeat; position: of the next packet in the input.
    """

    summary: Summary = field(default_factory=Summary)
    counts: CaptureCounts = field(default_factory=CaptureCounts)
    waiting: PendingRequests = field(default_factory=PendingRequests)
    flows: FlowTable | None = None
    connections: Connections | None = None
    header: bytes = b""
    position: int = 0


class Capture:
    """One recorded input. Draw `entries()` once; `summary` and `counts` count meanwhile.

    name: what entries call it. input: its format, found by content if None. strict: refuse frames that
    deviate from the protocol though Apache Kafka's own decoder accepts them. ports: of brokers; None finds
    Kafka connections by content.
    dialect: the protocol, if it is not Kafka's (`coordwire.dialects`). alternative: a protocol that
    connections may speak beside Kafka's; which of them do is found by content, in captures of packets.
    head: what `read_head` has taken from the stream, if it has.
    state: that of a reader which has read the packets before the stream's.
    lazy: let frames of a pcap or pcapng be decoded when something asks what they say, within the limits of
    that moment.
    Raises `CodecUnavailable` for compressed input whose library isn't installed.

        >>> from io import BytesIO
        >>> from coordwire import encode_request
        >>> from coordwire.capture import Capture
        >>> from coordwire.messages import HeartbeatRequest
        >>> frame = encode_request(HeartbeatRequest(group_id="orders"), version=4, correlation_id=7)
        >>> capture = Capture(BytesIO(frame), "frames.bin")
        >>> capture
        <Capture 'frames.bin' of frames>
        >>> [entry.message.group_id for entry in capture.entries()]
        ['orders']
    """

    def __init__(
        self,
        stream: BinaryIO,
        name: str,
        *,
        input: InputFormat | None = None,
        strict: bool = False,
        ports: Collection[int] = (),
        dialect: CaptureDialect | None = None,
        alternative: CaptureDialect | None = None,
        head: bytes | None = None,
        lazy: bool = False,
        state: ReaderState | None = None,
    ) -> None:
        self.name = name
        self.strict = strict
        self.ports = ports
        self.lazy = lazy
        self.dialect = dialect
        self.alternative = alternative
        self.state = state = state or ReaderState()
        self.summary, self.counts, self.waiting = state.summary, state.counts, state.waiting
        self._signs: list[ConnectionSign] = []
        self._ended: Callable[[ConnectionSign], None] | None = None
        self._stream = stream
        self._head = state.header + (read_head(stream) if head is None else head)
        if compression := find_compression(self._head):
            self._stream = decompressed(stream, self._head, compression)
            self._head = read_head(self._stream)
        self.format = sniff(self._head) if input is None or not self._head else input
        if self.format == "empty" and state.connections is not None:
            self.format = "pcapng"  # further packets may be none
        if self.format == "empty":
            raise fault_of(self._stream) or Malformed("the input is empty", 0)
        if inner := find_compression(self._head):
            raise Malformed(f"{inner} inside of another compression: decompress it once first", 0)
        if self.format is None and self.dialect is not None:
            self.format = "frames"  # too short, perhaps, to look like anything
        if self.format not in FORMATS:
            if fault := fault_of(self._stream):
                raise fault
            known = ", ".join(FORMATS)
            description = "a broker's log segment" if self.format == "segment" else "an unknown format"
            raise Malformed(f"not a readable format: expected {known}, got {description}", 0)

    def __repr__(self) -> str:
        return f"<Capture {self.name!r} of {self.format}>"

    def entries(self) -> Iterator[Entry]:
        """Everything in the input, in order. Raises `Malformed` where a forced format isn't the input's."""
        return cast(Iterator[Entry], chain.from_iterable(self.batches(ends=False)))

    def entries_and_ends(self) -> Iterator[Entry | ConnectionSign]:
        """As `entries`, and what else is learned of connections: where they end, and where answers wait for
        requests. `coordwire.timeline.timeline` can use it."""
        return chain.from_iterable(self.batches())

    def batches(
        self, *, ends: bool = True, pause: Callable[[], bool] | None = None
    ) -> Iterator[list[Entry | ConnectionSign]]:
        """The same in lists: what was read at once. None waits for more of the input. ends: whether to give
        more than entries.

        pause: of a capture of packets that pauses where its stream seems to end, so that nothing ends there
        but the lists: another reader may go on from `state`. Within a packet it is called to have the stream
        go on; it gives whether it does.
        """
        if ends:
            self._ended = self._signs.append
        if self.format in ("pcap", "pcapng"):
            yield from self._of_packets(pause)
        else:
            for entry in self._of_other_formats():
                yield [entry]
        if fault := fault_of(self._stream):
            yield [UnreadableRange(fault.position, 0, fault.reason, file=self.name)]

    def _of_other_formats(self) -> Iterator[Entry]:
        """The entries of an input without connections."""
        conversation = self._conversation()
        return self._hex(conversation) if self.format == "hex" else self._frames(conversation)

    def _of_packets(self, pause: Callable[[], bool] | None) -> Iterator[list[Entry | ConnectionSign]]:
        """What `batches` gives of a capture of packets."""
        state, counts = self.state, self.counts
        flows = state.flows = state.flows or FlowTable(counts)
        connections = state.connections = self._connections(state.connections)
        window = InputWindow(self._stream, self._head, state.position - len(state.header), pause)
        if self._head:
            yield from connections.batches(read_stream_lists(window, counts=counts, flows=flows), self._signs)
        state.position = window.base + len(window.buffer)
        if self.format == "pcap":
            state.header = self._head[:PCAP_HEADER]
        if pause is None:
            yield from self.finish()

    def finish(self) -> Iterator[list[Entry | ConnectionSign]]:
        """What the end of a capture of packets shows, in lists, where `batches` was given a pause."""
        flows, connections = self.state.flows, self.state.connections
        assert flows is not None
        assert connections is not None
        yield from connections.batches(_last_events(flows, self.counts), self._signs)

    def _connections(self, earlier: Connections | None) -> Connections:
        """Those that go on from where an earlier reader was, if one was."""
        if earlier is not None:
            earlier.go_on(self._conversations, self._ended)
            return earlier
        return Connections(
            self.name, self.summary, self._conversations, ports=self.ports, lazy=self.lazy,
            ended=self._ended,
        )  # fmt: skip

    def _conversation(self) -> AnyConversation:
        """The conversation of a new connection."""
        number = self.summary.next_frame
        opened = Conversation if self.dialect is None else self.dialect.conversation
        return opened(self.name, number, strict=self.strict, waiting=self.waiting)

    def _conversations(self) -> Sequence[AnyConversation]:
        """The conversations that a new connection may be."""
        conversation = self._conversation()
        if self.alternative is None:
            return (conversation,)
        number = self.summary.next_frame
        second = self.alternative.conversation(self.name, number, strict=self.strict, waiting=self.waiting)
        return conversation, second

    def _blocks(self) -> Iterator[bytes]:
        yield self._head
        while block := self._stream.read(BLOCK):
            yield block

    def _frames(self, conversation: AnyConversation) -> Iterator[Entry]:
        """Size-prefixed frames of one stream, of either side or both."""

        def fits(buffer: bytearray, at: int, effort: Effort) -> bool:
            return conversation.fits_request(buffer, at, effort) or conversation.fits_response(
                buffer, at, effort
            )

        cutter = FrameSplitter(fits, in_step=True, head=conversation.head)
        parts = chain.from_iterable(cutter.feed(block, None) for block in self._blocks())
        for part in chain(parts, _finished(cutter)):
            yield conversation.either(part) if isinstance(part, FrameBody) else part._replace(file=self.name)

    def _hex(self, conversation: AnyConversation) -> Iterator[Entry]:
        """Frames as text. Each begins with its size prefix; where it can't, the bytes are a packet with TCP
        inside, or are taken as a body."""
        from coordwire.capture.formats.hexdump import read_frames  # which a capture does without
        from coordwire.capture.tcp.lone_packets import LonePackets, find_link

        packets = LonePackets()
        talks: dict[bytes, AnyConversation] = {}
        for frame in read_frames(_lines(self._blocks())):
            if isinstance(frame, UnreadableRange):
                yield frame._replace(file=self.name)
                continue
            bodies = _bodies(frame.data)
            if not bodies and (link := find_link(frame.data)) is not None:
                for part in packets.feed(frame.data, link, frame.position, frame.length):
                    yield self._packet_entry(talks, part)
                continue
            for body in bodies or [frame.data]:
                yield conversation.either(FrameBody(body, frame.position, None))
        for part in packets.finish():
            yield self._packet_entry(talks, part)

    def _packet_entry(
        self, talks: dict[bytes, AnyConversation], part: PacketFrame | UnreadableRange
    ) -> Entry:
        """The entry of a frame in packets. talks: the conversations of their connections."""
        if isinstance(part, UnreadableRange):
            return part._replace(file=self.name)
        if part.connection not in talks:
            if len(talks) >= MOST_CONNECTIONS:
                talks.pop(next(iter(talks))).close()
            talks[part.connection] = self._conversation()
        entry = talks[part.connection].either(part.body)
        entry.flow = part.flow
        return entry


def _finished(cutter: FrameSplitter) -> Iterator[FrameBody | UnreadableRange]:
    """The cutter's last parts, once the input is at its end."""
    yield from cutter.finish(None)


def _bodies(data: bytes) -> list[bytes]:
    """The frames that one hex text spells out, if prefixes cut it exactly; else none."""
    bodies = []
    at = 0
    while at + PREFIX <= len(data):
        size = _SIZE(data, at)[0]
        if not 0 <= size <= len(data) - at - PREFIX:
            break
        bodies.append(data[at + PREFIX : at + PREFIX + size])
        at += PREFIX + size
    return bodies if at == len(data) else []


def _lines(blocks: Iterator[bytes]) -> Iterator[bytes]:
    """The lines of a text; one longer than any frame's hex is given out in pieces."""
    pieces: list[bytes] = []
    size = 0
    for block in blocks:
        *lines, remainder = block.split(b"\n")
        for line in lines:
            yield b"".join([*pieces, line, b"\n"])
            pieces, size = [], 0
        pieces.append(remainder)
        size += len(remainder)
        if size > 4 * current().frame:
            yield b"".join(pieces)
            pieces, size = [], 0
    if size:
        yield b"".join(pieces)


def read_head(stream: BinaryIO) -> bytes:
    """Enough of the input to tell its format; of a capture just what is there, since it may be a live one."""
    read = getattr(stream, "read1", stream.read)
    head = bytearray()
    while len(head) < HEAD and (part := read(HEAD - len(head))):
        head += part
        if len(head) >= MAGIC and (is_capture(head[:MAGIC]) or find_compression(bytes(head[:MOST_MAGIC]))):
            break
    return bytes(head)


# --- streams ---


def read_stream_lists(
    stream: Readable | InputWindow,
    *,
    counts: CaptureCounts | None = None,
    flows: FlowTable | None = None,
) -> Iterator[Event | list[Chunk]]:
    """The events of all TCP streams in a pcap or pcapng, in the order of the capture; chunks of which
    many were read at once are in a list.

    counts: kept while the events are drawn, with the resolution of the time stamps; flows: those of a capture
    that goes on after the stream.
    Raises `Malformed` for what is not a capture.
    """
    counts = CaptureCounts() if counts is None else counts
    table = FlowTable(counts) if flows is None else flows
    walks = None if native is None else Walks(native.PacketWalk, table.halves, HalfStream, Chunk)
    packets = read_packets(stream, counts=counts, walks=walks)
    return reassemble(read_segments(packets, counts, ends=flows is None), table, ends=flows is None)


def _last_events(flows: FlowTable, counts: CaptureCounts) -> Iterator[Event]:
    """The events that only the end of a capture shows."""
    if counts.foreign is not None:
        yield counts.foreign
    yield from flows.end()
