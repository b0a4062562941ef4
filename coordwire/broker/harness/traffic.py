"""`Traffic`: what went over a broker's connections, to look at while it runs and after.

Strategy: each piece of bytes is kept as it came or went, with its time and its connection; everything else
(frames, groups' timelines, a pcap) is made of them when it is asked for, by `coordwire.capture`. Rules: so
many bytes are kept, and no more: `dropped` says how many came later. TLS is taken off: a pcap has plain text.

`LiveTraffic`: what goes over a broker's connections, written as a pcap while it happens.

Strategy: the broker puts pieces into a queue, and a thread of its own writes them as packets, so that a slow
reader does not hold the broker up. Rules: so many bytes wait at most; a connection that has lost a piece to
that bound is not written any more, as its stream would be read wrongly, and `lost` counts such connections.
A reader that has gone ends the writing, not the broker.

`Exchange`: the messages between clients and broker, typed, for assertions.

    join = kafka.exchange.one(JoinGroupRequest, client_id="a")
    assert [protocol.name for protocol in join.protocols] == ["range"]

Rules: `one` fails with a list of the other messages. A response belongs to the client that sent the request.
"""

from __future__ import annotations

import io
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import suppress
from queue import SimpleQueue
from threading import Lock, Thread
from typing import TYPE_CHECKING, Any, BinaryIO, TypeAlias, TypeVar

from coordwire.capture.formats.pcap import CLOSED, RESET, Ends, pcap_parts, pcapng_parts
from coordwire.codec import Message
from coordwire.errors import counted

if TYPE_CHECKING:
    from coordwire.capture import FrameEntry

MOST = 64 << 20
"""So many bytes are kept, what a piece needs beside its own included."""

PIECE_COST = 200
"""Bytes of memory that a piece needs beside its own: a tuple, a time, a bytes object, a place in a queue."""

_CONNECTIONS = 20_000


_Piece: TypeAlias = tuple[int, int, bool, bytes]
"""Time in nanoseconds, connection, whether it went to the client, bytes."""


class Traffic:
    """The bytes of all connections. dropped: those that came when there was no more room.

    >>> from coordwire.broker import Broker
    >>> from coordwire.broker.harness import Traffic
    >>> from coordwire.broker.thread import BrokerThread
    >>> from coordwire.client import connect_sync
    >>> from coordwire.messages import ListGroupsRequest
    >>> traffic = Traffic()
    >>> with BrokerThread(Broker(traffic=traffic)) as broker, connect_sync(broker.bootstrap) as client:
    ...     _ = client.request(ListGroupsRequest(), version=4)
    >>> traffic
    <Traffic of 1 connection: ... bytes>
    """

    def __init__(self, most: int = MOST) -> None:
        self.dropped = 0
        self._most = most
        self._size = 0
        self._pieces: list[_Piece] = []
        self._ends: list[Ends] = []
        self._ports: set[int] = set()
        self._lock = threading.Lock()
        self._began = time.time_ns() - time.perf_counter_ns()

    def __repr__(self) -> str:
        return f"<Traffic of {counted(len(self._ends), 'connection')}: {counted(self._size, 'byte')}>"

    # --- for the broker ---

    def opened(self, client: tuple[str, int], broker: tuple[str, int]) -> int:
        """A connection was made; its number."""
        with self._lock:
            self._ports.add(broker[1])
            if len(self._ends) >= _CONNECTIONS:
                return -1
            self._ends.append(Ends(*client, *broker))
            return len(self._ends) - 1

    def add(self, connection: int, data: bytes, *, to_client: bool) -> None:
        """Bytes went over a connection."""
        self._keep(connection, to_client, bytes(data))

    def ended(self, connection: int, *, to_client: bool, aborted: bool) -> None:
        """A connection is over. to_client: whether the broker ended it; aborted: by an RST."""
        self._keep(connection, to_client, RESET if aborted else CLOSED)

    def _keep(self, connection: int, to_client: bool, data: bytes) -> None:
        with self._lock:
            if connection < 0 or self._size + len(data) + PIECE_COST > self._most:
                self.dropped += len(data)
                return
            self._size += len(data) + PIECE_COST
            now = self._began + time.perf_counter_ns()
            self._pieces.append((now, connection, to_client, data))

    # --- to look at ---

    def clear(self) -> None:
        """Drop what was kept so far; connections go on."""
        with self._lock:
            self._pieces, self._size, self.dropped = [], 0, 0

    def pcap(self) -> bytes:
        """All of it as a capture, for Wireshark and `coordwire timeline`."""
        return self._capture(pcap_parts)

    def pcapng(self) -> bytes:
        """The same as a pcapng."""
        return self._capture(pcapng_parts)

    def _capture(self, parts_of: Callable[..., Iterator[bytes]]) -> bytes:
        with self._lock:
            pieces, ends = list(self._pieces), list(self._ends)
        return b"".join(parts_of(pieces, ends.__getitem__))

    def entries(self) -> Iterator[FrameEntry]:
        """The frames, in the order in which they were complete."""
        if not self._pieces:
            return
        from coordwire.capture import Capture, FrameEntry  # what no test asks for is not loaded

        for entry in Capture(io.BytesIO(self.pcap()), "broker", ports=self._ports).entries():
            if isinstance(entry, FrameEntry):
                yield entry


