"""Any bytes are batches, bad ranges and a remainder that together are all of them; reading a batch gives
records or one of our errors, the same twice; what the fast path reads, the exact one reads too."""

from __future__ import annotations

from crc32c import crc32c
from hypothesis import given
from hypothesis import strategies as st

from coordwire import limits
from coordwire.errors import CorruptBatch, DecodeError, LimitExceeded
from coordwire.records import Record, RecordBatch, UnreadableRange, batches, encode_batch
from coordwire.records.compression import CODECS, compress
from coordwire.records.record import read_records
from coordwire.records.strict import Origin, StrictReader
from fuzz._run import main

ROWS = [Record(-1, 1000 + n, b"k%d" % n, bytes(n), (("h", b"x"), ("", None))[: n % 3]) for n in range(5)]
PLAIN = [Record(record.offset, record.timestamp, record.key, record.value) for record in ROWS]
SEEDS = [
    encode_batch(ROWS, codec=codec, base_offset=base, transactional=base > 0)
    for codec in CODECS
    for base in (0, 1 << 40)
] + [encode_batch(PLAIN, codec=codec, magic=magic) for codec in CODECS[:4] for magic in (0, 1)]


@st.composite
def mutated(draw: st.DrawFn, seeds: list[bytes]) -> bytes:
    """A seed with some bytes changed."""
    data = bytearray(draw(st.sampled_from(seeds)))
    for _ in range(draw(st.integers(0, 3))):
        at = draw(st.integers(0, len(data)))
        data[at : at + draw(st.integers(0, 3))] = draw(st.binary(max_size=3))
    return bytes(data)


def sealed(data: bytes) -> bytes:
    """With length and checksum put right, so that what is inside is looked at."""
    if len(data) < 61 or data[16] != 2:
        return data
    return data[:8] + (len(data) - 12).to_bytes(4) + data[12:17] + crc32c(data[21:]).to_bytes(4) + data[21:]


def packed(body: bytes, codec: int) -> bytes:
    """A sound batch around records that may be anything."""
    head = SEEDS[2 * codec][:61]
    return sealed(head + compress(CODECS[codec], body))


BODIES = [encode_batch(ROWS[:n])[61:] for n in range(1, 6)]
INPUTS = st.lists(
    st.one_of(
        mutated(SEEDS),
        mutated(SEEDS).map(sealed),
        st.builds(packed, mutated(BODIES), st.integers(0, 4)),
        st.binary(max_size=80),
        st.integers(0, 200).map(bytes),
    ),
    max_size=4,
).map(b"".join)


def read(batch: RecordBatch) -> list[Record] | str:
    try:
        records = list(batch)
    except (CorruptBatch, LimitExceeded) as error:
        assert error.reason
        assert batch.position <= error.position <= batch.position + batch.size
        return str(error)
    for record in records:
        assert isinstance(record.key, bytes | None)
        assert isinstance(record.value, bytes | None)
        assert -(1 << 63) <= record.offset < 1 << 63
        assert -(1 << 63) <= record.timestamp < 1 << 63
        assert all(isinstance(name, str) for name, _ in record.headers)
    if batch.is_control:
        try:
            list(batch.control_records())
        except CorruptBatch as error:
            assert error.path.startswith("records[")
    return records


def spans(data: bytes) -> None:
    """Skipping, nothing is lost and nothing that is handed out is bad."""
    reader = batches(data, on_error="report")
    at = 0
    for unreadable in reader:
        assert unreadable.position == at
        at += unreadable.length if isinstance(unreadable, UnreadableRange) else unreadable.size
        assert isinstance(unreadable, UnreadableRange) or isinstance(read(unreadable), list)
    assert at == reader.position
    assert at + len(reader.remainder) == len(data)


@given(INPUTS, st.sampled_from([1 << 20, 100, 0]))
def fuzz(data: bytes, most: int) -> None:
    with limits(decompressed=most):
        try:
            for batch in batches(data):
                assert read(batch) == read(batch)
                assert repr(batch)
        except DecodeError as error:
            assert isinstance(error, CorruptBatch)
        spans(data)
    for count in (1, 3):
        judge = StrictReader(data, count, Origin(0, False))
        try:
            fast, end = read_records(data, 0, count, 0, 0)
        except Exception:  # whatever it was: the judge decides
            continue
        if end == len(data):
            assert fast == list(judge.read(0, 0, 0, 0))


if __name__ == "__main__":
    main(fuzz)
