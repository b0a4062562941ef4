"""The device that counts work: it sees what Python does, and what C does for it."""

from __future__ import annotations

import gc
import re
from collections.abc import Callable, Iterator
from types import FunctionType

import pytest

from coordwire.capture.formats.hexdump import read_frames

from .growth import assert_linear, work


def turns(size: int) -> None:
    for _ in range(size):
        pass


def comprehension(size: int) -> int:
    return sum(1 for _ in range(size))


def copied(size: int) -> bytes:
    return bytes(size)[: size // 2]


def joined(size: int) -> bytes:
    return b"".join([b"x"] * size)


def looked_through(size: int) -> bool:
    values = list(range(size))
    return -1 in values


def moved_up(size: int) -> None:
    values = list(range(size))
    del values[:1]


def matched(size: int) -> object:
    return re.compile("b").search("a" * size)


def found(size: int) -> int:
    return bytes(size).find(b"x")


SEEN = [turns, comprehension, copied, joined, looked_through, moved_up, matched, found]


@pytest.mark.parametrize("function", SEEN)
def test_what_is_done_counts_by_its_size(function: Callable[[int], object]) -> None:
    assert isinstance(function, FunctionType)
    small = work(lambda: function(1000), functions=[function])
    large = work(lambda: function(2000), functions=[function])
    assert small >= 1000
    assert 1.9 * small <= large <= 2.1 * small


def test_the_count_is_the_same_each_time() -> None:
    lines = [b"00 01 02\n"] * 100
    assert work(lambda: list(read_frames(lines))) == work(lambda: list(read_frames(lines))) > 100


def test_functions_have_their_own_code_afterwards() -> None:
    code = read_frames.__code__
    work(lambda: list(read_frames([b"00"])))
    assert read_frames.__code__ is code


def test_what_a_collection_runs_is_not_counted() -> None:
    def ends() -> Iterator[None]:
        try:
            yield
        finally:
            list(read_frames([b"00 01 02\n"] * 100))

    class Holder:
        """In a cycle, so that only a collection ends its generator."""

        def __init__(self) -> None:
            self.it, self.waits = self, ends()
            next(self.waits)

    def run() -> None:
        Holder()
        gc.collect()

    assert work(run) == 0


def test_functions_are_counted_once_after_objects_were_unfrozen() -> None:
    work(lambda: read_frames([b"00"]))
    gc.unfreeze()
    code = read_frames.__code__
    work(lambda: read_frames([b"00"]))
    assert read_frames.__code__ is code


def test_a_reader_that_is_linear_passes() -> None:
    assert_linear(lambda n: [b"00 01\n"] * n, lambda lines: list(read_frames(lines)), n=200)


def test_a_reader_that_is_not_fails() -> None:
    def quadratic(size: int) -> None:
        for end in range(size):
            list(read_frames([b"00"] * end))

    with pytest.raises(AssertionError, match="faster than the input"):
        assert_linear(lambda n: n, quadratic, n=10)
