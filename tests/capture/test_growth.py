"""Twice the input is at most twice the work, for whatever input: of each reader, and the state machines.

Each input here is made to cost as much as it can: what is looked at again with each chunk, sizes that claim
more than they are, answers out of order, dumps of one line.
"""

from __future__ import annotations

import io
import random
import struct
from collections.abc import Callable, Iterable, Iterator

import pytest

from coordwire import Connection, Role, encode_request, encode_response, explain
from coordwire.capture import framing
from coordwire.capture.entries import Entry
from coordwire.capture.formats.hexdump import read_frames
from coordwire.capture.formats.pcap import read_packets
from coordwire.capture.input_format import sniff
from coordwire.capture.jsonlines import line
from coordwire.capture.reader import Capture, read_head
from coordwire.capture.rotation import rejoined
from coordwire.capture.tcp import reassembly
from coordwire.connection.dialect import Dialect
from coordwire.dialects import AlternativeDialect
from coordwire.dialects.connection import ConnectionDialect
from coordwire.errors import UnreadableRange
from coordwire.messages import (
    ApiVersionsRequest,
    DeleteRecordsRequest,
    HeartbeatRequest,
    HeartbeatResponse,
    find_message,
)
from coordwire.messages.delete_records import DeleteRecordsTopic
from tests.growth import assert_linear

from . import build
from .build import Pipe

SYN, ACK, FIN = build.SYN, build.ACK, build.FIN


def drawn(items: Iterable[object]) -> int:
    return sum(1 for _ in items)


def read(data: bytes, **options: object) -> int:
    return drawn(Capture(io.BytesIO(data), "test", **options).entries())  # type: ignore[arg-type]


def stream(data: bytes, step: int, *, back: bool = False) -> Iterator[bytes]:
    """The segments of a stream that begins in the middle of its connection."""
    for at in range(0, len(data), step):
        yield build.packet(data[at : at + step], back=back, seq=1 + at, ack=1)


def request(number: int, version: int = 4) -> bytes:
    message = HeartbeatRequest(group_id="g", generation_id=1, member_id="m")
    return encode_request(message, version=version, correlation_id=number, client_id="c")


def response(number: int) -> bytes:
    return encode_response(HeartbeatResponse(), version=4, correlation_id=number)


def claimed(size: int) -> bytes:
    """A header that may be a request's, of any size."""
    return struct.pack(">ihhih", size, 12, 4, 1, -1)


@pytest.fixture(autouse=True)
def constants(monkeypatch: pytest.MonkeyPatch) -> None:
    """Small ones, so that small inputs go beyond them."""
    monkeypatch.setattr(framing, "SPARE", 100)


# --- connections of unknown content


def tls(size: int) -> bytes:
    return build.pcap(stream(random.Random(1).randbytes(size), 100))


