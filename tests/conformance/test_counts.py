"""Kafka's limits of counts, at the limit and one beyond it, in every engine; test_java.py asks Kafka."""

from __future__ import annotations

import pytest

from coordwire import LimitExceeded, limits
from tests.conformance.counts import Count, arrays, tags
from tests.conformance.engines import check_bytes, fast_decode, native_decode, schema_decode
from tests.conformance.test_hostile import check

ARRAYS, TAGS = arrays(), tags()


@pytest.mark.parametrize("name", ARRAYS)
def test_the_elements_of_an_array(name: str) -> None:
    count = ARRAYS[name]
    with limits(memory=1 << 40):
        message = count.message.decode(count.valid, version=count.version)
        assert fast_decode(count.message, count.version, count.valid) == message
        assert native_decode(count.message, count.version, count.valid) == message
    assert message.encode(version=count.version) == count.valid
    beyond(count)


@pytest.mark.parametrize("name", TAGS)
def test_the_tagged_fields_of_a_struct(name: str) -> None:
    count = TAGS[name]
    check_bytes(count.message, count.version, count.valid)
    beyond(count)


def beyond(count: Count) -> None:
    """Refused by each engine, whatever the budgets are."""
    check(count.message, count.version, count.beyond)
    with limits(elements=1 << 40, memory=1 << 40):
        assert fast_decode(count.message, count.version, count.beyond) is None
        assert native_decode(count.message, count.version, count.beyond) is None
        assert schema_decode(count.message, count.version, count.beyond) is None
        with pytest.raises(LimitExceeded, match="Kafka's limit is 1") as error_info:
            count.message.decode(count.beyond, version=count.version)
    assert error_info.value.position < 100


def test_two_arrays_may_have_more_together() -> None:
    count = ARRAYS["numbers"]
    partition = count.message.decode(count.valid, version=8).topics[0].partitions[0]  # type: ignore[attr-defined]
    partition.isr_nodes = partition.replica_nodes = [1] * 600_000
    message = count.message.decode(count.valid, version=8)
    message.topics[0].partitions[0] = partition  # type: ignore[attr-defined]
    assert count.message.decode(message.encode(version=8), version=8) == message
