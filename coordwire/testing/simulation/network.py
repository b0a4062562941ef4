"""The network of a simulated world: connections in memory, which are slow, cut, broken off or half-open.

Strategy: a connection is a pair of asyncio transports, each with the bytes that are on their way from it.
Bytes arrive in order, in pieces, after a latency that the seed draws; the receiver's callback runs in the
receiver's context, so that it waits while its process is frozen. Rules: bytes of a link that is cut wait, as
TCP sends them again; a connection that is dropped gives both ends ECONNRESET; one that is half-open loses
what is sent, and its ends learn of it by ETIMEDOUT after 15 minutes, as Linux has it, or when the fault says,
or by their own limits.
"""

from __future__ import annotations

import asyncio
import errno
import os
import socket
import ssl
import zlib
from collections import deque
from collections.abc import Callable, Iterator
from contextvars import Context, copy_context
from random import Random
from typing import Any, Protocol

from coordwire.testing.fault_plans import FaultEnd, Paths, are_between
from coordwire.testing.simulation.loop import PROCESS, LoopProcess, SimulationLoop
from coordwire.testing.simulation.tls import shake_hands, tls_details

__all__ = ["Host", "Network", "Tracer", "Transport"]

_WINDOW = 1 << 18
"""Bytes on their way that the two machines' buffers take, beyond which a transport holds them back."""

_HIGH, _LOW = 1 << 16, 1 << 14
_BANDWIDTH = 100e6
"""Bytes a second."""

_LATENCY = (0.000_2, 0.003)
"""Seconds."""

_PIECES = 16
"""One of so many writes arrives in two pieces."""

_PIECE_BITS = _PIECES.bit_length()

_TCP_TIMEOUT = 900.0
"""Seconds for which what is lost is sent again."""

_CONNECT_TIMEOUT = 127.0
_RETRY = 1.0


class Tracer(Protocol):
    """A listener to the events of a world."""

    def __call__(self, kind: str, text: str) -> None: ...


class Host:
    """Something with an address. process: what runs on it now; None for a broker's node.

    is_frozen: what it gets waits.
    """

    def __init__(self, name: str, address: str) -> None:
        self.name, self.address = name, address
        self.process: LoopProcess | None = None
        self.is_frozen = False
        self.next_port = 40_000


class _Socket:
    """What `get_extra_info("socket")` and a server's `sockets` give."""

    family = socket.AF_INET
    type = socket.SOCK_STREAM
    proto = socket.IPPROTO_TCP

    def __init__(self, address: tuple[str, int], peer: tuple[str, int] | None = None) -> None:
        self._address, self._peer = address, peer

    def getsockname(self) -> tuple[str, int]:
        return self._address

    def getpeername(self) -> tuple[str, int] | None:
        return self._peer

    def fileno(self) -> int:
        return -1

    def setsockopt(self, *values: Any) -> None:
        """Nothing has such options here."""

    def getsockopt(self, *values: Any) -> int:
        return 0


