"""Undecided connections: the search for frames in them, and for the client.

Strategy: a connection's bytes are held back, and each direction is searched for a whole frame that shows its
sender, in Kafka's protocol and in any other that may be beside it. Rules: each byte is looked at once,
however it is cut into packets: a place where a frame may begin whose end hasn't come waits until it has.
Decoding on trial is bounded by the bytes searched (`Effort`). What is held is bounded here for one
connection, and by `UNDECIDED` for all of a capture.

Another protocol is recognised by a connection's first bytes. Rules: only what a reader of a Kafka capture may
meet on a broker's port is recognised, TLS above all, which hides Kafka from all readers without the keys. In
the middle of a connection TLS is found by two records that follow one another; the places that are tried are
bounded.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from heapq import heappop, heappush

from coordwire.capture.conversation import AnyConversation
from coordwire.capture.flows import Chunk, Gap, NetworkAddress
from coordwire.capture.framing import TRIES, Effort
from coordwire.connection.dialect import Side
from coordwire.limits import current

WINDOW = 256 << 10
"""Bytes of an undecided connection that are held back; more without a request, and it isn't Kafka."""

PIECES = 16_384
"""So many chunks of it are, too."""

UNDECIDED = 64 << 20
"""Bytes of memory that all undecided connections of a capture may take. Beyond them, the one that has been
undecided longest is given up, and what was held of it is reported."""

PIECE = 256
"""What a chunk counts on top of its bytes, which are there twice."""

OPENING = 64
"""Bytes of a client's that show what it speaks."""

PLACES = 1024
"""Places in one direction where a frame may have begun that isn't whole yet; more aren't remembered."""


class Finder:
    """One direction: its bytes since the last loss, and what of each protocol may have begun in them."""

    def __init__(self, conversations: Sequence[AnyConversation]) -> None:
        self.buffer = bytearray()
        self._searches = [_Search(conversation, self.buffer) for conversation in conversations]

    def lose(self) -> None:
        """Bytes are missing: drop the frames that have begun."""
        self.buffer.clear()
        for search in self._searches:
            search.lose()

    def search(self) -> tuple[AnyConversation, Side] | None:
        """Whose frame is among the bytes that came since the last call, or is completed by them, and the
        sender's side. Kafka's, the first, is asked last: it takes frames with bytes too many."""
        for search in reversed(self._searches):
            if (side := search.search()) is not None:
                return search.conversation, side
        return None


class _Search:
    """Of one protocol in one direction: where in its bytes a frame may have begun."""

    def __init__(self, conversation: AnyConversation, buffer: bytearray) -> None:
        self.buffer = buffer
        self.conversation = conversation
        self._at = 0
        self._open_frames: list[tuple[int, int]] = []  # a heap: where it ends, where it begins
        self._effort = Effort()

    def lose(self) -> None:
        """The buffer is empty."""
        self._open_frames.clear()
        self._at = 0

    def search(self) -> Side | None:
        """The sender's side, by the bytes that came since the last call and the frames that they complete."""
        buffer, conversation, effort = self.buffer, self.conversation, self._effort
        have = len(buffer)
        frames = []
        while self._open_frames and self._open_frames[0][0] <= have:
            end, at = heappop(self._open_frames)
            frames.append((at, end))
        for at, end in sorted(frames):
            if (side := self._try(at, end)) is not None:
                return side
        stop = have - conversation.head + 1
        most = current().frame >> 24
        for at in range(self._at, stop):
            effort.remaining += TRIES
            if buffer[at] > most:  # a size beyond the budget
                continue
            end = conversation.claims(buffer, at)
            if end < 0:
                continue
            if end > have:
                if len(self._open_frames) < PLACES:
                    heappush(self._open_frames, (end, at))
            elif (side := self._try(at, end)) is not None:
                return side
        self._at = max(self._at, stop)
        return None

    def _try(self, at: int, end: int) -> Side | None:
        return self.conversation.sender(self.buffer, at, end) if self._effort.spend(end - at) else None


@dataclass(slots=True)
class Backlog:
    """The events of one connection that are held back. conversations: those that it may be; size: its bytes;
    cost: the memory that they count."""

    conversations: Sequence[AnyConversation]
    events: list[Chunk | Gap] = field(default_factory=list)
    finders: dict[NetworkAddress, Finder] = field(default_factory=dict)
    size: int = 0
    cost: int = 0

    def add(self, event: Chunk | Gap) -> Finder:
        """Hold an event back; its direction's finder."""
        self.events.append(event)
        source = event.flow.source
        finder = self.finders.get(source)
        if finder is None:
            finder = self.finders[source] = Finder(self.conversations)
        self.cost += PIECE
        if isinstance(event, Chunk):
            finder.buffer += event.data
            self.size += len(event.data)
            self.cost += 2 * len(event.data)
        else:
            finder.lose()
        return finder

    def head(self, source: NetworkAddress) -> bytes:
        """The first bytes of a direction, as many as any conversation needs."""
        finder = self.finders.get(source)
        return bytes(finder.buffer[:OPENING]) if finder is not None else b""

    @property
    def is_full(self) -> bool:
        return self.size > WINDOW or len(self.events) > PIECES


TLS = "TLS"
MOST_TRIED = 256
"""Places in the middle of a connection where a TLS record may begin."""

_RECORD = 5
_MOST_RECORD = (1 << 14) + 2048
_RECORDS = re.compile(rb"[\x14-\x18]\x03[\x00-\x04]", re.DOTALL)
_WORDS = b"conf|cons|crst|dirs|dump|envi|gtmk|hash|isro|mntr|ruok|srst|srvr|stat|wchc|wchp|wchs"
_FIRST = (
    ("HTTP", re.compile(rb"(?:GET|POST|PUT|HEAD|DELETE|CONNECT) [^\r\n]|HTTP/1\.[01] |PRI \* HTTP/2")),
    ("SSH", re.compile(rb"SSH-[12]\.")),
    ("Redis", re.compile(rb"\*[0-9]+\r\n\$[0-9]+\r\n")),
    ("ZooKeeper's four-letter words", re.compile(rb"(?:%s)$" % _WORDS)),
    ("SMTP or FTP", re.compile(rb"220[ -]")),
)  # fmt: skip


def find_protocol(directions: Iterable[bytes | bytearray]) -> str | None:
    """The protocol of a connection by the first bytes that were seen of each direction; None if unknown."""
    for data in directions:
        if is_tls(data):
            return TLS
        for name, pattern in _FIRST:
            if pattern.match(data):
                return name
    return None


def is_tls(data: bytes | bytearray) -> bool:
    """Whether TLS records are in the bytes: one at their start, or two in a row."""
    if _length(data, 0) > 0:
        return True
    for count, record in enumerate(_RECORDS.finditer(data)):
        if count >= MOST_TRIED:
            break
        length = _length(data, record.start())
        if length > 0 and _length(data, record.start() + _RECORD + length) > 0:
            return True
    return False


def _length(data: bytes | bytearray, at: int) -> int:
    """The length of the TLS record that begins at `at`; 0 if none can."""
    if len(data) < at + _RECORD or not _RECORDS.match(data, at):
        return 0
    length = int.from_bytes(data[at + 3 : at + _RECORD], "big")
    return length if 0 < length <= _MOST_RECORD else 0
