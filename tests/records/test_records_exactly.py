"""The records of a v2 batch: Python's fast reading and the exact one, at each bound of their fields, and
every refusal of the exact one in full (reason, position, path)."""

from __future__ import annotations

import pytest

from coordwire.codec.primitives import Refused
from coordwire.errors import CorruptBatch
from coordwire.records.record import Record, read_records
from coordwire.records.strict import Origin, StrictReader, wrap64

MAX, MIN = (1 << 63) - 1, -(1 << 63)
BASE_OFFSET, BASE_TIMESTAMP = 1 << 40, 1_700_000_000_000


@pytest.fixture(scope="module", autouse=True)
def half() -> str:
    """Both readings are Python's, whichever half is at work."""
    return "python"


def raw(number: int, width: int = 0) -> bytes:
    """An unsigned varint, of `width` bytes at least."""
    out = bytearray()
    while number > 127 or len(out) < width - 1:
        out.append(number & 127 | 128)
        number >>= 7
    return bytes([*out, number])


def varint(number: int, width: int = 0) -> bytes:
    """A zigzag varint, of `width` bytes at least."""
    return raw(number << 1 if number >= 0 else (-number << 1) - 1, width)


def field(data: bytes | None, width: int = 0) -> bytes:
    return varint(-1, width) if data is None else varint(len(data), width) + data


def record(*parts: bytes, width: int = 0) -> bytes:
    """Attributes that mean nothing, and these parts, after their size."""
    body = b"\xa5" + b"".join(parts)
    return varint(len(body), width) + body


def whole(
    *,
    timestamp: bytes = b"\0",
    offset: bytes = b"\0",
    key: bytes = b"\1",
    value: bytes = b"\1",
    headers: bytes = b"\0",
    width: int = 0,
) -> bytes:
    return record(timestamp, offset, key, value, headers, width=width)


def exact(
    data: bytes, count: int = 1, *, base_offset: int = BASE_OFFSET, base: int = BASE_TIMESTAMP
) -> list[Record]:
    return list(StrictReader(data, count, Origin(0, False)).read(0, 0, base_offset, base))


def fast(data: bytes, count: int = 1) -> list[Record]:
    """What the fast reading makes of it, after two bytes of something else and before one."""
    records, end = read_records(b"\xff\xff" + data, 2, count, BASE_OFFSET, BASE_TIMESTAMP)
    assert end == 2 + len(data)
    assert read_records(data + b"\xff", 0, count, BASE_OFFSET, BASE_TIMESTAMP) == (records, len(data))
    return records


def both(data: bytes, count: int = 1) -> list[Record]:
    records = fast(data, count)
    assert records == exact(data, count)
    return records


def doubted(data: bytes, count: int = 1) -> None:
    with pytest.raises(Refused):
        read_records(data, 0, count, BASE_OFFSET, BASE_TIMESTAMP)


def refused(data: bytes, count: int = 1) -> tuple[str, int, str]:
    """Doubted by the fast reading, refused by the exact one."""
    with pytest.raises((Refused, IndexError)):
        read_records(data, 0, count, BASE_OFFSET, BASE_TIMESTAMP)
    with pytest.raises(CorruptBatch) as error_info:
        exact(data, count)
    return error_info.value.reason, error_info.value.position, error_info.value.path


# --- what is read

NUMBERS = [0, 1, 63, 64, 100, 8191, 8192, 300_000, 1 << 20, 1 << 27, 0x1234_5678, (1 << 31) - 1]
LARGE = [1 << 34, 1 << 41, 1 << 48, 0x3F_1234_5678_9ABC]
SIZES = [0, 1, 63, 64, 100, 8191, 8192, (1 << 20) + 5]
WIDTHS = [1, 2, 5]


@pytest.mark.parametrize("width", [1, 2, 3, 5, 8])
def test_timestamps(width: int) -> None:
    for number in [*NUMBERS, *LARGE]:
        for delta in (number, -number - 1):
            (result,) = both(whole(timestamp=varint(delta, width)))
            assert result == Record(BASE_OFFSET, BASE_TIMESTAMP + delta)


@pytest.mark.parametrize("width", WIDTHS)
def test_offsets(width: int) -> None:
    for number in NUMBERS:
        for delta in (number, -number - 1):
            (result,) = both(whole(offset=varint(delta, width)))
            assert result == Record(BASE_OFFSET + delta, BASE_TIMESTAMP)


@pytest.mark.parametrize("width", WIDTHS)
@pytest.mark.parametrize("size", SIZES)
def test_keys_and_values(size: int, width: int) -> None:
    data = bytes(at % 251 for at in range(size))
    wire = field(data, width)
    (result,) = both(whole(key=wire))
    assert (result.key, result.value, result.headers) == (data, None, ())
    (result,) = both(whole(value=wire, width=width))
    assert (result.key, result.value, result.headers) == (None, data, ())
    first, second = both(whole(key=wire, value=field(b"v")) + whole(key=field(b"k"), value=wire), 2)
    assert (first.key, first.value, second.key, second.value) == (data, b"v", b"k", data)


