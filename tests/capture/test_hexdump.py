"""Frames out of text: every usual dump, and complaints with line and column."""

from __future__ import annotations

import io

import pytest
from hypothesis import given
from hypothesis import strategies as st

from coordwire.capture.formats.hexdump import HexFrame, looks_like_hexdump, read_frames
from coordwire.errors import UnreadableRange
from coordwire.limits import limits

SAMPLE = bytes(range(0x2E, 0x2E + 45))


def read(text: str) -> list[bytes | str]:
    items = list(read_frames(io.BytesIO(text.encode())))
    return [frame.data if isinstance(frame, HexFrame) else frame.reason for frame in items]


def ascii_of(row: bytes) -> str:
    return "".join(chr(each) if 32 <= each < 127 else "." for each in row)


def rows(data: bytes, width: int = 16) -> list[tuple[int, bytes]]:
    return [(at, data[at : at + width]) for at in range(0, len(data), width)]


def pairs(row: bytes, size: int = 2) -> str:
    return " ".join(row[at : at + size].hex() for at in range(0, len(row), size))


def xxd(data: bytes) -> str:
    return "".join(f"{at:08x}: {pairs(row):39}  {ascii_of(row)}\n" for at, row in rows(data))


def xxd_bytes(data: bytes) -> str:
    return "".join(f"{at:08x}: {pairs(row, 1):47}  {ascii_of(row)}\n" for at, row in rows(data)).upper()


def hexdump(data: bytes) -> str:
    lines, above, starred = [], b"", False
    for at, row in rows(data):
        if row == above and len(row) == 16:
            lines += [] if starred else ["*"]
            starred = True
            continue
        both = f"{pairs(row[:8], 1):23}  {pairs(row[8:], 1):23}"
        lines.append(f"{at:08x}  {both}  |{ascii_of(row)}|")
        above, starred = row, False
    return "\n".join([*lines, f"{len(data):08x}", ""])


def od(data: bytes) -> str:
    return "".join(f"{at:06x} {pairs(row, 1)}\n" for at, row in rows(data)) + f"{len(data):06x}\n"


def tcpdump(data: bytes) -> str:
    return "".join(f"\t0x{at:04x}:  {pairs(row):39}  {ascii_of(row)}\n" for at, row in rows(data))


def wireshark(data: bytes) -> str:
    return "".join(f"{at:04x}  {pairs(row, 1):47}   {ascii_of(row)}\n" for at, row in rows(data))


def wireshark_with_gap(data: bytes) -> str:
    def both(row: bytes) -> str:
        return f"{pairs(row[:8], 1):23}  {pairs(row[8:], 1)}" if len(row) > 8 else pairs(row, 1)

    return "".join(f"{at:04x}  {both(row):48}   {ascii_of(row)}\n" for at, row in rows(data))


def plain_wrapped(data: bytes) -> str:
    return "".join(row.hex() + "\n" for _, row in rows(data, 30))


DUMPS = [xxd, xxd_bytes, hexdump, od, tcpdump, wireshark, wireshark_with_gap]


@pytest.mark.parametrize("dump", DUMPS)
@given(st.binary(min_size=1, max_size=70) | st.sampled_from([bytes(200), b"a" * 33, SAMPLE]))
def test_dumps(dump: object, data: bytes) -> None:
    assert callable(dump)
    text = dump(data)
    assert read(text) == [data]
    assert read(f"# one\n{text}\n\n{text}") == [data, data]
    assert looks_like_hexdump(text.encode())


@pytest.mark.parametrize("dump", [xxd, hexdump, tcpdump])
@given(st.lists(st.sampled_from([b"dead", b"beef", b"  ", b"12 ", b"|"]), min_size=1, max_size=12))
def test_an_ascii_column_of_digits_is_not_read(dump: object, parts: list[bytes]) -> None:
    assert callable(dump)
    data = b"".join(parts)
    assert read(dump(data)) == [data]


def test_dumps_follow_each_other_without_a_blank_line() -> None:
    assert read(xxd(SAMPLE) + xxd(b"next")) == [SAMPLE, b"next"]


@pytest.mark.parametrize(
    "text",
    [
        "0a1bFF",
        "0A:1b:ff",
        "0a 1b ff",
        "0x0a 0x1B 0xff",
        "0x0a,0x1b, 0xff",
        "0x0a1bff",
        "  0a1b\tff  ",
        "\ufeff0a1bff",
    ],
)
def test_plain_hex(text: str) -> None:
    assert read(text) == [bytes.fromhex("0a1bff")]
    assert looks_like_hexdump(text.encode())


def test_a_frame_a_line() -> None:
    text = "# two heartbeats\n0000\n\n00 01\r\n0002\n00000004\n00000010\n"
    items = list(read_frames(io.BytesIO(text.encode())))
    assert items[0] == HexFrame(2, 17, 5, b"\0\0")
    assert [frame.data for frame in items if isinstance(frame, HexFrame)] == [
        b"\0\0", b"\0\1", b"\0\2", b"\0\0\0\4", b"\0\0\0\x10"
    ]  # fmt: skip


def test_wrapped_hex_is_joined_unless_its_first_line_is_whole() -> None:
    assert read(plain_wrapped(SAMPLE * 3)) == [SAMPLE * 3]
    whole = (26).to_bytes(4, "big") + bytes(26)
    assert read(f"{whole.hex()}\n" * 3) == [whole] * 3


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("00\n0g", "line 2, column 2: expected a hex digit, got 'g'"),
        ("00 abc", "line 1, column 4: expected an even number of hex digits, got 3"),
        ("zz", "line 1, column 1: expected a hex digit, got 'z'"),
        ("00 0x", "line 1, column 6: 0x without digits"),
        ("00 é", "line 1, column 4: expected a hex digit, got 'Ã'"),
        (xxd(SAMPLE).replace("00000020", "00000030"), "line 3, column 1: expected offset 20, got 30"),
        (xxd(SAMPLE)[:-30].replace("4e4f", "4e4x"), "line 3, column 14: expected a hex digit, got 'x'"),
        ("00000000: 00\n*\n", "line 2, column 1: a repetition without an end"),
        ("00000000: 0001\n*\n00000003: 00", "line 2, column 1: a repetition up to offset 3"),
        ("00000000: 00\n*\nffffffffffffffff: 00", "line 2, column 1: a repetition of 184467"),
    ],
)
def test_complaints(text: str, reason: str) -> None:
    complaints = [each for each in read(text) if isinstance(each, str)]
    assert len(complaints) == 1
    assert complaints[0].startswith(reason)


def test_a_bad_line_costs_one_frame() -> None:
    items = list(read_frames([b"0001\n", b"what\n", b"0002\n"]))
    assert [type(item) for item in items] == [HexFrame, UnreadableRange, HexFrame]
    assert isinstance(items[1], UnreadableRange)
    assert (items[1].position, items[1].length) == (5, 5)


def test_a_repetition_is_within_the_budget() -> None:
    text = "00000000: 00\n*\n00001000: 00"
    assert read(text) == [bytes(0x1001)]
    with limits(frame=100):
        assert "over the limit of a frame" in str(read(text)[0])


@given(st.binary(max_size=200) | st.text("0123456789abcdefx:|*#g \n\t", max_size=200).map(str.encode))
def test_any_text(text: bytes) -> None:
    covered = 0
    for item in read_frames(io.BytesIO(text)):
        assert covered <= item.position
        covered = item.position + item.length
        assert covered <= len(text)
    looks_like_hexdump(text)
