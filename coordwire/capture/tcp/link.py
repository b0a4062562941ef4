"""From packets to TCP segments: link layer, IP, TCP.

Strategy: one fused `Struct` reads what is by far the most common, IPv4 without options and then TCP;
everything else takes the general way. Link types: Ethernet with any number of VLAN tags, raw IP, BSD
loopback in either byte order, Linux cooked v1 and v2. Rules: lengths come from the IP header, so that
trailing padding is not data; where it says 0 (segmentation left to the network card) from the packet's
length on the wire. Checksums are not looked at: captures on the sender have them unfilled. Fragments are
not put together: a fragment of TCP is an `UnreadableRange`, and its bytes are missing from their stream.
Other protocols are passed over and counted.

Written here and not left to dpkt: it makes four objects a packet, swallows what doesn't fit a header
without saying where, and on its own takes all the time that the whole chain may.
"""

from __future__ import annotations

import struct
from collections.abc import Iterable, Iterator
from functools import lru_cache
from ipaddress import ip_address
from typing import NamedTuple, overload

from coordwire.capture.flows import CaptureCounts, Chunk, NetworkAddress
from coordwire.capture.formats.source import Packet
from coordwire.errors import UnreadableRange, counted

FIN, SYN, RST, ACK = 1, 2, 4, 16
ETHERNET = 1
RAW = frozenset((12, 14, 101, 228, 229))
LOOPBACK = frozenset((0, 108))
COOKED, COOKED2 = 113, 276
SUPPORTED = RAW | LOOPBACK | {ETHERNET, COOKED, COOKED2}
IPV4, IPV6 = 0x0800, 0x86DD
VLAN = frozenset((0x8100, 0x88A8, 0x9100, 0x9200))
FAMILIES = {2: IPV4, 10: IPV6, 24: IPV6, 28: IPV6, 30: IPV6}  # of BSD, Linux, macOS and Windows
TCP, UDP = 6, 17
IP_PROTOCOLS = {1: "ICMP", 2: "IGMP", UDP: "UDP", 47: "GRE", 50: "ESP", 58: "ICMPv6", 132: "SCTP"}
ETHER_TYPES = {0x0806: "ARP", 0x88CC: "LLDP", 0x8847: "MPLS", 0x8863: "PPPoE", 0x8864: "PPPoE"}
EXTENSIONS = frozenset((0, 43, 60, 135, 139, 140))  # of IPv6, all with a length of eights
FRAGMENT, AUTHENTICATION = 44, 51

# first byte, total length, fragment, protocol; addresses and ports; sequence, acknowledged, flags
_new = tuple.__new__  # a call less than that of the class
_COMMON = struct.Struct("!BxHxxHxBxx12sIIH").unpack_from
_TCP = struct.Struct("!4sIIH").unpack_from
_SHORT = struct.Struct("!H").unpack_from


class TcpSegment(NamedTuple):
    """A TCP segment.

    key: addresses and ports as in the packet; length: of the payload as sent, of which a snap length may have
    cut some; position: of the payload in the file; packet: the number of its packet in the file.
    """

    time_ns: int
    position: int
    key: bytes
    sequence: int
    acknowledged: int
    flags: int
    payload: bytes
    length: int
    packet: int = 0


class _Bad(Exception):
    """Why a packet can't be read; never leaves this module."""


