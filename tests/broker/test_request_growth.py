"""Every API of the broker, asked about n of what it lists in a cluster with n of everything: for n, 2n, 4n.

Strategy: a request is filled from its field table (`tests.filled_requests`), so that a new API is covered at
once: one of its arrays gets n elements, n different ones or the same n times; and once each of its arrays has
one. What is named is there (`World`). Rules: only the work of a handler is counted, without a clock.
"""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from coordwire.broker.handlers import APIS
from coordwire.messages import find_message
from coordwire.versions import ApiKey
from tests.broker.growth_world import World
from tests.filled_requests import Path, array_paths, filled
from tests.growth import Counter, assert_increments, counting

SIZES = (3, 12, 24, 48)
"""The first is not counted: what is made at first use."""

DESTRUCTIVE = {
    ApiKey.DELETE_TOPICS, ApiKey.DELETE_GROUPS, ApiKey.OFFSET_DELETE, ApiKey.DELETE_RECORDS,
    ApiKey.LEAVE_GROUP, ApiKey.JOIN_GROUP, ApiKey.CREATE_TOPICS, ApiKey.CREATE_PARTITIONS,
    ApiKey.INIT_PRODUCER_ID,    ApiKey.ADD_PARTITIONS_TO_TXN, ApiKey.WRITE_TXN_MARKERS, ApiKey.END_TXN,
}  # fmt: skip
"""APIs after which a world is not what the next case needs."""

Case = tuple[int, int, Path, bool]
"""An API's key, a version, the array with n elements, and whether they differ."""


def cases() -> Iterator[Case]:
    for key, api in sorted(APIS.items()):
        yield key, api.last, (), True
        result = set()
        for version in (api.last, api.first):
            for path in array_paths(find_message(key, "request"), version):
                if path not in result:
                    result.add(path)
                    yield from ((key, version, path, differ) for differ in (True, False))


CASES = list(cases())


def _name(case: Case) -> str:
    key, version, path, differ = case
    return f"{ApiKey(key).name}-{version}-{'.'.join(path)}-{'different' if differ else 'same'}"


@pytest.fixture(scope="module")
def counter() -> Iterator[Counter]:
    for key in APIS:
        World(2)
        find_message(key, "request")
    with counting() as counter:
        yield counter


@pytest.fixture(scope="module")
def worlds(counter: Counter) -> dict[int, World]:
    return {size: World(size) for size in SIZES}


def _work(counter: Counter, world: World, case: Case, size: int) -> int:
    """What a cluster does for one request."""
    key, version, path, differ = case
    world.api, world.large = ApiKey(key).name, path
    numbers = list(range(size)) if differ else [0] * size
    request = filled(find_message(key, "request"), version, path, numbers, world.value)
    before = counter.count
    world.core.begin(request, version)
    spent = counter.count - before
    return spent


@pytest.mark.parametrize("case", CASES, ids=_name)
def test_twice_the_request_is_twice_the_work(case: Case, counter: Counter, worlds: dict[int, World]) -> None:
    if case[0] in DESTRUCTIVE:
        worlds = {size: World(size) for size in SIZES}
    counts = [_work(counter, world, case, size) for size, world in worlds.items()]
    assert_increments(counts[1:], noise=100)


def test_every_api_is_here() -> None:
    assert {case[0] for case in CASES} == set(APIS)
