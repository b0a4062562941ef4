"""Batches built field by field and then damaged in one or more fields, with lengths and checksums that fit:
the native half reads from them the records, refusals and columns that Python does, from any number of
batches, plain or compressed, in a source or a part of it, into columns of fresh and of used memory.

Strategy: an input is a seed from which BURST sources of batches follow. A record is a list of its fields, so
that damage meets a length, a delta or a count and not the middle of a value; the record's own length, the
batch's and its checksum are then computed again, or in some cases left as they were. Rules: each case is read
by the native half; one in SAMPLE is also read by Python, value by value, one in ARROW_SAMPLE through pyarrow.
"""

from __future__ import annotations

import struct
from functools import lru_cache
from random import Random
from typing import Any, Literal

from hypothesis import given
from hypothesis import strategies as st

from coordwire import limits
from coordwire.errors import CoordwireError
from coordwire.records import backend, batches
from coordwire.records.compression import CODECS, compress
from fuzz._columns import EVERYTHING, Table
from fuzz._guard import Guard
from fuzz._run import compares_native, main
from fuzz.columns_native import expected, unpacked
from fuzz.records_native import ARROW, python, rows, spread_from

BURST, SAMPLE, ARROW_SAMPLE = 500, 20, 100
RECORDS = 200
"""In the largest batch of a burst."""

GUARD, INNER_GUARD, REUSE_GUARD = Guard(), Guard(), Guard()

HEAD = struct.Struct(">qiibIhiqqqhii")
LENGTH, CHECKSUM, ATTRIBUTES = 1, 4, 5
"""Fields of a batch's header that are computed, and the one that names the codec."""

BITS = {"q": 64, "i": 32, "I": 32, "h": 16, "b": 8}
FORMS = [form for form in HEAD.format if form in BITS]
MISSING = -1
EDGES = [
    0,
    1,
    2,
    63,
    64,
    127,
    128,
    8191,
    8192,
    16383,
    1 << 20,
    *((1 << bits - 1) - 1 for bits in (16, 32, 64)),
]
INTEGERS = sorted(
    {sign * edge + step for edge in EDGES for sign in (1, -1) for step in (-1, 0)} | {-(1 << 63)}
)
LATEST = ((1 << 63) - 1) // 1000
STAMPS = (0, -1, 1_700_000_000_000, LATEST, LATEST + 1, -LATEST, -LATEST - 1, (1 << 63) - 1, -(1 << 63))
TEXTS = (
    b"",
    b"h",
    b"name",
    "é".encode(),
    b"\xff",
    b"\xed\xa0\x80",
    b"\xf0\x9f\x98\x80",
    b"a\0b",
    b"\xc0\x80",
)
PATTERN = bytes(range(256)) * 40
SIZES = (*(0, 0, 1, 2, 7, 12, 13, 63, 64, 100, 300) * 3, 9000)

Field = int | bytes
"""A field of a record: a number, to be written as a varint, or bytes as they are."""


@lru_cache(1 << 14)
def varint(number: int, padding: int = 0) -> bytes:
    """A zigzag varint of up to 64 bits. padding: groups of zeros that it has beyond those that it needs."""
    remaining = (number << 1 ^ number >> 63) & (1 << 64) - 1
    written = bytearray()
    while remaining > 127:
        written.append(remaining & 127 | 128)
        remaining >>= 7
    written.append(remaining)
    for _ in range(padding):
        written[-1] |= 128
        written.append(0)
    return bytes(written)


def content(random: Random) -> bytes | None:
    size = random.choice(SIZES) if random.random() < 0.8 else None
    return None if size is None else PATTERN[:size]


def sized(part: bytes | None) -> list[Field]:
    return [MISSING] if part is None else [len(part), part]


def record(random: Random, number: int) -> list[Field]:
    """A valid record after its length: attributes, deltas, key, value, headers."""
    fields: list[Field] = [b"\0", random.choice((0, number, number * 1000, -5)), number]
    fields += sized(content(random)) + sized(content(random))
    headers = random.choice((0, 0, 0, 1, 2, 5))
    fields.append(headers)
    for _ in range(headers):
        fields += sized(random.choice(TEXTS[:4])) + sized(random.choice((None, *TEXTS)))
    return fields