@overload
def read_segments(
    packets: Iterable[Packet | UnreadableRange], counts: CaptureCounts | None = None, *, ends: bool = True
) -> Iterator[TcpSegment | UnreadableRange]: ...
@overload
def read_segments(
    packets: Iterable[Packet | UnreadableRange | list[Chunk]],
    counts: CaptureCounts | None = None,
    *,
    ends: bool = True,
) -> Iterator[TcpSegment | UnreadableRange | list[Chunk]]: ...
def read_segments(
    packets: Iterable[Packet | UnreadableRange | list[Chunk]],
    counts: CaptureCounts | None = None,
    *,
    ends: bool = True,
) -> Iterator[TcpSegment | UnreadableRange | list[Chunk]]:
    """The TCP segments of the packets, in order, and what couldn't be read. Chunks that were made of packets
    already are passed on. ends: whether the input ends with the packets."""
    counts = CaptureCounts() if counts is None else counts
    foreign = counts.foreign  # a run of packets of one unknown link type, reported as one
    for packet in packets:
        if type(packet) is list or type(packet) is UnreadableRange:
            if foreign is not None:
                yield foreign
                foreign = None
            yield packet
            continue
        assert isinstance(packet, Packet)
        time_ns, link, data, wire, position, number = packet
        if foreign is not None and link in SUPPORTED:
            yield foreign
            foreign = None
        try:
            if link == ETHERNET and data[12:14] == b"\x08\x00":
                at = 14
            elif link in SUPPORTED:
                at = _network(link, data)
                if at < 0:
                    _pass_over(counts, _link_protocol(link, data))
                    continue
            else:
                reason = f"packets of unknown link type {link}"
                if foreign is None or foreign.reason != reason:
                    if foreign is not None:
                        yield foreign
                    foreign = UnreadableRange(
                        position, len(data), reason, first_packet=number or None, packet=number or None
                    )
                else:
                    length = position + len(data) - foreign.position
                    foreign = foreign._replace(length=length, packet=number or None)
                continue
            if len(data) >= at + 40:
                first, total, fragment, protocol, key, sequence, acknowledged, flags = _COMMON(data, at)
                common = first == 0x45 and not fragment & 0x3FFF
            else:
                common = False
            if common:
                if protocol != TCP:
                    _pass_over(counts, _protocol(protocol, data, at + 20))
                    continue
                start = at + 20 + (flags >> 12) * 4
                end = at + total if total else wire
                length = end - start
                if flags < 0x5000 or length < 0:
                    raise _Bad(f"a TCP header of {(flags >> 12) * 4} bytes in an IPv4 packet of {total}")
                values = time_ns, position + start, key, sequence, acknowledged, flags & 0x3F
                segment = _new(TcpSegment, (*values, data[start:end], length, number))
            else:
                general = _general(time_ns, position, data, at, wire, number)
                if general is None:
                    six = data[at] >> 4 == 6
                    start = at + (40 if six else (data[at] & 15) * 4)
                    _pass_over(counts, _protocol(data[at + (6 if six else 9)], data, start))
                    continue
                segment = general
        except _Bad as bad:
            place = number or None
            yield UnreadableRange(position, len(data), str(bad), first_packet=place, packet=place)
            continue
        counts.segments += 1
        yield segment
    if ends and foreign is not None:
        yield foreign
        foreign = None
    counts.foreign = foreign


def _pass_over(counts: CaptureCounts, protocol: str) -> None:
    counts.passed_over += 1
    counts.other_protocols[protocol] += 1


def _link_protocol(link: int, data: bytes) -> str:
    """What a packet without IP holds."""
    if link == ETHERNET:
        kind = _SHORT(data, 12)[0]
    elif link in (COOKED, COOKED2):
        kind = _SHORT(data, 14 if link == COOKED else 0)[0]
    else:
        return "other packets"
    return ETHER_TYPES.get(kind, f"Ethernet type 0x{kind:04x}")


def _protocol(protocol: int, data: bytes, start: int) -> str:
    """What an IP packet holds; its bytes begin at `start`."""
    if protocol == UDP and len(data) >= start + 4:
        return f"UDP port {min(_SHORT(data, start)[0], _SHORT(data, start + 2)[0])}"
    return IP_PROTOCOLS.get(protocol, f"IP protocol {protocol}")


def _need(data: bytes, end: int, part: str) -> None:
    if end > len(data):
        raise _Bad(f"the packet was cut to {counted(len(data), 'byte')}, within its {part}")


def find_network(link: int, data: bytes) -> int:
    """Where the IP header of a packet begins; -1 for another protocol, or a packet too short for its link."""
    try:
        return _network(link, data)
    except _Bad:
        return -1


