"""The events of a capture: flows, their bytes, gaps in them, and ranges that couldn't be read.

Strategy: small frozen values; one `Flow` object is made for each direction of each connection and shared by
all its events.

Rules: time is int nanoseconds since 1970 UTC, `CaptureCounts.digits` says how many decimals the capture
really has. A flow's events come in this order: perhaps `Opened` (later, where the capture itself is out of
order), then `Chunk` and `Gap` that join without a gap from position 0 up, then exactly one `Closed`.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from functools import lru_cache
from typing import Literal, NamedTuple, TypeAlias

from coordwire.errors import UnreadableRange

#: Why a flow ended: its own FIN or RST; a new connection on its ports; too many others; the end of input.
Ending = Literal["fin", "rst", "reused", "forgotten", "end"]


class NetworkAddress(NamedTuple):
    """One side of a connection; a tuple, since each packet looks something up by it."""

    address: str
    port: int

    def __str__(self) -> str:
        return f"[{self.address}]:{self.port}" if ":" in self.address else f"{self.address}:{self.port}"


@dataclass(frozen=True, slots=True)
class Flow:
    """One direction of one TCP connection.

    connection: the connection's number in the capture, from 0, the same for both directions; it separates
    connections that used the same ports one after the other. stream: the same connection's number as
    Wireshark's tcp.stream has it, which counts those without data too.
    """

    source: NetworkAddress
    destination: NetworkAddress
    connection: int = 0
    stream: int = 0

    @property
    def reverse(self) -> Flow:
        """The other direction; equal to the flow of its events."""
        return Flow(self.destination, self.source, self.connection, self.stream)

    def __str__(self) -> str:
        return f"{self.source} > {self.destination}"

    def __hash__(self) -> int:  # looked up once a packet, and hashing the texts would cost more
        return hash((self.connection, self.source.port))


@dataclass(frozen=True, slots=True)
class TcpConnection:
    """The two ends of a connection. stream: its number in the capture, as Wireshark's tcp.stream."""

    stream: int
    client: NetworkAddress
    broker: NetworkAddress


@dataclass(frozen=True, slots=True)
class Opened:
    """A SYN was seen from the flow's source. server: the endpoint that the connection was made to."""

    flow: Flow
    time_ns: int
    server: NetworkAddress


class Chunk(NamedTuple):
    """Bytes of a stream, in order; a tuple, since most packets make one.

    time_ns: the time of the packet that completed them: where a hole before them was filled, the packet that
    filled it; where it was given up, their own.
    position: of the first byte in the stream; 0 is the byte after the SYN, or the first that was seen.
    packet: the number of the packet in the file that holds them; 0 where it isn't known.
    """

    flow: Flow
    time_ns: int
    position: int
    data: bytes
    packet: int = 0


@dataclass(frozen=True, slots=True)
class Gap:
    """Bytes that the stream had and the capture lacks; `position` and `length` as in `Chunk`."""

    flow: Flow
    time_ns: int
    position: int
    length: int
    reason: str


@dataclass(frozen=True, slots=True)
class Closed:
    """The flow's last event, whatever ended it. For `forgotten` and `end` the time is of its last packet.
    packet: of a FIN or RST, its number in the file; 0 where it isn't known."""

    flow: Flow
    time_ns: int
    ending: Ending
    packet: int = field(default=0, compare=False)


Event: TypeAlias = Opened | Chunk | Gap | Closed | UnreadableRange


@dataclass(slots=True)
class CaptureCounts:
    """Counts, kept while the events are drawn.

    digits: decimals of a second in the capture's time stamps; the finest of its interfaces so far.
    packets: packets read, and blocks of a pcapng that Wireshark counts with them; segments: TCP segments
    among them; passed_over: packets of other protocols; other_protocols: the number of each.
    repeated: segments whose bytes had all been seen before. foreign: a run of packets of an unknown link
    type, which isn't reported while more of the input may come.
    """

    digits: int = 6
    packets: int = 0
    segments: int = 0
    passed_over: int = 0
    repeated: int = 0
    other_protocols: Counter[str] = field(default_factory=Counter)
    foreign: UnreadableRange | None = None


_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


def format_time(time_ns: int, digits: int = 9) -> str:
    """ISO 8601 in UTC with that many decimals; "@seconds" for a time beyond what the calendar holds."""
    seconds, fraction = divmod(time_ns, 1_000_000_000)
    beginning, end = second_texts(seconds)
    return f"{beginning}.{fraction:09d}"[: len(beginning) + 1 + digits] + end if digits else beginning + end


@lru_cache(256)  # entries follow each other in time
def second_texts(seconds: int) -> tuple[str, str]:
    """The texts before and after the decimals of a second."""
    try:
        moment = _EPOCH + timedelta(seconds=seconds)
    except OverflowError:
        return f"@{seconds}", ""
    return (moment.isoformat()[:19], "Z") if moment.year > 999 else (f"@{seconds}", "")
