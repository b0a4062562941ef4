"""Thousands of mutations a second: messages, captured frames and record batches with bytes changed are read
or refused with one of our errors, and the native engine and the Python code give the same verdict.

Strategy: an input is a seed from which BURST cases follow, so that a case costs microseconds where a choice
of Hypothesis's own costs milliseconds; what Hypothesis shrinks and reports is the seed. Rules: each case is
read by the fast path; one in SAMPLE is also read by the exact one, and both agree; batches have their lengths
and checksums corrected half of the time, so that what is inside them is read.
"""

from __future__ import annotations

import struct
from random import Random
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from coordwire import limits
from coordwire.codec import Message
from coordwire.codec.program import message_program
from coordwire.errors import CoordwireError, DecodeError
from coordwire.frames import read_request, read_response
from coordwire.messages.keys import FACTS
from coordwire.records import backend, batches
from fuzz._guard import Guard
from fuzz._run import main
from fuzz.native import outcome
from fuzz.records import BODIES as RECORDS
from fuzz.records import SEEDS as BATCHES
from fuzz.records import packed, sealed
from fuzz.records_native import python
from fuzz.seeds import bodies, vectors

BURST, SAMPLE = 250, 50
FRAMES = bodies()
MESSAGES = list(vectors())
OTHERS = [[data for _, _, data in MESSAGES], FRAMES]
KINDS = sorted((key, version) for key, facts in FACTS.items() for version in range(facts.last + 1))
GUARD = Guard()

EDGES = (0, 1, 2, 0x3F, 0x40, 0x7F, 0x80, 0x81, 0xFE, 0xFF)
"""Bytes at which lengths, varints and booleans change their meaning."""
NUMBERS = (0, 1, -1, -2, 127, 128, 255, 256, 32767, -32768, 65535, 1 << 20, (1 << 31) - 1, -(1 << 31))


def mutate(random: Random, data: bytes, others: list[bytes]) -> bytes:
    """The bytes after one to four changes: bits, edges, numbers, cuts, repetitions, pieces of others."""
    changed = bytearray(data)
    for _ in range(random.choice((1, 1, 1, 2, 3, 4))):
        size = len(changed)
        at = random.randrange(size + 1)
        match random.randrange(9):
            case 0 | 1 if at < size:
                changed[at] ^= 1 << random.randrange(8)
            case 2 | 3 if at < size:
                changed[at] = random.choice(EDGES)
            case 4 if size - at >= 4:
                struct.pack_into(">i", changed, at, random.choice(NUMBERS))
            case 5 if size - at >= 2:
                struct.pack_into(">H", changed, at, random.choice(NUMBERS) & 0xFFFF)
            case 6:
                del changed[at : at + random.choice((1, 1, 2, 4, 8, size))]
            case 7:
                changed[at:at] = changed[at : at + random.choice((1, 2, 4, 16, 64))]
            case 8:
                other = random.choice(others)
                start = random.randrange(len(other) + 1)
                changed[at : at + random.randrange(9)] = other[start : start + random.randrange(17)]
    return bytes(changed[:100_000])


def message(random: Random, sampled: bool) -> None:
    """A message's bytes, changed, by the engine alone; and by everything there is."""
    cls, version, data = random.choice(MESSAGES)
    body = mutate(random, data, random.choice(OTHERS))
    program = message_program(cls, version)
    result = None if program is None else program.decode(GUARD.place(body), 0, 1_000_000, 1 << 26)
    if sampled:
        python = outcome(lambda: vars(Message)["decode"].__func__(cls, body, version=version))
        assert outcome(lambda: cls.decode(body, version=version)) == python
        if program is not None:
            accepted = result is not None and result[1] == len(body)
            assert accepted == isinstance(python, str)
            assert not accepted or (result is not None and repr(result[0]) == python)


def frame(random: Random, sampled: bool) -> None:
    """A frame's bytes as a request, or as a response of an API that need not be its own."""
    body = mutate(random, random.choice(FRAMES), FRAMES)
    kind = random.choice(KINDS)
    strict = random.random() < 0.5
    for request in (True, False):
        result = decoded(body, kind, request, strict, None)
        if sampled:
            assert str(result) == str(decoded(body, kind, request, strict, []))


def decoded(body: bytes, kind: tuple[int, int], request: bool, strict: bool, marks: Any) -> Any:
    """The frame, or its refusal's text; with `marks` by the interpreter."""
    try:
        if request:
            return read_request(body, strict=strict, marks=marks)
        return read_response(body, *kind, strict=strict, marks=marks)
    except DecodeError as error:
        assert 0 <= error.position <= len(body), error
        assert error.reason
        return f"{error.reason} at {error.position} in {error.path}"


def batch(random: Random, sampled: bool) -> None:
    """Batches whose header, records or compressed bytes were changed, one after another."""
    data = b"".join(one(random) for _ in range(random.choice((1, 1, 2))))
    with limits(decompressed=random.choice((1 << 20, 1000))):
        result = rows(data)
        if sampled:
            with python():
                assert rows(data) == result
    if backend.columns is not None and random.random() < 0.5:
        expected, most = random.randrange(128), random.choice((1, 200, 1 << 20))
        columns = backend.columns(expected, most, random.random() < 0.5, True)
        columns.run(GUARD.place(data), 0, None, 0)
        columns.take()


def one(random: Random) -> bytes:
    if random.random() < 0.4:
        return packed(mutate(random, random.choice(RECORDS), RECORDS), random.randrange(5))
    data = mutate(random, random.choice(BATCHES), BATCHES)
    return sealed(data) if random.random() < 0.6 else data


def rows(data: bytes) -> list[Any]:
    """The records of each batch, the refusals, and the ranges that were passed over."""
    results: list[Any] = []
    reader = batches(GUARD.place(data), on_error="skip")
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
        [(unreadable.position, unreadable.length) for unreadable in reader.skipped],
        bytes(reader.remainder),
    ]


CASES = st.sampled_from([message] * 6 + [frame] + [batch] * 2)
"""What one burst is about; messages more often, as they are most of the code and cost the least."""


@given(st.integers(0, (1 << 64) - 1), CASES)
def fuzz(seed: int, case: Any) -> None:
    random = Random(seed)
    for number in range(BURST):
        case(random, number % SAMPLE == 0)


if __name__ == "__main__":
    main(fuzz, examples=40, cases=BURST)