def damaged(random: Random, fields: list[Field]) -> list[Field]:
    """The same with one field of another value, or another form, or none."""
    at = random.randrange(len(fields))
    field = fields[at]
    others: list[list[Field]]
    if isinstance(field, int):
        others = [
            [field + random.choice((-1, 1))],
            [random.choice(INTEGERS)],
            [random.choice(INTEGERS)],
            [varint(field, random.randrange(1, 11))],
            [b"\xff" * random.randrange(1, 12)],
            [],
        ]
    else:
        others = [[random.choice(TEXTS)], [field[:-1]], [field, b"\0"], [b"\x80"], []]
    return [*fields[:at], *random.choice(others), *fields[at + 1 :]]


def serialized(fields: list[Field]) -> bytes:
    return b"".join(varint(field) if isinstance(field, int) else field for field in fields)


def drawn(random: Random) -> list[list[Field]]:
    """The records of a burst, of which its batches have a part each; in some bursts all are of one form."""
    each = [record(random, number) for number in range(RECORDS)]
    if random.random() < 0.3:
        each = [[*each[0][:2], number, *each[0][3:]] for number in range(RECORDS)]
    return each


def body(random: Random, sound: list[list[Field]], wholes: list[bytes], harmed: int) -> bytes:
    """Records with their lengths, so many of them damaged. wholes: how they are written otherwise."""
    parts = list(wholes)
    for _ in range(harmed if sound else 0):
        at = random.randrange(len(sound))
        fields = damaged(random, sound[at])
        written = serialized(fields)
        size, padding = len(written), 0
        if random.random() < 0.25:
            size = random.choice((len(serialized(sound[at])), size - 1, size + 1, random.choice(INTEGERS)))
        elif random.random() < 0.1:
            padding = random.randrange(6)
        parts[at] = varint(size, padding) + written
    return b"".join(parts)


def batch(random: Random, sound: list[list[Field]], wholes: list[bytes]) -> bytes:
    """A batch: a third of them valid, a third with damaged records, a third with a damaged header."""
    kind = random.randrange(3)
    count = random.choice((0, 1, 1, 2, 3, 5, 5, 20)) if random.random() < 0.99 else RECORDS
    at = random.randrange(RECORDS - count + 1)
    part = slice(at, at + count)
    records = body(random, sound[part], wholes[part], random.choice((1, 1, 2, 5)) if kind == 1 else 0)
    codec = random.choice((0, 0, 0, 0, 1, 2, 3, 4))
    stored = records if codec == 0 else bytes(compress(CODECS[codec], records))
    if codec and random.random() < 0.1:
        stored = stored[: random.randrange(len(stored) + 1)]
    base, stamp = random.choice((0, 1 << 40, (1 << 63) - 1)), random.choice(STAMPS)
    attributes = codec | random.choice((0, 0, 8, 16, 24, 32, 64))
    first = 49 + len(stored)
    head = [
        base,
        first,
        0,
        2,
        0,
        attributes,
        max(0, count - 1),
        stamp,
        random.choice(STAMPS),
        -1,
        -1,
        -1,
        count,
    ]
    if kind == 2:
        field = random.randrange(len(head))
        bits = BITS[FORMS[field]]
        value = head[field] + random.choice((-1, 1)) if random.random() < 0.4 else random.choice(INTEGERS)
        signed = value & (1 << bits) - 1
        head[field] = signed - (1 << bits) if FORMS[field] != "I" and signed >> bits - 1 else signed
    whole = HEAD.pack(*head) + stored
    if kind == 2 and head[CHECKSUM]:
        return whole
    return whole[:17] + backend.crc32c(whole[21:]).to_bytes(4) + whole[21:]


def source(random: Random, sound: list[list[Field]], wholes: list[bytes]) -> bytes:
    """Some batches, in some cases cut short or with bytes before and after."""
    data = b"".join(batch(random, sound, wholes) for _ in range(random.choice((1, 1, 1, 2, 3, 6))))
    match random.randrange(12):
        case 0:
            data = data[: random.randrange(len(data) + 1)]
        case 1:
            data = data[random.randrange(len(data)) :]
        case 2:
            data += bytes(random.randrange(70))
    return data