@pytest.mark.parametrize("width", WIDTHS)
@pytest.mark.parametrize("size", SIZES)
def test_header_keys_and_values(size: int, width: int) -> None:
    data = b"a" * size
    for key, value in ((data, b"v"), (b"k", data), (data, data), (data, None), (data, b"")):
        pair = field(key, width) + (b"\1" if value is None else field(value, width))
        others = field(b"z") + field(b"y") + field(b"z") + field(b"x")
        (result,) = both(whole(headers=varint(3) + pair + others))
        assert result.headers == ((key.decode(), value), ("z", b"y"), ("z", b"x"))


@pytest.mark.parametrize("width", WIDTHS)
@pytest.mark.parametrize("count", [0, 1, 31, 32, 63, 64, 100, 8128, 8192])
def test_header_counts(count: int, width: int) -> None:
    for pair, header in ((b"\0\1", ("", None)), (b"\0\0", ("", b"")), (b"\2k\2v", ("k", b"v"))):
        if width == 1 or count:
            (result,) = both(whole(headers=varint(count, width) + pair * count))
            assert result.headers == (header,) * count


def test_a_header_key_that_is_not_utf_8_is_kept() -> None:
    (result,) = both(whole(headers=varint(1) + field(b"\xff\xc3") + field(b"v")))
    ((key, _),) = result.headers
    assert key.encode("utf-8", "surrogateescape") == b"\xff\xc3"


def test_equal_header_keys_are_one_object() -> None:
    headers = varint(1) + field(b"trace-id") + field(b"v")
    first, second = fast(whole(headers=headers) * 2, 2)
    assert first.headers[0][0] is second.headers[0][0]


def test_many_records_and_none() -> None:
    wire = b"".join(whole(offset=varint(at), value=field(b"%d" % at)) for at in range(200))
    assert [(record.offset, record.value) for record in both(wire, 200)] == [
        (BASE_OFFSET + at, b"%d" % at) for at in range(200)
    ]
    assert both(b"", 0) == []


def test_numbers_wrap_as_those_of_java_do() -> None:
    assert [wrap64(number) for number in (MAX, MAX + 1, MIN, MIN - 1, 0, -1)] == [MAX, MIN, MIN, MAX, 0, -1]
    wire = whole(timestamp=varint(1), offset=varint(1))
    assert exact(wire, base_offset=MAX, base=MAX) == [Record(MIN, MIN)]
    largest = whole(timestamp=varint(MAX))
    assert exact(largest, base=0)[0].timestamp == MAX
    assert exact(whole(timestamp=varint(MIN)), base=0)[0].timestamp == MIN
    assert exact(whole(timestamp=varint(3, 10)), base=0)[0].timestamp == 3
    doubted(largest)
    doubted(whole(timestamp=varint(3, 9)))


