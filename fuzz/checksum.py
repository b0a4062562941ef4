"""The native checksum, by the processor's instruction, is that of the package crc32c: of any bytes at any
place, whole or in parts; and it looks at no byte after those given to it."""

from __future__ import annotations

from random import Random

import crc32c as package
from hypothesis import given
from hypothesis import strategies as st

from coordwire._speedups import native
from fuzz._guard import Guard
from fuzz._run import compares_native, main

GUARD = Guard()
BYTES = Random(0).randbytes(1 << 16)


@compares_native
@given(
    st.one_of(st.integers(0, 2000), st.integers(0, len(BYTES) - 8)),
    st.integers(0, 7),
    st.integers(0, (1 << 32) - 1),
    st.integers(0, len(BYTES)),
)
def fuzz(size: int, start: int, before: int, cut: int) -> None:
    assert native is not None
    data = GUARD.place(BYTES[start : start + size])
    expected = package.crc32c(bytes(data), before)
    assert native.crc32c(data, before) == expected
    assert native.crc32c(data[cut:], native.crc32c(data[:cut], before)) == expected


if __name__ == "__main__":
    main(fuzz)