def claims_beyond_the_end(size: int) -> bytes:
    return build.pcap(stream(claimed(1 << 20) * (size // 14), 100))


def claims_of_half_the_stream(size: int) -> bytes:
    return build.pcap(stream(claimed(size // 2) * (size // 14), 100))


def byte_by_byte(size: int) -> bytes:
    return build.pcap(stream(random.Random(1).randbytes(size), 1))


def both_sides(size: int) -> bytes:
    data = random.Random(1).randbytes(size // 2)
    return build.pcap(
        p for pair in zip(stream(data, 50), stream(data, 50, back=True), strict=True) for p in pair
    )


def losses(size: int) -> bytes:
    """Every other segment is missing, and acknowledged."""
    parts = list(stream(random.Random(1).randbytes(size), 50))[::2]
    acks = [build.packet(back=True, seq=1, ack=1 + size)] * 5
    return build.pcap([*parts, *acks])


UNDECIDED = [tls, claims_beyond_the_end, claims_of_half_the_stream, byte_by_byte, both_sides, losses]


@pytest.mark.parametrize("make", UNDECIDED)
def test_undecided_connections(make: Callable[[int], bytes]) -> None:
    assert_linear(make, read, n=200 if make is byte_by_byte else 1_400)


def requests_that_may_be_zookeepers(size: int) -> bytes:
    """Heads of frames that either protocol may have, none of which is whole."""
    return build.pcap(stream(struct.pack(">iii", size, 12 << 16 | 4, 1) * (size // 12), 50))


def ended_frames_that_are_neither(size: int) -> bytes:
    return build.pcap(stream(struct.pack(">iiii", 12, 12, 1, -1) * (size // 16), 50))


@pytest.mark.parametrize("make", [*UNDECIDED, requests_that_may_be_zookeepers, ended_frames_that_are_neither])
def test_connections_of_an_undecided_dialect(make: Callable[[int], bytes]) -> None:
    """Each of which may be Kafka's or ZooKeeper's."""
    n = 200 if make is byte_by_byte else 1_400
    assert_linear(make, lambda data: read(data, alternative=AlternativeDialect()), n=n)


@pytest.mark.parametrize("make", [tls, claims_of_half_the_stream])
@pytest.mark.parametrize(
    "dialect", [Dialect.KAFKA_07, Dialect.DRAFT_2, Dialect.DRAFT_2_IN_08, Dialect.DRAFT_3]
)
def test_undecided_connections_of_other_dialects(make: Callable[[int], bytes], dialect: Dialect) -> None:
    assert_linear(make, lambda data: read(data, dialect=ConnectionDialect(dialect)), n=700)


def test_many_connections() -> None:
    def make(count: int) -> bytes:
        packets = []
        for number in range(count):
            source = "10.0.0.1", 1024 + number
            inner = build.tcp(request(1), seq=1, source=source)
            packets.append(build.ethernet(build.ipv4(inner, source)))
        return build.pcap(packets)

    assert_linear(make, read, n=100)


# --- frames, and the search for them


def test_the_search_for_an_answer() -> None:
    """Every 14th byte claims to begin the answer that is waited for, and is wrong at its end only."""

    def make(size: int) -> bytes:
        count = size // 28
        false = struct.pack(">iihi", 10 + 6 * count, 0x7F7F7F7F, 0, count)
        asked = encode_request(ApiVersionsRequest(), version=2, correlation_id=0x7F7F7F7F, client_id="c")
        return asked + b"\x7f\xff\xff\xff" + false * (size // len(false))

    assert_linear(make, lambda data: read(data, input="frames"), n=5_000)


def test_the_search_for_a_request() -> None:
    text = b"a" * 900

    def make(size: int) -> bytes:
        return b"\x7f\xff\xff\xff" + (struct.pack(">ihhih", 2000, 12, 4, 1, 900) + text) * (size // 914)

    assert_linear(make, lambda data: read(data, input="frames"), n=18_280)


@pytest.mark.parametrize("step", [1, 1000])
def test_a_frame_that_is_never_whole(step: int) -> None:
    def make(size: int) -> bytes:
        begun = request(1) + struct.pack(">i", 1 << 24) + request(2)[4:] + bytes(size)
        return build.pcap(stream(begun, step))

    assert_linear(make, read, n=300 if step == 1 else 20_000)


def one_sided(count: int) -> bytes:
    return b"".join(request(number) for number in range(count))


def one_id(count: int) -> bytes:
    return request(7) * count


def answered_in_order(count: int) -> bytes:
    return one_sided(count) + b"".join(map(response, range(count)))


def answered_backwards(count: int) -> bytes:
    return one_sided(count) + b"".join(map(response, reversed(range(count))))


def answered_twice(count: int) -> bytes:
    return one_id(count) + response(7) * 2 * count


@pytest.mark.parametrize("make", [one_sided, one_id, answered_in_order, answered_backwards, answered_twice])
def test_requests_that_wait(make: Callable[[int], bytes]) -> None:
    assert_linear(make, lambda data: read(data, input="frames"), n=200)


def test_requests_that_wait_across_captures() -> None:
    def entries(data: bytes) -> list[Entry]:
        return list(Capture(io.BytesIO(data), "test").entries())

    def make(count: int) -> list[Entry]:
        return entries(build.pcap(stream(one_sided(count), 500)))

    assert_linear(make, lambda found: drawn(rejoined(found)), n=200)


@pytest.mark.parametrize(
    ("dialect", "name", "fields"),
    [
        (Dialect.KAFKA_07, "Kafka07OffsetsRequest", {}),
        (Dialect.DRAFT_2, "Draft2PingRequest", {}),
        (Dialect.DRAFT_2_IN_08, "Draft2PingRequest", {}),
        (Dialect.DRAFT_3, "Draft3PingRequest", {"correlation_id": 1}),
    ],
)
def test_requests_of_other_dialects_that_wait(dialect: Dialect, name: str, fields: dict[str, object]) -> None:
    from coordwire.dialects.grammar import Grammar

    frame = Grammar(dialect).encode(find_message(name)(**fields))

    def make(count: int) -> bytes:
        return frame * count

    assert_linear(make, lambda data: read(data, input="frames", dialect=ConnectionDialect(dialect)), n=200)

    def fed(data: bytes) -> int:
        role = Role.CLIENT if name.startswith("Draft2") else Role.SERVER
        connection = Connection(role, dialect=ConnectionDialect(dialect))
        connection.receive_data(data)
        return drawn(connection.events())

    assert_linear(make, fed, n=200)


# --- Connection


@pytest.mark.parametrize("step", [1, 3, 4096])
def test_connection_fed_in_chunks(step: int) -> None:
    def feed(data: bytes) -> int:
        connection = Connection(Role.SERVER)
        count = 0
        for at in range(0, len(data), step):
            connection.receive_data(data[at : at + step])
            count += drawn(connection.events())
        return count

    size = 1_000 if step < 100 else 60_000
    assert_linear(lambda n: one_sided(n // 30), feed, n=size)
    assert_linear(lambda n: struct.pack(">i", 1 << 24) + bytes(n), feed, n=size)


# --- reassembly


def reordered(count: int) -> bytes:
    """All segments but the first, the last one first."""
    packets = [build.packet(b"12345678", seq=100 + 8 * n) for n in range(count)]
    return build.pcap([build.packet(seq=91, flags=SYN), *reversed(packets)])


def overlapping(count: int) -> bytes:
    """Pieces with gaps, then segments across all of them, again and again."""
    pieces = [build.packet(b"x", seq=100 + 2 * n) for n in range(count)]
    across = [build.packet(bytes(2 * count), seq=100 + n % 2) for n in range(20)]
    return build.pcap([build.packet(seq=91, flags=SYN), *pieces, *across])


def refilled(count: int) -> bytes:
    """One hole in front of many pieces that don't touch, filled from the front."""
    pieces = [build.packet(b"x", seq=101 + 2 * n) for n in range(count)]
    fillers = [build.packet(b"y", seq=100 + 2 * n) for n in range(count)]
    return build.pcap([build.packet(seq=99, flags=SYN), *pieces, *fillers])


def cut_and_overlapping(count: int) -> bytes:
    """As above, but all that the packets hold of their many bytes are the headers; the first piece is
    alone."""
    pieces = [build.packet(b"x", seq=100 + 2 * n) for n in (0, *range(2, count))]
    across = build.tcp(bytes(2 * count - 6), seq=105)
    whole = build.ethernet(build.ipv4(across, total=40 + 2 * count - 6))[:54]
    return build.pcap([build.packet(seq=91, flags=SYN), *pieces, *[whole] * count], wire=54 + 2 * count)


def pointers(_: object, owner: object, *__: object) -> int:
    """What an insertion moves: pointers, at most `SEGMENTS` of them, 8 bytes each and all at once."""
    return 1 + len(owner) // 100 if isinstance(owner, list) else 1


def reused_ports(count: int) -> bytes:
    return build.pcap(build.packet(seq=1 << 20 | n * 7919, flags=SYN) for n in range(count))


@pytest.mark.parametrize("make", [reordered, overlapping, cut_and_overlapping, refilled, reused_ports])
def test_segments_out_of_order(make: Callable[[int], bytes]) -> None:
    # The slack is for the logarithm of a bisection.
    assert_linear(make, read, n=150, slack=1.2, charges={"insert": pointers, "del": pointers})


@pytest.mark.parametrize("make", [reordered, refilled])
def test_more_segments_out_of_order_than_are_held(
    make: Callable[[int], bytes], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(reassembly, "SEGMENTS", 50)
    assert_linear(make, read, n=150)


# --- capture files


def bad_headers(size: int) -> bytes:
    """Records whose length goes to the end, and which no other follows."""
    record = struct.pack("<IIII", 1, 1, 1 << 20, 1 << 20)
    return build.pcap([]) + b"\xff" * 16 + record * (size // 16)


def bad_blocks(size: int) -> bytes:
    block = struct.pack("<III", 6, 1 << 20, 0)
    return build.section() + build.interface() + b"\xff" * 12 + block * (size // 12)


def options(size: int) -> bytes:
    return build.section() + build.interface(options=build.option(1, b"") * (size // 4))


def interfaces(size: int) -> bytes:
    return build.section() + build.interface() * (size // 20)


@pytest.mark.parametrize("make", [bad_headers, bad_blocks, options, interfaces])
@pytest.mark.parametrize("step", [None, 1000])
def test_capture_files(make: Callable[[int], bytes], step: int | None) -> None:
    def packets(data: bytes) -> int:
        return drawn(read_packets(io.BytesIO(data) if step is None else Pipe(data, step)))

    assert_linear(make, packets, n=4_000, slack=1.6)  # the window grows by half


def test_headers_inside_a_packet() -> None:
    def make(size: int) -> bytes:
        tags = build.ethernet(b"", tags=size // 4)
        extended = build.ethernet(
            build.ipv6(bytes(size - size % 8), ("::1", 1), ("::2", 2), following=0), build.IP6
        )
        return build.pcap([tags, extended])

    assert_linear(make, read, n=8_000)


def test_fragments() -> None:
    def make(count: int) -> bytes:
        inner = build.tcp(b"x" * 8)
        return build.pcap([build.ethernet(build.ipv4(inner, fragment=0x2000 | n)) for n in range(count)])

    assert_linear(make, read, n=100)


# --- text


def gaps(size: int) -> bytes:
    return b"0000: " + b"00  " * size + b"\nffffff: 00\n"


def gaps_of_hexdump(size: int) -> bytes:
    return b"00000000  " + b"00 00  " * size + b"\n" + b"%08x\n" % (2 * size + 1)


def long_first_line(size: int) -> bytes:
    return b" " * size + b"0000: 00\n" + b"0001: 00\n" * (size // 9)


def long_line_of_od(size: int) -> bytes:
    return b"000000" + b" 00" * size + b"\n%06x 00\n" % size + b"*\n" * size


def stars(size: int) -> bytes:
    return b"0000: 00\n*\n" * size


def wrapped(size: int) -> bytes:
    return (b"01" * 30 + b"\n") * (size // 61)


def dump(size: int) -> bytes:
    return b"".join(b"%08x: 00 00\n" % (2 * n) for n in range(size // 16))


def odd(size: int) -> bytes:
    return b"00 0x, " * size + b"\n"


def spaces(size: int) -> bytes:
    return (b" " * 100 + b"00" + b" " * 100 + b"x\n") * (size // 200)


TEXTS = [gaps, gaps_of_hexdump, long_first_line, long_line_of_od, stars, wrapped, dump, odd, spaces]


@pytest.mark.parametrize("make", TEXTS)
def test_hex_text(make: Callable[[int], bytes]) -> None:
    assert_linear(make, lambda data: drawn(read_frames(data.splitlines(keepends=True))), n=1_000)
    assert_linear(make, lambda data: read(data, input="hex"), n=1_000)


@pytest.mark.parametrize("make", [*TEXTS, one_sided, tls])
def test_telling_formats_apart(make: Callable[[int], bytes]) -> None:
    assert_linear(make, sniff, n=1_000)


def test_a_head_that_comes_in_small_parts() -> None:
    def head(data: bytes) -> int:
        return len(read_head(Pipe(data, 1)))  # type: ignore[arg-type]

    assert_linear(lambda n: b"00 " * (n // 3), head, n=3_000)


# --- what is made of it


def wide(count: int) -> bytes:
    topics = [DeleteRecordsTopic(name="", partitions=[]) for _ in range(count)]
    return encode_request(DeleteRecordsRequest(topics=topics), version=2, correlation_id=1, client_id="c")


def cut(count: int) -> bytes:
    """Refused at its last byte."""
    data = wide(count)
    return struct.pack(">i", len(data) - 5) + data[4:-1]


@pytest.mark.parametrize("make", [wide, cut])
def test_json_lines(make: Callable[[int], bytes]) -> None:
    def lines(data: bytes) -> int:
        entries = Capture(io.BytesIO(data), "test", input="frames").entries()
        return sum(len(line(entry, 6, show_secrets=False)) for entry in entries)

    assert_linear(make, lines, n=300)


@pytest.mark.parametrize("make", [wide, cut])
def test_explain(make: Callable[[int], bytes]) -> None:
    assert_linear(make, lambda data: len(explain(data)), n=300)


def test_unreadable_is_what_it_is() -> None:
    """The inputs above are what they are meant to be."""
    assert any(
        isinstance(unreadable, UnreadableRange)
        for unreadable in read_frames(gaps(10).splitlines(keepends=True))
    )
    assert any(
        isinstance(unreadable, UnreadableRange) for unreadable in read_packets(io.BytesIO(bad_headers(160)))
    )
    assert read(tls(1000)) == 0
    assert read(build.pcap(stream(one_sided(5), 50))) == 5
