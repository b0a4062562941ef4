"""Any bytes are message sets, of magic 0 and 1 and of Kafka 0.7: messages, bad ranges and a remainder that
together are all of them; reading a message gives records or one of our errors, the same twice."""

from __future__ import annotations

from typing import Any
from zlib import crc32

from hypothesis import given
from hypothesis import strategies as st

from coordwire import limits
from coordwire.errors import CorruptBatch, DecodeError
from coordwire.records import Batches, Record, UnreadableRange, batches, encode_batch, kafka_07
from coordwire.records.compression import CODECS, compress
from fuzz._run import main
from fuzz.records import mutated, read

ROWS = [Record(-1, 1000 + n, b"k%d" % n, bytes(n)) for n in range(5)]
PAYLOADS = [b"", b"one", bytes(70), b"\xff\x00"]
SETS = [encode_batch(ROWS, magic=magic) for magic in (0, 1)]
SEEDS = [
    encode_batch(ROWS, codec=codec, magic=magic, base_offset=5) for codec in CODECS[:4] for magic in (0, 1)
]
MESSAGES = [kafka_07.encode_messages(PAYLOADS, magic=magic) for magic in (0, 1)]
SEEDS_07 = [*MESSAGES, *(kafka_07.encode_messages(PAYLOADS, codec=codec) for codec in CODECS[1:3])]


def wrapped(inside: bytes, codec: int, magic: int) -> bytes:
    """A sound wrapper around messages that may be anything."""
    value = compress(CODECS[codec], inside, magic=magic)
    times = bytes(8) if magic else b""
    body = bytes([magic, codec]) + times + b"\xff\xff\xff\xff" + len(value).to_bytes(4) + value
    return (9).to_bytes(8) + (4 + len(body)).to_bytes(4) + crc32(body).to_bytes(4) + body


def wrapped_07(inside: bytes, codec: int) -> bytes:
    """The same of Kafka 0.7."""
    value = compress(CODECS[codec], inside)
    return (6 + len(value)).to_bytes(4) + bytes([1, codec]) + crc32(value).to_bytes(4) + value


INPUTS = st.lists(
    st.one_of(
        mutated(SEEDS),
        st.builds(wrapped, mutated(SETS), st.integers(1, 3), st.integers(0, 1)),
        st.binary(max_size=60),
        st.integers(0, 200).map(bytes),
    ),
    max_size=4,
).map(b"".join)
INPUTS_07 = st.lists(
    st.one_of(
        mutated(SEEDS_07),
        st.builds(wrapped_07, mutated(MESSAGES), st.integers(1, 2)),
        st.binary(max_size=60),
        st.integers(0, 200).map(bytes),
    ),
    max_size=4,
).map(b"".join)


def spans(reader: Batches[Any], size: int) -> None:
    """Skipping, nothing is lost and nothing that is handed out is bad."""
    at = 0
    for unreadable in reader:
        assert unreadable.position == at
        at += unreadable.length if isinstance(unreadable, UnreadableRange) else unreadable.size
        assert isinstance(unreadable, UnreadableRange) or isinstance(read(unreadable), list)
    assert at == reader.position
    assert at + len(reader.remainder) == size


@given(INPUTS, INPUTS_07, st.sampled_from([1 << 20, 100, 0]))
def fuzz(data: bytes, data_07: bytes, most: int) -> None:
    with limits(decompressed=most):
        try:
            for batch in batches(data):
                assert read(batch) == read(batch)
        except DecodeError as error:
            assert isinstance(error, CorruptBatch)
        spans(batches(data, on_error="report"), len(data))
        try:
            for message in kafka_07.batches(data_07, position=50):
                result = read(message)
                assert result == read(message)
                assert repr(message)
                assert message.base_offset == 50 + message.position
                if isinstance(result, list) and not message.magic:
                    payloads = [record.value or b"" for record in result]
                    assert kafka_07.encode_messages(payloads, magic=0) == message.raw
        except DecodeError as error:
            assert isinstance(error, CorruptBatch)
        spans(kafka_07.batches(data_07, on_error="report"), len(data_07))


if __name__ == "__main__":
    main(fuzz)