def _network(link: int, data: bytes) -> int:
    """Where the IP header begins, or -1 for another protocol."""
    if link in RAW:
        return 0
    if link in LOOPBACK:
        _need(data, 4, "link header")
        family = int.from_bytes(data[:4], "little")
        if family > 0xFFFF:
            family = int.from_bytes(data[:4], "big")
        return 4 if family in FAMILIES else -1
    if link == COOKED2:
        _need(data, 20, "link header")
        kind, at = _SHORT(data, 0)[0], 20
    else:
        at = 14 if link == ETHERNET else 16
        _need(data, at, "link header")
        kind = _SHORT(data, at - 2)[0]
    while kind in VLAN:
        _need(data, at + 4, "VLAN tag")
        kind = _SHORT(data, at + 2)[0]
        at += 4
    return at if kind in (IPV4, IPV6) else -1


def _general(time_ns: int, position: int, data: bytes, at: int, wire: int, number: int) -> TcpSegment | None:
    """The TCP segment in any IP packet, or None if it holds another protocol."""
    _need(data, at + 1, "IP header")
    version = data[at] >> 4
    if version == 4:
        _need(data, at + 20, "IPv4 header")
        header = (data[at] & 15) * 4
        total = _SHORT(data, at + 2)[0]
        if header < 20 or (total and total < header):
            raise _Bad(f"an IPv4 header of {header} bytes in a packet of {total}")
        fragmented = bool(_SHORT(data, at + 6)[0] & 0x3FFF)
        protocol, addresses = data[at + 9], data[at + 12 : at + 20]
        start = at + header
    elif version == 6:
        _need(data, at + 40, "IPv6 header")
        total = _SHORT(data, at + 4)[0]
        total += 40 if total else 0  # 0: a jumbogram, or segmentation left to the network card
        protocol, addresses = data[at + 6], data[at + 8 : at + 40]
        fragmented, start = False, at + 40
        while not fragmented and protocol != TCP:
            if protocol in EXTENSIONS:
                _need(data, start + 8, "IPv6 extension header")
                protocol, size = data[start], data[start + 1] * 8 + 8
            elif protocol == FRAGMENT:
                _need(data, start + 8, "IPv6 fragment header")
                fragmented = bool(_SHORT(data, start + 2)[0] & 0xFFF9)
                protocol, size = data[start], 8
            elif protocol == AUTHENTICATION:
                _need(data, start + 8, "IPv6 authentication header")
                protocol, size = data[start], data[start + 1] * 4 + 8
            else:
                break
            start += size
    else:
        raise _Bad(f"IP version {version}")
    if protocol != TCP:
        return None
    if fragmented:
        raise _Bad(f"a fragment of an IPv{version} packet; fragments are not reassembled")
    end = at + total if total else wire
    _need(data, start + 20, "TCP header")
    ports, sequence, acknowledged, flags = _TCP(data, start)
    payload = start + (flags >> 12) * 4
    if flags < 0x5000 or payload > end:
        raise _Bad(f"a TCP header of {(flags >> 12) * 4} bytes in an IPv{version} packet of {end - at}")
    return TcpSegment(
        time_ns,
        position + payload,
        addresses + ports,
        sequence,
        acknowledged,
        flags & 0x3F,
        data[payload:end],
        end - payload,
        number,
    )


def reverse_key(key: bytes) -> bytes:
    """The key of the other direction."""
    half = (len(key) - 4) // 2
    return key[half : 2 * half] + key[:half] + key[-2:] + key[-4:-2]


def endpoints(key: bytes) -> tuple[NetworkAddress, NetworkAddress]:
    """Source and destination in words."""
    half = (len(key) - 4) // 2
    return (
        NetworkAddress(_host(key[:half]), int.from_bytes(key[-4:-2], "big")),
        NetworkAddress(_host(key[half : 2 * half]), int.from_bytes(key[-2:], "big")),
    )


@lru_cache(4096)
def _host(address: bytes) -> str:
    return str(ip_address(address))