def records(data: bytes | memoryview, on_error: Literal["raise", "skip"]) -> list[Any]:
    """The records of each batch, the refusals, the ranges passed over, and the remainder."""
    results: list[Any] = []
    reader = batches(data, on_error=on_error)
    try:
        for each in reader:
            try:
                results += [(r.offset, r.timestamp, r.key, r.value, r.headers) for r in each]
            except CoordwireError as error:
                results.append(str(error))
    except CoordwireError as error:
        results.append(str(error))
    return [
        *results,
        [(unreadable.position, unreadable.length, unreadable.reason) for unreadable in reader.skipped],
        bytes(reader.remainder),
    ]


def columns(data: bytes, wanted: int, most: int, view: bool, inside: bytes | None, compare: Any) -> None:
    """Compare what the kernel makes of it with Python's rows and end, if those are given; then what it makes
    of the same bytes in memory that was freed before."""
    assert backend.columns is not None
    body = None if inside is None else INNER_GUARD.place(inside)
    kernel = backend.columns(wanted, most, view, True)
    place = GUARD.place(data)
    tables = []
    full, position = True, 0
    while full:
        full, position = kernel.run(place, position, body, 0)  # type: ignore[arg-type]
        tables.append(kernel.take())
    if compare is None:
        return
    viewed = [data if inside is None else inside] if view else None
    results = [Table(*table, viewed).rows(wanted) for table in tables]
    assert [row for table in results for row in table] == (compare[0] if wanted else [])
    assert position == compare[1]
    again = backend.columns(wanted, most, view, True)
    full, position = True, 0
    while full:
        kept = tables.pop(0)  # its memory is free as soon as it is replaced, the others' is not
        full, position = again.run(place, position, body, 0)  # type: ignore[arg-type]
        del kept
        assert Table(*again.take(), viewed).rows(wanted) == results.pop(0)
    assert not results


def parted(random: Random, data: bytes, wanted: int, rows_: list[Any]) -> None:
    """A kernel that goes on from one table to another in the middle of a source gives all of the rows."""
    assert backend.columns is not None
    kernel = backend.columns(wanted, 1 << 20, False, True)
    place = REUSE_GUARD.place(data)
    results: list[Any] = []
    position = 0
    while True:
        end = kernel.span(place, position, random.choice((1, 200, 1000)))
        if end == position:
            break
        full = True
        while full:
            full, position = kernel.run(place[:end], position, None, 0)
            if full or random.random() < 0.5:
                results += Table(*kernel.take(), None).rows(wanted)
        if position != end:
            break
    results += Table(*kernel.take(), None).rows(wanted)
    assert results == (rows_ if wanted else [])


def check(random: Random, number: int, data: bytes) -> None:
    sampled = number % SAMPLE == 0
    with limits(decompressed=random.choice((1 << 20, 1 << 20, 2000))):
        on_error: Literal["raise", "skip"] = random.choice(("raise", "skip")) if sampled else "raise"
        result = records(GUARD.place(data), on_error)
        if sampled:
            with python():
                assert records(data, on_error) == result
        if ARROW and number % ARROW_SAMPLE == 0:
            options = {"max_bytes": random.choice((1, 300, 1 << 20)), "view": random.random() < 0.5}
            with spread_from(random.choice((1, 4 << 20))):
                table = rows(data, on_error=on_error, **options)
            with python():
                assert rows(data, on_error=on_error, **options) == table
    wanted = EVERYTHING if random.random() < 0.5 else random.randrange(128)
    most, view = random.choice((1, 100, 1000, 1 << 20)), random.random() < 0.5
    compare = expected(data, wanted) if sampled else None
    columns(data, wanted, most, view, None, compare)
    if compare is not None:
        parted(random, data, wanted, compare[0])
        if inside := unpacked(data, wanted):
            columns(data, wanted, most, view, inside[0], inside[1:])


@compares_native
@given(st.integers(0, (1 << 64) - 1))
def fuzz(seed: int) -> None:
    random = Random(seed)
    sound = drawn(random)
    wholes = [varint(len(whole)) + whole for whole in map(serialized, sound)]
    for number in range(BURST):
        check(random, number, source(random, sound, wholes))


if __name__ == "__main__":
    main(fuzz, examples=20, cases=BURST)