class Transport(asyncio.Transport):
    """One end of a connection. machine: whose it is; peer: the other end.

    is_silent: what it sends is lost, and it gets nothing. context: of its protocol's callbacks.
    """

    def __init__(
        self,
        network: Network,
        machine: Host,
        local: tuple[str, int],
        remote: tuple[str, int],
        context: Context,
    ) -> None:
        super().__init__({"peername": remote, "sockname": local, "socket": _Socket(local, remote)})
        self.network, self.machine, self.context = network, machine, context
        self.process = context.get(PROCESS)
        self.local, self.remote = local, remote
        self.peer: Transport
        self.protocol: Any = None
        self.is_silent = False
        self.is_lost = False
        """`connection_lost` was called, or is about to be."""
        self._is_closing = False
        self._outbox: deque[bytes] = deque()
        """What is on its way; b"" is the end."""
        self._flying = 0
        """Bytes that the peer's protocol does not have yet."""
        self._arrives = 0.0
        self._is_stalled = False
        self._is_paused = False
        self._inbox: deque[bytes] = deque()
        self._high, self._low = _HIGH, _LOW
        self._protocol_paused = False
        self._timeout: asyncio.TimerHandle | None = None
        self._resent = _TCP_TIMEOUT

    def join(self, peer: Transport) -> None:
        """The other end is made."""
        self.peer = peer
        self._names = f"{self.machine.name} {peer.machine.name}"

    # --- asyncio's face ---

    def set_protocol(self, protocol: asyncio.BaseProtocol) -> None:
        self.protocol = protocol

    def get_protocol(self) -> asyncio.BaseProtocol:
        protocol: asyncio.BaseProtocol = self.protocol
        return protocol

    def is_closing(self) -> bool:
        return self._is_closing

    def is_reading(self) -> bool:
        return not (self._is_paused or self._is_closing)

    def pause_reading(self) -> None:
        self._is_paused = True

    def resume_reading(self) -> None:
        if self._is_paused:
            self._is_paused = False
            if self._inbox:
                self.network.loop.call_soon(self._read, context=self.context)

    def can_write_eof(self) -> bool:
        return True

    def write_eof(self) -> None:
        if not self._is_closing and not self.is_lost:
            self._send(b"")

    def set_write_buffer_limits(self, high: int | None = None, low: int | None = None) -> None:
        self._high = (_HIGH if low is None else 4 * low) if high is None else high
        self._low = self._high // 4 if low is None else low

    def get_write_buffer_limits(self) -> tuple[int, int]:
        return self._low, self._high

    def get_write_buffer_size(self) -> int:
        return max(0, self._flying - _WINDOW)

    def write(self, data: bytes | bytearray | memoryview) -> None:
        if self._is_closing or self.is_lost or not data:
            return
        content = bytes(data)
        network = self.network
        network.trace("bytes", f"{self._names} {len(content)} {zlib.crc32(content):08x}")
        if len(content) > 1 and not network.draw_piece():
            cut = network.random.randrange(1, len(content))
            self._send(content[:cut])
            self._send(content[cut:])
        else:
            self._send(content)
        if not self._protocol_paused and self._flying - _WINDOW > self._high:
            self._protocol_paused = True
            self.protocol.pause_writing()

    def writelines(self, list_of_data: Any) -> None:
        self.write(b"".join(list_of_data))

    def close(self) -> None:
        if self._is_closing:
            return
        self._is_closing = True
        self._inbox.clear()
        if not self.is_lost:
            self._send(b"")
            self._lose(None)

    def abort(self) -> None:
        """End the connection at once; the peer gets ECONNRESET."""
        if self._is_closing and self.is_lost:
            return
        self._is_closing = True
        self._outbox.clear()
        self._flying = 0
        if not self.is_lost:
            self.network.trace("reset", f"{self.machine.name} {self.peer.machine.name}")
            if not self.is_silent:
                self.peer.reset_later()
            self._lose(None)

    # --- the way of bytes ---

    def _send(self, data: bytes) -> None:
        network = self.network
        self._outbox.append(data)
        self._flying += len(data)
        if self.is_silent:
            self._expect_timeout()
            return
        now = network.loop.now
        at = now + network.latency(self.machine, self.peer.machine) + len(data) / _BANDWIDTH
        self._arrives = max(self._arrives, at)
        network.loop.call_at(self._arrives, self._arrive, context=self.peer.context)

    def _arrive(self) -> None:
        """The next piece reaches the peer, unless the link is cut."""
        if not self._outbox or self.is_silent:
            return
        if self.network.is_blocked(self.machine, self.peer.machine):
            self._is_stalled = True
            self.network.stalled[self] = None
            return
        self.peer.receive(self._outbox.popleft())

    def _delivered(self, size: int) -> None:
        """The peer's protocol has so many bytes now."""
        if self._flying:
            self._flying -= size
            if self._protocol_paused and self._flying - _WINDOW <= self._low and not self.is_lost:
                self._protocol_paused = False
                self.network.loop.call_soon(self.protocol.resume_writing, context=self.context)

    def release(self) -> None:
        """The link is not cut any more: send again what waits."""
        if self._is_stalled:
            self._is_stalled = False
            now = self.network.loop.now
            self._arrives = now + self.network.latency(self.machine, self.peer.machine)
            for _ in range(len(self._outbox)):
                self.network.loop.call_at(self._arrives, self._arrive, context=self.peer.context)

    def receive(self, data: bytes) -> None:
        """In the context of this end: bytes have come."""
        if self.is_lost:
            return
        self._inbox.append(data)
        if not self._is_paused:
            self._read()

    def _read(self) -> None:
        inbox = self._inbox
        while inbox and not self._is_paused and not self.is_lost:
            data = inbox.popleft()
            self.peer._delivered(len(data))
            protocol = self.protocol
            if not data:
                if not protocol.eof_received():
                    self.close()
            elif hasattr(protocol, "data_received"):
                protocol.data_received(data)
            else:
                at = 0
                while at < len(data):  # BufferedProtocol
                    buffer = protocol.get_buffer(len(data) - at)
                    size = min(len(buffer), len(data) - at)
                    buffer[:size] = data[at : at + size]
                    protocol.buffer_updated(size)
                    at += size

    def _lose(self, error: OSError | None) -> None:
        """Report the end to the protocol, in a step of its own."""
        self.is_lost = True
        if self._timeout is not None:
            self._timeout.cancel()
        self.network.transports.pop(self, None)
        self.network.loop.call_soon(self.protocol.connection_lost, error, context=self.context)

    def fail(self, number: int) -> None:
        """The connection ends with an error of the system."""
        if not self.is_lost:
            self._is_closing = True
            self._outbox.clear()
            self._inbox.clear()
            self._lose(_error(number))

    def reset_later(self) -> None:
        """A reset is on its way to this end."""
        network = self.network
        latency = network.latency(self.peer.machine, self.machine)
        network.loop.call_later(latency, self._reset, context=self.context)

    def _reset(self) -> None:
        if self.is_silent:
            return
        if self.network.is_blocked(self.peer.machine, self.machine):
            self.network.loop.call_later(_RETRY, self._reset, context=self.context)
        else:
            self.fail(errno.ECONNRESET)

    def silence(self, resent: float) -> None:
        """What is sent from now on is lost, and sent again for so many seconds."""
        self.is_silent = True
        self._resent = resent
        self._is_stalled = False
        if self._outbox:
            self._expect_timeout()

    def _expect_timeout(self) -> None:
        if self._timeout is None:
            self._timeout = self.network.loop.call_later(
                self._resent, self.fail, errno.ETIMEDOUT, context=self.context
            )

    @property
    def is_asked_in_vain(self) -> bool:
        """Whether what a process has sent is lost, and its protocol does not know."""
        return self._timeout is not None and not self.is_lost and self.process is not None

    def vanish(self) -> None:
        """The process of this end is gone: the system resets its connections, its protocol learns nothing."""
        self.is_lost = self._is_closing = True
        self._outbox.clear()
        self._inbox.clear()
        self.network.transports.pop(self, None)
        if not self.is_silent:
            self.peer.reset_later()

    def __del__(self) -> None:
        """asyncio's own warns of one that was not closed; a world has a checker for that."""