def test_the_exact_reading_begins_where_it_is_asked_to() -> None:
    wire = whole(value=field(b"a")) + whole(value=field(b"b"))
    reader = StrictReader(b"--" + wire, 5, Origin(0, False))
    result = reader.read(2 + len(wire) // 2, 4, 0, 0)
    assert [one.value for one in result] == [b"b"]


# --- what is refused


def test_a_promise_of_records() -> None:
    def count_refusal(data: bytes, count: int) -> tuple[str, int, str] | None:
        error = StrictReader(data, count, Origin(3, False)).count_refusal()
        return None if error is None else (error.reason, error.position, error.path)

    assert count_refusal(b"", 0) is None
    assert count_refusal(b"", -1) == ("a batch can't have -1 records", 3, "records")
    assert count_refusal(bytes(14), 2) is None
    assert count_refusal(bytes(13), 2) == ("2 records claimed, 13 bytes left", 3, "records")


def test_a_place_in_compressed_records_is_given_in_the_reason() -> None:
    error = Origin(70, True).refusal("no", 5, "records[1]")
    packed = ("no (5 bytes into the decompressed records)", 70, "records[1]")
    assert (error.reason, error.position, error.path) == packed
    error = Origin(70, False).refusal("no", 5, "records[1]")
    assert (error.reason, error.position, error.path) == ("no", 75, "records[1]")


FIRST = whole()
AT = len(FIRST)


@pytest.mark.parametrize(
    ("second", "reason", "at", "field"),
    [
        (b"", "the bytes end before this one of 2 records", 0, ""),
        (b"\x80", "the bytes end inside a varint", 0, ""),
        (varint(-1), "a record of -1 bytes, 0 left", 0, ""),
        (varint(7) + bytes(6), "a record of 7 bytes, 6 left", 0, ""),
        (varint(0), "a record without its attributes", 0, ""),
        (varint(0) + b"\0", "a record without its attributes", 0, ""),
        (record(), "the bytes end inside a varint", 2, ".timestamp_delta"),
        (record(b"\x80" * 10), "a varint of 64 bits is too long", 2, ".timestamp_delta"),
        (
            record(raw(1 << 64), b"\0\1\1\0"),
            "a varint overflows 64 bits (Java drops the high ones)",
            2,
            ".timestamp_delta",
        ),
        (record(b"\0"), "the bytes end inside a varint", 3, ".offset_delta"),
        (record(b"\0" + b"\x80" * 5 + b"\0"), "a varint of 32 bits is too long", 3, ".offset_delta"),
        (
            record(b"\0", raw(1 << 32), b"\1\1\0"),
            "a varint overflows 32 bits (Java drops the high ones)",
            3,
            ".offset_delta",
        ),
        (record(b"\0\0"), "the bytes end inside a varint", 4, ".key"),
        (whole(key=varint(-2)), "a length can't be -2", 4, ".key"),
        (whole(key=varint(3)), "a field of 3 bytes, 2 left in the record", 4, ".key"),
        (record(b"\0\0\1"), "the bytes end inside a varint", 5, ".value"),
        (whole(value=varint(-2)), "a length can't be -2", 5, ".value"),
        (whole(value=varint(2)), "a field of 2 bytes, 1 left in the record", 5, ".value"),
        (record(b"\0\0\1\1"), "the bytes end inside a varint", 6, ".headers"),
        (whole(headers=varint(-1)), "a record can't have -1 headers", 6, ".headers"),
        (whole(headers=varint(1)), "1 header, 0 bytes left", 6, ".headers"),
        (whole(headers=varint(2) + b"\0\0\0"), "2 headers, 3 bytes left", 6, ".headers"),
        (whole(headers=varint(1) + b"\1\1"), "a header's key can't be null", 7, ".headers[0].key"),
        (whole(headers=varint(1) + b"\3\0"), "a length can't be -2", 7, ".headers[0].key"),
        (
            whole(headers=varint(2) + b"\0\1\4z"),
            "a field of 2 bytes, 1 left in the record",
            9,
            ".headers[1].key",
        ),
        (whole(headers=varint(1) + b"\0\3"), "a length can't be -2", 8, ".headers[0].value"),
        (whole(headers=varint(1) + b"\2z"), "the bytes end inside a varint", 9, ".headers[0].value"),
        (whole(headers=b"\0zz"), "2 bytes after the record's last field", 7, ""),
    ],
)
def test_refusals(second: bytes, reason: str, at: int, field: str) -> None:
    assert refused(FIRST + second, 2) == (reason, AT + at, f"records[1]{field}")


def test_nothing_follows_the_last_record() -> None:
    with pytest.raises(CorruptBatch) as error_info:
        exact(FIRST + b"zz")
    error = error_info.value
    expected = ("2 bytes after the last of 1 record", AT, "records")
    assert (error.reason, error.position, error.path) == expected


@pytest.mark.parametrize("size", [-1, -2, -65, -70, -9000])
@pytest.mark.parametrize("width", WIDTHS)
def test_a_negative_length_is_doubted(size: int, width: int) -> None:
    wire = varint(size, width)
    room = bytes(20_000)
    doubted(wire + room)
    if size < -1 or width > 1:
        doubted(whole(key=wire + room))
        doubted(whole(value=wire + room))
        doubted(whole(headers=varint(1) + b"\0" + wire + room))
    doubted(whole(headers=varint(1) + wire + room))
    doubted(whole(headers=wire + room))


@pytest.mark.parametrize("wire", [raw(1 << 32), raw(1 << 34), raw(0, 6), raw(2, 6)])
def test_a_varint_of_32_bits_that_is_too_long_is_doubted(wire: bytes) -> None:
    room = bytes(40)
    doubted(wire + room)
    for data in (
        whole(offset=wire),
        whole(key=wire),
        whole(value=wire),
        whole(headers=wire),
        whole(headers=varint(1) + wire + room),
        whole(headers=varint(1) + b"\0" + wire + room),
    ):
        doubted(data + room)


def test_a_count_of_headers_is_within_the_record() -> None:
    doubted(whole(headers=varint(1)))
    doubted(whole(headers=varint(1) + b"\0"))
    doubted(whole(headers=varint(70) + bytes(139)))
    doubted(whole(headers=varint(1 << 20)))


def test_a_record_ends_where_it_says_and_within_the_bytes() -> None:
    short = whole(value=field(b"abc"))
    doubted(varint(len(short)) + short[1:] + b"\0")
    doubted(varint(len(short) - 2) + short[1:] + b"\0")
    ends = record(b"\0\0\1\1" + varint(1) + b"\0" + varint(5), b"zzzzz")
    assert fast(ends)[0].headers == (("", b"zzzzz"),)
    doubted(ends[:-1])


@pytest.mark.parametrize("size", [3, 5, 7, 9, 13, 17, 401, 20_001, 3_000_001])
def test_an_odd_length_is_not_the_even_one_below_it(size: int) -> None:
    wire = raw(size) + bytes(size >> 1)
    doubted(whole(key=wire))
    doubted(whole(value=wire))
    doubted(whole(headers=varint(1) + wire + b"\1"))
    doubted(whole(headers=varint(1) + b"\0" + wire))
    for count in (0, 1, 2, 58, 70, 10_000):
        body = b"\0\0\0\1" + field(bytes(count)) + b"\0"
        assert fast(raw(2 * len(body)) + body)
        doubted(raw(2 * len(body) + 1) + body)
