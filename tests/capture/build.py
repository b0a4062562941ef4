"""Packets and captures for the tests, written from the formats' descriptions, by nothing under test."""

from __future__ import annotations

import struct
from collections.abc import Iterable
from ipaddress import ip_address

CLIENT, BROKER = ("10.0.0.1", 53412), ("10.0.0.2", 9092)
FIN, SYN, RST, PSH, ACK = 1, 2, 4, 8, 16
IP4, IP6 = b"\x08\x00", b"\x86\xdd"
Address = tuple[str, int]


def tcp(
    payload: bytes = b"",
    *,
    seq: int = 0,
    ack: int = 0,
    flags: int = ACK,
    source: Address = CLIENT,
    destination: Address = BROKER,
    options: bytes = b"",
) -> bytes:
    head = (20 + len(options)) // 4 << 12 | flags
    numbers = (source[1], destination[1], seq & 0xFFFFFFFF, ack & 0xFFFFFFFF, head, 512, 0, 0)
    return struct.pack(">HHIIHHHH", *numbers) + options + payload


def ipv4(
    inner: bytes,
    source: Address = CLIENT,
    destination: Address = BROKER,
    *,
    options: bytes = b"",
    total: int | None = None,
    fragment: int = 0,
    protocol: int = 6,
) -> bytes:
    header = 20 + len(options)
    total = header + len(inner) if total is None else total
    ends = ip_address(source[0]).packed + ip_address(destination[0]).packed
    start = struct.pack(">BBHHHBBH", 0x40 | header // 4, 0, total, 1, fragment, 64, protocol, 0)
    return start + ends + options + inner


def ipv6(inner: bytes, source: Address, destination: Address, *, following: int = 6) -> bytes:
    ends = ip_address(source[0]).packed + ip_address(destination[0]).packed
    return struct.pack(">IHBB", 6 << 28, len(inner), following, 64) + ends + inner


def ethernet(inner: bytes, kind: bytes = IP4, tags: int = 0) -> bytes:
    return bytes(12) + b"\x81\x00\x00\x07" * tags + kind + inner


def packet(
    payload: bytes = b"", *, back: bool = False, seq: int = 0, ack: int = 0, flags: int = ACK
) -> bytes:
    """Ethernet, IPv4, TCP: client to broker, or back."""
    source, destination = (BROKER, CLIENT) if back else (CLIENT, BROKER)
    segment = tcp(payload, seq=seq, ack=ack, flags=flags, source=source, destination=destination)
    return ethernet(ipv4(segment, source, destination))


def pcap(
    packets: Iterable[bytes | tuple[int, bytes]],
    *,
    order: str = "<",
    nano: bool = False,
    link: int = 1,
    snap: int = 0,
    wire: int | None = None,
) -> bytes:
    """time: 1 µs (or ns) apart, from second 1; or as given, in nanoseconds."""
    unit = 1 if nano else 1000
    parts = [struct.pack(f"{order}IHHIIII", 0xA1B23C4D if nano else 0xA1B2C3D4, 2, 4, 0, 0, snap, link)]
    for index, item in enumerate(packets):
        time_ns, data = item if isinstance(item, tuple) else (10**9 + index * unit, item)
        cut = data[: snap or None]
        seconds, remaining = divmod(time_ns, 10**9)
        parts.append(
            struct.pack(f"{order}IIII", seconds, remaining // unit, len(cut), wire or len(data)) + cut
        )
    return b"".join(parts)


def pad(data: bytes) -> bytes:
    return data + bytes(-len(data) % 4)


def block(kind: int, body: bytes, order: str = "<") -> bytes:
    length = struct.pack(f"{order}I", len(pad(body)) + 12)
    return struct.pack(f"{order}I", kind) + length + pad(body) + length


def option(code: int, value: bytes, order: str = "<") -> bytes:
    return struct.pack(f"{order}HH", code, len(value)) + pad(value)


def section(order: str = "<") -> bytes:
    return block(0x0A0D0D0A, struct.pack(f"{order}IHHq", 0x1A2B3C4D, 1, 0, -1), order)


def interface(link: int = 1, *, snap: int = 0, options: bytes = b"", order: str = "<") -> bytes:
    return block(1, struct.pack(f"{order}HHI", link, 0, snap) + options, order)


def enhanced(
    data: bytes, clock: int = 0, number: int = 0, *, order: str = "<", options: bytes = b""
) -> bytes:
    head = struct.pack(f"{order}IIIII", number, clock >> 32, clock & 0xFFFFFFFF, len(data), len(data))
    return block(6, head + pad(data) + options, order)


def pcapng(packets: Iterable[bytes], order: str = "<") -> bytes:
    blocks = [enhanced(data, 10**6 + index, order=order) for index, data in enumerate(packets)]
    return section(order) + interface(order=order) + b"".join(blocks)


class Pipe:
    """A stream that can't seek and gives what it likes."""

    def __init__(self, data: bytes, step: int = 7) -> None:
        self._data, self._at, self._step = data, 0, step

    def read(self, size: int, /) -> bytes:
        part = self._data[self._at : self._at + min(size, self._step)]
        self._at += len(part)
        return part