class NetworkServer(asyncio.AbstractServer):
    """A listener. sockets: one, of its address; tls: None for plain connections."""

    def __init__(
        self,
        network: Network,
        factory: Callable[[], asyncio.BaseProtocol],
        machine: Host,
        address: tuple[str, int],
        tls: ssl.SSLContext | None,
    ) -> None:
        self.network, self.factory, self.machine, self.address = network, factory, machine, address
        self.tls = tls
        self.context = copy_context()
        self.sockets: tuple[_Socket, ...] = (_Socket(address),)
        self._closed = network.loop.create_future()

    def close(self) -> None:
        self.sockets = ()
        if self.network.servers.get(self.address[1]) is self:
            del self.network.servers[self.address[1]]
        if not self._closed.done():
            self._closed.set_result(None)

    def get_loop(self) -> asyncio.AbstractEventLoop:
        return self.network.loop

    def is_serving(self) -> bool:
        return bool(self.sockets)

    async def start_serving(self) -> None:
        """It serves from its making on."""

    async def serve_forever(self) -> None:
        await self._closed

    async def wait_closed(self) -> None:
        await self._closed


class Network:
    """All connections of a world. machines: by name. names: of the machine that listens on a port, where it
    is not the one whose process listens."""

    def __init__(self, loop: SimulationLoop, seed: int, trace: Tracer) -> None:
        self.loop, self.trace = loop, trace
        self.random = Random(f"network/{seed}")
        self._bits = self.random.getrandbits
        self.machines: dict[str, Host] = {}
        self.by_process: dict[LoopProcess | None, Host] = {}
        self.servers: dict[int, NetworkServer] = {}
        self.names: dict[int, Host] = {}
        self.transports: dict[Transport, None] = {}
        self.stalled: dict[Transport, None] = {}
        self.paths = Paths(self.released)
        self._port = 9092
        loop.network = self

    def add(self, name: str) -> Host:
        """A new machine."""
        number = len(self.machines) + 1
        machine = self.machines[name] = Host(name, f"10.0.{number >> 8}.{number & 255}")
        return machine

    @property
    def by_address(self) -> dict[str, str]:
        """The names of machines."""
        return {machine.address: name for name, machine in self.machines.items()}

    def address_of(self, name: str) -> str | None:
        machine = self.machines.get(name)
        if machine is not None:
            return machine.address
        if name == "localhost":
            return "127.0.0.1"
        return name if name.replace(".", "").isdigit() else None

    def draw_piece(self) -> int:
        """A number below `_PIECES`, by the draws of `Random.randrange`, which takes four calls for it."""
        number = self._bits(_PIECE_BITS)
        while number >= _PIECES:
            number = self._bits(_PIECE_BITS)
        return number

    # --- connections ---

    def listen(
        self,
        factory: Callable[[], asyncio.BaseProtocol],
        host: Any,
        port: int,
        tls: ssl.SSLContext | None = None,
    ) -> asyncio.AbstractServer:
        """A server of the process that asks."""
        port = port or self._free_port()
        if port in self.servers:
            raise OSError(errno.EADDRINUSE, f"{os.strerror(errno.EADDRINUSE)}: port {port}")
        machine = self.names.get(port) or self.by_process[PROCESS.get()]
        address = (host if isinstance(host, str) and host else "127.0.0.1", port)
        server = self.servers[port] = NetworkServer(self, factory, machine, address, tls)
        return server

    def listen_at(self, machine: Host, factory: Callable[[], asyncio.BaseProtocol]) -> int:
        """Let a machine without a process listen; at which port."""
        port = self._free_port()
        self.names[port] = machine
        self.listen(factory, "0.0.0.0", port)
        return port

    def _free_port(self) -> int:
        while self._port in self.servers:
            self._port += 1
        self._port += 1
        return self._port - 1

    async def connect(
        self,
        factory: Callable[[], asyncio.BaseProtocol],
        host: str,
        port: int,
        tls: ssl.SSLContext | None = None,
        server_name: str | None = None,
    ) -> tuple[asyncio.Transport, asyncio.BaseProtocol]:
        """A connection from the process that asks. server_name: as TLS expects it. Raises `OSError`."""
        machine = self.by_process[PROCESS.get()]
        began, wait = self.loop.now, _RETRY
        address = self.address_of(host)
        if address is None:
            raise socket.gaierror(socket.EAI_NONAME, f"no machine of the simulated world is named {host}")
        while True:
            server = self.servers.get(port)
            target = self.names.get(port) if server is None else server.machine
            latency = 2 * self.latency(machine, target or machine)
            is_cut = target is not None and (self.is_cut(machine, target) or self.is_cut(target, machine))
            if not is_cut:
                await asyncio.sleep(latency)
                break
            if self.loop.now - began + wait > _CONNECT_TIMEOUT:
                raise _error(errno.ETIMEDOUT)
            await asyncio.sleep(wait)
            wait *= 2
        server = self.servers.get(port)
        if server is None:
            raise _error(errno.ECONNREFUSED)
        ends = await self._secured(server, tls, server_name, latency)
        local = (machine.address, machine.next_port)
        machine.next_port += 1
        remote = (address, port)
        client = Transport(self, machine, local, remote, copy_context())
        accepted = Transport(self, server.machine, remote, local, server.context)
        client.join(accepted)
        accepted.join(client)
        if ends is not None:
            for transport, end in zip((client, accepted), ends, strict=True):
                transport._extra.update(tls_details(end))  # type: ignore[attr-defined]
        self.transports[client] = self.transports[accepted] = None
        self.trace("open", f"{machine.name} {server.machine.name}")
        protocol = client.protocol = factory()
        accepted.protocol = server.factory()
        protocol.connection_made(client)
        self.loop.call_soon(accepted.protocol.connection_made, accepted, context=accepted.context)
        return client, protocol

    async def _secured(
        self, server: NetworkServer, tls: ssl.SSLContext | None, server_name: str | None, latency: float
    ) -> tuple[ssl.SSLObject, ssl.SSLObject] | None:
        """Both ends of a handshake; None for a plain connection. Raises `OSError`."""
        if tls is None and server.tls is None:
            return None
        await asyncio.sleep(latency)
        if tls is None or server.tls is None:  # neither understands the other
            raise _error(errno.ECONNRESET)
        return shake_hands(tls, server.tls, server_name)

    @property
    def is_asked_in_vain(self) -> bool:
        """Whether something was sent over a half-open connection that its process has not given up."""
        return any(transport.is_asked_in_vain for transport in self.transports)

    def between(self, first: str, second: str) -> Iterator[Transport]:
        """The ends of connections between machines of two patterns."""
        for transport in list(self.transports):
            if are_between(transport.machine.name, transport.peer.machine.name, first, second):
                yield transport

    def of_process(self, process: LoopProcess | None) -> list[Transport]:
        """The ends that a process has."""
        return [transport for transport in self.transports if transport.process is process]

    # --- faults ---

    def latency(self, sender: Host, receiver: Host) -> float:
        """Seconds that bytes take now."""
        least, most = _LATENCY
        usual = least + (most - least) * self.random.random()
        return usual + self.paths.extra_ms(sender.name, receiver.name) / 1000

    def is_cut(self, sender: Host, receiver: Host) -> bool:
        """Whether bytes do not get from one machine to another."""
        return self.paths.is_cut(sender.name, receiver.name)

    def is_blocked(self, sender: Host, receiver: Host) -> bool:
        """Whether they are cut, or one of them is a node that is frozen."""
        return sender.is_frozen or receiver.is_frozen or self.is_cut(sender, receiver)

    def freeze(self, machine: Host) -> FaultEnd:
        """Freeze a node; the end of it."""
        machine.is_frozen = True

        def thaw() -> None:
            machine.is_frozen = False
            self.released()

        return thaw

    def released(self) -> None:
        """Send again what is not blocked any more."""
        for transport in list(self.stalled):
            if not self.is_blocked(transport.machine, transport.peer.machine):
                del self.stalled[transport]
                transport.release()

    def drop(self, first: str, second: str) -> None:
        """Break off connections."""
        for transport in self.between(first, second):
            transport.fail(errno.ECONNRESET)
            transport.peer.fail(errno.ECONNRESET)

    def silence(self, first: str, second: str, resent: float | None = None) -> None:
        """Let connections be half-open. resent: seconds for which systems send again what is lost."""
        seconds = _TCP_TIMEOUT if resent is None else resent
        for transport in self.between(first, second):
            transport.silence(seconds)
            transport.peer.silence(seconds)


def _error(number: int) -> OSError:
    return OSError(number, os.strerror(number))