# --- traffic while it happens ---


class LiveTraffic:
    """Writes to `out` until `close`, a pcap or a pcapng. then: called after that."""

    def __init__(
        self,
        out: BinaryIO,
        *,
        most: int = MOST,
        then: Callable[[], object] | None = None,
        pcapng: bool = False,
    ) -> None:
        self._out = out
        self._parts_of = pcapng_parts if pcapng else pcap_parts
        self._then = then
        self._most = most
        self._waiting = 0
        self._ends: list[Ends] = []
        self._lost: set[int] = set()
        self._queue: SimpleQueue[_Piece | None] = SimpleQueue()
        self._lock = Lock()
        self.failure: OSError | None = None
        """The error that has ended the writing."""
        self._thread = Thread(target=self._write, name="coordwire-pcap", daemon=True)
        self._thread.start()

    @property
    def lost(self) -> int:
        """Connections that are not whole in the capture."""
        return len(self._lost)

    def opened(self, client: tuple[str, int], broker: tuple[str, int]) -> int:
        self._ends.append(Ends(*client, *broker))
        return len(self._ends) - 1

    def add(self, connection: int, data: bytes, *, to_client: bool) -> None:
        self._pass(connection, to_client, bytes(data))

    def ended(self, connection: int, *, to_client: bool, aborted: bool) -> None:
        self._pass(connection, to_client, RESET if aborted else CLOSED)

    def _pass(self, connection: int, to_client: bool, data: bytes) -> None:
        with self._lock:
            if connection < 0 or connection in self._lost:
                return
            if self._waiting + len(data) + PIECE_COST > self._most:
                self._lost.add(connection)
                return
            self._waiting += len(data) + PIECE_COST
        self._queue.put((time.time_ns(), connection, to_client, data))

    def close(self) -> None:
        """Write what waits, and end; a reader that has stopped is waited for."""
        self._queue.put(None)
        self._thread.join()
        with suppress(OSError):
            self._out.close()
        if self._then is not None:
            self._then()

    def _pieces(self) -> Iterator[_Piece]:
        while True:
            if self._queue.empty():
                self._out.flush()
            piece = self._queue.get()
            if piece is None:
                return
            with self._lock:
                self._waiting -= len(piece[3]) + PIECE_COST
            yield piece

    def _write(self) -> None:
        parts = self._parts_of(self._pieces(), self._ends.__getitem__)
        try:
            for part in parts:
                self._out.write(part)
            self._out.flush()
        except OSError as error:  # the reader has gone, or the disk is full; what comes is dropped
            self.failure = error
            while self._queue.get() is not None:
                pass


# --- messages ---


M = TypeVar("M", bound=Message)


class Exchange:
    """The messages of a broker's connections so far.

    >>> from coordwire.broker.harness import Kafka
    >>> from coordwire.client import connect_sync
    >>> from coordwire.messages import ListGroupsRequest
    >>> with Kafka() as kafka, connect_sync(kafka.bootstrap) as client:
    ...     _ = client.request(ListGroupsRequest(), version=4)
    ...     kafka.exchange.one(ListGroupsRequest).types_filter
    []
    """

    def __init__(self, traffic: Traffic) -> None:
        self._traffic = traffic

    def __repr__(self) -> str:
        return f"<Exchange of {self._traffic!r}>"

    def all(
        self,
        message: type[M],
        *,
        client_id: str | None = None,
        when: Callable[[M], Any] | None = None,
        **fields: Any,
    ) -> list[M]:
        """The requests or responses of a class, in their order. fields: values that they have; when: a
        predicate."""
        return [
            match
            for _, match in self._matches(message, client_id)
            if all(getattr(match, name) == value for name, value in fields.items())
            and (when is None or when(match))
        ]

    def one(
        self,
        message: type[M],
        *,
        client_id: str | None = None,
        when: Callable[[M], Any] | None = None,
        **fields: Any,
    ) -> M:
        """The only one of them; `AssertionError` if there are none or more."""
        messages = self.all(message, client_id=client_id, when=when, **fields)
        if len(messages) != 1:
            raise AssertionError(
                f"expected 1 {message.__name__}, got {len(messages)}; {self._summary(client_id)}"
            )
        return messages[0]

    def entries(self) -> Iterator[FrameEntry]:
        """The frames, as `coordwire.capture` gives them, with times, versions and addresses."""
        return self._traffic.entries()

    def _matches(self, message: type[M], client_id: str | None) -> Iterator[tuple[FrameEntry, M]]:
        for entry in self._traffic.entries():
            if isinstance(entry.message, message) and client_id in (None, _client(entry)):
                yield entry, entry.message

    def _summary(self, client_id: str | None) -> str:
        counts: Counter[str] = Counter()
        for entry in self._traffic.entries():
            if entry.message is not None and entry.direction == "request":
                client = _client(entry)
                counts[f"{type(entry.message).__name__} of {client or 'a client without id'}"] += 1
        summary = ", ".join(f"{count} {name}" for name, count in counts.items()) or "nothing"
        full = f"; {self._traffic.dropped} bytes were not kept" if self._traffic.dropped else ""
        return f"there were: {summary}{full}"


def _client(entry: FrameEntry) -> str | None:
    request_entry = entry.request if entry.direction == "response" else entry
    return None if request_entry is None else request_entry.client_id
