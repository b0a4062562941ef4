"""The tables of the wire: at their edges the compiled code writes and reads what the interpreter does."""

from __future__ import annotations

import pytest

from coordwire import DecodeError, limits
from coordwire.codec.interpreter.decoder import Reader
from coordwire.codec.interpreter.encoder import Writer
from coordwire.codec.primitives import LENGTHS, STRING_LENGTHS, UNPACK_INT32S, Refused, uvarint
from coordwire.messages.metadata import MetadataResponse, MetadataResponsePartition, MetadataResponseTopic
from tests.compiled import compiled_decoder, compiled_encoder

COUNTS = [0, 1, 9, 126, 127, 128, 129, 16_382, 16_383, 16_384]


def with_nodes(count: int) -> MetadataResponse:
    partition = MetadataResponsePartition(replica_nodes=list(range(count)), isr_nodes=[-1] * count)
    return MetadataResponse(
        topics=[MetadataResponseTopic(name="t" * min(count, 32_767), partitions=[partition])]
    )


@pytest.mark.parametrize("version", [1, 8, 9, 12])
@pytest.mark.parametrize("count", COUNTS)
def test_counts_and_lengths_at_their_edges(count: int, version: int) -> None:
    message = with_nodes(count)
    wire = compiled_encoder(MetadataResponse, version)(message)
    assert wire == Writer(version).message(message)
    fast, end = compiled_decoder(MetadataResponse, version)(wire, 0, 1_000_000, 1 << 26)
    assert end == len(wire)
    assert fast == Reader(wire, 0, version).message(MetadataResponse)


@pytest.mark.parametrize("size", COUNTS)
def test_lengths_are_the_varints_of_one_more(size: int) -> None:
    assert LENGTHS[size] == STRING_LENGTHS[size] == uvarint(size + 1)


def test_a_string_is_bounded_and_bytes_are_not() -> None:
    assert STRING_LENGTHS[32_767] == LENGTHS[32_767]
    with pytest.raises(Refused):
        STRING_LENGTHS[32_768]
    assert LENGTHS[32_768] == uvarint(32_769)


def test_tables_stay_small() -> None:
    for count in (200, 1_000, 1_000_000):
        UNPACK_INT32S[count]
        LENGTHS[count]
    assert max(UNPACK_INT32S) < 128
    assert max(LENGTHS) < 127


@pytest.mark.parametrize("count", [11, 200, (1 << 32) - 2])
def test_more_numbers_than_bytes_are_refused(count: int) -> None:
    body = with_nodes(0).encode(version=12)
    at = body.index(b"\x01\x01\x01\x00", 20)
    with pytest.raises(DecodeError, match=f"{count} elements of at least 4 bytes claimed"):
        MetadataResponse.decode(body[:at] + uvarint(count + 1) + body[at + 1 :], version=12)


def test_numbers_count_against_the_budget_of_elements() -> None:
    body = with_nodes(20).encode(version=12)
    with limits(elements=42):
        MetadataResponse.decode(body, version=12)
    with limits(elements=41), pytest.raises(DecodeError, match="budget of elements"):
        MetadataResponse.decode(body, version=12)
